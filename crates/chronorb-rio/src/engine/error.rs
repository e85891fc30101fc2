//! Errors by operation.

use std::io;
use std::net::{IpAddr, SocketAddr};

use chronorb_rt::{ReservationError, SpawnError};
use thiserror::Error;

use crate::driver::DriverError;
use crate::plan::Refusal;

/// An error while a class, or an endpoint of one, is opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum ClassOpenError {
    /// The interface has the maximum number of classes.
    #[error("the interface has {} classes already", crate::class::MAX_CLASSES)]
    TooManyClasses,
    /// The queue could overflow though all peers respect their windows.
    #[error(
        "the queue of {queue} frames is shorter than the windows of the peers: {connections} \
         connections of {frames} frames each are {}; make the queue longer, or connections or \
         buffer smaller",
        connections * frames
    )]
    ShortQueue {
        /// The length of the queue in frames.
        queue: usize,
        /// The maximum number of connections.
        connections: usize,
        /// The maximum number of frames in a window.
        frames: usize,
    },
    /// Admission control refused the class: its reservation, or that of an open class, could not be
    /// kept.
    #[error("class {class:?} is not admitted: {refusal}")]
    Refused {
        /// The class to be opened.
        class: String,
        /// The class whose reservation could not be kept, and the reason.
        refusal: Box<Refusal>,
    },
    /// A value of the class is out of range.
    #[error("the {what} of class {class:?} is {value}; it can be {possible}")]
    Value {
        /// The class.
        class: String,
        /// The name of the value.
        what: &'static str,
        /// The value.
        value: u128,
        /// The permitted values.
        possible: &'static str,
    },
    /// The interface does not have the address.
    #[error("{0} is no address of the interface")]
    NoAddress(IpAddr),
    /// The address is in use.
    #[error("{0} is in use")]
    InUse(SocketAddr),
    /// The interface's driver returned an error.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The thread of the class was not created.
    #[error(transparent)]
    Thread(#[from] SpawnError),
    /// The thread of the class did not get its deadline reservation.
    #[error(transparent)]
    Reservation(#[from] ReservationError),
    /// Another system call failed.
    #[error("{what}: {source}")]
    Failed {
        /// The attempted operation.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}

/// An error of an outgoing connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum ConnectFault {
    /// The peer refused the connection.
    #[error("the peer refused the connection")]
    Refused,
    /// The deadline passed.
    #[error("no answer in time")]
    TimedOut,
    /// The interface has no address of that family.
    #[error("the interface has no address to reach {0} from")]
    NoAddress(IpAddr),
    /// The next hop's hardware address is unknown.
    #[error("no route to {to}: {source}")]
    NoWay {
        /// The peer.
        to: IpAddr,
        /// The error of the lookup.
        source: io::Error,
    },
    /// The class has the maximum number of connections.
    #[error("all {0} connections of the class are in use")]
    TooMany(usize),
    /// The interface failed, or its subsystem has ended.
    #[error("the class has ended with its interface")]
    Ended,
    /// No port was free, or the class has ended.
    #[error(transparent)]
    Open(#[from] ClassOpenError),
    /// No file descriptor was left.
    #[error("no event descriptor: {0}")]
    NoDescriptor(io::Error),
}
