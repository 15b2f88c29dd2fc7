/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The launcher's rewriting: command line in, two command lines out.
 *
 * A case is words separated by blanks.  "DAEMON" and "STOCK" stand for the
 * programs, "/D" for the private directory, 9 for the lifeline.
 */
#include "rewrite.h"

#include <string.h>

#define NIC "-device virtio-net-pci,netdev=n0"
#define USER "-netdev user,id=n0"
#define VU "-chardev socket,id=vnet-n0,path=/D/nic0.sock " \
           "-netdev vhost-user,id=n0,chardev=vnet-n0"
#define RAM(size) "-object memory-backend-memfd,id=pc.ram,share=on,size=" \
                  size " -machine memory-backend=pc.ram"
#define RAM128 RAM("134217728")
#define LONG_ID "i2345678901234567890123456789012" \
                "34567890123456789012345678901234"
#define DAEMON "DAEMON --daemonize --keep-stderr --lifeline-fd 9 " \
               "--private-dir /D"
#define EXPORT "--export vhost-user-net,id=nic0,device=#n0,path=/D/nic0.sock"

enum {
    FEARS_MSIX = 1 << 0,
    HAS_KVM = 1 << 1,
    RAM_FILES = 1 << 2,         /* a new one for each memory, from 70 on */
};

typedef struct Case {
    const char *name;
    unsigned flags;
    const char *in;
    const char *qemu;           /* without the program; NULL: as in */
    const char *daemon;         /* NULL: none */
    const char *notice;         /* part of the only one; NULL: none */
} Case;

