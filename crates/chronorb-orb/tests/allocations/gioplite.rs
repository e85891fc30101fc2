//! Allocations of calls by GIOPlite: no more than by GIOP, none on a connection that threads share,
//! and none for an asynchronous call.

use std::io::Read;

use chronorb_giop::GiopLite;
use chronorb_giop::contexts::{GIOP_LITE, GIOP_LITE_DATA};
use chronorb_orb::{ConnectionStrategy, Object};
use chronorb_rt::{ThreadCounts, counts_of_others};

use crate::alone;
use crate::support::asynchronous::begin_add;
use crate::support::raw_server::{Peer, object_at, raw_server};
use crate::support::relay::{Relay, messages};
use crate::support::strategies::STRATEGIES;
use crate::support::{add, orb_with};

/// Returns the allocations of this thread and those of connections during the calls.
fn allocations_of(calls: impl Fn()) -> u64 {
    let others = counts_of_others();
    let own = ThreadCounts::of_this_thread();
    calls();
    let own = ThreadCounts::of_this_thread() - own;
    let others = counts_of_others() - others;
    own.allocations + others.allocations
}

/// Answers all requests in their own protocol, and agrees to GIOPlite wherever it is requested.
fn answer_all_by_either(mut peer: Peer) {
    let number = |octets: &[u8]| u32::from_ne_bytes(octets.try_into().expect("four"));
    let mut header = [0; GiopLite::HEADER_LEN];
    while let Ok(GiopLite::HEADER_LEN) = peer.stream.peek(&mut header) {
        if header.starts_with(b"GIOP") {
            let Some((id, (a, b))) = peer.request() else {
                return;
            };
            let asked = GIOP_LITE.to_ne_bytes();
            if !peer.body.windows(4).any(|octets| octets == asked) {
                peer.answer((id, (a, b)));
                continue;
            }
            // With one context.
            let mut octets = b"GIOP\x01\x02\x01\x01\x20\0\0\0".to_vec();
            for number in [id, 0, 1, GIOP_LITE, GIOP_LITE_DATA.len() as u32] {
                octets.extend_from_slice(&number.to_ne_bytes());
            }
            octets.extend_from_slice(&GIOP_LITE_DATA);
            octets.resize(40, 0);
            octets.extend_from_slice(&(a + b).to_ne_bytes());
            peer.send(&octets);
            continue;
        }
        peer.stream.read_exact(&mut header).expect("it is there");
        assert_eq!(header[4], 0, "a request");
        peer.body.resize(number(&header[..4]) as usize, 0);
        peer.stream.read_exact(&mut peer.body).expect("the rest");
        let (start, arguments) = peer.body.split_at(peer.body.len() - 8);
        let (a, b) = arguments.split_at(4);
        let mut octets = *b"\x0b\0\0\0\x01\0\0\0iiiirrrr";
        octets[8..12].copy_from_slice(&start[3..7]);
        octets[12..].copy_from_slice(&(number(a) + number(b)).to_ne_bytes());
        peer.send(&octets);
    }
}

fn call_and_wait(object: &Object) {
    for i in 0..500 {
        assert_eq!(add(object, i, 1), Ok(i + 1));
    }
}

fn begin_and_wait(object: &Object) {
    for i in 0..500 {
        let pending = begin_add(object, i, 1).expect("it begins");
        assert_eq!(pending.wait(), Ok(i + 1));
    }
}

#[test]
fn a_call_by_gioplite_allocates_nothing() {
    let _alone = alone();
    // Its threads are not counted.
    let server = raw_server(answer_all_by_either);
    for strategy in STRATEGIES {
        for (way, calls) in [
            ("waiting", &call_and_wait as &dyn Fn(&Object)),
            ("asynchronous", &begin_and_wait),
        ] {
            let client = orb_with(|config| {
                config.client_connection = strategy;
                config.giop_lite = true;
            });
            let object = object_at(&client, server.address);
            calls(&object);
            let allocations = allocations_of(|| calls(&object));
            assert_eq!(allocations, 0, "{strategy:?}, {way}");
        }
    }
}

#[test]
fn the_server_of_these_tests_speaks_gioplite() {
    let _alone = alone();
    let server = raw_server(answer_all_by_either);
    let relay = Relay::to(server.address);
    let client = orb_with(|config| {
        config.client_connection = ConnectionStrategy::Leader;
        config.giop_lite = true;
    });
    let object = object_at(&client, relay.address);
    for i in 0..3 {
        assert_eq!(add(&object, i, 1), Ok(i + 1));
    }
    let octets = &relay.records()[0].to_server;
    let lite = messages(octets).into_iter();
    let lite = lite.filter(|(_, message)| !message.starts_with(b"GIOP"));
    assert_eq!(lite.count(), 2);
}
