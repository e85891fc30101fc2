//! The transmitter of a packet socket.
#![allow(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

use chronorb_transport::set_packet_priority;
use libc::{iovec, mmsghdr};

use crate::driver::socket::interface_exists;
use crate::path::{PathError, TransmitCounts, TransmitError, Transmitter};

/// A transmitter that queues frames in this process and passes batches to the kernel by `sendmmsg`,
/// which copies them.
///
/// A ring (`PACKET_TX_RING`) needs a system call for each batch too. It saves the copy only with
/// physical interfaces. It frees a slot only when the interface has sent the frame, and a frame
/// that the kernel refuses blocks all frames behind it.
#[derive(Debug)]
pub(super) struct PacketTransmitter {
    socket: OwnedFd,
    interface: u32,
    /// The length of the longest frame in octets.
    longest: usize,
    /// Buffers for frames, one after the other; their number is a power of two.
    rooms: Box<[u8]>,
    /// The length of the frame in each buffer.
    lens: Box<[u32]>,
    /// The numbers of frames that were sent and queued; they wrap.
    sent: usize,
    queued: usize,
    counts: TransmitCounts,
}

impl PacketTransmitter {
    /// Creates the transmitter of this socket, which is bound to the interface and receives
    /// nothing. `queue` is a power of two.
    pub(super) fn new(socket: OwnedFd, interface: u32, longest: usize, queue: usize) -> Self {
        Self {
            socket,
            interface,
            longest,
            rooms: [0].repeat(longest * queue).into(),
            lens: std::iter::repeat_n(0, queue).collect(),
            sent: 0,
            queued: 0,
            counts: TransmitCounts::default(),
        }
    }

    /// Passes a batch to the kernel. Returns the number of frames that it accepted.
    fn send_batch(&mut self) -> io::Result<usize> {
        // SAFETY: all of their fields may be zero.
        let mut headers: [mmsghdr; BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut pieces: [iovec; BATCH] = unsafe { mem::zeroed() };
        let count = self.queued.wrapping_sub(self.sent).min(BATCH);
        for at in 0..count {
            let place = self.sent.wrapping_add(at) & (self.lens.len() - 1);
            let len = self.lens[place] as usize;
            let frame = &mut self.rooms[place * self.longest..][..len];
            pieces[at].iov_base = frame.as_mut_ptr().cast();
            pieces[at].iov_len = len;
            headers[at].msg_hdr.msg_iov = &raw mut pieces[at];
            headers[at].msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `count` headers are set, each with a piece that is alive and has the given size.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

impl Transmitter for PacketTransmitter {
    fn transmit(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError> {
        if len > self.longest {
            let max = self.longest;
            return Err(TransmitError::TooLong { len, max });
        }
        if !self.has_room() {
            self.counts.full += 1;
            return Err(TransmitError::Full);
        }
        let place = self.queued & (self.lens.len() - 1);
        write(&mut self.rooms[place * self.longest..][..len]);
        self.lens[place] = len as u32;
        self.queued = self.queued.wrapping_add(1);
        self.counts.frames += 1;
        self.counts.octets += len as u64;
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        self.queued.wrapping_sub(self.sent) < self.lens.len()
    }

    fn flush(&mut self) -> Result<(), PathError> {
        while self.queued != self.sent {
            match self.send_batch() {
                Ok(taken) => self.sent = self.sent.wrapping_add(taken),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::ENOBUFS) => return Ok(()),
                    // An invalid frame, for example too long without a tag, which no interface
                    // would accept.
                    Some(libc::EMSGSIZE | libc::EINVAL) => self.sent = self.sent.wrapping_add(1),
                    // An interface that is down can come up again.
                    _ if interface_exists(&self.socket, self.interface) => return Ok(()),
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    fn is_pending(&self) -> bool {
        self.queued != self.sent
    }

    fn set_priority(&mut self, priority: u32) -> Result<(), PathError> {
        Ok(set_packet_priority(&self.socket, priority)?)
    }

    fn counts(&self) -> TransmitCounts {
        self.counts
    }
}

/// The maximum number of frames in a batch.
const BATCH: usize = 32;
