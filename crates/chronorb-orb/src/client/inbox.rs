//! What comes from a server: octets to whole messages.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::fragments::{FragmentError, Limits, Reassembly};
use chronorb_giop::framing::{Framed, FramingError};
use chronorb_giop::{
    CompletionStatus, HEADER_LEN, MessageHeader, MessageType, SystemException, SystemExceptionKind,
    minor,
};
use chronorb_rt::{Deadline, look_for};
use chronorb_transport::{Connection, IoError, Waiting};

use super::connection::{Failure, comm_failure, timeout};
use super::speech::Speech;
use crate::room::room_for;
use crate::scope;

/// The receiving half of a connection to a server.
pub(super) struct Inbox {
    max_message: usize,
    waiting: Waiting,
    pub(super) speech: Speech,
    /// What was received beyond the last message.
    surplus: Vec<u8>,
    /// The beginning of a message whose reader has stopped.
    suspended: Frame,
    fragments: Reassembly,
    /// Whether the next message is in its frame already, as far as it has come.
    has_begun: bool,
}

impl Inbox {
    pub(super) fn new(max_message: usize, waiting: Waiting, speech: Speech) -> Self {
        Self {
            max_message,
            waiting,
            speech,
            surplus: Vec::new(),
            suspended: scope::empty_frame(),
            fragments: Reassembly::new(Limits {
                messages: MAX_FRAGMENTED,
                bytes: max_message,
            }),
            has_begun: false,
        }
    }

    /// That of a connection on which replies to several requests come, and parts of them in any
    /// order, of `max_octets` together.
    pub(super) fn shared(
        max_message: usize,
        max_octets: usize,
        waiting: Waiting,
        speech: Speech,
    ) -> Self {
        Self {
            max_message,
            waiting,
            speech,
            surplus: Vec::new(),
            suspended: scope::empty_frame(),
            fragments: Reassembly::new(Limits {
                messages: MAX_PARTIAL_REPLIES,
                bytes: max_octets,
            }),
            has_begun: false,
        }
    }

    /// Takes back what the frame has after a wait that was too long: the next call goes on from
    /// there.
    pub(super) fn put_back(&mut self, frame: &mut Frame) {
        if self.suspended.is_empty() {
            std::mem::swap(&mut self.suspended, frame);
        }
        frame.clear();
    }

    /// The turn of a reader that must not wait: about as much as the begun message needs, and at
    /// least [`LEAST_TURN`] octets. So a long message takes few turns, and each of them is bounded.
    pub(super) fn turn(&self) -> Turn {
        Turn {
            left: self.suspended.len().max(LEAST_TURN),
        }
    }

    /// Whether the first part of a message is there, and its rest is not.
    pub(super) fn has_part(&self) -> bool {
        self.fragments.octets() > 0
    }

    /// Whether something has come that belongs to a message which has not begun.
    pub(super) fn has_surplus(&self) -> bool {
        !self.surplus.is_empty() || !self.suspended.is_empty()
    }

    /// Receives the next whole message into `frame`, which it clears.
    pub(super) fn receive(
        &mut self,
        transport: &dyn Connection,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let waiting = self.waiting;
        self.begin(frame)?;
        self.go_on(frame, |room| wait(transport, room, waiting, deadline))
            .map_err(Failure::from)
    }

