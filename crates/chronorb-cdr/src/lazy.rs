//! Sequences that are decoded element by element.

use std::any::Any;
use std::cell::Cell;
use std::fmt;

use crate::any::walk;
use crate::decoder::Place;
use crate::{Arena, Cdr, CdrError, Decoder, Endian, TextForm, Typed};

/// A sequence whose elements are decoded one by one, on demand: the type of a servant's parameter
/// with `@rt::lazy`.
///
/// The whole message is checked before, so that a malformed one is refused as usual; but an element
/// takes no memory before it is read. The elements of a received sequence can be iterated once,
/// since decoding uses up the frame.
#[derive(Clone, Copy)]
pub struct Lazy<'a, T> {
    source: Source<'a, T>,
}

enum Source<'a, T> {
    /// The elements are in memory, as in a call within the process.
    Items(&'a [T]),
    Frame {
        len: usize,
        frame: &'a Cell<Option<DecoderParts<'a>>>,
    },
}

/// The parts from which a decoder is made on demand.
struct DecoderParts<'a> {
    octets: &'a mut [u8],
    place: Place<'a>,
    text: TextForm,
    arena: &'a Arena,
    host: Option<&'a dyn Any>,
}

impl<'a> DecoderParts<'a> {
    fn decoder(self) -> Decoder<'a> {
        Decoder::new(self.octets, 0, Endian::NATIVE, self.arena)
            .at_place(self.place)
            .with_text(self.text)
            .with_host(self.host)
    }
}

impl<T> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}

impl<'a, T> Lazy<'a, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self.source {
            Source::Items(items) => items.len(),
            Source::Frame { len, .. } => len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements in order; `None` if they were received and have been iterated before.
    pub fn iter(&self) -> Option<LazyIter<'a, T>> {
        Some(match self.source {
            Source::Items(items) => LazyIter {
                source: Rest::Items(items.iter()),
            },
            Source::Frame { len, frame } => LazyIter {
                source: Rest::Frame {
                    len,
                    decoder: frame.take()?.decoder(),
                },
            },
        })
    }
}

impl<'a, T: Cdr<'a> + Typed> Lazy<'a, T> {
    /// Reads a sequence: checks it, and takes it from the frame.
    ///
    /// # Errors
    /// As that of a slice of `T`, but that a full arena is told by the iterator.
    pub fn decode(d: &mut Decoder<'a>, bound: Option<u32>) -> Result<Self, CdrError> {
        let len = d.read_len_of::<T>(T::MIN_SIZE)?;
        if bound.is_some_and(|bound| len > bound as usize) {
            return Err(CdrError::BoundExceeded);
        }
        let (octets, place) = d.take_native(|ahead| {
            (0..len).try_for_each(|_| walk::walk(&T::TYPE_CODE, ahead).map(drop))
        })?;
        let kept = DecoderParts {
            octets,
            place,
            text: d.text(),
            arena: d.arena(),
            host: d.host(),
        };
        let frame = d.arena().alloc_plain(Cell::new(Some(kept)))?;
        Ok(Self {
            source: Source::Frame { len, frame },
        })
    }
}

impl<'a, T> From<&'a [T]> for Lazy<'a, T> {
    fn from(items: &'a [T]) -> Self {
        Self {
            source: Source::Items(items),
        }
    }
}

impl<T> fmt::Debug for Lazy<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").field("len", &self.len()).finish()
    }
}

/// The elements of a [`Lazy`] sequence, each decoded when it is asked for.
///
/// An element is an error if the arena has no room for it; iteration ends there.
#[derive(Debug)]
pub struct LazyIter<'a, T> {
    source: Rest<'a, T>,
}

#[derive(Debug)]
enum Rest<'a, T> {
    Items(std::slice::Iter<'a, T>),
    Frame { len: usize, decoder: Decoder<'a> },
}

impl<'a, T: Cdr<'a>> Iterator for LazyIter<'a, T> {
    type Item = Result<T, CdrError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Rest::Items(items) => items.next().copied().map(Ok),
            Rest::Frame { len: 0, .. } => None,
            Rest::Frame { len, decoder } => {
                let item = T::decode(decoder);
                *len = if item.is_ok() { *len - 1 } else { 0 };
                Some(item)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.source {
            Rest::Items(items) => items.len(),
            Rest::Frame { len, .. } => *len,
        };
        (0, Some(len))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Encoder, Frame};

    use super::*;

    fn lazily<R>(endian: Endian, f: impl FnOnce(Lazy<'_, i16>, &mut Decoder<'_>) -> R) -> R {
        let mut frame = Frame::new(256, 1024);
        let mut e = Encoder::new(&mut frame, endian);
        e.write_u8(9).unwrap();
        e.write_seq(&[1i16, -2, 3]).unwrap();
        e.write_f64(0.5).unwrap();
        let arena = Arena::new(256);
        let mut d = Decoder::new(frame.as_mut_slice(), 0, endian, &arena);
        d.read_u8().unwrap();
        let items = Lazy::<i16>::decode(&mut d, Some(3)).unwrap();
        f(items, &mut d)
    }

    #[test]
    fn elements_come_in_order_after_what_follows_the_sequence_was_read() {
        for endian in [Endian::Big, Endian::Little] {
            lazily(endian, |items, d| {
                assert_eq!(d.read_f64(), Ok(0.5));
                let items: Result<Vec<_>, _> = items.iter().unwrap().collect();
                assert_eq!(items.unwrap(), [1, -2, 3]);
            });
        }
    }

    #[test]
    fn a_received_sequence_is_gone_through_once() {
        lazily(Endian::NATIVE, |items, _| {
            assert_eq!(items.len(), 3);
            assert!(items.iter().is_some());
            assert!(items.iter().is_none());
        });
        let local = Lazy::from(&[1u8, 2][..]);
        assert!(local.iter().is_some() && local.iter().is_some());
    }

    #[test]
    fn a_sequence_that_is_cut_off_or_too_long_is_refused_at_once() {
        let arena = Arena::new(256);
        let mut octets = [0, 0, 0, 2, 0, 1, 0];
        let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
        assert!(Lazy::<i16>::decode(&mut d, None).is_err());
        let mut octets = [0, 0, 0, 2, 0, 1, 0, 2];
        let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
        let refused = Lazy::<i16>::decode(&mut d, Some(1)).map(drop);
        assert_eq!(refused, Err(CdrError::BoundExceeded));
    }
}
