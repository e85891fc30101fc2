//! The path of a class: its own way into and out of a network interface.
//!
//! No part of a path is shared with another class, so no class waits for another. Each half is used
//! by one thread at a time. Neither half allocates.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use thiserror::Error;

/// Both halves of a path.
#[derive(Debug)]
pub(crate) struct Path {
    /// The incoming half.
    pub receiver: Box<dyn Receiver>,
    /// The outgoing half.
    pub transmitter: Box<dyn Transmitter>,
}

/// The incoming frames of a class. Its descriptor is readable (level-triggered) while frames wait.
///
/// Frames are Ethernet frames without their check sequence. They keep the VLAN tag that they
/// arrived with. After the receiver is dropped, packets of the class are handled as unknown
/// packets.
pub(crate) trait Receiver: AsFd + fmt::Debug + Send {
    /// Passes the next frame to `take` and returns its buffer to the interface. Returns `false` if
    /// no frame waits. Never blocks.
    ///
    /// # Errors
    /// [`PathError`] if the interface is gone.
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError>;

    /// Returns the number of frames that have arrived and were not received yet. A driver that
    /// receives frames in pieces counts pieces.
    fn waiting(&self) -> usize;

    /// Returns the counts of incoming frames since the path was opened.
    fn counts(&self) -> ReceiveCounts;
}

/// An incoming frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// The octets of the frame, from the Ethernet header on.
    pub octets: &'a [u8],
    /// Whether the checksums need no verification: they were verified before, or were never
    /// computed because the frame has not left this machine.
    pub is_checked: bool,
}

/// The outgoing frames of a class.
pub(crate) trait Transmitter: fmt::Debug + Send {
    /// Queues a frame of `len` octets, from the Ethernet header on, which `write` fills in. The
    /// buffer is not cleared before. Never blocks.
    ///
    /// # Errors
    /// [`TransmitError`]; `write` was not called then.
    fn transmit(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError>;

    /// Returns whether another frame can be queued.
    fn has_room(&mut self) -> bool;

    /// Sends queued frames as far as the interface accepts them now. Never blocks.
    ///
    /// # Errors
    /// [`PathError`] if the interface is gone.
    fn flush(&mut self) -> Result<(), PathError>;

    /// Returns whether queued frames need another [`flush`](Self::flush).
    fn is_pending(&self) -> bool;

    /// Sets the priority of the frames in queues that the interface shares among classes
    /// (`SO_PRIORITY`, socket(7)). Higher is more urgent; the default is 0. Has no effect if there
    /// is no such queue.
    ///
    /// # Errors
    /// [`PathError`] if the kernel refuses. Values above 6 need `CAP_NET_RAW` or `CAP_NET_ADMIN`.
    fn set_priority(&mut self, _priority: u32) -> Result<(), PathError> {
        Ok(())
    }

    /// Returns the counts of outgoing frames since the path was opened.
    fn counts(&self) -> TransmitCounts;
}

/// Counts of incoming frames of a path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ReceiveCounts {
    /// Frames that were received.
    pub frames: u64,
    /// Octets of the received frames.
    pub octets: u64,
    /// Frames lost because the queue of the class was full.
    pub dropped: u64,
    /// Frames lost for another reason: longer than a buffer, no buffer available, or received by a
    /// queue that was added to the interface after it was opened.
    pub failed: u64,
}

/// Counts of outgoing frames of a path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct TransmitCounts {
    /// Frames that were queued.
    pub frames: u64,
    /// Octets of the queued frames.
    pub octets: u64,
    /// The number of times that a full queue refused a frame.
    pub full: u64,
}

/// An error of [`Transmitter::transmit`].
#[derive(Debug, Error)]
pub(crate) enum TransmitError {
    /// The queue is full: try again after a [`flush`](Transmitter::flush).
    #[error("the transmit queue is full")]
    Full,
    /// The frame is longer than the interface accepts.
    #[error("a frame of {len} octets is longer than the {max} that the interface takes")]
    TooLong {
        /// The length of the frame in octets.
        len: usize,
        /// The length of the longest frame in octets.
        max: usize,
    },
    /// The interface is gone.
    #[error(transparent)]
    Failed(#[from] PathError),
}

/// The error of an interface that is gone or permanently down.
#[derive(Debug, Error)]
#[error("the network interface fails: {0}")]
pub(crate) struct PathError(#[from] pub io::Error);
