//! Allocations of asynchronous calls: none per call, except for their handlers and occasionally for
//! a future.

use chronorb_orb::{Object, PendingReply};
use chronorb_rt::{Deadline, ThreadCounts, counts_of_others};
use std::sync::Arc;
use std::task::Poll;

use crate::alone;
use crate::support::asynchronous::{Alarm, STRATEGIES, begin_add, poll_for, poll_once};
use crate::support::raw_server::{Peer, object_at, raw_server};
use crate::support::{PATIENCE, orb_with};

/// The number of calls under way at a time.
const WINDOW: usize = 8;
/// The number of rounds of such calls, before counting and while counting.
const ROUNDS: usize = 50;

fn window(object: &Object) -> [PendingReply<i32>; WINDOW] {
    [(); WINDOW].map(|()| begin_add(object, 1, 2).expect("it begins"))
}

fn wait_for_all(object: &Object) {
    for pending in window(object) {
        assert_eq!(pending.wait(), Ok(3));
    }
}

fn look_for_all(object: &Object) {
    for mut pending in window(object).into_iter().rev() {
        assert_eq!(poll_for(&mut pending), Ok(3));
    }
}

fn await_all(object: &Object, alarm: &Arc<Alarm>) {
    for mut pending in window(object) {
        loop {
            let seen = alarm.0.get();
            match poll_once(&mut pending, alarm) {
                Poll::Ready(result) => {
                    assert_eq!(result, Ok(3));
                    break;
                }
                Poll::Pending => alarm.0.wait_while(seen, Deadline::after(PATIENCE)),
            };
        }
    }
}

#[test]
fn no_call_allocates_for_itself() {
    let _alone = alone();
    for strategy in STRATEGIES {
        // Its threads are not counted.
        let server = raw_server(Peer::answer_all);
        let client = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&client, server.address);
        let alarm = Arc::new(Alarm::default());
        let ways: [(&str, &dyn Fn()); 3] = [
            ("waiting", &|| wait_for_all(&object)),
            ("looking", &|| look_for_all(&object)),
            ("awaiting", &|| await_all(&object, &alarm)),
        ];
        for (way, take) in ways {
            for _ in 0..ROUNDS {
                take();
            }
            let others = counts_of_others();
            let own = ThreadCounts::of_this_thread();
            for _ in 0..ROUNDS {
                take();
            }
            let own = ThreadCounts::of_this_thread() - own;
            let others = counts_of_others() - others;
            let (of_own, of_others) = (own.lock_operations, others.lock_operations);
            let calls = ROUNDS * WINDOW;
            println!(
                "{strategy:?}, {way}: {of_own} and {of_others} lock operations in {calls} calls"
            );
            // Frames are made until there are as many as replies can wait at a time. A future that
            // begins just when the one before it in the same slot ends needs another completion
            // object.
            let frames = WINDOW as u64;
            let meetings = if way == "awaiting" {
                calls as u64 / 10
            } else {
                0
            };
            let allocations = own.allocations + others.allocations;
            assert!(
                allocations <= frames + meetings,
                "{strategy:?}, {way}: {allocations}"
            );
        }
    }
}
