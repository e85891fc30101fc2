//! Recovery: the changes of all whole records of a log, and the place where the next one goes.

use std::io;

use crate::change::Change;
use crate::tree::ChangeError;

use super::codec;
use super::error::OpenError;
use super::files::StoreFile;
use super::record::{
    FILE_HEAD, FileHead, HeadError, MAX_BODY, RECORD_HEAD, RecordHead, has_later_record,
};

/// The bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// The end of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogEnd {
    pub(super) head: FileHead,
    /// The length of the snapshot that the file begins with, in bytes.
    pub(super) snapshot: u64,
    /// The length of the whole records, in bytes.
    pub(super) length: u64,
    /// The sequence number of the next record.
    pub(super) sequence: u64,
}

/// Reads a log and passes its changes on.
///
/// A record that is not whole is the one that was being written when the machine stopped, if it is
/// the last one and stands behind the snapshot. All others are damage.
pub(super) fn replay<F: StoreFile>(
    file: &F,
    name: &'static str,
    mut apply: impl FnMut(Change) -> Result<(), ChangeError>,
) -> Result<LogEnd, OpenError> {
    let mut reader = Reader::new(file, name)?;
    let head = match FileHead::from_octets(reader.fill(FILE_HEAD)?) {
        Ok(head) => head,
        Err(HeadError::Magic) => return Err(OpenError::Foreign { file: name }),
        Err(HeadError::Version(version)) => {
            return Err(OpenError::Version {
                file: name,
                version,
            });
        }
        Err(HeadError::Damaged) => return Err(reader.damage("the head of the file is not whole")),
    };
    reader.skip(FILE_HEAD);
    let seal = head.seal();
    let mut snapshot = None;
    let mut sequence = 0;
    loop {
        let rest = reader.rest();
        if rest == 0 {
            break;
        }
        let Some(record) = RecordHead::from_octets(reader.fill(RECORD_HEAD)?, seal) else {
            let most = MAX_BODY + RECORD_HEAD;
            if snapshot.is_none() {
                return Err(reader.damage("the head of a record is not whole"));
            }
            if rest > most as u64 || has_later_record(reader.fill(most)?, sequence, seal) {
                return Err(reader.damage("whole records follow a damaged one"));
            }
            break;
        };
        if record.sequence != sequence {
            return Err(reader.damage("a record has another number than the next one"));
        }
        let length = RECORD_HEAD + record.length;
        let body = &reader.fill(length)?[RECORD_HEAD..];
        if !record.fits(body, seal) {
            if snapshot.is_none() {
                return Err(reader.damage("the snapshot is not whole"));
            }
            if rest > length as u64 {
                return Err(reader.damage("other records follow a damaged one"));
            }
            break;
        }
        let mut body = body;
        let is_mark = body.is_empty();
        while !body.is_empty() {
            let Some(change) = codec::read(&mut body) else {
                return Err(reader.damage("a record has a change that is unknown"));
            };
            if let Err(source) = apply(change) {
                return Err(OpenError::Change {
                    file: name,
                    offset: reader.offset,
                    source,
                });
            }
        }
        reader.skip(length);
        sequence += 1;
        if is_mark && snapshot.replace(reader.offset).is_some() {
            return Err(reader.damage("the snapshot has a second end"));
        }
    }
    let Some(snapshot) = snapshot else {
        return Err(reader.damage("the snapshot has no end"));
    };
    Ok(LogEnd {
        head,
        snapshot,
        length: reader.offset,
        sequence,
    })
}

/// A file that is read from its beginning to its end.
struct Reader<'f, F> {
    file: &'f F,
    name: &'static str,
    length: u64,
    /// The offset of the next octet in the file.
    offset: u64,
    /// The octets of the file around the offset.
    buffer: Vec<u8>,
    /// The next octet in the buffer.
    start: usize,
}

impl<'f, F: StoreFile> Reader<'f, F> {
    fn new(file: &'f F, name: &'static str) -> Result<Self, OpenError> {
        let length = file.length().map_err(|source| OpenError::Io {
            file: name,
            operation: "length",
            source,
        })?;
        Ok(Self {
            file,
            name,
            length,
            offset: 0,
            buffer: Vec::new(),
            start: 0,
        })
    }

    /// The number of octets that are left.
    fn rest(&self) -> u64 {
        self.length - self.offset
    }

    /// Returns the next `count` octets; fewer at the end of the file.
    fn fill(&mut self, count: usize) -> Result<&[u8], OpenError> {
        let count = usize::try_from(self.rest()).map_or(count, |rest| count.min(rest));
        if self.buffer.len() - self.start < count {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.read(count).map_err(|source| OpenError::Io {
                file: self.name,
                operation: "read",
                source,
            })?;
        }
        Ok(&self.buffer[self.start..][..count])
    }

    /// Reads until the buffer has `count` octets, and more if the file has them.
    fn read(&mut self, count: usize) -> io::Result<()> {
        let mut have = self.buffer.len();
        let rest = usize::try_from(self.rest()).unwrap_or(usize::MAX);
        self.buffer.resize(count.max(CHUNK.min(rest)), 0);
        while have < count {
            let at = self.offset + have as u64;
            match self.file.read_at(&mut self.buffer[have..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => have += read,
            }
        }
        self.buffer.truncate(have);
        Ok(())
    }

    fn skip(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    fn damage(&self, defect: &'static str) -> OpenError {
        OpenError::Damaged {
            file: self.name,
            offset: self.offset,
            defect,
        }
    }
}
