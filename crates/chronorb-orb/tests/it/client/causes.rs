//! The causes of exceptions for common mistakes: a table of mistakes, each with the words that its
//! cause must contain.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use chronorb_giop::{IiopProfile, Ior, SystemException, SystemExceptionKind as Kind};
use chronorb_orb::poa::{ActivateError, CreatePoaError, IdUniqueness, Policy, RequestProcessing};
use chronorb_orb::rtcorba::{Lane, MappingKind, Priority, Threadpool, ThreadpoolLanes};
use chronorb_orb::{Object, Orb, ResolveError, Version, parse_endpoints};

use crate::support::adapters::{ask, named, omg, site_with, teller};
use crate::support::asynchronous::begin_add;
use crate::support::{add, nothing, orb, orb_with, served};

/// The exception of a failure, and the words in its cause.
type Row<'r> = (&'r str, Result<(), SystemException>, Kind, &'r [&'r str]);

fn assert_told(orb: &Orb, (mistake, outcome, kind, parts): Row<'_>) {
    let exception = outcome.expect_err(mistake);
    assert_eq!(exception.kind, kind, "{mistake}: {exception}");
    let failure = orb.last_failure().expect(mistake);
    assert_eq!(failure.exception(), exception, "{mistake}");
    for part in parts {
        let cause = failure.cause();
        assert!(cause.contains(part), "{mistake}: {cause:?} lacks {part:?}");
    }
}

fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

/// Returns a port of this machine at which no socket listens.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}

#[test]
fn texts_that_are_no_references_say_which_part_is_wrong() {
    let orb = orb();
    let rows: &[(&str, Kind, &[&str])] = &[
        ("IOR:zz", Kind::BadParam, &["IOR:zz", "hexadecimal"]),
        ("IOR:0100", Kind::BadParam, &["IOR:0100"]),
        ("iop:x", Kind::BadParam, &["none of IOR, corbaloc"]),
        (
            "file:///nonexist",
            Kind::BadParam,
            &["/nonexist", "os error 2"],
        ),
        (
            "corbaloc::localhost",
            Kind::BadParam,
            &["no \"/\" and object key"],
        ),
        (
            "corbaloc:rir:/NameService",
            Kind::BadParam,
            &["NameService", "-ORBInitRef NameService=URL"],
        ),
        ("corbaloc:foo:x/k", Kind::BadParam, &["foo", "iiop"]),
        (
            "corbaloc::host:99999/k",
            Kind::BadParam,
            &["host:99999", "1 to 65535"],
        ),
        (
            "corbaname:rir:#a",
            Kind::BadParam,
            &["NameService", "-ORBInitRef NameService=URL"],
        ),
        ("corbaname::host#a//b", Kind::BadParam, &["behind \"#\""]),
    ];
    for (text, kind, parts) in rows {
        let outcome = orb.string_to_object(text).map(drop);
        assert_told(&orb, (text, outcome, *kind, parts));
    }
}

#[test]
fn servers_that_are_not_there_are_told_by_address_and_error() {
    let client = orb();
    let port = closed_port();
    let object = |url: String| client.string_to_object(&url).expect("a URL");
    let down = object(format!("corbaloc::127.0.0.1:{port}/Object"));
    let address = format!("127.0.0.1:{port}");
    let refused: &[&str] = &["iiop", &address, "Connection refused (os error 111)"];
    let outcome = add(&down, 1, 1).map(drop);
    assert_told(&client, ("server down", outcome, Kind::Transient, refused));
    let two = object(format!(
        "corbaloc::127.0.0.1:{port},:127.0.0.2:{port}/Object"
    ));
    let second = format!("127.0.0.2:{port}");
    let both: &[&str] = &[&address, &second];
    let outcome = add(&two, 1, 1).map(drop);
    assert_told(&client, ("two addresses", outcome, Kind::Transient, both));

    let pending = begin_add(&down, 1, 1).map(|pending| pending.wait().map(drop));
    let outcome = pending.and_then(|result| result);
    assert_told(&client, ("asynchronous", outcome, Kind::Transient, refused));

    let unresolvable = object("corbaloc::no.such.host.invalid/Object".to_owned());
    let outcome = add(&unresolvable, 1, 1).map(drop);
    let parts: &[&str] = &["no.such.host.invalid", "does not resolve"];
    assert_told(&client, ("no such host", outcome, Kind::Transient, parts));
    client.shutdown(true).expect("not from a servant");
}

