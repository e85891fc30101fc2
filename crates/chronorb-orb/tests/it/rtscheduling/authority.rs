//! The peers that may cancel a distributable thread.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc;

use chronorb_cdr::Frame;
use chronorb_giop::{
    IiopProfile, MessageType, RequestHeader, ResponseFlags, SchedulingContext, ServiceContext,
    Target, Version, contexts, encode_request, finish_message, start_message,
};
use chronorb_orb::poa::{AuthorizationRequest, ObjectKeys, Policy};
use chronorb_orb::rtscheduling::{Guid, ThreadState};
use chronorb_orb::{Object, SystemException};

use super::nodes::Node;
use crate::support::adapters::named;
use crate::support::{Latch, PATIENCE};

const CANCELLED: &str = "IDL:omg.org/CORBA/THREAD_CANCELLED:1.0";
const NOT_THERE: &str = "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0";
const NOT_PERMITTED: &str = "IDL:omg.org/CORBA/NO_PERMISSION:1.0";
const THREAD: Guid = Guid([7; 16]);

/// A client that writes its messages itself, and sends them in a distributable thread.
struct Client {
    stream: TcpStream,
    thread: Guid,
    sent: u32,
}

impl Client {
    fn of(object: &Object, thread: Guid) -> Self {
        let profile = profile_of(object);
        let stream = TcpStream::connect((profile.host.as_str(), profile.port));
        let stream = stream.expect("it listens");
        let limited = stream.set_read_timeout(Some(PATIENCE));
        limited.expect("a socket has a time-out");
        Self {
            stream,
            thread,
            sent: 0,
        }
    }

    /// Sends a request of the distributable thread. Returns its id.
    fn send(&mut self, key: &[u8], operation: &[u8], cancelled: bool) -> u32 {
        self.sent += 1;
        let context = SchedulingContext {
            guid: self.thread.0,
            cancelled,
            ..SchedulingContext::default()
        };
        let context = ServiceContext {
            id: contexts::SCHEDULING,
            data: &context.encode(),
        };
        let header = RequestHeader {
            request_id: self.sent,
            response: ResponseFlags::SyncWithTarget,
            target: Target::Key(key),
            operation,
            contexts: &[context],
        };
        let mut frame = Frame::new(512, usize::MAX);
        let version = Version::V1_2;
        let mut e = start_message(&mut frame, version, MessageType::Request).expect("room");
        encode_request(&mut e, version, &header).expect("room");
        finish_message(&mut frame);
        self.stream
            .write_all(frame.as_slice())
            .expect("it is connected");
        self.sent
    }

    /// Receives the reply to a request. Returns the id of its exception.
    fn exception(&mut self, request_id: u32) -> String {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header).expect("it replies");
        let size = u32::from_le_bytes(header[8..].try_into().expect("four octets"));
        let mut body = vec![0; size as usize];
        self.stream.read_exact(&mut body).expect("it replies");
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(4)), (request_id, 2), "a system exception");
        // After the empty list of contexts, aligned to 8 octets from the start of the message.
        let id = &body[16..][..word(12) as usize - 1];
        String::from_utf8(id.to_vec()).expect("it is text")
    }

    /// Cancels the thread by a request for the object of a key. Returns the id of the exception in
    /// the reply.
    fn cancel(&mut self, key: &[u8]) -> String {
        let request = self.send(key, b"_non_existent", true);
        self.exception(request)
    }
}

fn profile_of(object: &Object) -> IiopProfile {
    IiopProfile::decode(&object.ior().profiles[0].data).expect("it is IIOP")
}

#[test]
fn only_the_origin_of_a_thread_cancels_it_and_only_as_it_may_call() {
    let server = Node::new();
    let gate = Arc::new(Latch::default());
    let (arrived, arrival) = mpsc::channel();
    let held = gate.clone();
    let object = server.serve(move |_| {
        let _ = arrived.send(());
        held.reach(1);
        Ok(())
    });
    let root = server.orb.root_poa().expect("it is there");
    let poa = |name, policies: &[Policy]| {
        let made = root.create_poa(name, Some(root.manager()), policies);
        made.expect("the name is free")
    };
    let refusing = poa("refusing", &[]);
    let refused = refusing.serve(named("another")).expect("it activates");
    let set = refusing.set_authorizer(|_: &AuthorizationRequest<'_>| false);
    set.expect("it is the first");
    let authentic = poa(
        "authentic",
        &[Policy::ObjectKeys(ObjectKeys::Authenticated)],
    );
    let authentic = authentic.serve(named("another")).expect("it activates");

    let key = profile_of(&object).object_key;
    let mut client = Client::of(&object, THREAD);
    let call = client.send(&key, b"go", false);
    arrival.recv_timeout(PATIENCE).expect("the request arrives");
    let current = server.orb.scheduling_current();
    let thread = current.lookup(THREAD).expect("it is here");

    let gone = {
        let object = root.serve(named("gone")).expect("it activates");
        let id = root.reference_to_id(&object).expect("it is of this POA");
        root.deactivate_object(&id).expect("it is active");
        object
    };
    let [refused, gone, authentic] =
        [refused, gone, authentic].map(|it| profile_of(&it).object_key);
    let forged = (0..authentic.len()).map(|at| {
        let mut forged = authentic.clone();
        forged[at] ^= 1;
        ("forged", forged, NOT_THERE)
    });
    let without_effect = [
        ("no key", b"nothing".to_vec(), NOT_THERE),
        ("no object", gone, NOT_THERE),
        ("refused", refused, NOT_PERMITTED),
    ];
    for (what, key, exception) in without_effect.into_iter().chain(forged) {
        assert_eq!(client.cancel(&key), exception, "{what}");
        assert_eq!(thread.state(), ThreadState::Active, "{what}");
    }
    let mut other = Client::of(&object, THREAD);
    // The answer does not tell whether the thread is here.
    assert_eq!(other.cancel(&key), CANCELLED);
    assert_eq!(thread.state(), ThreadState::Active, "of another connection");

    assert_eq!(client.cancel(&key), CANCELLED);
    assert_eq!(thread.state(), ThreadState::Cancelled);
    gate.set(1);
    assert_eq!(client.exception(call), CANCELLED);
}

#[test]
fn a_thread_that_began_here_is_cancelled_by_no_peer() {
    let server = Node::new();
    let object = server.serve(|_| Ok::<(), SystemException>(()));
    let current = server.orb.scheduling_current();
    let _segment = current.segment("root", None, None).expect("it begins");
    let own = current.id().expect("it has begun");
    let mut client = Client::of(&object, own);
    assert_eq!(client.cancel(&profile_of(&object).object_key), CANCELLED);
    let thread = current.lookup(own).expect("it is here");
    assert_eq!(thread.state(), ThreadState::Active);
}
