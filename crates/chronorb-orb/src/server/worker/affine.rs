//! Threads with a connection of their own: for a while under Leader/Followers, or until the
//! connection ends under thread-per-connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use chronorb_giop::connection::{Message, MessageReader};
use chronorb_giop::{MessageHeader, MessageType};
use chronorb_rt::{Backoff, BatonGuard, Deadline, Key, Monotonic};
use chronorb_transport::IoError;

use super::{AfterRequest, Worker, waits_for_reply};
use crate::incident::Incident;
use crate::observe::{Activity, Stage};
use crate::server::affinity::AffinityGuard;
use crate::server::at::At;
use crate::server::connection::ServerConnection;
use crate::server::end::End;
use crate::server::input::{Input, ReceiveOutcome};
use crate::server::lane::{ServerLane, UPKEEP_PAUSE};

/// The result of waiting on a connection.
enum WaitOutcome {
    /// A message or a fragment is in the frame; `more` where further octets wait.
    Message { message: Message, more: bool },
    /// A part of a message has arrived.
    Part,
    /// Nothing arrived for as long as a connection may be idle.
    Idleness,
    /// The thread was called, or its wait ended early: by a signal, or by a shorter limit.
    Nothing,
}

/// The result of waiting for a usual request.
enum UsualOutcome {
    /// The request is in the frame, and nothing follows it.
    Request(MessageHeader),
    /// Another message, or no whole one. Its first octets are in the frame if it has `begun`.
    Other { begun: bool },
    /// The thread was called, or its wait ended early.
    Nothing,
}

impl Worker {
    /// Keeps the connection as long as one request after the other suits this thread.
    pub(super) fn stay(&mut self, at: At<'_>) -> Result<(), End> {
        let At {
            lane, connection, ..
        } = at;
        // Threads at the reactor check slow peers, so none may be missing there.
        let affinity = lane.strategy.affinity().filter(|affinity| {
            !lane.load.has_slow() && affinity.stays.is_time(Monotonic::of_last_tick)
        });
        let (Some(affinity), Some(stayer)) = (affinity, self.stayer.clone()) else {
            return Ok(());
        };
        let Some(mut input) = connection.input.claim() else {
            return Ok(());
        };
        if input.closed {
            return Err(End::Lost);
        }
        if !at.disarm() {
            return Err(End::Lost);
        }
        let transport = connection.transport();
        let Some(stay) = affinity.enter(&stayer, transport, at.key, || lane.is_live(at.key)) else {
            return self.leave(at, input);
        };
        self.serve_one_by_one(stay, at, &mut input)?;
        self.leave(at, input)
    }

