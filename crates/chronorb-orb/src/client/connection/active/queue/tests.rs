//! Tests of the queue of messages.

use chronorb_giop::CompletionStatus;

use super::*;
use crate::client::connection::link::comm_failure;

fn queue() -> SendQueue {
    SendQueue::new().expect("a descriptor is left")
}

/// Puts a message in that says its number, for a call that has no time to wait.
fn put(queue: &SendQueue, number: u8) -> bool {
    let mut message = scope::frame();
    message.extend_from_slice(&[number]).expect("there is room");
    queue.put(&mut message, Some(number.into()), None)
}

const QUEUED: Option<UnsentMessage> = Some(UnsentMessage {
    failure: Failure::NotProcessed,
    is_begun: false,
});

fn begun(failure: Failure) -> Option<UnsentMessage> {
    Some(UnsentMessage {
        failure,
        is_begun: true,
    })
}

fn next(queue: &SendQueue) -> Option<Frame> {
    queue.next(false)
}

/// Sends all there is; the numbers of the messages.
fn send_all(queue: &SendQueue) -> Vec<u8> {
    let sent = std::iter::from_fn(|| {
        let frame = next(queue)?;
        let number = frame.as_slice()[0];
        queue.sent(frame);
        Some(number)
    });
    sent.collect()
}

#[test]
fn messages_leave_in_the_order_in_which_they_came() {
    let queue = queue();
    for number in [3, 1, 2] {
        assert!(put(&queue, number));
    }
    assert_eq!(send_all(&queue), [3, 1, 2]);
    assert!([1, 2, 3].iter().all(|call| !queue.has(*call)));
}

#[test]
fn a_message_is_taken_back_unless_a_part_of_it_was_sent() {
    let queue = queue();
    for number in 1..=4 {
        put(&queue, number);
    }
    assert_eq!(queue.take_back(3), QUEUED);
    assert_eq!(queue.take_back(3), None);
    // The peer takes nothing, and then a part of what is first by then.
    let first = next(&queue).expect("there are some");
    assert!(!queue.put_back(first, false));
    assert_eq!(queue.take_back(1), QUEUED);
    let second = next(&queue).expect("there are some");
    assert!(!queue.put_back(second, true));
    assert_eq!(queue.take_back(2), begun(Failure::NotProcessed));
    assert!(next(&queue).is_none(), "nothing goes before its rest");
    assert_eq!(queue.take_back(4), QUEUED);
}

#[test]
fn a_message_that_is_being_sent_when_its_caller_leaves_is_sent_whole_or_not_at_all() {
    for (is_begun, ends) in [(false, false), (true, true)] {
        let queue = queue();
        put(&queue, 1);
        put(&queue, 2);
        let first = next(&queue).expect("there are some");
        assert_eq!(queue.take_back(1), None, "the thread does not know yet");
        assert_eq!(queue.put_back(first, is_begun), ends);
        if !ends {
            assert_eq!(send_all(&queue), [2]);
        }
    }
    let queue = queue();
    put(&queue, 1);
    put(&queue, 2);
    let first = next(&queue).expect("there are some");
    assert_eq!(queue.take_back(1), None);
    queue.sent(first);
    let second = next(&queue).expect("there is one more");
    assert!(!queue.put_back(second, true), "its caller is still there");
}

#[test]
fn what_ended_the_connection_is_told_to_the_caller_whose_message_it_met() {
    let queue = queue();
    put(&queue, 1);
    put(&queue, 2);
    let why = comm_failure(CompletionStatus::No).into();
    let first = next(&queue).expect("there are some");
    queue.fail(first, true, why);
    assert_eq!(queue.take_back(1), begun(why));
    assert_eq!(queue.take_back(2), QUEUED);
}

#[test]
fn there_is_room_again_when_a_message_has_gone_or_was_taken_back() {
    let queue = queue();
    let full = MAX_MESSAGES as u8;
    assert!((0..full).all(|number| put(&queue, number)));
    assert!(!put(&queue, full));
    let told = queue.room.get();
    assert_eq!(queue.take_back(5), QUEUED);
    assert_ne!(
        queue.room.get(),
        told,
        "a thread that waits for room is woken"
    );
    assert!(put(&queue, full));
    let first = next(&queue).expect("there are many");
    assert!(!put(&queue, full), "it has not gone yet");
    queue.sent(first);
    assert!(put(&queue, full));
}

#[test]
fn the_thread_is_woken_once_and_only_where_it_sleeps() {
    let queue = queue();
    put(&queue, 1);
    assert!(!queue.wake.drain(), "it has not slept yet");
    assert_eq!(send_all(&queue), [1]);
    assert!(queue.next(true).is_none());
    put(&queue, 2);
    put(&queue, 3);
    assert!(queue.wake.drain());
    assert_eq!(send_all(&queue), [2, 3]);
    assert!(queue.next(true).is_none());
    queue.stay_awake();
    put(&queue, 4);
    assert!(!queue.wake.drain(), "it looks for itself");
}

#[test]
fn great_frames_are_kept_for_a_few_messages_only() {
    let queue = queue();
    for number in 0..MAX_MESSAGES as u8 {
        let mut message = Frame::new(SMALL_FRAME + 1, SMALL_FRAME + 1);
        queue.put(&mut message, Some(number.into()), None);
    }
    for call in 0..MAX_MESSAGES as u32 {
        queue.take_back(call);
    }
    assert_eq!(queue.line.lock().spare_frames.len(), KEPT_FRAMES);
}
