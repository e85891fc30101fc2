//! Wide strings, as values of an `any`.

use crate::{Cdr, CdrError, Decoder, Encoder, TypeCode, Typed};

/// A `wstring` without a bound for use in an any. Rust represents both `string` and `wstring` as
/// `str`.
///
/// ```
/// use chronorb_cdr::{AnyBuf, WideStr};
///
/// let any = AnyBuf::new(&WideStr("Δ"))?;
/// assert_eq!(any.type_code().to_string(), "wstring");
/// # Ok::<(), chronorb_cdr::CdrError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct WideStr<'a>(pub &'a str);

impl<'a> Cdr<'a> for WideStr<'a> {
    const NESTS: bool = false;
    const MIN_SIZE: usize = 4;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_wstr(self.0)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_wstr().map(Self)
    }
}

impl Typed for WideStr<'_> {
    const TYPE_CODE: TypeCode<'static> = TypeCode::WString { bound: 0 };
}
