//! `SIGINT` and `SIGTERM`, each in a program of its own: this one, started once more.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use chronorb_rt::{Deadline, Termination};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

use crate::again::run;

fn send_to_self(signal: Signal) {
    kill_process(getpid(), signal).unwrap();
}

fn a_minute() -> Option<Deadline> {
    Some(Deadline::after(Duration::from_secs(60)))
}

fn is_readable(termination: &Termination) -> bool {
    let fd = termination.fd();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
}

#[test]
fn a_request_is_seen_by_everyone_and_stays() {
    let status = run(a_request_is_seen_by_everyone_and_stays, || {
        let termination = Termination::install().unwrap();
        assert!(!termination.requested());
        assert!(!is_readable(termination));
        assert!(!termination.wait(Some(Deadline::after(Duration::from_micros(1)))));

        send_to_self(Signal::TERM);
        assert!(termination.wait(a_minute()));
        assert!(termination.wait(None));
        assert!(termination.requested());
        assert!(is_readable(termination));
        assert!(std::ptr::eq(termination, Termination::install().unwrap()));

        send_to_self(Signal::TERM);
        assert!(termination.requested());
    });
    assert!(status.is_none_or(|status| status.success()));
}

#[test]
fn a_waiting_thread_is_woken() {
    let status = run(a_waiting_thread_is_woken, || {
        let termination = Termination::install().unwrap();
        let waiting = std::thread::spawn(|| termination.wait(a_minute()));
        send_to_self(Signal::INT);
        assert!(waiting.join().unwrap());
    });
    assert!(status.is_none_or(|status| status.success()));
}

#[test]
fn the_second_interrupt_ends_a_program_that_is_stuck() {
    let status = run(the_second_interrupt_ends_a_program_that_is_stuck, || {
        let termination = Termination::install().unwrap();
        send_to_self(Signal::INT);
        assert!(termination.wait(a_minute()));
        // Looking once more must not catch the signal again.
        Termination::install().unwrap();
        send_to_self(Signal::INT);
        unreachable!("the second signal has ended the program");
    });
    assert!(status.is_none_or(|status| status.signal() == Some(Signal::INT.as_raw())));
}
