#!/bin/sh
# Has tshark take apart every GIOP message in a recording:
#
#     interop/check_pcap.sh FILE PORT
#
# Prints how many messages of each type there are. Fails if one is malformed, if anything on the port
# is not GIOP, or if there is no request or no reply.
#
# SPDX-License-Identifier: MIT OR Apache-2.0

set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 FILE PORT" >&2
    exit 2
fi
file=$1
port=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# tshark's standard output, in a file, so that its failure is not lost in a pipe.
dissect() {
    output=$1
    shift
    LC_ALL=C tshark -d "tcp.port==$port,giop" -o giop.max_message_size:67108864 "$@" \
        >"$output" 2>"$work/errors" </dev/null || {
        cat "$work/errors" >&2
        echo "$0: $file: tshark failed" >&2
        exit 2
    }
}

# Expert information in these groups: malformed, undecoded, protocol. What says "sequence" is about TCP
# only. The last condition finds payload that the dissector would not take: not GIOP, and not a part of
# a message that goes on in another segment.
wrong="_ws.malformed || _ws.expert.group == 0x07000000 || _ws.expert.group == 0x05000000 ||
       _ws.expert.group == 0x09000000 ||
       (tcp.payload && !giop && !tcp.segment_data && !tcp.analysis.retransmission &&
        !tcp.analysis.spurious_retransmission && !tcp.analysis.keep_alive)"

# tshark tells fragmented messages apart by addresses and request id, not by ports, so that on one host
# it mixes up those of different connections. Each connection goes through it alone.
dissect "$work/packets" -r "$file" -Y "tcp.port == $port" -T fields -e tcp.stream
sort -nu "$work/packets" >"$work/streams"
: >"$work/types"
: >"$work/wrong"
while read -r stream; do
    dissect /dev/null -r "$file" -Y "tcp.stream == $stream" -w "$work/stream.pcap"
    dissect "$work/out" -r "$work/stream.pcap" -Y giop -T fields -E aggregator=, -e giop.type
    tr ',' '\n' <"$work/out" >>"$work/types"
    dissect "$work/out" -r "$work/stream.pcap" -Y "$wrong"
    sed "s/^/connection $stream: /" "$work/out" >>"$work/wrong"
done <"$work/streams"

count() {
    grep -c -x "$1" "$work/types" || true
}
requests=$(count 0)
replies=$(count 1)
echo "connections $(grep -c . "$work/streams" || true), requests $requests, replies $replies," \
    "cancel requests $(count 2), locate requests $(count 3), locate replies $(count 4)," \
    "close connections $(count 5), message errors $(count 6), fragments $(count 7)"

if [ -s "$work/wrong" ]; then
    echo "$0: $file: not well-formed:" >&2
    head -n 20 "$work/wrong" >&2
    exit 1
fi
if [ "$requests" -eq 0 ] || [ "$replies" -eq 0 ]; then
    echo "$0: $file: no requests or no replies on port $port" >&2
    exit 1
fi
