//! Messages in parts: joined in order, mixed in GIOP 1.2, and bounded.

use chronorb_cdr::{CdrError, Endian};
use chronorb_giop::fragments::{
    Bounds, FragmentError, Fragmentation, KEPT_OF_SKIPPED, ReassembledMessage, Reassembly,
    SKIPPED_TIMES,
};
use chronorb_giop::{HEADER_LEN, HeaderError, MessageHeader, MessageType, Version};
use proptest::prelude::*;

/// A message of little-endian order with this body.
fn part(version: Version, kind: MessageType, more_fragments: bool, body: &[u8]) -> Vec<u8> {
    let header = MessageHeader {
        protocol: version.into(),
        endian: Endian::Little,
        more_fragments,
        kind,
        size: body.len() as u32,
    };
    [&header.to_bytes(), body].concat()
}

fn request(id: u8, text: &str) -> Vec<u8> {
    let body = [&[id, 0, 0, 0], text.as_bytes()].concat();
    part(Version::V1_2, MessageType::Request, true, &body)
}

fn fragment(id: u8, text: &str, more: bool) -> Vec<u8> {
    let body = [&[id, 0, 0, 0], text.as_bytes()].concat();
    part(Version::V1_2, MessageType::Fragment, more, &body)
}

fn cancel(version: Version, id: u8) -> Vec<u8> {
    part(version, MessageType::CancelRequest, false, &[id, 0, 0, 0])
}

fn body(joined: &ReassembledMessage) -> &[u8] {
    let octets = joined.frame.as_slice();
    assert_eq!(MessageHeader::parse(octets), Ok(joined.header));
    assert!(!joined.header.more_fragments);
    assert_eq!(joined.header.message_len(), octets.len());
    &octets[HEADER_LEN..]
}

#[test]
fn messages_of_giop_1_2_may_be_mixed() {
    let mut reassembly = Reassembly::new(Bounds::default());
    for part in [
        request(1, "a"),
        request(2, "x"),
        fragment(1, "b", true),
        fragment(2, "y", true),
    ] {
        assert!(reassembly.push(&part).unwrap().is_none());
    }
    let joined = reassembly.push(&fragment(2, "z", false)).unwrap().unwrap();
    assert_eq!(body(&joined), b"\x02\0\0\0xyz");
    let joined = reassembly.push(&fragment(1, "", false)).unwrap().unwrap();
    assert_eq!(body(&joined), b"\x01\0\0\0ab");
    assert_eq!(reassembly.octets(), 0);
}

#[test]
fn one_message_of_giop_1_1_is_in_parts_at_a_time() {
    let mut reassembly = Reassembly::new(Bounds::default());
    let start = part(Version::V1_1, MessageType::Reply, true, b"abc");
    let end = part(Version::V1_1, MessageType::Fragment, false, b"def");
    assert!(reassembly.push(&start).unwrap().is_none());
    assert_eq!(
        reassembly.push(&start).err(),
        Some(FragmentError::AlreadyOpen)
    );
    let joined = reassembly.push(&end).unwrap().unwrap();
    assert_eq!(body(&joined), b"abcdef");
    assert_eq!(reassembly.push(&end).err(), Some(FragmentError::Unexpected));
}

#[test]
fn a_fragment_must_fit_its_message() {
    let mut reassembly = Reassembly::new(Bounds::default());
    reassembly.push(&request(1, "")).unwrap();
    let mut refused = |part: &[u8]| reassembly.push(part).err().unwrap();
    assert_eq!(refused(&request(1, "")), FragmentError::AlreadyOpen);
    assert_eq!(refused(&fragment(2, "", false)), FragmentError::Unexpected);
    let mut big_endian = fragment(1, "", false);
    big_endian[6] = 0;
    big_endian[8..12].copy_from_slice(&4u32.to_be_bytes());
    big_endian[12..16].copy_from_slice(&1u32.to_be_bytes());
    assert_eq!(refused(&big_endian), FragmentError::Inconsistent);
    let other = part(Version::V1_1, MessageType::Fragment, false, b"");
    assert_eq!(refused(&other), FragmentError::Unexpected);
    let short = part(Version::V1_2, MessageType::Fragment, false, b"abc");
    assert_eq!(refused(&short), FragmentError::TooShort);
    let cut = &fragment(1, "abc", false)[..15];
    assert_eq!(refused(cut), FragmentError::Header(HeaderError::TooShort));
}

#[test]
fn only_some_messages_come_in_parts() {
    let mut reassembly = Reassembly::new(Bounds::default());
    for (version, kind) in [
        (Version::V1_1, MessageType::LocateRequest),
        (Version::V1_2, MessageType::CloseConnection),
    ] {
        let refused = reassembly.push(&part(version, kind, true, &[0; 4]));
        assert_eq!(refused.err(), Some(FragmentError::NotInParts(kind)));
    }
    let whole = reassembly.push(&part(Version::V1_2, MessageType::Request, false, &[0; 4]));
    let error = FragmentError::NotInParts(MessageType::Request);
    assert_eq!(whole.err(), Some(error));
}

