//! Operations that are handed to the kernel together with the wait for them: io_uring(7).
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use chronorb_rt::{Deadline, Mapping};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use thiserror::Error;

/// An io_uring of one thread, with buffers of its own.
///
/// Operations are prepared, and then submitted by the same system call that waits for completions.
/// The buffers belong to the ring, so that the kernel never writes to freed memory: a buffer is not
/// reused while an operation uses it. Dropping the ring cancels pending operations, and waits for
/// their end. The descriptors outlive the ring (`'fd`).
///
/// Only the thread that makes a ring uses it, which saves the kernel locks.
pub struct Ring<'fd> {
    /// Dropped, and so closed, before the buffers.
    ring: IoUring,
    completion_work: CompletionWork,
    /// Operations that the next system call submits, at most as many as the ring has entries. They
    /// are not put into the ring before, because entries of the ring cannot be withdrawn.
    prepared: Vec<squeue::Entry>,
    buffers: Mapping,
    buffer_size: usize,
    /// Whether each buffer is in use by an operation that has not completed.
    in_use: Vec<bool>,
    /// Operations that have not completed, prepared ones included.
    under_way: usize,
    _descriptors: PhantomData<BorrowedFd<'fd>>,
    /// Binds the ring to its thread.
    _of_thread: PhantomData<*const ()>,
}

/// The time at which the kernel does the work of a completion, for example copies received octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompletionWork {
    /// When the thread waits, and at no other time (`IORING_SETUP_DEFER_TASKRUN`, Linux 6.1).
    Deferred,
    /// With the thread's next system call (`IORING_SETUP_COOP_TASKRUN`, Linux 5.19).
    Cooperative,
    /// At once, by an interrupt of the thread.
    Interrupting,
}

/// An operation that is done.
#[derive(Debug)]
pub struct Completion {
    /// The token given when it was prepared.
    pub token: u32,
    /// The octets that were received or sent, or the events of a poll; or why it failed.
    pub result: io::Result<u32>,
}

/// An operation could not be prepared.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum PrepareError {
    /// The number of prepared operations has reached that of the ring's entries: they must be
    /// submitted first.
    #[error("as many operations are prepared as the ring has entries")]
    Full,
    /// The buffer is used by an operation that has not completed.
    #[error("the buffer is used by an operation that has not completed")]
    InUse,
    /// The ring has no such buffer, or the buffer is too small.
    #[error("the ring has no such buffer, or it is too small")]
    NoBuffer,
}

