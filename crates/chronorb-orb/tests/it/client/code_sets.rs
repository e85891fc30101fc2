//! The code set of transmitted text, by the settings of client and server.

use chronorb_giop::codesets::{CodeSetComponentInfo, ISO_8859_1, UTF_8};
use chronorb_giop::{Component, IiopProfile};
use chronorb_orb::CharCodeSet::{self, Latin1, Utf8};
use chronorb_orb::{Char, Object, Orb, SystemException, SystemExceptionKind, minor};

use crate::support::{ServedProbe, call, echo, orb_with, served_by};

/// Settings of one side (native code set, whether it converts), with the native and the conversion
/// code sets that its references then name.
const SIDES: [(CharCodeSet, bool, u32, &[u32]); 4] = [
    (Utf8, true, UTF_8, &[ISO_8859_1]),
    (Utf8, false, UTF_8, &[]),
    (Latin1, true, ISO_8859_1, &[UTF_8]),
    (Latin1, false, ISO_8859_1, &[]),
];

fn orb(native: CharCodeSet, converts: bool) -> Orb {
    orb_with(|config| {
        config.native_char_code_set = native;
        config.char_code_set_conversion = converts;
    })
}

/// Returns the code sets that the reference names.
fn told(s: &ServedProbe) -> CodeSetComponentInfo {
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let mut components = profile.components.iter();
    let told = components.find_map(|component| match component.typed() {
        Ok(Component::CodeSets(info)) => Some(info),
        _ => None,
    });
    told.expect("references tell code sets")
}

fn letter(object: &Object, letter: u8) -> Result<Char, SystemException> {
    let write = |e: &mut chronorb_cdr::Encoder<'_>| e.write_char(Char(letter));
    call(object, "letter", &write, |d| d.read_char())
}

#[test]
fn text_travels_in_the_code_set_that_both_sides_come_to() {
    let unmappable =
        SystemException::no(SystemExceptionKind::DataConversion, minor::CHAR_NOT_MAPPED);
    let incompatible = SystemException::no(
        SystemExceptionKind::CodesetIncompatible,
        minor::NO_COMMON_CODE_SET,
    );
    for (native, converts, own, conversion) in SIDES {
        let s = served_by(orb(native, converts));
        let info = told(&s);
        assert_eq!(info.for_char.native, own);
        assert_eq!(info.for_char.conversion, conversion);
        for (client_native, client_converts, ..) in SIDES {
            // CORBA 3.3 part 2, 7.10.2.6.
            let agreed = if client_native == native || client_converts {
                Some(native)
            } else {
                converts.then_some(client_native)
            };
            let client = orb(client_native, client_converts);
            let text = s.server.object_to_string(&s.object);
            let object = client.string_to_object(&text).expect("it reads");
            let sides = (native, converts, client_native, client_converts);
            let latin = echo(&object, "gr\u{fc}\u{df}e");
            let greek = echo(&object, "\u{3b1}");
            match agreed {
                Some(Utf8) => {
                    assert_eq!(latin.as_deref(), Ok("gr\u{fc}\u{df}e"), "{sides:?}");
                    assert_eq!(greek.as_deref(), Ok("\u{3b1}"), "{sides:?}");
                    assert_eq!(letter(&object, 0xe9), Err(unmappable), "{sides:?}");
                    assert_eq!(letter(&object, b'e'), Ok(Char(b'e')), "{sides:?}");
                }
                Some(Latin1) => {
                    assert_eq!(latin.as_deref(), Ok("gr\u{fc}\u{df}e"), "{sides:?}");
                    assert_eq!(greek, Err(unmappable), "{sides:?}");
                    assert_eq!(letter(&object, 0xe9), Ok(Char(0xe9)), "{sides:?}");
                }
                None => assert_eq!(latin, Err(incompatible), "{sides:?}"),
            }
            client.shutdown(false).expect("it can be shut down");
        }
    }
}
