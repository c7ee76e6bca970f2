#!/bin/sh
# Entry of the container: a drop-in for the `sim` container of quic-network-simulator.
# SCENARIO says what to play, WAITFORSERVER whom to wait for; arguments are handed on (`fullpipe simulator --help`).
set -e
left=${LEFT:-eth0}
right=${RIGHT:-eth1}
logs=${LOGS:-/logs}

# The kernel must not forward past the emulator. Where there is no firewall, fullpipe switches forwarding off itself.
for tool in iptables ip6tables; do
    if command -v "$tool" >/dev/null 2>&1; then
        "$tool" -A FORWARD -i "$left" -o "$right" -j DROP || true
        "$tool" -A FORWARD -i "$right" -o "$left" -j DROP || true
    fi
done

# Frames that the interface has merged would be larger than the link takes.
if command -v ethtool >/dev/null 2>&1; then
    ethtool -K "$left" gro off >/dev/null 2>&1 || true
    ethtool -K "$right" gro off >/dev/null 2>&1 || true
fi

# Signals go to fullpipe itself.
exec "${FULLPIPE:-fullpipe}" simulator --left "$left" --right "$right" --logs "$logs" "$@"
