//! Channels that move frames of a known length between two processes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixListener, UnixStream};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_probe::Mailboxes;
use chronorb_rt::Monotonic;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::super::order::{Medium, Waits};
use super::multicast;
use super::tls;

/// A channel between two processes.
pub(crate) enum Channel {
    Tcp(Socket<TcpStream>),
    Unix(Socket<UnixStream>),
    Udp(Socket<UdpSocket>),
    Group(multicast::Group),
    Memory(Memory),
    Tls(Box<tls::Stream>),
}

impl Channel {
    /// Connects to a listener of this medium.
    pub(super) fn connect(medium: &Medium, address: &str, waits: Waits) -> io::Result<Self> {
        match medium {
            Medium::Tcp => Ok(Self::Tcp(Socket::new(stream(address)?, waits))),
            Medium::Unix => {
                let address = unix::SocketAddr::from_abstract_name(address)?;
                let stream = UnixStream::connect_addr(&address)?;
                Ok(Self::Unix(Socket::new(stream, waits)))
            }
            Medium::Udp => {
                let (socket, own) = datagrams()?;
                // A lost datagram becomes an error instead of an endless wait.
                socket.set_read_timeout(Some(PATIENCE))?;
                let mut handshake = Handshake::of(stream(address)?);
                handshake.say(&own)?;
                socket.connect(handshake.hear()?)?;
                Ok(Self::Udp(Socket::new(socket, waits)))
            }
            Medium::Multicast => {
                let socket = multicast::sender(address)?;
                Ok(Self::Group(multicast::Group::new(socket, waits)))
            }
            Medium::Memory => {
                let memory = Memory::create(waits)?;
                let mut handshake = Handshake::of(stream(address)?);
                handshake.say(&memory.mailboxes.path())?;
                // The other side has opened the memory.
                handshake.hear()?;
                Ok(Self::Memory(memory))
            }
            Medium::Tls(certificates) => {
                let socket = Socket::new(stream(address)?, waits);
                let stream = tls::Stream::connect(socket, certificates)?;
                Ok(Self::Tls(Box::new(stream)))
            }
        }
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.stream.write_all(frame),
            Self::Unix(socket) => socket.stream.write_all(frame),
            Self::Udp(socket) => socket.stream.send(frame).map(drop),
            Self::Group(group) => group.send(frame),
            Self::Memory(memory) => memory.send(frame),
            Self::Tls(stream) => stream.write_all(frame),
        }
    }

    /// Wakes the other side after a pause, if sending alone does not.
    pub(super) fn rouse(&self) {
        if let Self::Memory(memory) = self {
            memory.mailboxes.wake();
        }
    }

    /// Waits until the frame is full.
    pub(super) fn receive(&mut self, frame: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.read_exact(frame),
            Self::Unix(socket) => socket.read_exact(frame),
            Self::Udp(socket) => socket.receive(frame),
            Self::Group(group) => group.receive(frame),
            Self::Memory(memory) => {
                memory.receive(frame);
                Ok(())
            }
            Self::Tls(stream) => stream.read_exact(frame),
        }
    }
}

/// The listener of a medium.
pub(super) enum Listener {
    Stream(TcpListener, Medium),
    Unix(UnixListener),
    /// The only channel.
    Multicast(Option<UdpSocket>),
    Tls(TcpListener, tls::Acceptor),
}

impl Listener {
    /// Listens at an address that only this machine can reach. Returns the address, too.
    pub(super) fn open(medium: &Medium) -> io::Result<(Self, String)> {
        match medium {
            Medium::Unix => {
                let number = NAMED.fetch_add(1, Ordering::Relaxed);
                let address = format!("chronorb-lab-{}-{number}", process::id());
                let name = unix::SocketAddr::from_abstract_name(&address)?;
                Ok((Self::Unix(UnixListener::bind_addr(&name)?), address))
            }
            Medium::Multicast => {
                let (socket, address) = multicast::receiver()?;
                Ok((Self::Multicast(Some(socket)), address))
            }
            Medium::Tls(certificates) => {
                let acceptor = tls::Acceptor::new(certificates)?;
                let (listener, address) = listen()?;
                Ok((Self::Tls(listener, acceptor), address))
            }
            Medium::Tcp | Medium::Udp | Medium::Memory => {
                let (listener, address) = listen()?;
                Ok((Self::Stream(listener, medium.clone()), address))
            }
        }
    }

