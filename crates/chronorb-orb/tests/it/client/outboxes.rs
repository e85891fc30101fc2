//! Outboxes: one encoded body for many objects, and peers that take nothing.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_cdr::{Encoder, Endian, Frame};
use chronorb_giop::{LocateReplyHeader, LocateStatus, MessageType, Protocol, Version};
use chronorb_giop::{encode_locate_reply, finish_message, start_message};
use chronorb_orb::outbox::{Delivery, Outbox, OutboxLimits, OutboxOverflow, OutboxThread};
use chronorb_orb::{
    BodyForm, EncodedBody, Incident, Operation, Orb, SystemException, SystemExceptionKind,
};

use chronorb_orb::rtcorba::Priority;

use chronorb_rt::{Deadline, Gate};

use crate::support::adapters::until;
use crate::support::raw_server::object_at;
use crate::support::{PATIENCE, add, orb, orb_with, served};

const NOTE: Operation = Operation::oneway("note");

fn body(octets: usize) -> EncodedBody {
    body_in(BodyForm::default(), octets)
}

fn body_in(form: BodyForm, octets: usize) -> EncodedBody {
    let octets = vec![7; octets];
    let mut body = EncodedBody::in_form(form);
    body.renew(&|e| e.write_octet_seq(&octets))
        .expect("there is memory");
    body
}

fn limits(requests: usize, overflow: OutboxOverflow) -> OutboxLimits {
    OutboxLimits {
        requests,
        overflow,
        ..OutboxLimits::default()
    }
}

/// An outbox to a peer that reads only when it is asked to.
struct Stuck {
    client: Orb,
    outbox: Outbox,
    peer: TcpStream,
}

impl Stuck {
    fn new(limits: OutboxLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let client = orb_with(|config| config.max_message_size = 1 << 30);
        let object = object_at(&client, address);
        let answers = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("it connects");
            peer.set_read_timeout(Some(PATIENCE)).expect("a socket");
            let request = message(&mut peer);
            assert_eq!(request[7], 3, "it asks for the object");
            let id = u32::from_ne_bytes(request[12..16].try_into().expect("four"));
            let mut frame = Frame::new(64, 64);
            let kind = MessageType::LocateReply;
            let protocol = Protocol::from(Version::V1_2);
            let mut e = start_message(&mut frame, protocol, kind).expect("room");
            let header = LocateReplyHeader {
                request_id: id,
                status: LocateStatus::ObjectHere,
            };
            encode_locate_reply(&mut e, protocol, &header).expect("room");
            finish_message(&mut frame);
            peer.write_all(frame.as_slice()).expect("it is connected");
            peer
        });
        let thread = OutboxThread::start(&client, None).expect("a thread starts");
        let outbox = thread.open(&object, &NOTE, limits).expect("it connects");
        Self {
            client,
            outbox,
            peer: answers.join().expect("no panic"),
        }
    }

    /// Puts a body in that has this number of octets.
    fn put(&self, octets: usize) -> Result<Delivery, SystemException> {
        self.outbox.put(&body_in(self.outbox.form(), octets))
    }

    /// Puts bodies of 256 KiB in until one has to wait. Returns their number.
    fn fill(&self) -> u64 {
        for number in 1..10_000 {
            match self.put(256 << 10) {
                Ok(Delivery::Sent) => {}
                other => {
                    assert_eq!(other, Ok(Delivery::Waits));
                    return number;
                }
            }
        }
        panic!("the peer's buffers have no end");
    }

    /// Reads this number of requests. Returns the lengths of the octets that they carry.
    fn read(&mut self, number: u64) -> Vec<u32> {
        let mut lengths = Vec::new();
        for _ in 0..number {
            let message = message(&mut self.peer);
            assert_eq!(message[7], 0, "it is a request");
            let operation = message.windows(5).any(|name| name == b"note\0");
            assert!(operation, "it calls the operation");
            lengths.push(length_of_octets(&message));
        }
        lengths
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.client.shutdown(false);
    }
}

/// Reads a message of GIOP.
fn message(peer: &mut TcpStream) -> Vec<u8> {
    let mut message = vec![0; 12];
    peer.read_exact(&mut message).expect("a header arrives");
    assert_eq!(message[..6], *b"GIOP\x01\x02");
    let size = u32::from_ne_bytes(message[8..12].try_into().expect("four"));
    message.resize(12 + size as usize, 0);
    peer.read_exact(&mut message[12..]).expect("all arrives");
    message
}

