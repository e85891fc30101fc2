//! Calls between two ORBs of one process, over TCP.

use chronorb_giop::contexts;
use chronorb_orb::poa::{IdAssignment, Lifespan, ObjectId, Policy};
use chronorb_orb::{
    CompletionStatus, Operation, Reply, ResolveError, Scope, SystemException, SystemExceptionKind,
};
use std::sync::atomic::Ordering;

use crate::support::descriptors::uncopied;
use crate::support::raw_server::{object_at, raw_server};
use crate::support::{
    BASE_ID, PROBE_ID, ProbeSkeleton, REFUSED_ID, add, call, echo, kind_and_completion, nothing,
    orb, orb_with, served,
};

#[test]
fn a_call_brings_back_its_result() -> Result<(), SystemException> {
    let s = served();
    assert_eq!(add(&s.object, 2, 3)?, 5);
    assert_eq!(echo(&s.object, "grüße, κόσμε")?, "grüße, κόσμε");
    Ok(())
}

#[test]
fn results_stay_in_the_scope_until_the_next_call() -> Result<(), SystemException> {
    let s = served();
    let mut scope = Scope::new(4096);
    for text in ["first", "second"] {
        let operation = Operation::twoway("echo");
        let reply = s
            .object
            .invoke(&mut scope, &operation, &|e| e.write_str(text))?;
        let Reply::Normal(mut d) = reply else {
            panic!("a result")
        };
        assert_eq!(d.read_str()?, text);
    }
    Ok(())
}

#[test]
fn great_messages_pass_both_ways() -> Result<(), SystemException> {
    let s = served();
    for size in [0, 1, 65_000, 66_000, 1 << 20, 5 << 20] {
        let octets: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let back = call(&s.object, "octets", &|e| e.write_octet_seq(&octets), |d| {
            Ok(d.read_octet_seq()?.to_vec())
        })?;
        assert!(back == octets, "{size} octets");
    }
    Ok(())
}

#[test]
fn a_message_over_the_limit_is_refused_before_it_is_sent() {
    let s = served();
    let octets = vec![0; 17 << 20];
    let result = call(&s.object, "octets", &|e| e.write_octet_seq(&octets), |_| {
        Ok(())
    });
    let (kind, completed) = kind_and_completion(result);
    assert_eq!(kind, SystemExceptionKind::ImpLimit);
    assert_eq!(completed, CompletionStatus::No);
}

#[test]
fn a_result_over_the_servers_limit_is_an_exception() {
    let s = crate::support::served_by(orb_with(|config| config.max_message_size = 64 << 10));
    let fits = vec![0; 60 << 10];
    let result = call(&s.object, "octets", &|e| e.write_octet_seq(&fits), |d| {
        d.read_octet_seq().map(<[u8]>::len)
    });
    assert_eq!(result, Ok(fits.len()));
}

#[test]
fn a_small_bound_on_messages_still_serves_small_ones() {
    let s = crate::support::served_by(orb_with(|config| config.max_message_size = 1024));
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    // Every length up to the bound and beyond, in whatever parts it arrives.
    for size in (0..1100).step_by(100) {
        let text = "x".repeat(size);
        match echo(&s.object, &text) {
            Ok(back) => assert_eq!(back, text),
            Err(_) => assert!(size > 800, "{size} octets were refused"),
        }
    }
    assert_eq!(add(&s.object, 1, 1), Ok(2));
}

#[test]
fn a_user_exception_arrives_with_its_members() -> Result<(), SystemException> {
    let s = served();
    let mut scope = Scope::new(4096);
    let operation = Operation::twoway("refuse");
    let reply = s
        .object
        .invoke(&mut scope, &operation, &|e| e.write_str("because"))?;
    let Reply::UserException(id, mut d) = reply else {
        panic!("a user exception")
    };
    assert_eq!((id, d.read_str()?), (REFUSED_ID, "because"));
    Ok(())
}

#[test]
fn a_system_exception_arrives_as_it_was_raised() {
    let s = served();
    let raised = SystemException::maybe(SystemExceptionKind::NoPermission, 42);
    assert_eq!(nothing(&s.object, "fail"), Err(raised));
}

#[test]
fn an_unknown_operation_is_bad_operation() {
    let s = served();
    let (kind, completed) = kind_and_completion(nothing(&s.object, "fly"));
    assert_eq!(kind, SystemExceptionKind::BadOperation);
    assert_eq!(completed, CompletionStatus::No);
}

#[test]
fn missing_arguments_are_marshal_and_the_connection_lives() -> Result<(), SystemException> {
    let s = served();
    let (kind, completed) = kind_and_completion(nothing(&s.object, "add"));
    assert_eq!(kind, SystemExceptionKind::Marshal);
    assert_eq!(completed, CompletionStatus::No);
    assert_eq!(add(&s.object, 1, 1)?, 2);
    Ok(())
}