static const Case cases[] = {
    { "nothing", 0, "-M q35 -m 1G -drive file=x,format=raw disk.img --S" },
    { "empty", 0, "" },
    { "other-nic", 0, "-netdev user,id=n0 -device e1000,netdev=n0" },
    { "nic-without-netdev", 0, "-device virtio-net-pci,id=a,tx=timer" },
    { "nic-option", 0, "-nic user,model=virtio-net-pci" },
    { "value-like-option", 0, "-name -netdev -append -device" },
    { "last-word-missing", 0, "-m 64 -device" },

    { "user", 0, USER " " NIC,
      VU " " NIC " " RAM128,
      DAEMON " --netdev user,id=n0 --device virtio-net-pci,id=#n0,netdev=n0 "
      EXPORT },
    { "two-dashes", 0, "--netdev user,id=n0 --device virtio-net,netdev=n0",
      "-chardev socket,id=vnet-n0,path=/D/nic0.sock "
      "--netdev vhost-user,id=n0,chardev=vnet-n0 "
      "--device virtio-net,netdev=n0 " RAM128,
      DAEMON " --netdev user,id=n0 --device virtio-net-pci,id=#n0,netdev=n0 "
      EXPORT },
    { "device-first", 0, "-S " NIC " -usb " USER " disk.img",
      "-S " NIC " -usb " VU " disk.img " RAM128,
      DAEMON " --netdev user,id=n0 --device virtio-net-pci,id=#n0,netdev=n0 "
      EXPORT },
    { "properties", 0,
      USER " -device virtio-net-pci,bus=pci.0,addr=0x5,netdev=n0,id=net0,"
      "tx=timer,x-txtimer=100000,mac=52:54:00:12:34:56,rx_queue_size=512,"
      "bootindex=1,tx-coal-usecs=0,x-txhold=0,csum=off",
      VU " -device virtio-net-pci,bus=pci.0,addr=0x5,netdev=n0,id=net0,"
      "mac=52:54:00:12:34:56,rx_queue_size=512,bootindex=1,csum=off " RAM128,
      DAEMON " --netdev user,id=n0 --device virtio-net-pci,id=net0,netdev=n0,"
      "tx=timer,x-txtimer=100000,mac=52:54:00:12:34:56,rx_queue_size=512,"
      "tx-coal-usecs=0,x-txhold=0,csum=off "
      "--export vhost-user-net,id=nic0,device=net0,path=/D/nic0.sock" },
    { "json", 0,
      "-netdev {\"type\":\"tap\",\"fd\":\"33\",\"vhost\":false,\"id\":\"n0\"}"
      " -device {\"driver\":\"virtio-net-pci\",\"netdev\":\"n0\",\"tx\":"
      "\"bh\",\"id\":\"net0\",\"vectors\":4,\"disable-legacy\":\"on\","
      "\"failover\":false}",
      VU " -device {\"driver\":\"virtio-net-pci\",\"netdev\":\"n0\","
      "\"id\":\"net0\",\"vectors\":4,\"disable-legacy\":\"on\","
      "\"failover\":false} " RAM128,
      DAEMON " --netdev {\"type\":\"tap\",\"fd\":\"33\",\"vhost\":false,"
      "\"id\":\"n0\"} --device virtio-net-pci,id=net0,netdev=n0,tx=bh "
      "--export vhost-user-net,id=nic0,device=net0,path=/D/nic0.sock" },
    { "json-untouched", 0,
      USER " -device { \"driver\":\"virtio-net-pci\",\"netdev\":\"n0\"}",
      VU " -device { \"driver\":\"virtio-net-pci\",\"netdev\":\"n0\"} "
      RAM128,
      DAEMON " --netdev user,id=n0 --device virtio-net-pci,id=#n0,netdev=n0 "
      EXPORT },
    { "two-nics", 0,
      USER " " NIC " -netdev tap,id=n1,ifname=t,script=no "
      "-device virtio-net-pci,netdev=n1,id=b",
      VU " " NIC " -chardev socket,id=vnet-n1,path=/D/nic1.sock "
      "-netdev vhost-user,id=n1,chardev=vnet-n1 "
      "-device virtio-net-pci,netdev=n1,id=b " RAM128,
      DAEMON " --netdev user,id=n0 --netdev tap,id=n1,ifname=t,script=no "
      "--device virtio-net-pci,id=#n0,netdev=n0 " EXPORT
      " --device virtio-net-pci,id=b,netdev=n1 "
      "--export vhost-user-net,id=nic1,device=b,path=/D/nic1.sock" },
    { "multiqueue", 0,
      "-netdev tap,id=n0,queues=4 -device virtio-net-pci,netdev=n0,mq=on,"
      "vectors=10",
      VU ",queues=4 -device virtio-net-pci,netdev=n0,mq=on,vectors=10 "
      RAM128,
      DAEMON " --netdev tap,id=n0,queues=4 "
      "--device virtio-net-pci,id=#n0,netdev=n0,mq=on " EXPORT },
    { "multiqueue-fds", 0,
      "-netdev tap,id=n0,fds=5:6 -device virtio-net-pci,netdev=n0,mq=on",
      VU ",queues=2 -device virtio-net-pci,netdev=n0,mq=on " RAM128,
      DAEMON " --netdev tap,id=n0,fds=5:6 "
      "--device virtio-net-pci,id=#n0,netdev=n0,mq=on " EXPORT },
    { "multiqueue-off", 0,
      "-netdev tap,id=n0,queues=4 " NIC, VU " " NIC " " RAM128,
      DAEMON " --netdev tap,id=n0,queues=4 "
      "--device virtio-net-pci,id=#n0,netdev=n0 " EXPORT },
    { "iothread", 0,
      "-object iothread,id=io0,poll-max-ns=0,poll-grow=2,cpu-affinity=1 "
      USER " -device virtio-net-pci,netdev=n0,iothread=io0",
      "-object iothread,id=io0,poll-max-ns=0,poll-grow=2 "
      VU " " NIC " " RAM128,
      DAEMON " --object iothread,id=io0,poll-max-ns=0,cpu-affinity=1 "
      "--netdev user,id=n0 "
      "--device virtio-net-pci,id=#n0,netdev=n0,iothread=io0 " EXPORT },
    { "iothread-shared", 0,
      "-object iothread,id=io0 " USER
      " -device virtio-net-pci,netdev=n0,iothread=io0"
      " -netdev user,id=n1 -device virtio-net-pci,netdev=n1,iothread=io0",
      "-object iothread,id=io0 " VU " " NIC
      " -chardev socket,id=vnet-n1,path=/D/nic1.sock "
      "-netdev vhost-user,id=n1,chardev=vnet-n1 "
      "-device virtio-net-pci,netdev=n1 " RAM128,
      DAEMON " --object iothread,id=io0 --netdev user,id=n0 "
      "--netdev user,id=n1 "
      "--device virtio-net-pci,id=#n0,netdev=n0,iothread=io0 " EXPORT
      " --device virtio-net-pci,id=#n1,netdev=n1,iothread=io0 "
      "--export vhost-user-net,id=nic1,device=#n1,path=/D/nic1.sock" },
    { "tx-thread", 0,
      USER " " NIC ",tx-thread=on,tx-cpus=0-1,tx-cpus=3",
      VU " " NIC " " RAM128,
      DAEMON " --netdev user,id=n0 --device virtio-net-pci,id=#n0,netdev=n0,"
      "tx-thread=on,tx-cpus=0-1,tx-cpus=3 " EXPORT },
    { "own-monitor", 0, "-x-vnet-qmp /q,s " USER " " NIC,
      VU " " NIC " " RAM128,
      DAEMON " --qmp unix:/q,,s,server=on,wait=off --netdev user,id=n0 "
      "--device virtio-net-pci,id=#n0,netdev=n0 " EXPORT },
    { "own-monitor-alone", 0, "-S -x-vnet-qmp /q -m 64", "-S -m 64", NULL,
      "there is no such monitor" },
    { "daemonize", 0, "-daemonize " USER " " NIC,
      "-daemonize " VU " " NIC " " RAM128,
      "DAEMON --daemonize --lifeline-fd 9 --private-dir /D "
      "--netdev user,id=n0 --device virtio-net-pci,id=#n0,netdev=n0 "
      EXPORT },

    { "global", 0, "-global virtio-net-pci.tx=timer " USER " " NIC,
      "-global virtio-net-pci.tx=timer " VU " " NIC " " RAM128, "",
      "-global virtio-net-pci.tx=timer: reaches the stock QEMU only: give tx= "
      "with each -device" },
    { "global-keys", 0,
      "-global driver=virtio-net-pci,property=tx,value=bh " USER " " NIC,
      "-global driver=virtio-net-pci,property=tx,value=bh " VU " " NIC " "
      RAM128, "",
      "reaches the stock QEMU only: give tx= with each -device" },
    { "global-of-none", 0, "-global nonsense -global =.= " USER " " NIC,
      "-global nonsense -global =.= " VU " " NIC " " RAM128, "" },
    { "global-of-others", 0,
      "-global virtio-net-pci.romfile= -global e1000.mac=x " USER " " NIC,
      "-global virtio-net-pci.romfile= -global e1000.mac=x " VU " " NIC " "
      RAM128, "" },

    /* NICs that stay */
    { "vhost-on", 0, "-netdev tap,id=n0,vhost=on " NIC },
    { "vhost-fd", 0, "-netdev tap,id=n0,fd=3,vhostfd=4 " NIC },
    { "vhost-force", 0, "-netdev tap,id=n0,vhostforce=on " NIC },
    { "vhost-user", 0, "-netdev vhost-user,id=n0,chardev=c " NIC },
    { "vhost-on-own", 0,
      "-netdev tap,id=n0,vhost=on " NIC ",tx=timer,tx-coal-usecs=9",
      "-netdev tap,id=n0,vhost=on " NIC ",tx=timer", NULL,
      "tx-coal-usecs= has no effect" },
    { "socket", 0, "-netdev socket,id=n0,listen=:1 " NIC, NULL, NULL,
      "not socket" },
    { "bridge-helper", 0, "-netdev tap,id=n0,br=br0 " NIC, NULL, NULL,
      "br= of -netdev tap" },
    { "smb", 0, "-netdev user,id=n0,smb=/tmp " NIC, NULL, NULL,
      "smb= of -netdev user" },
    { "poll-us", 0, "-netdev tap,id=n0,poll-us=5 " NIC, NULL, NULL,
      "poll-us= of -netdev tap" },
    { "guestfwd-chardev", 0,
      "-netdev user,id=n0,guestfwd=tcp:10.0.2.9:1-cmd:x,"
      "guestfwd=tcp:10.0.2.9:2-unix:/s " NIC, NULL, NULL,
      "guestfwd=tcp:10.0.2.9:2-unix:/s: only cmd: and tcp:" },
    { "hostfwd-unix", 0, "-netdev user,id=n0,hostfwd=unix:/s-:22 " NIC, NULL,
      NULL, "hostfwd=unix:/s-:22: only tcp: and udp:" },
    { "guestfwd-ours", 0,
      "-netdev user,id=n0,guestfwd=tcp:10.0.2.9:1-cmd:x-y,"
      "guestfwd=tcp:10.0.2.9:2-tcp:h:1 " NIC,
      VU " " NIC " " RAM128,
      DAEMON " --netdev user,id=n0,guestfwd=tcp:10.0.2.9:1-cmd:x-y,"
      "guestfwd=tcp:10.0.2.9:2-tcp:h:1 "
      "--device virtio-net-pci,id=#n0,netdev=n0 " EXPORT },
    { "iommu", 0, USER " " NIC ",iommu_platform=on", NULL, NULL,
      "iommu_platform=on" },
    { "iommu-global", 0,
      "-global virtio-device.iommu_platform=on " USER " " NIC, NULL, NULL,
      "iommu_platform=on" },
    { "iommu-global-keys", 0,
      "-global driver=virtio-net-pci,property=iommu_platform,value=on "
      USER " " NIC, NULL, NULL, "iommu_platform=on" },
    { "iommu-global-off-here", 0,
      "-global virtio-net-pci.iommu_platform=on " USER " " NIC
      ",iommu_platform=off",
      "-global virtio-net-pci.iommu_platform=on " VU " " NIC
      ",iommu_platform=off " RAM128, "" },
    { "iommu-global-of-others", 0,
      "-global virtio-blk-pci.iommu_platform=on "
      "-global virtio-net-pci.iommu_platform=off " USER " " NIC,
      "-global virtio-blk-pci.iommu_platform=on "
      "-global virtio-net-pci.iommu_platform=off " VU " " NIC " " RAM128,
      "" },
    { "runas", 0, "-runas nobody " USER " " NIC, NULL, NULL,
      "is not carried over" },
    { "chroot", 0, "-chroot /x " USER " " NIC, NULL, NULL,
      "is not carried over" },
    { "run-with-user", 0, "-run-with user=nobody " USER " " NIC, NULL, NULL,
      "is not carried over" },
    { "run-with-other", 0, "-run-with async-teardown=on " USER " " NIC,
      "-run-with async-teardown=on " VU " " NIC " " RAM128, "" },
    { "sandbox", 0, "-sandbox on,spawn=deny " USER " " NIC,
      "-sandbox on,spawn=deny " VU " " NIC " " RAM128, "" },
    { "sandbox-command", 0, "-sandbox on,spawn=deny "
      USER ",guestfwd=tcp:10.0.2.9:1-cmd:x " NIC, NULL, NULL, "spawn=deny" },
    { "json-id", 0, "-netdev {\"type\":\"user\",\"id\":\"a,b\"} "
      "-device {\"driver\":\"virtio-net-pci\",\"netdev\":\"a,b\"}",
      NULL, NULL, "id 'a,b' is not a letter followed by" },
    { "long-id", 0, USER " " NIC ",id=" LONG_ID, NULL, NULL,
      "is not a letter followed by" },
    { "chardev-of-others", 0,
      "-chardev null,id=vnet-n0 -chardev null,id=vnet-n0-- " USER " " NIC,
      "-chardev null,id=vnet-n0 -chardev null,id=vnet-n0-- "
      "-chardev socket,id=vnet-n0-,path=/D/nic0.sock "
      "-netdev vhost-user,id=n0,chardev=vnet-n0- " NIC " " RAM128, "" },
    { "argument-missing", 0, USER " " NIC " -m" },
    { "only-migratable", 0, "-only-migratable " USER " " NIC, NULL, NULL,
      "cannot be migrated yet" },
    { "replay", 0, "-icount shift=3,rr=record,rrfile=f " USER " " NIC, NULL,
      NULL, "record/replay" },
    { "filter", 0,
      "-object filter-dump,id=f,netdev=n0,file=x " USER " " NIC, NULL, NULL,
      "filter-dump" },
    { "filter-on-other", 0,
      "-object filter-dump,id=f,netdev=n1,file=x " USER " " NIC,
      "-object filter-dump,id=f,netdev=n1,file=x " VU " " NIC " " RAM128,
      DAEMON " --netdev user,id=n0 --device virtio-net-pci,id=#n0,netdev=n0 "
      EXPORT },
    { "readconfig", 0, "-readconfig f -device virtio-net-pci,netdev=n7" },

    /* hubs */
    { "hub-sink", 0, "-netdev hubport,id=n0,hubid=0 " NIC,
      VU " " NIC " " RAM128,
      DAEMON " --netdev hubport,id=n0,hubid=0 "
      "--device virtio-net-pci,id=#n0,netdev=n0 " EXPORT },
    { "hub-spare-port", 0,
      "-netdev hubport,id=n0,hubid=1 -netdev hubport,id=p,hubid=1 "
      "-netdev hubport,id=o,hubid=2 " NIC,
      VU " -netdev hubport,id=o,hubid=2 " NIC " " RAM128,
      DAEMON " --netdev hubport,id=n0,hubid=1 --netdev hubport,id=p,hubid=1 "
      "--device virtio-net-pci,id=#n0,netdev=n0 " EXPORT },
    { "hub-foreign-nic", 0,
      "-netdev hubport,id=n0,hubid=1 -netdev hubport,id=p,hubid=1 "
      NIC " -device e1000,netdev=p", NULL, NULL, "port 'p'" },
    { "hub-of-three", 0,
      "-netdev hubport,id=n0,hubid=1 -netdev hubport,id=p,hubid=1 "
      "-netdev hubport,id=q,hubid=1 " NIC, NULL, NULL,
      "more than two ports" },
    { "hub-uplink", 0,
      "-netdev user,id=u -netdev hubport,id=n0,hubid=1 "
      "-netdev hubport,id=p,hubid=1,netdev=u " NIC, NULL, NULL, "port 'p'" },

    /* memory */
    { "m-number", 0, "-m 512 " USER " " NIC,
      "-m 512 " VU " " NIC " " RAM("536870912"), "" },
    { "m-suffix", 0, "-m 2G " USER " " NIC,
      "-m 2G " VU " " NIC " " RAM("2147483648"), "" },
    { "m-fraction", 0, "-m 1.5g " USER " " NIC,
      "-m 1.5g " VU " " NIC " " RAM("1610612736"), "" },
    { "m-keys", 0, "-m slots=2,maxmem=4G,size=1G " USER " " NIC,
      "-m slots=2,maxmem=4G,size=1G " VU " " NIC " " RAM("1073741824"), "" },
    { "m-twice", 0, "-m 1G -m slots=2,maxmem=4G " USER " " NIC,
      "-m 1G -m slots=2,maxmem=4G " VU " " NIC " " RAM("1073741824"), "" },
    { "m-rounded", 0, "-m 100000B " USER " " NIC,
      "-m 100000B " VU " " NIC " " RAM("106496"), "" },
    { "microvm", 0, "-M microvm,x=y " USER " " NIC,
      "-M microvm,x=y " VU " " NIC
      " -object memory-backend-memfd,id=microvm.ram,share=on,size=134217728"
      " -machine memory-backend=microvm.ram", "" },
    { "private-ram", 0,
      "-machine pc,memory-backend=pc.ram -object {\"qom-type\":"
      "\"memory-backend-ram\",\"id\":\"pc.ram\",\"size\":1024} "
      USER " " NIC,
      "-machine pc,memory-backend=pc.ram -object {\"qom-type\":"
      "\"memory-backend-memfd\",\"id\":\"pc.ram\",\"size\":1024,"
      "\"share\":true} " VU " " NIC, "" },
    { "private-memfd", 0,
      "-M q35 -object memory-backend-memfd,id=a,share=off,size=1G "
      "-machine memory-backend=a " USER " " NIC,
      "-M q35 -object memory-backend-memfd,id=a,share=on,size=1G "
      "-machine memory-backend=a " VU " " NIC, "" },
    { "shared-memfd", 0,
      "-object memory-backend-memfd,id=a,size=1G "
      "-machine memory-backend=a " USER " " NIC,
      "-object memory-backend-memfd,id=a,size=1G "
      "-machine memory-backend=a " VU " " NIC, "" },
    { "shared-file", 0,
      "-object memory-backend-file,id=a,size=1G,mem-path=/x,share=on "
      "-machine memory-backend=a " USER " " NIC,
      "-object memory-backend-file,id=a,size=1G,mem-path=/x,share=on "
      "-machine memory-backend=a " VU " " NIC, "" },
    { "numa", 0,
      "-object memory-backend-ram,id=a,size=1G -numa node,memdev=a "
      "-object memory-backend-ram,id=b,size=1G,prealloc=on "
      "-numa node,memdev=b " USER " " NIC,
      "-object memory-backend-memfd,id=a,size=1G,share=on "
      "-numa node,memdev=a "
      "-object memory-backend-memfd,id=b,size=1G,prealloc=on,share=on "
      "-numa node,memdev=b " VU " " NIC, "" },
    { "ram-file", RAM_FILES, "-m 2G " USER " " NIC,
      "-m 2G " VU " " NIC " -object memory-backend-file,id=pc.ram,share=on,"
      "size=2147483648,mem-path=/proc/self/fd/70,align=2097152 "
      "-machine memory-backend=pc.ram", "" },
    { "ram-file-for-private-ram", RAM_FILES,
      "-machine pc,memory-backend=pc.ram -object {\"qom-type\":"
      "\"memory-backend-ram\",\"id\":\"pc.ram\",\"size\":1024} "
      USER " " NIC,
      "-machine pc,memory-backend=pc.ram -object {\"qom-type\":"
      "\"memory-backend-file\",\"id\":\"pc.ram\",\"size\":1024,"
      "\"mem-path\":\"/proc/self/fd/70\",\"align\":2097152,"
      "\"share\":true} " VU " " NIC, "" },
    { "ram-file-each", RAM_FILES,
      "-object memory-backend-ram,id=a,size=1G -numa node,memdev=a "
      "-object memory-backend-ram,id=b,size=1G -numa node,memdev=b "
      USER " " NIC,
      "-object memory-backend-file,id=a,size=1G,mem-path=/proc/self/fd/70,"
      "align=2097152,share=on -numa node,memdev=a "
      "-object memory-backend-file,id=b,size=1G,mem-path=/proc/self/fd/71,"
      "align=2097152,share=on -numa node,memdev=b " VU " " NIC, "" },
    { "no-ram-file-for-dimm", RAM_FILES,
      "-object memory-backend-ram,id=a,size=1G -machine memory-backend=a "
      "-object memory-backend-ram,id=d,size=1G -device pc-dimm,memdev=d "
      USER " " NIC,
      "-object memory-backend-file,id=a,size=1G,mem-path=/proc/self/fd/70,"
      "align=2097152,share=on -machine memory-backend=a "
      "-object memory-backend-memfd,id=d,size=1G,share=on "
      "-device pc-dimm,memdev=d " VU " " NIC, "" },
    { "no-ram-file-for-memfd", RAM_FILES,
      "-M q35 -object memory-backend-memfd,id=a,share=off,size=1G "
      "-machine memory-backend=a " USER " " NIC,
      "-M q35 -object memory-backend-memfd,id=a,share=on,size=1G "
      "-machine memory-backend=a " VU " " NIC, "" },
    { "no-ram-file-without-nic", RAM_FILES,
      "-object memory-backend-ram,id=a,size=1G -m 1T" },
    { "shared-dimm-file", 0,
      "-object memory-backend-file,id=d,size=1G,mem-path=/x,share=on "
      "-device pc-dimm,memdev=d " USER " " NIC,
      "-object memory-backend-file,id=d,size=1G,mem-path=/x,share=on "
      "-device pc-dimm,memdev=d " VU " " NIC " " RAM128, "" },
    { "machine-memory-size", 0, "-M pc,memory.size=134217728 " USER " " NIC,
      "-M pc,memory.size=134217728 " VU " " NIC " " RAM128, "" },
    { "machine-memory-size-last", 0,
      "-M memory.size=1G -machine memory.size=0x8000000 -M q35 " USER " " NIC,
      "-M memory.size=1G -machine memory.size=0x8000000 -M q35 " VU " " NIC
      " " RAM128, "" },
    { "m-beats-machine", 0,
      "-m 0x80 -m slots=2,maxmem=2G -M memory.size=1G " USER " " NIC,
      "-m 0x80 -m slots=2,maxmem=2G -M memory.size=1G " VU " " NIC
      " " RAM128, "" },
    { "memory-of-others", 0,
      "-object memory-backend-ram,id=a,size=1G -m 1T -mem-path /x" },

    /* MSI-X under TCG with stock 7.2 */
    { "msix-tcg", FEARS_MSIX, USER " " NIC,
      VU " " NIC ",vectors=0 " RAM128, "", "vectors=0" },
    { "msix-json", FEARS_MSIX,
      USER " -device {\"driver\":\"virtio-net-pci\",\"netdev\":\"n0\"}",
      VU " -device {\"driver\":\"virtio-net-pci\",\"netdev\":\"n0\","
      "\"vectors\":0} " RAM128, "", "vectors=0" },
    { "msix-given", FEARS_MSIX, USER " " NIC ",vectors=3",
      VU " " NIC ",vectors=3 " RAM128, "", "vectors=0" },
    { "msix-kvm", FEARS_MSIX | HAS_KVM, "-enable-kvm " USER " " NIC,
      "-enable-kvm " VU " " NIC " " RAM128, "" },
    { "msix-kvm-list", FEARS_MSIX | HAS_KVM,
      "-M pc,accel=kvm:tcg " USER " " NIC,
      "-M pc,accel=kvm:tcg " VU " " NIC " " RAM128, "" },
    { "msix-kvm-unusable", FEARS_MSIX,
      "-accel kvm -accel tcg " USER " " NIC,
      "-accel kvm -accel tcg " VU " " NIC ",vectors=0 " RAM128, "",
      "vectors=0" },
    { "msix-tcg-asked", FEARS_MSIX | HAS_KVM,
      "-machine accel=tcg " USER " " NIC,
      "-machine accel=tcg " VU " " NIC ",vectors=0 " RAM128, "",
      "vectors=0" },
    { "msix-not-ours", FEARS_MSIX, "-netdev tap,id=n0,vhost=on " NIC },

    /* nothing to own */
    { "version", 0, "-version " USER " " NIC },
    { "help", 0, USER " " NIC " --help" },
    { "cpu-help", 0, USER " " NIC " -cpu help" },
    { "device-help", 0, "-device help" },
    { "device-question", 0, "-device ?" },
    { "other-device-help", 0, "-device e1000,help" },
    { "qtest", 0, "-accel qtest " USER " " NIC },
    { "machine-qtest", 0, "-machine pc,accel=qtest " USER " " NIC },
    { "machine-none", 0, "-M none,accel=kvm:tcg " USER " " NIC },
};

