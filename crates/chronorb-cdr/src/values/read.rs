//! Decoding of value types: sharing, repository ids, chunks and truncation.

use std::sync::Arc;

use super::chunks::{CHUNK_LIMIT, INDIRECTION};
use super::registry::{self, Read};
use super::{ReadState, Value, ValueType, narrow};
use crate::limits::steps_of_text;
use crate::{CdrError, Decoder, stack};

/// The greatest nesting of values in one message. The limit is lower if the stack has no room for
/// their states; see [`StackLimit`](crate::StackLimit).
pub const MAX_VALUE_DEPTH: u32 = 64;

/// The greatest number of values in one message.
pub const MAX_VALUES: u32 = 1 << 16;

/// The bits in the tag of a value.
const HAS_CODEBASE: u32 = 1;
const IDS: u32 = 6;
const ONE_ID: u32 = 2;
const LIST_OF_IDS: u32 = 6;
const CHUNKED: u32 = 8;

impl<'a> Decoder<'a> {
    /// Reads a value, or null. Two references to one value arrive as references to one value.
    ///
    /// # Errors
    /// [`CdrError::NoValueFactory`] if its type is unknown here, and so are all bases that it may
    /// be taken for; [`CdrError::WrongValueType`] if it is not a `V`; [`CdrError::InvalidValue`],
    /// [`CdrError::CyclicValue`], [`CdrError::TooDeep`] at more than [`MAX_VALUE_DEPTH`],
    /// [`CdrError::TooManyValues`] at more than [`MAX_VALUES`], [`CdrError::BoundExceeded`] at more
    /// than 32 identifiers of a value or 1024 octets of one, and those of its state.
    pub fn read_value<V: ValueType + ?Sized>(&mut self) -> Result<Option<Arc<V>>, CdrError> {
        let Some(value) = self.read_untyped(V::INFO.repository_id, V::known)? else {
            return Ok(None);
        };
        narrow(value).map(Some).ok_or(CdrError::WrongValueType)
    }

    /// Reads a value where one of the type `formal` is expected.
    pub(super) fn read_untyped(
        &mut self,
        formal: &str,
        known: fn(&str) -> Option<ReadState>,
    ) -> Result<Option<Arc<dyn Value>>, CdrError> {
        if self.in_chunks && !self.is_within_chunk() {
            self.skip_chunk()?;
            if self.reading().ended_to.is_some() {
                return Err(CdrError::InvalidValue);
            }
            self.skip_base_ends()?;
            let next = self.peek_u32()?;
            if (1..CHUNK_LIMIT).contains(&next) {
                self.read_u32()?;
                self.begin_chunk(next)?;
            }
        }
        let tag = self.read_u32()?;
        let start = self.position() - 4;
        let value = match tag {
            0 => None,
            INDIRECTION => {
                let target = self.read_target()?;
                Some(self.reading().value(target)?)
            }
            // TAO writes a value without chunks into the chunk of the value that contains it.
            CHUNK_LIMIT..0x8000_0000 if !self.in_chunks || tag & CHUNKED == 0 => {
                Some(self.read_tagged(tag, start, formal, known)?)
            }
            _ => return Err(CdrError::InvalidValue),
        };
        if self.reading().level > 0 && !self.in_chunks {
            self.between_chunks();
        }
        Ok(value)
    }

    /// Reads a value behind its tag.
    fn read_tagged(
        &mut self,
        tag: u32,
        start: usize,
        formal: &str,
        known: fn(&str) -> Option<ReadState>,
    ) -> Result<Arc<dyn Value>, CdrError> {
        let ids = self.read_types(tag, formal)?;
        self.charge(ids.len())?;
        let (found, truncates) = find(&ids, known).ok_or(CdrError::NoValueFactory)?;
        let is_chunked = tag & CHUNKED != 0;
        if truncates && !is_chunked {
            return Err(CdrError::InvalidValue);
        }
        self.open_value(start, is_chunked)?;
        let value = match found {
            ValueReader::Registered(read) => read(self)?,
            ValueReader::Known(read) => read(self)?,
        };
        self.close_value(is_chunked, Some(&value))?;
        Ok(value)
    }

