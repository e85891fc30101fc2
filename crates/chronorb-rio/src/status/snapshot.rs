//! Snapshots of a running RIO and its classes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use chronorb_rt::{PublishedWords, is_hidden};
use thiserror::Error;

use super::layout::{self, BUCKETS, Count, HEAD, Level};
use crate::class::{ClassId, MAX_CLASSES};
use crate::plan::Policy;

/// The content of a page at one time.
///
/// The writer of the page is not trusted: a snapshot can contain any figures, but names are free of
/// control characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Snapshot {
    /// The interface.
    pub interface: String,
    /// The open classes, by number.
    pub classes: Vec<ClassSnapshot>,
}

/// The counters of a class.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassSnapshot {
    /// The number of the class.
    pub class: ClassId,
    /// The number of times that the class was opened. Each opening resets the counters to 0.
    pub opening: u64,
    /// The name, cut to 32 octets.
    pub name: String,
    /// The processing mode.
    pub mode: Mode,
    /// The scheduling of its threads.
    pub policy: Policy,
    /// The native priority of its threads.
    pub priority: u64,
    /// The only processor of its threads; `None` for any.
    pub cpu: Option<u64>,
    /// The maximum number of packets per period, if there is one.
    pub bound: Option<(u64, Duration)>,
    /// The length of its queue in frames.
    pub queue: u64,
    /// The maximum number of connections.
    pub connections: u64,
    /// The time from the notification of the thread to the delivery of a packet.
    pub latencies: Latencies,
    counts: [u64; Count::ALL.len()],
    levels: [LevelSnapshot; Level::ALL.len()],
}

/// The processing mode of a class; see [`Processing`](crate::plan::Processing).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// On arrival, by the thread that waits for the packets' contents.
    OnArrival,
    /// On arrival, by the class's thread.
    OnDemand,
    /// At the start of each period.
    Periodic,
}

/// A level of a class.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LevelSnapshot {
    /// The present value.
    pub now: u64,
    /// The maximum since the class was opened.
    pub most: u64,
}

/// A histogram of packet latencies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Latencies {
    /// Bucket 0 counts latencies of 0 ns, bucket i those from 2ⁱ⁻¹ ns to below 2ⁱ ns. The last one
    /// also counts all longer ones.
    pub buckets: [u64; BUCKETS],
    /// The longest latency since the class was opened.
    pub longest: Duration,
}

impl Snapshot {
    /// Reads a page from a file, which may be anything.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn read(file: &File) -> Result<Self, SnapshotError> {
        if !PublishedWords::is_published(file) {
            return Err(SnapshotError::NoPage);
        }
        let mut octets = vec![0; 8 * layout::PAGE];
        file.read_exact_at(&mut octets, 0)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => SnapshotError::NoPage,
                _ => SnapshotError::Unread(error),
            })?;
        let words: Vec<u64> = (octets.as_chunks().0.iter())
            .map(|word| u64::from_ne_bytes(*word))
            .collect();
        let snapshot = Self::of(&words)?;
        // The figures of a class that was opened meanwhile would be a mixture.
        let mut openings = vec![0; 8 * layout::PAGE];
        file.read_exact_at(&mut openings, 0)
            .map_err(SnapshotError::Unread)?;
        let is_same = |class: &ClassSnapshot| {
            let at = 8 * (HEAD + class.class.index() * layout::CLASS + layout::OPENING);
            openings[at..at + 8] == class.opening.to_ne_bytes()
        };
        let classes = snapshot.classes.into_iter().filter(is_same).collect();
        Ok(Self {
            classes,
            ..snapshot
        })
    }

    /// Decodes the words of a page from an untrusted writer.
    ///
    /// # Errors
    /// [`SnapshotError`] if they are not those of a page.
    pub fn of(words: &[u64]) -> Result<Self, SnapshotError> {
        if words.len() != layout::PAGE || words[layout::MAGIC_AT] != layout::MAGIC {
            return Err(SnapshotError::NoPage);
        }
        let version = words[layout::VERSION_AT];
        if version != layout::VERSION {
            return Err(SnapshotError::Version(version));
        }
        let interface = text(&words[layout::INTERFACE_AT..][..layout::INTERFACE_WORDS]);
        let classes = words[HEAD..].chunks_exact(layout::CLASS);
        let classes = (0..MAX_CLASSES).filter_map(ClassId::new).zip(classes);
        let classes = classes
            .filter(|(_, words)| words[layout::OPENING] != 0)
            .map(|(class, words)| ClassSnapshot::of(class, words))
            .collect::<Result<_, _>>()?;
        Ok(Self { interface, classes })
    }
}

