//! Groups of objects, called by multicast.

use chronorb_giop::{Component, TAG_UIPMC, UipmcProfile};
use chronorb_orb::poa::{
    IdAssignment, Lifespan, ObjectError, ObjectId, Policy, PriorityModel, ThreadModel,
};
use chronorb_orb::rtcorba::{Lane, Priority, ThreadpoolLanes};
use chronorb_orb::{
    CompletionStatus, GroupError, Object, Orb, PendingReply, SystemExceptionKind,
    ThreadpoolStrategy, minor,
};
use std::net::{SocketAddr, UdpSocket};

use crate::support::group::{
    Ears, MEMBER_ID, group, group_orb, group_orb_with, group_url, tell, tell_octets,
};
use crate::support::{call, nothing};

/// Returns a server whose root POA lets requests in.
fn server() -> Orb {
    let server = group_orb();
    activate(&server);
    server
}

fn activate(server: &Orb) {
    let root = server.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it was not deactivated");
}

/// Makes an object of the root POA that is a member of the group.
fn join(server: &Orb, ears: &Ears, name: &'static str, url: &str) -> ObjectId {
    let root = server.root_poa().expect("the endpoint opens");
    let id = root
        .activate_object(ears.member(name))
        .expect("it activates");
    let joined = root.associate_reference_with_id(&group(server, url), &id);
    joined.expect("the group can be listened at");
    id
}

#[test]
fn a_request_to_a_group_comes_to_each_member_of_each_process() {
    let ears = Ears::new();
    let url = group_url();
    let (one, other) = (server(), server());
    join(&one, &ears, "first", &url);
    join(&one, &ears, "second", &url);
    join(&other, &ears, "third", &url);
    let client = group_orb();
    let radar = group(&client, &url);
    for text in ["a", "b", "c"] {
        tell(&radar, text).expect("it is sent");
        let all = ["first", "second", "third"].map(|name| (name, text.to_owned()));
        assert_eq!(ears.texts(3), all);
    }
    ears.assert_silence();
}

#[test]
fn an_object_is_in_as_many_groups_as_it_is_put_into() {
    let ears = Ears::new();
    let server = server();
    let urls = [group_url(), group_url(), group_url()];
    let id = join(&server, &ears, "both", &urls[0]);
    let root = server.root_poa().expect("it is there");
    for url in [&urls[1], &urls[1]] {
        let joined = root.associate_reference_with_id(&group(&server, url), &id);
        joined.expect("the group can be listened at");
    }
    join(&server, &ears, "other", &urls[2]);
    let client = group_orb();
    for (text, url) in ["a", "b", "c"].into_iter().zip(&urls) {
        tell(&group(&client, url), text).expect("it is sent");
        let member = if text == "c" { "other" } else { "both" };
        assert_eq!(ears.texts(1), [(member, text.to_owned())]);
    }
    ears.assert_silence();
}

#[test]
fn two_groups_may_have_one_address() {
    let ears = Ears::new();
    let server = server();
    let url = group_url();
    let other = url.replace("1.0-Test-", "1.0-Other-");
    let later = url.replace("/239", "-7/239");
    join(&server, &ears, "one", &url);
    join(&server, &ears, "other", &other);
    let client = group_orb();
    tell(&group(&client, &other), "to the other").expect("it is sent");
    assert_eq!(ears.texts(1), [("other", "to the other".to_owned())]);
    tell(&group(&client, &later), "by a newer reference").expect("it is sent");
    assert_eq!(ears.texts(1), [("one", "by a newer reference".to_owned())]);
    ears.assert_silence();
}

#[test]
fn membership_ends_with_the_object_or_before() {
    let ears = Ears::new();
    let server = server();
    let url = group_url();
    let root = server.root_poa().expect("it is there");
    let radar = group(&server, &url);
    let ids = ["a", "b", "c"].map(|name| join(&server, &ears, name, &url));
    assert_eq!(root.reference_to_ids(&radar).expect("a group"), ids);
    let client = group_orb();
    let from_client = group(&client, &url);

    root.disassociate_reference_with_id(&radar, &ids[0])
        .expect("it is a member");
    let again = root.disassociate_reference_with_id(&radar, &ids[0]);
    assert_eq!(again, Err(ObjectError::ObjectNotActive.into()));
    tell(&from_client, "1").expect("it is sent");
    assert_eq!(ears.texts(2), ["b", "c"].map(|name| (name, "1".to_owned())));

    root.deactivate_object(&ids[1]).expect("it is active");
    assert_eq!(root.reference_to_ids(&radar).expect("a group"), ids[2..]);
    tell(&from_client, "2").expect("it is sent");
    assert_eq!(ears.texts(1), [("c", "2".to_owned())]);

    // No socket listens until there is a member again.
    root.deactivate_object(&ids[2]).expect("it is active");
    tell(&from_client, "3").expect("it is sent all the same");
    join(&server, &ears, "d", &url);
    tell(&from_client, "4").expect("it is sent");
    assert_eq!(ears.texts(1), [("d", "4".to_owned())]);
    ears.assert_silence();
}

