//! In which code set text travels: CORBA 3.3 part 2, clause 7.10.

use chronorb_cdr::{CdrError, CharSet, Endian, TextForm, WideForm};

use crate::encapsulation::{self, Reader};
use crate::{SystemException, SystemExceptionKind, Version, minor};

/// The number of a code set in the registry of the Open Group.
pub type CodeSetId = u32;

/// ISO 8859-1, also called Latin-1.
pub const ISO_8859_1: CodeSetId = 0x0001_0001;
/// ISO 646, also called ASCII.
pub const ISO_646: CodeSetId = 0x0001_0020;
/// UCS-2, level 1.
pub const UCS_2: CodeSetId = 0x0001_0100;
/// UTF-16.
pub const UTF_16: CodeSetId = 0x0001_0109;
/// UTF-8.
pub const UTF_8: CodeSetId = 0x0501_0001;

/// The code sets of one side for one kind of text.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct CodeSetComponent {
    /// The one that it uses inside; zero if it has none.
    pub native: CodeSetId,
    /// The ones that it can convert to and from, the best first.
    pub conversion: Vec<CodeSetId>,
}

/// The code sets of one side. A server publishes them in its references, in a component of tag
/// [`TAG_CODE_SETS`](crate::TAG_CODE_SETS).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct CodeSetComponentInfo {
    /// For `char` and `string`.
    pub for_char: CodeSetComponent,
    /// For `wchar` and `wstring`.
    pub for_wchar: CodeSetComponent,
}

impl CodeSetComponentInfo {
    /// The code sets of this ORB: UTF-8, converted to ISO 8859-1 for peers
    /// that do not know it, and UTF-16.
    pub fn ours() -> Self {
        Self::with_char(CodeSetComponent {
            native: UTF_8,
            conversion: vec![ISO_8859_1],
        })
    }

    /// These code sets for `char` and `string`, and UTF-16.
    pub fn with_char(for_char: CodeSetComponent) -> Self {
        Self {
            for_char,
            for_wchar: CodeSetComponent {
                native: UTF_16,
                conversion: Vec::new(),
            },
        }
    }

    /// The content of the component.
    ///
    /// # Errors
    /// [`CdrError::LengthOverflow`]
    pub fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            for component in [&self.for_char, &self.for_wchar] {
                e.write_u32(component.native)?;
                e.write_seq(&component.conversion)?;
            }
            Ok(())
        })
    }

    /// Reads the content of the component.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`], [`CdrError::LengthOverflow`]
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        let mut component = || {
            Ok(CodeSetComponent {
                native: r.read_u32()?,
                conversion: r.read_seq(Reader::read_u32)?,
            })
        };
        Ok(Self {
            for_char: component()?,
            for_wchar: component()?,
        })
    }
}

/// The code sets that a client chose for a connection. It sends them with its first request, in the
/// context [`CODE_SETS`](crate::contexts::CODE_SETS).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CodeSetContext {
    /// For `char` and `string`.
    pub char_data: CodeSetId,
    /// For `wchar` and `wstring`; zero if there is none.
    pub wchar_data: CodeSetId,
}

impl CodeSetContext {
    /// Returns the transmission code sets of a form of text.
    pub const fn of(text: TextForm) -> Self {
        Self {
            char_data: match text.narrow {
                CharSet::Latin1 => ISO_8859_1,
                CharSet::Utf8 | CharSet::Process => UTF_8,
            },
            wchar_data: match text.wide {
                WideForm::Illegal => 0,
                WideForm::Ucs2 | WideForm::Utf16 => UTF_16,
            },
        }
    }

    /// The form in which text travels in these code sets. Zero, which is no
    /// code set, and ASCII are taken for ISO 8859-1.
    ///
    /// # Errors
    /// `CODESET_INCOMPATIBLE` minor OMG|2 if this ORB does not support it.
    pub fn text(self, version: Version) -> Result<TextForm, SystemException> {
        let narrow = match self.char_data {
            UTF_8 => CharSet::Utf8,
            0 | ISO_8859_1 | ISO_646 => CharSet::Latin1,
            _ => return Err(NOT_SUPPORTED),
        };
        match self.wchar_data {
            0 | UTF_16 | UCS_2 => Ok(version.text(narrow)),
            _ => Err(NOT_SUPPORTED),
        }
    }

    /// The content of the context.
    pub fn encode(self) -> [u8; 12] {
        let mut data = [0; 12];
        data[0] = u8::from(Endian::NATIVE.is_little());
        data[4..8].copy_from_slice(&self.char_data.to_ne_bytes());
        data[8..].copy_from_slice(&self.wchar_data.to_ne_bytes());
        data
    }

    /// Reads the content of the context.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`]
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        Ok(Self {
            char_data: r.read_u32()?,
            wchar_data: r.read_u32()?,
        })
    }
}

/// The form in which a client of these code sets sends text to a server of
/// those. A server that names none gets ISO 8859-1.
///
/// # Errors
/// As [`negotiate`].
pub fn text_form(
    client: &CodeSetComponentInfo,
    server: Option<&CodeSetComponentInfo>,
    version: Version,
) -> Result<TextForm, SystemException> {
    match server {
        Some(server) => negotiate(client, server)?.text(version),
        None => Ok(version.text(CharSet::Latin1)),
    }
}

/// Chooses the code sets of a connection from those of client and server.
///
/// A server that names no code set for `wchar` gets none: the result is zero.
///
/// # Errors
/// `CODESET_INCOMPATIBLE` minor OMG|1 if there is none in common.
pub fn negotiate(
    client: &CodeSetComponentInfo,
    server: &CodeSetComponentInfo,
) -> Result<CodeSetContext, SystemException> {
    let wchar_data = if client.for_wchar.native == 0 || server.for_wchar.native == 0 {
        0
    } else {
        choose(&client.for_wchar, &server.for_wchar)?
    };
    Ok(CodeSetContext {
        char_data: choose(&client.for_char, &server.for_char)?,
        wchar_data,
    })
}

fn choose(
    client: &CodeSetComponent,
    server: &CodeSetComponent,
) -> Result<CodeSetId, SystemException> {
    if client.native == server.native || client.conversion.contains(&server.native) {
        return Ok(server.native);
    }
    if server.conversion.contains(&client.native) {
        return Ok(client.native);
    }
    // The standard's fallbacks, UTF-8 and UTF-16, need no step of their own:
    // a side that knows them lists them.
    server
        .conversion
        .iter()
        .copied()
        .find(|id| client.conversion.contains(id))
        .ok_or(SystemException::no(
            SystemExceptionKind::CodesetIncompatible,
            minor::NO_COMMON_CODE_SET,
        ))
}

const NOT_SUPPORTED: SystemException = SystemException::no(
    SystemExceptionKind::CodesetIncompatible,
    minor::CODE_SET_NOT_SUPPORTED,
);
