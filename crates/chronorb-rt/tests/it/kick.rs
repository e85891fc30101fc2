//! The signal by which threads are woken, in programs of their own: this one, started once more.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use chronorb_rt::{Kick, thread_id};

use crate::again::run;

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn of_the_application(_signal: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Runs `program` in a new process, in which it is the calling test.
fn succeeds<T>(test: T, program: fn()) {
    assert!(run(test, program).is_none_or(|status| status.success()));
}

#[test]
fn a_handler_of_the_application_stays() {
    succeeds(a_handler_of_the_application_stays, || {
        let handler = of_the_application as *const () as libc::sighandler_t;
        // SAFETY: the handler only adds to an atomic.
        unsafe { libc::signal(libc::SIGURG, handler) };
        let refused = Kick::install().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        // SAFETY: the call takes no pointer.
        unsafe { libc::raise(libc::SIGURG) };
        assert_eq!(HANDLED.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn installing_again_is_the_same() {
    succeeds(installing_again_is_the_same, || {
        Kick::install().unwrap();
        let kick = Kick::install().unwrap();
        assert!(kick.send(thread_id()));
    });
}
