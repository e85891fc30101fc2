//! Oneway requests of a thread that wait in its connection, to be sent together.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::connection::MessageWriter;
use chronorb_rt::{Monotonic, PiMutex};
use chronorb_transport::{Connection, IoError};

use super::channel::SharedOwner;
use super::flusher::Flusher;
use super::link::Failure;
use crate::core::Core;
use crate::incident::Incident;
use crate::protocol::Way;
use crate::rtcorba::OnewayBuffering;

/// The kept oneways of a connection. Its thread adds and sends them; the flusher sends them when
/// their time is over.
pub(super) struct KeptOneways {
    batch: PiMutex<OnewayBatch>,
    /// The time, in nanoseconds, at which they are due; [`NEVER`] if there are none.
    due: AtomicU64,
    /// The time, in nanoseconds, before which the flusher does not try again.
    retry: AtomicU64,
    sender: BatchSender,
    flusher: Arc<Flusher>,
    core: Weak<Core>,
    way: Way,
}

/// The transport of a connection, for the flusher.
pub(super) enum BatchSender {
    Exclusive(Arc<dyn Connection>),
    Shared(Arc<SharedOwner>),
}

impl KeptOneways {
    pub(super) fn new(
        sender: BatchSender,
        flusher: &Arc<Flusher>,
        core: Weak<Core>,
        way: &Way,
    ) -> Self {
        Self {
            batch: PiMutex::new(OnewayBatch::new()),
            due: AtomicU64::new(NEVER),
            retry: AtomicU64::new(0),
            sender,
            flusher: flusher.clone(),
            core,
            way: way.clone(),
        }
    }

    /// Whether there is room for a message.
    pub(super) fn has_room(&self, message: &[u8], limits: OnewayBuffering) -> bool {
        self.batch.lock().has_room(message, limits)
    }

    /// Adds a message, as its writer sends it. Returns whether all are to be sent now.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn push(
        &self,
        message: &[u8],
        writer: MessageWriter,
        limits: OnewayBuffering,
    ) -> Result<bool, CdrError> {
        let now = Monotonic::now();
        let mut batch = self.batch.lock();
        batch.push(message, writer, now)?;
        let is_due = batch.is_due(limits, now);
        let is_first = batch.requests == 1;
        let delay = u64::try_from(limits.delay.as_nanos()).unwrap_or(u64::MAX);
        let due = now.as_nanos().saturating_add(delay).min(NEVER - 1);
        if is_first {
            // The rest of earlier ones may be due already.
            self.due.fetch_min(due, Ordering::AcqRel);
        }
        drop(batch);
        if is_first && !is_due {
            self.flusher.note(due);
        }
        Ok(is_due)
    }

    /// Sends all by `send`. They are lost if the connection `is_closed` then.
    ///
    /// # Errors
    /// Those of `send`.
    pub(super) fn flush(
        &self,
        send: impl FnOnce(&[u8]) -> Result<(), Failure>,
        is_closed: impl FnOnce() -> bool,
    ) -> Result<(), Failure> {
        if self.due.load(Ordering::Acquire) == NEVER {
            return Ok(());
        }
        let mut batch = self.batch.lock();
        let sent = send(batch.octets.as_slice());
        match &sent {
            Ok(()) => self.clear(&mut batch),
            // Without the time to send them, they are kept.
            Err(_) if !is_closed() => {}
            Err(_) => self.lose(&mut batch),
        }
        sent
    }

    /// The time, in nanoseconds, at which the flusher sends them.
    pub(super) fn due(&self) -> u64 {
        let due = self.due.load(Ordering::Acquire);
        due.max(self.retry.load(Ordering::Relaxed))
    }

    /// Whether there are any.
    pub(super) fn has_any(&self) -> bool {
        self.due.load(Ordering::Acquire) != NEVER
    }

    /// Sends as much as there is room for, without waiting.
    pub(super) fn send_due(&self) {
        let busy = Err(IoError::WouldBlock);
        let mut batch = self.batch.try_lock();
        let left = batch.as_mut().map_or(busy, |batch| match &self.sender {
            BatchSender::Exclusive(transport) if !batch.octets.is_empty() => {
                let sent = transport.try_send(batch.octets.as_slice());
                sent.map(|sent| {
                    batch.octets.remove_first(sent);
                    batch.octets.len()
                })
            }
            BatchSender::Exclusive(_) => Ok(0),
            BatchSender::Shared(owner) => {
                let left = owner.shared.offer(batch.octets.as_slice());
                left.inspect(|_| _ = batch.take())
            }
        });
        match (left, batch) {
            (Ok(0), Some(mut batch)) => self.clear(&mut batch),
            (Err(error), Some(mut batch)) if error != IoError::WouldBlock => {
                self.lose(&mut batch);
                match &self.sender {
                    BatchSender::Exclusive(transport) => transport.shutdown(),
                    BatchSender::Shared(owner) => owner.shared.close(),
                }
            }
            _ => {
                let retry = Monotonic::now().as_nanos().saturating_add(RETRY);
                self.retry.store(retry, Ordering::Relaxed);
            }
        }
    }

    fn clear(&self, batch: &mut OnewayBatch) {
        batch.take();
        self.due.store(NEVER, Ordering::Release);
    }

    /// Notes that all are lost.
    pub(super) fn lose_all(&self) {
        self.lose(&mut self.batch.lock());
    }

    fn lose(&self, batch: &mut OnewayBatch) {
        let lost = batch.take();
        self.due.store(NEVER, Ordering::Release);
        if let (1.., Some(core)) = (lost, self.core.upgrade()) {
            let incidents = &core.incidents;
            incidents.note(Incident::LostOneways, &self.way, lost.into());
        }
    }
}