#[test]
fn a_canceled_request_is_forgotten() {
    let mut reassembly = Reassembly::new(Bounds::default());
    reassembly.push(&request(1, "a")).unwrap();
    reassembly.push(&request(2, "b")).unwrap();
    reassembly.push(&cancel(Version::V1_2, 1)).unwrap();
    reassembly.push(&cancel(Version::V1_2, 9)).unwrap();
    assert_eq!(reassembly.open_messages(), 1);
    let late = reassembly.push(&fragment(1, "", false));
    assert_eq!(late.err(), Some(FragmentError::Unexpected));

    // In GIOP 1.1 the id stands behind the contexts: here one of two octets.
    let mut reassembly = Reassembly::new(Bounds::default());
    let body = [1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 7, 7, 0, 0, 3, 0, 0, 0];
    reassembly
        .push(&part(Version::V1_1, MessageType::Request, true, &body))
        .unwrap();
    reassembly.push(&cancel(Version::V1_1, 2)).unwrap();
    assert_eq!(reassembly.open_messages(), 1);
    reassembly.push(&cancel(Version::V1_1, 3)).unwrap();
    assert_eq!((reassembly.open_messages(), reassembly.octets()), (0, 0));
}

#[test]
fn there_is_a_limit_to_messages_and_to_octets() {
    let mut reassembly = Reassembly::new(Bounds {
        fragmented: 2,
        fragment_octets: 100,
        ..Bounds::default()
    });
    reassembly.push(&request(1, "a")).unwrap();
    reassembly.push(&request(2, "a")).unwrap();
    let third = reassembly.push(&request(3, "a"));
    assert_eq!(third.err(), Some(FragmentError::TooMany));
    assert_eq!(reassembly.octets(), 34);
    let long = "a".repeat(67);
    let too_large = reassembly.push(&fragment(1, &long, true));
    assert_eq!(too_large.err(), Some(FragmentError::TooLarge));
    reassembly.push(&fragment(1, &long[1..], true)).unwrap();
    assert_eq!(reassembly.octets(), 100);
}

#[test]
fn headers_of_fragments_do_not_count_but_are_not_without_end() {
    let mut reassembly = Reassembly::new(Bounds {
        message: 100,
        ..Bounds::default()
    });
    reassembly.push(&request(1, "")).unwrap();
    // 16 octets each, of the 800 that all parts may have.
    for _ in 0..49 {
        assert!(reassembly.push(&fragment(1, "", true)).unwrap().is_none());
    }
    assert_eq!(reassembly.octets(), 16);
    let endless = reassembly.push(&fragment(1, "", true));
    assert_eq!(endless.err(), Some(FragmentError::TooLarge));
    let long = fragment(1, &"a".repeat(85), true);
    let too_large = reassembly.push(&long);
    assert_eq!(too_large.err(), Some(FragmentError::TooLarge));
}

