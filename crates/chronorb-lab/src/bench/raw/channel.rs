//! What moves frames of a known length between two processes, with nothing above it.

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

/// A way between two processes.
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
                // A datagram that is lost is an error, and no wait without an end.
                socket.set_read_timeout(Some(PATIENCE))?;
                let mut meeting = Meeting::of(stream(address)?);
                meeting.say(&own)?;
                socket.connect(meeting.hear()?)?;
                Ok(Self::Udp(Socket::new(socket, waits)))
            }
            Medium::Multicast => {
                let socket = multicast::sender(address)?;
                Ok(Self::Group(multicast::Group::new(socket, waits)))
            }
            Medium::Memory => {
                let memory = Memory::create(waits)?;
                let mut meeting = Meeting::of(stream(address)?);
                meeting.say(&memory.mailboxes.path())?;
                // The other side has it.
                meeting.hear()?;
                Ok(Self::Memory(memory))
            }
            Medium::Tls(certificates) => {
                let socket = Socket::new(stream(address)?, waits);
                let stream = tls::Stream::connect(socket, certificates)?;
                Ok(Self::Tls(Box::new(stream)))
            }
        }
    }

    /// Sends all of it.
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

    /// Wakes the other side after a while in which nothing was sent, where what is sent does not.
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

/// Where channels of a medium begin.
pub(super) enum Listener {
    Stream(TcpListener, Medium),
    Unix(UnixListener),
    /// The one channel that there is.
    Multicast(Option<UdpSocket>),
    Tls(TcpListener, tls::Acceptor),
}

impl Listener {
    /// Listens where this machine alone reaches it; returns its address, too.
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
                // There will be no other one.
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
                        let mut meeting = Meeting::of(stream);
                        socket.connect(meeting.hear()?)?;
                        meeting.say(&own)?;
                        Ok(Channel::Udp(Socket::new(socket, waits)))
                    }
                    Medium::Memory => {
                        let mut meeting = Meeting::of(stream);
                        let mailboxes = Mailboxes::open(&meeting.hear()?)?;
                        meeting.say("")?;
                        Ok(Channel::Memory(Memory { mailboxes, waits }))
                    }
                    _ => Ok(Channel::Tcp(Socket::new(stream, waits))),
                }
            }
        }
    }
}

/// A socket, and how its reader waits.
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

    /// Looks again and again, for so long as who spins does; nothing if that is over, or if it does not spin.
    fn look(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
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
        match self.look(buffer)? {
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

/// Mailboxes, and how their reader waits.
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
                    // Who is not roused looks now and then.
                    self.mailboxes.wait(super::SPIN);
                }
            }
        }
    }
}

/// Looks until there is something, or until a ping-pong must be over.
fn spin<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut since = None;
    loop {
        // The clock costs more than a look, so it is asked now and then only.
        for _ in 0..LOOKS {
            if let Some(found) = look() {
                return Some(found);
            }
        }
        if Monotonic::now().since(*since.get_or_insert_with(Monotonic::now)) > super::SPIN {
            return None;
        }
    }
}

/// A connection by which two agree on another way.
struct Meeting(BufReader<TcpStream>);

impl Meeting {
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

/// Listens on a free port, for TCP and for those who meet by it.
pub(super) fn listen() -> io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?.to_string();
    Ok((listener, address))
}

fn stream(address: &str) -> io::Result<TcpStream> {
    quick(TcpStream::connect(address)?)
}

/// One that sends at once what it is given.
fn quick(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A socket for datagrams, and its address.
fn datagrams() -> io::Result<(UdpSocket, String)> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = socket.local_addr()?.to_string();
    Ok((socket, address))
}

/// How many Unix-domain sockets got a name in this process.
static NAMED: AtomicU32 = AtomicU32::new(0);

/// How often who spins looks before it asks for the time.
const LOOKS: u32 = 64;
/// Octets of the longest frame in shared memory.
const LARGEST: usize = 1 << 21;
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);
