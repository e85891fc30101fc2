//! Memory use of many objects, and its release. This is a separate program, so that no other test
//! allocates meanwhile.

use std::sync::Arc;

use chronorb_orb::PendingReply;
use chronorb_orb::poa::ObjectId;
use chronorb_rt::live_octets;

use crate::alone;
use crate::support::adapters::{PERSISTENT, USER, ask, hex, id_teller, site, told};
use crate::support::asynchronous::{STRATEGIES, begin_add};
use crate::support::raw_server::{Peer, object_at, raw_server, wide_reply};
use crate::support::{Latch, orb_with};

#[test]
fn fifty_thousand_objects_are_found_and_leave_nothing_behind() {
    let _alone = alone();
    const OBJECTS: usize = 50_000;
    for policies in [vec![], vec![USER], vec![USER, PERSISTENT]] {
        let s = site();
        let poa = s.poa("many", &policies);
        let fill = || -> Vec<ObjectId> {
            (0..OBJECTS)
                .map(|n| {
                    if policies.is_empty() {
                        return poa.activate_object(id_teller()).expect("it is new");
                    }
                    let id = ObjectId::from(format!("object {n}").as_str());
                    poa.activate_object_with_id(&id, id_teller())
                        .expect("it is free");
                    id
                })
                .collect()
        };
        let clear = |ids: &[ObjectId]| {
            for id in ids {
                poa.deactivate_object(id).expect("it is active");
            }
            assert_eq!(poa.active_objects(), 0);
        };
        // A first round, so that tables and threads have their permanent memory.
        let ids = fill();
        let object = poa.id_to_reference(&ids[0]).expect("it is active");
        assert_eq!(ask(&object), told(&hex(ids[0].as_bytes())));
        clear(&ids);
        drop(ids);
        let before = live_octets();
        let ids = fill();
        assert_eq!(poa.active_objects(), OBJECTS);
        let full = live_octets();
        for id in &ids {
            let object = poa.id_to_reference(id).expect("it is active");
            assert_eq!(ask(&object), told(&hex(id.as_bytes())));
        }
        clear(&ids);
        drop(ids);
        let after = live_octets();
        let grown = full.saturating_sub(before);
        println!("{} octets for each object", grown / OBJECTS);
        assert!(
            after.saturating_sub(before) < grown / 100,
            "{before} octets, then {full}, then {after}"
        );
    }
}

#[test]
fn a_reference_that_is_only_kept_takes_little_more_than_its_octets() {
    let _alone = alone();
    const REFERENCES: usize = 10_000;
    let orb = orb_with(|_| {});
    let port = "127.0.0.1:2809".parse().expect("an address");
    let text = object_at(&orb, port).ior().to_string();
    let read = || orb.string_to_object(&text).expect("it reads");
    drop(read());
    let mut all = Vec::with_capacity(REFERENCES);
    // Threads of earlier tests may still end and release memory, which reduces the result.
    let each = (0..3).map(|_| {
        all.clear();
        let before = live_octets();
        all.extend((0..REFERENCES).map(|_| read()));
        live_octets().saturating_sub(before) / REFERENCES
    });
    let each = each.max().expect("there are three");
    println!(
        "{each} octets for a reference of {} on the wire",
        text.len() / 2 - 2
    );
    assert!(each <= 512, "{each} octets for each reference");
    drop(all);
    let _ = orb.shutdown(true);
}

#[test]
fn great_replies_leave_nothing_with_the_calls_that_they_were_for() {
    let _alone = alone();
    const CALLS: usize = 16;
    const GREAT: usize = 3 << 20;
    for strategy in STRATEGIES {
        let all_sent = Arc::new(Latch::default());
        let sent = all_sent.clone();
        let server = raw_server(move |mut peer: Peer| {
            let requests = [(); CALLS].map(|()| peer.request().expect("a request comes"));
            for (id, _) in requests {
                peer.send(&wide_reply(id, 7, GREAT));
            }
            sent.set(1);
            peer.until_the_end();
        });
        let orb = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&orb, server.address);
        let before = live_octets();
        let calls: Vec<PendingReply<i32>> = (0..CALLS)
            .map(|_| begin_add(&object, 0, 0).expect("it begins"))
            .collect();
        let results: Vec<_> = calls.into_iter().rev().map(PendingReply::wait).collect();
        all_sent.reach(1);
        let kept = live_octets().saturating_sub(before);
        // The first ones were limited by what a connection may keep, 64 MiB.
        assert!(
            results.iter().filter(|r| **r == Ok(7)).count() >= 8,
            "{results:?}"
        );
        // The reading thread has a frame with up to twice the length of a message.
        assert!(kept < 3 * GREAT, "{strategy:?} keeps {kept} octets");
        let _ = orb.shutdown(true);
    }
}
