//! Labels of BPF programs, and their places once they are known.

use super::AssembleError;

/// A jump target in a program.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Label(pub(super) usize);

/// The positions of the labels of an assembled program.
#[derive(Debug)]
pub(super) struct Places(Vec<Option<usize>>);

impl Places {
    /// Locates the labels of a program. `pieces` gives, in order, the number of instructions of
    /// each operation and the label that it binds.
    pub(super) fn find(
        labels: usize,
        pieces: impl Iterator<Item = (usize, Option<Label>)>,
    ) -> Result<Self, AssembleError> {
        let mut places = vec![None; labels];
        let mut at = 0;
        for (len, bound) in pieces {
            if let Some(Label(label)) = bound {
                if places[label].is_some() {
                    return Err(AssembleError::BoundTwice { at });
                }
                places[label] = Some(at);
            }
            at += len;
        }
        Ok(Self(places))
    }

    /// Returns the number of instructions that a jump at `at` skips.
    pub(super) fn distance(&self, at: usize, to: Label) -> Result<i64, AssembleError> {
        match self.0[to.0] {
            Some(place) => Ok(place as i64 - at as i64 - 1),
            None => Err(AssembleError::Unbound { at }),
        }
    }

    /// Returns the same distance in the type of the instruction's field.
    pub(super) fn jump<T: TryFrom<i64>>(&self, at: usize, to: Label) -> Result<T, AssembleError> {
        let distance = self.distance(at, to)?;
        T::try_from(distance).map_err(|_| AssembleError::OutOfRange { at, distance })
    }
}
