//! Operations that are handed to the kernel together with the wait for them: io_uring(7).
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::c_void;
use rustix::io::Errno;
use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringAsyncCancelFlags, IoringEnterFlags,
    IoringFeatureFlags, IoringOp, IoringRecvFlags, IoringSetupFlags, io_uring_cqe, io_uring_enter,
    io_uring_enter_arg, io_uring_getevents_arg, io_uring_params, io_uring_ptr, io_uring_setup,
    io_uring_sqe, io_uring_user_data,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::time::Timespec;
use thiserror::Error;

use crate::Deadline;

/// An io_uring of one thread, with buffers of its own.
///
/// Operations are prepared, and then submitted by the same system call that waits for completions.
/// The buffers are the ring's, so that the kernel never writes to memory that is gone: while an
/// operation uses one, nobody else gets it, and dropping the ring cancels what is under way, and
/// waits for that. What is received from and sent to outlives the ring (`'fd`).
///
/// The thread that makes a ring is the only one that uses it, which spares the kernel locks.
#[derive(Debug)]
pub struct Ring<'fd> {
    descriptor: OwnedFd,
    completion_work: CompletionWork,
    queues: Queues,
    buffers: Mapping,
    buffer_size: usize,
    /// Of each buffer, whether an operation that has not completed uses it.
    in_use: Vec<bool>,
    /// Operations that have not completed, prepared ones included.
    under_way: usize,
    _descriptors: PhantomData<BorrowedFd<'fd>>,
}

/// When the kernel does what a completion takes: for example, copies what has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompletionWork {
    /// When the thread waits, and at no other time (`IORING_SETUP_DEFER_TASKRUN`, Linux 6.1).
    Deferred,
    /// At the thread's next system call (`IORING_SETUP_COOP_TASKRUN`, Linux 5.19).
    Cooperative,
    /// At once; the thread is interrupted for it.
    Interrupting,
}

/// An operation that is done.
#[derive(Debug)]
pub struct Completion {
    /// What it was prepared with.
    pub token: u32,
    /// The octets that were received or sent, or the events of a poll; or why it failed.
    pub result: io::Result<u32>,
}

