use std::convert::Infallible;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::MessageType;
use chronorb_giop::connection::{
    Bounds, Message, MessageReader, MessageWriter, Negotiation, Progress, ReadError,
};

/// Reads `data` as the octets of a connection: once as they are, and once in pieces whose lengths
/// the first octets choose, in between which the message is suspended. Both must give the same
/// messages, and stay within bounds.
pub fn message_reader(data: &[u8]) {
    let Some((&[options, count], rest)) = data.split_first_chunk() else {
        return;
    };
    let count = usize::from(count % 16).min(rest.len());
    let (pieces, octets) = rest.split_at(count);
    let whole = read(options, &[], octets);
    let pieced = read(options, pieces, octets);
    write_again(options, &whole.0);
    assert_eq!(whole.1, pieced.1);
    assert_eq!(whole.0.len(), pieced.0.len());
    for (a, b) in whole.0.into_iter().zip(pieced.0) {
        assert_eq!((a.0, a.2), (b.0, b.2));
        if a.2.is_none() {
            assert_eq!(a.1, b.1);
        }
        // How much is kept of a message that is skipped depends on how it arrives.
        let len = a.1.len().min(b.1.len());
        assert_eq!(a.1.get(12..len), b.1.get(12..len));
    }
}

/// Writes whole messages in fragments. They must be read as they were.
fn write_again(options: u8, messages: &[Read]) {
    let writer = MessageWriter::new(usize::from(options));
    for (kind, message, skipped) in messages {
        if skipped.is_some() {
            continue;
        }
        let mut octets = Vec::new();
        let written = writer.write(message, |slices| {
            octets.extend(slices.iter().flat_map(|slice| slice.iter()));
            Ok::<_, Infallible>(())
        });
        assert_eq!(written, Ok(()));
        // GIOPlite is read from here on, as the peer that sent the message may.
        let (read, error) = read(options | 4, &[], &octets);
        assert_eq!(error, None);
        let mut expected = message.clone();
        if octets != expected && expected.starts_with(b"GIOP") {
            // The headers of fragments have no reserved flags.
            expected[FLAGS] &= 0b11;
        }
        assert!(read == [(*kind, expected, None)], "{read:?}");
    }
}

type Read = (MessageType, Vec<u8>, Option<CdrError>);

fn read(options: u8, pieces: &[u8], mut octets: &[u8]) -> (Vec<Read>, Option<ReadError>) {
    let bounds = Bounds {
        message: MAX_MESSAGE,
        fragmented: 3,
        fragment_octets: 2 * MAX_MESSAGE,
        skips: options & 1 != 0,
    };
    let negotiation = Negotiation::new(options & 2 != 0);
    if options & 4 != 0 {
        negotiation.agree();
    }
    let mut reader = MessageReader::new(bounds, Frame::new(0, usize::MAX));
    let mut frame = Frame::new(256, usize::MAX);
    let mut pieces = pieces.iter().cycle();
    let mut messages = Vec::new();
    let mut step = || -> Result<bool, ReadError> {
        let total = match reader.poll(&negotiation, &mut frame)? {
            Progress::Message(message) => {
                if let Some(Message { header, skipped }) = reader.join(message, &mut frame)? {
                    assert!(skipped.is_some() || header.message_len() == frame.len());
                    negotiation.learn(header, &frame);
                    messages.push((header.kind, frame.as_slice().to_vec(), skipped));
                }
                frame.clear();
                return Ok(true);
            }
            Progress::Missing { total } => total,
        };
        assert!(total > frame.len(), "all that is needed is there");
        let piece = pieces.next();
        let Some(room) = reader.room(&mut frame, total)? else {
            return Ok(true);
        };
        let most = piece.map_or(usize::MAX, |piece| 1 + usize::from(piece & 31).pow(2));
        let n = most.min(room.len()).min(octets.len());
        let (arrived, later) = octets.split_at(n);
        room[..n].copy_from_slice(arrived);
        octets = later;
        frame.commit(n);
        if piece.is_some_and(|piece| piece & 32 != 0) {
            reader.suspend(&mut frame, piece.is_some_and(|piece| piece & 64 != 0))?;
            assert!(frame.is_empty());
        }
        assert!(reader.kept() <= MAX_KEPT);
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

/// The octet of flags in a header.
const FLAGS: usize = 6;
const MAX_MESSAGE: usize = 1 << 12;
/// Frames are at most doubled, and have room for what follows a message.
const MAX_KEPT: usize = 1 << 16;