#[test]
fn of_a_message_beyond_the_limit_the_beginning_is_kept() {
    const LIMIT: usize = 1 << 20;
    let beginning = |joined: Option<ReassembledMessage>| {
        let joined = joined.expect("a message");
        assert_eq!(joined.skipped, Some(CdrError::FrameFull));
        joined
    };
    let long = "a".repeat(LIMIT / 4);
    let mut reassembly = Reassembly::new(Bounds {
        message: LIMIT,
        fragment_octets: LIMIT,
        skips: true,
        ..Bounds::default()
    });
    let mut push = |part: &[u8]| reassembly.push(part);
    assert!(push(&request(1, "small")).unwrap().is_none());
    assert!(push(&request(2, &long)).unwrap().is_none());
    for _ in 0..20 {
        assert!(push(&fragment(2, &long, true)).unwrap().is_none());
    }
    let skipped = beginning(push(&fragment(2, &long, false)).unwrap());
    assert_eq!(body(&skipped)[..6], *b"\x02\0\0\0aa");
    assert_eq!(skipped.frame.len(), KEPT_OF_SKIPPED);
    // The other message is not touched. A part that was cut makes its message one that is skipped.
    let mut cut = fragment(1, " and more", false);
    cut.truncate(HEADER_LEN + 4);
    let refused = reassembly.push(&cut);
    let short = FragmentError::Header(HeaderError::TooShort);
    assert_eq!(refused.err(), Some(short));
    let header = MessageHeader::parse(&cut).unwrap();
    let joined = reassembly.push_part(header, &cut, Some(CdrError::FrameFull));
    let skipped = beginning(joined.unwrap());
    assert_eq!(body(&skipped), b"\x01\0\0\0small");
    assert_eq!((reassembly.open_messages(), reassembly.octets()), (0, 0));

    reassembly.push(&request(3, &long)).unwrap();
    let refused = (0..SKIPPED_TIMES * 4).find_map(|_| {
        let kept = reassembly.octets();
        assert!(kept <= LIMIT, "{kept}");
        reassembly.push(&fragment(3, &long, true)).err()
    });
    assert_eq!(refused, Some(FragmentError::TooLarge));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any parts, in any order, stay within the limits.
    #[test]
    fn any_parts_in_any_order(
        parts in prop::collection::vec((0..4u8, 0..4u8, any::<bool>(), 0..3u8, 0..30usize), 0..60)
    ) {
        let bounds = Bounds {
            message: 120,
            fragmented: 3,
            fragment_octets: 150,
            skips: false,
        };
        let mut reassembly = Reassembly::new(bounds);
        for (kind, id, more, minor, len) in parts {
            let kind = [
                MessageType::Request,
                MessageType::Reply,
                MessageType::CancelRequest,
                MessageType::Fragment,
            ][usize::from(kind)];
            let mut body = vec![id, 0, 0, 0];
            body.resize(len, 0);
            let _ = reassembly.push(&part(Version::new(1, minor), kind, more, &body));
            prop_assert!(reassembly.open_messages() <= bounds.fragmented);
            prop_assert!(reassembly.octets() <= bounds.fragment_octets);
        }
    }
}

/// A message of GIOP 1.2 with a body of `len` octets, the request id among them.
fn message(kind: MessageType, endian: Endian, len: usize) -> Vec<u8> {
    let header = MessageHeader {
        protocol: Version::V1_2.into(),
        endian,
        more_fragments: false,
        kind,
        size: len as u32,
    };
    let body: Vec<u8> = (0..len).map(|index| index as u8).collect();
    [&header.to_bytes(), body.as_slice()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_out_in_parts_comes_together_again(
        len in 4..3000usize,
        size in 0..600usize,
        little in any::<bool>(),
        kind in prop_oneof![
            Just(MessageType::Request),
            Just(MessageType::Reply),
            Just(MessageType::LocateRequest),
            Just(MessageType::LocateReply),
        ],
        slices in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let message = message(kind, Endian::from_flag(little), len);
        let most = size.max(Fragmentation::LEAST_SIZE);
        let Some(mut fragmentation) = Fragmentation::of(&message, size) else {
            prop_assert!(size == 0 || message.len() <= most);
            return Ok(());
        };
        // The octets are handed over in slices of any length, but for the header and the id.
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut rest = message.as_slice();
        let mut lengths = slices.iter().map(|len| len.index(message.len())).chain([len]).cycle();
        let mut least = 16;
        while !rest.is_empty() {
            let mut next = |least: usize| {
                let len = lengths.next().expect("no end").max(least).min(rest.len());
                rest.split_off(..len).expect("so many are left")
            };
            let (first, second) = (next(std::mem::take(&mut least)), next(0));
            for piece in fragmentation.pieces(first, second) {
                match piece.head.octets() {
                    [] => parts.last_mut().expect("it has begun").extend_from_slice(piece.body),
                    head => parts.push([head, piece.body].concat()),
                }
            }
        }
        prop_assert!(fragmentation.pieces(&[1], &[2]).next().is_none(), "it is over");
        let (last, others) = parts.split_last().expect("a part");
        let mut reassembly = Reassembly::new(Bounds::default());
        for part in others {
            prop_assert!(part.len() <= most && part.len().is_multiple_of(8));
            prop_assert!(reassembly.push(part).unwrap().is_none());
        }
        prop_assert!(last.len() <= most);
        let joined = reassembly.push(last).unwrap().unwrap();
        prop_assert_eq!(joined.frame.as_slice(), message);
    }
}

#[test]
fn only_messages_of_giop_1_2_that_have_a_body_go_out_in_parts() {
    let long = [7; 100];
    for version in [Version::V1_0, Version::V1_1] {
        let whole = part(version, MessageType::Reply, false, &long);
        assert!(Fragmentation::of(&whole, 32).is_none());
    }
    for kind in [MessageType::CancelRequest, MessageType::MessageError] {
        let whole = part(Version::V1_2, kind, false, &long);
        assert!(Fragmentation::of(&whole, 32).is_none());
    }
    let begun = part(Version::V1_2, MessageType::Reply, true, &long);
    assert!(
        Fragmentation::of(&begun, 32).is_none(),
        "it is a part itself"
    );
    assert!(Fragmentation::of(&long, 32).is_none(), "it is no message");
}
