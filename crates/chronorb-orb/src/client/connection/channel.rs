//! The strategy of a connection.

use chronorb_cdr::Frame;
use chronorb_giop::{MessageHeader, MessageType};
use chronorb_rt::Deadline;

use super::Exclusive;
use super::failure::Failure;
use crate::rtcorba::Priority;

/// A request whose reply is awaited.
#[derive(Clone, Copy)]
pub(in crate::client) struct Awaited {
    pub(in crate::client) request_id: u32,
    pub(in crate::client) urgency: Option<Priority>,
}

/// The strategy of a connection, by which a thread exchanges messages with a server.
///
/// A thread has one request under way on a channel at a time. Every wait ends with its deadline.
pub(in crate::client) trait Channel {
    /// The id of the thread's next request, which no other request that is under way has.
    fn next_request_id(&self) -> u32;

    /// Sends a whole message, or sees to it that it is sent while its reply is awaited; the frame may
    /// be another one then. A reply to the request `awaited` is kept for
    /// [`receive`](Self::receive), which has to be called then.
    ///
    /// A request that was not sent whole was not processed, since a server acts on whole
    /// messages only.
    fn send(
        &self,
        message: &mut Frame,
        awaited: Option<Awaited>,
        deadline: Deadline,
    ) -> Result<(), Failure>;

    /// Receives the reply to a request into `frame`: a message of the kind `expected`. It may be
    /// the reply to another request, which is to be passed over.
    ///
    /// After a failure no reply to the request will ever be taken for that to another one.
    fn receive(
        &self,
        request_id: u32,
        expected: MessageType,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure>;

    /// Itself, where it sends messages from where their octets are: where no other thread could
    /// wait for that.
    fn gathering(&self) -> Option<&Exclusive>;

    /// Whether one call at a time is under way on it.
    fn has_one_call_at_a_time(&self) -> bool;

    /// Whether all messages arrive that are sent by it, in order.
    fn is_stream(&self) -> bool;

    /// Whether the server takes messages of GIOPlite.
    fn speaks_lite(&self) -> bool;

    /// Whether it is to be asked whether it does.
    fn proposes_lite(&self) -> bool;

    /// Whether the server has ended it, or said goodbye while it was idle, as far as can be seen
    /// without waiting.
    fn is_stale(&self) -> bool;

    /// Whether nothing can be sent by it any more.
    fn is_closed(&self) -> bool;

    /// The fault that the transport found in the server's octets, or that the server reported.
    fn problem(&self) -> Option<String>;

    /// Lets it stay although nobody uses it, where other threads could close it.
    fn keep(&self);

    /// Ends it, for all threads that have it.
    fn close(&self);
}
