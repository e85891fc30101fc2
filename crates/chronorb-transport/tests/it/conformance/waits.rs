//! Waiting, and being called from it, on the side that accepts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chronorb_rt::{Kick, thread_id};
use chronorb_transport::{Carriage, Connection, Event, Interest, IoError, Reactor};

use super::subject::{Subject, message, patience, receive, soon};

pub(crate) fn receiving_ends_at_the_deadline_and_can_go_on(subject: &Subject) {
    let (near, far) = subject.pair();
    let mut room = [0; 100];
    assert_eq!(far.recv(&mut room, soon()), Err(IoError::TimedOut));
    let past = soon();
    while !past.has_passed() {
        assert_eq!(far.recv(&mut room, past), Err(IoError::TimedOut));
    }
    assert_eq!(far.recv(&mut room, past), Err(IoError::TimedOut));
    near.send_all(&message(30, 1), patience())
        .expect("it is taken");
    assert!(receive(&*far, 30) == message(30, 1));
}

pub(crate) fn a_wait_with_a_limit_ends_by_it(subject: &Subject) {
    let (near, far) = subject.pair();
    let limit = Some(Duration::from_millis(5));
    assert_eq!(far.recv_until_interrupted(&mut [0; 100], limit), Ok(None));
    near.send_all(&message(30, 1), patience())
        .expect("it is taken");
    let mut room = [0; 100];
    // The carrier of the octets may need its time.
    let limit = Some(Duration::from_secs(60));
    assert_eq!(far.recv_until_interrupted(&mut room, limit), Ok(Some(30)));
}

pub(crate) fn where_nothing_is_there_nobody_waits(subject: &Subject) {
    let (near, far) = subject.pair();
    let mut room = [0; 100];
    assert_eq!(far.try_recv(&mut room), Err(IoError::WouldBlock));
    near.send_all(&message(30, 1), patience())
        .expect("it is taken");
    assert!(receive(&*far, 30) == message(30, 1));
    assert_eq!(far.try_recv(&mut room), Err(IoError::WouldBlock));
}

pub(crate) fn every_edge_is_told(subject: &Subject) {
    let (near, far) = subject.pair();
    let reactor = Reactor::new().expect("a descriptor is free");
    reactor.add(&far, 5, Interest::Read).expect("it is open");
    for round in 1..50 {
        // Two sendings may come by one edge.
        for part in 0..2 {
            near.send_all(&message(30 + round, part), patience())
                .expect("it is taken");
        }
        let mut left = 2 * (30 + round);
        while left > 0 {
            assert_eq!(event(&reactor).token, 5);
            left -= read_to_the_edge(&*far);
        }
    }
}

/// Reads the available octets as a thread does that got an edge.
fn read_to_the_edge(connection: &dyn Connection) -> usize {
    let is_stream = connection.carriage() == Carriage::Stream;
    let mut room = [0; 64];
    let mut received = 0;
    loop {
        match connection.try_recv(&mut room) {
            Ok(n) => {
                received += n;
                if is_stream && n < room.len() {
                    return received;
                }
            }
            Err(IoError::WouldBlock) => return received,
            Err(error) => panic!("it is open, but: {error}"),
        }
    }
}

/// The next event.
pub(crate) fn event(reactor: &Reactor) -> Event {
    let a_minute = Some(Duration::from_secs(60));
    let event = reactor.wait(a_minute).expect("it is whole");
    event.expect("an edge is told within a minute")
}

pub(crate) fn an_interrupted_connection_lets_nobody_wait(subject: &Subject) {
    let (near, far) = subject.pair();
    let mut room = [0; 100];
    far.interrupt();
    assert_eq!(far.recv_until_interrupted(&mut room, None), Ok(None));
    assert_eq!(far.recv_until_interrupted(&mut room, None), Ok(None));
    near.send_all(&message(30, 1), patience())
        .expect("it is taken");
    far.resume();
    assert_eq!(far.recv_until_interrupted(&mut room, None), Ok(Some(30)));
    assert!(room[..30] == message(30, 1));
}

pub(crate) fn a_thread_that_waits_already_is_called_by_a_kick(subject: &Subject) {
    let (near, far) = subject.pair();
    called_by_a_kick(&*near, &*far);
}

