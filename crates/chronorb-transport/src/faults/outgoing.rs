//! Outgoing octets, as far as they are sent.

use std::cell::Cell;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::fate::{Fate, Fates};
use super::incoming::OVERTAKEN_WITHIN;
use crate::{Connection, IoError, SendError};

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct HeldOutput {
    fates: Fates,
    /// The due time of the delayed portion.
    due: Option<Monotonic>,
    /// A message that waits for the next one, and until when.
    kept: Option<(Monotonic, Vec<u8>)>,
    ended: bool,
}

/// The outcome of an attempt to send.
pub(super) struct SendOutcome {
    pub(super) sent: Result<usize, IoError>,
    /// The time of the next attempt to send; `None` to wait for room in the connection.
    pub(super) again: Option<Monotonic>,
}

impl HeldOutput {
    pub(super) fn new(fates: Fates) -> Self {
        Self {
            fates,
            due: None,
            kept: None,
            ended: false,
        }
    }

    /// Sends without waiting.
    pub(super) fn try_send(&mut self, inner: &dyn Connection, octets: &[u8]) -> SendOutcome {
        let mut again = None;
        let sent = if self.is_delayed() {
            again = self.due;
            Err(IoError::WouldBlock)
        } else {
            self.due = None;
            self.try_at_once(inner, octets)
        };
        if sent.is_ok_and(|sent| sent < octets.len()) {
            again = Some(Monotonic::from_nanos(1));
        }
        SendOutcome { sent, again }
    }

    /// Sends everything, and waits for it.
    pub(super) fn send_all(
        &mut self,
        inner: &dyn Connection,
        octets: &[u8],
        deadline: Deadline,
    ) -> Result<(), SendError> {
        let mut sent = 0;
        while sent < octets.len() {
            let portion = self.portion(&octets[sent..]);
            let due = self.wait_until_due(deadline);
            due.map_err(|cause| SendError { sent, cause })?;
            match self.send_portion(inner, portion, deadline) {
                Ok(moved) => sent += moved,
                Err(error) => {
                    sent += error.sent;
                    return Err(SendError { sent, ..error });
                }
            }
        }
        Ok(())
    }

    /// Sends the held message, if it has waited long enough; otherwise returns when it is due.
    pub(super) fn pump(&mut self, inner: &dyn Connection) -> Option<Monotonic> {
        let (until, kept) = self.kept.take()?;
        if until > Monotonic::now() {
            self.kept = Some((until, kept));
            return Some(until);
        }
        // It may be lost: it is a message of a kind that may.
        let _ = inner.try_send(&kept);
        None
    }

    /// Whether octets of now are due later.
    fn is_delayed(&mut self) -> bool {
        if self.due.is_none() {
            self.due = self.fates.due();
        }
        self.due.is_some_and(|due| due > Monotonic::now())
    }

    fn wait_until_due(&mut self, deadline: Deadline) -> Result<(), IoError> {
        if self.is_delayed()
            && let Some(due) = self.due
        {
            sleep_until(due.min(deadline.instant()));
            if due > deadline.instant() {
                return Err(IoError::TimedOut);
            }
        }
        self.due = None;
        Ok(())
    }

    /// The first message, or some of a stream.
    fn portion<'o>(&mut self, octets: &'o [u8]) -> &'o [u8] {
        if !self.fates.carries_messages {
            return &octets[..self.fates.cut(octets.len().min(LARGEST_PORTION))];
        }
        let len = (self.fates.messages.len)(octets).unwrap_or(octets.len());
        &octets[..len.clamp(1, octets.len())]
    }

    fn try_at_once(&mut self, inner: &dyn Connection, octets: &[u8]) -> Result<usize, IoError> {
        if self.ended {
            return Err(IoError::Closed);
        }
        let mut sent = 0;
        while sent < octets.len() {
            let portion = self.portion(&octets[sent..]);
            let fate = self.fates.of(portion);
            let is_changed = fate.octets != portion;
            let moved = self.carry_out(inner, &fate, |octets| {
                let taken = inner.try_send(octets)?;
                // Octets that were changed cannot be sent again for the rest.
                Ok(if is_changed { fate.of } else { taken })
            });
            match moved {
                Ok(moved) if self.fates.carries_messages && moved == portion.len() => sent += moved,
                Ok(moved) => return Ok(sent + moved),
                Err(IoError::WouldBlock) if sent > 0 => return Ok(sent),
                Err(other) => return Err(other),
            }
        }
        Ok(sent)
    }

    fn send_portion(
        &mut self,
        inner: &dyn Connection,
        portion: &[u8],
        deadline: Deadline,
    ) -> Result<usize, SendError> {
        let failed = |sent, cause| SendError { sent, cause };
        if self.ended {
            return Err(failed(0, IoError::Closed));
        }
        let fate = self.fates.of(portion);
        let before = Cell::new(0);
        let moved = self.carry_out(inner, &fate, |octets| {
            let sent = inner.send_all(octets, deadline);
            sent.map_err(|error| {
                before.set(error.sent.min(fate.of));
                error.cause
            })?;
            Ok(fate.of)
        });
        moved.map_err(|cause| failed(before.get(), cause))
    }

    /// Applies a fate by `send`; returns the number of octets that count as sent.
    fn carry_out(
        &mut self,
        inner: &dyn Connection,
        fate: &Fate,
        send: impl Fn(&[u8]) -> Result<usize, IoError>,
    ) -> Result<usize, IoError> {
        let mut moved = fate.of;
        if fate.waits && fate.times > 0 && self.kept.is_none() {
            self.kept = Some((Monotonic::now() + OVERTAKEN_WITHIN, fate.octets.clone()));
            return Ok(moved);
        }
        if fate.times > 0 && !fate.octets.is_empty() {
            moved = send(&fate.octets)?;
        }
        if fate.times > 1 {
            // It is sent already, and is not offered again.
            let _ = send(&fate.octets);
        }
        if let Some((_, kept)) = self.kept.take() {
            let _ = inner.try_send(&kept);
        }
        if fate.ends {
            self.ended = true;
            inner.shutdown();
            if fate.of == 0 {
                return Err(IoError::Closed);
            }
        }
        Ok(moved)
    }
}

/// Octets of a stream that are thrown for at once.
const LARGEST_PORTION: usize = 64 * 1024;