#[test]
fn membership_ends_with_the_poa() {
    let ears = Ears::new();
    let server = server();
    let url = group_url();
    let root = server.root_poa().expect("it is there");
    let radar = group(&server, &url);
    let child = root.create_poa("child", Some(root.manager()), &[]);
    let child = child.expect("the policies agree");
    let id = child
        .activate_object(ears.member("child"))
        .expect("it activates");
    child
        .associate_reference_with_id(&radar, &id)
        .expect("the group is there");
    join(&server, &ears, "root", &url);
    let client = group_orb();
    tell(&group(&client, &url), "1").expect("it is sent");
    assert_eq!(
        ears.texts(2),
        ["child", "root"].map(|n| (n, "1".to_owned()))
    );
    child.destroy(true, true).expect("nothing is in progress");
    tell(&group(&client, &url), "2").expect("it is sent");
    assert_eq!(ears.texts(1), [("root", "2".to_owned())]);
    ears.assert_silence();
}

#[test]
fn an_object_may_be_a_member_before_it_is_active() {
    let ears = Ears::new();
    // Two threads would serve the two messages in any order.
    let server = group_orb_with(|config| config.threads = 1.into());
    activate(&server);
    let url = group_url();
    let root = server.root_poa().expect("it is there");
    let radar = group(&server, &url);
    let id = root
        .create_id_for_reference(&radar)
        .expect("the group is there");
    assert_eq!(
        root.reference_to_ids(&radar).expect("a group"),
        std::slice::from_ref(&id)
    );
    let client = group_orb();
    tell(&group(&client, &url), "too early").expect("it is sent");
    root.activate_object_with_id(id, ears.member("later"))
        .expect("the id is the POA's");
    tell(&group(&client, &url), "in time").expect("it is sent");
    // The first one may be late and yet in time.
    while ears.next().text != "in time" {}
    ears.assert_silence();
}

#[test]
fn objects_of_persistent_adapters_are_members_by_their_own_ids() {
    let ears = Ears::new();
    let server = server();
    let url = group_url();
    let root = server.root_poa().expect("it is there");
    let policies = [
        Policy::Lifespan(Lifespan::Persistent),
        Policy::IdAssignment(IdAssignment::User),
    ];
    let poa = root.create_poa("kept", Some(root.manager()), &policies);
    let poa = poa.expect("the policies agree");
    let radar = group(&server, &url);
    let id = ObjectId::from("radar");
    poa.associate_reference_with_id(&radar, &id)
        .expect("the group is there");
    let refused = poa.create_id_for_reference(&radar);
    assert_eq!(refused, Err(ObjectError::WrongPolicy.into()));
    poa.activate_object_with_id(id, ears.member("kept"))
        .expect("it activates");
    let client = group_orb();
    tell(&group(&client, &url), "1").expect("it is sent");
    assert_eq!(ears.texts(1), [("kept", "1".to_owned())]);
}

#[test]
fn only_groups_have_members() {
    let server = server();
    let root = server.root_poa().expect("it is there");
    let ears = Ears::new();
    let object = root.serve(ears.member("alone")).expect("it activates");
    let id = root.reference_to_id(&object).expect("it is the POA's");
    let no_group = Some(GroupError::NotAGroupObject);
    assert_eq!(
        root.associate_reference_with_id(&object, &id).err(),
        no_group
    );
    assert_eq!(
        root.disassociate_reference_with_id(&object, &id).err(),
        no_group
    );
    assert_eq!(root.create_id_for_reference(&object).err(), no_group);
    assert_eq!(root.reference_to_ids(&object).err(), no_group);
    // An address that is not multicast cannot be used.
    let nowhere = group(&server, "corbaloc:miop:1.0@1.0-Test-1/10.0.0.1:5000");
    let refused = root.associate_reference_with_id(&nowhere, &id);
    assert!(
        matches!(refused, Err(GroupError::System(e)) if e.kind == SystemExceptionKind::NoResources)
    );
    assert_eq!(root.reference_to_ids(&nowhere), Ok(vec![]));
}

