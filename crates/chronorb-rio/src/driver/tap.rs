//! A TAP interface, which connects this process to the kernel of the same machine, for tests.
//!
//! The process is a separate host on this link, with the addresses that the test gives it. The
//! kernel is its neighbour, with the addresses that the interface gets from `ip` or
//! [netlink](chronorb_net::Netlink). One thread reads the packets of all classes, so they are
//! classified in this process and not before. Packets of no class are dropped. Neither ARP nor
//! neighbour discovery is answered, so the kernel needs a static neighbour entry.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use chronorb_net::Netlink;
use chronorb_rt::{PiMutex, Thread, ThreadBuilder, Wake};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, write};

use super::socket::{done, failed};
use super::wire::faults::Buffer;
use super::wire::pipe::Pipe;
use super::wire::receiver::PipeReceiver;
use super::{Driver, DriverError, Link, longest_frame, queue_of};
use crate::class::{ClassId, Rule, Unknown};
use crate::path::{Path, PathError, TransmitCounts, TransmitError, Transmitter};

/// A TAP interface. It is removed when this value and all of its paths are dropped, or when the
/// process ends.
#[derive(Debug)]
pub(crate) struct Tap {
    link: Link,
    shared: Arc<TapState>,
}

impl Tap {
    /// Creates an interface with this name in this network namespace, initially down. This process
    /// has this hardware address and these addresses on the link, with the interface's present MTU.
    ///
    /// # Errors
    /// [`DriverError`]: `CAP_NET_ADMIN` or `/dev/net/tun` is missing, or the name is in use.
    pub(crate) fn create(
        name: &str,
        hardware: [u8; 6],
        addresses: Vec<(IpAddr, u8)>,
    ) -> Result<Self, DriverError> {
        let tap: OwnedFd = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map(File::into)
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => DriverError::Unsupported { what: WHAT, source },
                _ => failed(WHAT, CAPABILITY)(source),
            })?;
        make_interface(&tap, name).map_err(failed(WHAT, CAPABILITY))?;
        let link = Link {
            hardware,
            addresses,
            ..Link::read(&mut Netlink::open()?, name)?
        };
        let pipe = Pipe::new(longest_frame(&link), 0, &link);
        let pipe = Arc::new(PiMutex::new(pipe));
        let shared = TapState::start(tap, pipe).map_err(failed(WHAT, CAPABILITY))?;
        Ok(Self { link, shared })
    }
}

impl Driver for Tap {
    fn link(&self) -> &Link {
        &self.link
    }

    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError> {
        let queue = queue_of(queue)?;
        let longest = longest_frame(&self.link);
        let receiver =
            PipeReceiver::open(&self.shared.pipe, class, rules, queue, self.shared.clone())?;
        let transmitter = TapTransmitter {
            shared: self.shared.clone(),
            longest,
            waiting: VecDeque::with_capacity(queue),
            free: (0..queue).map(|_| Buffer::new(longest)).collect(),
            counts: TransmitCounts::default(),
        };
        Ok(Path {
            receiver: Box::new(receiver),
            transmitter: Box::new(transmitter),
        })
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        self.shared.pipe.lock().table.add(rule)
    }

    fn remove(&self, rule: &Rule) {
        self.shared.pipe.lock().table.remove(rule);
    }

    fn set_unknown(&self, unknown: Unknown) -> Result<(), DriverError> {
        self.shared.pipe.lock().table.set_unknown(unknown)
    }
}

/// The state that the driver shares with its paths and its reader thread.
#[derive(Debug)]
struct TapState {
    tap: Arc<OwnedFd>,
    pipe: Arc<PiMutex<Pipe>>,
    stop: Arc<Wake>,
    reader: Option<Thread<()>>,
}

impl TapState {
    fn start(tap: OwnedFd, pipe: Arc<PiMutex<Pipe>>) -> io::Result<Arc<Self>> {
        let (tap, stop) = (Arc::new(tap), Arc::new(Wake::new()?));
        let reader = {
            let (tap, pipe, stop) = (tap.clone(), pipe.clone(), stop.clone());
            ThreadBuilder::new("tap").spawn(move || read_all(&tap, &pipe, &stop))
        };
        Ok(Arc::new(Self {
            tap,
            pipe,
            stop,
            reader: Some(reader.map_err(io::Error::other)?),
        }))
    }
}

impl Drop for TapState {
    fn drop(&mut self) {
        self.stop.notify();
        if let Some(reader) = self.reader.take() {
            // A panic of the reader has ended it too.
            let _ended = reader.join();
        }
    }
}

/// Puts arriving frames into the queues of their classes until it is stopped or the interface is
/// gone.
fn read_all(tap: &OwnedFd, pipe: &PiMutex<Pipe>, stop: &Wake) {
    loop {
        let mut fds = [
            PollFd::new(tap, PollFlags::IN),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        loop {
            // Every holder of buffers has contributed as many, so one is free.
            let Some(mut buffer) = pipe.lock().free.pop() else {
                return;
            };
            let frame = read(tap, buffer.whole());
            let mut pipe = pipe.lock();
            match frame {
                Ok(len) => {
                    buffer.resize(len);
                    pipe.send(buffer);
                }
                Err(error) => {
                    pipe.free.push(buffer);
                    match error {
                        Errno::INTR => {}
                        Errno::AGAIN => break,
                        _ => return,
                    }
                }
            }
        }
    }
}

#[derive(Debug)]
struct TapTransmitter {
    shared: Arc<TapState>,
    longest: usize,
    waiting: VecDeque<Buffer>,
    free: Vec<Buffer>,
    counts: TransmitCounts,
}

impl Transmitter for TapTransmitter {
    fn transmit(
        &mut self,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError> {
        if len > self.longest {
            let max = self.longest;
            return Err(TransmitError::TooLong { len, max });
        }
        let Some(mut buffer) = self.free.pop() else {
            self.counts.full += 1;
            return Err(TransmitError::Full);
        };
        fill(buffer.resize(len));
        self.waiting.push_back(buffer);
        self.counts.frames += 1;
        self.counts.octets += len as u64;
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        !self.free.is_empty()
    }

    fn flush(&mut self) -> Result<(), PathError> {
        while let Some(frame) = self.waiting.front() {
            match write(&*self.shared.tap, frame.octets()) {
                Err(Errno::INTR) => continue,
                // An invalid frame, which no interface would accept.
                Ok(_) | Err(Errno::INVAL) => {}
                // The interface has been deleted.
                Err(error @ Errno::BADFD) => return Err(io::Error::from(error).into()),
                // An interface that is down can come up again.
                Err(_) => return Ok(()),
            }
            self.free.extend(self.waiting.pop_front());
        }
        Ok(())
    }

    fn is_pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn counts(&self) -> TransmitCounts {
        self.counts
    }
}

/// Creates a TAP interface with this name. It exists until the descriptor is closed.
fn make_interface(tap: &OwnedFd, name: &str) -> io::Result<()> {
    // SAFETY: all of its fields may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let octets = name.as_bytes();
    // The last octet of the name is the zero that ends it.
    if octets.is_empty() || octets.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, octet) in request.ifr_name.iter_mut().zip(octets) {
        *place = octet.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is alive, and of the type that this call takes.
    done(unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })
}

const WHAT: &str = "a TAP interface";
const CAPABILITY: &str = "cap_net_admin";
