//! The octets that all threads of a server have copied.
//!
//! Only a thread itself can count the octets that it copies. So each thread notes them at every
//! stage of a request, in a row of its own; that neither allocates nor locks.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use chronorb_cdr::octets_copied;

/// Notes the octets that the calling thread has copied so far.
///
/// # Panics
/// Panics if there are more threads than rows.
pub(super) fn note() {
    let row = ROW.get().unwrap_or_else(|| {
        let row = NEXT.fetch_add(1, Ordering::Relaxed);
        ROW.set(Some(row));
        row
    });
    let row = ROWS
        .get(row)
        .expect("no pool of the experiment has so many threads");
    row.store(octets_copied(), Ordering::Release);
}

/// Returns the sum of the octets that all threads noted last.
pub(super) fn sum() -> u64 {
    ROWS.iter().map(|row| row.load(Ordering::Acquire)).sum()
}

static ROWS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ROW: Cell<Option<usize>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use std::thread;

    use chronorb_cdr::Frame;

    use super::*;

    #[test]
    fn what_each_thread_noted_last_is_summed() {
        let copy_and_note = |octets: usize| {
            let mut frame = Frame::new(1000, 1000);
            let mut copy = |octets| frame.extend_from_slice(&vec![1; octets]).unwrap();
            copy(50);
            note();
            copy(octets);
            note();
            note();
        };
        let before = sum();
        for octets in [10, 100] {
            thread::spawn(move || copy_and_note(octets)).join().unwrap();
        }
        assert_eq!(sum() - before, 210);
    }
}
