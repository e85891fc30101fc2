//! The octets of a value in an any.

use super::copy;
use super::walk::{self, Traits};
use crate::decoder::Place;
use crate::{Arena, CdrError, Decoder, Encoder, Endian, TextForm, TypeCode};

/// The octets of a well-formed value, in the byte order of this machine.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    octets: &'a [u8],
    /// The position that the octets have, or had, in their message.
    place: Place<'a>,
    text: TextForm,
    traits: Traits,
    arena: &'a Arena,
    host: Option<&'a dyn std::any::Any>,
}

impl<'a> Body<'a> {
    /// Decodes a value of that type.
    pub(super) fn decode(type_code: &TypeCode<'_>, d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        let (mut traits, mut size, in_pieces) =
            d.look_ahead(|ahead| walk::walk(type_code, ahead))?;
        if in_pieces {
            traits.is_movable = false;
        } else {
            let start = d.place().position;
            d.align(traits.first_align)?;
            size -= d.place().position - start;
        }
        Ok(Self {
            place: d.place(),
            text: d.text(),
            traits,
            arena: d.arena(),
            host: d.host(),
            octets: d.read_octets(size)?,
        })
    }

    /// Makes a body of the octets of a value that started at the origin.
    pub(super) fn of_octets(
        octets: &'a [u8],
        text: TextForm,
        traits: Traits,
        arena: &'a Arena,
    ) -> Self {
        Self {
            octets,
            place: Place::ORIGIN,
            text,
            traits,
            arena,
            host: None,
        }
    }

    pub(super) fn octets(&self) -> &'a [u8] {
        self.octets
    }

    pub(super) fn traits(&self) -> Traits {
        self.traits
    }

    pub(super) fn with_host(&self, host: &'a dyn std::any::Any) -> Result<&'a Self, CdrError> {
        self.arena.alloc(Self {
            host: Some(host),
            ..*self
        })
    }

    /// Replaces the arena into which copies are made.
    pub(super) fn with_arena<'b>(&self, arena: &'b Arena) -> Body<'b>
    where
        'a: 'b,
    {
        Body { arena, ..*self }
    }

    /// Returns a decoder of a copy of the octets. Each call takes room in the arena.
    pub(super) fn decoder(&self) -> Result<Decoder<'a>, CdrError> {
        let copy = self.arena.copy_octets(self.octets, self.place.offset())?;
        Ok(Decoder::new(copy, 0, Endian::NATIVE, self.arena)
            .at_place(self.place)
            .with_text(self.text)
            .with_host(self.host))
    }

    /// Writes the value. The octets are copied unchanged if they mean the same at their new
    /// position.
    pub(super) fn encode(
        &self,
        type_code: &TypeCode<'_>,
        e: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        let Traits {
            first_align,
            align,
            is_movable,
            has_narrow,
            has_wide,
        } = self.traits;
        let text = e.text();
        let fits = is_movable
            && e.endian().is_native()
            && (!has_narrow || text.narrow == self.text.narrow)
            && (!has_wide || text.wide == self.text.wide);
        if fits {
            let start = e.position().next_multiple_of(first_align);
            if start.wrapping_sub(self.place.offset()) & (align - 1) == 0 {
                e.align(first_align)?;
                return e.write_octets(self.octets);
            }
        }
        self.copy_to(type_code, e)
    }

    /// Encodes the value member by member. Equal values get equal octets, except for padding.
    pub(super) fn copy_to(
        &self,
        type_code: &TypeCode<'_>,
        e: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        copy::copy(type_code, &mut self.decoder()?, e)
    }
}
