//! A transport that disturbs another one, by a plan that can be repeated.
//!
//! [`Faulty`] wraps any [`Transport`] and disturbs its connections by a [`FaultPlan`]: delays,
//! short reads and writes, messages that are lost, duplicated or overtaken, garbage, ends in the
//! middle, silence. The faults are drawn from a seeded random sequence of each connection and
//! direction, in the order of their creation. So the same octets in the same portions meet the same
//! faults.
//!
//! It always keeps the contract of [`Connection`]: a thread that waits for a delayed octet is woken
//! when that is due, by a timer in an epoll set with the socket. No thread of its own is needed.
//! The set is the descriptor of the connection, so room to send is reported as input.
//!
//! * *Delays* of incoming octets begin when the octets are first seen. Outgoing octets are accepted
//!   late, so that the sender waits, because no other thread could send them later.
//! * *Loss, doubling and overtaking* are for connections that carry messages; a stream for which
//!   they are asked is refused.
//! * *Silence* (`stall`): from then on that direction takes everything and hands nothing on.
//! * *Flipped bits* may be in a value, where a protocol without a checksum cannot detect them;
//!   calls may then have wrong results.

mod alarm;
mod connection;
mod dice;
mod fate;
mod incoming;
mod outgoing;
mod plan;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::{Deadline, PiMutex};
use rustix::io::Errno;

use self::connection::FaultyConnection;
use self::dice::Dice;
pub use self::plan::{Delay, Direction, FaultPlan, FaultPlanError, FaultPlans};
use crate::{
    AcceptError, Acceptor, Address, Carriage, ConnectError, Connection, Endpoint, EndpointError,
    ListenError, Setup, Transport,
};

/// A transport that disturbs another one.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Transport>,
    plan: FaultPlan,
    connects: PiMutex<Dice>,
    connected: AtomicU64,
    accepted: Arc<AtomicU64>,
}

impl Faulty {
    /// Disturbs the connections of `inner` by `plan`.
    pub fn new(inner: impl Into<Arc<dyn Transport>>, plan: FaultPlan) -> Self {
        Self {
            inner: inner.into(),
            connects: PiMutex::new(Dice::new(plan.seed, CONNECTS, 0)),
            plan,
            connected: AtomicU64::new(0),
            accepted: Arc::new(AtomicU64::new(0)),
        }
    }
}

impl Transport for Faulty {
    fn scheme(&self) -> &str {
        self.inner.scheme()
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        self.inner.check(endpoint)
    }

    fn reload(&self) -> io::Result<()> {
        self.inner.reload()
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let acceptors = self.inner.listen(endpoint, setup)?;
        let wrap = |(at, inner)| -> Box<dyn Acceptor> {
            Box::new(FaultyAcceptor {
                inner,
                plan: self.plan.clone(),
                setup,
                dice: PiMutex::new(Dice::new(self.plan.seed, ACCEPTS, at as u64)),
                accepted: self.accepted.clone(),
            })
        };
        Ok(acceptors.into_iter().enumerate().map(wrap).collect())
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        if self.connects.lock().falls(self.plan.refuse) {
            return Err(ConnectError::Refused {
                address: address.to_string(),
                source: Errno::CONNREFUSED.into(),
            });
        }
        let inner = self.inner.connect(address, setup, deadline)?;
        if let Some(problem) = misfit(&self.plan, &*inner) {
            return Err(ConnectError::Refused {
                address: address.to_string(),
                source: io::Error::new(io::ErrorKind::InvalidInput, problem),
            });
        }
        let number = 2 * self.connected.fetch_add(1, Ordering::Relaxed);
        let wrapped = FaultyConnection::new(inner, &self.plan, setup.messages, number);
        let wrapped = wrapped.map_err(|source| ConnectError::Refused {
            address: address.to_string(),
            source,
        })?;
        Ok(Box::new(wrapped))
    }
}

#[derive(Debug)]
struct FaultyAcceptor {
    inner: Box<dyn Acceptor>,
    plan: FaultPlan,
    setup: Setup,
    dice: PiMutex<Dice>,
    accepted: Arc<AtomicU64>,
}

impl Acceptor for FaultyAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        if self.dice.lock().falls(self.plan.exhaust) {
            return Err(AcceptError::Exhausted);
        }
        let Some(inner) = self.inner.accept()? else {
            return Ok(None);
        };
        if misfit(&self.plan, &*inner).is_some() {
            return Err(AcceptError::Failed(Errno::OPNOTSUPP));
        }
        let number = 2 * self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        match FaultyConnection::new(inner, &self.plan, self.setup.messages, number) {
            Ok(wrapped) => Ok(Some(Box::new(wrapped))),
            Err(_) => Err(AcceptError::Exhausted),
        }
    }

    fn published(&self) -> &[Address] {
        self.inner.published()
    }
}

impl AsFd for FaultyAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Returns the reason why these faults are impossible on this connection.
fn misfit(plan: &FaultPlan, connection: &dyn Connection) -> Option<String> {
    let fault = plan.fault_of_messages()?;
    matches!(connection.carriage(), Carriage::Stream).then(|| {
        format!(
            "the fault {fault:?} is for transports that carry messages, and this one is a \
            stream; put the scheme of such a transport before it, for example diop:{fault}=0.01"
        )
    })
}

/// The random sequence for connects, besides those of the directions of connections.
const CONNECTS: u64 = u64::MAX;
const ACCEPTS: u64 = u64::MAX - 1;