/// Calls a thread that waits on `called`, twice, and lets it receive what comes after that.
pub(crate) fn called_by_a_kick(other: &dyn Connection, called: &dyn Connection) {
    let kick = Kick::install().expect("the signal is not handled elsewhere");
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            kick.block();
            kick.let_through();
            let tid = thread_id();
            tell.send(tid).expect("it is awaited");
            let mut room = [0; 100];
            let outcome = called.recv_until_interrupted(&mut room, None);
            assert_eq!(outcome, Ok(None));
            called.resume();
            tell.send(tid).expect("it is awaited");
            let outcome = called.recv_until_interrupted(&mut room, None);
            kick.hold_off();
            (outcome, room)
        });
        let tid = told.recv().expect("it waits");
        until_it_sleeps(tid);
        called.interrupt();
        assert!(kick.send(tid));
        told.recv().expect("it was called");
        other
            .send_all(&message(30, 1), patience())
            .expect("it is taken");
        let (outcome, room) = waiting.join().expect("no panic");
        assert_eq!(outcome, Ok(Some(30)));
        assert!(room[..30] == message(30, 1));
    });
}

pub(crate) fn signals_do_not_keep_a_receiver_from_its_end(subject: &Subject) {
    let (near, far) = subject.pair();
    for end in [&near, &far] {
        let received = under_signals(|| end.recv(&mut [0; 100], soon()));
        assert_eq!(received, Err(IoError::TimedOut));
    }
}

/// Runs `wait` on a thread that gets a signal, whose handler has `SA_RESTART`, whenever it sleeps.
/// A wait that began anew with its whole time after each of them would not end.
pub(crate) fn under_signals<T: Send>(wait: impl FnOnce() -> T + Send) -> T {
    let kick = Kick::install().expect("the signal is not handled elsewhere");
    let has_ended = AtomicBool::new(false);
    let (tids, tid) = mpsc::channel();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            kick.block();
            kick.let_through();
            tids.send(thread_id()).expect("it is awaited");
            let outcome = wait();
            kick.hold_off();
            has_ended.store(true, Ordering::Release);
            outcome
        });
        let tid = tid.recv().expect("it waits");
        let until = patience();
        while !has_ended.load(Ordering::Acquire) {
            assert!(!until.has_passed(), "signals keep the thread waiting");
            until_it_sleeps(tid);
            kick.send(tid);
        }
        waiting.join().expect("no panic")
    })
}

pub(crate) fn shutting_down_wakes_who_waits(subject: &Subject) {
    let (_near, far) = subject.pair();
    woken_by_shutdown(&*far, |far| far.recv(&mut [0; 100], patience()).map(|_| ()));
    let (_near, far) = subject.pair();
    woken_by_shutdown(&*far, |far| {
        far.recv_until_interrupted(&mut [0; 100], None).map(|_| ())
    });
}

/// Has a thread wait so on a connection that nothing comes by, and shuts that down.
pub(crate) fn woken_by_shutdown(
    connection: &dyn Connection,
    wait: impl FnOnce(&dyn Connection) -> Result<(), IoError> + Send,
) {
    let (tids, tid) = mpsc::channel();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            tids.send(thread_id()).expect("it is awaited");
            wait(connection)
        });
        until_it_sleeps(tid.recv().expect("it waits"));
        connection.shutdown();
        let outcome = waiting.join().expect("no panic");
        let error = outcome.expect_err("nothing can come any more");
        assert!(
            !matches!(error, IoError::WouldBlock | IoError::TimedOut),
            "{error}"
        );
    });
}

pub(crate) fn a_connection_with_something_to_say_is_stale(subject: &Subject) {
    let (near, far) = subject.pair();
    assert!(!far.is_stale());
    near.send_all(&message(30, 1), patience())
        .expect("it is taken");
    // It may still be on its way.
    let until = patience();
    while !far.is_stale() && !until.has_passed() {
        thread::yield_now();
    }
    assert!(far.is_stale());
    assert!(receive(&*far, 30) == message(30, 1), "nothing is lost");
    assert!(!far.is_stale());
    far.shutdown();
    assert!(far.is_stale());
}

/// Returns when the thread `tid` is asleep in a system call, as the kernel shows it.
fn until_it_sleeps(tid: u32) {
    loop {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")) else {
            // It has ended, and will say why.
            return;
        };
        let (_, after_name) = stat.rsplit_once(") ").expect("it has a name");
        if after_name.starts_with('S') {
            return;
        }
        thread::yield_now();
    }
}
