//! GIOP over Unix-domain sockets: paths, profiles and lanes.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chronorb_cdr::{Encoder, Endian, Frame};
use chronorb_giop::{
    Ior, PathProfile, TAG_CODE_SETS, TAG_INTERNET_IOP, TAG_ORB_TYPE, TAG_PLACE, TAG_TAO_ENDPOINTS,
    TAG_UIOP, TaggedProfile,
};
use chronorb_orb::{Object, Orb, OrbConfig, SystemExceptionKind};
use chronorb_transport::parse_endpoints;

use crate::support::laned::{LANES, PROPAGATED, Pool, corba, laned_by};
use crate::support::raw_server::{forward, object_at, raw_server};
use crate::support::{ProbeSkeleton, add, call, orb_with, priority, relayed, served_by};

fn server(endpoints: &str) -> Orb {
    orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoints).expect("endpoints");
    })
}

fn profile(object: &Object, index: usize) -> PathProfile {
    let profile = &object.ior().profiles[index];
    assert_eq!(profile.tag, TAG_UIOP);
    PathProfile::decode(&profile.data).expect("it is our own")
}

/// Returns the reference with only these profiles.
fn only(client: &Orb, object: &Object, tags: &[u32]) -> Object {
    let mut ior = object.ior().clone();
    ior.profiles.retain(|profile| tags.contains(&profile.tag));
    client.ior_to_object(ior).expect("a profile is left")
}

#[test]
fn a_reference_tells_the_path_and_on_which_machine_it_is() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("radar");
    let endpoint = format!("uiop://{}|mode=0660", path.display());
    let s = served_by(server(&endpoint));
    let told = profile(&s.object, 0);
    assert_eq!(Some(told.path.as_str()), path.to_str());
    assert!(told.components.iter().any(|c| c.tag == TAG_PLACE));
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    let file = std::fs::metadata(&path).expect("it is there");
    assert_eq!(file.permissions().mode() & 0o777, 0o660);
    drop(s);
    assert!(!path.exists(), "the file goes with the server");
}

#[test]
fn a_server_that_was_killed_is_followed_by_another_at_its_path() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("radar");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("the name is new"));
    let s = served_by(server(&format!("uiop://{}", path.display())));
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    // Two servers at one path: the second one does not start.
    let second = server(&format!("uiop://{}", path.display()));
    let root = second.root_poa().expect("nothing is open yet");
    assert!(root.serve(ProbeSkeleton(Default::default())).is_err());
    assert_eq!(add(&s.object, 1, 2), Ok(3));
}

#[test]
fn every_lane_has_a_path_and_serves_its_priority() {
    let model = chronorb_orb::poa::Policy::PriorityModel(PROPAGATED, corba(LANES[0]));
    let s = laned_by(server("uiop://"), Pool::Lanes, &[model]);
    let told = profile(&s.object, 0);
    let lanes = told.components.iter().find(|c| c.tag == TAG_TAO_ENDPOINTS);
    let lanes = chronorb_giop::TaoPathEndpoint::decode(&lanes.expect("there are lanes").data);
    let lanes = lanes.expect("it is our own");
    let priorities: Vec<_> = lanes.iter().map(|lane| lane.priority).collect();
    assert_eq!(priorities, LANES);
    for value in LANES {
        let (at, _) = s.at(Some(value), || priority(&s.object)).expect("a lane");
        assert_eq!(at, value);
    }
}

#[test]
fn large_messages_go_whole_and_in_fragments() {
    let octets = vec![7_u8; 20 << 20];
    for fragment_size in [0, 10_000] {
        let configure = |config: &mut OrbConfig| {
            config.fragment_size = fragment_size;
            config.max_message_size = 64 << 20;
        };
        let s = served_by(orb_with(|config| {
            configure(config);
            config.listen_endpoints = parse_endpoints("uiop://").expect("an endpoint");
        }));
        let client = orb_with(configure);
        let object = client.ior_to_object(s.object.ior().clone());
        let write = |e: &mut Encoder<'_>| e.write_octet_seq(&octets);
        let back = call(&object.expect("not nil"), "octets", &write, |d| {
            Ok(d.read_octet_seq()? == octets)
        });
        assert_eq!(back, Ok(true));
        client.shutdown(false).expect("it runs");
    }
}

#[test]
fn of_several_profiles_the_client_takes_the_one_it_prefers_and_can_use() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("radar");
    let endpoints = format!("iiop://127.0.0.1:0;uiop://{}", path.display());
    let s = served_by(server(&endpoints));
    let tags: Vec<_> = s.object.ior().profiles.iter().map(|p| p.tag).collect();
    assert_eq!(tags, [TAG_INTERNET_IOP, TAG_UIOP]);
    assert_eq!(add(&s.object, 1, 2), Ok(3));

    // A client without UIOP, or without access to the file, uses IIOP.
    let by_iiop = orb_with(|config| config.protocols = vec!["iiop".to_owned()]);
    let object = by_iiop.ior_to_object(s.object.ior().clone());
    assert_eq!(add(&object.expect("it has IIOP"), 1, 2), Ok(3));
    let by_uiop = orb_with(|config| {
        config.protocols = vec!["uiop".to_owned()];
        config.listen_endpoints = Vec::new();
    });
    let local = only(&by_uiop, &s.object, &[TAG_UIOP]);
    assert_eq!(add(&local, 1, 2), Ok(3));
    std::fs::remove_file(&path).expect("it is there");
    let fresh = orb_with(|_| {});
    let object = fresh.ior_to_object(s.object.ior().clone());
    assert_eq!(add(&object.expect("not nil"), 1, 2), Ok(3));
    for orb in [by_iiop, by_uiop, fresh] {
        orb.shutdown(false).expect("it runs");
    }
}

