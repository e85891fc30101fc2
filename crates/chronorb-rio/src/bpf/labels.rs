use super::AssembleError;

/// A place in a program that is jumped to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Label(pub(super) usize);

/// Where the labels of a program are, once all is placed.
#[derive(Debug)]
pub(super) struct Places(Vec<Option<usize>>);

impl Places {
    /// Finds the labels of a program: `pieces` are, in order, how many instructions each operation
    /// takes and which label it binds.
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

    /// How many instructions a jump at `at` passes over.
    pub(super) fn distance(&self, at: usize, to: Label) -> Result<i64, AssembleError> {
        match self.0[to.0] {
            Some(place) => Ok(place as i64 - at as i64 - 1),
            None => Err(AssembleError::Unbound { at }),
        }
    }

    /// The same as a type that has room for it.
    pub(super) fn jump<T: TryFrom<i64>>(&self, at: usize, to: Label) -> Result<T, AssembleError> {
        let distance = self.distance(at, to)?;
        T::try_from(distance).map_err(|_| AssembleError::OutOfRange { at, distance })
    }
}
