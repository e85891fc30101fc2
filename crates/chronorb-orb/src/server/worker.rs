//! A lane's threads: each leads, follows and serves.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::fragments::Reassembly;
use chronorb_giop::{MessageHeader, MessageType, SystemException, SystemExceptionKind};
use chronorb_rt::{Key, Released, ThreadBuilder};
use chronorb_transport::Event;

use super::connection::ServerConnection;
use super::dispatch;
use super::intake::{self, End, Intake};
use super::lane::{Lane, Work, empty_message};
use super::pool;
use crate::core::Core;

thread_local! {
    /// The number of the ORB that this thread serves; 0 for a thread of the application.
    static SERVES: Cell<u64> = const { Cell::new(0) };
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

/// A thread leaves the lane; the last one closes it.
fn leave(core: &Core, lane: &Lane) {
    if lane.running.fetch_sub(1, Ordering::AcqRel) == 1 {
        lane.close();
        pool::lane_ended(core);
    }
}

/// Whether the calling thread serves this ORB.
pub(super) fn is_thread_of(core: &Core) -> bool {
    SERVES.get() == core.number
}

/// A thread of a lane with what it needs for one request: frames and an arena of its own.
struct Worker {
    core: Arc<Core>,
    lane: Arc<Lane>,
    request: Frame,
    reply: Frame,
    arena: Arena,
}

impl Worker {
    fn new(core: &Arc<Core>, lane: &Arc<Lane>) -> Self {
        let config = &core.config;
        Self {
            // What a request may be is checked as it arrives, and what is received with it may be more.
            request: Frame::new(FRAME_CAPACITY, usize::MAX),
            reply: Frame::new(FRAME_CAPACITY, config.max_message_size),
            arena: Arena::new(config.arena_size),
            core: core.clone(),
            lane: lane.clone(),
        }
    }

    fn run(mut self) {
        SERVES.set(self.core.number);
        let lane = self.lane.clone();
        loop {
            match lane.next_work(self.core.config.input_timeout) {
                Work::Serve { key, event } => self.serve(&lane, key, event),
                Work::Nothing => {}
                Work::Stop => break,
            }
        }
        leave(&self.core, &lane);
    }

    /// Receives one message and handles it; what comes after it is left to the next thread.
    fn serve(&mut self, lane: &Lane, key: Key, event: Event) {
        let Some(connection) = lane.connections.get(key) else {
            return;
        };
        let outcome = self.serve_connection(lane, &connection, key, event);
        if let Err(end) = outcome {
            if end == End::Malformed {
                let error = empty_message(MessageType::MessageError);
                connection.say_goodbye(&error);
            }
            lane.connections.remove(key);
        }
    }

    fn serve_connection(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        event: Event,
    ) -> Result<(), End> {
        if event.writable {
            connection.flush()?;
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
        loop {
            let intake = intake::receive(
                connection.transport(),
                &mut input,
                &mut self.request,
                self.core.config.max_message_size,
            )?;
            let Intake::Message { header, more } = intake else {
                input.settle()?;
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
                continue;
            };
            input.settle()?;
            // The input is let go before the upcall, whatever it is told: the next thread looks.
            let again = matches!(input.release(), Released::Again(_));
            if more || again {
                // Promotes a follower: it gets an event for this connection at once.
                lane.rearm(connection, key);
            }
            return self.handle(lane, connection, key, header);
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

    fn handle(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        header: MessageHeader,
    ) -> Result<(), End> {
        self.arena.reset();
        let mut context = dispatch::Context {
            core: &self.core,
            lane,
            connection,
            key,
            arena: &self.arena,
            request: &mut self.request,
            reply: &mut self.reply,
        };
        let answered = match header.kind {
            MessageType::Request => context.request(header)?,
            MessageType::LocateRequest => context.locate(header)?,
            // A request that has begun cannot be taken back; its reply is ignored by the client.
            MessageType::CancelRequest => false,
            MessageType::CloseConnection | MessageType::MessageError => return Err(End::Gone),
            MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
                return Err(End::Malformed);
            }
        };
        if answered {
            lane.send(connection, key, self.reply.as_slice())?;
        }
        self.request.shrink_to(KEPT_CAPACITY);
        self.reply.shrink_to(KEPT_CAPACITY);
        Ok(())
    }
}

/// What a thread's frames hold without growing.
const FRAME_CAPACITY: usize = 64 << 10;
/// What a frame that once held a great message keeps.
const KEPT_CAPACITY: usize = 1 << 20;
