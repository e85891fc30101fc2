//! The loops of the server's thread, one for each way to wait.

mod epoll;
mod ring;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::case::WaitMethod;
use super::server::{REPLY, REQUEST};
use epoll::Set;

/// The connections of a lane.
pub(super) struct Connections<'s> {
    /// The listening socket, which every wait set contains.
    pub(super) listener: &'s TcpListener,
    /// The idle connections, which are in every set.
    pub(super) idle: &'s [TcpStream],
    /// The connection whose requests are served.
    pub(super) hot: &'s TcpStream,
}

/// Serves the requests of a connection until its peer closes it.
pub(super) fn serve(way: WaitMethod, connections: &Connections<'_>) -> io::Result<()> {
    let mut hot = HotConnection::new(connections);
    let edge_triggered = || Set::with_hot(connections, EventFlags::ET);
    let ready = || Ok(());
    match way {
        WaitMethod::Blocking => hot.serve(RecvFlags::empty(), ready, ready),
        WaitMethod::LevelTriggered => {
            let set = Set::with_hot(connections, EventFlags::empty())?;
            hot.serve(RecvFlags::DONTWAIT, || set.wait(), ready)
        }
        WaitMethod::EdgeTriggered => {
            let set = edge_triggered()?;
            hot.serve(RecvFlags::DONTWAIT, || set.wait(), ready)
        }
        WaitMethod::OneShot => epoll::one_shot(connections, &mut hot),
        WaitMethod::ReceiveFirst => {
            let set = edge_triggered()?;
            hot.serve(RecvFlags::DONTWAIT, ready, || set.wait())
        }
        WaitMethod::HotConnection => epoll::hot_connection(connections, &mut hot),
        WaitMethod::SpinReceive => hot.serve(RecvFlags::DONTWAIT, ready, ready),
        WaitMethod::SpinBoth => {
            // The next `recv` finds all that the set reports: the set is polled for the others.
            let set = edge_triggered()?;
            hot.serve(RecvFlags::DONTWAIT, ready, || set.poll().map(drop))
        }
        WaitMethod::SpinSet => {
            let set = edge_triggered()?;
            let poll = || {
                while !set.poll()? {}
                Ok(())
            };
            hot.serve(RecvFlags::DONTWAIT, poll, ready)
        }
        WaitMethod::Ring
        | WaitMethod::RingLater
        | WaitMethod::RingPlainSend
        | WaitMethod::RingLeader => ring::serve(way, connections),
    }
}

/// The connection whose requests are served, with a frame for them.
struct HotConnection<'s> {
    socket: BorrowedFd<'s>,
    frame: [u8; FRAME],
}

/// The result of a receive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Receipt {
    Request,
    /// Nothing, from a receive that does not wait.
    Nothing,
    /// The end of the stream: the peer has closed the connection.
    End,
}

impl<'s> HotConnection<'s> {
    fn new(connections: &Connections<'s>) -> Self {
        Self {
            socket: connections.hot.as_fd(),
            frame: [0; FRAME],
        }
    }

    /// Serves until the peer closes the connection. Calls `wait` before each receive, and
    /// `on_empty` after each that found nothing.
    fn serve(
        &mut self,
        flags: RecvFlags,
        mut wait: impl FnMut() -> io::Result<()>,
        mut on_empty: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            wait()?;
            match self.receive(flags)? {
                Receipt::Request => self.reply()?,
                Receipt::Nothing => on_empty()?,
                Receipt::End => return Ok(()),
            }
        }
    }

    fn receive(&mut self, flags: RecvFlags) -> io::Result<Receipt> {
        match recv(self.socket, &mut self.frame[..], flags) {
            Ok((octets, _)) => receipt(octets),
            Err(Errno::AGAIN) => Ok(Receipt::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    fn reply(&self) -> io::Result<()> {
        check_sent(send(self.socket, &ANSWER, SendFlags::NOSIGNAL)?)
    }
}

/// Classifies a receive by its octets. Requests are small and come one at a time, so none is cut.
fn receipt(octets: usize) -> io::Result<Receipt> {
    match octets {
        0 => Ok(Receipt::End),
        REQUEST => Ok(Receipt::Request),
        _ => Err(io::Error::other(format!(
            "{octets} octets came, which are no request"
        ))),
    }
}

/// Checks that a reply was sent whole, as a socket with an empty buffer does.
fn check_sent(octets: usize) -> io::Result<()> {
    match octets {
        REPLY => Ok(()),
        _ => Err(io::Error::other(format!(
            "only {octets} octets of a reply were sent"
        ))),
    }
}

const FRAME: usize = 4096;
const ANSWER: [u8; REPLY] = [0x5a; REPLY];
