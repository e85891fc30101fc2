//! The rate limit of events of one cause about one peer.

use super::event::Level;
use super::record::Record;
use crate::mem::text::Text;
use crate::time::clock::Monotonic;

/// The recent peers and causes, in bounded memory.
#[derive(Default)]
pub(super) struct Limits {
    entries: Vec<Entry>,
}

/// One cause and one peer.
struct Entry {
    level: Level,
    cause: &'static str,
    /// Empty for the common entry of all peers without an entry.
    peer: Text<64>,
    ends: Monotonic,
    told: u32,
    suppressed: u64,
}

/// The decision about an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Admission {
    Told,
    Suppressed,
}

/// The suppressed events of one cause and peer.
pub(super) struct Summary {
    pub(super) level: Level,
    pub(super) cause: &'static str,
    pub(super) peer: Text<64>,
    pub(super) count: u64,
}

impl Limits {
    /// Counts an event.
    pub(super) fn admit(&mut self, record: &Record, now: Monotonic) -> Admission {
        if record.limit.burst == u32::MAX {
            return Admission::Told;
        }
        let mut peer = host_of(&record.peer);
        let is = |entry: &Entry, peer: &str| entry.cause == record.cause && *entry.peer == *peer;
        let mut found = self.entries.iter().position(|entry| is(entry, peer));
        if found.is_none() && self.entries.len() >= MOST_PEERS {
            // Too many peers at a time share an entry.
            peer = OTHERS;
            found = self.entries.iter().position(|entry| is(entry, peer));
        }
        let index = found.unwrap_or_else(|| {
            self.entries.push(Entry {
                level: record.level,
                cause: record.cause,
                peer: Text::of(peer),
                ends: now + record.limit.time,
                told: 0,
                suppressed: 0,
            });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        if entry.told < record.limit.burst {
            entry.told += 1;
            Admission::Told
        } else {
            entry.suppressed += 1;
            Admission::Suppressed
        }
    }

    /// Removes entries whose interval is over, and reports the events that they suppressed.
    pub(super) fn expire(&mut self, now: Monotonic, tell: &mut dyn FnMut(Summary)) {
        self.entries.retain(|entry| {
            let is_over = now >= entry.ends;
            if is_over && entry.suppressed > 0 {
                tell(Summary {
                    level: entry.level,
                    cause: entry.cause,
                    peer: entry.peer,
                    count: entry.suppressed,
                });
            }
            !is_over
        });
    }

    /// Returns the time of the next report.
    pub(super) fn next_end(&self) -> Option<Monotonic> {
        let suppressing = self.entries.iter().filter(|entry| entry.suppressed > 0);
        suppressing.map(|entry| entry.ends).min()
    }
}

/// Returns the address without its port, because a peer has a new port with each connection.
fn host_of(peer: &str) -> &str {
    match peer.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|c| c.is_ascii_digit()) => host,
        _ => peer,
    }
}

/// The greatest number of entries.
const MOST_PEERS: usize = 64;
const OTHERS: &str = "other peers";

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::event::{Event, Limit};
    use super::super::record::record_of;
    use super::*;

    fn record(peer: &str) -> Record {
        record_of(&Event {
            level: Level::Warn,
            cause: "rejected connection",
            peer: &peer,
            number: 0,
            detail: &"",
            limit: Limit {
                burst: 2,
                time: Duration::from_secs(10),
            },
        })
    }

    #[test]
    fn a_peer_is_told_so_often_and_the_rest_as_one() {
        let mut limits = Limits::default();
        let now = Monotonic::from_nanos(0);
        let mut told = |port: u32| limits.admit(&record(&format!("10.0.0.1:{port}")), now);
        let outcomes = [told(1), told(2), told(3), told(4)];
        use Admission::{Suppressed, Told};
        assert_eq!(outcomes, [Told, Told, Suppressed, Suppressed]);
        assert_eq!(limits.admit(&record("10.0.0.2:1"), now), Told);
        assert_eq!(limits.next_end(), Some(now + Duration::from_secs(10)));
        let mut summaries = Vec::new();
        limits.expire(now + Duration::from_secs(9), &mut |s| {
            summaries.push(s.count)
        });
        assert!(summaries.is_empty());
        let mut of = Vec::new();
        limits.expire(now + Duration::from_secs(10), &mut |s| {
            of.push((s.peer.as_str().to_owned(), s.count));
        });
        assert_eq!(of, [("10.0.0.1".to_owned(), 2)]);
        assert_eq!(limits.admit(&record("10.0.0.1:9"), now), Told);
    }

    #[test]
    fn any_number_of_peers_needs_bounded_memory() {
        let mut limits = Limits::default();
        let now = Monotonic::from_nanos(0);
        let admitted = (0..10_000).filter(|i| {
            let admission = limits.admit(&record(&format!("fe80::{i:x} port")), now);
            admission == Admission::Told
        });
        assert_eq!(admitted.count(), MOST_PEERS + 2);
        assert_eq!(limits.entries.len(), MOST_PEERS + 1);
    }
}
