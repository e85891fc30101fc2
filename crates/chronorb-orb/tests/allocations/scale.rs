//! Objects in great numbers, and the memory that they leave: a program of its own, so that nobody
//! else allocates meanwhile.

use chronorb_orb::poa::ObjectId;
use chronorb_rt::live_octets;

use crate::alone;
use crate::support::adapters::{PERSISTENT, USER, ask, hex, id_teller, site, told};

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
        // Once before, so that tables and threads have what they keep.
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
