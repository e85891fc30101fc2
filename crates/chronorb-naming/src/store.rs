//! The state of a name server on disc: a log of its changes that begins with a snapshot.
//!
//! An own log and not an embedded database such as redb: all reads are answered from memory, so the
//! store needs neither an index nor transactions, only a durable append. One `fdatasync` of one
//! record is the least that a durable change can cost; a copy-on-write tree writes several pages.
//! Recovery reads the file once, in order, and the file is as long as its content (figures:
//! `examples/store_figures.rs`). The log needs no further dependency.
//!
//! One file, `names.log`, has everything. A snapshot is written as the records of a fresh file,
//! which is renamed over the old one when it is whole; the log goes on in it. So a snapshot also
//! truncates the log, and there is no moment without one whole file.

mod codec;
mod crc;
mod error;
mod files;
mod record;
mod replay;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use crate::change::{Binding, BindingKind, Change, Journal, JournalError, Lease, Target};
use crate::tree::{ChangeError, ROOT};

pub use error::{OpenError, WriteError};
pub use files::{Directory, DirectoryError, Files, StoreFile};

use record::{FILE_HEAD, FileHead, MAX_BODY, RECORD_HEAD, complete};

/// The name of the log.
const LOG: &str = "names.log";
/// The name of a log whose snapshot is being written.
const NEW_LOG: &str = "names.log.new";

/// The least length of the records behind the snapshot for which another snapshot is worthwhile.
const LEAST_TAIL: u64 = 1 << 20;
/// The length of the records of a snapshot, about.
const SNAPSHOT_RECORD: usize = 64 << 10;

/// A log of changes in the files of a directory.
///
/// ```no_run
/// use chronorb_naming::Tree;
/// use chronorb_naming::store::{Directory, Store};
/// use chronorb_rt::Monotonic;
///
/// let mut tree = Tree::new(1);
/// let now = Monotonic::now();
/// let files = Directory::open("/var/lib/chronorb/names")?;
/// let store = Store::open(files, |change| tree.apply(&change, now))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store<F: Files = Directory> {
    files: F,
    log: F::File,
    head: FileHead,
    seal: u32,
    /// The length of the snapshot at the beginning of the log.
    snapshot: u64,
    /// The length of the log.
    length: u64,
    /// The sequence number of the next record.
    sequence: u64,
    /// The length from which on the next snapshot is worthwhile.
    next_snapshot: u64,
    /// Set by a failure after which it is not known what the files contain.
    in_doubt: bool,
    numbers: Numbers,
    /// Room for a record.
    record: Vec<u8>,
}

