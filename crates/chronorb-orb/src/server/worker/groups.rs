//! Requests to groups of objects, which arrive by multicast.
//!
//! Many peers send on such a connection, and none can be answered. The code sets that one peer
//! announces do not hold for another, and malformed messages are ignored.

use std::cell::Cell;
use std::fmt;

use chronorb_cdr::CharSet;
use chronorb_giop::connection::room_for;
use chronorb_giop::framing::{NextMessage, next_message};
use chronorb_giop::{MessageHeader, MessageType, TargetGroup};
use chronorb_rt::{ReleaseOutcome, epoch};
use chronorb_transport::IoError;

use super::Worker;
use crate::call::{IncomingRequest, ReplyWriter};
use crate::core::Core;
use crate::group_members::{GroupMember, Members};
use crate::poa::{ObjectKey, ThreadModel};
use crate::riders::{self, Arrival, Carrier, propagated_priority};
use crate::room::KEPT_CAPACITY;
use crate::rtcorba::Priority;
use crate::server::at::At;
use crate::server::connection::{ServerConnection, WorkGuard};
use crate::server::dispatch::{MessageOutcome, header_of};
use crate::server::end::End;
use crate::server::lane::ServerLane;
use crate::server::queued::{HandOff, HandOffTarget};
use crate::stage::Stage;
use crate::upcall::Dispatch;
use crate::upcall::{Parks, Role, Thread, Upcall, UpcallError};

impl Worker {
    /// Reads one message of a group into the frame; `None` where none has arrived.
    pub(super) fn take_from_group<'c>(
        &mut self,
        at: At<'c>,
    ) -> Result<Option<(MessageHeader, WorkGuard<'c>)>, End> {
        let connection = at.connection;
        self.core.at(Stage::Read);
        let Some(mut input) = connection.input.claim() else {
            // The failed claim makes the thread that has the input read again.
            return Ok(None);
        };
        loop {
            let received = self.receive_whole(connection);
            match received {
                Ok(header) => {
                    let work = header.is_some().then(|| connection.begin_work());
                    drop(input);
                    // More messages may wait, for which there is no further event.
                    at.rearm();
                    return Ok(header.zip(work));
                }
                Err(IoError::WouldBlock) => match input.release() {
                    ReleaseOutcome::Done => return Ok(None),
                    ReleaseOutcome::Again(again) => input = again,
                },
                Err(IoError::Ended) => return Err(End::Ended),
                Err(_) => return Err(End::Lost),
            }
        }
    }

    /// Receives a message, which arrives whole; `None` for a malformed one, after which other work
    /// may proceed.
    fn receive_whole(
        &mut self,
        connection: &ServerConnection,
    ) -> Result<Option<MessageHeader>, IoError> {
        let (frame, max) = (&mut self.request, self.core.config.max_message_size);
        frame.clear();
        loop {
            let total = match next_message(frame.as_slice(), max) {
                Ok(NextMessage::Complete { header, .. }) => return Ok(Some(header)),
                Ok(NextMessage::NeedMore { total }) => total,
                Err(_) => return Ok(None),
            };
            let Ok(room) = room_for(frame, total) else {
                return Ok(None);
            };
            match connection.transport().try_recv(room)? {
                0 => return Ok(None),
                n => frame.commit(n),
            }
        }
    }

    /// Serves a request to a group for each member of this lane; on the main thread, for each
    /// member that the main thread serves.
    pub(super) fn handle_for_group(
        &mut self,
        lane: &ServerLane,
        message: MessageHeader,
    ) -> Result<MessageOutcome, End> {
        if message.kind != MessageType::Request || message.more_fragments {
            return Ok(MessageOutcome::NoReply);
        }
        let members = self.core.groups.members();
        let is_main = self.thread.role == Role::Main;
        let mut for_main = None;
        let mut next = self.next_member(lane, &members, 0, message);
        while let Some((index, at)) = next {
            next = self.next_member(lane, &members, index + 1, message);
            if let ServedBy::Main(priority) = at
                && !is_main
            {
                for_main.get_or_insert(priority);
                continue;
            }
            // Decoding changes the message, which other members still need.
            let used_again = next.is_some() || for_main.is_some();
            let kept = used_again.then(|| self.request.fitting_copy());
            self.serve_member(&members[index], message);
            if let Some(kept) = kept {
                self.request = kept.map_err(|_| End::Lost)?;
            }
        }
        self.request.relax(KEPT_CAPACITY);
        Ok(match for_main {
            Some(priority) if !self.core.main.is_full() => main_thread(priority),
            _ => MessageOutcome::NoReply,
        })
    }

    /// The first member from `start` on for which this thread serves the message.
    fn next_member(
        &mut self,
        lane: &ServerLane,
        members: &Members,
        start: usize,
        message: MessageHeader,
    ) -> Option<(usize, ServedBy)> {
        self.arena.reset();
        let header = header_of(message, &mut self.request, &self.arena, None);
        let (header, _) = header.ok()?;
        let group = TargetGroup::of(&header.target)?;
        let propagated = propagated_priority(header.contexts).ok()?;
        let (core, is_main) = (&*self.core, self.thread.role == Role::Main);
        let served_by = |member: &GroupMember| {
            let served_by = served_by(core, lane, member, propagated)?;
            let is_here = !is_main || matches!(served_by, ServedBy::Main(_));
            is_here.then_some(served_by)
        };
        let mut others = members.iter().enumerate().skip(start);
        others.find_map(|(index, member)| {
            let served_by = member.is_in(&group).then(|| served_by(member)).flatten();
            Some((index, served_by?))
        })
    }

    /// Serves the message for one member. There is no answer, whatever the servant does.
    fn serve_member(&mut self, member: &GroupMember, message: MessageHeader) {
        self.core.at(Stage::Dispatch);
        self.arena.reset();
        let header = header_of(message, &mut self.request, &self.arena, None);
        let Ok((header, body)) = header else {
            return;
        };
        let mut body = body.with_host(Some(self.host.begin_from(None)));
        let carrier = GroupCarrier(Cell::new(CharSet::Latin1));
        let arrival = Arrival {
            config: &self.core.config,
            incidents: &self.core.incidents,
            version: message.version(),
            contexts: header.contexts,
            carrier: &carrier,
        };
        let Ok(admission) = riders::admit(&mut riders::RequestState::default(), &arrival) else {
            return;
        };
        let text = message.version().text(carrier.0.get());
        body.set_text(text);
        let mut reply = ReplyWriter::new(
            &mut self.reply,
            message.protocol,
            header.request_id,
            text,
            &[],
        );
        let upcall = Upcall {
            core: &self.core,
            incoming: IncomingRequest {
                arena: &self.arena,
                operation: header.operation,
                response_expected: false,
                contexts: header.contexts,
                peer: None,
            },
            key: &member.key,
            propagated: admission.priority,
            ceiling: None,
            // Other members still need the message, so it cannot be parked.
            thread: &Thread {
                parks: Parks::No,
                ..self.thread
            },
        };
        let served = upcall.serve(&mut Dispatch::of_caller(&mut Some(body), &mut reply));
        // No client waits: exceptions and forwards are dropped.
        drop::<Result<_, UpcallError>>(served);
        self.reply.relax(KEPT_CAPACITY);
    }
}

