//! The reader and the writer of messages: any split of the octets gives the same messages, within
//! bounds, and fragments that were written are read as the message that they are parts of.

use std::io::IoSlice;

use chronorb_cdr::{CdrError, Endian, Frame, octets_copied};
use chronorb_giop::connection::{
    Bounds, KEPT_OF_SKIPPED, MOST_SKIPPED, Message, MessageReader, MessageWriter, Negotiation,
    Progress, ReadError, SKIPPED_TIMES, empty_message,
};
use chronorb_giop::{MessageHeader, MessageType, Version};
use proptest::prelude::*;

use MessageType::{CancelRequest, CloseConnection, Fragment, LocateRequest, Reply, Request};

const LIMIT: usize = 64 << 10;
const BOUNDS: Bounds = Bounds {
    message: LIMIT,
    fragmented: 2,
    fragment_octets: LIMIT,
    skips: true,
};

/// A message in a stream, or a part of one.
fn part(version: Version, kind: MessageType, more: bool, body: &[u8]) -> Vec<u8> {
    let header = MessageHeader {
        protocol: version.into(),
        endian: Endian::Little,
        more_fragments: more,
        kind,
        size: body.len() as u32,
    };
    [&header.to_bytes(), body].concat()
}

/// A whole message, or a part, of GIOP 1.2 that belongs to a request, with so many octets behind
/// its id.
fn of_request(kind: MessageType, id: u8, more: bool, len: usize) -> Vec<u8> {
    let mut body = vec![id, 0, 0, 0];
    body.resize(4 + len, id);
    part(Version::V1_2, kind, more, &body)
}

/// A message as a reader has it: kind, octets, why it was skipped.
type Read = (MessageType, Vec<u8>, Option<CdrError>);

/// One read of the transport: the most octets that it has, and whether the message in the frame is
/// then suspended, and its frame stays.
type Reads = (usize, Option<bool>);

/// Reads octets that arrive as `reads` says, again and again; returns the whole messages, and the
/// error after them.
fn read_all(
    bounds: Bounds,
    negotiation: &Negotiation,
    mut octets: &[u8],
    reads: &[Reads],
) -> (Vec<Read>, Option<ReadError>) {
    let mut reader = MessageReader::new(bounds, Frame::new(0, usize::MAX));
    let mut frame = Frame::new(4 << 10, usize::MAX);
    let mut reads = reads.iter().cycle();
    let mut messages = Vec::new();
    let mut step = || -> Result<bool, ReadError> {
        let total = match reader.poll(negotiation, &mut frame)? {
            Progress::Message(message) => {
                let is_cut = message.skipped.is_some();
                let len = message.header.message_len();
                // A fragment may be behind the octets that it continues.
                let is_behind = message.header.kind == Fragment && frame.len() > len;
                assert!(is_cut || is_behind || len == frame.len());
                if let Some(Message { header, skipped }) = reader.join(message, &mut frame)? {
                    messages.push((header.kind, frame.as_slice().to_vec(), skipped));
                }
                frame.clear();
                return Ok(true);
            }
            Progress::Missing { total } => total,
        };
        assert!(total > frame.len());
        let (most, suspends) = *reads.next().expect("it has no end");
        let Some(room) = reader.room(&mut frame, total)? else {
            return Ok(true);
        };
        let n = most.min(room.len()).min(octets.len());
        let (arrived, later) = octets.split_at(n);
        room[..n].copy_from_slice(arrived);
        octets = later;
        frame.commit(n);
        if let Some(stays) = suspends {
            let had = (frame.len(), frame.capacity());
            reader.suspend(&mut frame, stays)?;
            assert!(frame.is_empty());
            assert_eq!(reader.pending().len(), had.0);
            assert!(reader.kept() >= had.0);
        }
        Ok(n > 0)
    };
    loop {
        match step() {
            Ok(true) => {}
            Ok(false) => return (messages, None),
            Err(error) => return (messages, Some(error)),
        }
    }
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Whole(MessageType, u8, usize),
    Close,
    TooLarge(u8, usize),
    /// Two messages in fragments, whose parts are mixed.
    Fragmented(usize, usize),
    /// A message that is too large by its fragments.
    TooLargeByFragments(usize, usize),
    /// A message in so many fragments of equal length, and one more of another.
    Consecutive(usize, usize, usize),
    /// A message in fragments, with other messages between its parts.
    Interrupted(usize, usize),
    /// The first parts of a message that is cancelled, and another of its request.
    Cancelled(usize),
}

