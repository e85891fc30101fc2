//! The server's thread, by each way to wait.

mod epoll;
mod ring;
mod spin;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::case::Way;
use super::order::{REPLY, REQUEST};

/// The connections of a lane.
pub(super) struct Site<'s> {
    /// In every set.
    pub(super) listener: &'s TcpListener,
    /// In every set; nothing happens there.
    pub(super) idle: &'s [TcpStream],
    /// That whose requests are served.
    pub(super) hot: &'s TcpStream,
}

/// Serves the requests of a connection until its peer closes it.
pub(super) fn serve(way: Way, site: &Site<'_>) -> io::Result<()> {
    match way {
        Way::Blocking => blocking(&mut Hot::new(site)),
        Way::LevelTriggered => epoll::level_triggered(site),
        Way::EdgeTriggered => epoll::edge_triggered(site),
        Way::OneShot => epoll::one_shot(site),
        Way::ReceiveFirst => epoll::receive_first(site),
        Way::HotConnection => epoll::hot_connection(site),
        Way::SpinReceive => spin::receive(site),
        Way::SpinBoth => spin::both(site),
        Way::SpinSet => spin::set(site),
        Way::Ring => ring::receive_and_send(site, ring::Look::First),
        Way::RingLater => ring::receive_and_send(site, ring::Look::Never),
        Way::RingPlainSend => ring::plain_send(site),
        Way::RingLeader => ring::leader(site),
    }
}

/// Waits in `recv`.
fn blocking(hot: &mut Hot<'_>) -> io::Result<()> {
    while hot.receive(RecvFlags::empty())? != Got::End {
        hot.reply()?;
    }
    Ok(())
}

/// The connection whose requests are served, with a frame for them.
struct Hot<'s> {
    socket: BorrowedFd<'s>,
    frame: [u8; FRAME],
}

/// What a receive has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Got {
    Request,
    /// Nothing is there, and it was not to wait.
    Nothing,
    /// The peer has closed the connection.
    End,
}

impl<'s> Hot<'s> {
    fn new(site: &Site<'s>) -> Self {
        Self {
            socket: site.hot.as_fd(),
            frame: [0; FRAME],
        }
    }

    fn receive(&mut self, flags: RecvFlags) -> io::Result<Got> {
        match recv(self.socket, &mut self.frame[..], flags) {
            Ok((octets, _)) => got(octets),
            Err(Errno::AGAIN) => Ok(Got::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    fn reply(&self) -> io::Result<()> {
        sent(send(self.socket, &ANSWER, SendFlags::NOSIGNAL)?)
    }
}

/// What so many received octets are. Requests are small and come one by one, so that none is cut.
fn got(octets: usize) -> io::Result<Got> {
    match octets {
        0 => Ok(Got::End),
        REQUEST => Ok(Got::Request),
        _ => Err(io::Error::other(format!(
            "{octets} octets came, which are no request"
        ))),
    }
}

/// A socket that has nothing to send takes a whole reply.
fn sent(octets: usize) -> io::Result<()> {
    match octets {
        REPLY => Ok(()),
        _ => Err(io::Error::other(format!(
            "only {octets} octets of a reply were sent"
        ))),
    }
}

const FRAME: usize = 4096;
const ANSWER: [u8; REPLY] = [0x5a; REPLY];
