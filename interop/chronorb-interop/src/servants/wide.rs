//! Wide characters and `long double`.

use chronorb::data::LongDouble;
use chronorb::prelude::*;

use super::{echoes, echoes_by_reference};
use crate::idl::*;

/// Serves `Wides`.
#[derive(Debug)]
pub(crate) struct WidesObject;

impl WidesServant for WidesObject {
    echoes! {
        echo_wchar: char;
        echo_wstring: &'a str;
        echo_wide_name: WideName<'a>;
        echo_wchars: WChars<'a>;
        echo_wide_words: WideWords<'a>;
    }

    echoes_by_reference! {
        echo_wide_entry: WideEntry<'a>;
    }

    fn wide_constants<'a>(&self, _: &Call<'a>) -> Result<(&'a str, char), SystemException> {
        Ok((WIDE_GREETING, GLYPH))
    }

    fn refuse<'a>(&self, _: &Call<'a>, reason: &'a str) -> Result<(), RefuseError<'a>> {
        Err(WideRefused { reason }.into())
    }
}

/// Serves `Precise`.
#[derive(Debug)]
pub(crate) struct PreciseObject;

impl PreciseServant for PreciseObject {
    echoes! {
        echo_longdouble: LongDouble;
        echo_quads: Quads<'a>;
    }
}
