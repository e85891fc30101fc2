//! Byte orders.

/// The byte order of a message or of an encapsulation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Endian {
    /// The most significant byte comes first; the flag is FALSE.
    Big,
    /// The least significant byte comes first; the flag is TRUE.
    Little,
}

impl Endian {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") {
        Self::Little
    } else {
        Self::Big
    };

    /// The byte order that the flag of GIOP headers and encapsulations names.
    #[inline]
    pub const fn from_flag(little: bool) -> Self {
        if little { Self::Little } else { Self::Big }
    }

    /// Whether this is little-endian: the value of the flag on the wire.
    #[inline]
    pub const fn is_little(self) -> bool {
        matches!(self, Self::Little)
    }

    /// Whether this is the byte order of this machine.
    #[inline]
    pub const fn is_native(self) -> bool {
        self.is_little() == Self::NATIVE.is_little()
    }
}
