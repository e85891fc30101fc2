//! Servers that are slow, gone, or wrong: the resulting exceptions.

use chronorb_giop::{IiopProfile, minor};
use chronorb_orb::SystemExceptionKind::{
    CommFailure, ImpLimit, Marshal, ObjectNotExist, Timeout, Transient,
};
use chronorb_orb::{CompletionStatus, Operation, SystemException};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::support::raw_server::{
    CLOSE_CONNECTION, Peer, object_at, raw_server, reply, wide_reply,
};
use crate::support::{add, kind_and_completion, orb, orb_with, served, with_short_timeout};

/// Returns a server that handles its connections, one after the other, by these scripts.
fn scripted<const N: usize>(scripts: [fn(TcpStream); N]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for script in scripts {
            match listener.accept() {
                Ok((stream, _)) => script(stream),
                Err(_) => return,
            }
        }
    });
    address
}

fn read_request(stream: &mut TcpStream) -> u32 {
    let mut octets = [0; 4096];
    let n = stream.read(&mut octets).expect("the request arrives");
    assert!(n > 16, "a request");
    u32::from_le_bytes([octets[12], octets[13], octets[14], octets[15]])
}

fn answer_once(mut stream: TcpStream) {
    let id = read_request(&mut stream);
    stream
        .write_all(&reply(id, 7))
        .expect("the client is there");
}

#[test]
fn nobody_there_is_transient_and_not_completed() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
    let object = object_at(&orb(), closed.expect("a free port"));
    let exception = add(&object, 1, 1).expect_err("no server listens");
    assert_eq!(
        exception,
        SystemException::no(Transient, minor::NO_USABLE_PROFILE)
    );
}

#[test]
fn a_server_killed_during_the_call_is_comm_failure_maybe_completed() {
    let address = scripted([|mut stream| {
        read_request(&mut stream);
    }]);
    let result = add(&object_at(&orb(), address), 1, 1);
    assert_eq!(
        kind_and_completion(result),
        (CommFailure, CompletionStatus::Maybe)
    );
}

#[test]
fn a_reply_cut_short_is_comm_failure() {
    let address = scripted([|mut stream| {
        let id = read_request(&mut stream);
        stream
            .write_all(&reply(id, 7)[..20])
            .expect("the client is there");
    }]);
    let result = add(&object_at(&orb(), address), 1, 1);
    assert_eq!(
        kind_and_completion(result),
        (CommFailure, CompletionStatus::Maybe)
    );
}

#[test]
fn a_server_that_never_answers_is_timeout() {
    let server = raw_server(Peer::until_the_end);
    let object = object_at(&orb(), server.address);
    let result = with_short_timeout(&object, |hasty| add(hasty, 1, 1));
    assert_eq!(
        kind_and_completion(result),
        (Timeout, CompletionStatus::Maybe)
    );
}