#[test]
fn a_servant_that_panics_fails_one_request_only() -> Result<(), SystemException> {
    let s = served();
    for _ in 0..4 {
        let (kind, _) = kind_and_completion(nothing(&s.object, "panic"));
        assert_eq!(kind, SystemExceptionKind::Unknown);
    }
    assert_eq!(add(&s.object, 1, 1)?, 2);
    Ok(())
}

#[test]
fn objects_tell_what_they_are() -> Result<(), SystemException> {
    let s = served();
    for (id, is) in [
        (PROBE_ID, true),
        (BASE_ID, true),
        ("IDL:omg.org/CORBA/Object:1.0", true),
        ("IDL:Test/Other:1.0", false),
    ] {
        assert_eq!(s.object.is_a(id)?, is, "{id}");
    }
    assert!(!s.object.non_existent()?);
    Ok(())
}

#[test]
fn a_deactivated_object_does_not_exist() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    let id = root
        .reference_to_id(&s.object)
        .expect("it is of the root POA");
    root.deactivate_object(&id).expect("it was active");
    let (kind, completed) = kind_and_completion(add(&s.object, 1, 1));
    assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
    assert_eq!(completed, CompletionStatus::No);
    assert_eq!(s.object.non_existent(), Ok(true));
    assert!(root.deactivate_object(&id).is_err());
}

#[test]
fn a_stale_reference_never_leads_to_a_newer_object() {
    let s = served();
    let root = s.server.root_poa().expect("it exists");
    let id = root
        .reference_to_id(&s.object)
        .expect("it is of the root POA");
    root.deactivate_object(&id).expect("it was active");
    let newer = root
        .serve(ProbeSkeleton(s.probe.clone()))
        .expect("it activates in the same slot");
    assert_ne!(s.object.ior(), newer.ior());
    let (kind, _) = kind_and_completion(add(&s.object, 1, 1));
    assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
}

#[test]
fn oneways_announce_the_connection_until_a_reply_arrives() -> Result<(), SystemException> {
    let (requests, arrived) = std::sync::mpsc::channel();
    let server = raw_server(move |mut peer| {
        while let Some(request) = peer.request() {
            let _ = requests.send(peer.body.clone());
            if peer.body[4] != 0 {
                peer.answer(request);
            }
        }
    });
    let orb = orb();
    let object = object_at(&orb, server.address);
    let note = || object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()));
    (0..3).try_for_each(|_| note())?;
    assert_eq!(add(&object, 1, 2)?, 3);
    (0..2).try_for_each(|_| note())?;
    let requests: Vec<Vec<u8>> = arrived.iter().take(6).collect();
    let without_id = |request: &Vec<u8>| request[4..].to_vec();
    let [first, second, third, _, after, last] = &requests[..] else {
        panic!("{} requests", requests.len());
    };
    assert_eq!(without_id(first), without_id(second));
    assert_eq!(without_id(first), without_id(third));
    assert_eq!(without_id(after), without_id(last));
    let announcement = contexts::ONE_AT_A_TIME.to_le_bytes();
    let announces = |request: &Vec<u8>| request.windows(4).any(|part| part == announcement);
    assert_eq!([first, after].map(announces), [true, false]);
    Ok(())
}

#[test]
fn oneway_calls_arrive() -> Result<(), SystemException> {
    let s = served();
    s.object
        .invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))?;
    s.probe.gate.reach(1);
    assert_eq!(s.probe.notes.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn requests_of_several_threads_are_served_at_once() {
    // Two threads of the server, one of which waits for the other's call.
    let s = served();
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| nothing(&s.object, "wait"));
        s.probe.gate.reach(1);
        assert_eq!(add(&s.object, 20, 22), Ok(42));
        s.probe.gate.set(2);
        assert_eq!(waiting.join().expect("it does not panic"), Ok(()));
    });
}

#[test]
fn user_ids_name_objects_across_restarts() {
    let _uncopied = uncopied();
    let policies = [
        Policy::Lifespan(Lifespan::Persistent),
        Policy::IdAssignment(IdAssignment::User),
    ];
    let port = free_port();
    let endpoint = |config: &mut chronorb_orb::OrbConfig| {
        config.listen_endpoints =
            chronorb_transport::parse_endpoints(&format!("iiop://127.0.0.1:{port}"))
                .expect("a correct endpoint");
    };
    let start = || {
        let server = orb_with(endpoint);
        let root = server.root_poa().expect("the endpoint opens");
        let radar = root
            .create_poa("radar", Some(root.manager()), &policies)
            .expect("the policies agree");
        let servant = ProbeSkeleton(Default::default());
        radar
            .activate_object_with_id("antenna/1", servant)
            .expect("it is free");
        root.manager().activate().expect("it was not deactivated");
        let object = radar
            .id_to_reference(&ObjectId::from("antenna/1"))
            .expect("it is active");
        (server, object)
    };
    let (first, object) = start();
    let text = first.object_to_string(&object);
    first.shutdown(true).expect("it is not called by a servant");

    let (second, object) = start();
    assert_eq!(second.object_to_string(&object), text);
    let client = orb();
    let object = client.string_to_object(&text).expect("the reference reads");
    let id = call(&object, "id", &|_| Ok(()), |d| {
        Ok(d.read_octet_seq()?.to_vec())
    });
    assert_eq!(id.as_deref(), Ok(&b"antenna/1"[..]));
    second
        .shutdown(true)
        .expect("it is not called by a servant");
}

