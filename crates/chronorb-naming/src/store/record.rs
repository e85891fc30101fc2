//! The layout of a log: the head of the file, and the heads of its records.
//!
//! ```text
//! file:   "CHRNAMES"  u32 version  u32 checksum of the rest of the head  identity of 16 octets
//!         u64 number of the file  u64 creation in seconds since 1970
//! record: u32 length of the body  u32 checksum of the body  u64 sequence number
//!         u32 checksum of the fields before it  body
//! ```
//!
//! All checksums of records begin with that of the file's head. So a block of an earlier file that
//! the file system did not overwrite is no record, and a client cannot write one into a reference.

use super::crc::crc32c;

/// The length of the head of a file.
pub(super) const FILE_HEAD: usize = 48;
/// The length of the head of a record.
pub(super) const RECORD_HEAD: usize = 20;
/// The most octets of a body.
pub(super) const MAX_BODY: usize = 64 << 20;

const MAGIC: [u8; 8] = *b"CHRNAMES";
const VERSION: u32 = 1;

/// The head of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FileHead {
    /// The octets that distinguish this store from others.
    pub(super) identity: [u8; 16],
    /// The number of the file within the store, from 1.
    pub(super) number: u64,
    /// The time of creation of the file, in seconds since 1970.
    pub(super) created: u64,
}

/// The reason why a head is not that of a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HeadError {
    /// The file does not begin with the magic octets.
    Magic,
    /// The version is another one.
    Version(u32),
    /// The head is incomplete, or its checksum is wrong.
    Damaged,
}

impl FileHead {
    pub(super) fn to_octets(self) -> [u8; FILE_HEAD] {
        let mut head = [0; FILE_HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[16..32].copy_from_slice(&self.identity);
        head[32..40].copy_from_slice(&self.number.to_le_bytes());
        head[40..].copy_from_slice(&self.created.to_le_bytes());
        let checksum = crc32c(0, &head[16..]);
        head[12..16].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    pub(super) fn from_octets(octets: &[u8]) -> Result<Self, HeadError> {
        if !octets.starts_with(&MAGIC) {
            return Err(HeadError::Magic);
        }
        let head: &[u8; FILE_HEAD] = octets.first_chunk().ok_or(HeadError::Damaged)?;
        let version = u32::from_le_bytes(part(head, 8));
        if version != VERSION {
            return Err(HeadError::Version(version));
        }
        if u32::from_le_bytes(part(head, 12)) != crc32c(0, &head[16..]) {
            return Err(HeadError::Damaged);
        }
        Ok(Self {
            identity: part(head, 16),
            number: u64::from_le_bytes(part(head, 32)),
            created: u64::from_le_bytes(part(head, 40)),
        })
    }

    /// The beginning of all checksums of the file's records.
    pub(super) fn seal(self) -> u32 {
        crc32c(0, &self.to_octets())
    }
}

/// The head of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct RecordHead {
    pub(super) length: usize,
    pub(super) sequence: u64,
    checksum: u32,
}

impl RecordHead {
    /// Reads a head; `None` if it is none of this file.
    pub(super) fn from_octets(octets: &[u8], seal: u32) -> Option<Self> {
        let head: &[u8; RECORD_HEAD] = octets.first_chunk()?;
        let length = u32::from_le_bytes(part(head, 0)) as usize;
        let is_whole = crc32c(seal, &head[..16]) == u32::from_le_bytes(part(head, 16));
        (is_whole && length <= MAX_BODY).then(|| Self {
            length,
            sequence: u64::from_le_bytes(part(head, 8)),
            checksum: u32::from_le_bytes(part(head, 4)),
        })
    }

    /// Whether the body is the one that was written.
    pub(super) fn fits(&self, body: &[u8], seal: u32) -> bool {
        body.len() == self.length && crc32c(seal, body) == self.checksum
    }
}

/// Completes a record whose body stands behind room for its head. The body has at most
/// [`MAX_BODY`] octets.
pub(super) fn complete(record: &mut [u8], sequence: u64, seal: u32) {
    let (head, body) = record.split_at_mut(RECORD_HEAD);
    // At most `MAX_BODY`.
    let length = body.len() as u32;
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..8].copy_from_slice(&crc32c(seal, body).to_le_bytes());
    head[8..16].copy_from_slice(&sequence.to_le_bytes());
    let checksum = crc32c(seal, &head[..16]);
    head[16..].copy_from_slice(&checksum.to_le_bytes());
}

/// The octets from an offset on.
fn part<const N: usize, const M: usize>(octets: &[u8; M], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&octets[at..at + N]);
    part
}

/// Whether a record with a greater number than `sequence` begins behind the first octet of `tail`.
pub(super) fn has_later_record(tail: &[u8], sequence: u64, seal: u32) -> bool {
    let most = sequence.saturating_add(tail.len() as u64);
    tail.windows(RECORD_HEAD).skip(1).any(|octets| {
        // The number alone excludes nearly all places.
        let Some(number) = octets[8..].first_chunk() else {
            return false;
        };
        let number = u64::from_le_bytes(*number);
        number > sequence && number <= most && RecordHead::from_octets(octets, seal).is_some()
    })
}
