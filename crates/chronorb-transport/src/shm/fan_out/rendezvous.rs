//! The content of the socket: the files of the ring, once.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::mem::MaybeUninit;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};

use chronorb_rt::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use super::memory::FanOutFiles;
use super::{FanOutError, FanOutOptions, word::timespec};

/// Sends the files of a ring.
#[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
pub(super) fn offer(
    socket: impl AsFd,
    files: &FanOutFiles,
    options: FanOutOptions,
) -> Result<(), Errno> {
    let hello = hello(options);
    let sent = [files.ring.as_fd(), files.note.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&sent));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::io::retry_on_intr(|| {
        net::sendmsg(&socket, &[IoSlice::new(&hello)], &mut ancillary, flags)
    })?;
    Ok(())
}

/// Receives the files of a ring. Waits for them until the deadline.
#[allow(clippy::disallowed_methods, reason = "the caller has the deadline")]
pub(super) fn accept(
    socket: impl AsFd,
    deadline: Deadline,
) -> Result<(FanOutFiles, FanOutOptions), FanOutError> {
    let mut hello = [0; HELLO_LEN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = loop {
        let mut room = [IoSliceMut::new(&mut hello)];
        match net::recvmsg(&socket, &mut room, &mut ancillary, flags) {
            Ok(received) => break received,
            Err(Errno::AGAIN) => wait_for(&socket, deadline)?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(FanOutError::Socket(error.into())),
        }
    };
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            files.extend(some);
        }
    }
    if received.bytes == 0 {
        return Err(FanOutError::Ended);
    }
    let is_cut = received.flags.contains(ReturnFlags::CTRUNC) || received.bytes != HELLO_LEN;
    let options = options_of(&hello).filter(|_| !is_cut);
    let [ring, note] = <[OwnedFd; 2]>::try_from(files).map_err(|_| FanOutError::Violated)?;
    Ok((
        FanOutFiles { ring, note },
        options.ok_or(FanOutError::Violated)?,
    ))
}

/// Waits until a socket can be read.
fn wait_for(socket: impl AsFd, deadline: Deadline) -> Result<(), FanOutError> {
    let remaining = deadline.remaining().filter(|left| !left.is_zero());
    let limit = timespec(remaining.ok_or(FanOutError::Late)?);
    let mut waited = [PollFd::new(&socket, PollFlags::IN)];
    match poll(&mut waited, Some(&limit)) {
        // The caller looks at the clock again.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(FanOutError::Socket(error.into())),
    }
}

fn hello(options: FanOutOptions) -> [u8; HELLO_LEN] {
    let mut hello = [0; HELLO_LEN];
    hello[..8].copy_from_slice(&MAGIC);
    hello[8..12].copy_from_slice(&options.slots.to_ne_bytes());
    hello[12..].copy_from_slice(&options.octets.to_ne_bytes());
    hello
}

fn options_of(hello: &[u8; HELLO_LEN]) -> Option<FanOutOptions> {
    let (magic, numbers) = hello.split_first_chunk::<8>()?;
    let (slots, octets) = numbers.split_first_chunk::<4>()?;
    let options = FanOutOptions {
        slots: u32::from_ne_bytes(*slots),
        octets: u32::from_ne_bytes(octets.try_into().ok()?),
    };
    let is_possible = *magic == MAGIC && options.check().is_ok();
    is_possible.then_some(options)
}

/// Converts the error of a ring that cannot be mapped.
pub(super) fn mapping_error(error: Errno) -> FanOutError {
    match error {
        Errno::NOMEM | Errno::AGAIN | Errno::NFILE | Errno::MFILE => {
            FanOutError::Memory(io::Error::from(error))
        }
        _ => FanOutError::Violated,
    }
}

/// The last octet is the version of the memory's layout.
const MAGIC: [u8; 8] = *b"CRBFAN\0\x02";
const HELLO_LEN: usize = 16;
