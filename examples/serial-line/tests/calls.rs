//! Calls over a line, which consists of a pair of joined pseudo-terminals.

use std::os::fd::OwnedFd;
use std::thread;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb::transport::parse_endpoints;
use quoter_example::{Book, Quoter, QuoterSkeleton};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Returns one end of a line: the path that a program opens, and the cable behind it.
fn end() -> (String, OwnedFd) {
    let cable = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal is free");
    grantpt(&cable).expect("it is ours");
    unlockpt(&cable).expect("it is ours");
    let path = ptsname(&cable, Vec::new()).expect("it has a name");
    (path.to_string_lossy().into_owned(), cable)
}

/// Joins two cables, for as long as both ends are open.
fn join(one: OwnedFd, other: OwnedFd) {
    let other_copy = other.try_clone().expect("a descriptor is free");
    let one_copy = one.try_clone().expect("a descriptor is free");
    for (from, to) in [(one, other_copy), (other, one_copy)] {
        thread::spawn(move || {
            let mut room = [0; 4096];
            loop {
                match rustix::io::read(&from, &mut room) {
                    Ok(n) if n > 0 => {
                        let mut rest = &room[..n];
                        while !rest.is_empty() {
                            match rustix::io::write(&to, rest) {
                                Ok(written) => rest = &rest[written..],
                                Err(_) => return,
                            }
                        }
                    }
                    // The end is not open at present.
                    Err(rustix::io::Errno::IO) => thread::yield_now(),
                    _ => return,
                }
            }
        });
    }
}

fn orb(configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    let mut config = OrbConfig::default();
    config.add_protocol(serial_line_example::protocol());
    configure(&mut config);
    Orb::with_config(config).expect("an ORB can be made")
}

#[test]
fn calls_go_over_the_line_one_client_after_the_other() {
    let ((near, one), (far, other)) = (end(), end());
    join(one, other);
    let endpoint = format!("serial://{near}|far={far}&baud=115200");
    let server = orb(|config| {
        config.listen_endpoints = parse_endpoints(&endpoint).expect("it is correct");
    });
    let root = server.root_poa().expect("the line opens");
    let object = root
        .serve(QuoterSkeleton::new(Book::acme()))
        .expect("it activates");
    let tags = object.ior().profiles.iter().map(|profile| profile.tag);
    assert_eq!(tags.collect::<Vec<_>>(), [serial_line_example::TAG_SERIAL]);
    root.manager().activate().expect("it is not inactive");

    for client in 0..3 {
        let orb = orb(|_| {});
        let text = server.object_to_string(&object);
        let object = orb.string_to_object(&text).expect("it reads");
        let quoter = Quoter::narrow(&object)
            .expect("it answers")
            .expect("it is one");
        for n in 0..100 {
            assert_eq!(quoter.ping(n), Ok(n), "client {client}");
        }
        let long: Vec<f64> = (0..5_000).map(f64::from).collect();
        Scope::with(|scope| {
            let quote = quoter
                .get_quote_in(scope, "ACME", &long)
                .expect("it is quoted");
            assert_eq!(quote.curve.len(), long.len());
        });
        orb.shutdown(true).expect("it ends");
    }
    server.shutdown(true).expect("it ends");
}

#[test]
fn endpoints_that_are_no_lines_are_refused() {
    for (text, problem) in [
        ("serial://host:1", "path"),
        ("serial:///dev/ttyS0|baud=fast", "fast"),
        ("serial:///dev/ttyS0|colour=red", "colour"),
    ] {
        let mut config = OrbConfig::default();
        config.add_protocol(serial_line_example::protocol());
        config.listen_endpoints = parse_endpoints(text).expect("it is an endpoint");
        let error = Orb::with_config(config).expect_err(text).to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}