    /// Reads the identifiers that the value can be taken for, the most derived first.
    fn read_types(&mut self, tag: u32, formal: &str) -> Result<Arc<[Id]>, CdrError> {
        if tag & !(CHUNK_LIMIT | HAS_CODEBASE | IDS | CHUNKED) != 0 {
            return Err(CdrError::InvalidValue);
        }
        if tag & HAS_CODEBASE != 0 {
            // The URLs of code for the type; none is loaded.
            self.skip_codebase()?;
        }
        match tag & IDS {
            0 => Ok(Arc::new([Id::new(Arc::from(formal))])),
            ONE_ID => self.read_id(),
            LIST_OF_IDS => self.read_ids(),
            _ => Err(CdrError::InvalidValue),
        }
    }

    fn read_ids(&mut self) -> Result<Arc<[Id]>, CdrError> {
        if self.peek_u32()? == INDIRECTION {
            self.read_u32()?;
            let target = self.read_target()?;
            return at(&self.reading().lists, target).cloned();
        }
        let n = self.read_len(LEAST_ID)?;
        let start = self.position() - 4;
        if n == 0 {
            return Err(CdrError::InvalidValue);
        }
        if n > self.arena().bounds().value_ids as usize {
            return Err(CdrError::BoundExceeded);
        }
        let ids = (0..n).map(|_| Ok(self.read_id()?[0].clone()));
        let ids: Arc<[Id]> = ids.collect::<Result<_, _>>()?;
        self.reading().lists.push((start, ids.clone()));
        Ok(ids)
    }

    /// Reads a repository identifier, or an indirection to an earlier one, as a list of one.
    fn read_id(&mut self) -> Result<Arc<[Id]>, CdrError> {
        if self.peek_u32()? == INDIRECTION {
            self.read_u32()?;
            let target = self.read_target()?;
            return at(&self.reading().ids, target).cloned();
        }
        self.align(4)?;
        let start = self.position();
        let text = self.read_str()?;
        if text.len() > self.arena().bounds().value_id_octets as usize {
            return Err(CdrError::BoundExceeded);
        }
        let id: Arc<[Id]> = Arc::new([Id::new(Arc::from(text))]);
        self.charge(steps_of_text(text.len()))?;
        self.reading().ids.push((start, id.clone()));
        Ok(id)
    }

    /// Skips a codebase, or an indirection to an earlier one.
    fn skip_codebase(&mut self) -> Result<(), CdrError> {
        if self.peek_u32()? == INDIRECTION {
            self.read_u32()?;
            let target = self.read_target()?;
            return at(&self.reading().codebases, target).copied();
        }
        self.align(4)?;
        let start = self.position();
        self.read_str()?;
        self.reading().codebases.push((start, ()));
        Ok(())
    }

    /// Reads the target position of an indirection.
    fn read_target(&mut self) -> Result<usize, CdrError> {
        let offset = self.read_i32()?;
        let start = self.position() - 4;
        usize::try_from(offset.unsigned_abs())
            .ok()
            .filter(|_| offset < 0)
            .and_then(|back| start.checked_sub(back))
            .ok_or(CdrError::InvalidValue)
    }

    fn open_value(&mut self, start: usize, is_chunked: bool) -> Result<(), CdrError> {
        let (is_within, has_fragments) = (self.in_chunks, self.joint != usize::MAX);
        self.stack_limit().check(stack::Room::NONE)?;
        let reading = self.reading();
        if reading.open.len() >= MAX_VALUE_DEPTH as usize {
            return Err(CdrError::TooDeep);
        }
        if reading.values.len() >= MAX_VALUES as usize {
            return Err(CdrError::TooManyValues);
        }
        reading.open.push(reading.values.len());
        reading.values.push((start, None));
        if !is_chunked {
            // Everything within a value in chunks is in chunks, its own or those of the value.
            let has_chunks = reading.level == 0 || is_within;
            return has_chunks.then_some(()).ok_or(CdrError::InvalidValue);
        }
        reading.level += 1;
        // Chunks do not work together with the fragments of GIOP 1.1.
        if has_fragments {
            return Err(CdrError::InvalidValue);
        }
        self.between_chunks();
        Ok(())
    }

    fn close_value(
        &mut self,
        is_chunked: bool,
        value: Option<&Arc<dyn Value>>,
    ) -> Result<(), CdrError> {
        if is_chunked {
            self.end_chunks()?;
            self.reading().level -= 1;
        }
        let reading = self.reading();
        if let Some(index) = reading.open.pop() {
            reading.values[index].1 = value.cloned();
        }
        Ok(())
    }