impl ClassSnapshot {
    /// Returns a counter.
    pub fn count(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// Returns a level.
    pub fn level(&self, level: Level) -> LevelSnapshot {
        self.levels[level as usize]
    }

    /// Returns the number of packets that were lost or dropped for any reason.
    pub fn drops(&self) -> u64 {
        Count::DROPS
            .iter()
            .fold(0, |sum, count| self.count(*count).saturating_add(sum))
    }

    fn of(class: ClassId, words: &[u64]) -> Result<Self, SnapshotError> {
        let mode = match words[layout::MODE] {
            1 => Mode::OnArrival,
            2 => Mode::OnDemand,
            3 => Mode::Periodic,
            _ => return Err(SnapshotError::Malformed(class)),
        };
        let policy = match words[layout::POLICY] {
            0 => Policy::Other,
            1 => Policy::Fifo,
            2 => Policy::RoundRobin,
            6 => Policy::Deadline,
            _ => return Err(SnapshotError::Malformed(class)),
        };
        let packets = words[layout::PACKETS];
        let period = Duration::from_nanos(words[layout::PERIOD]);
        Ok(Self {
            class,
            opening: words[layout::OPENING],
            name: text(&words[layout::NAME..][..layout::NAME_WORDS]),
            mode,
            policy,
            priority: words[layout::PRIORITY],
            cpu: words[layout::CPU].checked_sub(1),
            bound: (packets > 0).then_some((packets, period)),
            queue: words[layout::QUEUE],
            connections: words[layout::CONNECTIONS],
            latencies: Latencies {
                buckets: array(words, layout::LATENCIES),
                longest: Duration::from_nanos(words[layout::LONGEST]),
            },
            counts: array(words, layout::COUNTS),
            levels: Level::ALL.map(|level| {
                let at = layout::LEVELS + 2 * level as usize;
                LevelSnapshot {
                    now: words[at],
                    most: words[at + 1],
                }
            }),
        })
    }
}

impl Latencies {
    /// Returns the number of measured latencies.
    pub fn count(&self) -> u64 {
        let buckets = self.buckets.iter();
        buckets.fold(0, |sum, n| n.saturating_add(sum))
    }

    /// Returns an upper bound for this share of the latencies, 0 to 1: the next power of two of
    /// nanoseconds, but at most the longest latency. Returns `None` if there are no latencies.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        let bucket = self.buckets.iter().position(|n| {
            seen = seen.saturating_add(*n);
            seen >= rank
        })?;
        match bucket {
            LAST => Some(self.longest),
            bucket => Some(Duration::from_nanos(1 << bucket).min(self.longest)),
        }
    }

    /// Returns the latencies counted after `before`. The longest is that of the whole time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = *self;
        for (n, before) in since.buckets.iter_mut().zip(before.buckets) {
            *n = n.saturating_sub(before);
        }
        since
    }
}

const LAST: usize = BUCKETS - 1;

/// An error while a page is read.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The file has a wrong size or magic number, or could be truncated during the read.
    #[error("this is no page of counters")]
    NoPage,
    /// The page was written by another version of chronorb.
    #[error(
        "the counters have layout {0}, and this program reads another, {known}: use the `chronorb` \
        of the version that the process was built with",
        known = layout::VERSION
    )]
    Version(u64),
    /// The values of a class are invalid.
    #[error("the counters of class {0} are invalid: they were overwritten")]
    Malformed(ClassId),
    /// The file cannot be read.
    #[error("the counters cannot be read: {0}")]
    Unread(io::Error),
}

/// Decodes the text up to the first 0. Characters that are not shown are replaced.
fn text(words: &[u64]) -> String {
    let octets: Vec<u8> = (words.iter().flat_map(|word| word.to_ne_bytes()))
        .take_while(|octet| *octet != 0)
        .collect();
    let text = String::from_utf8_lossy(&octets);
    text.chars()
        .map(|c| if is_hidden(c) { '?' } else { c })
        .collect()
}

fn array<const N: usize>(words: &[u64], at: usize) -> [u64; N] {
    let found = words[at..].first_chunk();
    *found.expect("the layout has room for it")
}