#[test]
fn persistent_ids_of_the_poas_making_can_be_activated_again() {
    let policies = [Policy::Lifespan(Lifespan::Persistent)];
    let (first, second) = (orb(), orb());
    let [made, again] = [&first, &second].map(|orb| {
        let root = orb.root_poa().expect("it is made");
        root.create_poa("lasting", None, &policies)
            .expect("it is free")
    });
    let id = made
        .activate_object(ProbeSkeleton(Default::default()))
        .expect("it activates");
    let servant = || ProbeSkeleton(Default::default());
    assert_eq!(again.activate_object_with_id(id.clone(), servant()), Ok(()));
    assert!(again.id_to_reference(&id).is_ok());
    let foreign = again.activate_object_with_id("mine", servant());
    assert_eq!(
        foreign
            .expect_err("it was not made by a POA")
            .to_string()
            .split(' ')
            .next(),
        Some("BAD_PARAM")
    );
}

#[test]
fn a_transient_reference_does_not_survive_a_restart() {
    let _uncopied = uncopied();
    let port = free_port();
    let start = || {
        let server = orb_with(|config| {
            config.listen_endpoints =
                chronorb_transport::parse_endpoints(&format!("iiop://127.0.0.1:{port}"))
                    .expect("a correct endpoint");
        });
        crate::support::served_by(server)
    };
    let first = start();
    let text = first.server.object_to_string(&first.object);
    drop(first);
    let second = start();
    let object = second
        .client
        .string_to_object(&text)
        .expect("the reference reads");
    let (kind, _) = kind_and_completion(add(&object, 1, 1));
    assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
}

#[test]
fn a_corbaloc_key_leads_to_a_registered_object() -> Result<(), Box<dyn std::error::Error>> {
    let s = served();
    s.server.register_initial_reference("Probe", &s.object)?;
    assert_eq!(
        s.server.register_initial_reference("Probe", &s.object),
        Err(ResolveError::NameTaken)
    );
    let ior = s.object.ior().profiles[0].clone();
    let profile = chronorb_giop::IiopProfile::decode(&ior.data)?;
    let url = format!("corbaloc::127.0.0.1:{}/Probe", profile.port);
    let object = s.client.string_to_object(&url)?;
    assert_eq!(add(&object, 40, 2)?, 42);
    assert_eq!(add(&object, 40, 3)?, 43, "also on the forwarded way");

    let unknown = format!("corbaloc::127.0.0.1:{}/Missing", profile.port);
    let object = s.client.string_to_object(&unknown)?;
    let (kind, _) = kind_and_completion(add(&object, 1, 1));
    assert_eq!(kind, SystemExceptionKind::ObjectNotExist);
    Ok(())
}

#[test]
fn initial_references_come_from_the_configuration() -> Result<(), Box<dyn std::error::Error>> {
    let s = served();
    let text = s.server.object_to_string(&s.object);
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), format!("{text}\n"))?;
    let client = orb_with(|config| {
        config.init_refs = vec![
            ("Probe".to_owned(), text.clone()),
            (
                "Filed".to_owned(),
                format!("file://{}", file.path().display()),
            ),
            ("Again".to_owned(), "corbaloc:rir:/Probe".to_owned()),
        ];
    });
    for name in ["Probe", "Filed", "Again"] {
        assert_eq!(
            add(&client.resolve_initial_references(name)?, 1, 2)?,
            3,
            "{name}"
        );
    }
    assert_eq!(
        client.resolve_initial_references("Missing"),
        Err(ResolveError::InvalidName)
    );
    Ok(())
}

#[test]
fn texts_that_are_no_references_are_bad_param() {
    let client = orb();
    for text in [
        "",
        "IOR:",
        "IOR:zz",
        "corbaloc:",
        "http://x",
        "file:///does/not/exist",
    ] {
        let result = client.string_to_object(text);
        assert_eq!(
            kind_and_completion(result).0,
            SystemExceptionKind::BadParam,
            "{text:?}"
        );
    }
}

#[test]
fn after_shutdown_every_use_is_bad_inv_order() {
    let s = served();
    s.client
        .shutdown(true)
        .expect("it is not called by a servant");
    let (kind, _) = kind_and_completion(add(&s.object, 1, 1));
    assert_eq!(kind, SystemExceptionKind::BadInvOrder);
    let (kind, _) = kind_and_completion(s.client.root_poa());
    assert_eq!(kind, SystemExceptionKind::BadInvOrder);
}

#[test]
fn shutdown_lets_requests_in_progress_finish() {
    let s = served();
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| nothing(&s.object, "wait"));
        s.probe.gate.reach(1);
        s.server.shutdown(false).expect("it does not wait");
        s.probe.gate.set(2);
        assert_eq!(waiting.join().expect("it does not panic"), Ok(()));
    });
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
