//! References to groups: as octets, and as text.

use chronorb_cdr::CdrError;
use chronorb_giop::url::UrlError;
use chronorb_giop::{
    GroupId, IiopProfile, TAG_GROUP, TAG_GROUP_IIOP, TAG_INTERNET_IOP, TAG_UIPMC, TaggedComponent,
    TaggedProfileView, Target, TargetGroup, UipmcProfile, Version, minor, parse_group_url,
};
use proptest::prelude::*;

fn radar() -> GroupId {
    GroupId {
        version: Version::V1_0,
        domain: "Radar".to_owned(),
        number: 0x0102_0304_0506_0708,
        reference_version: 9,
    }
}

fn profile(text: &str) -> UipmcProfile {
    let ior = parse_group_url(text).expect(text).expect("it is a group");
    let [profile] = &ior.profiles[..] else {
        panic!("a reference to a group has one profile");
    };
    assert_eq!(profile.tag, TAG_UIPMC);
    UipmcProfile::decode(&profile.data).expect("it was just written")
}

/// The component as a big-endian ORB writes it, octet by octet after the IDL of the specification.
const GROUP: &[u8] = b"\0\x01\0\0\
    \0\0\0\x06Radar\0\0\0\
    \x01\x02\x03\x04\x05\x06\x07\x08\
    \0\0\0\x09";

#[test]
fn the_octets_of_a_group_are_those_of_the_specification() {
    assert_eq!(GroupId::decode(GROUP), Ok(radar()));
    assert_eq!(GroupId::decode(&radar().encode().unwrap()), Ok(radar()));
    assert_eq!(radar().encode().unwrap().len(), GROUP.len());
    #[cfg(target_endian = "little")]
    assert_eq!(
        radar().encode().unwrap(),
        b"\x01\x01\0\0\x06\0\0\0Radar\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x09\0\0\0"
    );
}

#[test]
fn the_octets_of_a_profile_are_those_of_the_specification() {
    let octets = [
        b"\0\x01\0\0\0\0\0\x0c239.255.1.1\0\x13\x88\0\0",
        &b"\0\0\0\x01\0\0\0\x27\0\0\0\x1c"[..],
        GROUP,
    ]
    .concat();
    let read = UipmcProfile::decode(&octets).unwrap();
    assert_eq!((&*read.address, read.port), ("239.255.1.1", 5000));
    assert_eq!(read.group(), Ok(radar()));
    assert_eq!(read.iiop(), None);
    assert_eq!(UipmcProfile::decode(&read.encode().unwrap()), Ok(read));
}

#[test]
fn a_port_above_32767_is_no_negative_number() {
    let profile = profile("corbaloc:miop:1.0@1.0-Radar-1/239.255.1.1:65535");
    assert_eq!(profile.port, 65535);
    assert_eq!(
        UipmcProfile::decode(&profile.encode().unwrap()),
        Ok(profile)
    );
}

#[test]
fn the_url_of_the_specification_is_read() {
    let of_text = profile("corbaloc:miop:1.0@1.0-Radar-72623859790382856-9/239.255.1.1:1234");
    assert_eq!(of_text.version, Version::V1_0);
    assert_eq!((&*of_text.address, of_text.port), ("239.255.1.1", 1234));
    assert_eq!(of_text.group(), Ok(radar()));
    let [component] = &of_text.components[..] else {
        panic!("there is one component");
    };
    assert_eq!(component.tag, TAG_GROUP);

    let short = profile(" CorbaLoc:MIOP:1.0-TestDomain-5506/[ff15::1]:5678");
    assert_eq!((&*short.address, short.port), ("ff15::1", 5678));
    let group = short.group().unwrap();
    assert_eq!((&*group.domain, group.number), ("TestDomain", 5506));
    assert_eq!(group.reference_version, 0);
}

#[test]
fn a_group_may_be_reached_by_iiop_too() {
    let url =
        "corbaloc:miop:1.0@1.0-Radar-1/225.6.7.8:12345;iiop:1.2@radar.example:2809/Gate%20way";
    let expected = IiopProfile {
        version: Version::V1_2,
        host: "radar.example".to_owned(),
        port: 2809,
        object_key: b"Gate way".to_vec(),
        components: Vec::new(),
    };
    let mut profile = profile(url);
    assert_eq!(profile.components[1].tag, TAG_GROUP_IIOP);
    assert_eq!(profile.iiop().as_ref(), Some(&expected));
    // As JacORB writes it.
    profile.components[1].tag = TAG_INTERNET_IOP;
    assert_eq!(profile.iiop(), Some(expected));
}

#[test]
fn versions_of_a_reference_are_of_one_group() {
    let later = GroupId {
        reference_version: 10,
        ..radar()
    };
    assert!(later.is_same_group(&radar()));
    let other = GroupId {
        number: 1,
        ..radar()
    };
    assert!(!other.is_same_group(&radar()));
}