impl Piece {
    /// The octets, and the messages that come of them.
    fn expand(self) -> (Vec<u8>, Vec<Read>) {
        match self {
            Self::Whole(kind, id, len) => {
                let octets = of_request(kind, id, false, len);
                (octets.clone(), vec![(kind, octets, None)])
            }
            Self::Close => {
                let octets = empty_message(CloseConnection).to_vec();
                (octets.clone(), vec![(CloseConnection, octets, None)])
            }
            Self::TooLarge(id, len) => {
                let octets = of_request(Request, id, false, len);
                let skipped = (Request, octets.clone(), Some(CdrError::FrameFull));
                (octets, vec![skipped])
            }
            Self::Fragmented(len, other) => {
                let parts = [
                    of_request(Request, 1, true, len),
                    of_request(Reply, 2, true, other),
                    of_request(Fragment, 1, true, other),
                    of_request(Fragment, 2, false, 0),
                    of_request(CancelRequest, 9, false, 0),
                    of_request(Fragment, 1, false, len),
                ];
                let joined = vec![
                    (Reply, of_request(Reply, 2, false, other), None),
                    (
                        Request,
                        of_request(Request, 1, false, 2 * len + other),
                        None,
                    ),
                    (CancelRequest, of_request(CancelRequest, 9, false, 0), None),
                ];
                (
                    [&parts.concat()[..], &of_request(CancelRequest, 9, false, 0)].concat(),
                    joined,
                )
            }
            Self::TooLargeByFragments(first, second) => {
                let parts = [
                    of_request(Request, 1, true, first),
                    of_request(Fragment, 1, false, second),
                ];
                let whole = of_request(Request, 1, false, first + second);
                (
                    parts.concat(),
                    vec![(Request, whole, Some(CdrError::FrameFull))],
                )
            }
            Self::Consecutive(parts, len, last) => {
                let mut octets = of_request(Request, 1, true, len);
                for _ in 0..parts {
                    octets.extend(of_request(Fragment, 1, true, len));
                }
                octets.extend(of_request(Fragment, 1, false, last));
                let whole = of_request(Request, 1, false, (parts + 1) * len + last);
                (octets, vec![(Request, whole, None)])
            }
            Self::Interrupted(len, other) => {
                let between = [
                    of_request(Request, 3, false, other),
                    empty_message(CloseConnection).to_vec(),
                    of_request(CancelRequest, 9, false, 0),
                ];
                let mut octets = of_request(Reply, 1, true, len);
                for message in &between {
                    octets.extend(of_request(Fragment, 1, true, len));
                    octets.extend(message);
                }
                octets.extend(of_request(Fragment, 1, false, 0));
                let [request, close, cancel] = between;
                let read = vec![
                    (Request, request, None),
                    (CloseConnection, close, None),
                    (Reply, of_request(Reply, 1, false, 4 * len), None),
                ];
                // Reassembly takes the CancelRequest.
                drop(cancel);
                (octets, read)
            }
            Self::Cancelled(len) => {
                let octets = [
                    of_request(Request, 1, true, len),
                    of_request(Fragment, 1, true, len),
                    of_request(CancelRequest, 1, false, 0),
                    of_request(Request, 1, true, 0),
                    of_request(Fragment, 1, false, len),
                ];
                let whole = of_request(Request, 1, false, len);
                (octets.concat(), vec![(Request, whole, None)])
            }
        }
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    let half = LIMIT / 2..LIMIT - 16;
    prop_oneof![
        (any::<u8>(), 0..300usize).prop_map(|(id, len)| Piece::Whole(Request, id, len)),
        (any::<u8>(), 0..LIMIT - 16).prop_map(|(id, len)| Piece::Whole(Reply, id, len)),
        Just(Piece::Close),
        (any::<u8>(), LIMIT..5 * LIMIT).prop_map(|(id, len)| Piece::TooLarge(id, len)),
        (0..2000usize, 0..2000usize).prop_map(|(len, other)| Piece::Fragmented(len, other)),
        (half.clone(), half).prop_map(|(a, b)| Piece::TooLargeByFragments(a, b)),
        (0..7usize, 0..8000usize, 0..8000usize)
            .prop_map(|(parts, len, last)| Piece::Consecutive(parts, len, last)),
        (0..2000usize, 0..300usize).prop_map(|(len, other)| Piece::Interrupted(len, other)),
        (0..2000usize).prop_map(Piece::Cancelled),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_a_stream_gives_the_same_messages(
        pieces in prop::collection::vec(piece(), 1..6),
        reads in prop::collection::vec(
            (prop_oneof![1..40usize, 1..LIMIT, Just(usize::MAX)], any::<Option<bool>>()),
            1..8,
        ),
    ) {
        let (octets, expected): (Vec<_>, Vec<_>) = pieces.into_iter().map(Piece::expand).unzip();
        let (read, error) = read_all(BOUNDS, &Negotiation::default(), &octets.concat(), &reads);
        prop_assert_eq!(error, None);
        let expected = expected.concat();
        prop_assert_eq!(read.len(), expected.len());
        for ((kind, octets, skipped), expected) in read.into_iter().zip(expected) {
            prop_assert_eq!((kind, skipped), (expected.0, expected.2));
            let len = octets.len();
            if skipped.is_none() {
                prop_assert!(octets == expected.1, "{:?} of {} octets", kind, len);
                continue;
            }
            // The header of what was joined has the length of the beginning.
            prop_assert!(len >= KEPT_OF_SKIPPED.min(expected.1.len()), "{} octets", len);
            prop_assert!(octets[12..] == expected.1[12..len]);
        }
    }

    #[test]
    fn a_message_that_is_written_in_fragments_is_read_as_it_was(
        messages in prop::collection::vec(message(), 1..5),
        fragment_size in prop_oneof![Just(0), 1..5000usize],
        taken in prop::collection::vec(0..300usize, 1..8),
    ) {
        let writer = MessageWriter::new(fragment_size);
        let mut written = Vec::new();
        let mut at_once = Vec::new();
        let mut in_portions = Vec::new();
        let mut taken = taken.iter().chain(&[300]).cycle();
        for message in &messages {
            writer.write(message, |slices| write(&mut written, slices)).unwrap();
            let mut sent = 0;
            let mut send = |slices: &[IoSlice<'_>], before| {
                assert!(slices.len() <= MessageWriter::MOST_SLICES);
                match *taken.next().expect("no end") {
                    0 => Err(WouldBlock),
                    most => {
                        let rest = &octets(slices)[before..];
                        let most = most.min(rest.len());
                        in_portions.extend_from_slice(&rest[..most]);
                        Ok(most)
                    }
                }
            };
            while writer.resume(message, &mut sent, &mut send).is_err() {}
            prop_assert!(sent >= message.len());
            // What has been sent whole is not sent again.
            let again = writer.resume(message, &mut sent, |_, _| Err(WouldBlock));
            prop_assert_eq!(again, Ok(()));
        }
        let messages = messages.concat();
        writer.write_all(&messages, |slices| write(&mut at_once, slices)).unwrap();
        prop_assert!(at_once == written && in_portions == written);

        let negotiation = Negotiation::default();
        let (read, error) = read_all(BOUNDS, &negotiation, &written, &[(usize::MAX, None)]);
        prop_assert_eq!(error, None);
        let read: Vec<u8> = read.into_iter().flat_map(|(_, octets, _)| octets).collect();
        prop_assert!(read == messages);
    }
}

/// A message of any length, which a writer may send in fragments.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(&[Request, Reply, LocateRequest, CancelRequest][..]);
    (kind, any::<u8>(), 0..LIMIT - 16).prop_map(|(kind, id, len)| of_request(kind, id, false, len))
}

/// The transport takes nothing at present.
#[derive(Debug, PartialEq)]
struct WouldBlock;

fn write(to: &mut Vec<u8>, slices: &[IoSlice<'_>]) -> Result<(), WouldBlock> {
    to.extend(octets(slices));
    Ok(())
}

fn octets(slices: &[IoSlice<'_>]) -> Vec<u8> {
    let slices: Vec<&[u8]> = slices.iter().map(|slice| &**slice).collect();
    slices.concat()
}

#[test]
fn an_error_ends_a_message_in_fragments() {
    let message = of_request(Request, 1, false, 10_000);
    let mut groups = 0;
    let ended = MessageWriter::new(100).write(&message, |_| {
        groups += 1;
        if groups == 3 { Err(WouldBlock) } else { Ok(()) }
    });
    assert_eq!((ended, groups), (Err(WouldBlock), 3));
}

#[test]
fn a_mebibyte_in_fragments_of_64_kibibytes_is_handed_over_at_once() {
    let message = of_request(Request, 1, false, 1 << 20);
    let mut outgoing = MessageWriter::new(64 << 10).begin(&message[..100]);
    let mut groups = Vec::new();
    outgoing
        .write(&message[..100], &message[100..], |slices| {
            let of_message =
                |slice: &&IoSlice<'_>| message.as_ptr_range().contains(&slice.as_ptr());
            groups.push((slices.len(), slices.iter().filter(of_message).count()));
            Ok::<(), WouldBlock>(())
        })
        .unwrap();
    // 17 fragments, of which the first has its octets in two slices, the second without a header.
    // None was copied.
    assert_eq!(groups, [(36, 18)]);
}

#[test]
fn what_a_reader_refuses() {
    let large = |kind, len: usize| of_request(kind, 1, false, len);
    let skips = BOUNDS;
    let refuses = Bounds {
        skips: false,
        ..BOUNDS
    };
    let opening = |id| of_request(Request, id, true, 0);
    let many: Vec<u8> = (0..3).flat_map(opening).collect();
    let endless = |len| {
        let mut octets = opening(1);
        for _ in 0..=SKIPPED_TIMES * LIMIT / (16 + len) {
            octets.extend(of_request(Fragment, 1, true, len));
        }
        octets
    };
    let promise = |kind, len: usize| large(kind, len)[..12].to_vec();
    for (what, octets, bounds, error) in [
        ("no magic", b"HTTP".to_vec(), skips, ReadError::Malformed),
        (
            "one wrong octet",
            b"X".to_vec(),
            skips,
            ReadError::Malformed,
        ),
        (
            "version 1.3",
            b"GIOP\x01\x03\0\x05\0\0\0\0".to_vec(),
            skips,
            ReadError::Malformed,
        ),
        (
            "no type",
            b"GIOP\x01\x02\0\x08\0\0\0\0".to_vec(),
            skips,
            ReadError::Malformed,
        ),
        (
            "more than is skipped",
            promise_of(MOST_SKIPPED + 1).to_vec(),
            skips,
            ReadError::TooLarge,
        ),
        (
            "more than the limit",
            promise(Request, LIMIT),
            refuses,
            ReadError::TooLarge,
        ),
        (
            "a reply, which is not answered",
            promise(Reply, LIMIT),
            skips,
            ReadError::Malformed,
        ),
        (
            "fragments of nothing",
            of_request(Fragment, 1, false, 0),
            skips,
            ReadError::Malformed,
        ),
        ("many fragments", many, skips, ReadError::Malformed),
        (
            "the same message",
            opening(1).repeat(2),
            skips,
            ReadError::Malformed,
        ),
        ("no end", endless(0), skips, ReadError::TooLarge),
        ("no end of much", endless(4096), skips, ReadError::TooLarge),
        (
            "fragments that are refused",
            endless(4096)[..2 * LIMIT].to_vec(),
            refuses,
            ReadError::TooLarge,
        ),
    ] {
        for reads in [
            [(usize::MAX, None)],
            [(7, Some(false))],
            [(1000, Some(true))],
        ] {
            let read = read_all(bounds, &Negotiation::default(), &octets, &reads);
            assert_eq!(read, (Vec::new(), Some(error)), "{what}, {reads:?}");
        }
    }
}

#[test]
fn a_locate_request_that_is_too_large_is_skipped() {
    let octets = of_request(LocateRequest, 1, false, 2 * LIMIT);
    let (read, error) = read_all(
        BOUNDS,
        &Negotiation::default(),
        &octets,
        &[(1 << 20, Some(false))],
    );
    assert_eq!(error, None);
    let [(LocateRequest, beginning, Some(CdrError::FrameFull))] = &read[..] else {
        panic!("{} messages", read.len());
    };
    assert!(octets.starts_with(beginning));
}

/// A client of TAO connects again after a close, and sends the same request for ever.
#[test]
fn a_whole_request_is_skipped_up_to_a_length_that_none_has() {
    let len = (SKIPPED_TIMES + 1) * LIMIT;
    let octets = [
        of_request(Request, 1, false, len),
        of_request(Request, 2, false, 8),
    ]
    .concat();
    let read = read_all(
        BOUNDS,
        &Negotiation::default(),
        &octets,
        &[(1 << 20, Some(false))],
    );
    let (messages, error) = read;
    assert_eq!(error, None);
    let skipped: Vec<_> = messages.iter().map(|(.., skipped)| *skipped).collect();
    assert_eq!(skipped, [Some(CdrError::FrameFull), None]);
    // Its octets are counted and not kept, so the length needs no memory.
    for (len, error) in [
        (MOST_SKIPPED, None),
        (MOST_SKIPPED + 1, Some(ReadError::TooLarge)),
    ] {
        let read = read_all(
            BOUNDS,
            &Negotiation::default(),
            &promise_of(len),
            &[(1 << 20, Some(false))],
        );
        assert_eq!(read, (Vec::new(), error), "{len}");
    }
}

/// The header of a request of this length, header included.
fn promise_of(len: usize) -> [u8; 12] {
    let request = of_request(Request, 1, false, 0);
    let header = MessageHeader {
        size: (len - 12) as u32,
        ..MessageHeader::parse(&request).unwrap()
    };
    header.to_bytes()
}

#[test]
fn what_follows_a_message_waits_and_a_message_can_be_put_back() {
    let (first, second) = (
        of_request(Request, 1, false, 8),
        of_request(Request, 2, false, 8),
    );
    let negotiation = Negotiation::default();
    let mut reader = MessageReader::new(BOUNDS, Frame::new(0, usize::MAX));
    let mut frame = Frame::new(1024, usize::MAX);
    frame.extend_from_slice(&first).unwrap();
    frame.extend_from_slice(&second).unwrap();
    let message = reader.poll(&negotiation, &mut frame).unwrap();
    assert_eq!((frame.as_slice(), reader.pending()), (&*first, &*second));
    reader.put_back(&frame).unwrap();
    assert_eq!(reader.pending(), [first.clone(), second].concat());
    assert!(reader.take_spare(0).is_none());
    frame.clear();
    assert_eq!(reader.poll(&negotiation, &mut frame), Ok(message));
    assert_eq!(frame.as_slice(), first);
    frame.clear();
    assert!(matches!(
        reader.poll(&negotiation, &mut frame),
        Ok(Progress::Message(_))
    ));
    assert!(reader.pending().is_empty());
    assert!(reader.take_spare(0).is_some_and(|spare| spare.is_empty()));
    assert_eq!(reader.kept(), 0);
}

/// Receives a message, or the next part of one, of which each read gets at most `most` octets.
fn receive(
    reader: &mut MessageReader,
    frame: &mut Frame,
    octets: &mut &[u8],
    most: usize,
) -> Message {
    let negotiation = Negotiation::default();
    frame.clear();
    loop {
        let total = match reader.poll(&negotiation, frame).unwrap() {
            Progress::Message(message) => return message,
            Progress::Missing { total } => total,
        };
        let room = reader.room(frame, total).unwrap().expect("there is memory");
        let (arrived, later) = octets.split_at(most.min(room.len()).min(octets.len()));
        assert!(!arrived.is_empty());
        room[..arrived.len()].copy_from_slice(arrived);
        *octets = later;
        let n = arrived.len();
        frame.commit(n);
    }
}

#[test]
fn fragments_are_received_behind_each_other_in_the_memory_of_the_last_message() {
    const LEN: usize = 1 << 20;
    let bounds = Bounds {
        message: 2 * LEN,
        fragment_octets: 2 * LEN,
        ..BOUNDS
    };
    let message = of_request(Request, 1, false, LEN);
    let mut written = Vec::new();
    let writer = MessageWriter::new(64 << 10);
    writer
        .write(&message, |slices| write(&mut written, slices))
        .unwrap();
    let mut reader = MessageReader::new(bounds, Frame::new(0, usize::MAX));
    let mut frame = Frame::new(64 << 10, usize::MAX);
    for most in [usize::MAX, usize::MAX, 50_000, usize::MAX] {
        let (mut octets, before) = (&*written, octets_copied());
        let capacity = frame.capacity();
        loop {
            let part = receive(&mut reader, &mut frame, &mut octets, most);
            if let Some(whole) = reader.join(part, &mut frame).unwrap() {
                assert_eq!((whole.header.kind, whole.skipped), (Request, None));
                break;
            }
            assert!(reader.has_fragments());
        }
        assert!(frame.as_slice() == message);
        assert!(octets.is_empty() && !reader.has_fragments());
        if capacity >= LEN {
            assert_eq!(octets_copied() - before, 0);
            assert_eq!(frame.capacity(), capacity);
        }
    }
    assert!(frame.capacity() >= LEN);
}

#[test]
fn a_short_first_part_does_not_keep_the_memory_of_a_large_frame() {
    let mut reader = MessageReader::new(BOUNDS, Frame::new(0, usize::MAX));
    let mut frame = Frame::new(32 << 10, usize::MAX);
    let octets = of_request(Request, 1, true, 100);
    let part = receive(&mut reader, &mut frame, &mut &*octets, usize::MAX);
    assert_eq!(reader.join(part, &mut frame), Ok(None));
    assert_eq!(frame.capacity(), 32 << 10);
    assert!(reader.kept() <= 2 * octets.len() + 64);
}

#[test]
fn a_fragment_can_be_put_back_where_it_was() {
    let stream = [
        of_request(Request, 1, true, 100),
        of_request(Fragment, 1, true, 60),
        of_request(Fragment, 1, false, 7),
        of_request(Request, 2, false, 8),
    ]
    .concat();
    for most in [1, 50, usize::MAX] {
        let mut reader = MessageReader::new(BOUNDS, Frame::new(0, usize::MAX));
        let mut frame = Frame::new(1024, usize::MAX);
        let mut octets = &*stream;
        let mut next = |reader: &mut MessageReader, frame: &mut Frame| {
            let part = receive(reader, frame, &mut octets, most);
            reader.put_back(frame).unwrap();
            assert!(!reader.pending().is_empty());
            let again = receive(reader, frame, &mut octets, most);
            assert_eq!(again, part);
            reader.join(again, frame).unwrap()
        };
        assert_eq!(next(&mut reader, &mut frame), None);
        assert_eq!(next(&mut reader, &mut frame), None);
        assert!(next(&mut reader, &mut frame).is_some());
        assert_eq!(frame.as_slice(), of_request(Request, 1, false, 167));
        assert!(next(&mut reader, &mut frame).is_some());
        assert_eq!(frame.as_slice(), of_request(Request, 2, false, 8));
    }
}

#[test]
fn what_is_discarded_takes_no_memory() {
    let mut reader = MessageReader::new(BOUNDS, Frame::new(0, usize::MAX));
    let mut frame = Frame::new(1024, usize::MAX);
    frame.extend_from_slice(&[1; 3]).unwrap();
    reader.suspend(&mut frame, true).unwrap();
    assert_eq!((frame.capacity(), reader.kept()), (0, 1024));
    reader.discard();
    assert_eq!(reader.kept(), 0);
}

mod lite {
    use chronorb_giop::{GiopLite, ReplyHeader, ReplyStatus, ServiceContext, contexts};
    use chronorb_giop::{Protocol, encode_reply, finish_message, start_message};

    use super::*;

    const LITE: [u8; GiopLite::HEADER_LEN] = GiopLite::empty_message(CloseConnection);
    const READS: [Reads; 1] = [(3, Some(false))];

    fn reply(contexts: &[ServiceContext<'_>]) -> Frame {
        let mut frame = Frame::new(256, usize::MAX);
        let header = ReplyHeader {
            request_id: 1,
            status: ReplyStatus::NoException,
            contexts,
        };
        let e = start_message(&mut frame, Version::V1_2, Reply).expect("it fits");
        encode_reply(&mut { e }, Version::V1_2, &header).expect("it fits");
        finish_message(&mut frame);
        frame
    }

    #[test]
    fn a_server_takes_gioplite_once_it_has_agreed() {
        let negotiation = Negotiation::default();
        let error = read_all(BOUNDS, &negotiation, &LITE, &READS).1;
        assert_eq!(error, Some(ReadError::Malformed));
        negotiation.agree();
        assert!(!negotiation.is_lite());
        negotiation.with_empty_message(CloseConnection, |sent| assert_ne!(sent, LITE));
        let (read, error) = read_all(BOUNDS, &negotiation, &LITE, &READS);
        assert_eq!((read.len(), error), (1, None));
        assert!(negotiation.is_lite());
        negotiation.agree();
        negotiation.with_empty_message(CloseConnection, |sent| assert_eq!(sent, LITE));
        let octets = [&LITE[..], &of_request(Request, 1, false, 9), &LITE].concat();
        let (read, error) = read_all(BOUNDS, &negotiation, &octets, &READS);
        assert_eq!((read.len(), error), (3, None));
    }

    #[test]
    fn a_client_learns_from_the_first_reply() {
        let agreement = ServiceContext {
            id: contexts::GIOP_LITE,
            data: &contexts::GIOP_LITE_DATA,
        };
        for agreed in [&[][..], &[agreement]] {
            let negotiation = Negotiation::new(true);
            assert!(negotiation.is_proposing() && !negotiation.is_lite());
            let mut close = Frame::new(64, usize::MAX);
            drop(start_message(&mut close, Version::V1_0, CloseConnection).expect("it fits"));
            let close_header = MessageHeader::parse(close.as_slice()).expect("our own");
            negotiation.learn(close_header, &close);
            assert!(negotiation.is_proposing(), "it is no reply");
            let reply = reply(agreed);
            let header = MessageHeader::parse(reply.as_slice()).expect("our own");
            negotiation.learn(header, &reply);
            assert!(!negotiation.is_proposing());
            assert_eq!(negotiation.is_lite(), !agreed.is_empty());
            let framed = negotiation.next_message(&LITE, LIMIT);
            assert_eq!(framed.is_ok(), !agreed.is_empty());
        }
        assert!(!Negotiation::new(false).is_proposing());
    }

    #[test]
    fn a_large_request_of_gioplite_is_skipped() {
        let negotiation = Negotiation::default();
        negotiation.agree();
        let mut frame = Frame::new(256, usize::MAX);
        let mut e = start_message(&mut frame, GiopLite, Request).expect("it fits");
        e.write_octets(&vec![7; 3 * LIMIT]).expect("it fits");
        finish_message(&mut frame);
        let (read, error) = read_all(BOUNDS, &negotiation, frame.as_slice(), &[(5, None)]);
        assert_eq!(error, None);
        assert_eq!(read[0].2, Some(CdrError::FrameFull));
        let header = chronorb_giop::MessageProtocol::header_len(Protocol::Lite);
        assert_eq!(read[0].1[..header], frame.as_slice()[..header]);
    }
}

/// Asks a new reader about octets that arrived at once, with and without the shorter way.
fn usual_and_polled(
    bounds: Bounds,
    octets: &[u8],
    usual: fn(&MessageReader, &Frame) -> Option<MessageHeader>,
) -> (Option<MessageHeader>, Result<Progress, ReadError>) {
    let mut reader = MessageReader::new(bounds, Frame::new(0, usize::MAX));
    assert!(reader.is_fresh());
    let mut frame = Frame::new(4 << 10, usize::MAX);
    let room = MessageReader::first_room(&mut frame).expect("there is memory");
    room[..octets.len()].copy_from_slice(octets);
    frame.commit(octets.len());
    let header = usual(&reader, &frame);
    (header, reader.poll(&Negotiation::default(), &mut frame))
}

/// A request of GIOP 1.2 with these response flags, in the byte order of this machine.
fn request(flags: u8) -> Vec<u8> {
    let mut body = [&[1, 0, 0, 0, flags][..], &[0; 43]].concat();
    let header = MessageHeader {
        protocol: Version::V1_2.into(),
        endian: Endian::NATIVE,
        more_fragments: false,
        kind: Request,
        size: body.len() as u32,
    };
    let mut octets = header.to_bytes().to_vec();
    octets.append(&mut body);
    octets
}

#[test]
fn a_usual_request_is_recognized_as_it_is_polled() {
    let octets = request(3);
    let (usual, polled) = usual_and_polled(BOUNDS, &octets, MessageReader::usual_request);
    let header = usual.expect("it is a usual request");
    let skipped = None;
    assert_eq!(polled, Ok(Progress::Message(Message { header, skipped })));
}

#[test]
fn requests_that_are_not_usual_are_left_to_be_polled() {
    let usual = |octets: &[u8]| usual_and_polled(BOUNDS, octets, MessageReader::usual_request).0;
    assert_eq!(usual(&request(0)), None, "a oneway");
    assert_eq!(usual(&request(1)), None, "an answer before the operation");
    let octets = request(3);
    for len in 0..octets.len() {
        assert_eq!(usual(&octets[..len]), None, "the first {len} octets");
    }
    let followed = [&octets[..], b"G"].concat();
    assert_eq!(usual(&followed), None, "more octets follow");
    // The magic, the version, the flags and the kind.
    for place in 0..8 {
        let mut other = octets.clone();
        other[place] ^= 2;
        assert_eq!(usual(&other), None, "another octet {place}");
    }
    let bounds = Bounds {
        message: octets.len() - 1,
        ..BOUNDS
    };
    let (usual, _) = usual_and_polled(bounds, &octets, MessageReader::usual_request);
    assert_eq!(usual, None, "it is beyond the bound");
}

proptest! {
    #[test]
    fn what_is_recognized_at_once_is_what_is_polled(
        changes in prop::collection::vec((0_usize..20, any::<u8>()), 0..3),
        extra in 0_usize..3,
        is_reply: bool,
    ) {
        let (kind, usual): (_, fn(&MessageReader, &Frame) -> Option<MessageHeader>) = if is_reply {
            (Reply as u8, MessageReader::usual_reply)
        } else {
            (Request as u8, MessageReader::usual_request)
        };
        let mut octets = request(3);
        octets[7] = kind;
        for (place, octet) in changes {
            octets[place] = octet;
        }
        octets.resize(octets.len() + extra, 0);
        let (recognized, polled) = usual_and_polled(BOUNDS, &octets, usual);
        if let Some(header) = recognized {
            let skipped = None;
            prop_assert_eq!(polled, Ok(Progress::Message(Message { header, skipped })));
        }
    }
}

#[test]
fn a_reader_with_kept_octets_expects_no_usual_message() {
    let mut reader = MessageReader::new(BOUNDS, Frame::new(0, usize::MAX));
    let mut frame = Frame::new(4 << 10, usize::MAX);
    let octets = request(3);
    frame
        .extend_from_slice(&octets[..30])
        .expect("there is room");
    let polled = reader.poll(&Negotiation::default(), &mut frame);
    assert_eq!(
        polled,
        Ok(Progress::Missing {
            total: octets.len()
        })
    );
    reader.suspend(&mut frame, false).expect("there is memory");
    assert!(!reader.is_fresh());
}
