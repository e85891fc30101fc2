//! Spare frames of a lane.

use chronorb_cdr::Frame;
use chronorb_rt::Baton;

/// A few spare frames of a lane, for threads that leave theirs to a large message that is still
/// arriving. They save repeated allocation. No thread waits for them: if another thread has the
/// set, the thread allocates a new frame.
pub(super) struct Spares(Baton<Vec<Frame>>);

impl Spares {
    pub(super) fn new() -> Self {
        Self(Baton::new(Vec::with_capacity(MAX_SPARES)))
    }

    /// Returns an empty frame.
    pub(super) fn take(&self) -> Frame {
        let spare = self.0.claim().and_then(|mut spares| spares.pop());
        spare.unwrap_or_else(|| Frame::new(FRAME_CAPACITY, usize::MAX))
    }

    /// Takes a frame back. A frame that is too small or too large for most threads is freed.
    pub(super) fn give(&self, mut frame: Frame) {
        if !(FRAME_CAPACITY..=MAX_CAPACITY).contains(&frame.capacity()) {
            return;
        }
        if let Some(mut spares) = self.0.claim()
            && spares.len() < MAX_SPARES
        {
            frame.clear();
            spares.push(frame);
        }
    }
}

const MAX_SPARES: usize = 4;
const MAX_CAPACITY: usize = 4 << 20;

/// The octets that the frames of a thread hold without growing.
pub(super) const FRAME_CAPACITY: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_empty() {
        let spares = Spares::new();
        let mut frame = Frame::new(2 * FRAME_CAPACITY, usize::MAX);
        frame.commit(1);
        spares.give(frame);
        let frame = spares.take();
        assert_eq!((frame.len(), frame.capacity()), (0, 2 * FRAME_CAPACITY));
        assert_eq!(spares.take().capacity(), FRAME_CAPACITY, "a new one");
    }

    #[test]
    fn few_frames_of_moderate_size_are_kept() {
        let spares = Spares::new();
        spares.give(Frame::new(FRAME_CAPACITY - 1, usize::MAX));
        spares.give(Frame::new(MAX_CAPACITY + 1, usize::MAX));
        for _ in 0..=MAX_SPARES {
            spares.give(Frame::new(2 * FRAME_CAPACITY, usize::MAX));
        }
        let taken = (0..=MAX_SPARES).map(|_| spares.take().capacity());
        let kept = taken.filter(|&capacity| capacity == 2 * FRAME_CAPACITY);
        assert_eq!(kept.count(), MAX_SPARES);
    }

    #[test]
    fn nobody_waits_for_spares() {
        let spares = Spares::new();
        spares.give(Frame::new(2 * FRAME_CAPACITY, usize::MAX));
        let held = spares.0.claim();
        assert_eq!(spares.take().capacity(), FRAME_CAPACITY);
        drop(held);
    }
}
