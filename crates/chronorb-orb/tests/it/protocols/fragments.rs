//! Messages in fragments: messages longer than `-ORBFragmentSize` are sent in parts by GIOP 1.2,
//! and are reassembled on the other side.

use chronorb_cdr::{Arena, Encoder, Endian, Frame};
use chronorb_giop::fragments::{Bounds, Reassembly};
use chronorb_giop::{
    HEADER_LEN, IiopProfile, MessageHeader, MessageType, ReplyHeader, RequestHeader, ResponseFlags,
    Target, Version, encode_request, finish_message, start_message,
};
use chronorb_orb::{Object, Orb};
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{PATIENCE, ServedProbe, call, orb_with, served_by};

fn orb_that_sends(fragment_size: usize) -> Orb {
    orb_with(|config| config.fragment_size = fragment_size)
}

fn filling(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

fn assert_echoed(object: &Object, len: usize) {
    let octets = filling(len);
    let same = call(object, "octets", &|e| e.write_octet_seq(&octets), |d| {
        Ok(d.read_octet_seq()? == octets)
    });
    assert_eq!(same, Ok(true), "{len} octets");
}

#[test]
fn messages_of_any_length_go_in_fragments_of_any_size_both_ways() {
    for size in [32, 44, 100, 1024, 1 << 20] {
        let s = served_by(orb_that_sends(size));
        let client = orb_that_sends(size);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        for len in (0..300).chain([5_000, 60_000, 70_000]) {
            assert_echoed(&object, len);
        }
        client.shutdown(false).expect("it can be shut down");
    }
}

#[test]
fn one_side_may_send_fragments_and_the_other_not() {
    let s = served_by(orb_that_sends(512));
    assert_echoed(&s.object, 100_000);
}

/// Returns a manual connection.
fn connect(s: &ServedProbe) -> TcpStream {
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let stream = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

/// Returns the request for an echo of `octets`.
fn request(s: &ServedProbe, version: Version, request_id: u32, octets: &[u8]) -> Vec<u8> {
    let profile = IiopProfile::decode(&s.object.ior().profiles[0].data).expect("our own");
    let mut frame = Frame::new(1024, 16 << 20);
    let mut e = start_message(&mut frame, version, MessageType::Request).expect("it fits");
    let header = RequestHeader {
        request_id,
        response: ResponseFlags::SyncWithTarget,
        target: Target::Key(&profile.object_key),
        operation: b"octets",
        contexts: &[],
    };
    let body = |e: &mut Encoder<'_>| {
        if version >= Version::V1_2 {
            e.align(8)?;
        }
        e.write_octet_seq(octets)
    };
    encode_request(&mut e, version, &header).expect("it fits");
    body(&mut e).expect("it fits");
    finish_message(&mut frame);
    frame.as_slice().to_vec()
}

/// Returns the next message in its wire form.
fn receive(stream: &mut TcpStream) -> (MessageHeader, Vec<u8>) {
    let mut octets = vec![0; HEADER_LEN];
    stream.read_exact(&mut octets).expect("a header");
    let header = MessageHeader::parse(&octets).expect("the server speaks GIOP");
    octets.resize(header.message_len(), 0);
    stream
        .read_exact(&mut octets[HEADER_LEN..])
        .expect("a body");
    (header, octets)
}

#[test]
fn fragments_are_no_greater_than_asked_for_and_older_versions_have_none() {
    let s = served_by(orb_that_sends(1000));
    let octets = filling(10_000);
    let mut peer = connect(&s);
    for version in [Version::V1_0, Version::V1_1] {
        peer.write_all(&request(&s, version, 1, &octets))
            .expect("it is there");
        let (header, whole) = receive(&mut peer);
        assert!(!header.more_fragments && whole.len() > 10_000);
    }
    peer.write_all(&request(&s, Version::V1_2, 2, &octets))
        .expect("it is there");
    let mut parts = 0;
    loop {
        let (header, part) = receive(&mut peer);
        parts += 1;
        assert!(part.len() <= 1000);
        if !header.more_fragments {
            break;
        }
        assert!(part.len().is_multiple_of(8));
    }
    assert_eq!(parts, 11);
}

#[test]
fn replies_of_several_threads_on_one_connection_come_whole() {
    const REQUESTS: u32 = 50;
    let s = served_by(orb_that_sends(64));
    let octets = filling(20_000);
    let mut peer = connect(&s);
    let mut sender = peer.try_clone().expect("a descriptor is left");
    let requests: Vec<u8> = (0..REQUESTS)
        .flat_map(|id| request(&s, Version::V1_2, id, &octets))
        .collect();
    let sending = std::thread::spawn(move || sender.write_all(&requests));
    let mut reassembly = Reassembly::new(Bounds::default());
    let arena = Arena::new(0);
    let mut answered: Vec<u32> = Vec::new();
    while answered.len() < REQUESTS as usize {
        let (_, part) = receive(&mut peer);
        let Some(mut joined) = reassembly.push(&part).expect("parts of replies") else {
            continue;
        };
        let mut d = joined.frame.decoder(HEADER_LEN, Endian::NATIVE, &arena);
        let header = ReplyHeader::decode(&mut d, Version::V1_2).expect("a reply");
        assert_eq!(d.read_octet_seq(), Ok(octets.as_slice()));
        answered.push(header.request_id);
    }
    answered.sort_unstable();
    assert_eq!(answered, Vec::from_iter(0..REQUESTS));
    sending.join().expect("no panic").expect("it is there");
}
