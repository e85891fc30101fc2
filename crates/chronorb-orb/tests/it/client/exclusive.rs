//! Connections of a client are exclusive: to a thread, and to a priority.

use chronorb_orb::rtcorba::Priority;
use chronorb_orb::{Object, Orb};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{add, orb};

/// Returns a server that answers every request with 7 and counts its connections.
fn counting_server() -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                let Ok(mut stream) = stream else { return };
                while answer(&mut stream) {}
            });
        }
    });
    (address, count)
}

/// Answers one request with 7. Returns whether there was one.
fn answer(stream: &mut TcpStream) -> bool {
    let mut octets = [0; 4096];
    let Ok(16..) = stream.read(&mut octets) else {
        return false;
    };
    // GIOP 1.0 and a request without contexts: the id follows their number.
    let mut reply = b"GIOP\x01\x00\x01\x01\x10\x00\x00\x00\x00\x00\x00\x00".to_vec();
    reply.extend_from_slice(&octets[16..20]);
    reply.extend_from_slice(&[0, 0, 0, 0, 7, 0, 0, 0]);
    stream.write_all(&reply).is_ok()
}

fn object_at(orb: &Orb, address: SocketAddr) -> Object {
    let url = format!("corbaloc::{address}/Seven");
    orb.string_to_object(&url).expect("a correct URL")
}

#[test]
fn calls_of_one_thread_share_a_connection() {
    let (address, connections) = counting_server();
    let orb = orb();
    for _ in 0..3 {
        // Another reference to the same server.
        assert_eq!(add(&object_at(&orb, address), 1, 1), Ok(7));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[test]
fn an_orb_that_was_shut_down_leaves_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        answer(&mut stream);
        // Until the client closes; for longer than the test has patience, if it never does.
        stream
            .set_read_timeout(Some(crate::support::PATIENCE))
            .expect("not zero");
        stream.read(&mut [0; 16]).ok()
    });
    let orb = orb();
    assert_eq!(add(&object_at(&orb, address), 1, 1), Ok(7));
    orb.shutdown(true).expect("it is not called by a servant");
    assert_eq!(server.join().expect("the script ran"), Some(0));
}

#[test]
fn each_thread_has_its_own() {
    let (address, connections) = counting_server();
    let orb = orb();
    let object = object_at(&orb, address);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| assert_eq!(add(&object, 1, 1), Ok(7)));
        }
    });
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[test]
fn each_priority_of_a_thread_has_its_own() {
    let (address, connections) = counting_server();
    let orb = orb();
    let object = object_at(&orb, address);
    for _ in 0..2 {
        for value in [0, 1000, 2000] {
            let priority = Priority::new(value).expect("not negative");
            orb.rt_current()
                .set_priority(priority)
                .expect("it has a native priority");
            assert_eq!(add(&object, 1, 1), Ok(7));
        }
    }
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}