/// The length of the octets of [`body`] at the end of a message: they are the only sevens.
fn length_of_octets(message: &[u8]) -> u32 {
    let sevens = message
        .iter()
        .rev()
        .take_while(|octet| **octet == 7)
        .count();
    let at = message.len() - sevens - 4;
    assert_eq!(at % 8, 0, "the body is aligned");
    let length = u32::from_ne_bytes(message[at..at + 4].try_into().expect("four"));
    assert_eq!(length as usize, sevens);
    length
}

#[test]
fn one_body_serves_many_objects() {
    let servers = [served(), served(), served()];
    let client = orb();
    let thread = OutboxThread::start(&client, None).expect("a thread starts");
    let objects = servers.each_ref().map(|s| {
        let text = s.server.object_to_string(&s.object);
        client.string_to_object(&text).expect("it reads")
    });
    let open = |object| thread.open(object, &NOTE, OutboxLimits::default());
    let outboxes = objects
        .each_ref()
        .map(|object| open(object).expect("it connects"));
    let mut shared = EncodedBody::empty();
    for octets in [0, 1, 7, 100_000, 3] {
        let octets = vec![7; octets];
        let arguments = |e: &mut Encoder<'_>| e.write_octet_seq(&octets);
        shared.renew(&arguments).expect("there is memory");
        for (object, outbox) in objects.iter().zip(&outboxes) {
            outbox.put(&shared).expect("it is connected");
            let sent = object.invoke_oneway(&NOTE, &|e| shared.write(e, &arguments));
            assert_eq!(sent, Ok(()));
        }
    }
    for ((server, object), outbox) in servers.iter().zip(&objects).zip(&outboxes) {
        assert_eq!(outbox.flush(PATIENCE), Ok(true));
        assert_eq!(outbox.status().sent, 5);
        let notes = || server.probe.notes.load(Ordering::Relaxed);
        until("they never came", || notes() == 10);
        assert_eq!(add(object, 1, 2), Ok(3));
    }
    drop(outboxes);
    client.shutdown(true).expect("no servant calls it");
}

#[test]
fn a_target_of_another_form_gets_its_own_encoding() {
    let shared = body(3);
    for (prefix, text) in [(4, shared.as_slice()), (0, &[][..])] {
        let mut frame = Frame::new(64, 64);
        let mut e = Encoder::new(&mut frame, Endian::NATIVE)
            .with_text(Version::V1_2.text(chronorb_cdr::CharSet::Utf8));
        e.write_octets(&vec![0; prefix]).expect("room");
        let written = shared.write(&mut e, &|e| e.write_u8(9));
        assert_eq!(written, Ok(()));
        let expected = if prefix == 4 {
            &[9][..]
        } else {
            shared.as_slice()
        };
        assert_eq!(&frame.as_slice()[prefix..], expected, "{text:?}");
    }
}

#[test]
fn a_stuck_peer_loses_its_oldest_requests_and_blocks_nobody() {
    let mut stuck = Stuck::new(limits(4, OutboxOverflow::DropOldest));
    let before = stuck.fill();
    for octets in 1..=3 {
        assert_eq!(stuck.put(octets), Ok(Delivery::Waits));
    }
    // The first one was sent in part, so it stays.
    for octets in 4..=10 {
        assert_eq!(stuck.put(octets), Ok(Delivery::Displaced(1)));
    }
    let status = stuck.outbox.status();
    assert_eq!((status.waiting, status.lost), (4, 7));
    assert!(status.stalled.is_some());
    assert_eq!(stuck.outbox.flush(Duration::ZERO), Ok(false));
    assert_eq!(stuck.read(before), vec![256 << 10; before as usize]);
    assert_eq!(stuck.read(3), [8, 9, 10]);
    assert_eq!(stuck.outbox.flush(PATIENCE), Ok(true));
    let status = stuck.outbox.status();
    assert_eq!(
        (status.waiting, status.sent, status.lost),
        (0, before + 3, 7)
    );
    assert_eq!(status.stalled, None);
}

