//! What all threads of a server have done.
//!
//! Threads count for themselves, and nobody else can look. So each one notes what it has done, at
//! every stage of a request, in a row of its own; noting neither allocates nor locks.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::counts::Counts;

/// Notes what the calling thread has done since it noted first.
///
/// # Panics
/// Where more threads note than there are rows.
pub(super) fn note() {
    let now = Counts::of_thread();
    let (row, first) = ENTRY.get().unwrap_or_else(|| {
        let entry = (NEXT.fetch_add(1, Ordering::Relaxed), now);
        ENTRY.set(Some(entry));
        entry
    });
    let row = ROWS
        .get(row)
        .expect("no pool of the experiment has so many threads");
    for (place, count) in row.iter().zip(now.since(first).to_array()) {
        place.store(count, Ordering::Release);
    }
}

/// What all threads had done together when each of them last noted it.
pub(super) fn sum() -> Counts {
    let column = |n: usize| ROWS.iter().map(|row| row[n].load(Ordering::Acquire)).sum();
    Counts::from_array(std::array::from_fn(column))
}

static ROWS: [[AtomicU64; Counts::KINDS]; 64] =
    [const { [const { AtomicU64::new(0) }; Counts::KINDS] }; 64];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The thread's row, and what it had done before it came to its first request.
    static ENTRY: Cell<Option<(usize, Counts)>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use std::thread;

    use chronorb_cdr::Frame;

    use super::*;

    #[test]
    fn what_threads_did_between_their_first_and_their_last_note_is_summed() {
        let copy_and_note = |octets: usize| {
            let mut frame = Frame::new(1000, 1000);
            let mut copy = |octets| frame.extend_from_slice(&vec![1; octets]).unwrap();
            copy(50);
            note();
            copy(octets);
            note();
            note();
        };
        let before = sum().octets_copied;
        for octets in [10, 100] {
            thread::spawn(move || copy_and_note(octets)).join().unwrap();
        }
        assert_eq!(sum().octets_copied - before, 110);
    }
}