    /// Receives the next whole message into `frame`, as far as `take` has it, which waits for
    /// nothing; `None` where that is not all. Then the frame has the beginning, and has to be the
    /// same the next time; otherwise it is cleared.
    pub(super) fn receive_present(
        &mut self,
        frame: &mut Frame,
        take: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<Option<MessageHeader>, Failure> {
        if !self.has_begun {
            self.begin(frame)?;
            self.has_begun = true;
        }
        match self.go_on(frame, take) {
            Ok(header) => {
                self.has_begun = false;
                Ok(Some(header))
            }
            Err(Unreceived::Nothing(IoError::WouldBlock)) => Ok(None),
            Err(unreceived) => Err(unreceived.into()),
        }
    }

    /// Keeps what `receive_present` has left in the frame for the next one that reads.
    pub(super) fn suspend(&mut self, frame: &mut Frame) {
        if std::mem::take(&mut self.has_begun) {
            self.put_back(frame);
        }
    }

    /// Begins a message with what came together with the one before.
    #[inline]
    fn begin(&mut self, frame: &mut Frame) -> Result<(), SystemException> {
        frame.clear();
        match self.has_surplus() {
            true => self.take_surplus(frame),
            false => Ok(()),
        }
    }

    fn take_surplus(&mut self, frame: &mut Frame) -> Result<(), SystemException> {
        if !self.suspended.is_empty() {
            std::mem::swap(&mut self.suspended, frame);
            scope::release(&mut self.suspended);
            return Ok(());
        }
        frame.extend_from_slice(&self.surplus).map_err(too_large)?;
        self.surplus.clear();
        Ok(())
    }

    /// Receives the rest of a whole message by `take`.
    #[inline]
    fn go_on(
        &mut self,
        frame: &mut Frame,
        mut take: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<MessageHeader, Unreceived> {
        loop {
            let header = self.next_message(frame, &mut take)?;
            if !header.more_fragments && header.kind != MessageType::Fragment {
                self.speech = self.speech.after(header, frame);
                return Ok(header);
            }
            let joined = self.fragments.push(frame.as_slice());
            let joined = joined.map_err(|error| match error {
                FragmentError::TooLarge => too_large(CdrError::FrameFull),
                FragmentError::NoMemory => too_large(CdrError::OutOfMemory),
                _ => malformed(),
            })?;
            if let Some(joined) = joined {
                *frame = joined;
                let header = MessageHeader::parse(frame.as_slice()).map_err(|_| malformed())?;
                self.speech = self.speech.after(header, frame);
                return Ok(header);
            }
            self.begin(frame)?;
        }
    }

    /// Receives the rest of one message as it stands on the wire, a fragment perhaps.
    #[inline]
    fn next_message(
        &mut self,
        frame: &mut Frame,
        mut take: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<MessageHeader, Unreceived> {
        loop {
            let total = match self.speech.next_message(frame.as_slice(), self.max_message) {
                Ok(Framed::Complete { header, len }) => {
                    let surplus = &frame.as_slice()[len..];
                    let room = self.surplus.try_reserve(surplus.len());
                    room.map_err(|_| too_large(CdrError::OutOfMemory))?;
                    self.surplus.extend_from_slice(surplus);
                    frame.truncate(len);
                    return Ok(header);
                }
                Ok(Framed::NeedMore { total }) => total,
                Err(FramingError::TooLarge(_)) => {
                    return Err(too_large(CdrError::FrameFull).into());
                }
                Err(_) => return Err(malformed().into()),
            };
            let is_new = frame.len() < HEADER_LEN;
            let mut room = room_for(frame, total, LEAST_ROOM).map_err(too_large)?;
            if is_new && room.len() > MOST_AHEAD {
                room = &mut room[..MOST_AHEAD];
            }
            let taken = take(room).map_err(Unreceived::Nothing)?;
            frame.commit(taken);
        }
    }
}

/// The octets that a reader may still take in its turn.
pub(super) struct Turn {
    left: usize,
}

impl Turn {
    /// Takes something by `receive`; there is nothing where the turn is over.
    pub(super) fn take(
        &mut self,
        receive: impl FnOnce() -> Result<usize, IoError>,
    ) -> Result<usize, IoError> {
        if self.is_over() {
            return Err(IoError::WouldBlock);
        }
        let received = receive()?;
        self.left = self.left.saturating_sub(received);
        Ok(received)
    }

    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// Why there is no whole message.
enum Unreceived {
    /// Nothing more came.
    Nothing(IoError),
    /// What came is none.
    Unusable(SystemException),
}

impl From<SystemException> for Unreceived {
    fn from(exception: SystemException) -> Self {
        Self::Unusable(exception)
    }
}

impl From<Unreceived> for Failure {
    fn from(unreceived: Unreceived) -> Self {
        Self::Exception(match unreceived {
            Unreceived::Nothing(IoError::TimedOut) => timeout(CompletionStatus::Maybe),
            Unreceived::Nothing(_) => comm_failure(CompletionStatus::Maybe),
            Unreceived::Unusable(exception) => exception,
        })
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
        let looked = look_for(bound, || match transport.look(room) {
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

/// The most octets received at once while the length of the message is not known. Messages behind
/// it are copied for each of them that is taken out.
const MOST_AHEAD: usize = 64 << 10;
/// The fewest octets of a reader's turn.
const LEAST_TURN: usize = 256 << 10;
/// Replies of which a part has come, on a connection that is shared.
const MAX_PARTIAL_REPLIES: usize = 64;
/// What one `recv` has room for at least, while the length of the message is not known.
const LEAST_ROOM: usize = 8 << 10;
/// Replies of one connection that may be in fragments at a time.
const MAX_FRAGMENTED: usize = 16;
