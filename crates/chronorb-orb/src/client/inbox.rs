//! What comes from a server: octets to whole messages.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::fragments::{Limits, Reassembly};
use chronorb_giop::framing::{Framed, FramingError, next_message};
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::{Deadline, look_for};
use chronorb_transport::{Connection, IoError, Waiting};

use super::connection::{Failure, comm_failure, timeout};
use crate::room::room_for;

/// The receiving half of a connection to a server.
pub(super) struct Inbox {
    max_message: usize,
    waiting: Waiting,
    /// What was received beyond the last message.
    surplus: Vec<u8>,
    fragments: Reassembly,
}

impl Inbox {
    pub(super) fn new(max_message: usize, waiting: Waiting) -> Self {
        Self {
            max_message,
            waiting,
            surplus: Vec::new(),
            fragments: Reassembly::new(Limits {
                messages: MAX_FRAGMENTED,
                bytes: max_message,
            }),
        }
    }

    /// That of a connection on which replies to several requests come, and parts of them in any
    /// order, of `max_octets` together.
    pub(super) fn shared(max_message: usize, max_octets: usize, waiting: Waiting) -> Self {
        Self {
            max_message,
            waiting,
            surplus: Vec::new(),
            fragments: Reassembly::new(Limits {
                messages: MAX_PARTIAL_REPLIES,
                bytes: max_octets,
            }),
        }
    }

    /// Takes back what the frame has after a wait that was too long: the next call goes on from
    /// there.
    pub(super) fn put_back(&mut self, frame: &mut Frame) {
        self.surplus.extend_from_slice(frame.as_slice());
        frame.clear();
    }

    /// Whether the first part of a message is there, and its rest is not.
    pub(super) fn has_part(&self) -> bool {
        self.fragments.octets() > 0
    }

    /// Receives the next whole message into `frame`, which it clears.
    pub(super) fn receive(
        &mut self,
        transport: &dyn Connection,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        loop {
            let header = self.next_message(transport, frame, deadline)?;
            if !header.more_fragments && header.kind != MessageType::Fragment {
                return Ok(header);
            }
            let joined = self.fragments.push(frame.as_slice());
            if let Some(joined) = joined.map_err(|_| malformed())? {
                *frame = joined;
                let header = MessageHeader::parse(frame.as_slice()).map_err(|_| malformed())?;
                return Ok(header);
            }
        }
    }

    /// Receives one message as it stands on the wire, a fragment perhaps.
    fn next_message(
        &mut self,
        transport: &dyn Connection,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        frame.clear();
        frame.extend_from_slice(&self.surplus).map_err(too_large)?;
        self.surplus.clear();
        loop {
            let total = match next_message(frame.as_slice(), self.max_message) {
                Ok(Framed::Complete { header, len }) => {
                    self.surplus.extend_from_slice(&frame.as_slice()[len..]);
                    frame.truncate(len);
                    return Ok(header);
                }
                Ok(Framed::NeedMore { total }) => total,
                Err(FramingError::TooLarge(_)) => {
                    return Err(too_large(CdrError::FrameFull).into());
                }
                Err(_) => return Err(malformed().into()),
            };
            let room = room_for(frame, total, LEAST_ROOM).map_err(too_large)?;
            match wait(transport, room, self.waiting, deadline) {
                Ok(n) => frame.commit(n),
                Err(IoError::TimedOut) => return Err(timeout(CompletionStatus::Maybe).into()),
                Err(_) => return Err(comm_failure(CompletionStatus::Maybe).into()),
            }
        }
    }
}

/// Receives at least one octet, and waits for it.
#[inline]
fn wait(
    transport: &dyn Connection,
    room: &mut [u8],
    waiting: Waiting,
    deadline: Deadline,
) -> Result<usize, IoError> {
    if waiting != Waiting::Block {
        let bound = waiting
            .bound()
            .min(deadline.remaining().unwrap_or_default());
        let looked = look_for(bound, || match transport.try_recv(room) {
            Err(IoError::WouldBlock) => None,
            received => Some(received),
        });
        if let Some(received) = looked {
            return received;
        }
    }
    transport.recv(room, deadline)
}

fn malformed() -> SystemException {
    SystemException::new(
        SystemExceptionKind::Marshal,
        minor::MALFORMED_MESSAGE,
        CompletionStatus::Maybe,
    )
}

fn too_large(error: CdrError) -> SystemException {
    SystemException::from(error).with_completed(CompletionStatus::Maybe)
}

/// Replies of which a part has come, on a connection that is shared.
const MAX_PARTIAL_REPLIES: usize = 64;
/// What one `recv` has room for at least, while the length of the message is not known.
const LEAST_ROOM: usize = 8 << 10;
/// Replies of one connection that may be in fragments at a time.
const MAX_FRAGMENTED: usize = 16;
