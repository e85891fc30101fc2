//! Asynchronous calls as in generated code, and ways to wait for their results.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use chronorb_orb::codegen::v1::{reply_error, unknown_user_exception};
use chronorb_orb::{ConnectionStrategy, Object, Operation, PendingReply, Reply, SystemException};
use chronorb_rt::{Deadline, Gate, PiMutex};

use super::PATIENCE;

pub(crate) const STRATEGIES: [ConnectionStrategy; 4] = [
    ConnectionStrategy::Exclusive,
    ConnectionStrategy::Leader,
    ConnectionStrategy::Thread,
    ConnectionStrategy::Active,
];

fn long(reply: Reply<'_>) -> Result<i32, SystemException> {
    match reply {
        Reply::Normal(mut d) => d.read_i32().map_err(reply_error),
        Reply::UserException(..) => Err(unknown_user_exception()),
    }
}

fn none(reply: Reply<'_>) -> Result<(), SystemException> {
    match reply {
        Reply::Normal(_) => Ok(()),
        Reply::UserException(..) => Err(unknown_user_exception()),
    }
}

pub(crate) fn begin_add(
    object: &Object,
    a: i32,
    b: i32,
) -> Result<PendingReply<i32>, SystemException> {
    let arguments = |e: &mut chronorb_cdr::Encoder<'_>| {
        e.write_i32(a)?;
        e.write_i32(b)
    };
    PendingReply::begin(object, &Operation::twoway("add"), &arguments, long)
}

pub(crate) fn begin_nothing(
    object: &Object,
    name: &'static str,
) -> Result<PendingReply<()>, SystemException> {
    PendingReply::begin(object, &Operation::twoway(name), &|_| Ok(()), none)
}

/// A way to take a result.
pub(crate) type Take = fn(PendingReply<i32>) -> Result<i32, SystemException>;

pub(crate) const WAYS: [(&str, Take); 4] = [
    ("waits", |pending| pending.wait()),
    ("looks", |mut pending| poll_for(&mut pending)),
    ("handler", |pending| {
        let inbox = Inbox::new();
        pending.on_reply(inbox.handler())?;
        let [result] = inbox.take(1).try_into().expect("it is one");
        result
    }),
    ("future", |pending| block_on(pending)),
];

/// Polls until the result is there.
pub(crate) fn poll_for<T>(pending: &mut PendingReply<T>) -> Result<T, SystemException> {
    let deadline = Deadline::after(PATIENCE);
    loop {
        if let Some(result) = pending.try_get() {
            return result;
        }
        assert!(!deadline.has_passed(), "nothing came");
        std::thread::yield_now();
    }
}

/// A queue of a handler's results for the test.
pub(crate) struct Inbox<T> {
    arrived: Arc<PiMutex<Vec<T>>>,
    number: Arc<Gate>,
}

impl<T: Send + 'static> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self {
            arrived: Arc::default(),
            number: Arc::default(),
        }
    }

    pub(crate) fn handler(&self) -> impl FnOnce(T) + Send + 'static {
        let (arrived, number) = (self.arrived.clone(), self.number.clone());
        move |item| {
            arrived.lock().push(item);
            number.advance();
        }
    }

    /// Waits for `number` results, and returns all.
    pub(crate) fn take(&self, number: usize) -> Vec<T> {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let seen = self.number.get();
            let mut arrived = self.arrived.lock();
            if arrived.len() >= number {
                return std::mem::take(&mut *arrived);
            }
            drop(arrived);
            assert!(!deadline.has_passed(), "not all handlers were called");
            self.number.wait_while(seen, deadline);
        }
    }
}

/// A waker of a thread that waits at a gate.
#[derive(Default)]
pub(crate) struct Alarm(pub(crate) Gate);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.advance();
    }
}

pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F, alarm: &Arc<Alarm>) -> Poll<F::Output> {
    let waker = Waker::from(alarm.clone());
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Runs a future on a minimal executor, which polls it whenever it is woken.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(alarm.clone());
    let deadline = Deadline::after(PATIENCE);
    loop {
        let seen = alarm.0.get();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(!deadline.has_passed(), "the future was not woken");
        alarm.0.wait_while(seen, deadline);
    }
}
