//! One client of the monitor, as its thread has it.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use chronorb_rt::Monotonic;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::report::refusal;

/// A connection: lines are handled one at a time, each after the answer to the previous one was
/// sent.
pub(super) struct Session {
    stream: UnixStream,
    input: [u8; MAX_LINE],
    /// Octets of the input.
    filled: usize,
    output: Vec<u8>,
    /// The number of octets of the output that were sent.
    sent: usize,
    /// Whether reading has ended.
    is_last: bool,
    /// The earliest time to handle the next line.
    rests_until: Monotonic,
    /// The time at which an idle client is disconnected.
    deadline: Monotonic,
}

/// The session is over.
pub(super) struct Over;

/// An answer to a client.
pub(super) struct MonitorAnswer {
    line: String,
    is_last: bool,
}

impl MonitorAnswer {
    /// A line, after which others may be asked for.
    pub(super) fn one(line: String) -> Self {
        Self {
            line,
            is_last: false,
        }
    }

    /// A line that ends the session.
    pub(super) fn last(line: String) -> Self {
        Self {
            line,
            is_last: true,
        }
    }
}

impl Session {
    pub(super) fn new(stream: UnixStream, now: Monotonic) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            input: [0; MAX_LINE],
            filled: 0,
            output: Vec::new(),
            sent: 0,
            is_last: false,
            rests_until: now,
            deadline: now + IDLE_TIMEOUT,
        })
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Returns the events that it waits for; a hang-up of the client is always reported.
    pub(super) fn awaits(&self, now: Monotonic) -> PollFlags {
        if self.is_sending() {
            PollFlags::OUT
        } else if now < self.rests_until || self.line_end().is_some() {
            PollFlags::empty()
        } else {
            PollFlags::IN
        }
    }

    /// Returns the time of the next turn without an event.
    pub(super) fn next_turn(&self, now: Monotonic) -> Monotonic {
        if !self.is_sending() && (now < self.rests_until || self.line_end().is_some()) {
            self.rests_until
        } else {
            self.deadline
        }
    }

    /// Continues the session.
    pub(super) fn turn(
        &mut self,
        events: PollFlags,
        now: Monotonic,
        answer: impl FnOnce(&[u8]) -> MonitorAnswer,
    ) -> Result<(), Over> {
        if events.intersects(PollFlags::HUP | PollFlags::ERR) || now >= self.deadline {
            return Err(Over);
        }
        if self.is_sending() {
            return if events.intersects(PollFlags::OUT) {
                self.send(now)
            } else {
                Ok(())
            };
        }
        if events.intersects(PollFlags::IN) {
            self.receive()?;
        }
        match self.line_end() {
            Some(end) if now >= self.rests_until => {
                let given = answer(&self.input[..end]);
                self.input.copy_within(end + 1..self.filled, 0);
                self.filled -= end + 1;
                self.rests_until = now + REST;
                self.answer(given, now)
            }
            Some(_) => Ok(()),
            None if self.filled == MAX_LINE => {
                let why = format!("a line has less than {MAX_LINE} octets");
                self.answer(MonitorAnswer::last(refusal(&why)), now)
            }
            None => Ok(()),
        }
    }

    /// Begins to send an answer. Octets that the client does not take at once are sent later.
    pub(super) fn answer(&mut self, answer: MonitorAnswer, now: Monotonic) -> Result<(), Over> {
        self.output = answer.line.into_bytes();
        self.sent = 0;
        self.is_last = answer.is_last;
        self.deadline = now + SEND_TIMEOUT;
        self.send(now)
    }

    fn send(&mut self, now: Monotonic) -> Result<(), Over> {
        while self.is_sending() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.stream, &self.output[self.sent..], flags) {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => return Err(Over),
            }
        }
        if self.is_last {
            return Err(Over);
        }
        self.output = Vec::new();
        self.sent = 0;
        self.deadline = now + IDLE_TIMEOUT;
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Over> {
        match recv(
            &self.stream,
            &mut self.input[self.filled..],
            RecvFlags::DONTWAIT,
        ) {
            Ok((_, 0)) => Err(Over),
            Ok((_, received)) => {
                self.filled += received;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(Over),
        }
    }

    fn is_sending(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Returns the end of the first line of the input.
    fn line_end(&self) -> Option<usize> {
        self.input[..self.filled]
            .iter()
            .position(|&octet| octet == b'\n')
    }
}

/// Octets of a line, with its end.
const MAX_LINE: usize = 64;
/// The time that a client may send no request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The time that a client may take to receive an answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause of a client after an answer, so that none keeps the thread busy.
const REST: Duration = Duration::from_millis(20);
