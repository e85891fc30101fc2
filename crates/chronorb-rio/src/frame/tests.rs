//! Frames as smoltcp writes them are read as they are; any other octets are read as something, or
//! refused.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Repr, TcpControl, TcpPacket, TcpRepr,
    TcpSeqNumber,
};

use super::*;

proptest! {
    #[test]
    fn a_packet_of_ipv4_is_read_as_it_was_written(
        segment in segment(),
        addresses in any::<(u32, u32)>(),
        vlan in vlan(),
    ) {
        let (from, to) = (Ipv4Addr::from(addresses.0), Ipv4Addr::from(addresses.1));
        let frame = ipv4_frame(from, to, &segment, vlan);
        let headers = Headers::read(&frame).expect("it is whole");
        prop_assert_eq!((headers.from, headers.to), (from.into(), to.into()));
        prop_assert_eq!(headers.ethernet, ethernet(Ethernet::IPV4, vlan));
        check(headers, &segment, &frame)?;
    }

    #[test]
    fn a_packet_of_ipv6_is_read_as_it_was_written(
        segment in segment(),
        addresses in any::<(u128, u128)>(),
        vlan in vlan(),
    ) {
        let (from, to) = (Ipv6Addr::from(addresses.0), Ipv6Addr::from(addresses.1));
        let frame = ipv6_frame(from, to, &segment, vlan);
        let headers = Headers::read(&frame).expect("it is whole");
        prop_assert_eq!((headers.from, headers.to), (from.into(), to.into()));
        prop_assert_eq!(headers.ethernet, ethernet(Ethernet::IPV6, vlan));
        check(headers, &segment, &frame)?;
    }

    #[test]
    fn any_octets_are_read_within_the_frame_or_refused(
        mut frame in vec(any::<u8>(), 0..200),
        start in 0..4_usize,
    ) {
        // Mostly what looks like an IP packet at first.
        let starts: [&[u8]; 4] =
            [&[], &[8, 0, 0x45], &[0x86, 0xdd, 0x60], &[0x81, 0, 0, 0, 8, 0, 0x46]];
        for (octet, value) in frame.iter_mut().skip(12).zip(starts[start]) {
            *octet = *value;
        }
        if let Ok(headers) = Headers::read(&frame) {
            within(&headers, frame.len())?;
            headers.has_right_checksums(&frame);
        }
    }

    #[test]
    fn a_damaged_packet_is_read_within_the_frame_or_refused(
        segment in segment(),
        damage in vec((0..80_usize, any::<u8>()), 1..8),
        cut in 0..200_usize,
    ) {
        let mut frame = ipv6_frame(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, &segment, None);
        frame.truncate(cut);
        for (at, value) in damage {
            if let Some(octet) = frame.get_mut(at) {
                *octet = value;
            }
        }
        if let Ok(headers) = Headers::read(&frame) {
            within(&headers, frame.len())?;
        }
    }

    #[test]
    fn a_changed_octet_is_noticed_by_the_checksum(
        segment in segment(),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let mut frame = ipv4_frame(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, &segment, None);
        let headers = Headers::read(&frame).expect("it is whole");
        let at = headers.transport + at.index(headers.end - headers.transport);
        frame[at] ^= change;
        prop_assert!(!headers.has_right_checksums(&frame));
    }

    #[test]
    fn checksums_are_those_that_are_verified(
        octets in vec(any::<u8>(), 18..100),
        addresses in any::<(u128, u128)>(),
    ) {
        let (from, to) = (Ipv6Addr::from(addresses.0).into(), Ipv6Addr::from(addresses.1).into());
        let mut segment = octets;
        let sum = checksum::tcp(from, to, &segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        prop_assert!(checksum::is_tcp_right(from, to, &segment));
        prop_assert_eq!(checksum::tcp(from, to, &segment), sum, "the field itself does not count");
        let sum = checksum::ipv4(&segment);
        segment[10..12].copy_from_slice(&sum.to_be_bytes());
        prop_assert!(checksum::is_ipv4_right(&segment));
    }
}

#[test]
fn the_checksum_is_that_of_a_header_in_textbooks() {
    let header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00, 0x01,
        0xc0, 0xa8, 0x00, 0xc7,
    ];
    assert_eq!(checksum::ipv4(&header), 0xb861);
}

