//! Object references: as octets, as text, and what their components say.

use chronorb_cdr::{CdrError, CharSet, TextForm, WideForm};
use chronorb_giop::codesets::{
    self, CodeSetComponent, CodeSetComponentInfo, CodeSetContext, ISO_8859_1, UTF_8, UTF_16,
};
use chronorb_giop::{
    Component, IiopProfile, Ior, IorError, PathProfile, Policies, PolicyValue, PriorityModelValue,
    SystemException, SystemExceptionKind, TAG_CODE_SETS, TAG_DIOP, TAG_POLICIES, TAG_TAO_ENDPOINTS,
    TAG_UIOP, TaggedComponent, TaggedProfile, TaoEndpoint, TaoPathEndpoint, Version, minor,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn octets() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
}

fn code_sets() -> impl Strategy<Value = CodeSetComponent> {
    (any::<u32>(), vec(any::<u32>(), 0..4))
        .prop_map(|(native, conversion)| CodeSetComponent { native, conversion })
}

fn component() -> impl Strategy<Value = Component> {
    let host = "[a-z.]{0,12}";
    prop_oneof![
        any::<u32>().prop_map(Component::OrbType),
        (code_sets(), code_sets()).prop_map(|(for_char, for_wchar)| {
            Component::CodeSets(CodeSetComponentInfo {
                for_char,
                for_wchar,
            })
        }),
        (host, any::<u16>())
            .prop_map(|(host, port)| Component::AlternateIiopAddress { host, port }),
        vec((host, any::<u16>(), any::<i16>()), 0..4).prop_map(|endpoints| {
            let endpoint = |(host, port, priority)| TaoEndpoint {
                host,
                port,
                priority,
            };
            Component::TaoEndpoints(endpoints.into_iter().map(endpoint).collect())
        }),
        (0..2u32, any::<i16>()).prop_map(|(model, server_priority)| {
            let value = PriorityModelValue {
                model,
                server_priority,
            };
            Component::Policies(Policies(vec![PolicyValue::priority_model(value).unwrap()]))
        }),
        (100..200u32, octets())
            .prop_map(|(tag, data)| Component::Unknown(TaggedComponent { tag, data })),
    ]
}