impl<F: Files> Store<F> {
    /// Opens the log and passes the changes of its state to `apply`, in order; creates an empty one
    /// if there is none.
    ///
    /// A record that was not finished when the machine stopped is cut off.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        mut files: F,
        mut apply: impl FnMut(Change) -> Result<(), ChangeError>,
    ) -> Result<Self, OpenError> {
        let Some(mut log) = files.open(LOG).map_err(reading("open"))? else {
            return Self::create(files);
        };
        // The rest of a snapshot that was not finished. It is overwritten by the next one.
        let _ = files.remove(NEW_LOG);
        let mut numbers = Numbers::default();
        let end = replay::replay(&log, LOG, |change| {
            numbers.note(&change);
            apply(change)
        })?;
        if log.length().map_err(reading("length"))? > end.length {
            log.truncate(end.length).map_err(reading("truncate"))?;
        }
        // A process that was killed may have left what was read only in the kernel's memory.
        log.sync().map_err(reading("fdatasync"))?;
        files
            .sync_dir()
            .map_err(reading("fsync of the directory"))?;
        Ok(Self {
            files,
            log,
            head: end.head,
            seal: end.head.seal(),
            snapshot: end.snapshot,
            length: end.length,
            sequence: end.sequence,
            next_snapshot: next_snapshot(end.snapshot),
            in_doubt: false,
            numbers,
            record: Vec::new(),
        })
    }

    fn create(mut files: F) -> Result<Self, OpenError> {
        let head = FileHead {
            identity: random_identity(),
            number: 1,
            created: seconds(),
        };
        let numbers = Numbers::default();
        let written = write_snapshot(&mut files, head, numbers, &mut std::iter::empty());
        let (log, length, sequence) = written.map_err(|failure| failure.into_open())?;
        files.rename(NEW_LOG, LOG).map_err(reading("rename"))?;
        files
            .sync_dir()
            .map_err(reading("fsync of the directory"))?;
        Ok(Self {
            files,
            log,
            head,
            seal: head.seal(),
            snapshot: length,
            length,
            sequence,
            next_snapshot: next_snapshot(length),
            in_doubt: false,
            numbers,
            record: Vec::new(),
        })
    }

    /// Stores a group of changes, all or none of them. They are durable when this returns.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn append(&mut self, changes: &[Change]) -> Result<(), WriteError> {
        if self.in_doubt {
            return Err(WriteError::Doubtful);
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.record.clear();
        self.record.resize(RECORD_HEAD, 0);
        for change in changes {
            codec::write(change, &mut self.record);
        }
        let body = self.record.len() - RECORD_HEAD;
        if body > MAX_BODY {
            self.record = Vec::new();
            return Err(WriteError::TooLong(body));
        }
        complete(&mut self.record, self.sequence, self.seal);
        if let Err(error) = self.write() {
            // The part of the record that may be in the file must not come back.
            let undone = self.log.truncate(self.length);
            self.in_doubt = undone.and_then(|()| self.log.sync()).is_err();
            return Err(error);
        }
        self.length += self.record.len() as u64;
        self.sequence += 1;
        // A long record is an exception; its room is not kept.
        self.record.shrink_to(SNAPSHOT_RECORD);
        for change in changes {
            self.numbers.note(change);
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), WriteError> {
        let written = self.log.write_at(&self.record, self.length);
        written.map_err(writing(LOG, "write"))?;
        self.log.sync().map_err(writing(LOG, "fdatasync"))
    }

    /// Whether the changes behind the last snapshot are longer than it, and than 1 MiB.
    pub fn wants_snapshot(&self) -> bool {
        self.length >= self.next_snapshot && !self.in_doubt
    }

    /// Replaces the log by a snapshot: the changes that make the present state of an empty one, as
    /// those of [`Tree::changes`](crate::Tree::changes). All or none of it is stored. It takes the
    /// time in which the disc writes the state.
    ///
    /// # Errors
    /// See [`WriteError`]. The log is as before, and the next snapshot is wanted 1 MiB later.
    pub fn write_snapshot(
        &mut self,
        state: &mut dyn Iterator<Item = Change>,
    ) -> Result<(), WriteError> {
        if self.in_doubt {
            return Err(WriteError::Doubtful);
        }
        let head = FileHead {
            number: self.head.number + 1,
            created: seconds(),
            ..self.head
        };
        let mut numbers = self.numbers;
        let mut noted = state.inspect(|change| numbers.note(change));
        let written = write_snapshot(&mut self.files, head, self.numbers, &mut noted);
        let renamed = written.and_then(|written| {
            let renamed = self.files.rename(NEW_LOG, LOG);
            renamed.map_err(|error| Failure::new("rename", error))?;
            Ok(written)
        });
        let (log, length, sequence) = match renamed {
            Ok(written) => written,
            Err(failure) => {
                // It takes room; the next snapshot overwrites it.
                let _ = self.files.remove(NEW_LOG);
                self.next_snapshot = self.length + LEAST_TAIL;
                return Err(failure.into_write());
            }
        };
        let synced = self.files.sync_dir();
        // Either file may be found after a crash now, so the old one must not be needed.
        self.in_doubt = synced.is_err();
        self.log = log;
        self.head = head;
        self.seal = head.seal();
        self.snapshot = length;
        self.length = length;
        self.sequence = sequence;
        self.next_snapshot = next_snapshot(length);
        self.numbers = numbers;
        synced.map_err(writing(LOG, "fsync of the directory"))
    }

    /// The octets that distinguish this store from all others. They never change.
    pub fn identity(&self) -> [u8; 16] {
        self.head.identity
    }

    /// The length of the log in bytes, and that of the snapshot that it begins with.
    pub fn length(&self) -> (u64, u64) {
        (self.length, self.snapshot)
    }
}

impl<F: Files + Send> Journal for Store<F>
where
    F::File: Send,
{
    fn append(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        Self::append(self, changes).map_err(JournalError::new)
    }

    fn wants_snapshot(&self) -> bool {
        Self::wants_snapshot(self)
    }

    fn write_snapshot(
        &mut self,
        state: &mut dyn Iterator<Item = Change>,
    ) -> Result<(), JournalError> {
        Self::write_snapshot(self, state).map_err(JournalError::new)
    }
}