#[test]
fn options_of_ipv4_are_passed_over() {
    let segment = Segment::example();
    let mut frame = ipv4_frame(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, &segment, None);
    let len = u16::from_be_bytes([frame[16], frame[17]]) + 8;
    frame[14] = 0x47;
    frame[16..18].copy_from_slice(&len.to_be_bytes());
    frame.splice(34..34, [1; 8]);
    let sum = checksum::ipv4(&frame[14..42]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let headers = Headers::read(&frame).expect("it is whole");
    assert_eq!((headers.network, headers.transport), (14, 42));
    assert_eq!(headers.tcp.map(|tcp| tcp.to), Some(segment.to));
    assert!(headers.has_right_checksums(&frame));
}

#[test]
fn extension_headers_of_ipv6_are_passed_over_but_not_without_end() {
    let hop_by_hop = |extensions| with_extensions(0, extensions);
    for extensions in 0..=MAX_EXTENSIONS {
        let frame = hop_by_hop(extensions);
        let headers = Headers::read(&frame).expect("it is whole");
        assert_eq!(headers.transport, 54 + 8 * extensions);
        assert!(headers.tcp.is_some() && headers.has_right_checksums(&frame));
    }
    let frame = hop_by_hop(MAX_EXTENSIONS + 1);
    assert_eq!(Headers::read(&frame), Err(HeadersError::TooManyExtensions));
}

#[test]
fn a_packet_that_is_to_go_on_to_another_host_has_no_tcp_for_this_one() {
    let mut frame = with_extensions(43, 1);
    assert!(Headers::read(&frame).expect("whole").tcp.is_some());
    frame[54 + 3] = 1;
    assert_eq!(Headers::read(&frame).expect("whole").tcp, None);
}

#[test]
fn fragments_are_told_and_have_no_tcp() {
    let segment = Segment::example();
    let mut first = ipv4_frame(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, &segment, None);
    first[20] = 0x20;
    let mut last = ipv4_frame(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, &segment, None);
    last[21] = 1;
    for frame in [first, last, with_extensions(44, 1)] {
        let headers = Headers::read(&frame).expect("it is whole");
        assert!(headers.is_fragment);
        assert_eq!(headers.tcp, None);
    }
}

#[test]
fn what_is_no_ip_is_refused_as_such() {
    let ask_for_address = [&[0xff; 12][..], &[8, 6], &[0; 28]].concat();
    assert_eq!(Headers::read(&ask_for_address), Err(HeadersError::NotIp));
    let twice_tagged = [
        &[0; 12][..],
        &[0x81, 0, 0, 1, 0x81, 0, 0, 1, 8, 0],
        &[0; 40],
    ]
    .concat();
    assert_eq!(Headers::read(&twice_tagged), Err(HeadersError::NotIp));
}

#[test]
fn nothing_is_written_where_a_header_has_no_room() {
    let vlan = Some(Vlan {
        priority: 1,
        may_drop: false,
        id: 1,
    });
    let header = ethernet(Ethernet::IPV4, vlan);
    let mut room = [7; 17];
    assert_eq!(header.write(&mut room), None);
    assert_eq!(room, [7; 17]);
}

/// A TCP segment to write.
#[derive(Clone, Debug)]
struct Segment {
    from: u16,
    to: u16,
    sequence: u32,
    acknowledgement: Option<u32>,
    control: TcpControl,
    mss: Option<u16>,
    payload: Vec<u8>,
    padding: usize,
}

impl Segment {
    fn example() -> Self {
        Self {
            from: 40_000,
            to: 2809,
            sequence: 1,
            acknowledgement: Some(7),
            control: TcpControl::Psh,
            mss: None,
            payload: b"GIOP".to_vec(),
            padding: 2,
        }
    }

    fn repr(&self) -> TcpRepr<'_> {
        TcpRepr {
            src_port: self.from,
            dst_port: self.to,
            control: self.control,
            seq_number: TcpSeqNumber(self.sequence as i32),
            ack_number: self
                .acknowledgement
                .map(|number| TcpSeqNumber(number as i32)),
            window_len: 1000,
            window_scale: None,
            max_seg_size: self.mss,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &self.payload,
        }
    }
}

fn segment() -> impl Strategy<Value = Segment> {
    let control = prop_oneof![
        Just(TcpControl::None),
        Just(TcpControl::Psh),
        Just(TcpControl::Syn),
        Just(TcpControl::Fin),
        Just(TcpControl::Rst),
    ];
    let fields = (
        1..=u16::MAX,
        1..=u16::MAX,
        any::<u32>(),
        any::<Option<u32>>(),
    );
    let others = (
        control,
        any::<Option<u16>>(),
        vec(any::<u8>(), 0..100),
        0..20_usize,
    );
    (fields, others).prop_map(
        |((from, to, sequence, acknowledgement), (control, mss, payload, padding))| Segment {
            from,
            to,
            sequence,
            acknowledgement,
            control,
            mss,
            payload,
            padding,
        },
    )
}

fn vlan() -> impl Strategy<Value = Option<Vlan>> {
    let vlan = (0..8_u8, any::<bool>(), 0..4096_u16).prop_map(|(priority, may_drop, id)| Vlan {
        priority,
        may_drop,
        id,
    });
    prop::option::of(vlan)
}

