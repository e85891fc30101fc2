//! A TAP interface: this process at one end, the kernel of the same machine at the other.
//!
//! The process is a host of its own there, with the addresses that it is given, and the kernel is
//! its neighbour, with those that the interface gets from `ip` or [netlink](chronorb_net::Netlink).
//! It is for tests: one thread reads what comes for all classes, so that they are told apart in
//! this process and not before. What no class wants is lost; neither ARP nor neighbour discovery is
//! answered, so the kernel has to be told the hardware address.
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
use super::wire::receiver::WayReceiver;
use super::wire::way::Way;
use super::{Driver, DriverError, Link, longest_frame, queue_of};
use crate::class::{ClassId, Rule, Unknown};
use crate::path::{Path, PathError, TransmitError, Transmitted, Transmitter};

/// A TAP interface. It goes when this and all of its paths have gone, or with the process.
#[derive(Debug)]
pub(crate) struct Tap {
    link: Link,
    shared: Arc<Shared>,
}

impl Tap {
    /// Makes an interface of this name in this network namespace, which is down at first. This
    /// process is there under this hardware address and these addresses, with the interface's MTU
    /// of now.
    ///
    /// # Errors
    /// [`DriverError`]: `CAP_NET_ADMIN` is missing, or `/dev/net/tun`; the name is taken.
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
        let way = Way::new(longest_frame(&link), 0, &link);
        let way = Arc::new(PiMutex::new(way));
        let shared = Shared::start(tap, way).map_err(failed(WHAT, CAPABILITY))?;
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
            WayReceiver::open(&self.shared.way, class, rules, queue, self.shared.clone())?;
        let transmitter = TapTransmitter {
            shared: self.shared.clone(),
            longest,
            waiting: VecDeque::with_capacity(queue),
            free: (0..queue).map(|_| Buffer::new(longest)).collect(),
            counts: Transmitted::default(),
        };
        Ok(Path {
            receiver: Box::new(receiver),
            transmitter: Box::new(transmitter),
        })
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        self.shared.way.lock().table.add(rule)
    }

    fn remove(&self, rule: &Rule) {
        self.shared.way.lock().table.remove(rule);
    }

    fn set_unknown(&self, unknown: Unknown) -> Result<(), DriverError> {
        self.shared.way.lock().table.set_unknown(unknown)
    }
}

/// What the driver and its paths have in common, and the thread that reads.
#[derive(Debug)]
struct Shared {
    tap: Arc<OwnedFd>,
    way: Arc<PiMutex<Way>>,
    stop: Arc<Wake>,
    reader: Option<Thread<()>>,
}

impl Shared {
    fn start(tap: OwnedFd, way: Arc<PiMutex<Way>>) -> io::Result<Arc<Self>> {
        let (tap, stop) = (Arc::new(tap), Arc::new(Wake::new()?));
        let reader = {
            let (tap, way, stop) = (tap.clone(), way.clone(), stop.clone());
            ThreadBuilder::new("tap").spawn(move || read_all(&tap, &way, &stop))
        };
        Ok(Arc::new(Self {
            tap,
            way,
            stop,
            reader: Some(reader.map_err(io::Error::other)?),
        }))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop.notify();
        if let Some(reader) = self.reader.take() {
            // If it has panicked, it has ended.
            let _ended = reader.join();
        }
    }
}

/// Puts what comes into the queues of the classes, until it is stopped or the interface is gone.
fn read_all(tap: &OwnedFd, way: &PiMutex<Way>, stop: &Wake) {
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
            // Whoever holds buffers has brought some, so that there is one.
            let Some(mut buffer) = way.lock().free.pop() else {
                return;
            };
            let frame = read(tap, buffer.whole());
            let mut way = way.lock();
            match frame {
                Ok(len) => {
                    buffer.resize(len);
                    way.send(buffer);
                }
                Err(error) => {
                    way.free.push(buffer);
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
    shared: Arc<Shared>,
    longest: usize,
    waiting: VecDeque<Buffer>,
    free: Vec<Buffer>,
    counts: Transmitted,
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
                // One that no interface would take.
                Ok(_) | Err(Errno::INVAL) => {}
                // Somebody has deleted the interface.
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

    fn counts(&self) -> Transmitted {
        self.counts
    }
}

/// Makes a TAP interface of this name, which lasts as long as the descriptor.
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