#[test]
fn a_server_that_drips_its_reply_is_timeout_all_the_same() {
    let server = raw_server(|mut peer: Peer| {
        let Some((id, _)) = peer.request() else {
            return;
        };
        // It would take longer than any time-out.
        for octet in wide_reply(id, 7, 1 << 20) {
            if peer.stream.write_all(&[octet]).is_err() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    });
    let object = object_at(&orb(), server.address);
    let result = with_short_timeout(&object, |hasty| add(hasty, 1, 1));
    assert_eq!(
        kind_and_completion(result),
        (Timeout, CompletionStatus::Maybe)
    );
}

#[test]
fn after_a_timeout_the_next_call_has_a_fresh_connection() {
    let server = raw_server(|mut peer: Peer| match peer.number {
        0 => {
            peer.request();
            // Until the client ends the connection.
            peer.until_the_end();
        }
        _ => peer.answer_all(),
    });
    let orb = orb();
    let object = object_at(&orb, server.address);
    let late = with_short_timeout(&object, |hasty| add(hasty, 1, 1));
    assert_eq!(kind_and_completion(late).0, Timeout);
    assert_eq!(add(&object, 1, 1), Ok(2));
}

#[test]
fn an_orderly_close_is_no_failure() {
    let address = scripted([
        |mut stream: TcpStream| {
            read_request(&mut stream);
            stream
                .write_all(CLOSE_CONNECTION)
                .expect("the client is there");
        },
        answer_once,
    ]);
    assert_eq!(add(&object_at(&orb(), address), 1, 1), Ok(7));
}

#[test]
fn a_server_that_always_closes_is_transient() {
    fn close(mut stream: TcpStream) {
        read_request(&mut stream);
        let _ = stream.write_all(CLOSE_CONNECTION);
    }
    let address = scripted([close; 8]);
    let result = add(&object_at(&orb(), address), 1, 1);
    assert_eq!(
        kind_and_completion(result),
        (Transient, CompletionStatus::No)
    );
}

#[test]
fn a_close_that_came_with_the_reply_is_seen_at_the_next_call() {
    let address = scripted([
        |mut stream: TcpStream| {
            let id = read_request(&mut stream);
            let both = [&reply(id, 7), CLOSE_CONNECTION].concat();
            stream.write_all(&both).expect("the client is there");
        },
        answer_once,
    ]);
    let object = object_at(&orb(), address);
    assert_eq!(add(&object, 1, 1), Ok(7));
    assert_eq!(add(&object, 1, 1), Ok(7));
}

#[test]
fn replies_to_other_requests_are_passed_over() {
    let address = scripted([|mut stream| {
        let id = read_request(&mut stream);
        let both = [reply(id + 5, 1), reply(id, 7)].concat();
        stream.write_all(&both).expect("the client is there");
    }]);
    assert_eq!(add(&object_at(&orb(), address), 1, 1), Ok(7));
}

#[test]
fn rubbish_for_a_reply_is_told_as_such() {
    for (rubbish, kind) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], Marshal),
        (
            b"GIOP\x01\x02\x01\x01\x04\x00\x00\x00\x00\x00\x00\x00",
            Marshal,
        ),
        // An announced length of four gibibytes.
        (
            b"GIOP\x01\x02\x01\x01\xff\xff\xff\xff\x00\x00\x00\x00",
            ImpLimit,
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            read_request(&mut stream);
            stream.write_all(rubbish).expect("the client is there");
            let _ = stream.read(&mut [0; 16]);
        });
        let result = add(&object_at(&orb(), address), 1, 1);
        assert_eq!(kind_and_completion(result), (kind, CompletionStatus::Maybe));
        server.join().expect("the script ran");
    }
}

#[test]
fn a_forward_to_itself_ends() {
    // `corbaloc` keys are forwarded to the registered reference: here with the same key again.
    let s = served();
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{}/Loop", profile.port);
    let circle = s.client.string_to_object(&url).expect("a correct URL");
    s.server
        .register_initial_reference("Loop", &circle)
        .expect("it is free");
    let exception = add(&circle, 1, 1).expect_err("a loop");
    assert_eq!(exception.minor, minor::FORWARD_LOOP);
}

#[test]
fn a_wrong_key_is_object_not_exist() {
    let s = served();
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let object = object_at(&s.client, SocketAddr::from(([127, 0, 0, 1], profile.port)));
    assert_eq!(
        kind_and_completion(add(&object, 1, 1)),
        (ObjectNotExist, CompletionStatus::No)
    );
}

#[test]
fn a_server_that_went_away_in_order_is_transient_and_its_successor_serves() {
    let s = served();
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    s.server
        .shutdown(true)
        .expect("it is not called by a servant");
    let result = add(&s.object, 1, 1);
    assert_eq!(
        kind_and_completion(result),
        (Transient, CompletionStatus::No)
    );
}

#[test]
fn oneway_calls_to_nobody_say_so() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
    let orb = orb_with(|config| config.connect_timeout = Duration::from_secs(1));
    let object = object_at(&orb, closed.expect("a free port"));
    let result = object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()));
    assert_eq!(
        kind_and_completion(result),
        (Transient, CompletionStatus::No)
    );
}
