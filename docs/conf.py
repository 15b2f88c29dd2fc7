# SPDX-License-Identifier: GPL-2.0-or-later
#
# Sphinx: the HTML manual, and the manual pages from the same text.
#
# docs/options/*.rst.inc hold the options, one subject a file; invocation.rst
# and the manual pages include them.

project = 'qemu-virtio-net'
author = 'the qemu-virtio-net developers'
copyright = author
root_doc = 'index'
exclude_patterns = ['devel/models']
html_theme = 'alabaster'
html_theme_options = {'page_width': '66em', 'fixed_sidebar': True}
html_copy_source = False
html_show_sourcelink = False
highlight_language = 'none'

man_make_section_directory = False
man_pages = [
    ('man/qemu-net-daemon', 'qemu-net-daemon',
     'serve virtio-net devices over vhost-user', [author], 1),
    ('man/qemu-virtio-net', 'qemu-virtio-net',
     'a QEMU command line with its virtio-net devices in a process of '
     'their own', [author], 1),
]
