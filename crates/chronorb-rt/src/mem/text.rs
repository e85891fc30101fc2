//! A text of bounded length, without memory of its own.

use core::fmt;
use core::ops::Deref;

/// A text of at most `N` octets. Excess characters are cut off.
///
/// Writing into it never fails, waits or allocates.
///
/// ```
/// use std::fmt::Write;
/// use chronorb_rt::Text;
///
/// let mut text = Text::<8>::new();
/// let _ = write!(text, "{} octets", 1234);
/// assert_eq!(&*text, "1234 oct");
/// ```
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    octets: [u8; N],
    len: usize,
    /// Set once text was cut off, after which nothing is added.
    is_cut: bool,
}

impl<const N: usize> Text<N> {
    /// An empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            octets: [0; N],
            len: 0,
            is_cut: false,
        }
    }

    /// Formats a value.
    #[must_use]
    pub fn of(value: impl fmt::Display) -> Self {
        let mut text = Self::new();
        // Writing into a text never fails; a value whose own formatting does is shown as far as it
        // came.
        let _ = fmt::write(&mut text, format_args!("{value}"));
        text
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // It is cut between characters only.
        core::str::from_utf8(&self.octets[..self.len]).unwrap_or_default()
    }

    /// Empties it.
    pub const fn clear(&mut self) {
        self.len = 0;
        self.is_cut = false;
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Ok(());
        }
        let room = N - self.len;
        let mut len = text.len();
        if len > room {
            self.is_cut = true;
            len = room;
            while !text.is_char_boundary(len) {
                len -= 1;
            }
        }
        self.octets[self.len..self.len + len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_between_characters() {
        assert_eq!(&*Text::<4>::of("abc"), "abc");
        assert_eq!(&*Text::<4>::of("abcdef"), "abcd");
        assert_eq!(&*Text::<4>::of("abcé"), "abc");
        // Nothing is added after the cut.
        assert_eq!(&*Text::<4>::of(format_args!("abcé{}", 'd')), "abc");
        assert_eq!(&*Text::<0>::of("x"), "");
    }
}
