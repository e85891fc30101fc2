//! The path of a class: its own way into and out of a network interface.
//!
//! Nothing of a path is shared with another class, so that no class waits for another. Each half is
//! used by one thread at a time. Neither allocates.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use thiserror::Error;

/// Both halves of a path.
#[derive(Debug)]
pub(crate) struct Path {
    /// What comes in.
    pub receiver: Box<dyn Receiver>,
    /// What goes out.
    pub transmitter: Box<dyn Transmitter>,
}

/// The frames of a class that come in. Its descriptor is readable, as a level, where there are
/// some.
///
/// Frames are Ethernet frames without their check sequence, with a VLAN tag where they came with
/// one. When it is dropped, packets of the class go where unknown ones go.
pub(crate) trait Receiver: AsFd + fmt::Debug + Send {
    /// Gives the next frame to `take`, and its room back to the interface; `false` where there is
    /// none. Never waits.
    ///
    /// # Errors
    /// [`PathError`] where the interface is gone.
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError>;

    /// Frames that are there and were not received yet; pieces of them, where a driver has its
    /// frames in pieces.
    fn waiting(&self) -> usize;

    /// What has come by it since it was opened.
    fn counts(&self) -> Received;
}

/// A frame that has come in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Its octets, from the Ethernet header on.
    pub octets: &'a [u8],
    /// Whether its checksums were found right already, or were never made since it has not left
    /// this machine.
    pub is_checked: bool,
}

/// The frames of a class that go out.
pub(crate) trait Transmitter: fmt::Debug + Send {
    /// Has `write` write a frame of `len` octets, from the Ethernet header on, and queues it. Never
    /// waits. The room may hold anything before.
    ///
    /// # Errors
    /// [`TransmitError`]; nothing was written then.
    fn transmit(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError>;

    /// Whether another frame can be queued.
    fn has_room(&mut self) -> bool;

    /// Sends what is queued, as far as the interface takes it now. Never waits.
    ///
    /// # Errors
    /// [`PathError`] where the interface is gone.
    fn flush(&mut self) -> Result<(), PathError>;

    /// Whether something is queued that another [`flush`](Self::flush) has to send.
    fn is_pending(&self) -> bool;

    /// Gives its frames this priority in the queues of the interface that they have in common with
    /// others, higher is more urgent (`SO_PRIORITY`, socket(7)); 0 at first. Where there is no such
    /// queue it is without effect.
    ///
    /// # Errors
    /// [`PathError`] where the kernel refuses: above 6 that takes `CAP_NET_RAW` or `CAP_NET_ADMIN`.
    fn set_priority(&mut self, _priority: u32) -> Result<(), PathError> {
        Ok(())
    }

    /// What has gone by it since it was opened.
    fn counts(&self) -> Transmitted;
}

/// What a path has received, in frames.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Received {
    /// Given to who received.
    pub frames: u64,
    /// Octets of these.
    pub octets: u64,
    /// Lost because the queue of the class was full.
    pub dropped: u64,
    /// Lost for another reason: too long for the interface's room, no room at all, a receive queue
    /// that the interface has got since it was opened.
    pub failed: u64,
}

/// What a path has transmitted, in frames.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Transmitted {
    /// Queued.
    pub frames: u64,
    /// Octets of these.
    pub octets: u64,
    /// Times that a frame was not taken since the queue was full.
    pub full: u64,
}

/// Why a frame was not queued.
#[derive(Debug, Error)]
pub(crate) enum TransmitError {
    /// All room is taken: try again after a [`flush`](Transmitter::flush).
    #[error("the transmit queue is full")]
    Full,
    /// It is longer than the interface can take.
    #[error("a frame of {len} octets is longer than the {max} that the interface takes")]
    TooLong {
        /// Its octets.
        len: usize,
        /// Octets of the longest frame.
        max: usize,
    },
    /// The interface is gone.
    #[error(transparent)]
    Failed(#[from] PathError),
}

/// The interface is gone, or down for good.
#[derive(Debug, Error)]
#[error("the network interface fails: {0}")]
pub(crate) struct PathError(#[from] pub io::Error);