/// An operation could not be prepared.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum PrepareError {
    /// As many operations are prepared as the ring has entries: they have to be submitted first.
    #[error("as many operations are prepared as the ring has entries")]
    Full,
    /// The buffer is used by an operation that has not completed.
    #[error("the buffer is used by an operation that has not completed")]
    InUse,
    /// The ring has no such buffer, or the buffer is smaller than what shall be sent.
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
    /// seccomp); `InvalidInput` for numbers out of range; and where memory, the right to lock it, or
    /// descriptors are short.
    pub fn new(entries: u32, buffers: usize, buffer_size: usize) -> io::Result<Self> {
        let (descriptor, params, completion_work) = set_up(entries)?;
        let needed = IoringFeatureFlags::SINGLE_MMAP | IoringFeatureFlags::EXT_ARG;
        if !params.features.contains(needed) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let octets = buffers.checked_mul(buffer_size).filter(|octets| {
            // The number of a buffer travels in half of a completion's 64 bits.
            *octets <= isize::MAX as usize && u32::try_from(buffers).is_ok_and(|n| n < u32::MAX)
        });
        let octets = octets.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self {
            queues: Queues::map(&descriptor, &params)?,
            buffers: Mapping::anonymous(octets.max(1))?,
            descriptor,
            completion_work,
            buffer_size,
            in_use: vec![false; buffers],
            under_way: 0,
            _descriptors: PhantomData,
        })
    }

    /// When the kernel does what a completion takes.
    #[must_use]
    pub const fn completion_work(&self) -> CompletionWork {
        self.completion_work
    }

    /// What stands in a buffer.
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

    /// Prepares to receive into a buffer, as far as it reaches, what the socket has or gets next.
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing is prepared then.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'fd>,
        buffer: usize,
        token: u32,
    ) -> Result<(), PrepareError> {
        self.prepare_with(
            entry(IoringOp::Recv, socket),
            buffer,
            self.buffer_size,
            token,
        )
    }

    /// The same where nothing is expected to be there yet: the kernel waits for it without a look
    /// first (Linux 5.19).
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing is prepared then.
    pub fn receive_later(
        &mut self,
        socket: BorrowedFd<'fd>,
        buffer: usize,
        token: u32,
    ) -> Result<(), PrepareError> {
        let mut entry = entry(IoringOp::Recv, socket);
        entry.ioprio.recv_flags = IoringRecvFlags::POLL_FIRST;
        self.prepare_with(entry, buffer, self.buffer_size, token)
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
        self.prepare_with(entry(IoringOp::Send, socket), buffer, length, token)
    }

    /// Prepares to be told, once, that a descriptor is readable.
    ///
    /// # Errors
    /// [`PrepareError::Full`].
    pub fn poll_readable(
        &mut self,
        descriptor: BorrowedFd<'fd>,
        token: u32,
    ) -> Result<(), PrepareError> {
        let mut entry = entry(IoringOp::PollAdd, descriptor);
        entry.op_flags.poll_events = libc::POLLIN.cast_unsigned();
        entry.user_data = io_uring_user_data::from_u64(token.into());
        self.prepare(entry)
    }

    /// Submits what is prepared, and waits until so many operations have completed and not been
    /// [taken](Self::take), the time is over, or a signal came; it may return before that where a
    /// submission fails. One system call. `None` waits as long as it takes.
    ///
    /// # Errors
    /// Where the kernel has no memory, or finds the ring broken, which only a bug can do.
    pub fn submit_and_wait(
        &mut self,
        completions: u32,
        time_out: Option<Duration>,
    ) -> io::Result<()> {
        let submitted = self.queues.prepared();
        let result = match time_out {
            // SAFETY: every entry of the queue names buffers that live until it completes, and
            // descriptors that outlive the ring.
            None => unsafe {
                io_uring_enter(
                    &self.descriptor,
                    submitted,
                    completions,
                    IoringEnterFlags::GETEVENTS,
                )
            },
            Some(time_out) => {
                let time_out = Timespec {
                    tv_sec: i64::try_from(time_out.as_secs()).unwrap_or(i64::MAX),
                    tv_nsec: time_out.subsec_nanos().into(),
                };
                let argument = io_uring_getevents_arg {
                    ts: io_uring_ptr::new((&raw const time_out).cast_mut().cast()),
                    ..Default::default()
                };
                let flags = IoringEnterFlags::GETEVENTS | IoringEnterFlags::EXT_ARG;
                // SAFETY: as above; `time_out` is alive, and only read.
                unsafe {
                    io_uring_enter_arg(
                        &self.descriptor,
                        submitted,
                        completions,
                        flags,
                        Some(&argument),
                    )
                }
            }
        };
        match result {
            Ok(_) | Err(Errno::INTR | Errno::TIME) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next operation that is done; its buffer is free again.
    pub fn take(&mut self) -> Option<Completion> {
        let (data, result) = self.queues.take()?;
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

    /// Where a buffer that nobody uses begins.
    fn free(&self, buffer: usize) -> Result<*mut u8, PrepareError> {
        match self.in_use.get(buffer) {
            None => Err(PrepareError::NoBuffer),
            Some(true) => Err(PrepareError::InUse),
            Some(false) => Ok(self.buffers.at(buffer * self.buffer_size)),
        }
    }

    fn prepare_with(
        &mut self,
        mut entry: io_uring_sqe,
        buffer: usize,
        length: usize,
        token: u32,
    ) -> Result<(), PrepareError> {
        let start = self.free(buffer)?;
        entry.addr_or_splice_off_in.addr = io_uring_ptr::new(start.cast());
        entry.len.len = u32::try_from(length).map_err(|_| PrepareError::NoBuffer)?;
        let data = (buffer as u64 + 1) << 32 | u64::from(token);
        entry.user_data = io_uring_user_data::from_u64(data);
        self.prepare(entry)?;
        self.in_use[buffer] = true;
        Ok(())
    }

    fn prepare(&mut self, entry: io_uring_sqe) -> Result<(), PrepareError> {
        if !self.queues.put(entry) {
            return Err(PrepareError::Full);
        }
        self.under_way += 1;
        Ok(())
    }

    /// Cancels everything that was submitted, and waits until nothing is under way. Returns whether
    /// that is so. What was only prepared is forgotten.
    fn cancel(&mut self) -> bool {
        let deadline = Deadline::after(CANCEL);
        let mut entry = io_uring_sqe {
            opcode: IoringOp::AsyncCancel,
            fd: -1,
            ..Default::default()
        };
        entry.op_flags.cancel_flags = IoringAsyncCancelFlags::ANY | IoringAsyncCancelFlags::ALL;
        self.under_way -= self.queues.withdraw() as usize;
        let mut asked = self.prepare(entry).is_ok();
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
            // The kernel may still write there: better lost than somebody else's.
            self.buffers.leak();
        }
    }
}

/// An operation on a descriptor, with nothing else said of it.
fn entry(opcode: IoringOp, descriptor: BorrowedFd<'_>) -> io_uring_sqe {
    io_uring_sqe {
        opcode,
        fd: descriptor.as_raw_fd(),
        ..Default::default()
    }
}

/// Makes the ring with the best that the kernel has.
fn set_up(entries: u32) -> io::Result<(OwnedFd, io_uring_params, CompletionWork)> {
    let cooperative = IoringSetupFlags::COOP_TASKRUN;
    let single = IoringSetupFlags::SINGLE_ISSUER;
    let ways = [
        (
            single | IoringSetupFlags::DEFER_TASKRUN,
            CompletionWork::Deferred,
        ),
        (cooperative, CompletionWork::Cooperative),
        (IoringSetupFlags::empty(), CompletionWork::Interrupting),
    ];
    let mut refusal = Errno::INVAL;
    for (flags, work) in ways {
        let mut params = io_uring_params::default();
        params.flags = flags;
        // SAFETY: no descriptor is given.
        match unsafe { io_uring_setup(entries, &mut params) } {
            Ok(descriptor) => return Ok((descriptor, params, work)),
            Err(error) => refusal = error,
        }
        if refusal != Errno::INVAL {
            break;
        }
    }
    Err(refusal.into())
}

/// The memory that is shared with the kernel: entries that are submitted, and completions.
///
/// Each of both queues is a ring with a head, from which one side takes, and a tail, where the
/// other side puts. Whoever moves one of them releases what it has done to the entries; whoever
/// reads the other's acquires that.
#[derive(Debug)]
struct Queues {
    rings: Mapping,
    entries: Mapping,
    /// Places in `rings`, in octets.
    submitted: Places,
    completed: Places,
    completions: usize,
    size: u32,
}

/// Where head, tail and mask of a queue are, in octets.
#[derive(Clone, Copy, Debug)]
struct Places {
    head: usize,
    tail: usize,
    mask: usize,
}

impl Queues {
    fn map(ring: &OwnedFd, params: &io_uring_params) -> io::Result<Self> {
        let (sq, cq) = (&params.sq_off, &params.cq_off);
        let size = params.sq_entries as usize;
        let order_end = sq.array as usize + size * size_of::<u32>();
        let completions_end = cq.cqes as usize + params.cq_entries as usize * COMPLETION;
        let queues = Self {
            rings: Mapping::shared(ring, order_end.max(completions_end), IORING_OFF_SQ_RING)?,
            entries: Mapping::shared(ring, size * size_of::<io_uring_sqe>(), IORING_OFF_SQES)?,
            submitted: Places {
                head: sq.head as usize,
                tail: sq.tail as usize,
                mask: sq.ring_mask as usize,
            },
            completed: Places {
                head: cq.head as usize,
                tail: cq.tail as usize,
                mask: cq.ring_mask as usize,
            },
            completions: cq.cqes as usize,
            size: params.sq_entries,
        };
        // Entries are used in their order, so that the list of which comes when never changes.
        for index in 0..params.sq_entries {
            let place = sq.array as usize + index as usize * size_of::<u32>();
            queues.word(place).store(index, Ordering::Relaxed);
        }
        Ok(queues)
    }

    /// How many entries the kernel has not taken.
    fn prepared(&self) -> u32 {
        let head = self.word(self.submitted.head).load(Ordering::Acquire);
        let tail = self.word(self.submitted.tail).load(Ordering::Relaxed);
        tail.wrapping_sub(head)
    }

    /// Puts an entry, if there is room.
    fn put(&mut self, entry: io_uring_sqe) -> bool {
        if self.prepared() == self.size {
            return false;
        }
        let tail = self.word(self.submitted.tail).load(Ordering::Relaxed);
        let mask = self.word(self.submitted.mask).load(Ordering::Relaxed);
        let place = (tail & mask) as usize * size_of::<io_uring_sqe>();
        // SAFETY: the masked tail is within the entries that are mapped, and the kernel does not
        // look at this one, since it is not between head and tail.
        unsafe { ptr::write(self.entries.at(place).cast(), entry) };
        self.word(self.submitted.tail)
            .store(tail.wrapping_add(1), Ordering::Release);
        true
    }

    /// Withdraws the entries that the kernel has not taken; returns how many.
    fn withdraw(&self) -> u32 {
        let prepared = self.prepared();
        let head = self.word(self.submitted.head).load(Ordering::Acquire);
        self.word(self.submitted.tail)
            .store(head, Ordering::Release);
        prepared
    }

    /// Takes a completion: its data and its result.
    fn take(&self) -> Option<(u64, i32)> {
        let head = self.word(self.completed.head).load(Ordering::Relaxed);
        if head == self.word(self.completed.tail).load(Ordering::Acquire) {
            return None;
        }
        let mask = self.word(self.completed.mask).load(Ordering::Relaxed);
        let completion = self
            .rings
            .at(self.completions + (head & mask) as usize * COMPLETION);
        // SAFETY: the masked head is within the completions that are mapped; the kernel has
        // written this one, and leaves it alone until the head has moved on.
        let (data, result) = unsafe {
            let data = completion.add(offset_of!(io_uring_cqe, user_data));
            let result = completion.add(offset_of!(io_uring_cqe, res));
            (
                ptr::read(data.cast::<u64>()),
                ptr::read(result.cast::<i32>()),
            )
        };
        self.word(self.completed.head)
            .store(head.wrapping_add(1), Ordering::Release);
        Some((data, result))
    }

    fn word(&self, place: usize) -> &AtomicU32 {
        // SAFETY: the kernel has said that an aligned number of 32 bits is there, within the
        // mapping, which both sides use atomically.
        unsafe { AtomicU32::from_ptr(self.rings.at(place).cast()) }
    }
}

/// Mapped memory.
#[derive(Debug)]
struct Mapping {
    start: *mut c_void,
    /// 0 when it is to stay.
    size: usize,
}

impl Mapping {
    fn shared(ring: &OwnedFd, size: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing else.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                size,
                READ_WRITE,
                flags,
                ring.as_fd(),
                offset,
            )
        };
        start
            .map(|start| Self { start, size })
            .map_err(io::Error::from)
    }

    fn anonymous(size: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), size, READ_WRITE, flags) };
        start
            .map(|start| Self { start, size })
            .map_err(io::Error::from)
    }

    /// The address `offset` octets after the beginning.
    fn at(&self, offset: usize) -> *mut u8 {
        self.start.cast::<u8>().wrapping_add(offset)
    }

    /// Lets the memory stay mapped for good.
    const fn leak(&mut self) {
        self.size = 0;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.size > 0 {
            // SAFETY: the range is the mapping made above, and nothing refers to it any more. It
            // fails only for a range that is none.
            let _ = unsafe { munmap(self.start, self.size) };
        }
    }
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// The octets of a completion.
const COMPLETION: usize = size_of::<io_uring_cqe>();
/// How long a ring that is dropped waits for what it cancels, at most.
const CANCEL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A ring, or nothing where the kernel refuses one: then it is said that a test did not run.
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
            // The reply of the round before, and what was just written.
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
        // Nobody took what comes now.
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
