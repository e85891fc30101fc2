//! The content of the socket: the memory, once, and then octets that ring.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::mem::MaybeUninit;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};

use chronorb_probe::{Activity, doing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use super::MAX_RING;
use super::memory::Memory;
use crate::IoError;

/// Sends the memory, as the first message on the socket.
#[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
pub(super) fn offer(socket: &OwnedFd, file: &OwnedFd, ring: usize) -> Result<(), Errno> {
    let hello = hello(ring);
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match net::sendmsg(socket, &[IoSlice::new(&hello)], &mut ancillary, flags) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Takes the memory over, whose rings have at most `largest` octets, without waiting for it.
///
/// # Errors
/// [`IoError::WouldBlock`] if it has not arrived yet; [`IoError::Violated`] if anything else has
/// arrived.
#[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
pub(super) fn accept(socket: &OwnedFd, largest: usize) -> Result<Memory, IoError> {
    let _receiving = doing(Activity::InputOutput);
    let mut hello = [0; HELLO_LEN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        let mut room = [IoSliceMut::new(&mut hello)];
        match net::recvmsg(socket, &mut room, &mut ancillary, flags) {
            Ok(received) => break received,
            Err(Errno::INTR) => {}
            Err(error) => return Err(IoError::from_errno(error)),
        }
    };
    let (mut file, mut more) = (None, false);
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            for each in files {
                more |= file.replace(each).is_some();
            }
        }
    }
    if received.bytes == 0 {
        return Err(IoError::Ended);
    }
    let cut = received.flags.contains(ReturnFlags::CTRUNC);
    let ring = ring_of(&hello).filter(|ring| received.bytes == HELLO_LEN && *ring <= largest);
    let (Some(ring), Some(file), false) = (ring, file, more || cut) else {
        return Err(IoError::Violated);
    };
    match Memory::adopt(&file, ring) {
        Ok(memory) => Ok(memory),
        Err(error @ (Errno::NOMEM | Errno::AGAIN | Errno::NFILE)) => Err(IoError::Broken(error)),
        Err(_) => Err(IoError::Violated),
    }
}

/// Rings at the other side.
///
/// # Errors
/// [`IoError::Closed`] if the peer is gone.
#[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
pub(super) fn ring_bell(socket: &OwnedFd) -> Result<(), IoError> {
    let _ringing = doing(Activity::InputOutput);
    loop {
        match net::send(socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            // If no octet fits, so many wait that the peer need not be told.
            Ok(_) | Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(IoError::from_errno(error)),
        }
    }
}

/// Takes the octets that rang; `None` where the other side has ended.
#[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
pub(super) fn answer_bell(socket: &OwnedFd, flags: RecvFlags) -> Result<Option<usize>, Errno> {
    let _answering = doing(Activity::InputOutput);
    let mut octets = [0; MOST_RINGS];
    match net::recv(socket, &mut octets, flags) {
        Ok((0, _)) | Err(Errno::CONNRESET) => Ok(None),
        Ok((n, _)) => Ok(Some(n)),
        Err(error) => Err(error),
    }
}

/// Waits until the peer rings, or ends; leaves the octets there. `None` waits without a limit.
pub(super) fn await_bell(socket: &OwnedFd, time_out: Option<&Timespec>) -> Result<(), Errno> {
    let _waiting = doing(Activity::InputOutput);
    let flags = PollFlags::IN | PollFlags::RDHUP;
    match poll(&mut [PollFd::new(socket, flags)], time_out) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether the other side has ended.
pub(super) fn has_ended(socket: &OwnedFd) -> bool {
    let _looking = doing(Activity::InputOutput);
    let mut looked = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut looked, Some(&Timespec::default())) != Ok(0)
}

/// Encodes the magic number and version of the memory's layout, and the octets of each ring.
fn hello(ring: usize) -> [u8; HELLO_LEN] {
    let mut hello = [0; HELLO_LEN];
    hello[..MAGIC.len()].copy_from_slice(&MAGIC);
    // No ring is larger than `MAX_RING`.
    hello[MAGIC.len()..].copy_from_slice(&(ring as u64).to_ne_bytes());
    hello
}

fn ring_of(hello: &[u8; HELLO_LEN]) -> Option<usize> {
    let (magic, ring) = hello.split_first_chunk()?;
    let ring = usize::try_from(u64::from_ne_bytes(ring.try_into().ok()?)).ok()?;
    (*magic == MAGIC && super::is_ring(ring)).then_some(ring)
}

/// The last octet is the version.
const MAGIC: [u8; 8] = *b"CRBSHM\0\x01";
const HELLO_LEN: usize = MAGIC.len() + size_of::<u64>();
const _: () = assert!(MAX_RING <= u32::MAX as usize >> 3);
/// Octets of the doorbell that are taken at a time.
pub(super) const MOST_RINGS: usize = 64;
