//! Object references as people write them.

use chronorb_giop::url::{
    CorbalocAddress, CorbalocPlace, DEFAULT_PORT, NAME_SERVICE, NameComponent, ObjectUrl, UrlError,
};
use chronorb_giop::{Ior, Version, minor};
use proptest::prelude::*;

fn address(minor: u8, host: &str, port: u16) -> CorbalocAddress {
    CorbalocAddress {
        protocol: "iiop".into(),
        version: Version::new(1, minor),
        place: CorbalocPlace::Host {
            host: host.into(),
            port,
        },
    }
}

fn component(id: &str, kind: &str) -> NameComponent {
    NameComponent {
        id: id.into(),
        kind: kind.into(),
    }
}

fn corbaloc(text: &str) -> (Vec<CorbalocAddress>, Vec<u8>) {
    match ObjectUrl::parse(text) {
        Ok(ObjectUrl::Corbaloc { addresses, key }) => (addresses, key),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn the_addresses_of_other_protocols_are_hosts_or_paths() {
    let (addresses, key) = corbaloc("corbaloc:uiop:1.2@/run/a/b|,diop:h:7,:[::1]:8/k/l");
    let found: Vec<_> = addresses
        .iter()
        .map(|address| (address.protocol.as_str(), &address.place))
        .collect();
    let host = |host: &str, port| CorbalocPlace::Host {
        host: host.to_owned(),
        port,
    };
    let path = CorbalocPlace::Path("/run/a/b".to_owned());
    let expected = [
        ("uiop", &path),
        ("diop", &host("h", 7)),
        ("iiop", &host("::1", 8)),
    ];
    assert_eq!(found, expected);
    assert_eq!(key, b"k/l");
    let (addresses, key) = corbaloc("corbaloc:shmiop:/a|/k|/l");
    assert_eq!(addresses[0].place, CorbalocPlace::Path("/a".to_owned()));
    assert_eq!(key, b"k|/l");
}

#[test]
fn a_path_may_have_what_looks_like_a_version() {
    for path in ["@radar", "/run/a@b", "@radar@2"] {
        for (version, text) in [(Version::V1_0, ""), (Version::V1_2, "1.2@")] {
            let (addresses, key) = corbaloc(&format!("corbaloc:uiop:{text}{path}|/k"));
            assert_eq!(addresses[0].place, CorbalocPlace::Path(path.to_owned()));
            assert_eq!((addresses[0].version, &key[..]), (version, &b"k"[..]));
        }
    }
}

#[test]
fn a_corbaloc_names_addresses_and_a_key() {
    let one = |address| vec![address];
    assert_eq!(
        corbaloc("corbaloc::host:1234/Key"),
        (one(address(0, "host", 1234)), b"Key".to_vec())
    );
    assert_eq!(
        corbaloc("corbaloc:iiop:1.2@host/a/b"),
        (one(address(2, "host", DEFAULT_PORT)), b"a/b".to_vec())
    );
    assert_eq!(
        corbaloc(" CorbaLoc:IIOP:1.1@[fe80::1]:99/%ff%2Fk\n"),
        (one(address(1, "fe80::1", 99)), b"\xff/k".to_vec())
    );
    assert_eq!(
        corbaloc("corbaloc::a,iiop:1.2@b:7,:[::1]/"),
        (
            vec![
                address(0, "a", DEFAULT_PORT),
                address(2, "b", 7),
                address(0, "::1", DEFAULT_PORT),
            ],
            Vec::new()
        )
    );
}

#[test]
fn rir_is_an_initial_reference_of_this_orb() {
    let url = ObjectUrl::parse("corbaloc:rir:/TradingService").unwrap();
    let key = b"TradingService".to_vec();
    assert_eq!(url, ObjectUrl::CorbalocRir { key });
}

#[test]
fn a_corbaname_names_an_object_in_a_naming_service() {
    assert_eq!(
        ObjectUrl::parse("corbaname::host#a.b/c%20d/.e/f\\.g\\\\"),
        Ok(ObjectUrl::Corbaname {
            addresses: vec![address(0, "host", DEFAULT_PORT)],
            key: NAME_SERVICE.into(),
            name: vec![
                component("a", "b"),
                component("c d", ""),
                component("", "e"),
                component("f.g\\", ""),
            ],
        })
    );
    assert_eq!(
        ObjectUrl::parse("corbaname:rir:/Key"),
        Ok(ObjectUrl::Corbaname {
            addresses: Vec::new(),
            key: b"Key".to_vec(),
            name: Vec::new(),
        })
    );
}

#[test]
fn other_schemes() {
    let nil = "IOR:00000000000000010000000000000000";
    assert_eq!(ObjectUrl::parse(nil), Ok(ObjectUrl::Ior(Ior::nil())));
    let file = ObjectUrl::File("/tmp/a b.ior".into());
    assert_eq!(ObjectUrl::parse("file:///tmp/a%20b.ior"), Ok(file));
}

#[test]
fn a_url_is_refused_with_the_minor_code_of_its_fault() {
    for (text, minor) in [
        ("", minor::BAD_SCHEME),
        ("host:1234", minor::BAD_SCHEME),
        ("http://host/", minor::BAD_SCHEME),
        ("corbaloc:ssl-ip:host/k", minor::BAD_ADDRESS),
        ("corbaloc:/k", minor::BAD_ADDRESS),
        ("corbaloc::/k", minor::BAD_ADDRESS),
        ("corbaloc::h,/k", minor::BAD_ADDRESS),
        ("corbaloc::h,rir:/k", minor::BAD_ADDRESS),
        ("corbaloc::2.0@h/k", minor::BAD_ADDRESS),
        ("corbaloc::1@h/k", minor::BAD_ADDRESS),
        ("corbaloc::h:/k", minor::BAD_ADDRESS),
        ("corbaloc::h:0/k", minor::BAD_ADDRESS),
        ("corbaloc::h:65536/k", minor::BAD_ADDRESS),
        ("corbaloc::h:+1/k", minor::BAD_ADDRESS),
        ("corbaloc::[::1/k", minor::BAD_ADDRESS),
        ("corbaloc::[::1]1/k", minor::BAD_ADDRESS),
        ("corbaloc::h", minor::BAD_SCHEME_SPECIFIC),
        ("corbaloc::h/%g0", minor::BAD_SCHEME_SPECIFIC),
        ("corbaloc::h/%2", minor::BAD_SCHEME_SPECIFIC),
        ("corbaname::h#a//b", minor::BAD_SCHEME_SPECIFIC),
        ("corbaname::h#a.b.c", minor::BAD_SCHEME_SPECIFIC),
        ("corbaname::h#a\\b", minor::BAD_SCHEME_SPECIFIC),
        ("corbaname::h#a/", minor::BAD_SCHEME_SPECIFIC),
        ("corbaname::h#%ff", minor::BAD_SCHEME_SPECIFIC),
        ("file:relative", minor::BAD_SCHEME_SPECIFIC),
        ("IOR:zz", minor::STRING_TO_OBJECT),
    ] {
        let error = ObjectUrl::parse(text).unwrap_err();
        assert_eq!(error.minor(), minor, "{text}: {error}");
    }
}

#[test]
fn the_error_shows_the_address() {
    let error = ObjectUrl::parse("corbaloc::a,:b:x/k").unwrap_err();
    assert_eq!(error, UrlError::Port(":b:x".into()));
    assert_eq!(
        error.to_string(),
        "the port of address \":b:x\" is not a number from 1 to 65535"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(
        text in "(corbaloc|corbaname|file)?:?[:,@/#%a1.\\[\\]\\\\é]{0,24}",
    ) {
        let _ = ObjectUrl::parse(&text);
    }
}

#[test]
fn names_and_versions_are_those_of_the_naming_service_and_of_numbers() {
    for text in [
        "corbaname::host#a.",
        "corbaname::host#a./b",
        "corbaname::host#a/..",
    ] {
        assert_eq!(ObjectUrl::parse(text), Err(UrlError::Name), "{text}");
    }
    for text in ["corbaloc::+1.2@host/x", "corbaloc::1.+2@host/x"] {
        assert!(ObjectUrl::parse(text).is_err(), "{text}");
    }
}
