//! Commands to the thread of a class.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chronorb_rt::Wake;

/// The command to the thread of a class, and the count of threads that replace it.
#[derive(Debug)]
pub(super) struct Control {
    wake: Wake,
    order: AtomicUsize,
    /// The number of acceptors that lane threads wait for. These threads do the protocol work.
    attendants: AtomicUsize,
    has_ended: AtomicBool,
}

/// The condition under which the thread ends.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Order {
    /// Never; the class is in use.
    Work = 0,
    /// When the last slot is free. All handles of the class are dropped.
    Finish = 1,
    /// When the peers have acknowledged all sent data.
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

    /// Sets the condition, unless a stronger one is set already.
    pub(super) fn order(&self, order: Order) {
        self.order.fetch_max(order as usize, Ordering::Release);
        self.wake.notify();
    }

    /// Makes the descriptor unreadable. The condition must be read again afterwards.
    pub(super) fn listen(&self) {
        self.wake.drain();
    }

    /// Returns the present condition.
    pub(super) fn present(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Work,
            1 => Order::Finish,
            _ => Order::Hurry,
        }
    }

    /// Records that the thread ends, because the interface failed or it was commanded to.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Returns whether the thread has ended. The class is unusable then.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Records that a thread waits for an acceptor and does the protocol work from now on.
    pub(super) fn attend(&self) {
        self.attendants.fetch_add(1, Ordering::AcqRel);
    }

    /// Records that no thread waits for that acceptor any more.
    pub(super) fn leave(&self) {
        if self.attendants.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake.notify();
        }
    }

    /// Returns whether a single acceptor is waited for.
    pub(super) fn is_attended_by_one(&self) -> bool {
        self.attendants.load(Ordering::Acquire) == 1
    }

    /// Returns whether lane threads do the protocol work.
    pub(super) fn is_attended(&self) -> bool {
        self.attendants.load(Ordering::Acquire) > 0
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
