//! The output of a connection: what its peer has not taken yet.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};
use chronorb_transport::{Connection, IoError};

use super::connection::Gone;
use super::load::Load;

/// Replies that the peer has not taken yet.
pub(super) struct Output {
    pending: Vec<u8>,
    /// Since when the peer has taken nothing of it; counted among the lane's slow ones.
    stalled: Option<Monotonic>,
    load: Arc<Load>,
}

impl Output {
    pub(super) fn new(load: Arc<Load>) -> Self {
        Self {
            pending: Vec::new(),
            stalled: None,
            load,
        }
    }

    /// Whether anything waits.
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Sends what waits and then a message, as far as the transport takes them, and keeps the rest.
    pub(super) fn write(&mut self, transport: &dyn Connection, message: &[u8]) -> Result<(), Gone> {
        let mut moved = 0;
        if self.waits() {
            moved = try_send(transport, &self.pending)?;
            self.forget(moved);
        }
        let mut sent = 0;
        if !self.waits() && !message.is_empty() {
            sent = try_send(transport, message)?;
        }
        if sent < message.len() {
            self.keep(&message[sent..])?;
        }
        self.settle(moved + sent > 0);
        Ok(())
    }

    /// Sends what waits, and waits for it until the deadline.
    pub(super) fn drain(&mut self, transport: &dyn Connection, deadline: Deadline) {
        if self.waits() && transport.send_all(&self.pending, deadline).is_ok() {
            self.forget(self.pending.len());
        }
    }

    /// Whether the peer has taken nothing for longer than `limit`.
    pub(super) fn is_late(&self, limit: Duration) -> bool {
        self.stalled
            .is_some_and(|stalled| Monotonic::now() - stalled > limit)
    }

    fn settle(&mut self, moved: bool) {
        match (self.waits(), self.stalled) {
            (true, None) => {
                self.stalled = Some(Monotonic::now());
                self.load.slow.fetch_add(1, Ordering::Relaxed);
            }
            (true, Some(_)) if moved => self.stalled = Some(Monotonic::now()),
            (false, Some(_)) => {
                self.stalled = None;
                self.load.slow.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn keep(&mut self, octets: &[u8]) -> Result<(), Gone> {
        let mut accounted = self.pending.len();
        self.load
            .account(&mut accounted, self.pending.len() + octets.len())?;
        self.pending.extend_from_slice(octets);
        Ok(())
    }

    fn forget(&mut self, sent: usize) {
        let mut accounted = self.pending.len();
        self.pending.drain(..sent);
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        // Giving back cannot go over the bound.
        let _ = self.load.account(&mut accounted, self.pending.len());
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.forget(self.pending.len());
        self.settle(false);
    }
}

fn try_send(transport: &dyn Connection, octets: &[u8]) -> Result<usize, Gone> {
    match transport.try_send(octets) {
        Ok(n) => Ok(n),
        Err(IoError::WouldBlock) => Ok(0),
        Err(_) => Err(Gone),
    }
}