impl<'fd> Ring<'fd> {
    /// A ring for up to `entries` operations (1 to 32,768) between two submissions, with `buffers`
    /// buffers of `buffer_size` octets.
    ///
    /// # Errors
    /// `Unsupported` where the kernel has no io_uring (`ENOSYS`), or one before Linux 5.11;
    /// `PermissionDenied` where the system or the container refuses it (`kernel.io_uring_disabled`,
    /// seccomp); `InvalidInput` for numbers out of range; and where memory, the right to lock it,
    /// or descriptors are short.
    pub fn new(entries: u32, buffers: usize, buffer_size: usize) -> io::Result<Self> {
        let (ring, completion_work) = set_up(entries)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let octets = buffers.checked_mul(buffer_size).filter(|octets| {
            // The number of a buffer travels in half of a completion's 64 bits.
            *octets <= isize::MAX as usize && u32::try_from(buffers).is_ok_and(|n| n < u32::MAX)
        });
        let octets = octets.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self {
            prepared: Vec::with_capacity(ring.params().sq_entries() as usize),
            buffers: Mapping::anonymous(octets.max(1))?,
            ring,
            completion_work,
            buffer_size,
            in_use: vec![false; buffers],
            under_way: 0,
            _descriptors: PhantomData,
            _of_thread: PhantomData,
        })
    }

    /// Returns the time at which the kernel does the work of a completion.
    #[must_use]
    pub const fn completion_work(&self) -> CompletionWork {
        self.completion_work
    }

    /// Returns the content of a buffer.
    ///
    /// # Errors
    /// [`PrepareError::InUse`] and [`PrepareError::NoBuffer`].
    pub fn buffer(&self, buffer: usize) -> Result<&[u8], PrepareError> {
        let start = self.free(buffer)?;
        // SAFETY: the range is a part of the mapping; no operation uses it, and none can be
        // prepared, which takes `&mut self`, while the slice is lent.
        Ok(unsafe { core::slice::from_raw_parts(start, self.buffer_size) })
    }

    /// A buffer, to write to.
    ///
    /// # Errors
    /// [`PrepareError::InUse`] and [`PrepareError::NoBuffer`].
    pub fn buffer_mut(&mut self, buffer: usize) -> Result<&mut [u8], PrepareError> {
        let start = self.free(buffer)?;
        // SAFETY: as in `buffer`, and `&mut self` makes it the only slice.
        Ok(unsafe { core::slice::from_raw_parts_mut(start, self.buffer_size) })
    }

    /// Prepares to receive present or future octets of the socket into a buffer.
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing is prepared then.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'fd>,
        buffer: usize,
        token: u32,
    ) -> Result<(), PrepareError> {
        self.receive_with(socket, buffer, token, 0)
    }

    /// Prepares to receive octets that are not expected to be there yet: the kernel waits for them
    /// without trying first (Linux 5.19).
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing is prepared then.
    pub fn receive_later(
        &mut self,
        socket: BorrowedFd<'fd>,
        buffer: usize,
        token: u32,
    ) -> Result<(), PrepareError> {
        self.receive_with(socket, buffer, token, POLL_FIRST)
    }

    /// Prepares to send the first `length` octets of a buffer.
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing is prepared then.
    pub fn send(
        &mut self,
        socket: BorrowedFd<'fd>,
        buffer: usize,
        length: usize,
        token: u32,
    ) -> Result<(), PrepareError> {
        if length > self.buffer_size {
            return Err(PrepareError::NoBuffer);
        }
        let (start, length) = (self.free(buffer)?, octets(length)?);
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), start, length);
        self.prepare_with(entry.build(), buffer, token)
    }

    /// Prepares one notification that a descriptor is readable.
    ///
    /// # Errors
    /// [`PrepareError::Full`].
    pub fn poll_readable(
        &mut self,
        descriptor: BorrowedFd<'fd>,
        token: u32,
    ) -> Result<(), PrepareError> {
        let events = libc::POLLIN.cast_unsigned().into();
        let entry = opcode::PollAdd::new(Fd(descriptor.as_raw_fd()), events).build();
        self.prepare(entry.user_data(token.into()))
    }

    /// Submits the prepared operations, and waits until so many operations have completed and not
    /// been [taken](Self::take), the time is over, or a signal arrives. It may return early if a
    /// submission fails. It is one system call. `None` waits without a limit.
    ///
    /// # Errors
    /// Where the kernel has no memory, or finds the ring broken, which only a bug can do.
    pub fn submit_and_wait(
        &mut self,
        completions: u32,
        time_out: Option<Duration>,
    ) -> io::Result<()> {
        let (submitter, mut submissions, _) = self.ring.split();
        // SAFETY: every operation names a buffer of the ring, which lives until it completes, and a
        // descriptor that outlives the ring.
        let result = unsafe { submissions.push_multiple(&self.prepared) };
        // Otherwise the kernel has yet to take earlier submissions, which stay in the queue.
        if result.is_ok() {
            self.prepared.clear();
        }
        submissions.sync();
        drop(submissions);
        let completions = completions as usize;
        let result = match time_out.map(Timespec::from) {
            None => submitter.submit_and_wait(completions),
            Some(time_out) => {
                let arguments = SubmitArgs::new().timespec(&time_out);
                submitter.submit_with_args(completions, &arguments)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// The next operation that is done; its buffer is free again.
    pub fn take(&mut self) -> Option<Completion> {
        let completion = self.ring.completion().next()?;
        let (data, result) = (completion.user_data(), completion.result());
        self.under_way -= 1;
        let token = data as u32;
        // The number of the buffer, counted from 1.
        let buffer = (data >> 32) as usize;
        if let Some(in_use) = buffer.checked_sub(1).and_then(|n| self.in_use.get_mut(n)) {
            *in_use = false;
        }
        let result = u32::try_from(result)
            .map_err(|_| io::Error::from_raw_os_error(result.checked_neg().unwrap_or(i32::MAX)));
        Some(Completion { token, result })
    }

    /// Returns the start of an unused buffer.
    fn free(&self, buffer: usize) -> Result<*mut u8, PrepareError> {
        match self.in_use.get(buffer) {
            None => Err(PrepareError::NoBuffer),
            Some(true) => Err(PrepareError::InUse),
            Some(false) => {
                let start = self.buffers.start().as_ptr();
                Ok(start.wrapping_add(buffer * self.buffer_size))
            }
        }
    }

    fn receive_with(
        &mut self,
        socket: BorrowedFd<'fd>,
        buffer: usize,
        token: u32,
        flags: u16,
    ) -> Result<(), PrepareError> {
        let (start, length) = (self.free(buffer)?, octets(self.buffer_size)?);
        let entry = opcode::Recv::new(Fd(socket.as_raw_fd()), start, length);
        self.prepare_with(entry.ioprio(flags).build(), buffer, token)
    }

    fn prepare_with(
        &mut self,
        entry: squeue::Entry,
        buffer: usize,
        token: u32,
    ) -> Result<(), PrepareError> {
        self.prepare(entry.user_data((buffer as u64 + 1) << 32 | u64::from(token)))?;
        self.in_use[buffer] = true;
        Ok(())
    }

    fn prepare(&mut self, entry: squeue::Entry) -> Result<(), PrepareError> {
        if self.prepared.len() == self.ring.params().sq_entries() as usize {
            return Err(PrepareError::Full);
        }
        self.prepared.push(entry);
        self.under_way += 1;
        Ok(())
    }

    /// Cancels all submitted operations, and waits for their end. Returns whether none is left.
    /// Prepared operations are dropped.
    fn cancel(&mut self) -> bool {
        let deadline = Deadline::after(CANCEL);
        let everything = opcode::AsyncCancel2::new(CancelBuilder::any().all());
        self.under_way -= self.prepared.len();
        self.prepared.clear();
        let mut asked = self.prepare(everything.build()).is_ok();
        while asked && self.under_way > 0 {
            let Some(left) = deadline.remaining().filter(|left| !left.is_zero()) else {
                break;
            };
            asked = self.submit_and_wait(1, Some(left)).is_ok();
            while self.take().is_some() {}
        }
        self.under_way == 0
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        if self.under_way > 0 && !self.cancel() {
            // The kernel may still write there: the memory is leaked rather than reused.
            self.buffers.leak();
        }
    }
}

impl fmt::Debug for Ring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("descriptor", &self.ring.as_raw_fd())
            .field("completion_work", &self.completion_work)
            .field("under_way", &self.under_way)
            .finish_non_exhaustive()
    }
}

