//! A lane's threads: each leads, follows and serves.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::fragments::Reassembly;
use chronorb_giop::{MessageHeader, MessageType, SystemException, SystemExceptionKind};
use chronorb_rt::{Key, Released, ThreadBuilder};
use chronorb_transport::Event;

use super::connection::ServerConnection;
use super::dispatch::{self, Handled};
use super::intake::{self, End, Intake};
use super::lane::{Lane, LaneId, Work, empty_message};
use super::main_thread::Handed;
use super::pool;
use crate::core::Core;
use crate::rtcorba::{OwnPriority, Priority};
use crate::upcall::{Role, Thread};

thread_local! {
    /// The ORB, pool and lane that this thread serves; none for a thread of the application.
    static SERVES: Cell<Option<(u64, LaneId)>> = const { Cell::new(None) };
}

/// Starts the threads of a lane. Those that were started before one could not be are to be
/// stopped by the caller.
#[allow(clippy::disallowed_macros, reason = "once for each lane")]
pub(super) fn start(core: &Arc<Core>, lane: &Arc<Lane>) -> Result<(), SystemException> {
    let setup = lane.setup();
    core.live_lanes.fetch_add(1, Ordering::AcqRel);
    // This thread counts too until all others are there, so that the lane cannot end before.
    lane.running.store(1, Ordering::Release);
    let mut started = Ok(());
    for number in 0..setup.threads {
        let worker = Worker::new(core, lane);
        // The kernel keeps 15 octets of it: the lane comes first.
        let name = format!("{}.{number} {}", setup.name, core.config.orb_id);
        lane.running.fetch_add(1, Ordering::AcqRel);
        let spawned = ThreadBuilder::new(name)
            .scheduling(setup.scheduling)
            .stack_size(setup.stack_size)
            .prefault_stack(true)
            .spawn(move || worker.run());
        if let Err(error) = spawned {
            lane.running.fetch_sub(1, Ordering::AcqRel);
            eprintln!("chronorb: lane {}: no thread: {error}", setup.name);
            started = Err(SystemException::no(SystemExceptionKind::NoResources, 0));
            break;
        }
    }
    leave(core, lane);
    started
}

/// Ends a connection where it is over.
pub(super) fn conclude(
    lane: &Lane,
    connection: &ServerConnection,
    key: Key,
    outcome: Result<(), End>,
) {
    match outcome {
        Ok(()) => {}
        Err(End::Ended) => connection.set_ended(),
        Err(End::Gone) => {
            lane.end(key);
        }
        Err(End::Malformed) => {
            connection.say_goodbye(&empty_message(MessageType::MessageError));
            lane.end(key);
        }
    }
    if connection.is_over() {
        lane.end(key);
    }
}

/// The frame and the arena of replies.
pub(super) fn reply_parts(core: &Core) -> (Frame, Arena) {
    let config = &core.config;
    let reply = Frame::new(FRAME_CAPACITY, config.max_message_size);
    (reply, Arena::new(config.arena_size))
}

/// Takes a thread out of its lane, however it ends.
struct Leaving<'w>(&'w Arc<Core>, &'w Lane);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        leave(self.0, self.1);
    }
}

/// A thread, or a request that it handed on, leaves the lane; the last one closes it.
pub(super) fn leave(core: &Core, lane: &Lane) {
    if lane.running.fetch_sub(1, Ordering::AcqRel) == 1 {
        lane.close();
        pool::lane_ended(core);
    }
}

/// The lane of this ORB that the calling thread serves.
pub(super) fn lane_of_thread(core: &Core) -> Option<LaneId> {
    let (orb, lane) = SERVES.get()?;
    (orb == core.number).then_some(lane)
}

/// A thread with what it needs for one request: frames and an arena of its own.
pub(super) struct Worker {
    core: Arc<Core>,
    lane: Arc<Lane>,
    thread: Thread,
    request: Frame,
    reply: Frame,
    arena: Arena,
}

impl Worker {
    /// For a thread of a lane.
    fn new(core: &Arc<Core>, lane: &Arc<Lane>) -> Self {
        let thread = Thread {
            own: OwnPriority {
                priority: lane.priority(),
                scheduling: Some(lane.setup().scheduling),
            },
            patience: core.config.hold_timeout,
            role: Role::Lane,
        };
        // What a request may be is checked as it arrives, and what is received with it may be more.
        let request = Frame::new(FRAME_CAPACITY, usize::MAX);
        let (reply, arena) = reply_parts(core);
        Self::with_parts(core, lane, thread, request, reply, arena)
    }

    /// For a thread that serves requests of a lane.
    pub(super) fn with_parts(
        core: &Arc<Core>,
        lane: &Arc<Lane>,
        thread: Thread,
        request: Frame,
        reply: Frame,
        arena: Arena,
    ) -> Self {
        Self {
            core: core.clone(),
            lane: lane.clone(),
            thread,
            request,
            reply,
            arena,
        }
    }

    pub(super) fn into_reply_parts(self) -> (Frame, Arena) {
        (self.reply, self.arena)
    }

    fn run(mut self) {
        SERVES.set(Some((self.core.number, self.lane.setup().id)));
        let lane = self.lane.clone();
        let _leaving = Leaving(&self.core.clone(), &lane);
        loop {
            match lane.next_work(self.core.config.input_timeout) {
                Work::Serve { key, event } => self.serve(&lane, key, event),
                Work::Nothing => {}
                Work::Stop => break,
            }
        }
    }

