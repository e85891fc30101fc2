//! The code set of transmitted text, by the settings of client and server.

use chronorb_cdr::{Encoder, Endian, Frame};
use chronorb_giop::codesets::{CodeSetComponent, CodeSetComponentInfo, ISO_8859_1, UTF_8};
use chronorb_giop::{
    Component, IiopProfile, Ior, TAG_CODE_SETS, TAG_MULTIPLE_COMPONENTS, TaggedProfile,
};
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
    let write = |e: &mut Encoder<'_>| e.write_char(Char(letter));
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

/// Returns a profile with the code sets as its only component, in big endian.
fn common(info: &CodeSetComponentInfo) -> TaggedProfile {
    let data = info.encode().expect("it fits");
    let mut frame = Frame::new(64, 1 << 10);
    let mut e = Encoder::new(&mut frame, Endian::Big);
    let mut write = || {
        e.write_u8(0)?;
        e.write_len(1)?;
        e.write_u32(TAG_CODE_SETS)?;
        e.write_octet_seq(&data)
    };
    write().expect("there is room");
    TaggedProfile {
        tag: TAG_MULTIPLE_COMPONENTS,
        data: frame.as_slice().to_vec(),
    }
}

/// Combat writes them there, and omniORB and JacORB use them.
#[test]
fn code_sets_in_a_profile_of_components_are_used_by_profiles_without_their_own() {
    let s = served_by(orb(Utf8, true));
    let own = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let mut bare = own.clone();
    bare.components
        .retain(|component| component.tag != TAG_CODE_SETS);
    let latin = CodeSetComponentInfo::with_char(CodeSetComponent {
        native: ISO_8859_1,
        conversion: Vec::new(),
    });
    let utf_8 = CodeSetComponentInfo::ours();
    let refused = Err(SystemExceptionKind::DataConversion);
    let euro = Ok("\u{20ac}".to_owned());
    for (profile, others, expected) in [
        (&bare, vec![], &refused),
        (&bare, vec![common(&utf_8)], &euro),
        (&bare, vec![common(&latin)], &refused),
        (&own, vec![common(&latin)], &euro),
    ] {
        let own = profile.tagged().expect("it fits");
        for profiles in [
            [vec![own.clone()], others.clone()].concat(),
            [others.clone(), vec![own.clone()]].concat(),
        ] {
            let ior = Ior {
                profiles,
                ..s.object.ior().clone()
            };
            let object = s.client.ior_to_object(ior).expect("it is not nil");
            let result = echo(&object, "\u{20ac}").map_err(|refused| refused.kind);
            assert_eq!(&result, expected);
        }
    }
    // Octets that are no components change nothing.
    let mut malformed = common(&utf_8);
    malformed.data.truncate(9);
    let profiles = vec![bare.tagged().expect("it fits"), malformed];
    let ior = Ior {
        profiles,
        ..s.object.ior().clone()
    };
    let object = s.client.ior_to_object(ior).expect("it is not nil");
    assert_eq!(echo(&object, "e").as_deref(), Ok("e"));
}
