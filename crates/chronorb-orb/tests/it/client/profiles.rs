//! References with several profiles: each stands for itself.

use chronorb_giop::{IiopProfile, Ior, SystemExceptionKind, TaggedProfile, Version};
use chronorb_orb::{Object, Orb};

use crate::support::adapters::profile_of;
use crate::support::{add, echo, served};

/// Returns a reference with these profiles.
fn with_profiles(orb: &Orb, of: &Object, profiles: &[IiopProfile]) -> Object {
    let tagged = |profile: &IiopProfile| TaggedProfile {
        data: profile.encode().expect("it fits"),
        ..of.ior().profiles[0].clone()
    };
    let ior = Ior {
        profiles: profiles.iter().map(tagged).collect(),
        ..of.ior().clone()
    };
    orb.ior_to_object(ior).expect("it is not nil")
}

#[test]
fn a_profile_of_an_older_version_takes_nothing_from_a_newer_one() {
    let site = served();
    let newest = profile_of(&site.object);
    assert_eq!(newest.version, Version::V1_2);
    let oldest = IiopProfile {
        version: Version::V1_0,
        components: Vec::new(),
        ..newest.clone()
    };
    let text = "outside of ISO 8859-1: \u{416}";
    for profiles in [[oldest.clone(), newest.clone()], [newest, oldest.clone()]] {
        let object = with_profiles(&site.client, &site.object, &profiles);
        assert_eq!(echo(&object, text).as_deref(), Ok(text));
    }
    let object = with_profiles(&site.client, &site.object, &[oldest]);
    let refused = echo(&object, text).expect_err("it has no such characters");
    assert_eq!(refused.kind, SystemExceptionKind::DataConversion);
}

#[test]
fn a_profile_with_a_key_of_its_own_is_tried_after_addresses_without_a_server() {
    let site = served();
    let alive = profile_of(&site.object);
    let (dead, other) = (closed_port(), closed_port());
    let at = |port| IiopProfile {
        port,
        object_key: b"replica".to_vec(),
        ..alive.clone()
    };
    for profiles in [[at(dead), alive.clone()], [alive.clone(), at(dead)]] {
        let object = with_profiles(&site.client, &site.object, &profiles);
        for n in 0..3 {
            assert_eq!(add(&object, n, 4), Ok(n + 4));
        }
    }
    let object = with_profiles(&site.client, &site.object, &[at(dead), at(other)]);
    let refused = add(&object, 1, 2).expect_err("no server listens");
    assert_eq!(refused.kind, SystemExceptionKind::Transient);
    let gateway = IiopProfile {
        object_key: b"gateway".to_vec(),
        ..at(other)
    };
    let object = with_profiles(&site.client, &site.object, &[at(dead), gateway]);
    assert_eq!(add(&object, 1, 2), Err(refused));
    let cause = site.client.last_failure().expect("it is known");
    for port in [dead, other] {
        assert!(cause.cause().contains(&format!(":{port}")), "{cause}");
    }
}

/// Returns a port of this machine at which no socket listens.
fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}