prop_compose! {
    fn profile()(
        minor in 1..3u8,
        host in "[a-z0-9.:]{0,20}",
        port in any::<u16>(),
        object_key in octets(),
        components in vec(component(), 0..5),
    ) -> IiopProfile {
        let version = Version::new(1, minor);
        let components = components.iter().map(|c| c.tagged().unwrap()).collect();
        IiopProfile { version, host, port, object_key, components }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn references_come_back_as_text_and_octets(
        type_id in "[ -~]{0,20}",
        profiles in vec(profile(), 0..3),
        other in octets(),
    ) {
        let mut ior = Ior { type_id, profiles: Vec::new() };
        for profile in &profiles {
            ior.profiles.push(profile.tagged().unwrap());
        }
        ior.profiles.push(TaggedProfile { tag: 77, data: other });
        let text = ior.to_string();
        prop_assert_eq!(&text.parse::<Ior>().unwrap(), &ior);
        prop_assert_eq!(&text.to_uppercase().parse::<Ior>().unwrap(), &ior);
        for (profile, tagged) in profiles.iter().zip(&ior.profiles) {
            prop_assert_eq!(&IiopProfile::decode(&tagged.data).unwrap(), profile);
        }
    }

    #[test]
    fn components_come_back(component in component()) {
        let tagged = component.tagged().unwrap();
        prop_assert_eq!(tagged.typed().unwrap(), component);
    }

    /// Octets that are cut, changed or made up are read or refused.
    #[test]
    fn broken_references(
        profile in profile(),
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        junk in octets(),
        tag in 0..5u32,
    ) {
        let mut data = profile.encode().unwrap();
        let _ = IiopProfile::decode(&data[..cut.index(data.len())]);
        let at = at.index(data.len());
        data[at] = value;
        if let Ok(profile) = IiopProfile::decode(&data) {
            for component in profile.components {
                let _ = component.typed();
            }
        }
        let _ = Ior::from_encapsulation(&data);
        let _ = TaggedComponent { tag, data: junk }.typed();
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(IOR:)?[0-9a-fA-F]{0,80}.?") {
        let _ = text.parse::<Ior>();
    }
}

#[test]
fn text_that_is_no_reference_is_refused_by_what_is_wrong() {
    let parse = |text: &str| text.parse::<Ior>().unwrap_err();
    assert_eq!(parse("corbaloc::x"), IorError::NoPrefix);
    assert_eq!(parse("IO"), IorError::NoPrefix);
    assert_eq!(parse(" IOR:00zz"), IorError::NotHex(7));
    assert_eq!(parse("IOR:000"), IorError::OddDigits);
    assert_eq!(parse("IOR:"), IorError::Malformed(CdrError::EndOfData));
    let huge = "IOR:0000000000000001000000007fffffff";
    assert_eq!(parse(huge), IorError::Malformed(CdrError::LengthOverflow));
}

#[test]
fn the_nil_reference_has_a_text_too() {
    let nil: Ior = "IOR:00000000000000010000000000000000".parse().unwrap();
    assert!(nil.is_nil());
    assert_eq!(nil, Ior::nil());
}

#[test]
fn every_reference_has_a_text() {
    for type_id in ["IDL:漢:1.0", "IDL:\0:1.0"] {
        let profiles = vec![TaggedProfile {
            tag: 7,
            data: vec![1],
        }];
        let ior = Ior {
            type_id: type_id.into(),
            profiles,
        };
        let read: Ior = ior.to_string().parse().unwrap();
        assert_eq!((read.type_id.as_str(), read.profiles), ("", ior.profiles));
    }
}

#[test]
fn a_big_endian_profile_is_read() {
    let octets = b"\0\x01\x02\0\0\0\0\x02h\0\0\x50\0\0\0\x01k\0\0\0\0\0\0\0";
    let profile = IiopProfile::decode(octets).unwrap();
    assert_eq!((profile.host.as_str(), profile.port), ("h", 80));
    assert_eq!(profile.object_key, b"k");
}

/// The layout that TAO gives profiles of UIOP: an encapsulation of version, rendezvous point,
/// object key and components, among them the endpoints of lanes.
#[test]
fn profiles_of_uiop_have_taos_layout() {
    let lanes: &[u8] = b"\x01\0\0\0\x02\0\0\0\
        \x03\0\0\0/a\0\0\x0a\0\0\0\
        \x03\0\0\0/b\0\0\xff\xff";
    let head: &[u8] = b"\x01\x01\x02\0\x0b\0\0\0/run/radar\0\0\
        \x03\0\0\0key\0\
        \x01\0\0\0\x02OAT\x1e\0\0\0";
    let octets = [head, lanes].concat();
    let profile = PathProfile::decode(&octets).expect("it is whole");
    assert_eq!(profile.version, Version::V1_2);
    assert_eq!(profile.path, "/run/radar");
    assert_eq!(profile.object_key, b"key");
    let lane = |path: &str, priority| TaoPathEndpoint {
        path: path.to_owned(),
        priority,
    };
    let told = [lane("/a", 10), lane("/b", -1)];
    assert_eq!(profile.components[0].tag, TAG_TAO_ENDPOINTS);
    let found = TaoPathEndpoint::decode(&profile.components[0].data);
    assert_eq!(found, Ok(told.to_vec()));
    if cfg!(target_endian = "little") {
        assert_eq!(
            TaoPathEndpoint::tagged(&told),
            Ok(profile.components[0].clone())
        );
        assert_eq!(profile.encode(), Ok(octets.clone()));
    }
    for end in 0..octets.len() {
        assert!(PathProfile::decode(&octets[..end]).is_err());
    }
    // Version 1.0 ends with the key.
    let old = b"\x00\x01\x00\0\0\0\0\x03/a\0\0\0\0\0\x01k";
    let old = PathProfile::decode(old).expect("it is whole");
    assert_eq!((old.path.as_str(), &old.object_key[..]), ("/a", &b"k"[..]));
}

/// TAO's numbers, by which profiles are told apart.
#[test]
fn tags_are_taos() {
    assert_eq!([TAG_UIOP, TAG_DIOP], [0x5441_4f00, 0x5441_4f04]);
    assert_eq!(TAG_TAO_ENDPOINTS, 0x5441_4f02);
}

#[test]
fn a_profile_of_1_0_has_no_components() {
    let profile = IiopProfile {
        version: Version::V1_0,
        host: "h".into(),
        port: 1,
        object_key: b"k".to_vec(),
        components: vec![Component::OrbType(1).tagged().unwrap()],
    };
    let read = IiopProfile::decode(&profile.encode().unwrap()).unwrap();
    assert!(read.components.is_empty());
}

#[test]
fn a_priority_model_is_found_and_checked() {
    let value = PriorityModelValue {
        model: 1,
        server_priority: 20,
    };
    let policies = Policies(vec![PolicyValue::priority_model(value).unwrap()]);
    assert_eq!(policies.priority_model(), Some(value));
    assert_eq!(Policies::default().priority_model(), None);
    let wrong = PriorityModelValue {
        model: 2,
        server_priority: 20,
    };
    let policies = Policies(vec![PolicyValue::priority_model(wrong).unwrap()]);
    let component = Component::Policies(policies).tagged().unwrap();
    let error = component.typed().unwrap_err();
    assert_eq!(
        (error.tag, error.cause),
        (TAG_POLICIES, CdrError::InvalidEnum)
    );
}

#[test]
fn a_component_that_is_cut_is_an_error() {
    let mut component = Component::CodeSets(CodeSetComponentInfo::ours())
        .tagged()
        .unwrap();
    component.data.pop();
    let error = component.typed().unwrap_err();
    assert_eq!(
        (error.tag, error.cause),
        (TAG_CODE_SETS, CdrError::EndOfData)
    );
}

fn side(native: u32, conversion: &[u32]) -> CodeSetComponentInfo {
    CodeSetComponentInfo {
        for_char: CodeSetComponent {
            native,
            conversion: conversion.to_vec(),
        },
        for_wchar: CodeSetComponent {
            native: UTF_16,
            conversion: Vec::new(),
        },
    }
}

#[test]
fn code_sets_are_negotiated_in_the_order_of_the_standard() {
    let char_data = |client: &CodeSetComponentInfo, server: &CodeSetComponentInfo| {
        codesets::negotiate(client, server).map(|context| context.char_data)
    };
    const A: u32 = 10;
    const B: u32 = 11;
    const C: u32 = 12;
    assert_eq!(char_data(&side(A, &[]), &side(A, &[])), Ok(A));
    assert_eq!(
        char_data(&side(A, &[B]), &side(B, &[A])),
        Ok(B),
        "the client converts"
    );
    assert_eq!(
        char_data(&side(A, &[]), &side(B, &[A])),
        Ok(A),
        "the server converts"
    );
    assert_eq!(
        char_data(&side(A, &[C]), &side(B, &[C])),
        Ok(C),
        "both convert"
    );
    let incompatible = SystemException::no(
        SystemExceptionKind::CodesetIncompatible,
        minor::NO_COMMON_CODE_SET,
    );
    assert_eq!(char_data(&side(A, &[]), &side(B, &[])), Err(incompatible));
}

#[test]
fn text_travels_as_the_server_wants_it() {
    let ours = CodeSetComponentInfo::ours();
    let narrow = |server: Option<&CodeSetComponentInfo>| {
        let text = codesets::text_form(&ours, server, Version::V1_2);
        text.unwrap().narrow
    };
    assert_eq!(narrow(None), CharSet::Latin1);
    assert_eq!(narrow(Some(&CodeSetComponentInfo::ours())), CharSet::Utf8);
    assert_eq!(narrow(Some(&side(ISO_8859_1, &[UTF_8]))), CharSet::Latin1);
    let old = codesets::text_form(&ours, None, Version::V1_0).unwrap();
    assert_eq!(old.wide, WideForm::Illegal);
}

#[test]
fn a_code_set_context_says_a_form_of_text() {
    for narrow in [CharSet::Latin1, CharSet::Utf8] {
        let text = TextForm {
            narrow,
            wide: WideForm::Utf16,
        };
        let data = CodeSetContext::of(text).encode();
        let context = CodeSetContext::decode(&data).unwrap();
        assert_eq!(context.text(Version::V1_2), Ok(text));
    }
    let unknown = CodeSetContext {
        char_data: 99,
        wchar_data: 0,
    };
    let error = unknown.text(Version::V1_2).unwrap_err();
    assert_eq!(error.minor, minor::CODE_SET_NOT_SUPPORTED);
    assert_eq!(CodeSetContext::decode(&[0; 11]), Err(CdrError::EndOfData));
}

#[test]
fn an_exception_says_what_its_minor_code_means() {
    let discarded = SystemException::no(SystemExceptionKind::Transient, minor::REQUEST_DISCARDED);
    assert_eq!(
        discarded.to_string(),
        "TRANSIENT (minor 0x4f4d0001: the request was discarded), completed NO"
    );
    let plain = SystemException::maybe(SystemExceptionKind::CommFailure, 0);
    assert_eq!(plain.to_string(), "COMM_FAILURE, completed MAYBE");
    let foreign = SystemException::yes(SystemExceptionKind::Internal, 0x5441_0001);
    assert_eq!(
        foreign.to_string(),
        "INTERNAL (minor 0x54410001), completed YES"
    );
}

#[test]
fn what_cannot_be_marshalled_is_the_exception_that_the_standard_names() {
    let of = |error: CdrError| {
        let exception = SystemException::from(error);
        (exception.kind, exception.minor)
    };
    use SystemExceptionKind::{BadParam, DataConversion, ImpLimit, Marshal, NoMemory};
    assert_eq!(of(CdrError::UnmappableChar), (DataConversion, 0x4f4d_0001));
    assert_eq!(of(CdrError::WideNotAllowedWrite), (Marshal, 0x4f4d_0005));
    assert_eq!(of(CdrError::WideNotAllowedRead), (Marshal, 0x4f4d_0006));
    assert_eq!(of(CdrError::ArenaFull), (NoMemory, minor::ARENA_FULL));
    assert_eq!(of(CdrError::NoArena), (BadParam, minor::NO_ARENA_IN_ANY));
    assert_eq!(
        of(CdrError::FrameFull),
        (ImpLimit, minor::MESSAGE_TOO_LARGE)
    );
    assert_eq!(of(CdrError::EndOfData), (Marshal, minor::END_OF_DATA));
}

#[test]
fn an_exception_that_nobody_knows_is_unknown() {
    let id = "IDL:omg.org/CORBA/SOMETHING_NEW:1.0";
    assert_eq!(SystemExceptionKind::from_repository_id(id), None);
    assert_eq!(SystemExceptionKind::ALL.len(), 40);
}
