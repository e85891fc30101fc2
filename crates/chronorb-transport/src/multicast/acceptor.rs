//! Listening at a group.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use chronorb_rt::PiMutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{self, sockopt};

use super::collections::{Collections, Limits};
use super::counts::Counters;
use super::options::{Interface, MulticastOptions, socket};
use super::receiver::Receiver;
use crate::ip_options;
use crate::{AcceptError, Acceptor, Address, Connection, Setup};

/// A group that is listened at. It has one connection, and another one when that is over.
#[derive(Debug)]
pub(super) struct GroupAcceptor {
    group: SocketAddr,
    options: MulticastOptions,
    setup: Setup,
    counters: Arc<Counters>,
    published: [Address; 1],
    /// The socket of the first connection, which is open since listening began.
    first: PiMutex<Option<OwnedFd>>,
    /// Readable while there is no connection.
    vacancy: Arc<Vacancy>,
}

impl GroupAcceptor {
    pub(super) fn open(
        group: SocketAddr,
        options: MulticastOptions,
        setup: Setup,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let first = listen(group, &options, setup)?;
        Ok(Self {
            group,
            options,
            setup,
            counters,
            published: [Address::host(group.ip().to_string(), group.port())],
            first: PiMutex::new(Some(first)),
            vacancy: Arc::new(Vacancy::new()?),
        })
    }
}

impl Acceptor for GroupAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        if !self.vacancy.take() {
            return Ok(None);
        }
        let first = self.first.lock().take();
        let socket = first.map_or_else(|| listen(self.group, &self.options, self.setup), Ok);
        let socket = socket.map_err(|error| {
            self.vacancy.tell();
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                None | Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    AcceptError::Exhausted
                }
                Some(other) => AcceptError::Failed(other),
            }
        })?;
        let limits = Limits {
            message: self.setup.messages.max.min(self.options.max as usize),
            ..Limits::of_messages(self.options.max as usize)
        };
        let collections = Collections::new(limits, self.setup.messages);
        Ok(Some(Box::new(Receiver::new(
            socket,
            self.group,
            collections,
            self.counters.clone(),
            self.vacancy.clone(),
        ))))
    }

    fn published(&self) -> &[Address] {
        &self.published
    }
}

impl AsFd for GroupAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.vacancy.0.as_fd()
    }
}

/// Whether there is no connection: a descriptor that is readable then.
#[derive(Debug)]
pub(super) struct Vacancy(OwnedFd);

impl Vacancy {
    fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            1,
            EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC,
        )?))
    }

    /// Whether there was no connection; now there is.
    fn take(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }

    /// There is none any more.
    pub(super) fn tell(&self) {
        // It is refused only if it was notified 2^64 times and never read.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// Makes a socket that receives only the group's packets.
fn listen(group: SocketAddr, options: &MulticastOptions, setup: Setup) -> io::Result<OwnedFd> {
    let socket = socket(group)?;
    // Other processes of this machine may listen at the same group, and each receives all packets.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    crate::sys::hear_only_joined_groups(&socket, group.is_ipv6())?;
    let mut properties = setup.options;
    properties.receive_buffer.get_or_insert(RECEIVE_BUFFER);
    ip_options::set(&socket, properties)?;
    let interface = Interface::of(options, &socket)?;
    net::bind(&socket, &interface.scoped(group))?;
    interface.join(&socket, group.ip())?;
    Ok(socket)
}

/// The receive buffer that is requested by default; the kernel limits it to `net.core.rmem_max`.
/// The packets of a large message arrive faster than they are read.
const RECEIVE_BUFFER: u32 = 4 << 20;