    /// Skips to the end of the value in chunks, past any state of a derived type that is unknown
    /// here.
    fn end_chunks(&mut self) -> Result<(), CdrError> {
        self.skip_chunk()?;
        let level = self.reading().level;
        while self.reading().ended_to.is_none() {
            let start = self.position() + self.padding(4);
            match self.read_u32()? {
                // Null, where a chunk might have held it.
                0 => {}
                size @ 1..CHUNK_LIMIT => {
                    self.read_octets(size as usize)?;
                }
                tag @ CHUNK_LIMIT..0x8000_0000 => self.skip_value(tag, start)?,
                end => {
                    let ended = end.wrapping_neg();
                    // TAO ends each level of inheritance, as if the derived values were within.
                    if ended <= level {
                        self.reading().ended_to = Some(ended);
                    }
                }
            }
        }
        // One tag may end several values.
        let reading = self.reading();
        if reading.ended_to == Some(level) {
            reading.ended_to = None;
        }
        Ok(())
    }

    /// Skips a value that was not asked for. It is kept if there is a factory for it, because later
    /// parts of the message may refer to it.
    fn skip_value(&mut self, tag: u32, start: usize) -> Result<(), CdrError> {
        let ids = self.read_types(tag, "")?;
        if tag & CHUNKED == 0 {
            return Err(CdrError::InvalidValue);
        }
        self.open_value(start, true)?;
        self.charge(ids.len())?;
        let found = ids.iter().find_map(|id| id.registered);
        let value = match found {
            Some(read) => Some(read(self)?),
            None => None,
        };
        self.close_value(true, value.as_ref())
    }

    pub(super) fn reading(&mut self) -> &mut ReadLog {
        let notes = self.values.get_or_insert_with(|| {
            let notes: Box<dyn ReadNotes> = Box::<ReadLog>::default();
            notes
        });
        notes.reading()
    }
}

/// The function or factory that reads a value.
enum ValueReader {
    Registered(&'static Read),
    Known(ReadState),
}

/// A repository identifier with the factory registered for it. The factory is looked up once,
/// however many values refer to the identifier.
#[derive(Clone)]
struct Id {
    text: Arc<str>,
    registered: Option<&'static Read>,
}

impl Id {
    fn new(text: Arc<str>) -> Self {
        Self {
            registered: registry::find(&text),
            text,
        }
    }
}

/// Returns the first known type, and whether a more derived one is unknown.
fn find(ids: &[Id], known: fn(&str) -> Option<ReadState>) -> Option<(ValueReader, bool)> {
    ids.iter().enumerate().find_map(|(index, id)| {
        let found = match id.registered {
            Some(read) => ValueReader::Registered(read),
            None => ValueReader::Known(known(&id.text)?),
        };
        Some((found, index > 0))
    })
}

/// The state that a decoder keeps of the values in its message. It is behind a trait so that a
/// program without values does not contain its code.
pub(crate) trait ReadNotes {
    fn reading(&mut self) -> &mut ReadLog;
}

/// Values, identifiers, lists of identifiers, and codebases, by position. They are read in the
/// order of their positions, so a binary search finds them.
#[derive(Default)]
pub(crate) struct ReadLog {
    /// Nothing stands for a value that is open, or was skipped.
    values: Vec<(usize, Option<Arc<dyn Value>>)>,
    /// Each identifier as a list of one.
    ids: Vec<(usize, Arc<[Id]>)>,
    lists: Vec<(usize, Arc<[Id]>)>,
    codebases: Vec<(usize, ())>,
    /// The indexes of the values that enclose the next octet.
    open: Vec<usize>,
    /// The number of open values that are in chunks.
    pub(super) level: u32,
    /// The outermost level that the last end tag closed, with all levels within it.
    pub(super) ended_to: Option<u32>,
}

impl ReadLog {
    /// Returns the value that an indirection to `target` means.
    fn value(&self, target: usize) -> Result<Arc<dyn Value>, CdrError> {
        if let Some(value) = at(&self.values, target)? {
            return Ok(value.clone());
        }
        let mut open = self.open.iter();
        if open.any(|index| self.values[*index].0 == target) {
            return Err(CdrError::CyclicValue);
        }
        Err(CdrError::InvalidValue)
    }
}

/// Returns what was read at a position.
fn at<T>(entries: &[(usize, T)], position: usize) -> Result<&T, CdrError> {
    let index = entries.binary_search_by_key(&position, |(at, _)| *at);
    index
        .map(|index| &entries[index].1)
        .map_err(|_| CdrError::InvalidValue)
}

impl ReadNotes for ReadLog {
    fn reading(&mut self) -> &mut ReadLog {
        self
    }
}

/// The least number of octets of an identifier: an empty string.
const LEAST_ID: usize = 4;