#[test]
fn what_has_an_answer_cannot_be_asked_of_a_group() {
    let ears = Ears::new();
    let (server, client) = (server(), group_orb());
    let url = group_url();
    join(&server, &ears, "silent", &url);
    let radar = group(&client, &url);
    let refused = |e: chronorb_orb::SystemException| (e.kind, e.minor, e.completed);
    let expected = (
        SystemExceptionKind::BadOperation,
        minor::GROUPS_DO_NOT_ANSWER,
        CompletionStatus::No,
    );
    assert_eq!(nothing(&radar, "ask").map_err(refused), Err(expected));
    assert_eq!(radar.is_a(MEMBER_ID).map_err(refused), Err(expected));
    let operation = chronorb_orb::Operation::twoway("ask");
    let begun = PendingReply::<(), chronorb_orb::SystemException>::begin(
        &radar,
        &operation,
        &|_| Ok(()),
        |_| Ok(()),
    );
    assert_eq!(begun.map(drop).map_err(refused), Err(expected));
    // Operations that need no request are answered.
    assert_eq!(radar.non_existent(), Ok(false));
    assert_eq!(radar.is_a("IDL:omg.org/CORBA/Object:1.0"), Ok(true));
    assert_eq!(radar.validate_connection(), Ok(()));
    let mut ior = radar.ior().clone();
    ior.type_id = MEMBER_ID.to_owned();
    let typed = client.string_to_object(&ior.to_string()).expect("it reads");
    assert_eq!(typed.is_a(MEMBER_ID), Ok(true));
}

#[test]
fn a_group_that_is_reached_by_iiop_too_answers_by_that() {
    let ears = Ears::new();
    let (server, client) = (server(), group_orb());
    let url = group_url();
    join(&server, &ears, "heard", &url);
    let root = server.root_poa().expect("it is there");
    let alone = root.serve(ears.member("answers")).expect("it activates");
    let answering = server.object_to_string(&alone);
    let answering = client.string_to_object(&answering).expect("it reads");
    // The URL of the answering object: its profile's address and key.
    let profile = chronorb_giop::IiopProfile::decode(&answering.ior().profiles[0].data);
    let profile = profile.expect("it is of IIOP");
    let key: String = profile
        .object_key
        .iter()
        .map(|o| format!("%{o:02x}"))
        .collect();
    let url = format!("{url};iiop:1.2@{}:{}/{key}", profile.host, profile.port);
    let radar = group(&client, &url);
    assert_eq!(nothing(&radar, "ask"), Ok(()));
    assert_eq!(radar.is_a(MEMBER_ID), Ok(true));
    assert_eq!(radar.non_existent(), Ok(false));
    tell(&radar, "to all").expect("it is sent");
    assert_eq!(ears.texts(1), [("heard", "to all".to_owned())]);
    root.deactivate_object(&root.reference_to_id(&alone).expect("it is the POA's"))
        .expect("it is active");
    assert_eq!(radar.non_existent(), Ok(true));
    ears.assert_silence();
}

#[test]
fn a_message_of_many_packets_comes_whole_and_one_that_is_too_large_is_refused() {
    let ears = Ears::new();
    let (server, client) = (server(), group_orb());
    let url = group_url();
    join(&server, &ears, "a", &url);
    join(&server, &ears, "b", &url);
    let radar = group(&client, &url);
    let octets: Vec<_> = (0..60_000_u32).map(|n| n as u8).collect();
    for len in [0, 1, 1_000, 1_400, 60_000] {
        tell_octets(&radar, "large", &octets[..len]).expect("it is sent");
        for _ in 0..2 {
            assert!(ears.next().octets == octets[..len], "{len} octets");
        }
    }
    let refused = tell_octets(&radar, "too large", &vec![0; 2 << 20]);
    let refused = refused.expect_err("it is longer than any group takes");
    assert_eq!(
        (refused.kind, refused.minor, refused.completed),
        (
            SystemExceptionKind::ImpLimit,
            minor::MESSAGE_TOO_LARGE,
            CompletionStatus::No
        )
    );
    tell(&radar, "and on").expect("it is sent");
    assert_eq!(
        ears.texts(2),
        ["a", "b"].map(|name| (name, "and on".to_owned()))
    );
}

fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

#[test]
fn each_lane_serves_the_members_that_are_its_own() {
    let ears = Ears::new();
    let server = server();
    let url = group_url();
    let lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(corba(10), 1), Lane::new(corba(20), 1)],
        ..Default::default()
    };
    let pool = server.rt().create_threadpool_with_lanes(&lanes);
    let pool = Policy::Threadpool(pool.expect("the lanes open"));
    let root = server.root_poa().expect("it is there");
    let radar = group(&server, &url);
    for (name, priority) in [("low", 10), ("high", 20)] {
        let model = Policy::PriorityModel(PriorityModel::ServerDeclared, corba(priority));
        let poa = root.create_poa(name, Some(root.manager()), &[pool.clone(), model]);
        let poa = poa.expect("the policies agree");
        let id = poa
            .activate_object(ears.member(name))
            .expect("it activates");
        poa.associate_reference_with_id(&radar, &id)
            .expect("the group is there");
    }
    join(&server, &ears, "without", &url);
    let client = group_orb();
    tell(&group(&client, &url), "1").expect("it is sent");
    let mut heard: Vec<_> = (0..3).map(|_| ears.next()).collect();
    heard.sort_by_key(|heard| heard.priority);
    let by: Vec<_> = heard.iter().map(|h| (h.member, h.priority)).collect();
    assert_eq!(
        by,
        [("without", None), ("low", Some(10)), ("high", Some(20))]
    );
    let threads: Vec<_> = heard.iter().map(|h| h.thread.as_str()).collect();
    let is_of = |thread: &str, lane: &str| thread.contains(lane);
    assert!(is_of(threads[0], "0:0"), "{threads:?}");
    assert!(is_of(threads[1], "1:0"), "{threads:?}");
    assert!(is_of(threads[2], "1:1"), "{threads:?}");
    ears.assert_silence();
}

#[test]
fn the_main_thread_serves_its_members() {
    let ears = Ears::new();
    let server = server();
    let url = group_url();
    let root = server.root_poa().expect("it is there");
    let radar = group(&server, &url);
    let policies = [Policy::Thread(ThreadModel::MainThread)];
    let poa = root.create_poa("main", Some(root.manager()), &policies);
    let poa = poa.expect("the policies agree");
    for name in ["main one", "main two"] {
        let id = poa
            .activate_object(ears.member(name))
            .expect("it activates");
        poa.associate_reference_with_id(&radar, &id)
            .expect("the group is there");
    }
    join(&server, &ears, "a lane's", &url);
    let client = group_orb();
    std::thread::scope(|scope| {
        let running = std::thread::Builder::new().name("main".to_owned());
        let running = running.spawn_scoped(scope, || server.run());
        tell(&group(&client, &url), "1").expect("it is sent");
        let mut heard: Vec<_> = (0..3).map(|_| ears.next()).collect();
        heard.sort_by_key(|heard| heard.member);
        let names: Vec<_> = heard.iter().map(|heard| heard.member).collect();
        assert_eq!(names, ["a lane's", "main one", "main two"]);
        assert_ne!(heard[0].thread, "main");
        assert_eq!((&*heard[1].thread, &*heard[2].thread), ("main", "main"));
        ears.assert_silence();
        server.shutdown(true).expect("it was running");
        let ran = running.expect("a thread can be had").join();
        ran.expect("it does not panic");
    });
}

#[test]
fn threads_of_all_strategies_serve_groups() {
    for strategy in [
        ThreadpoolStrategy::LeaderFollowers,
        ThreadpoolStrategy::HalfSyncHalfAsync,
        ThreadpoolStrategy::ThreadPerConnection,
        #[cfg(feature = "baselines")]
        ThreadpoolStrategy::WorkerPool,
        #[cfg(feature = "baselines")]
        ThreadpoolStrategy::FilterChain,
        ThreadpoolStrategy::Reactive,
    ] {
        let ears = Ears::new();
        let server = group_orb_with(|config| config.threadpool_strategy = strategy);
        activate(&server);
        let url = group_url();
        join(&server, &ears, "member", &url);
        let client = group_orb();
        let radar = group(&client, &url);
        for text in ["a", "b", "c"] {
            tell(&radar, text).expect("it is sent");
            assert_eq!(ears.texts(1), [("member", text.to_owned())], "{strategy:?}");
        }
        server.shutdown(true).expect("it was running");
    }
}