fn ethernet(kind: u16, vlan: Option<Vlan>) -> Ethernet {
    Ethernet {
        to: [2, 0, 0, 0, 0, 1],
        from: [2, 0, 0, 0, 0, 2],
        vlan,
        kind,
    }
}

fn ipv4_frame(from: Ipv4Addr, to: Ipv4Addr, segment: &Segment, vlan: Option<Vlan>) -> Vec<u8> {
    let tcp = segment.repr();
    let ip = Ipv4Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Tcp,
        payload_len: tcp.buffer_len(),
        hop_limit: 64,
    };
    let mut packet = vec![0; ip.buffer_len() + tcp.buffer_len()];
    let mut view = Ipv4Packet::new_unchecked(&mut packet);
    ip.emit(&mut view, &ChecksumCapabilities::default());
    emit(&tcp, &mut packet[ip.buffer_len()..], from.into(), to.into());
    framed(&ethernet(Ethernet::IPV4, vlan), &packet, segment.padding)
}

fn ipv6_frame(from: Ipv6Addr, to: Ipv6Addr, segment: &Segment, vlan: Option<Vlan>) -> Vec<u8> {
    let tcp = segment.repr();
    let ip = Ipv6Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Tcp,
        payload_len: tcp.buffer_len(),
        hop_limit: 64,
    };
    let mut packet = vec![0; ip.buffer_len() + tcp.buffer_len()];
    ip.emit(&mut smoltcp::wire::Ipv6Packet::new_unchecked(&mut packet));
    emit(&tcp, &mut packet[ip.buffer_len()..], from.into(), to.into());
    framed(&ethernet(Ethernet::IPV6, vlan), &packet, segment.padding)
}

/// A packet of IPv6 with extension headers of one kind.
fn with_extensions(kind: u8, extensions: usize) -> Vec<u8> {
    let segment = Segment::example();
    let mut frame = ipv6_frame(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, &segment, None);
    for _ in 0..extensions {
        let next = std::mem::replace(&mut frame[20], kind);
        frame.splice(54..54, [next, 0, 0, 0, 0, 0, 0, 0]);
        let len = u16::from_be_bytes([frame[18], frame[19]]) + 8;
        frame[18..20].copy_from_slice(&len.to_be_bytes());
    }
    frame
}

fn emit(tcp: &TcpRepr<'_>, room: &mut [u8], from: IpAddress, to: IpAddress) {
    let mut view = TcpPacket::new_unchecked(room);
    tcp.emit(&mut view, &from, &to, &ChecksumCapabilities::default());
}

fn framed(ethernet: &Ethernet, packet: &[u8], padding: usize) -> Vec<u8> {
    let mut frame = vec![0; ethernet.octets() + packet.len() + padding];
    let room = ethernet.write(&mut frame).expect("there is room");
    room[..packet.len()].copy_from_slice(packet);
    frame
}

/// Checks that the parsed values and positions are those of the written segment.
fn check(headers: Headers, segment: &Segment, frame: &[u8]) -> Result<(), TestCaseError> {
    within(&headers, frame.len())?;
    let tcp = headers.tcp.expect("it is TCP");
    prop_assert_eq!((tcp.from, tcp.to), (segment.from, segment.to));
    prop_assert_eq!(tcp.sequence, segment.sequence);
    prop_assert_eq!(tcp.flags.has_ack(), segment.acknowledgement.is_some());
    prop_assert_eq!(tcp.acknowledgement, segment.acknowledgement.unwrap_or(0));
    prop_assert_eq!(tcp.flags.has_syn(), segment.control == TcpControl::Syn);
    prop_assert_eq!(tcp.flags.has_fin(), segment.control == TcpControl::Fin);
    prop_assert_eq!(tcp.flags.has_rst(), segment.control == TcpControl::Rst);
    let payload = headers.payload().expect("it is TCP");
    prop_assert_eq!(&frame[payload], &segment.payload[..]);
    prop_assert_eq!(headers.end + segment.padding, frame.len());
    prop_assert!(headers.has_right_checksums(frame));
    prop_assert!(!headers.is_fragment);
    Ok(())
}

/// Positions are in order, and none is behind the frame.
fn within(headers: &Headers, len: usize) -> Result<(), TestCaseError> {
    prop_assert!(headers.network <= headers.transport);
    prop_assert!(headers.transport <= headers.end);
    prop_assert!(headers.end <= len);
    prop_assert!(headers.dscp <= 63);
    if let Some(payload) = headers.payload() {
        prop_assert!(headers.transport <= payload.start && payload.start <= payload.end);
    }
    Ok(())
}