/// The greatest numbers of contexts and leases that were ever given.
///
/// They are never given again, so a snapshot has them even if nothing has them any more: as a
/// context and a lease that come and go.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    context: u64,
    lease: u64,
}

impl Numbers {
    fn note(&mut self, change: &Change) {
        match change {
            Change::CreateContext { context } => self.context = self.context.max(*context),
            Change::Bind { binding, .. } => {
                let lease = binding.lease.map_or(0, |lease| lease.id);
                self.lease = self.lease.max(lease);
            }
            Change::DestroyContext { .. } | Change::Unbind { .. } => {}
        }
    }

    /// The changes that leave an empty state empty and take the numbers.
    fn changes(self) -> impl Iterator<Item = Change> {
        let Self { context, lease } = self;
        let of_context = [
            Change::CreateContext { context },
            Change::DestroyContext { context },
        ];
        let of_lease = [
            Change::Bind {
                context: ROOT,
                id: Vec::new(),
                kind: Vec::new(),
                binding: Binding {
                    kind: BindingKind::Object,
                    target: Target::Reference(Arc::from([])),
                    lease: Some(Lease {
                        id: lease,
                        time_to_live: 1,
                    }),
                },
            },
            Change::Unbind {
                context: ROOT,
                id: Vec::new(),
                kind: Vec::new(),
            },
        ];
        let of_context = of_context.into_iter().filter(move |_| context > ROOT);
        of_context.chain(of_lease.into_iter().filter(move |_| lease > 0))
    }
}

/// A failure of an operation on the new log.
struct Failure {
    operation: &'static str,
    source: io::Error,
}

impl Failure {
    fn new(operation: &'static str, source: io::Error) -> Self {
        Self { operation, source }
    }

    fn into_open(self) -> OpenError {
        OpenError::Io {
            file: NEW_LOG,
            operation: self.operation,
            source: self.source,
        }
    }

    fn into_write(self) -> WriteError {
        writing(NEW_LOG, self.operation)(self.source)
    }
}

/// Writes a state to the new log, and returns it with its length and its next sequence number. It
/// is durable, but its name is not.
fn write_snapshot<F: Files>(
    files: &mut F,
    head: FileHead,
    numbers: Numbers,
    state: &mut dyn Iterator<Item = Change>,
) -> Result<(F::File, u64, u64), Failure> {
    let failure = |operation| move |error| Failure::new(operation, error);
    let seal = head.seal();
    let mut log = files.create(NEW_LOG).map_err(failure("create"))?;
    let written = log.write_at(&head.to_octets(), 0);
    written.map_err(failure("write"))?;
    let (mut length, mut sequence) = (FILE_HEAD as u64, 0);
    let mut changes = numbers.changes().chain(state).peekable();
    let mut record = Vec::with_capacity(SNAPSHOT_RECORD);
    let mut is_whole = false;
    while !is_whole {
        record.clear();
        record.resize(RECORD_HEAD, 0);
        // The last record is empty, which marks the end of the snapshot.
        is_whole = changes.peek().is_none();
        while record.len() < SNAPSHOT_RECORD
            && let Some(change) = changes.next()
        {
            codec::write(&change, &mut record);
        }
        if record.len() > MAX_BODY {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "a change is too long");
            return Err(Failure::new("write", error));
        }
        complete(&mut record, sequence, seal);
        let written = log.write_at(&record, length);
        written.map_err(failure("write"))?;
        length += record.len() as u64;
        sequence += 1;
    }
    log.sync().map_err(failure("fdatasync"))?;
    Ok((log, length, sequence))
}

/// The length of a log from which on another snapshot is worthwhile: it at least halves the log.
fn next_snapshot(snapshot: u64) -> u64 {
    snapshot + snapshot.max(LEAST_TAIL)
}

/// Octets that no other store has: the keys of the standard library's hash are random.
fn random_identity() -> [u8; 16] {
    let half = || RandomState::new().hash_one(SystemTime::now());
    let mut identity = [0; 16];
    identity[..8].copy_from_slice(&half().to_le_bytes());
    identity[8..].copy_from_slice(&half().to_le_bytes());
    identity
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn reading(operation: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io {
        file: LOG,
        operation,
        source,
    }
}

fn writing(file: &'static str, operation: &'static str) -> impl FnOnce(io::Error) -> WriteError {
    move |source| WriteError::Io {
        file,
        operation,
        source,
    }
}
