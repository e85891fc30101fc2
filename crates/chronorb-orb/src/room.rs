//! Room in a frame for a message that arrives, the same for clients and servers.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hint::black_box;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::HEADER_LEN;

/// Room to receive the rest of a message of `total` octets, the first of which are in the frame,
/// and a little more, so that a read that does not fill it shows that nothing is left. Before the
/// header is there, when `total` says no more than that, it is all the frame has, and `least`
/// octets.
///
/// A frame that once held such a message has room for all of it. Otherwise room grows with what
/// has arrived, not with what a header promises: the frame is at most doubled.
///
/// # Errors
/// [`CdrError::FrameFull`] where that is over the frame's limit; [`CdrError::OutOfMemory`].
pub(crate) fn room_for(
    frame: &mut Frame,
    total: usize,
    least: usize,
) -> Result<&mut [u8], CdrError> {
    let arrived = frame.len();
    if arrived < HEADER_LEN {
        return frame.spare_mut(least);
    }
    let missing = total.saturating_sub(arrived);
    let room = frame.spare_mut(missing.min(arrived.max(least)))?;
    let len = room.len().min(missing.saturating_add(least));
    Ok(&mut room[..len])
}

/// Whether there is memory for a block of so many octets now. It is given back.
pub(crate) fn has_memory_for(octets: usize) -> bool {
    let mut trial = Vec::<u8>::new();
    let reserved = trial.try_reserve_exact(octets);
    // An allocation that nothing looks at could be left out.
    black_box(&mut trial);
    reserved.is_ok()
}

/// What a frame keeps at any rate that once held a great message.
pub(crate) const KEPT_CAPACITY: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_alone_makes_no_room() {
        let mut frame = Frame::new(1 << 10, u32::MAX as usize);
        frame.commit(HEADER_LEN);
        let room = room_for(&mut frame, u32::MAX as usize, 1 << 12).expect("it grows");
        assert!(room.len() <= 1 << 13);
    }

    #[test]
    fn room_is_at_most_doubled_until_all_has_arrived() {
        const TOTAL: usize = 1 << 20;
        let mut frame = Frame::new(1 << 10, usize::MAX);
        frame.commit(HEADER_LEN);
        while frame.len() < TOTAL {
            let before = frame.capacity();
            let room = room_for(&mut frame, TOTAL, 1 << 10)
                .expect("it grows")
                .len();
            assert!(frame.capacity() <= 2 * before.max(1 << 10));
            frame.commit(room);
        }
    }

    #[test]
    fn room_that_is_there_is_taken_as_far_as_the_message_goes() {
        let mut frame = Frame::new(1 << 20, 1 << 20);
        assert_eq!(
            room_for(&mut frame, HEADER_LEN, 100).map(|r| r.len()),
            Ok(1 << 20)
        );
        frame.commit(HEADER_LEN);
        let room = room_for(&mut frame, 1000, 100).map(|r| r.len());
        assert_eq!(room, Ok(1000 - HEADER_LEN + 100));
    }

    #[test]
    fn the_end_of_a_message_needs_no_more_room_than_it_has_octets() {
        let mut frame = Frame::new(1000, 1000);
        frame.commit(990);
        assert_eq!(room_for(&mut frame, 1000, 100).map(|r| r.len()), Ok(10));
    }
}
