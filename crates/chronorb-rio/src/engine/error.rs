//! What can go wrong, by operation.

use std::io;
use std::net::{IpAddr, SocketAddr};

use chronorb_rt::{ReservationError, SpawnError};
use thiserror::Error;

use crate::driver::DriverError;
use crate::plan::Refusal;

/// Why a class, or an endpoint of one, was not opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum OpenError {
    /// The interface has as many classes as it can have.
    #[error("the interface has {} classes already", crate::class::MAX_CLASSES)]
    TooManyClasses,
    /// The queue could overflow though all peers keep to their windows.
    #[error(
        "the queue of {queue} frames is shorter than what peers may send unasked: {connections} connections of {frames} \
         frames each are {}; make the queue longer, or connections or buffer smaller", connections * frames
    )]
    ShortQueue {
        /// Frames of the queue.
        queue: usize,
        /// Connections at most.
        connections: usize,
        /// Frames that a window has at most.
        frames: usize,
    },
    /// It, or a class that is open, would not have what it is promised.
    #[error("class {class:?} is not admitted: {refusal}")]
    Refused {
        /// The class that was to be opened.
        class: String,
        /// Whose promise could not be kept, and why.
        refusal: Box<Refusal>,
    },
    /// A number of the class cannot be.
    #[error("the {what} of class {class:?} is {value}; it can be {possible}")]
    Value {
        /// The class.
        class: String,
        /// Which number.
        what: &'static str,
        /// What it is.
        value: u128,
        /// What it can be.
        possible: &'static str,
    },
    /// The address is none of the interface.
    #[error("{0} is no address of the interface")]
    NoAddress(IpAddr),
    /// Somebody listens there already.
    #[error("{0} is in use")]
    InUse(SocketAddr),
    /// The interface's driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The class's thread was not made.
    #[error(transparent)]
    Thread(#[from] SpawnError),
    /// The class's thread did not get its processor time.
    #[error(transparent)]
    Reservation(#[from] ReservationError),
    /// The kernel refused something else.
    #[error("{what}: {source}")]
    Failed {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Why there is no connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum ConnectFault {
    /// The peer refused.
    #[error("nobody listens there")]
    Refused,
    /// The deadline passed.
    #[error("no answer in time")]
    TimedOut,
    /// The interface has no address of that family.
    #[error("the interface has no address to reach {0} from")]
    NoAddress(IpAddr),
    /// The next hop's hardware address was not found out.
    #[error("no way to {to}: {source}")]
    NoWay {
        /// The peer.
        to: IpAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The class has as many connections as it can have.
    #[error("all {0} connections of the class are in use")]
    TooMany(usize),
    /// The interface fails, or its subsystem is no more.
    #[error("the class has ended with its interface")]
    Ended,
    /// No port was free, or the class is no more.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No descriptor was left.
    #[error("no event descriptor: {0}")]
    NoDescriptor(io::Error),
}