#[test]
fn garbage_and_half_collections_keep_no_call_from_its_members() {
    let ears = Ears::new();
    let (server, client) = (server(), group_orb());
    let url = group_url();
    join(&server, &ears, "member", &url);
    let radar = group(&client, &url);
    let profile = UipmcProfile::decode(&radar.ior().profiles[0].data).expect("a group");
    let place = SocketAddr::new(profile.address.parse().expect("an address"), profile.port);
    let flooding = UdpSocket::bind("127.0.0.2:0").expect("all of 127.0.0.0/8 is here");
    flooding.connect(place).expect("there is a way");
    let send = |datagram: &[u8]| {
        flooding.send(datagram).expect("it is sent");
    };
    let packet = |number: u32, of: u32, id: u32, data: &[u8]| {
        let last = if number + 1 == of { 2 } else { 0 };
        let mut packet = b"MIOP\x10".to_vec();
        packet.push(last);
        packet.extend((data.len() as u16).to_be_bytes());
        packet.extend([number, of, 4, id].map(u32::to_be_bytes).concat());
        packet.extend(data);
        packet
    };
    for round in 0..20_u32 {
        for n in 0..30_u32 {
            let id = round * 1000 + n;
            send(b"octets of no known message");
            send(&packet(1, 3, id, &[0; 1000]));
            // Complete messages of all kinds that are not requests to a group.
            for kind in 0..9 {
                let header = [b"GIOP\x01\x02\0".as_slice(), &[kind, 0, 0, 0, 8]].concat();
                send(&packet(0, 1, id, &[&header, &[n as u8; 8][..]].concat()));
            }
        }
        let text = format!("round {round}");
        tell_octets(&radar, &text, &[7; 5000]).expect("it is sent");
        let heard = ears.next();
        assert_eq!((heard.text, heard.octets), (text, vec![7; 5000]));
    }
    ears.assert_silence();
}

#[test]
fn a_request_for_an_object_does_not_come_by_a_group() {
    let ears = Ears::new();
    let (server, client) = (server(), group_orb());
    let url = group_url();
    join(&server, &ears, "member", &url);
    let root = server.root_poa().expect("it is there");
    let object = root.serve(ears.member("alone")).expect("it activates");
    // An object's key instead of the group's component.
    let radar = group(&client, &url);
    let mut profile = UipmcProfile::decode(&radar.ior().profiles[0].data).expect("a group");
    let iiop = chronorb_giop::IiopProfile::decode(&object.ior().profiles[0].data);
    profile.components[0].data = iiop.expect("it is of IIOP").object_key;
    let mut ior = radar.ior().clone();
    ior.profiles[0] = profile.tagged().expect("it can be written");
    let forged = client.string_to_object(&ior.to_string()).expect("it reads");
    let refused = tell(&forged, "not for it").expect_err("it is no group");
    assert_eq!(refused.kind, SystemExceptionKind::Transient);
    tell(&radar, "for the group").expect("it is sent");
    assert_eq!(ears.texts(1), [("member", "for the group".to_owned())]);
    ears.assert_silence();
}

#[test]
fn references_to_objects_do_not_tell_of_groups() {
    let ears = Ears::new();
    let url = group_url();
    let (_, place) = url.split_once('/').expect("a URL");
    let endpoint = format!("miop://{place}");
    let server = group_orb_with(|config| {
        let endpoints = chronorb_orb::parse_endpoints(&endpoint);
        config.listen_endpoints.extend(endpoints.expect("right"));
    });
    activate(&server);
    join(&server, &ears, "member", &url);
    let root = server.root_poa().expect("it is there");
    let object: Object = root.serve(ears.member("alone")).expect("it activates");
    assert!(object.ior().profiles.iter().all(|p| p.tag != TAG_UIPMC));
    // Such an endpoint listens from the start, and only once.
    let client = group_orb();
    tell(&group(&client, &url), "1").expect("it is sent");
    assert_eq!(ears.texts(1), [("member", "1".to_owned())]);
    ears.assert_silence();
    let text = client.object_to_string(&group(&client, &url));
    let again = client.string_to_object(&text).expect("it reads");
    assert_eq!(again, group(&client, &url));
    let known = call(&object, "ask", &|_| Ok(()), |_| Ok(()));
    assert_eq!(known, Ok(()));
    let profile = UipmcProfile::decode(&again.ior().profiles[0].data).expect("a group");
    assert!(matches!(
        profile.components[0].typed(),
        Ok(Component::Unknown(_))
    ));
}