    /// Waits for the next channel.
    pub(super) fn accept(&mut self, waits: Waits) -> io::Result<Channel> {
        match self {
            Self::Unix(listener) => Ok(Channel::Unix(Socket::new(listener.accept()?.0, waits))),
            Self::Multicast(socket) => match socket.take() {
                Some(socket) => Ok(Channel::Group(multicast::Group::new(socket, waits))),
                // There is no second channel.
                None => loop {
                    std::thread::park();
                },
            },
            Self::Tls(listener, acceptor) => {
                let socket = Socket::new(quick(listener.accept()?.0)?, waits);
                Ok(Channel::Tls(Box::new(acceptor.accept(socket)?)))
            }
            Self::Stream(listener, medium) => {
                let stream = quick(listener.accept()?.0)?;
                match medium {
                    Medium::Udp => {
                        let (socket, own) = datagrams()?;
                        let mut handshake = Handshake::of(stream);
                        socket.connect(handshake.hear()?)?;
                        handshake.say(&own)?;
                        Ok(Channel::Udp(Socket::new(socket, waits)))
                    }
                    Medium::Memory => {
                        let mut handshake = Handshake::of(stream);
                        let mailboxes = Mailboxes::open(&handshake.hear()?)?;
                        handshake.say("")?;
                        Ok(Channel::Memory(Memory { mailboxes, waits }))
                    }
                    _ => Ok(Channel::Tcp(Socket::new(stream, waits))),
                }
            }
        }
    }
}

/// A socket, with the way in which its reader waits.
pub(crate) struct Socket<S> {
    stream: S,
    waits: Waits,
}

impl<S: AsFd> Socket<S> {
    pub(super) const fn new(stream: S, waits: Waits) -> Self {
        Self { stream, waits }
    }

    pub(super) const fn inner(&self) -> &S {
        &self.stream
    }

    /// Polls for as long as a thread spins; returns nothing after that, or if it blocks.
    fn poll(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.waits == Waits::Block {
            return Ok(None);
        }
        spin(
            || match recv(&self.stream, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((octets, _)) => Some(Ok(octets)),
                Err(Errno::AGAIN) => None,
                Err(error) => Some(Err(error.into())),
            },
        )
        .transpose()
    }
}

impl<S: AsFd> Read for Socket<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.poll(buffer)? {
            Some(octets) => Ok(octets),
            None => Ok(recv(&self.stream, buffer, RecvFlags::empty())?.0),
        }
    }
}

impl<S: Write> Write for Socket<S> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.stream.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket<UdpSocket> {
    /// Receives one datagram, which has to be as long as the frame.
    fn receive(&mut self, frame: &mut [u8]) -> io::Result<()> {
        match self.read(frame)? {
            octets if octets == frame.len() => Ok(()),
            octets => Err(io::Error::other(format!("a datagram of {octets} octets"))),
        }
    }
}

/// Mailboxes, with the way in which their reader waits.
pub(crate) struct Memory {
    mailboxes: Mailboxes,
    waits: Waits,
}

impl Memory {
    fn create(waits: Waits) -> io::Result<Self> {
        Ok(Self {
            mailboxes: Mailboxes::create(LARGEST)?,
            waits,
        })
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.mailboxes.put(frame)?;
        if self.waits == Waits::Block {
            self.mailboxes.wake();
        }
        Ok(())
    }

    fn receive(&mut self, frame: &mut [u8]) {
        match self.waits {
            Waits::Block => {
                while !self.mailboxes.take(frame) {
                    self.mailboxes.wait(PATIENCE);
                }
            }
            Waits::Spin => {
                while spin(|| self.mailboxes.take(frame).then_some(())).is_none() {
                    // Without a wake-up the reader polls from time to time.
                    self.mailboxes.wait(super::SPIN);
                }
            }
        }
    }
}

/// Polls until there is a result, or until a ping-pong must be over.
fn spin<T>(mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let mut since = None;
    loop {
        // The clock costs more than a poll, so it is read only from time to time.
        for _ in 0..POLLS {
            if let Some(found) = poll() {
                return Some(found);
            }
        }
        if Monotonic::now().since(*since.get_or_insert_with(Monotonic::now)) > super::SPIN {
            return None;
        }
    }
}

/// A connection on which two sides agree on another channel.
struct Handshake(BufReader<TcpStream>);

impl Handshake {
    fn of(stream: TcpStream) -> Self {
        Self(BufReader::new(stream))
    }

    fn say(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.0.get_mut(), "{what}")
    }

    fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

/// Listens on a free port, for TCP or for handshakes.
pub(super) fn listen() -> io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?.to_string();
    Ok((listener, address))
}

fn stream(address: &str) -> io::Result<TcpStream> {
    quick(TcpStream::connect(address)?)
}

/// Makes a stream send without delay.
fn quick(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns a socket for datagrams, and its address.
fn datagrams() -> io::Result<(UdpSocket, String)> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = socket.local_addr()?.to_string();
    Ok((socket, address))
}

/// The number of Unix-domain sockets that this process has named.
static NAMED: AtomicU32 = AtomicU32::new(0);

/// The polls of a spinning thread for each reading of the clock.
const POLLS: u32 = 64;
/// The octets of the longest frame in shared memory.
const LARGEST: usize = 1 << 21;
/// The time that a reply may take.
const PATIENCE: Duration = Duration::from_secs(30);