/// A request to a group, for its riders: what it says about a connection holds for itself alone.
struct GroupCarrier(Cell<CharSet>);

impl fmt::Display for GroupCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group")
    }
}

impl Carrier for GroupCarrier {
    fn set_narrow(&self, narrow: CharSet) {
        self.0.set(narrow);
    }

    fn set_one_at_a_time(&self) {}

    fn agree_to_lite(&self) -> bool {
        false
    }
}

/// The thread that serves a request to a member.
#[derive(Clone, Copy, Debug)]
enum ServedBy {
    Lane,
    /// The main thread, at this priority.
    Main(Option<Priority>),
}

/// The thread that serves requests of this priority to a member, if it belongs to this lane or is
/// the main thread.
fn served_by(
    core: &Core,
    lane: &ServerLane,
    member: &GroupMember,
    propagated: Option<Priority>,
) -> Option<ServedBy> {
    let key = ObjectKey::parse(&member.key)?;
    let _reading = epoch::enter();
    let poa = core.poas.find(core.incarnation, &key)?;
    let pool = poa.pool().ok()?;
    if pool.number != lane.setup.id.0 {
        return None;
    }
    let active = poa.find(key.hint, key.id);
    let (priority, _) = poa.priority_of_request(active.as_deref(), key.id, propagated, None);
    // A lane that reads for others serves all lanes of its pool here.
    if pool.has_lanes && lane.served_lanes.is_empty() {
        let own = priority.and_then(|priority| pool.lane_of(priority));
        let own = own.unwrap_or_else(|| pool.least_urgent_lane());
        if !std::ptr::eq(own, &*lane.handle) {
            return None;
        }
    }
    Some(match poa.thread_model() {
        ThreadModel::MainThread => ServedBy::Main(priority),
        _ => ServedBy::Lane,
    })
}

/// The outcome for a request that the main thread has to serve for some members.
fn main_thread(priority: Option<Priority>) -> MessageOutcome {
    MessageOutcome::HandOff(HandOff::new(HandOffTarget::MainThread(priority), None))
}