/* ---- running a case ---------------------------------------------------- */

static bool fears_msix(void *opaque)
{
    return *(const unsigned *)opaque & FEARS_MSIX;
}

static int ram_files;

static int open_ram(void *opaque)
{
    return *(const unsigned *)opaque & RAM_FILES ? 70 + ram_files++ : -1;
}

static LaunchEnv test_env(const unsigned *flags)
{
    ram_files = 0;
    return (LaunchEnv) {
        .kvm_usable = *flags & HAS_KVM,
        .stock_fears_msix = fears_msix,
        .open_ram = open_ram,
        .opaque = (void *)flags,
    };
}

/* argv[0] and the words of @text; needs g_strfreev(). */
static char **words_of(const char *text)
{
    g_autofree char *line = g_strconcat("qemu", *text ? "\n" : "", text,
                                        NULL);
    bool in_json = false;

    /* A blank inside of braces belongs to its word. */
    for (char *p = line; *p; p++) {
        in_json |= *p == '{';
        in_json &= *p != '}';
        if (*p == ' ' && !in_json) {
            *p = '\n';
        }
    }
    return g_strsplit(line, "\n", -1);
}

static char *join(GPtrArray *argv)
{
    char *line = g_strjoinv(" ", (char **)argv->pdata);

    g_ptr_array_free(argv, TRUE);
    return line;
}