#[test]
fn a_pending_brings_the_cause_to_the_thread_that_takes_its_result() {
    let s = served();
    let port = port_of(&s.object);
    let unknown = format!("corbaloc::127.0.0.1:{port}/Missing");
    let unknown = s.client.string_to_object(&unknown).expect("a URL");
    let pending = begin_add(&unknown, 1, 1);
    let client = s.client.clone();
    let taken = thread::spawn(move || {
        let outcome = pending.and_then(|pending| pending.wait()).map(drop);
        let address = format!("127.0.0.1:{port}");
        let parts: &[&str] = &["raised by the server at", &address];
        assert_told(&client, ("elsewhere", outcome, Kind::ObjectNotExist, parts));
    });
    taken.join().expect("it is told there");
}

#[test]
fn failures_of_calls_name_the_server_and_the_setting() {
    let s = served();
    let address = format!("127.0.0.1:{}", port_of(&s.object));
    let raised: &[&str] = &["raised by the server at", &address];
    let row = (
        "raised",
        nothing(&s.object, "fail"),
        Kind::NoPermission,
        raised,
    );
    assert_told(&s.client, row);
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    let failure = s.client.last_failure().expect("it stays");
    assert_eq!(failure.exception().kind, Kind::NoPermission);

    let small = orb_with(|config| config.max_message_size = 4096);
    let object = small
        .string_to_object(&s.server.object_to_string(&s.object))
        .expect("a reference");
    let large = crate::support::echo(&object, &"x".repeat(8192)).map(drop);
    let bound: &[&str] = &["4096 octets", "-ORBMaxMessageSize"];
    assert_told(&small, ("too large", large, Kind::ImpLimit, bound));
}

#[test]
fn a_server_that_answers_otherwise_is_told_as_such() {
    let client = orb();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 512]);
        // The answer of a TLS server to a client without TLS: a fatal alert.
        stream
            .write_all(b"\x15\x03\x03\x00\x02\x02\x0a")
            .expect("sent");
        let _ = stream.write_all(&[0; 32]);
    });
    let url = format!("corbaloc::127.0.0.1:{port}/Object");
    let object = client.string_to_object(&url).expect("a URL");
    let outcome = add(&object, 1, 1).map(drop);
    let parts: &[&str] = &["is not GIOP", "ssliop"];
    assert_told(&client, ("TLS", outcome, Kind::Marshal, parts));
    server.join().expect("it answers");
}

#[test]
fn pools_and_priorities_say_what_is_wrong_with_them() {
    let orb = orb();
    let rt = orb.rt();
    let lanes = |lanes: Vec<Lane>| {
        let pool = ThreadpoolLanes {
            lanes,
            ..Default::default()
        };
        rt.create_threadpool_with_lanes(&pool).map(drop)
    };
    let twice = vec![Lane::new(corba(1), 1), Lane::new(corba(1), 1)];
    for (mistake, of, part) in [
        ("no lanes", Vec::new(), "no lanes"),
        ("a lane twice", twice, "the same priority"),
        ("no threads", vec![Lane::new(corba(1), 0)], "neither"),
        (
            "70000 threads",
            vec![Lane::new(corba(1), 70_000)],
            "65536 threads",
        ),
    ] {
        assert_told(&orb, (mistake, lanes(of), Kind::BadParam, &[part]));
    }

    let direct = orb_with(|config| config.priority_mapping = MappingKind::Direct);
    let outcome = direct.rt_current().set_priority(corba(20_000));
    let parts: &[&str] = &["20000", "1 to 99", "-ORBPriorityMapping"];
    assert_told(&direct, ("direct", outcome, Kind::DataConversion, parts));

    let listen = |lane| {
        orb_with(|config| {
            let endpoint = parse_endpoints("iiop://127.0.0.1:0").expect("correct");
            config.lane_listen_endpoints = vec![(lane, endpoint[0].clone())];
        })
    };
    let misnamed = listen((1, 5));
    let made = misnamed
        .rt()
        .create_threadpool(&Threadpool::new(corba(1), 1));
    let parts: &[&str] = &["-ORBLaneListenEndpoints", "1:5", "1 lanes"];
    let row = ("lane of no pool", made.map(drop), Kind::BadParam, parts);
    assert_told(&misnamed, row);
}

