# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# An apt of its own, for packages of another Debian suite than the machine's:
# to be sourced.
#
# Purpose: fetch and check packages without installing them, without root and
# without a trace in the machine's own apt.
#
# Data flow: the mirror of this machine's apt sources and the suites asked for
# -> private_apt_begin: sources, an empty package database and an index in
# the directory $apt -> private_apt: any program of apt's, on these.
#
# The sourcing script has die STATUS TEXT..., and $apt, a directory that
# nothing else uses.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The mirror that this machine takes Debian itself from.
mirror()
{
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
        grep -E '/debian/?$' | head -n 1
}

# private_apt PROGRAM ARG...
private_apt()
{
    program=$1
    shift
    "$program" -q \
        -o Dir::Etc::SourceList="$apt/sources.list" \
        -o Dir::Etc::SourceParts=- \
        -o Dir::Etc::PreferencesParts="$apt/none" \
        -o Dir::Etc::Preferences=/dev/null \
        -o Dir::State="$apt/state" \
        -o Dir::State::status="$apt/status" \
        -o Dir::State::extended_states="$apt/extended" \
        -o Dir::Cache="$apt/cache" \
        -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
        -o APT::Get::Assume-Yes=true \
        -o APT::Get::List-Cleanup=false -o Debug::NoLocking=true \
        -o APT::Sandbox::User="$(id -un)" \
        -o APT::Install-Recommends=false \
        -o APT::Update::Error-Mode=any \
        -o Acquire::Languages=none -o Acquire::Retries=2 \
        -o Acquire::http::Timeout=30 \
        "$@"
}

# The first error in $apt/log, in a line.
private_apt_reason()
{
    why=$(sed -n 's/^E: //p' "$apt/log" | head -n 1)
    echo "${why:-see $apt/log}"
}

# private_apt_begin SUITE...: afterwards these are known
private_apt_begin()
{
    site=$(mirror)
    [ -n "$site" ] ||
        die 77 "no Debian mirror among this machine's apt sources"
    [ -e "$keyring" ] || die 77 "no $keyring to check the packages with"
    rm -rf "$apt"
    mkdir -p "$apt/none" "$apt/state/lists/partial" \
        "$apt/cache/archives/partial"
    : >"$apt/status"
    for s in "$@"; do
        echo "deb [signed-by=$keyring] $site $s main"
    done >"$apt/sources.list"
    private_apt apt-get update >>"$apt/log" 2>&1 ||
        die 77 "cannot reach the mirror: $(private_apt_reason)"
}
