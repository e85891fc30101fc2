//! The least that a message from one process to another can cost: memory that both have.
#![allow(unsafe_code)]

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::process;

use chronorb_rt::Mapping;
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

/// Two mailboxes in memory that two processes share, one for each direction, each for one message
/// at a time.
///
/// They are a baseline for other ways of communication, and not such a way themselves. A message
/// replaces the previous one even if that was not taken, lengths are agreed on beforehand, and the
/// end of the other side is not reported. A count precedes the octets in the same cache line, so
/// that a short message is one line that moves from one processor to the other.
#[derive(Debug)]
pub struct Mailboxes {
    memory: Mapping,
    file: File,
    /// Octets of a mailbox.
    size: usize,
    /// The offsets of the mailbox that this side writes to, and of the other one.
    outgoing: usize,
    incoming: usize,
    /// The numbers of messages that were put, and taken.
    put: u32,
    taken: u32,
}

impl Mailboxes {
    /// New ones, for messages of up to `largest` octets.
    ///
    /// # Errors
    /// There is no memory or no descriptor left; `InvalidInput` for a length that no memory has.
    pub fn create(largest: usize) -> io::Result<Self> {
        let size = largest
            .checked_add(COUNT + LINE)
            .map(|size| size / LINE * LINE)
            .filter(|size| *size < isize::MAX as usize / 2)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("mailboxes", flags)?;
        ftruncate(&file, 2 * size as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        Self::map(file.into(), true)
    }

    /// Returns the path by which another process of the same user opens them, as long as this one
    /// has them.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.file.as_raw_fd())
    }

    /// The other side of those that are at this [`path`](Self::path).
    ///
    /// # Errors
    /// There are none, or this process may not open them; `InvalidData` for any other file.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Self::map(file, false)
    }

    fn map(file: File, is_creator: bool) -> io::Result<Self> {
        // A file that can shrink would take the memory away.
        if !fcntl_get_seals(&file)?.contains(SEALS) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let octets = usize::try_from(fstat(&file)?.st_size).unwrap_or(0);
        let size = octets / 2;
        if size < LINE || !octets.is_multiple_of(2 * LINE) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (outgoing, incoming) = if is_creator { (0, size) } else { (size, 0) };
        Ok(Self {
            memory: Mapping::shared(&file, 0, octets)?,
            file,
            size,
            outgoing,
            incoming,
            put: 0,
            taken: 0,
        })
    }

    /// Puts a message in. Never waits.
    ///
    /// # Errors
    /// `InvalidInput` where it is longer than they are.
    #[inline]
    pub fn put(&mut self, message: &[u8]) -> io::Result<()> {
        if message.len() > self.size - COUNT {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the octets are within the mapping, which is another object than `message`. The
        // other side reads them after it has seen the count; where it does so meanwhile it gets a
        // mix of octets, which are octets.
        unsafe {
            let room = self.at(self.outgoing + COUNT);
            ptr::copy_nonoverlapping(message.as_ptr(), room, message.len());
        }
        self.put = self.put.wrapping_add(1);
        self.count(self.outgoing).store(self.put, Ordering::Release);
        Ok(())
    }

    /// Wakes the other side, if it [waits](Self::wait).
    pub fn wake(&self) {
        // It cannot fail for a word that is mapped.
        let _ = futex::wake(self.count(self.outgoing), futex::Flags::empty(), 1);
    }

    /// Takes the message that is there, as far as `room` has room for it; `false` where there is
    /// none. Never waits.
    #[inline]
    pub fn take(&mut self, room: &mut [u8]) -> bool {
        let count = self.count(self.incoming).load(Ordering::Acquire);
        if count == self.taken {
            return false;
        }
        let octets = room.len().min(self.size - COUNT);
        // SAFETY: as in `put`.
        unsafe {
            let message = self.at(self.incoming + COUNT);
            ptr::copy_nonoverlapping(message, room.as_mut_ptr(), octets);
        }
        self.taken = count;
        true
    }

    /// Sleeps until there is a message and the other side [wakes](Self::wake) this one, or for
    /// `limit`; may return earlier.
    pub fn wait(&self, limit: Duration) {
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        // The waiter checks again after any end of the wait.
        let _: Result<(), Errno> = futex::wait(
            self.count(self.incoming),
            futex::Flags::empty(),
            self.taken,
            Some(&limit),
        );
    }

    /// The address `offset` octets after the beginning.
    const fn at(&self, offset: usize) -> *mut u8 {
        self.memory.start().as_ptr().wrapping_add(offset)
    }

    fn count(&self, mailbox: usize) -> &AtomicU32 {
        // SAFETY: a mailbox begins with an aligned word of the mapping, which lives as long as
        // `self`, and is only ever used as an atomic.
        unsafe { AtomicU32::from_ptr(self.at(mailbox).cast()) }
    }
}

const LINE: usize = 64;
/// Octets before the message.
const COUNT: usize = size_of::<u32>();
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn messages_go_both_ways_whole_and_once() {
        let mut here = Mailboxes::create(100).unwrap();
        let mut there = Mailboxes::open(&here.path()).unwrap();
        let mut room = [0; 100];
        assert!(!there.take(&mut room), "nothing was put in");
        here.put(&[7; 100]).unwrap();
        assert!(!here.take(&mut room), "it is for the other side");
        assert!(there.take(&mut room));
        assert_eq!(room, [7; 100]);
        assert!(!there.take(&mut room), "it was taken");
        there.put(b"back").unwrap();
        assert!(here.take(&mut room[..4]));
        assert_eq!(&room[..5], b"back\x07");
    }

    #[test]
    fn who_sleeps_is_woken_by_each_message() {
        let mut here = Mailboxes::create(8).unwrap();
        let mut there = Mailboxes::open(&here.path()).unwrap();
        let echo = thread::spawn(move || {
            for _ in 0..200 {
                let mut room = [0; 8];
                while !there.take(&mut room) {
                    there.wait(LIMIT);
                }
                there.put(&room).unwrap();
                there.wake();
            }
        });
        for turn in 0..200_u64 {
            here.put(&turn.to_ne_bytes()).unwrap();
            here.wake();
            let mut room = [0; 8];
            while !here.take(&mut room) {
                here.wait(LIMIT);
            }
            assert_eq!(u64::from_ne_bytes(room), turn);
        }
        echo.join().unwrap();
    }

    #[test]
    fn what_is_too_long_and_what_is_no_mailbox_is_refused() {
        let kind = |error: io::Error| error.kind();
        let mut mailboxes = Mailboxes::create(0).unwrap();
        let room = LINE - COUNT;
        assert!(mailboxes.put(&vec![0; room]).is_ok());
        let too_long = mailboxes.put(&vec![0; room + 1]).unwrap_err();
        assert_eq!(kind(too_long), io::ErrorKind::InvalidInput);
        let endless = Mailboxes::create(usize::MAX).unwrap_err();
        assert_eq!(kind(endless), io::ErrorKind::InvalidInput);
        let unsealed = memfd_create("other", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&unsealed, 4096).unwrap();
        let path = format!("/proc/self/fd/{}", unsealed.as_raw_fd());
        let unsealed = Mailboxes::open(&path).unwrap_err();
        assert_eq!(kind(unsealed), io::ErrorKind::InvalidData);
        assert!(Mailboxes::open("/proc/self/exe").is_err());
    }

    const LIMIT: Duration = Duration::from_millis(50);
}
