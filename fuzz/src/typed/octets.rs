//! A writer of CDR that checks nothing, so that it can write invalid data.

use chronorb_cdr::Endian;

/// A buffer to which octets are appended, with the alignment of CDR.
pub(crate) struct OctetWriter {
    pub(crate) octets: Vec<u8>,
    pub(crate) endian: Endian,
    /// The index to which alignment is relative. It wraps around if it is before the first octet.
    origin: usize,
}

/// An encapsulation whose length is not written yet.
pub(crate) struct Open {
    start: usize,
    endian: Endian,
    origin: usize,
}

impl OctetWriter {
    /// Makes an empty buffer whose first octet is at `position` of a message.
    pub(crate) fn at(position: usize, endian: Endian) -> Self {
        Self {
            octets: Vec::new(),
            endian,
            origin: 0_usize.wrapping_sub(position),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.octets.len()
    }

    pub(crate) fn align(&mut self, n: usize) {
        while !self.len().wrapping_sub(self.origin).is_multiple_of(n) {
            self.octets.push(0);
        }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.octets.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.align(2);
        let little = value.to_le_bytes();
        self.word(little);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
        self.word(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.align(8);
        self.word(value.to_le_bytes());
    }

    fn word<const N: usize>(&mut self, mut little: [u8; N]) {
        if !self.endian.is_little() {
            little.reverse();
        }
        self.octets.extend(little);
    }

    /// A length and these octets.
    pub(crate) fn counted(&mut self, octets: &[u8]) {
        self.u32(octets.len() as u32);
        self.octets.extend_from_slice(octets);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.u32(text.len() as u32 + 1);
        self.octets.extend_from_slice(text.as_bytes());
        self.u8(0);
    }

    /// Begins an encapsulation with a byte order of its own.
    pub(crate) fn begin(&mut self, endian: Endian) -> Open {
        self.u32(0);
        let open = Open {
            start: self.len(),
            endian: self.endian,
            origin: self.origin,
        };
        self.origin = open.start;
        self.endian = endian;
        self.u8(endian.is_little().into());
        open
    }

    /// Ends it. Its length is wrong by `error`.
    pub(crate) fn end(&mut self, open: Open, error: u32) {
        self.endian = open.endian;
        self.origin = open.origin;
        let length = (self.len() - open.start) as u32;
        self.patch(open.start - 4, length.wrapping_add(error));
    }

    /// Puts a word in the place of another.
    pub(crate) fn patch(&mut self, at: usize, value: u32) {
        let mut word = value.to_le_bytes();
        if !self.endian.is_little() {
            word.reverse();
        }
        self.octets[at..at + 4].copy_from_slice(&word);
    }
}