static void test_case(gconstpointer opaque)
{
    const Case *c = opaque;
    LaunchEnv env = test_env(&c->flags);
    g_auto(GStrv) argv = words_of(c->in);
    g_autoptr(GError) err = NULL;
    LaunchPlan *plan = launch_plan_new(g_strv_length(argv), argv, &env, &err);
    g_autofree char *want = g_strconcat("STOCK", *c->in ? " " : "",
                                        c->qemu ? c->qemu : c->in, NULL);
    g_autofree char *qemu = NULL;

    g_assert_no_error(err);
    g_assert_cmpint(plan->kind, ==, c->daemon ? LAUNCH_SERVE : LAUNCH_STOCK);
    if (c->daemon) {
        g_autofree char *daemon = join(
            launch_plan_daemon_argv(plan, "DAEMON", "/D", 9));

        g_assert_cmpstr(daemon, ==, *c->daemon ? c->daemon : daemon);
    }
    qemu = join(launch_plan_qemu_argv(plan, "STOCK",
                                      c->daemon ? "/D" : NULL));
    g_assert_cmpstr(qemu, ==, want);
    g_assert_cmpuint(plan->notices->len, ==, c->notice ? 1 : 0);
    if (c->notice) {
        g_assert_nonnull(strstr(plan->notices->pdata[0], c->notice));
    }
    launch_plan_free(plan);
}

