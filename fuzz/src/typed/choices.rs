//! Decisions by the octets of an input. They never end: where none is left, it is the first choice.

use arbitrary::{Arbitrary, Unstructured};

/// The octets of a fuzzer's input, which decide all choices of a test.
pub(crate) struct Choices<'d>(Unstructured<'d>);

impl<'d> Choices<'d> {
    pub(crate) fn new(data: &'d [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    /// A number below `n`.
    pub(crate) fn pick(&mut self, n: usize) -> usize {
        self.0.int_in_range(0..=n - 1).unwrap_or(0)
    }

    /// One of these.
    pub(crate) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())]
    }

    /// True about once in `n` times.
    pub(crate) fn rarely(&mut self, n: usize) -> bool {
        self.pick(n) == n - 1
    }

    /// Any value.
    pub(crate) fn any<T: Arbitrary<'d> + Default>(&mut self) -> T {
        self.0.arbitrary().unwrap_or_default()
    }

    /// Any octets, at most `n`.
    pub(crate) fn octets(&mut self, n: usize) -> &'d [u8] {
        let n = self.pick(n + 1).min(self.0.len());
        self.0.bytes(n).unwrap_or_default()
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'d [u8] {
        self.0.take_rest()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
