//! Blocks of the format pcapng (draft-ietf-opsawg-pcapng).

use std::time::SystemTime;

/// The section and interface that a file begins with. Packets are raw IP, times nanoseconds.
pub(super) fn write_head(out: &mut Vec<u8>) {
    block(out, SECTION, |out| {
        out.extend(BYTE_ORDER.to_ne_bytes());
        out.extend(1_u16.to_ne_bytes());
        out.extend(0_u16.to_ne_bytes());
        // The length of the section is not known.
        out.extend((-1_i64).to_ne_bytes());
        option(
            out,
            APPLICATION,
            concat!("chronorb ", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        option(out, END_OF_OPTIONS, &[]);
    });
    block(out, INTERFACE, |out| {
        out.extend(RAW_IP.to_ne_bytes());
        out.extend([0; 2]);
        // No packet is cut.
        out.extend(0_u32.to_ne_bytes());
        option(out, NAME, b"chronorb");
        option(out, TIME_RESOLUTION, &[9]);
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// Writes a packet of the present time, with a comment if there is one.
pub(super) fn write_packet(out: &mut Vec<u8>, packet: &[u8], comment: &str) {
    block(out, PACKET, |out| {
        out.extend(0_u32.to_ne_bytes());
        write_now(out);
        let len = packet.len() as u32;
        out.extend(len.to_ne_bytes());
        out.extend(len.to_ne_bytes());
        out.extend_from_slice(packet);
        pad(out, packet.len());
        if !comment.is_empty() {
            option(out, COMMENT, comment.as_bytes());
            option(out, END_OF_OPTIONS, &[]);
        }
    });
}

/// Writes the number of packets so far, and the number of those that were dropped.
pub(super) fn write_counts(out: &mut Vec<u8>, packets: u64, dropped: u64) {
    block(out, STATISTICS, |out| {
        out.extend(0_u32.to_ne_bytes());
        write_now(out);
        option(out, RECEIVED, &packets.to_ne_bytes());
        option(out, DROPPED, &dropped.to_ne_bytes());
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// The greatest overhead of a packet in the file, in octets, without its comment.
pub(super) const PACKET_OVERHEAD: usize = 48;

fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend(kind.to_ne_bytes());
    out.extend([0; 4]);
    body(out);
    let len = (out.len() - begin + 4) as u32;
    out.extend(len.to_ne_bytes());
    out[begin + 4..begin + 8].copy_from_slice(&len.to_ne_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(LONGEST_OPTION)];
    out.extend(code.to_ne_bytes());
    out.extend((value.len() as u16).to_ne_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.next_multiple_of(4) - len));
}

fn write_now(out: &mut Vec<u8>) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // 64 bits of nanoseconds are 584 years.
    let now = now.unwrap_or_default().as_nanos() as u64;
    out.extend(((now >> 32) as u32).to_ne_bytes());
    out.extend((now as u32).to_ne_bytes());
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// `LINKTYPE_RAW`: packets begin with their IP header, of version 4 or 6.
const RAW_IP: u16 = 101;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const APPLICATION: u16 = 4;
const TIME_RESOLUTION: u16 = 9;
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;

/// The greatest length of a comment, which may quote octets of a peer.
pub(super) const LONGEST_OPTION: usize = 1024;
