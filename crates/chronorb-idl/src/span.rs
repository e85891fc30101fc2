//! Places in the texts that are compiled.

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Span {
    pub(crate) file: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// Returns the span from the start of this one to the end of the other, or this one if they are
    /// in different files.
    pub(crate) fn to(self, other: Self) -> Self {
        if other.file == self.file && other.end >= self.start {
            Self {
                end: other.end,
                ..self
            }
        } else {
            self
        }
    }

    /// Returns the empty span behind this.
    pub(crate) fn after(self) -> Self {
        Self {
            start: self.end,
            ..self
        }
    }
}
