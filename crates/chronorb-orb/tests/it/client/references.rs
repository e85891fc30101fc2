//! Object references in the form that peers write them: with any number of profiles and addresses,
//! and in any encoding.

use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::Arc;

use chronorb_cdr::{CdrError, Decoder, Encoder, Endian, Frame};
use chronorb_giop::{
    Component, IiopProfile, Ior, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TaggedComponent,
    TaggedProfile, Version, minor,
};
use chronorb_orb::codegen::v1::{bad_operation, reply_error};
use chronorb_orb::{
    Call, Object, Orb, ReplyWriter, Skeleton, SystemException, SystemExceptionKind as Kind,
};

use crate::support::asynchronous::begin_add;
use crate::support::raw_server::{Peer, forward, raw_server};
use crate::support::{PROBE_ID, ProbeSkeleton, add, call, orb, orb_with};

fn profile(port: u16, components: Vec<TaggedComponent>) -> TaggedProfile {
    let profile = IiopProfile {
        version: Version::V1_2,
        host: "127.0.0.1".to_owned(),
        port,
        object_key: b"key".to_vec(),
        components,
    };
    TaggedProfile {
        tag: TAG_INTERNET_IOP,
        data: profile.encode().expect("it fits"),
    }
}

fn ior(profiles: Vec<TaggedProfile>) -> Ior {
    Ior {
        type_id: PROBE_ID.to_owned(),
        profiles,
    }
}

fn read(orb: &Orb, ior: &Ior) -> Result<Object, SystemException> {
    orb.string_to_object(&ior.to_string())
}

fn alternate(port: u16) -> TaggedComponent {
    let host = "127.0.0.1".to_owned();
    let component = Component::AlternateIiopAddress { host, port };
    component.tagged().expect("it fits")
}

/// Returns a port at which no socket listens.
fn closed_port() -> u16 {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
    closed.expect("a free port").port()
}

#[test]
fn a_reference_has_at_most_so_many_profiles() {
    let orb = orb();
    let with = |number| ior(vec![profile(1, Vec::new()); number]);
    assert!(read(&orb, &with(Ior::MAX_PROFILES)).is_ok());
    let refused = read(&orb, &with(Ior::MAX_PROFILES + 1)).expect_err("it has too many");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::BadParam, minor::STRING_TO_OBJECT)
    );
}

#[test]
fn a_url_has_at_most_so_many_addresses() {
    let orb = orb();
    let url = |number| format!("corbaloc:{}/key", vec![":127.0.0.1:1"; number].join(","));
    assert!(orb.string_to_object(&url(Ior::MAX_PROFILES)).is_ok());
    let refused = orb.string_to_object(&url(Ior::MAX_PROFILES + 1));
    let refused = refused.expect_err("it has too many");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::BadParam, minor::BAD_ADDRESS)
    );
}

#[test]
fn a_reference_with_more_addresses_than_a_call_may_try_is_refused() {
    let orb = orb();
    let server = raw_server(Peer::answer_all);
    let closed = closed_port();
    // The last one answers.
    let with = |number: usize| {
        let mut others = vec![alternate(closed); number - 2];
        others.push(alternate(server.address.port()));
        ior(vec![profile(closed, others)])
    };
    let object = read(&orb, &with(64)).expect("it reads");
    assert_eq!(add(&object, 1, 2), Ok(3));
    let object = read(&orb, &with(65)).expect("it reads");
    let refused = add(&object, 1, 2).expect_err("it has too many");
    assert_eq!(
        refused,
        SystemException::no(Kind::ImpLimit, minor::TOO_MANY_ADDRESSES)
    );
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_forward_to_a_reference_with_too_many_profiles_ends_the_call() {
    let server = raw_server(|mut peer: Peer| {
        let (id, _) = peer.request().expect("a request comes");
        peer.send(&forward(id, &ior(vec![profile(1, Vec::new()); 10_000])));
        peer.until_the_end();
    });
    let client = orb_with(|config| config.max_message_size = 4 << 20);
    let object = read(&client, &ior(vec![profile(server.address.port(), vec![])]));
    let refused = add(&object.expect("it reads"), 1, 2).expect_err("it is malformed");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::Marshal, minor::BOUND_EXCEEDED)
    );
}

/// Returns the same profile as another ORB could write it: in the other byte order, with its
/// components in another order.
fn rewritten(profile: &TaggedProfile) -> TaggedProfile {
    let said = IiopProfile::decode(&profile.data).expect("it is one of IIOP");
    let endian = match Endian::NATIVE {
        Endian::Little => Endian::Big,
        Endian::Big => Endian::Little,
    };
    let encapsulated = |write: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>| {
        let mut frame = Frame::new(256, 1 << 16);
        let mut e = Encoder::new(&mut frame, endian);
        e.write_u8((endian == Endian::Little).into())
            .and_then(|()| write(&mut e))
            .expect("there is room");
        frame.as_slice().to_vec()
    };
    let component = |component: &TaggedComponent| {
        let data = match component.typed() {
            Ok(Component::OrbType(number)) => encapsulated(&|e| e.write_u32(number)),
            Ok(Component::AlternateIiopAddress { host, port }) => encapsulated(&|e| {
                e.write_str(&host)?;
                e.write_u16(port)
            }),
            _ => component.data.clone(),
        };
        (component.tag, data)
    };
    let components: Vec<_> = said.components.iter().rev().map(component).collect();
    let data = encapsulated(&|e| {
        e.write_u8(said.version.major)?;
        e.write_u8(said.version.minor)?;
        e.write_str(&said.host)?;
        e.write_u16(said.port)?;
        e.write_octet_seq(&said.object_key)?;
        e.write_len(components.len())?;
        components.iter().try_for_each(|(tag, data)| {
            e.write_u32(*tag)?;
            e.write_octet_seq(data)
        })
    });
    TaggedProfile {
        tag: profile.tag,
        data,
    }
}

