//! What the thread of a class is told.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chronorb_rt::Wake;

/// What the thread of a class is told, and who does its work meanwhile.
#[derive(Debug)]
pub(super) struct Control {
    wake: Wake,
    order: AtomicUsize,
    /// Acceptors that others wait for, who do the protocol work.
    attendants: AtomicUsize,
    has_ended: AtomicBool,
}

/// How long a thread goes on.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Order {
    /// As long as the class is there.
    Work = 0,
    /// Until the last slot is free: nobody has the class any more.
    Finish = 1,
    /// Until peers have all that was sent.
    Hurry = 2,
}

impl Control {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            wake: Wake::new()?,
            order: AtomicUsize::new(0),
            attendants: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Orders the thread something; an order that says less changes nothing.
    pub(super) fn order(&self, order: Order) {
        self.order.fetch_max(order as usize, Ordering::Release);
        self.wake.notify();
    }

    /// Makes the descriptor unreadable; what the order is has to be looked at after this.
    pub(super) fn listen(&self) {
        self.wake.drain();
    }

    /// What the thread is to do now.
    pub(super) fn present(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Work,
            1 => Order::Finish,
            _ => Order::Hurry,
        }
    }

    /// The thread ends, for the interface fails or it was told to.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether the thread has ended: nothing is to be had of the class any more.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Somebody waits for an acceptor, and does the protocol work from now on.
    pub(super) fn attend(&self) {
        self.attendants.fetch_add(1, Ordering::AcqRel);
    }

    /// Nobody waits for that acceptor any more.
    pub(super) fn leave(&self) {
        if self.attendants.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake.notify();
        }
    }

    /// Whether others do the protocol work.
    pub(super) fn is_attended(&self) -> bool {
        self.attendants.load(Ordering::Acquire) > 0
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