#[test]
fn endpoints_that_cannot_be_had_are_told_with_the_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let server = orb_with(|config| {
        let endpoint = format!("iiop://127.0.0.1:{port}");
        config.listen_endpoints = parse_endpoints(&endpoint).expect("correct");
    });
    let root = server.root_poa().expect("it runs");
    let served = root.serve(crate::support::ProbeSkeleton(Default::default()));
    let error = served.map(drop).expect_err("the port is taken");
    let source = std::error::Error::source(&error).expect("the cause");
    assert!(source.to_string().contains("os error 98"), "{source}");
    let served = Err(error.system_exception().expect("it is one"));
    let address = format!("iiop://127.0.0.1:{port}");
    let parts: &[&str] = &["lane 0:0", &address, "os error 98"];
    assert_told(&server, ("port in use", served, Kind::NoResources, parts));
}

#[test]
fn policies_say_which_rule_they_break() {
    let orb = orb();
    let root = orb.root_poa().expect("it runs");
    let unique = Policy::IdUniqueness(IdUniqueness::Unique);
    let default = Policy::RequestProcessing(RequestProcessing::DefaultServant);
    let rows: [(&[Policy], u16, &str); 2] = [
        (&[unique.clone(), default], 1, "IdUniqueness::Multiple"),
        (&[unique.clone(), unique], 1, "given twice"),
    ];
    for (policies, at, rule) in rows {
        let error = root.create_poa("wrong", None, policies).expect_err(rule);
        let CreatePoaError::InvalidPolicy { index, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(index, at, "{rule}");
        let source = std::error::Error::source(&error).expect("the rule");
        assert!(source.to_string().contains(rule), "{source}");
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[test]
fn an_initial_reference_that_is_none_has_its_cause_as_source() {
    let client = orb_with(|config| {
        config.init_refs = vec![("Radar".to_owned(), "file:///nonexist".to_owned())];
    });
    let error = client
        .resolve_initial_references("Radar")
        .expect_err("no file");
    let source = std::error::Error::source(&error).expect("the cause");
    let told = source.to_string();
    assert!(
        told.contains("BAD_PARAM") && told.contains("/nonexist"),
        "{told}"
    );
}

#[test]
fn errors_do_not_take_the_causes_of_earlier_failures() {
    let s = site_with(|config| {
        let nil = Ior::nil().to_string();
        config.init_refs = vec![("Nil".to_owned(), nil)];
    });
    let fail = |exception: SystemException| {
        let servant = teller(move |_| Err(exception));
        let object = s.root.serve(servant).expect("it is new");
        assert_eq!(ask(&object), Err(exception));
        let failure = s.server.last_failure().expect("it was raised");
        assert_eq!(failure.exception(), exception);
    };
    // The same exceptions, with their own causes.
    fail(SystemException::no(Kind::InvObjref, 0));
    let nil = s.server.resolve_initial_references("Nil");
    let exception = SystemException::no(Kind::InvObjref, 0);
    assert_eq!(nil.map(drop), Err(ResolveError::System(exception)));
    let exception = omg(Kind::BadParam, 14);
    fail(exception);
    let activated = s.root.activate_object_with_id("x", named("x"));
    assert_eq!(activated, Err(ActivateError::System(exception)));
    assert!(s.server.last_failure().is_some(), "it stays");
}

#[test]
fn a_name_that_is_taken_is_told_as_such() {
    let s = served();
    let register = || s.server.register_initial_reference("Probe", &s.object);
    assert_eq!(register(), Ok(()));
    assert_eq!(register(), Err(ResolveError::NameTaken));
    let none = s.server.register_initial_reference("", &s.object);
    assert_eq!(none, Err(ResolveError::InvalidName));
}

fn port_of(object: &Object) -> u16 {
    let profile = IiopProfile::decode(&object.ior().profiles[0].data);
    let profile = profile.expect("it is IIOP");
    assert!(profile.version >= Version::V1_2);
    profile.port
}
