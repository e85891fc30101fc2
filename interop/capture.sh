#!/bin/sh
# Records the TCP traffic of one server port on the loopback interface while a command runs:
#
#     interop/capture.sh PORT OUT.pcap COMMAND [ARGUMENT...]
#
# The exit status is the command's; 125 if the recording failed or is not complete.
# Needs dumpcap (Debian package tshark) and the right to capture (root, or the group wireshark).
#
# SPDX-License-Identifier: MIT OR Apache-2.0

set -eu

if [ $# -lt 3 ]; then
    echo "usage: $0 PORT OUT.pcap COMMAND [ARGUMENT...]" >&2
    exit 125
fi
port=$1
out=$2
shift 2

fail() {
    echo "$0: $1" >&2
    cat "$log" >&2
    exit 125
}

log=$(mktemp)
recorder=
trap 'if [ -n "$recorder" ]; then kill "$recorder" 2>/dev/null; fi; rm -f "$log"' EXIT

# Large messages come faster than a small buffer is emptied.
LC_ALL=C dumpcap -q -P -B 128 -i lo -f "tcp port $port" -w "$out" 2>"$log" &
recorder=$!

# dumpcap names its file when it has begun.
tries=0
until grep -q '^File: ' "$log"; do
    kill -0 "$recorder" 2>/dev/null || fail "dumpcap ended before it had begun"
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || fail "dumpcap did not begin"
    sleep 0.05
done

status=0
"$@" || status=$?

# What the kernel still holds reaches dumpcap within one of its polls.
sleep 1
kill -INT "$recorder"
wait "$recorder" || fail "dumpcap failed"
recorder=
grep -q '^Packets received/dropped on interface .*: [0-9]*/0 ' "$log" || fail "packets were lost"
exit "$status"