/* ---- errors ------------------------------------------------------------ */

static const struct {
    const char *name, *in, *message;
} errors[] = {
    { "missing-netdev", "-device virtio-net-pci,netdev=n0",
      "-device virtio-net-pci,netdev=n0: no netdev 'n0': add -netdev "
      "TYPE,id=n0, or name one that is there" },
    { "netdev-twice", USER " " NIC " " NIC,
      "-device virtio-net-pci,netdev=n0: another device uses netdev 'n0': "
      "give each NIC a -netdev of its own" },
    { "netdev-shared", USER " -device e1000,netdev=n0 " NIC,
      "-device virtio-net-pci,netdev=n0: another device uses netdev 'n0': "
      "give each NIC a -netdev of its own" },
    { "same-id", USER " -netdev tap,id=n0 " NIC,
      "-netdev tap,id=n0: another netdev has this id: give each its own" },
    { "tx-cpus-alone", USER " " NIC ",tx-cpus=0-1",
      "-device virtio-net-pci: parameter 'tx-cpus' (value '0-1') needs a "
      "thread to place: add tx-thread=on or tx-thread=per-queue" },
    { "no-iothread", USER " " NIC ",iothread=io0",
      "-device virtio-net-pci: no iothread 'io0': add -object "
      "iothread,id=io0" },
    { "file", "-object memory-backend-file,id=a,mem-path=/x,size=1G "
      "-machine memory-backend=a " USER " " NIC,
      "-object memory-backend-file,id=a: this memory is private to QEMU "
      "(share=off), and a NIC of ours has to share it: add share=on" },
    { "dimm-file", "-object memory-backend-file,id=d,size=1G,mem-path=/x "
      "-device pc-dimm,memdev=d " USER " " NIC,
      "-object memory-backend-file,id=d: this memory is private to QEMU "
      "(share=off), and a NIC of ours has to share it: add share=on" },
    { "machine-memory-size", "-M pc,memory.size=lots " USER " " NIC,
      "-machine memory.size=lots: expected a number of bytes, or a size such "
      "as 512M or 2G" },
    { "mem-path", "-m 64 -mem-path /x " USER " " NIC,
      "-mem-path /x: this memory is private to QEMU, and a NIC of ours has "
      "to share it: instead give -object memory-backend-file,id=pc.ram,"
      "size=67108864,mem-path=/x,share=on -machine memory-backend=pc.ram" },
    { "m", "-m lots " USER " " NIC,
      "-m lots: parameter 'size' expects a number of MiB, or a size such as "
      "512M or 2G, not 'lots'" },
    { "qmp", USER " " NIC " -x-vnet-qmp",
      "-x-vnet-qmp: the path of a socket is missing" },
};