#[test]
fn a_stuck_peer_loses_its_newest_requests() {
    let mut stuck = Stuck::new(limits(3, OutboxOverflow::DropNewest));
    let before = stuck.fill();
    for (octets, delivery) in [
        (1, Delivery::Waits),
        (2, Delivery::Waits),
        (3, Delivery::Lost),
        (4, Delivery::Lost),
    ] {
        assert_eq!(stuck.put(octets), Ok(delivery));
    }
    stuck.read(before);
    assert_eq!(stuck.read(2), [1, 2]);
    assert_eq!(stuck.outbox.flush(PATIENCE), Ok(true));
    assert_eq!(stuck.put(5), Ok(Delivery::Sent));
    assert_eq!(stuck.read(1), [5]);
    assert_eq!(stuck.outbox.status().lost, 2);
}

#[test]
fn an_owner_is_called_when_there_is_room_again() {
    let mut stuck = Stuck::new(limits(2, OutboxOverflow::DropNewest));
    let calls = Arc::new(Gate::new(0));
    let its = calls.clone();
    stuck.outbox.on_room(move || its.advance());
    assert!(stuck.outbox.has_room(usize::MAX));
    let before = stuck.fill();
    assert!(stuck.outbox.has_room(usize::MAX), "one waits of two");
    assert!(!stuck.outbox.has_room(1), "its octets are the bound");
    assert_eq!(stuck.put(1), Ok(Delivery::Waits));
    assert!(!stuck.outbox.has_room(usize::MAX));
    stuck.read(before + 1);
    loop {
        let seen = calls.get();
        if stuck.outbox.has_room(1) {
            break;
        }
        assert_ne!(calls.wait_while(seen, Deadline::after(PATIENCE)), seen);
    }
    assert_eq!(stuck.outbox.status().lost, 0);
}

#[test]
fn a_caller_that_may_wait_does_so_until_its_deadline() {
    let mut stuck = Stuck::new(limits(1, OutboxOverflow::Block(Duration::ZERO)));
    stuck.fill();
    assert_eq!(stuck.put(1), Ok(Delivery::Lost));
    drop(stuck);

    stuck = Stuck::new(limits(1, OutboxOverflow::Block(PATIENCE)));
    let before = stuck.fill();
    std::thread::scope(|scope| {
        let waiting = &stuck;
        let waiter = scope.spawn(|| waiting.put(1));
        let mut peer = &stuck.peer;
        let mut octets = vec![0; 1 << 16];
        let mut left = before as usize * (256 << 10);
        while left > 0 {
            let read = peer.read(&mut octets).expect("octets arrive");
            left = left.saturating_sub(read);
        }
        let delivery = waiter.join().expect("no panic");
        assert!(matches!(delivery, Ok(Delivery::Sent | Delivery::Waits)));
    });
}

#[test]
fn the_end_of_the_peer_ends_the_outbox() {
    let stuck = Stuck::new(OutboxLimits::default());
    stuck.fill();
    assert_eq!(stuck.put(1), Ok(Delivery::Waits));
    let lost = || {
        let incidents = stuck.client.snapshot().incidents;
        let mut counts = incidents.iter();
        let lost = counts.find(|(incident, _)| *incident == Incident::LostOneways);
        lost.expect("it has a count").1
    };
    let linger = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(&stuck.peer, linger).expect("it is a socket");
    let peer = stuck.peer.try_clone().expect("a descriptor is left");
    peer.shutdown(std::net::Shutdown::Both).expect("it is open");
    until("its thread never noticed", || {
        stuck.outbox.status().has_ended
    });
    assert_eq!(stuck.outbox.status().lost, 2);
    // The thread of the outbox notes the loss after it has ended the outbox.
    until("the loss is never noted", || lost() > 0);
    assert_eq!(lost(), 1, "it is one incident");
    let put = stuck.put(1).expect_err("it has ended");
    assert_eq!(put.kind, SystemExceptionKind::CommFailure);
    let flushed = stuck.outbox.flush(PATIENCE).expect_err("it has ended");
    assert_eq!(flushed.kind, SystemExceptionKind::CommFailure);
}