    /// Receives one message and handles it; what comes after it is left to the next thread.
    fn serve(&mut self, lane: &Lane, key: Key, event: Event) {
        // Application code runs not only in operations: servants and kept values are dropped, and
        // skeletons asked for their types. If that panics, one connection ends and not the lane.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let Some(connection) = lane.connections.get(key) else {
                return;
            };
            let served = self.serve_connection(lane, &connection, key, event);
            conclude(lane, &connection, key, served);
        }));
        if outcome.is_err() {
            lane.end(key);
        }
    }

    fn serve_connection(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        event: Event,
    ) -> Result<(), End> {
        if event.writable && connection.flush()? {
            lane.rearm(connection, key);
        }
        if event.hang_up {
            connection.set_hung_up();
        }
        let Some(mut input) = connection.input.claim() else {
            // The thread that has it was told to look again.
            return Ok(());
        };
        input.unread = true;
        input.hung_up = connection.is_hung_up();
        let mut parts = 0;
        loop {
            let intake = intake::receive(
                connection.transport(),
                &mut input,
                &mut self.request,
                self.core.config.max_message_size,
            )?;
            let Intake::Message { header, more } = intake else {
                input.settle(parts > 0)?;
                match input.release() {
                    Released::Done => return Ok(()),
                    Released::Again(again) => {
                        input = again;
                        input.unread = true;
                        input.hung_up = connection.is_hung_up();
                        continue;
                    }
                }
            };
            let Some(header) = self.whole(header, &mut input.fragments)? else {
                parts += 1;
                if parts < MAX_PARTS {
                    continue;
                }
                // Others have a right to this thread too.
                input.settle(true)?;
                drop(input);
                lane.rearm(connection, key);
                return Ok(());
            };
            if header.kind == MessageType::Request && connection.is_text_unknown() {
                // Before the next request can be read by another thread.
                dispatch::learn_text(connection, &mut self.request, &self.arena, header);
            }
            let at_work = connection.begin_work();
            input.settle(true)?;
            // The input is let go before the upcall, whatever it is told: the next thread looks.
            let again = matches!(input.release(), Released::Again(_));
            if more || again {
                // Promotes a follower: it gets an event for this connection at once.
                lane.rearm(connection, key);
            }
            let handled = self.handle(connection, key, header)?;
            if let Handled::ForMainThread(priority) = handled {
                at_work.goes_on();
                self.hand_over(key, header, priority);
            }
            return Ok(());
        }
    }

    /// The whole message that the frame holds, or completes; `None` where more fragments follow.
    fn whole(
        &mut self,
        header: MessageHeader,
        fragments: &mut Reassembly,
    ) -> Result<Option<MessageHeader>, End> {
        let part = header.more_fragments
            || header.kind == MessageType::Fragment
            || (header.kind == MessageType::CancelRequest && fragments.octets() > 0);
        if !part {
            return Ok(Some(header));
        }
        match fragments.push(self.request.as_slice()) {
            Ok(Some(joined)) => {
                self.request = joined;
                let header = MessageHeader::parse(self.request.as_slice());
                header.map(Some).map_err(|_| End::Malformed)
            }
            Ok(None) => Ok(None),
            Err(_) => Err(End::Malformed),
        }
    }

    /// Gives the request in the frame to the main thread.
    #[allow(
        clippy::disallowed_methods,
        reason = "the main thread's requests are queued"
    )]
    fn hand_over(&mut self, key: Key, header: MessageHeader, priority: Option<Priority>) {
        let fresh = Frame::new(FRAME_CAPACITY, usize::MAX);
        let message = std::mem::replace(&mut self.request, fresh);
        let handed = Handed::new(&self.core, &self.lane, key, header, message);
        self.core.main.post(priority, Box::new(|| handed.serve()));
    }

    /// Handles the message in the frame, and sends the answer.
    pub(super) fn handle(
        &mut self,
        connection: &ServerConnection,
        key: Key,
        header: MessageHeader,
    ) -> Result<Handled, End> {
        self.arena.reset();
        let mut context = dispatch::Context {
            core: &self.core,
            lane: &self.lane,
            connection,
            key,
            arena: &self.arena,
            request: &mut self.request,
            reply: &mut self.reply,
            thread: self.thread,
        };
        let handled = match header.kind {
            MessageType::Request => context.request(header)?,
            MessageType::LocateRequest => context.locate(header)?,
            // A request that has begun cannot be taken back; its reply is ignored by the client.
            MessageType::CancelRequest => Handled::Silently,
            MessageType::CloseConnection => return Err(End::Ended),
            MessageType::MessageError => return Err(End::Gone),
            MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
                return Err(End::Malformed);
            }
        };
        if handled == Handled::Answered {
            self.lane.send(connection, key, self.reply.as_slice())?;
        }
        self.request.shrink_to(KEPT_CAPACITY);
        self.reply.shrink_to(KEPT_CAPACITY);
        Ok(handled)
    }
}

/// Fragments and cancellations that a thread takes from one connection in one go.
const MAX_PARTS: u32 = 64;
/// What a thread's frames hold without growing.
pub(super) const FRAME_CAPACITY: usize = 64 << 10;
/// What a frame that once held a great message keeps.
const KEPT_CAPACITY: usize = 1 << 20;