#[test]
fn a_path_of_another_machine_is_passed_over() {
    let s = served_by(server("uiop://;iiop://127.0.0.1:0"));
    let mut ior = s.object.ior().clone();
    let mut elsewhere = profile(&s.object, 0);
    for component in &mut elsewhere.components {
        if component.tag == TAG_PLACE {
            let place = chronorb_giop::Place("another".to_owned());
            *component = place.tagged().expect("it fits");
        }
    }
    // No process is there to answer.
    elsewhere.path = "/nowhere/at/all".to_owned();
    ior.profiles[0].data = elsewhere.encode().expect("it fits");
    let object = s.client.ior_to_object(ior.clone()).expect("not nil");
    assert_eq!(add(&object, 1, 2), Ok(3));
    ior.profiles.truncate(1);
    let local = s.client.ior_to_object(ior).expect("not nil");
    let (kind, _) = crate::support::kind_and_completion(add(&local, 1, 2));
    assert_eq!(kind, SystemExceptionKind::Transient);
}

/// Returns the reference with a UIOP profile of another path, without the component that identifies
/// the host.
fn at_path(client: &Orb, object: &Object, path: &Path) -> Object {
    let mut ior = object.ior().clone();
    let mut told = profile(object, 0);
    told.path = path.to_str().expect("it is ASCII").to_owned();
    told.components
        .retain(|component| component.tag != TAG_PLACE);
    ior.profiles[0].data = told.encode().expect("it fits");
    client.ior_to_object(ior).expect("a profile is left")
}

#[test]
fn a_message_names_no_local_socket_that_is_not_proved_to_be_here() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("radar");
    let s = served_by(server(&format!("uiop://{}", path.display())));
    // The application's explicit choice is enough, as for the reference of another ORB.
    let unplaced = at_path(&s.client, &s.object, &path);
    assert_eq!(add(&unplaced, 1, 2), Ok(3));
    // The server trusts only its own reference.
    assert!(relayed(&s.object, &s.object).is_ok());
    let trap = directory.path().join("trap");
    let listener = std::os::unix::net::UnixListener::bind(&trap).expect("the name is new");
    let led = at_path(&s.client, &s.object, &trap);
    let refused = relayed(&s.object, &led).expect_err("nothing in it can be used");
    assert_eq!(refused.kind, SystemExceptionKind::Transient);
    listener.set_nonblocking(true).expect("it can be so");
    let nobody = listener.accept().expect_err("no peer has connected");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

/// Returns a reference as TAO writes it: with one profile of UIOP, whose components are the type of
/// the ORB and the code sets.
fn tao_reference(path: &Path, key: &[u8]) -> Ior {
    let mut frame = Frame::new(256, 1 << 16);
    let mut e = Encoder::new(&mut frame, Endian::Little);
    let code_sets = [
        &[1, 0, 0, 0][..],
        &[1, 0, 1, 0, 0, 0, 0, 0],
        &[9, 1, 1, 0, 0, 0, 0, 0],
    ];
    let mut write = || {
        e.write_octets(&[1, 1, 2])?;
        e.write_str(path.to_str().expect("it is ASCII"))?;
        e.write_octet_seq(key)?;
        e.write_len(2)?;
        e.write_u32(TAG_ORB_TYPE)?;
        e.write_octet_seq(&[1, 0, 0, 0, 0, 0x4f, 0x41, 0x54])?;
        e.write_u32(TAG_CODE_SETS)?;
        e.write_octet_seq(&code_sets.concat())
    };
    write().expect("there is room");
    let data = frame.as_slice().to_vec();
    let type_id = crate::support::PROBE_ID.to_owned();
    let tag = TAG_UIOP;
    Ior {
        type_id,
        profiles: vec![TaggedProfile { tag, data }],
    }
}

#[test]
fn references_of_tao_in_messages_are_used_by_a_rule_and_the_cause_names_it() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("radar");
    let s = served_by(server(&format!("uiop://{}", path.display())));
    let told = tao_reference(&path, &profile(&s.object, 0).object_key);
    let to = told.clone();
    let forwarding = raw_server(move |mut peer| {
        while let Some((id, _)) = peer.request() {
            peer.send(&forward(id, &to));
        }
    });
    let with = |texts: &[&str]| {
        let client = orb_with(|config| {
            let rules = texts.iter().map(|text| text.parse().expect("a rule"));
            config.client_transport_rules = rules.collect();
        });
        let result = add(&object_at(&client, forwarding.address), 1, 2);
        let cause = client.last_failure().map(|last| last.cause().to_owned());
        // Of the application itself it is used without a rule, unless one refuses it.
        let own = client.ior_to_object(told.clone()).expect("not nil");
        let own = add(&own, 1, 2);
        client.shutdown(false).expect("it runs");
        (result, cause, own)
    };
    let (refused, cause, own) = with(&[]);
    let refused = refused.expect_err("nothing proves that the path is here");
    assert_eq!(refused.kind, SystemExceptionKind::Transient);
    let cause = cause.expect("it is known");
    for part in [
        "came in a message",
        "-ORBClientTransportRule",
        "uid=self unix",
    ] {
        assert!(cause.contains(part), "{cause}");
    }
    assert_eq!(own, Ok(3));
    let (permitted, ..) = with(&["uid=self unix", "* tcp"]);
    assert_eq!(permitted, Ok(3));
    for other in ["uid=4000000000 unix", "* tcp"] {
        let (refused, _, own) = with(&[other, "* tcp"]);
        let kinds = [refused, own].map(|result| result.map_err(|refused| refused.kind));
        assert_eq!(
            kinds,
            [Err(SystemExceptionKind::NoPermission); 2],
            "{other}"
        );
    }
}