static void test_errors(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
        unsigned flags = 0;
        LaunchEnv env = test_env(&flags);
        g_auto(GStrv) argv = words_of(errors[i].in);
        g_autoptr(GError) err = NULL;

        g_assert_null(launch_plan_new(g_strv_length(argv), argv, &env,
                                      &err));
        g_assert_nonnull(err);
        g_assert_cmpstr(err->message, ==, errors[i].message);
    }
}

/* The wording is the property table's; it has to name these. */
static void test_bad_property(void)
{
    unsigned flags = 0;
    LaunchEnv env = test_env(&flags);
    g_auto(GStrv) argv = words_of(USER " " NIC ",tx=fast");
    g_autoptr(GError) err = NULL;

    g_assert_null(launch_plan_new(g_strv_length(argv), argv, &env, &err));
    g_assert_nonnull(strstr(err->message, "-device"));
    g_assert_nonnull(strstr(err->message, "'tx'"));
    g_assert_nonnull(strstr(err->message, "'bh'"));
    g_assert_nonnull(strstr(err->message, "'fast'"));
}

static void test_help_kinds(void)
{
    static const struct {
        const char *in;
        LaunchKind kind;
    } kinds[] = {
        { "-device virtio-net-pci,help", LAUNCH_HELP_DEVICE },
        { "-device virtio-net,?", LAUNCH_HELP_DEVICE },
        { "-netdev help", LAUNCH_HELP_NETDEV },
        { "-netdev ?", LAUNCH_HELP_NETDEV },
        { "-S -device virtio-blk-pci,help", LAUNCH_STOCK },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        unsigned flags = 0;
        LaunchEnv env = test_env(&flags);
        g_auto(GStrv) argv = words_of(kinds[i].in);
        LaunchPlan *plan = launch_plan_new(g_strv_length(argv), argv, &env,
                                           NULL);

        g_assert_cmpint(plan->kind, ==, kinds[i].kind);
        launch_plan_free(plan);
    }
}