/// A sequence of whole messages that waits to be sent at once. The first octets may have been sent.
struct OnewayBatch {
    octets: Frame,
    requests: u32,
    /// The time of the first one.
    since: Monotonic,
}

impl OnewayBatch {
    fn new() -> Self {
        Self {
            octets: Frame::new(0, usize::MAX),
            requests: 0,
            since: Monotonic::from_nanos(0),
        }
    }

    /// Whether there is room for a message.
    fn has_room(&self, message: &[u8], limits: OnewayBuffering) -> bool {
        let octets = self.octets.len().saturating_add(message.len());
        octets <= limits.octets && self.requests < limits.requests
    }

    /// Adds a message at a time, as its writer sends it.
    ///
    /// # Errors
    /// There is no memory for it.
    fn push(
        &mut self,
        message: &[u8],
        writer: MessageWriter,
        now: Monotonic,
    ) -> Result<(), CdrError> {
        let (before, octets) = (self.octets.len(), &mut self.octets);
        let written = writer.write(message, |slices| {
            let mut slices = slices.iter();
            slices.try_for_each(|slice| octets.extend_from_slice(slice))
        });
        written.inspect_err(|_| self.octets.truncate(before))?;
        if self.requests == 0 {
            self.since = now;
        }
        self.requests += 1;
        Ok(())
    }

    /// Whether the messages are to be sent now.
    fn is_due(&self, limits: OnewayBuffering, now: Monotonic) -> bool {
        self.requests >= limits.requests
            || self.octets.len() >= limits.octets
            || now.since(self.since) >= limits.delay
    }

    /// Removes the messages, and returns their number.
    fn take(&mut self) -> u32 {
        self.octets.clear();
        std::mem::take(&mut self.requests)
    }
}

/// There are none.
const NEVER: u64 = u64::MAX;
/// The time, in nanoseconds, after which the flusher tries again where there was no room.
const RETRY: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: OnewayBuffering = OnewayBuffering {
        octets: 20,
        requests: 3,
        delay: Duration::from_secs(1),
    };

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_nanos(seconds * 1_000_000_000)
    }

    fn with(messages: &[(&[u8], u64)]) -> OnewayBatch {
        let mut batch = OnewayBatch::new();
        for (message, seconds) in messages {
            let writer = MessageWriter::new(0);
            batch
                .push(message, writer, at(*seconds))
                .expect("there is memory");
        }
        batch
    }

    #[test]
    fn each_bound_makes_it_due() {
        let one = with(&[(&[1; 8], 10)]);
        assert!(!one.is_due(LIMITS, at(10)));
        assert!(one.is_due(LIMITS, at(11)), "its delay is over");
        let two = with(&[(&[1; 8], 10), (&[2; 8], 12)]);
        assert!(two.is_due(LIMITS, at(12)), "the first one counts");
        let three = with(&[(&[1; 2], 10), (&[2; 2], 10), (&[3; 2], 10)]);
        assert!(three.is_due(LIMITS, at(10)), "there are enough");
        let full = with(&[(&[1; 20], 10)]);
        assert!(full.is_due(LIMITS, at(10)), "it is full");
    }

    #[test]
    fn messages_stay_whole_and_in_order() {
        let mut batch = with(&[(b"one", 1), (b"two", 1)]);
        assert_eq!(batch.octets.as_slice(), b"onetwo");
        assert!(batch.has_room(&[0; 14], LIMITS));
        assert!(!batch.has_room(&[0; 15], LIMITS));
        assert_eq!(batch.take(), 2);
        assert_eq!((batch.octets.as_slice(), batch.requests), (&b""[..], 0));
        assert!(!batch.has_room(&[0; 21], LIMITS));
        let none = OnewayBuffering {
            requests: 0,
            ..LIMITS
        };
        assert!(!batch.has_room(b"x", none));
    }
}
