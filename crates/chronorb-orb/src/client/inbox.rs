//! What comes from a server: octets to whole messages.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::connection::{Bounds, Message, MessageReader, Negotiation, Progress, ReadError};
use chronorb_giop::{CompletionStatus, MessageHeader, SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, poll_for};
use chronorb_transport::{Connection, IoError, WaitPolicy};

use super::connection::{Failure, comm_failure, timeout};
use crate::config::OrbConfig;
use crate::room::KEPT_CAPACITY;
use crate::scope;

/// The receiving half of a connection to a server.
pub(super) struct Inbox {
    waiting: WaitPolicy,
    reader: MessageReader,
}

impl Inbox {
    /// The inbox of a connection with one request at a time.
    pub(super) fn new(config: &OrbConfig) -> Self {
        let max_octets = config.max_message_size;
        Self::with(config, config.client_wait, MAX_FRAGMENTED, max_octets)
    }

    /// The inbox of a connection on which replies to several requests arrive, and parts of them in
    /// any order.
    pub(super) fn shared(config: &OrbConfig, waiting: WaitPolicy) -> Self {
        let max_octets = config.max_buffered_octets;
        Self::with(config, waiting, MAX_PARTIAL_REPLIES, max_octets)
    }

    fn with(
        config: &OrbConfig,
        waiting: WaitPolicy,
        fragmented: usize,
        fragment_octets: usize,
    ) -> Self {
        let bounds = Bounds {
            message: config.max_message_size,
            fragmented,
            fragment_octets,
            skips: false,
        };
        Self {
            waiting,
            reader: MessageReader::new(bounds, scope::empty_frame()),
        }
    }

    /// The turn of a reader that must not wait: about as much as the begun message needs, and at
    /// least [`LEAST_TURN`] octets. So a long message takes few turns, and each of them is bounded.
    pub(super) fn turn(&self) -> Turn {
        Turn {
            left: self.reader.pending().len().max(LEAST_TURN),
        }
    }

    /// Whether the first part of a message is there, and its rest is not.
    pub(super) fn has_part(&self) -> bool {
        self.reader.has_fragments()
    }

    /// Whether octets that have come wait for the next call.
    pub(super) fn has_surplus(&self) -> bool {
        !self.reader.pending().is_empty()
    }

    /// Receives the next whole message into `frame`, which it clears. After a wait that was too
    /// long, the next call goes on from there.
    pub(super) fn receive(
        &mut self,
        transport: &dyn Connection,
        negotiation: &Negotiation,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let waiting = self.waiting;
        let read = |room: &mut [u8]| wait(transport, room, waiting, deadline);
        self.receive_by(negotiation, frame, read)
            .map_err(Failure::from)
    }

    /// Receives the next whole message into `frame`, which it clears, as far as `take` has it,
    /// which waits for nothing; `None` where that is not all. The next call goes on from there.
    pub(super) fn receive_present(
        &mut self,
        negotiation: &Negotiation,
        frame: &mut Frame,
        take: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<Option<MessageHeader>, Failure> {
        match self.receive_by(negotiation, frame, take) {
            Ok(header) => Ok(Some(header)),
            Err(Unreceived::Nothing(IoError::WouldBlock)) => Ok(None),
            Err(unreceived) => Err(unreceived.into()),
        }
    }

    #[inline]
    fn receive_by(
        &mut self,
        negotiation: &Negotiation,
        frame: &mut Frame,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<MessageHeader, Unreceived> {
        frame.clear();
        loop {
            let total = match self.reader.poll(negotiation, frame)? {
                Progress::Message(message) => {
                    let Some(Message { header, .. }) = self.reader.join(message, frame)? else {
                        frame.clear();
                        continue;
                    };
                    // A great frame that was exchanged is not kept.
                    drop(self.reader.take_spare(KEPT_CAPACITY));
                    negotiation.learn(header, frame);
                    return Ok(header);
                }
                Progress::Missing { total } => total,
            };
            let Some(room) = self.reader.room(frame, total)? else {
                continue;
            };
            match read(room) {
                Ok(received) => frame.commit(received),
                Err(error) => {
                    // A great message waits in the frame that it was received into.
                    self.reader.suspend(frame, frame.len() > COPIED)?;
                    return Err(Unreceived::Nothing(error));
                }
            }
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

impl From<ReadError> for Unreceived {
    fn from(error: ReadError) -> Self {
        Self::Unusable(match error {
            ReadError::TooLarge => too_large(CdrError::FrameFull),
            ReadError::NoMemory => too_large(CdrError::OutOfMemory),
            ReadError::Malformed => MALFORMED,
        })
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
    waiting: WaitPolicy,
    deadline: Deadline,
) -> Result<usize, IoError> {
    if waiting != WaitPolicy::Block {
        let bound = waiting
            .bound()
            .min(deadline.remaining().unwrap_or_default());
        let looked = poll_for(bound, || match transport.look(room) {
            Err(IoError::WouldBlock) => None,
            received => Some(received),
        });
        if let Some(received) = looked {
            return received;
        }
    }
    transport.recv(room, deadline)
}

fn too_large(error: CdrError) -> SystemException {
    SystemException::from(error).with_completed(CompletionStatus::Maybe)
}

/// The fewest octets of a reader's turn.
const LEAST_TURN: usize = 256 << 10;
/// Replies of which a part has come, on a connection that is shared.
const MAX_PARTIAL_REPLIES: usize = 64;
/// Octets of a begun message that are copied rather than kept in the reader's frame.
const COPIED: usize = 8 << 10;
/// Replies of one connection that may be in fragments at a time.
const MAX_FRAGMENTED: usize = 16;
const MALFORMED: SystemException = SystemException::new(
    SystemExceptionKind::Marshal,
    minor::MALFORMED_MESSAGE,
    CompletionStatus::Maybe,
);
