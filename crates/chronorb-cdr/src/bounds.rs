//! The bounds of identifiers, names and members in received values.

/// The greatest numbers and lengths that a decoder accepts, beside the size of the message.
///
/// An [`Arena`](crate::Arena) carries the bounds, and the ORB sets those of its configuration. A
/// value above its bound is [`CdrError::BoundExceeded`](crate::CdrError::BoundExceeded). The work
/// on a message and its use of the stack have separate limits; see
/// [`Decoder::charge`](crate::Decoder::charge) and [`StackLimit`](crate::StackLimit).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// The repository identifiers of a value: its type and the bases that it may be truncated to.
    /// 32 by default.
    pub value_ids: u32,
    /// The octets of a repository identifier of a value. 1024 by default.
    pub value_id_octets: u32,
    /// The octets of a name or repository identifier in a type code, with the zero at its end. 2048
    /// by default.
    pub type_name_octets: u32,
    /// The members of a type in a type code. 16,384 by default.
    pub type_members: u32,
}

impl Bounds {
    /// The default bounds.
    pub const DEFAULT: Self = Self {
        value_ids: 32,
        value_id_octets: 1024,
        type_name_octets: 2048,
        type_members: 1 << 14,
    };

    /// No bounds but those of the octets, for values that were accepted before.
    pub(crate) const NONE: Self = Self {
        value_ids: u32::MAX,
        value_id_octets: u32::MAX,
        type_name_octets: u32::MAX,
        type_members: u32::MAX,
    };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}
