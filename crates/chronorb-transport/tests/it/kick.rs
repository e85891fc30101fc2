//! Waking one chosen thread of those that wait on a reactor.

use std::error::Error;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chronorb_rt::{Kick, thread_id};
use chronorb_transport::{Interest, Reactor};

const A_MINUTE: Option<Duration> = Some(Duration::from_secs(60));
const NOW: Option<Duration> = Some(Duration::ZERO);

type Result = std::result::Result<(), Box<dyn Error>>;

/// Runs a test on a thread that can be kicked, so that the test's own thread stays as it was.
fn on_a_thread_that_can_be_kicked(test: impl FnOnce(Kick) + Send) -> Result {
    let kick = Kick::install()?;
    thread::scope(|scope| {
        scope.spawn(move || {
            kick.block();
            test(kick);
        });
    });
    Ok(())
}

/// Returns when the thread `tid` is asleep in a system call, as the kernel shows it.
fn until_it_sleeps(tid: u32) {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        let (_, after_name) = stat.rsplit_once(") ").unwrap();
        if after_name.starts_with('S') {
            return;
        }
        thread::yield_now();
    }
}

#[test]
fn a_kick_before_the_wait_ends_it_as_soon_as_it_begins() -> Result {
    on_a_thread_that_can_be_kicked(|kick| {
        let reactor = Reactor::new().unwrap();
        assert!(kick.send(thread_id()));
        assert_eq!(reactor.wait_or_kick(None).unwrap(), None);
    })
}

#[test]
fn a_kick_during_the_wait_ends_it() -> Result {
    on_a_thread_that_can_be_kicked(|kick| {
        let reactor = Reactor::new().unwrap();
        let tid = thread_id();
        thread::scope(|scope| {
            scope.spawn(move || {
                until_it_sleeps(tid);
                assert!(kick.send(tid));
            });
            assert_eq!(reactor.wait_or_kick(None).unwrap(), None);
        });
    })
}

#[test]
fn a_kick_after_the_wait_is_for_the_next_one() -> Result {
    on_a_thread_that_can_be_kicked(|kick| {
        let reactor = Reactor::new().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        reactor.add(&far, 7, Interest::Everyone).unwrap();
        drop(near);

        assert!(kick.send(thread_id()));
        let event = reactor.wait_or_kick(None).unwrap();
        assert_eq!(
            event.map(|event| event.token),
            Some(7),
            "the event is first"
        );
        drop(far);
        assert_eq!(reactor.wait_or_kick(NOW).unwrap(), None, "takes no kick");
        assert_eq!(reactor.wait_or_kick(None).unwrap(), None);
    })
}

#[test]
fn several_kicks_may_become_one() -> Result {
    on_a_thread_that_can_be_kicked(|kick| {
        let reactor = Reactor::new().unwrap();
        assert!(kick.send(thread_id()) && kick.send(thread_id()));
        assert_eq!(reactor.wait_or_kick(None).unwrap(), None);

        let (near, far) = UnixStream::pair().unwrap();
        reactor.add(&far, 7, Interest::Read).unwrap();
        drop(near);
        let event = reactor.wait_or_kick(None).unwrap();
        assert_eq!(event.map(|event| event.token), Some(7));
    })
}

#[test]
fn events_are_told_as_without_kicks() -> Result {
    let reactor = Reactor::new()?;
    let (near, far) = UnixStream::pair()?;
    reactor.add(&far, 7, Interest::ReadWrite)?;
    drop(near);
    let event = reactor.wait_or_kick(NOW)?.expect("there is an event");
    assert_eq!(event.token, 7);
    assert!(event.writable && event.hang_up);
    assert_eq!(reactor.wait_or_kick(NOW)?, None);
    Ok(())
}

#[test]
fn only_the_chosen_thread_is_woken() -> Result {
    let kick = Kick::install()?;
    let reactor = Reactor::new()?;
    let (near, far) = UnixStream::pair()?;
    reactor.add(&far, 7, Interest::Read)?;
    let waiting = || {
        kick.block();
        reactor.wait_or_kick(A_MINUTE).unwrap()
    };
    thread::scope(|scope| {
        let (tids, tid) = mpsc::channel();
        let wait = |tids: mpsc::Sender<u32>| {
            tids.send(thread_id()).unwrap();
            waiting()
        };
        let second_tids = tids.clone();
        let first = scope.spawn(move || wait(tids));
        let first_tid = tid.recv().unwrap();
        let second = scope.spawn(move || wait(second_tids));
        let second_tid = tid.recv().unwrap();
        until_it_sleeps(first_tid);
        until_it_sleeps(second_tid);

        assert!(kick.send(second_tid));
        assert_eq!(second.join().unwrap(), None);
        until_it_sleeps(first_tid);
        drop(near);
        assert_eq!(first.join().unwrap().map(|event| event.token), Some(7));
    });
    Ok(())
}

#[test]
fn of_a_thousand_kicks_none_is_lost() -> Result {
    const KICKS: u32 = 1000;
    on_a_thread_that_can_be_kicked(|kick| {
        let reactor = Reactor::new().unwrap();
        let tid = thread_id();
        let (mailbox, taken) = (&AtomicU32::new(0), &AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(move || {
                for letter in 1..=KICKS {
                    mailbox.store(letter, Ordering::Release);
                    assert!(kick.send(tid));
                    // Every second one is sent as the thread is about to wait, the others while
                    // it does.
                    while taken.load(Ordering::Acquire) != letter {
                        thread::yield_now();
                    }
                    if letter % 2 == 0 {
                        until_it_sleeps(tid);
                    }
                }
            });
            // Without a time-out: a lost kick would hold the test up for ever.
            while taken.load(Ordering::Relaxed) != KICKS {
                assert_eq!(reactor.wait_or_kick(None).unwrap(), None);
                taken.store(mailbox.load(Ordering::Acquire), Ordering::Release);
            }
        });
    })
}

#[test]
fn a_kick_for_a_thread_that_is_gone_says_so() -> Result {
    let kick = Kick::install()?;
    assert!(!kick.send(0));
    assert!(!kick.send(u32::MAX));
    let tid = thread::spawn(thread_id).join().unwrap();
    // The kernel keeps the id for a moment after the end.
    while kick.send(tid) {
        thread::yield_now();
    }
    Ok(())
}

#[test]
fn a_thread_that_cannot_be_kicked_notices_nothing() -> Result {
    let kick = Kick::install()?;
    assert!(kick.send(thread_id()));
    assert_eq!(Reactor::new()?.wait_or_kick(NOW)?, None);
    Ok(())
}