#[test]
fn the_end_of_the_orb_ends_its_outboxes() {
    let s = served();
    let client = orb();
    let text = s.server.object_to_string(&s.object);
    let object = client.string_to_object(&text).expect("it reads");
    let thread = OutboxThread::start(&client, None).expect("a thread starts");
    let outbox = thread.open(&object, &NOTE, OutboxLimits::default());
    let outbox = Arc::new(outbox.expect("it connects"));
    assert_eq!(outbox.put(&EncodedBody::empty()), Ok(Delivery::Sent));
    client.shutdown(true).expect("no servant calls it");
    let put = outbox.put(&EncodedBody::empty()).expect_err("it has ended");
    assert_eq!(put.kind, SystemExceptionKind::CommFailure);
    let opened = thread.open(&object, &NOTE, OutboxLimits::default());
    assert_eq!(
        opened.expect_err("it has ended").kind,
        SystemExceptionKind::BadInvOrder
    );
}

#[test]
fn an_object_that_does_not_exist_has_no_outbox() {
    let s = served();
    let missing = s.server.root_poa().expect("it exists");
    let missing = missing.serve(crate::support::ProbeSkeleton(s.probe.clone()));
    let missing = missing.expect("it activates");
    let text = s.server.object_to_string(&missing);
    let root = s.server.root_poa().expect("it exists");
    let id = root.reference_to_id(&missing).expect("it is its object");
    root.deactivate_object(&id).expect("it is active");
    let object = s.client.string_to_object(&text).expect("it reads");
    let thread = OutboxThread::start(&s.client, None).expect("a thread starts");
    let opened = thread.open(&object, &NOTE, OutboxLimits::default());
    assert_eq!(
        opened.expect_err("there is none").kind,
        SystemExceptionKind::ObjectNotExist
    );
}

#[test]
fn bodies_that_do_not_fit_are_refused() {
    let s = served();
    let client = orb_with(|config| config.max_message_size = 1000);
    let text = s.server.object_to_string(&s.object);
    let object = client.string_to_object(&text).expect("it reads");
    let thread = OutboxThread::start(&client, None).expect("a thread starts");
    let outbox = thread.open(&object, &NOTE, OutboxLimits::default());
    let outbox = outbox.expect("it connects");
    let put = outbox.put(&body(1000)).expect_err("it is too large");
    assert_eq!(put.kind, SystemExceptionKind::ImpLimit);
    assert_eq!(outbox.put(&body(500)), Ok(Delivery::Sent));
    let latin = Stuck::new(OutboxLimits::default()).outbox.form();
    assert_ne!(latin, outbox.form(), "its server names no code sets");
    let put = outbox
        .put(&body_in(latin, 1))
        .expect_err("its text may differ");
    assert_eq!(put.kind, SystemExceptionKind::BadParam);
    drop(outbox);
    client.shutdown(true).expect("no servant calls it");
}

#[test]
fn the_examples_of_the_book_work() -> Result<(), SystemException> {
    let s = served();
    let orb = orb();
    let text = s.server.object_to_string(&s.object);
    let consumer = orb.string_to_object(&text).expect("it reads");
    let consumers = [consumer.clone(), consumer.clone()];
    let sample = [1, 2, 3];
    let priority = Priority::MIN;

    const PUSH: Operation = Operation::oneway("push");
    let arguments = |e: &mut Encoder<'_>| e.write_octet_seq(&sample);
    let body = EncodedBody::new(&arguments)?;
    for consumer in &consumers {
        consumer.invoke_oneway(&PUSH, &|e| body.write(e, &arguments))?;
    }

    let thread = OutboxThread::start(&orb, Some(priority))?;
    let limits = OutboxLimits {
        requests: 16,
        octets: 1 << 20,
        overflow: OutboxOverflow::DropOldest,
    };
    let outbox = thread.open(&consumer, &PUSH, limits)?;
    match outbox.put(&body)? {
        Delivery::Sent | Delivery::Waits => {}
        Delivery::Displaced(number) => println!("{number} older requests are lost"),
        Delivery::Lost => println!("there is no room"),
    }

    assert_eq!(outbox.flush(PATIENCE), Ok(true));
    assert_eq!(outbox.status().sent, 1);
    drop(outbox);
    orb.shutdown(true).expect("no servant calls it");
    Ok(())
}