    /// Serves a connection until the connection or the lane ends.
    pub(in super::super) fn serve_connection(&mut self, lane: &ServerLane, key: Key) {
        // As in `serve`: a panic of application code ends the connection.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if let Some(connection) = lane.connections.get(key) {
                let at = At::new(lane, &connection, key);
                let served = self.serve_to_the_end(at);
                at.conclude(served);
            }
        }));
        if outcome.is_err() {
            lane.end(key);
        }
    }

    fn serve_to_the_end(&mut self, at: At<'_>) -> Result<(), End> {
        let At {
            lane, connection, ..
        } = at;
        let (Some(affinity), Some(stayer)) = (lane.strategy.affinity(), self.stayer.clone()) else {
            return Err(End::Lost);
        };
        let mut backoff = Backoff::new();
        let mut input = loop {
            match connection.input.claim() {
                Some(input) => break input,
                // The acceptor thread checks for slow and idle peers, and has it for a moment.
                None => backoff.wait(),
            }
        };
        let transport = connection.transport();
        let Some(mut stay) = affinity.enter(&stayer, transport, at.key, || lane.is_live(at.key))
        else {
            return Ok(());
        };
        let mut due = None;
        // The first message has a time limit of its own.
        let idle_timeout = input.idle_timeout;
        let first = self.core.config.input_timeout;
        input.idle_timeout = Some(idle_timeout.map_or(first, |idle| idle.min(first)));
        while !stay.is_called() {
            let awaited = self.await_message(&stay, connection, &mut input, &mut due, false)?;
            let message = match awaited {
                WaitOutcome::Message { message, .. } => message,
                WaitOutcome::Part | WaitOutcome::Nothing => {
                    // The acceptor thread checks this only at intervals.
                    if lane.load.is_over() {
                        lane.relieve();
                    }
                    continue;
                }
                WaitOutcome::Idleness => {
                    if !stay.is_called() && connection.is_quiet() {
                        if !connection.has_sent() {
                            lane.incidents.note(Incident::Silent, connection, 0);
                        }
                        connection.say_goodbye(MessageType::CloseConnection);
                        return Err(End::Lost);
                    }
                    continue;
                }
            };
            let joined = self.join(&mut input, message, due)?;
            let Some(Message { header, skipped }) = joined else {
                continue;
            };
            if !input.reader.has_fragments() {
                due = None;
            }
            let work = connection.begin_work_with_input();
            input.idle_timeout = idle_timeout;
            if let Some(cause) = skipped {
                self.refuse_skipped(at, header, cause)?;
                continue;
            }
            match &connection.turns {
                None => self.dispatch(at, work, header)?,
                Some(turns) => {
                    turns.begin();
                    self.after = AfterRequest::EndTurn;
                    self.dispatch(at, work, header)?;
                    if self.after == AfterRequest::EndTurn {
                        turns.end(false);
                    }
                    // The main thread may have it.
                    while !turns.wait(UPKEEP_PAUSE) && !stay.is_called() {}
                }
            }
            stay.has_served();
        }
        if !lane.is_stopping() {
            // The connection was evicted to make room for another one.
            connection.say_goodbye(MessageType::CloseConnection);
        }
        Ok(())
    }

    /// Returns the connection to the reactor.
    fn leave(&self, at: At<'_>, mut input: BatonGuard<'_, Input>) -> Result<(), End> {
        input.settle(true);
        drop(input);
        at.rearm();
        Ok(())
    }

    /// Serves requests until the thread is called back, or a message has to be read at the reactor:
    /// because it may take long, or because others may follow meanwhile.
    fn serve_one_by_one(
        &mut self,
        mut stay: AffinityGuard<'_>,
        at: At<'_>,
        input: &mut Input,
    ) -> Result<(), End> {
        let mut due = None;
        while !at.lane.load.has_slow() {
            let begun = if input.expects_usual() {
                match self.await_usual(&stay, input)? {
                    UsualOutcome::Request(header) if !stay.is_called() => {
                        let work = at.connection.begin_work_with_input();
                        self.dispatch(at, work, header)?;
                        stay.has_served();
                        continue;
                    }
                    UsualOutcome::Request(_) => return Ok(input.put_back(&self.request)?),
                    UsualOutcome::Nothing => return Ok(()),
                    UsualOutcome::Other { begun } => begun,
                }
            } else {
                false
            };
            let awaited = self.await_message(&stay, at.connection, input, &mut due, begun)?;
            let (mut message, mut more) = match awaited {
                WaitOutcome::Message { message, more } => (message, more),
                WaitOutcome::Part => continue,
                WaitOutcome::Idleness | WaitOutcome::Nothing => return Ok(()),
            };
            if message.is_part() || message.skipped.is_some() {
                // The thread stays while a message is in parts: each turn at the reactor would cost
                // further system calls.
                match self.join(input, message, due)? {
                    Some(whole) => message = whole,
                    None => continue,
                }
                // The last part may have been received with the one before it.
                more = !input.reader.pending().is_empty();
            }
            let Message { header, skipped } = message;
            if let Some(cause) = skipped {
                // The rest of a skipped message cannot be put back.
                return self.refuse_skipped(at, header, cause);
            }
            if more || stay.is_called() || !waits_for_reply(header, &self.request) {
                return Ok(input.put_back(&self.request)?);
            }
            let work = at.connection.begin_work_with_input();
            self.dispatch(at, work, header)?;
            stay.has_served();
        }
        Ok(())
    }

    /// Joins a message to the parts before it, if it is a part. Returns the whole message; `None`
    /// if parts are missing, which are `due` by a deadline.
    #[cold]
    #[inline(never)]
    fn join(
        &mut self,
        input: &mut Input,
        message: Message,
        due: Option<Deadline>,
    ) -> Result<Option<Message>, End> {
        let joined = input.reader.join(message, &mut self.request)?;
        if input.reader.has_fragments() && due.is_some_and(Deadline::has_passed) {
            // A peer must not stretch the rest by sending it in small parts.
            return Err(End::Late);
        }
        if joined.is_none() {
            input.refill(&mut self.request);
        }
        input.note_kept();
        Ok(joined)
    }

    /// Waits for the next message, and recognizes it if it is a usual request.
    #[inline(always)]
    fn await_usual(
        &mut self,
        stay: &AffinityGuard<'_>,
        input: &mut Input,
    ) -> Result<UsualOutcome, End> {
        self.watch.set(Activity::Waiting);
        self.request.clear();
        let Ok(room) = MessageReader::first_room(&mut self.request) else {
            return Ok(UsualOutcome::Other { begun: false });
        };
        let capacity = room.len();
        let received = match stay.recv(room, self.core.config.server_wait, None) {
            Ok(received) => received,
            Err(IoError::WouldBlock) => {
                input.unread = false;
                return Ok(UsualOutcome::Nothing);
            }
            Err(IoError::Ended) => return Err(End::Ended),
            Err(_) => return Err(End::Lost),
        };
        self.request.commit(received);
        // A read that does not fill its room has emptied the transport (epoll(7)).
        input.unread = received == capacity;
        match input.reader.usual_request(&self.request) {
            Some(header) if !input.unread => {
                self.core.at(Stage::Read);
                Ok(UsualOutcome::Request(header))
            }
            _ => Ok(UsualOutcome::Other { begun: true }),
        }
    }

    /// Waits for the next message, whose first octets are in the frame if it has `begun`. `due` is
    /// the time by which the rest of a message has to arrive.
    #[inline(never)]
    fn await_message(
        &mut self,
        stay: &AffinityGuard<'_>,
        connection: &ServerConnection,
        input: &mut Input,
        due: &mut Option<Deadline>,
        begun: bool,
    ) -> Result<WaitOutcome, End> {
        self.watch.set(Activity::Waiting);
        if !begun {
            self.request.clear();
            input.unread = true;
        }
        let config = &self.core.config;
        let opens = input.opens;
        let deadline = if input.is_empty() && !opens {
            *due = None;
            input.idle_timeout.map(Deadline::after)
        } else {
            // The rest of a message and the handshake have the same time limit as elsewhere.
            Some(*due.get_or_insert_with(|| Deadline::after(config.input_timeout)))
        };
        let mut received = begun.then_some(true);
        let mut read = |room: &mut [u8]| {
            let result = match received {
                None => stay.recv(room, config.server_wait, deadline),
                Some(_) => connection.transport().look(room),
            };
            received = Some(received == Some(true) || result.is_ok());
            result
        };
        let negotiation = &connection.negotiation;
        let outcome = input.receive_rest(&mut read, negotiation, &mut self.request)?;
        if opens && connection.transport().is_established() {
            input.opens = false;
            input.settle(true);
            // The handshake was in time.
            *due = None;
        }
        let ReceiveOutcome::Message { message, more } = outcome else {
            if due.is_some_and(Deadline::has_passed) {
                return Err(End::Late);
            }
            let is_over = deadline.is_some_and(Deadline::has_passed);
            return Ok(if received == Some(true) && !stay.is_called() {
                WaitOutcome::Part
            } else if is_over && due.is_none() {
                WaitOutcome::Idleness
            } else {
                WaitOutcome::Nothing
            });
        };
        self.core.at(Stage::Read);
        Ok(WaitOutcome::Message { message, more })
    }
}