#[test]
fn references_are_equal_where_their_profiles_say_the_same() {
    let orb = orb();
    let orb_type = Component::OrbType(7).tagged().expect("it fits");
    let first = profile(4711, vec![orb_type.clone(), alternate(4712)]);
    let second = rewritten(&first);
    assert_ne!(first.data, second.data);
    let object = |profile: &TaggedProfile| {
        let object = read(&orb, &ior(vec![profile.clone()]));
        object.expect("it reads")
    };
    let (one, same) = (object(&first), object(&second));
    assert_eq!(one, same);
    assert!(one.is_equivalent(&same) && same.is_equivalent(&one));
    assert_eq!(HashSet::from([one.clone(), same]).len(), 1);
    for other in [
        profile(4711, vec![orb_type.clone(), alternate(4713)]),
        profile(4711, vec![orb_type.clone()]),
        profile(4710, vec![orb_type, alternate(4712)]),
    ] {
        assert!(!one.is_equivalent(&object(&other)));
        assert!(!one.is_equivalent(&object(&rewritten(&other))));
    }
}

/// omniORB adds the address of its client in such a profile to the references that it sends over
/// bidirectional connections.
#[test]
fn a_profile_of_components_is_no_part_of_the_identity_of_an_object() {
    let orb = orb();
    let client = TaggedProfile {
        tag: TAG_MULTIPLE_COMPONENTS,
        data: [
            &[1, 0, 0, 0, 1, 0, 0, 0, 1, 0x54, 0x54, 0x41][..],
            &[20, 0, 0, 0, 1, 0, 0, 0, 10, 0, 0, 0],
            b"127.0.0.1\0\x67\x12",
        ]
        .concat(),
    };
    let object = |profiles: &[&TaggedProfile]| {
        let profiles = profiles.iter().map(|&profile| profile.clone());
        read(&orb, &ior(profiles.collect())).expect("it reads")
    };
    let (own, other) = (profile(4711, Vec::new()), profile(4712, Vec::new()));
    let plain = object(&[&own]);
    for back in [object(&[&own, &client]), object(&[&client, &own])] {
        assert_eq!(plain, back);
        assert_eq!(back, plain);
        assert_eq!(HashSet::from([plain.clone(), back.clone()]).len(), 1);
        assert_ne!(back, object(&[&other, &client]));
        assert_ne!(back, object(&[&own, &other]));
    }
    // A reference without any address is equal to the same profiles only.
    let mut changed = client.clone();
    *changed.data.last_mut().expect("it has octets") ^= 1;
    assert_eq!(object(&[&client]), object(&[&client]));
    assert_ne!(object(&[&client]), object(&[&changed]));
    assert_ne!(object(&[&client]), plain);
    assert_ne!(plain, object(&[&client]));
}

#[test]
fn an_object_of_this_orb_is_recognised_however_its_reference_is_written() {
    let orb = orb();
    let root = orb.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it is active");
    let own = root
        .serve(ProbeSkeleton(Arc::default()))
        .expect("it activates");
    let profiles = own.ior().profiles.iter().map(rewritten).collect();
    let rewritten = read(&orb, &ior(profiles)).expect("it reads");
    assert_eq!(rewritten, own);
    // Within the process the result is there at once.
    let mut pending = begin_add(&rewritten, 1, 2).expect("it begins");
    assert_eq!(pending.try_get(), Some(Ok(3)));
    orb.shutdown(true).expect("it ends");
}

/// A servant that counts the references in its argument.
struct Collector;

impl Skeleton for Collector {
    fn repository_id(&self) -> &'static str {
        PROBE_ID
    }

    fn is_a(&self, id: &str) -> bool {
        id == PROBE_ID
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        if operation != b"collect" {
            return Err(bad_operation());
        }
        let number = d.read_len(8)?;
        let all = (0..number).map(|_| Object::decode_reference(d));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        reply
            .normal()?
            .write_i32(all.len() as i32)
            .map_err(reply_error)
    }
}

#[test]
fn the_references_of_a_message_have_a_budget_together() {
    let server = orb_with(|config| config.max_message_size = 128 << 10);
    let root = server.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it is active");
    let collector = root.serve(Collector).expect("it activates");
    let client = orb();
    let collector = client.string_to_object(&server.object_to_string(&collector));
    let collector = collector.expect("it reads");
    let small = read(&client, &ior(vec![profile(1, Vec::new())])).expect("it reads");
    let collect = |number: usize| {
        let write = |e: &mut Encoder<'_>| {
            e.write_len(number)?;
            (0..number).try_for_each(|_| Object::encode_reference(Some(&small), e))
        };
        call(&collector, "collect", &write, |d| d.read_i32())
    };
    // Each message has a budget of its own.
    for _ in 0..20 {
        assert_eq!(collect(100), Ok(100));
    }
    let refused = collect(1000).expect_err("they take too much memory");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::ImpLimit, minor::TOO_MANY_REFERENCES)
    );
    assert_eq!(collect(100), Ok(100));
    let _ = client.shutdown(true);
    let _ = server.shutdown(true);
}
