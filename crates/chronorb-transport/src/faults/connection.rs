//! A connection that is disturbed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, PiMutex, sleep_until};

use super::alarm::{Alarm, For};
use super::dice::Dice;
use super::fate::Fates;
use super::incoming::HeldInput;
use super::outgoing::HeldOutput;
use super::plan::FaultPlan;
use crate::{Carriage, Connection, IoError, Messages, Remote, SendError, SocketOptions};

/// A connection with its held octets of both directions, and their due times.
#[derive(Debug)]
pub(super) struct FaultyConnection {
    inner: Box<dyn Connection>,
    incoming: PiMutex<HeldInput>,
    outgoing: PiMutex<HeldOutput>,
    /// Whether the incoming half holds octets, for callers that must not wait for its lock.
    holds: AtomicBool,
    alarm: Alarm,
}

impl FaultyConnection {
    /// Disturbs a connection, which has this number among all.
    pub(super) fn new(
        inner: Box<dyn Connection>,
        plan: &FaultPlan,
        messages: Messages,
        number: u64,
    ) -> io::Result<Self> {
        let alarm = Alarm::new(&inner)?;
        let fates = |way, stream| {
            let dice = Dice::new(plan.seed, stream, number);
            Fates::new(way, dice, messages, inner.carriage())
        };
        Ok(Self {
            incoming: PiMutex::new(HeldInput::new(fates(&plan.incoming, 0))),
            outgoing: PiMutex::new(HeldOutput::new(fates(&plan.outgoing, 1))),
            holds: AtomicBool::new(false),
            alarm,
            inner,
        })
    }

    /// Reads by `receive`, and ends the connection where that is its fate.
    fn read(
        &self,
        incoming: &mut HeldInput,
        receive: impl Fn(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<(), IoError> {
        let ends = incoming.read(receive);
        self.holds.store(incoming.holds(), Ordering::Relaxed);
        if ends? {
            self.inner.shutdown();
        }
        Ok(())
    }

    /// Takes due octets, and ensures that another edge follows if there may be more.
    fn take(&self, incoming: &mut HeldInput, room: &mut [u8]) -> Option<Result<usize, IoError>> {
        let taken = incoming.take(room);
        self.holds.store(incoming.holds(), Ordering::Relaxed);
        match taken {
            Some(Ok(n)) if n < room.len() && (incoming.holds() || self.inner.is_stale()) => {
                self.alarm.ring_now(For::HeldInput);
            }
            Some(_) => self.alarm.ring(For::HeldInput, None),
            None => self.alarm.ring(For::HeldInput, incoming.next_due()),
        }
        taken
    }

    /// Receives, by `receive`, octets that are present and due, without waiting.
    fn try_receive(
        &self,
        room: &mut [u8],
        receive: impl Fn(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<usize, IoError> {
        let waits = self.pump();
        let mut incoming = self.incoming.lock();
        // Held octets come first. Then all present ones are read, since they may be lost.
        while !incoming.is_full() && incoming.next_due().is_none_or(|due| due > Monotonic::now()) {
            match self.read(&mut incoming, &receive) {
                Ok(()) => {}
                Err(IoError::WouldBlock) => break,
                Err(other) => return Err(other),
            }
        }
        let taken = self.take(&mut incoming, room);
        if taken.is_none() && waits.is_some() {
            self.alarm.ring(For::HeldOutput, waits);
        }
        taken.unwrap_or(Err(IoError::WouldBlock))
    }

    /// Sends a message that has waited long enough for another one.
    fn pump(&self) -> Option<Monotonic> {
        self.outgoing.lock().pump(&*self.inner)
    }

    fn try_send_whole(&self, octets: &[u8]) -> Result<usize, IoError> {
        let mut outgoing = self.outgoing.lock();
        let tried = outgoing.try_send(&*self.inner, octets);
        let waits = outgoing.pump(&*self.inner);
        self.alarm.ring(For::HeldOutput, tried.again.or(waits));
        if tried.sent == Err(IoError::WouldBlock) && tried.again.is_none() {
            self.alarm.watch_room(&self.inner);
        } else {
            self.alarm.forget_room(&self.inner);
        }
        tried.sent
    }
}

impl Connection for FaultyConnection {
    fn carriage(&self) -> Carriage {
        self.inner.carriage()
    }

    fn is_established(&self) -> bool {
        self.inner.is_established()
    }

    fn problem(&self) -> Option<String> {
        self.inner.problem()
    }

    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        self.try_receive(room, |space| self.inner.try_recv(space))
    }

    fn look(&self, room: &mut [u8]) -> Result<usize, IoError> {
        self.try_receive(room, |space| self.inner.look(space))
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.try_send_whole(octets)
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.try_send_whole(&[first, second].concat())
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        let mut incoming = self.incoming.lock();
        loop {
            let waits = self.pump();
            if let Some(taken) = self.take(&mut incoming, room) {
                return taken;
            }
            if deadline.has_passed() {
                return Err(IoError::TimedOut);
            }
            let due = [incoming.next_due(), waits].into_iter().flatten().min();
            let until = due.map_or_else(|| deadline.instant(), |due| due.min(deadline.instant()));
            if incoming.is_full() {
                sleep_until(until);
                continue;
            }
            match self.read(&mut incoming, |room| {
                self.inner.recv(room, Deadline::at(until))
            }) {
                Ok(()) | Err(IoError::TimedOut | IoError::WouldBlock) => {}
                Err(other) => return Err(other),
            }
        }
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        let waits = self.pump();
        let mut incoming = self.incoming.lock();
        if let Some(taken) = self.take(&mut incoming, room) {
            return taken.map(Some);
        }
        let due = [incoming.next_due(), waits].into_iter().flatten().min();
        if incoming.is_full() {
            // No octets can be read that would precede it.
            sleep_until(due.unwrap_or(Monotonic::from_nanos(0)));
        } else {
            let left = due.map(|due| due - Monotonic::now());
            let limit = [left, limit].into_iter().flatten().min();
            let received = self.read(&mut incoming, |room| {
                let received = self.inner.recv_until_interrupted(room, limit)?;
                received.ok_or(IoError::WouldBlock)
            });
            if !matches!(received, Ok(()) | Err(IoError::WouldBlock)) {
                received?;
            }
        }
        self.take(&mut incoming, room).transpose()
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn resume(&self) {
        self.inner.resume();
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        let mut outgoing = self.outgoing.lock();
        let sent = outgoing.send_all(&*self.inner, octets, deadline);
        let waits = outgoing.pump(&*self.inner);
        self.alarm.ring(For::HeldOutput, waits);
        sent
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        if let Carriage::Messages { .. } = self.carriage() {
            return self.send_all(&[first, second].concat(), deadline);
        }
        self.send_all(first, deadline)?;
        let sent = self.send_all(second, deadline);
        sent.map_err(|error| SendError {
            sent: first.len() + error.sent,
            ..error
        })
    }

    fn is_stale(&self) -> bool {
        self.holds.load(Ordering::Relaxed) || self.inner.is_stale()
    }

    fn shutdown(&self) {
        self.inner.shutdown();
    }

    fn abort(&self) {
        self.inner.abort();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        self.inner.options()
    }

    fn peer(&self) -> String {
        self.inner.peer()
    }

    fn remote(&self) -> Remote {
        self.inner.remote()
    }

    fn peer_certificate(&self) -> Option<Vec<u8>> {
        self.inner.peer_certificate()
    }
}

impl AsFd for FaultyConnection {
    /// The set that its alarm has.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }
}
