//! A trace on the disk.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Gate, PiMutex, Thread, ThreadBuilder};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::conversation::Ends;
use super::pcapng::{LONGEST_OPTION, PACKET_OVERHEAD, write_counts, write_head, write_packet};

/// A file of the format pcapng that packets are written to, by a thread of its own.
///
/// Dropping it writes everything recorded so far; a process that is killed loses the records that
/// its thread had not written yet.
#[derive(Debug)]
pub struct TraceFile {
    shared: Arc<BufferLock>,
    /// Conversations that are open, so that none is written twice.
    open: PiMutex<BTreeSet<Ends>>,
    conversations: AtomicU64,
    writer: Option<Thread<()>>,
}

/// The bounds of a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceLimits {
    /// Octets of the file. When it has them it gets the suffix `.1`, in the place of one that has
    /// it already, and a new one begins; so there are twice as many at most.
    pub file: u64,
    /// Octets that may wait to be written, at least 64 KiB.
    pub buffer: usize,
}

/// The numbers of recorded and dropped packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TraceCounts {
    /// The number of packets.
    pub packets: u64,
    /// The number of packets that were dropped: there was no room in the buffer, or the file could
    /// not be written.
    pub dropped: u64,
}

#[derive(Debug)]
struct BufferLock {
    buffer: PiMutex<Buffer>,
    /// Moves on when the buffer is not empty any more, and at the end.
    calls: Gate,
}

#[derive(Debug)]
struct Buffer {
    /// Whole blocks; it never grows.
    blocks: Vec<u8>,
    /// Packets among them.
    waiting: u64,
    counts: TraceCounts,
    is_ending: bool,
}

impl TraceFile {
    /// Begins a file; one that is there is overwritten.
    ///
    /// # Errors
    /// Where it cannot be written, or the thread cannot be made.
    pub fn create(path: impl Into<PathBuf>, limits: TraceLimits) -> io::Result<Arc<Self>> {
        let capacity = limits.buffer.max(SMALLEST_BUFFER);
        let shared = Arc::new(BufferLock {
            buffer: PiMutex::new(Buffer {
                blocks: Vec::with_capacity(capacity),
                waiting: 0,
                counts: TraceCounts::default(),
                is_ending: false,
            }),
            calls: Gate::default(),
        });
        let mut output = Output::create(path.into(), limits.file)?;
        let of_writer = shared.clone();
        let writer = ThreadBuilder::new("orb-trace").spawn(move || {
            // The least urgent of those that share time; where it may not be that, it is one of
            // them all the same.
            let _ = rustix::process::setpriority_process(None, LEAST_URGENT);
            of_writer.write_until_end(&mut output, capacity);
        });
        Ok(Arc::new(Self {
            shared,
            open: PiMutex::new(BTreeSet::new()),
            conversations: AtomicU64::new(0),
            writer: Some(writer.map_err(io::Error::other)?),
        }))
    }

    /// Returns the numbers of recorded and dropped packets so far.
    #[must_use]
    pub fn counts(&self) -> TraceCounts {
        self.shared.buffer.lock().counts
    }

    /// Puts a packet down to be written.
    pub(super) fn put(&self, packet: &[u8], comment: &str) {
        let mut buffer = self.shared.buffer.lock();
        buffer.counts.packets += 1;
        let needed = packet.len() + comment.len().min(LONGEST_OPTION) + PACKET_OVERHEAD;
        if buffer.blocks.capacity() - buffer.blocks.len() < needed {
            buffer.counts.dropped += 1;
            return;
        }
        let was_empty = buffer.blocks.is_empty();
        buffer.waiting += 1;
        write_packet(&mut buffer.blocks, packet, comment);
        drop(buffer);
        if was_empty {
            self.shared.calls.advance();
        }
    }

    /// Whether a conversation is to be written, which its other end may be already.
    pub(super) fn begin(&self, ends: Ends) -> bool {
        let mut open = self.open.lock();
        !open.contains(&ends.seen_from_afar()) && open.insert(ends)
    }

    pub(super) fn end(&self, ends: Ends) {
        self.open.lock().remove(&ends);
    }

    pub(super) fn next_conversation(&self) -> u64 {
        self.conversations.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.shared.buffer.lock().is_ending = true;
        self.shared.calls.advance();
        if let Some(writer) = self.writer.take() {
            // A panic of the thread was reported already.
            let _ = writer.join();
        }
    }
}

impl Default for TraceLimits {
    /// Files of 64 MiB, and 4 MiB that wait.
    fn default() -> Self {
        Self {
            file: 64 << 20,
            buffer: 4 << 20,
        }
    }
}

impl BufferLock {
    fn write_until_end(&self, output: &mut Output, capacity: usize) {
        let mut blocks = Vec::with_capacity(capacity);
        let mut told = 0;
        loop {
            let calls = self.calls.get();
            blocks.clear();
            let mut buffer = self.buffer.lock();
            std::mem::swap(&mut buffer.blocks, &mut blocks);
            let waiting = std::mem::take(&mut buffer.waiting);
            let (counts, is_ending) = (buffer.counts, buffer.is_ending);
            drop(buffer);
            if blocks.is_empty() && !is_ending {
                self.calls.wait_while(calls, Deadline::after(Duration::MAX));
                continue;
            }
            if output
                .write(&blocks, counts, counts.dropped > told)
                .is_err()
            {
                self.buffer.lock().counts.dropped += waiting;
            }
            told = counts.dropped;
            if is_ending {
                let _ = output.finish(counts);
                return;
            }
        }
    }
}

/// The file that is written at present.
struct Output {
    path: PathBuf,
    file: File,
    written: u64,
    limit: u64,
}

impl Output {
    fn create(path: PathBuf, limit: u64) -> io::Result<Self> {
        let file = create(&path)?;
        let mut new = Self {
            path,
            file,
            written: 0,
            limit,
        };
        new.begin()?;
        Ok(new)
    }

    fn begin(&mut self) -> io::Result<()> {
        let mut head = Vec::new();
        write_head(&mut head);
        self.written = head.len() as u64;
        self.file.write_all(&head)
    }

    fn write(&mut self, blocks: &[u8], counts: TraceCounts, has_dropped: bool) -> io::Result<()> {
        if self.written + blocks.len() as u64 > self.limit {
            self.finish(counts)?;
            fs::rename(&self.path, suffixed(&self.path))?;
            self.file = create(&self.path)?;
            self.begin()?;
        }
        self.written += blocks.len() as u64;
        self.file.write_all(blocks)?;
        if has_dropped {
            self.finish(counts)?;
        }
        Ok(())
    }

    fn finish(&mut self, counts: TraceCounts) -> io::Result<()> {
        let mut block = Vec::new();
        write_counts(&mut block, counts.packets, counts.dropped);
        self.written += block.len() as u64;
        self.file.write_all(&block)
    }
}

/// Opens a file that only its owner can read, because it contains messages. An existing one must
/// belong to this user, and not be a symbolic link.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(path).map_err(|error| match error {
        error if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            io::Error::other("it is a symbolic link; name the file itself")
        }
        error => error,
    })?;
    let about = file.metadata()?;
    if about.is_file() {
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the file belongs to another user",
            ));
        }
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.set_len(0)?;
    }
    Ok(file)
}

fn suffixed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

const LEAST_URGENT: i32 = 19;
const SMALLEST_BUFFER: usize = 128 * 1024;