static void test_moved_fds(void)
{
    unsigned flags = 0;
    LaunchEnv env = test_env(&flags);
    g_auto(GStrv) argv = words_of(
        "-netdev tap,id=n0,fds=5:6 -netdev tap,id=n1,fd=7 "
        "-netdev tap,id=n2,fd=8,vhost=on -chardev socket,id=c,fd=9 "
        "-device virtio-net-pci,netdev=n0,mq=on "
        "-device virtio-net-pci,netdev=n1 -device virtio-net-pci,netdev=n2");
    LaunchPlan *plan = launch_plan_new(g_strv_length(argv), argv, &env, NULL);
    GArray *fds = launch_plan_moved_fds(plan);

    g_assert_cmpuint(fds->len, ==, 3);
    g_assert_cmpint(g_array_index(fds, int, 0), ==, 5);
    g_assert_cmpint(g_array_index(fds, int, 1), ==, 6);
    g_assert_cmpint(g_array_index(fds, int, 2), ==, 7);
    g_array_free(fds, TRUE);
    launch_plan_free(plan);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/launcher/rewrite/",
                                            cases[i].name, NULL);

        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/launcher/errors", test_errors);
    g_test_add_func("/launcher/bad-property", test_bad_property);
    g_test_add_func("/launcher/help", test_help_kinds);
    g_test_add_func("/launcher/moved-fds", test_moved_fds);
    return g_test_run();
}