/// The length of a buffer, as operations have it.
fn octets(length: usize) -> Result<u32, PrepareError> {
    u32::try_from(length).map_err(|_| PrepareError::NoBuffer)
}

/// Makes the ring with the best that the kernel has.
fn set_up(entries: u32) -> io::Result<(IoUring, CompletionWork)> {
    let mut deferred = IoUring::builder();
    deferred.setup_single_issuer().setup_defer_taskrun();
    let mut cooperative = IoUring::builder();
    cooperative.setup_coop_taskrun();
    let ways = [
        (deferred, CompletionWork::Deferred),
        (cooperative, CompletionWork::Cooperative),
        (IoUring::builder(), CompletionWork::Interrupting),
    ];
    let mut refusal = io::ErrorKind::InvalidInput.into();
    for (builder, work) in ways {
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, work)),
            Err(error) => refusal = error,
        }
        if refusal.raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(refusal)
}

/// `IORING_RECVSEND_POLL_FIRST`: wait without a look first.
const POLL_FIRST: u16 = 1;
/// The longest time that dropping a ring waits for cancelled operations.
const CANCEL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Returns a ring, or `None` if the kernel refuses one, which is printed.
    fn ring<'fd>(entries: u32, buffers: usize) -> Option<Ring<'fd>> {
        match Ring::new(entries, buffers, 64) {
            Ok(ring) => Some(ring),
            Err(error) => {
                let required = std::env::var("CHRONORB_PEERS").is_ok_and(|v| v == "required");
                assert!(!required, "io_uring is refused: {error}");
                eprintln!("NOT RUN: io_uring is refused: {error}");
                None
            }
        }
    }

    fn taken(ring: &mut Ring<'_>) -> Vec<Completion> {
        core::iter::from_fn(|| ring.take()).collect()
    }

    const NOW: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn what_comes_is_echoed_by_one_call_for_each_request() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let Some(mut ring) = ring(4, 2) else { return };
        let mut reply = [0; 64];
        ring.receive(far.as_fd(), 0, 7).unwrap();
        // More often than there are entries and completions.
        for round in 0..40_u8 {
            near.write_all(&[round; 5]).unwrap();
            // The completions of the reply of the round before, and of the octets just written.
            ring.submit_and_wait(if round == 0 { 1 } else { 2 }, None)
                .unwrap();
            let mut done = taken(&mut ring);
            done.sort_by_key(|completion| completion.token);
            assert_eq!(done[0].token, 7);
            assert_eq!(*done[0].result.as_ref().unwrap(), 5);
            assert_eq!(done.len(), if round == 0 { 1 } else { 2 });
            let request = ring.buffer(0).unwrap()[..5].to_vec();
            assert_eq!(request, [round; 5]);
            ring.buffer_mut(1).unwrap()[..5].copy_from_slice(&request);
            ring.send(far.as_fd(), 1, 5, 8).unwrap();
            match round % 2 {
                0 => ring.receive(far.as_fd(), 0, 7).unwrap(),
                _ => ring.receive_later(far.as_fd(), 0, 7).unwrap(),
            }
            ring.submit_and_wait(1, None).unwrap();
            assert_eq!(near.read(&mut reply).unwrap(), 5);
            assert_eq!(reply[..5], [round; 5]);
        }
    }

    #[test]
    fn a_wait_ends_with_its_time() {
        let (_near, far) = UnixStream::pair().unwrap();
        let Some(mut ring) = ring(4, 1) else { return };
        ring.receive(far.as_fd(), 0, 1).unwrap();
        ring.submit_and_wait(1, NOW).unwrap();
        ring.submit_and_wait(1, Some(Duration::from_millis(1)))
            .unwrap();
        assert!(ring.take().is_none());
    }

    #[test]
    fn a_descriptor_is_told_to_be_readable_once() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let Some(mut ring) = ring(4, 0) else { return };
        ring.poll_readable(far.as_fd(), 3).unwrap();
        ring.submit_and_wait(1, NOW).unwrap();
        assert!(ring.take().is_none());
        near.write_all(b"x").unwrap();
        ring.submit_and_wait(1, None).unwrap();
        let events = taken(&mut ring);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].token, 3);
        assert_eq!(*events[0].result.as_ref().unwrap(), libc::POLLIN as u32);
        near.write_all(b"y").unwrap();
        ring.submit_and_wait(1, NOW).unwrap();
        assert!(ring.take().is_none());
    }

    #[test]
    fn a_buffer_in_use_is_lent_to_nobody() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let Some(mut ring) = ring(4, 1) else { return };
        ring.receive(far.as_fd(), 0, 1).unwrap();
        assert_eq!(ring.buffer(0), Err(PrepareError::InUse));
        assert_eq!(ring.buffer_mut(0), Err(PrepareError::InUse));
        let again = ring.send(far.as_fd(), 0, 1, 2);
        assert_eq!(again, Err(PrepareError::InUse));
        near.write_all(b"abc").unwrap();
        ring.submit_and_wait(1, None).unwrap();
        assert_eq!(ring.buffer(0), Err(PrepareError::InUse), "not taken yet");
        assert_eq!(taken(&mut ring).len(), 1);
        assert_eq!(&ring.buffer(0).unwrap()[..3], b"abc");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let (_near, far) = UnixStream::pair().unwrap();
        let Some(mut ring) = ring(2, 1) else { return };
        assert_eq!(ring.receive(far.as_fd(), 1, 0), Err(PrepareError::NoBuffer));
        let long = ring.send(far.as_fd(), 0, 65, 0);
        assert_eq!(long, Err(PrepareError::NoBuffer));
        ring.poll_readable(far.as_fd(), 0).unwrap();
        ring.poll_readable(far.as_fd(), 0).unwrap();
        assert_eq!(ring.receive(far.as_fd(), 0, 0), Err(PrepareError::Full));
        assert!(ring.buffer(0).is_ok());
        ring.submit_and_wait(0, None).unwrap();
        ring.receive(far.as_fd(), 0, 0).unwrap();
    }

    #[test]
    fn an_operation_that_fails_says_why() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let Some(mut ring) = ring(4, 1) else { return };
        ring.receive(file.as_fd(), 0, 9).unwrap();
        ring.submit_and_wait(1, None).unwrap();
        let done = taken(&mut ring);
        assert_eq!(done.len(), 1);
        let error = done[0].result.as_ref().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTSOCK));
        assert!(ring.buffer(0).is_ok());
    }

    #[test]
    fn a_ring_that_is_dropped_leaves_nothing_under_way() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let Some(mut waiting) = ring(4, 3) else {
            return;
        };
        waiting.receive(far.as_fd(), 0, 1).unwrap();
        waiting.receive_later(far.as_fd(), 1, 2).unwrap();
        waiting.submit_and_wait(1, NOW).unwrap();
        waiting.receive(far.as_fd(), 2, 3).unwrap();
        assert_eq!(waiting.under_way, 3);
        assert!(waiting.cancel());
        drop(waiting);
        // The following octets are not received.
        near.write_all(b"left").unwrap();
        let mut left = [0; 4];
        (&far).read_exact(&mut left).unwrap();
        assert_eq!(&left, b"left");
    }

    #[test]
    fn what_was_only_prepared_is_not_done_by_a_ring_that_is_dropped() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let Some(mut dropped) = ring(4, 1) else {
            return;
        };
        dropped.send(near.as_fd(), 0, 1, 1).unwrap();
        drop(dropped);
        drop(near);
        assert_eq!(far.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        if ring(1, 0).is_none() {
            return;
        }
        for (entries, buffers, size) in [(0, 1, 1), (1 << 20, 1, 1), (4, usize::MAX, 2)] {
            let error = Ring::new(entries, buffers, size).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{entries}");
        }
    }
}