#[test]
fn other_texts_are_not_groups_and_malformed_ones_are_refused() {
    for text in ["", "corbaloc::radar:1/x", "IOR:00", "corbaloc:miop", "ä"] {
        assert_eq!(parse_group_url(text), Ok(None), "{text}");
    }
    for (text, minor) in [
        ("corbaloc:miop:", minor::BAD_SCHEME_SPECIFIC),
        ("corbaloc:miop:1.0-Radar-1", minor::BAD_SCHEME_SPECIFIC),
        (
            "corbaloc:miop:2.0@1.0-Radar-1/239.1.1.1:1",
            minor::BAD_ADDRESS,
        ),
        (
            "corbaloc:miop:1.0@2.0-Radar-1/239.1.1.1:1",
            minor::BAD_SCHEME_SPECIFIC,
        ),
        (
            "corbaloc:miop:1.0@Radar-1/239.1.1.1:1",
            minor::BAD_SCHEME_SPECIFIC,
        ),
        (
            "corbaloc:miop:1.0@1.0--1/239.1.1.1:1",
            minor::BAD_SCHEME_SPECIFIC,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-x/239.1.1.1:1",
            minor::BAD_SCHEME_SPECIFIC,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-1-2-3/239.1.1.1:1",
            minor::BAD_SCHEME_SPECIFIC,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-1/239.1.1.1",
            minor::BAD_ADDRESS,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-1/239.1.1.1:0",
            minor::BAD_ADDRESS,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-1/239.1.1.1:+1",
            minor::BAD_ADDRESS,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-1/239.1.1.1:65536",
            minor::BAD_ADDRESS,
        ),
        ("corbaloc:miop:1.0@1.0-Radar-1/:1", minor::BAD_ADDRESS),
        (
            "corbaloc:miop:1.0@1.0-Radar-1/[ff15::1:1",
            minor::BAD_ADDRESS,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-1/239.1.1.1:1;rir:/x",
            minor::BAD_ADDRESS,
        ),
        (
            "corbaloc:miop:1.0@1.0-Radar-1/239.1.1.1:1;iiop:h",
            minor::BAD_SCHEME_SPECIFIC,
        ),
    ] {
        let error = parse_group_url(text).expect_err(text);
        assert_eq!(error.minor(), minor, "{text}: {error}");
    }
    let error = parse_group_url("corbaloc:miop:1.0@Radar/239.1.1.1:1");
    assert_eq!(error, Err(UrlError::Group("Radar".to_owned())));
}

#[test]
fn a_request_names_its_group_by_profile_reference_or_component() {
    let url = "corbaloc:miop:1.0@1.0-Radar-72623859790382856-9/239.255.1.1:1234";
    let ior = parse_group_url(url).unwrap().unwrap();
    let other = GroupId {
        domain: "Rada".to_owned(),
        ..radar()
    };
    for target in [
        Target::Profile(ior.profiles[0].as_view()),
        Target::Reference {
            index: 0,
            ior: &ior,
        },
        Target::Key(GROUP),
    ] {
        let group = TargetGroup::of(&target).expect("it is a group");
        assert!(group.is(&radar()));
        assert!(!group.is(&other));
        assert!(!group.is(&GroupId {
            number: 1,
            ..radar()
        }));
    }
    for target in [
        Target::Key(b"NameService"),
        Target::Key(b""),
        Target::Reference {
            index: 1,
            ior: &ior,
        },
        Target::Profile(TaggedProfileView {
            tag: TAG_INTERNET_IOP,
            ..ior.profiles[0].as_view()
        }),
        Target::Profile(TaggedProfileView {
            tag: TAG_UIPMC,
            data: GROUP,
        }),
    ] {
        assert_eq!(TargetGroup::of(&target), None);
    }
}

#[test]
fn a_profile_without_a_group_is_of_none() {
    let mut none = profile("corbaloc:miop:1.0@1.0-Radar-1/239.255.1.1:1234");
    none.components = vec![TaggedComponent {
        tag: 1,
        data: Vec::new(),
    }];
    assert_eq!(none.group(), Err(CdrError::BadReference));
    assert_eq!(none.iiop(), None);
}

proptest! {
    #[test]
    fn groups_and_profiles_are_read_as_they_were_written(
        domain in "[a-zA-Z0-9_]{0,20}",
        number: u64,
        reference_version: u32,
        address in "[0-9.:a-f]{0,30}",
        port: u16,
    ) {
        let group = GroupId { version: Version::V1_0, domain, number, reference_version };
        let data = group.encode().unwrap();
        prop_assert_eq!(GroupId::decode(&data), Ok(group.clone()));
        let components = vec![TaggedComponent { tag: TAG_GROUP, data }];
        let profile = UipmcProfile { version: Version::V1_0, address, port, components };
        prop_assert_eq!(UipmcProfile::decode(&profile.encode().unwrap()), Ok(profile.clone()));
        prop_assert_eq!(profile.group(), Ok(group));
    }

    #[test]
    fn any_octets_are_a_profile_or_none(
        mut data in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        if let Some(start) = data.first_chunk_mut::<3>() {
            *start = [start[0] & 1, 1, 0];
        }
        let _ = GroupId::decode(&data);
        let _ = TargetGroup::of(&Target::Key(&data));
        let profile = TaggedProfileView { tag: TAG_UIPMC, data: &data };
        let _ = TargetGroup::of(&Target::Profile(profile));
        if let Ok(profile) = UipmcProfile::decode(&data) {
            let _ = profile.group();
            let _ = profile.iiop();
            prop_assert_eq!(UipmcProfile::decode(&profile.encode().unwrap()), Ok(profile));
        }
    }

    #[test]
    fn any_text_is_a_group_or_none(text in "(corbaloc:miop:)?[0-9.@/:;a-f\\-\\[\\]]{0,40}") {
        if let Ok(Some(ior)) = parse_group_url(&text) {
            prop_assert!(UipmcProfile::decode(&ior.profiles[0].data).unwrap().group().is_ok());
        }
    }
}
