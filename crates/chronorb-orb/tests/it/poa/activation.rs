//! Activation, ids and references, deactivation, and stale or forged keys.

use chronorb_giop::LocateStatus;
use chronorb_orb::poa::{ActivateError, ObjectError, ObjectId, Poa, ServantError};
use chronorb_orb::{Servant, SystemException, SystemExceptionKind};
use proptest::prelude::*;
use std::sync::Arc;

use crate::support::adapters::{
    IMPLICIT, Locator, MULTIPLE, PERSISTENT, Site, USER, ask, ask_for, hex, holding, id_teller,
    key_of, kind, locate, named, omg, site, skeleton_of, told, until, waiter_if_asked, with_key,
};
use crate::support::{Latch, PROBE_ID};

const NOT_THERE: SystemExceptionKind = SystemExceptionKind::ObjectNotExist;

#[test]
fn every_object_gets_an_id_of_its_own() {
    let s = site();
    let ids: Vec<ObjectId> = (0..100)
        .map(|n| s.root.activate_object(named(n.to_string())))
        .map(|id| id.expect("it is a new servant"))
        .collect();
    for (n, id) in ids.iter().enumerate() {
        assert!(!ids[..n].contains(id));
        let object = s.root.id_to_reference(id).expect("it is active");
        assert_eq!(ask(&s.remote(&object)), told(&n.to_string()));
    }
}

#[test]
fn ids_servants_and_references_lead_to_each_other() {
    let s = site();
    for policies in [vec![], vec![USER], vec![PERSISTENT], vec![USER, PERSISTENT]] {
        let poa = s.poa(&format!("{policies:?}"), &policies);
        let servant = named("it");
        let id = if policies.contains(&USER) {
            poa.activate_object_with_id("some id", &servant)
                .expect("it is free");
            ObjectId::from("some id")
        } else {
            poa.activate_object(&servant).expect("it is new")
        };
        let object = poa.id_to_reference(&id).expect("it is active");
        assert_eq!(object.type_id(), PROBE_ID);
        assert_eq!(poa.reference_to_id(&object), Ok(id.clone()));
        assert_eq!(poa.servant_to_id(&servant), Ok(id.clone()));
        assert_eq!(poa.servant_to_reference(&servant), Ok(object.clone()));
        let same = |found: Result<Servant, ObjectError>| {
            found.expect("it is active").identity() == servant.identity()
        };
        assert!(same(poa.id_to_servant(&id)));
        assert!(same(poa.reference_to_servant(&object)));
        assert_eq!(ask(&s.remote(&object)), told("it"));
        // Nothing of it remains.
        poa.deactivate_object(&id).expect("it is active");
        let not_active = ObjectError::ObjectNotActive;
        assert_eq!(poa.deactivate_object(&id), Err(not_active));
        assert_eq!(poa.id_to_reference(&id), Err(not_active));
        assert_eq!(poa.id_to_servant(&id).err(), Some(not_active));
        assert_eq!(poa.reference_to_servant(&object).err(), Some(not_active));
        let servant_not_active = ServantError::ServantNotActive;
        assert_eq!(poa.servant_to_id(&servant), Err(servant_not_active));
        assert_eq!(poa.reference_to_id(&object), Ok(id), "the key has it still");
        assert_eq!(kind(ask(&s.remote(&object))), NOT_THERE);
    }
}

#[test]
fn references_of_other_adapters_are_told() {
    let s = site();
    let poas = [
        s.root.clone(),
        s.poa("a", &[]),
        s.poa("b", &[]),
        s.poa("c", &[PERSISTENT]),
        s.poa("d", &[PERSISTENT]),
    ];
    let references: Vec<_> = poas
        .iter()
        .map(|poa| poa.serve(named("x")).expect("it is new"))
        .collect();
    for (n, poa) in poas.iter().enumerate() {
        for (m, reference) in references.iter().enumerate() {
            assert_eq!(poa.reference_to_id(reference).is_ok(), n == m);
            let servant = poa.reference_to_servant(reference);
            assert_eq!(servant.err(), (n != m).then_some(ObjectError::WrongAdapter));
        }
    }
    // References of another ORB, and references that belong to no POA at all.
    let other = site();
    let theirs = other.root.serve(named("y")).expect("it is new");
    let foreign = with_key(&s.server, &theirs, b"NameService");
    for reference in [s.remote(&theirs), foreign] {
        let wrong = s.root.reference_to_id(&reference);
        assert_eq!(wrong, Err(ObjectError::WrongAdapter));
    }
}

#[test]
fn an_old_system_id_may_be_used_again() {
    let s = site();
    for policies in [vec![], vec![PERSISTENT]] {
        let poa = s.poa(&format!("{policies:?}"), &policies);
        let id = poa.activate_object(named("first")).expect("it is new");
        let object = s.remote(&poa.id_to_reference(&id).expect("it is active"));
        for again in ["second", "third"] {
            poa.deactivate_object(&id).expect("it is active");
            assert_eq!(kind(ask(&object)), NOT_THERE);
            // Other objects take the free slots.
            for _ in 0..3 {
                poa.activate_object(named("another")).expect("it is new");
            }
            poa.activate_object_with_id(&id, named(again))
                .expect("it is free");
            assert_eq!(ask(&object), told(again), "by the old reference");
            let new = poa.id_to_reference(&id).expect("it is active");
            assert_eq!(ask(&s.remote(&new)), told(again), "by the new one");
            assert_eq!(poa.reference_to_id(&new), Ok(id.clone()));
            let taken = poa.activate_object_with_id(&id, named("late"));
            assert_eq!(taken, Err(ActivateError::ObjectAlreadyActive));
        }
    }
}

#[test]
fn ids_that_the_adapter_did_not_make_are_bad_param() {
    let s = site();
    let other = s.poa("other", &[]);
    // More than one, so that it is not accidentally an id of the first POA.
    let theirs = [(); 3].map(|()| other.activate_object(named("x")).expect("it is new"));
    let foreign = omg(SystemExceptionKind::BadParam, 14);
    for id in [
        "",
        "short",
        "eight888",
        "of sixteen octet",
        "a good deal longer than any",
    ]
    .map(ObjectId::from)
    .iter()
    .chain(theirs.last())
    {
        let activated = s.root.activate_object_with_id(id, named("x"));
        assert_eq!(activated, Err(ActivateError::System(foreign)), "{id:?}");
        let made = s.root.create_reference_with_id(id, PROBE_ID);
        assert_eq!(made, Err(ObjectError::System(foreign)), "{id:?}");
    }
}

#[test]
fn a_servant_is_one_object_or_several_as_the_policy_says() {
    let s = site();
    let unique = s.poa("unique", &[USER]);
    let multiple = s.poa("multiple", &[USER, MULTIPLE]);
    let servant = id_teller();
    let twice = ActivateError::ServantAlreadyActive;
    unique
        .activate_object_with_id("a", &servant)
        .expect("it is free");
    assert_eq!(unique.activate_object_with_id("b", &servant), Err(twice));
    for id in ["a", "b", "c"] {
        multiple
            .activate_object_with_id(id, &servant)
            .expect("it is free");
    }
    for id in ["a", "b", "c"] {
        let object = s.remote_to(&multiple, id);
        assert_eq!(ask(&object), told(&hex(id.as_bytes())));
    }
    // After it has no object, it can have another one.
    unique.deactivate_object(&"a".into()).expect("it is active");
    unique
        .activate_object_with_id("b", &servant)
        .expect("it is none");
    assert_eq!(ask(&s.remote_to(&unique, "b")), told(&hex(b"b")));
}

#[test]
fn an_id_that_is_taken_counts_before_a_servant_that_is() {
    let s = site();
    let poa = s.poa("unique", &[USER]);
    let servant = named("x");
    poa.activate_object_with_id("a", &servant)
        .expect("it is free");
    let again = poa.activate_object_with_id("a", &servant);
    assert_eq!(again, Err(ActivateError::ObjectAlreadyActive));
}

#[test]
fn skeletons_of_one_servant_are_the_same_servant() {
    let s = site();
    let (one, other) = (skeleton_of(7), skeleton_of(7));
    let id = s.root.activate_object(&one).expect("it is new");
    let again = s.root.activate_object(&other);
    assert_eq!(again, Err(ActivateError::ServantAlreadyActive));
    assert_eq!(s.root.servant_to_id(&other), Ok(id));
    s.root
        .activate_object(skeleton_of(8))
        .expect("it is another");
}

#[test]
fn implicit_activation_makes_one_object_or_always_a_new_one() {
    let s = site();
    let unique = s.poa("unique", &[IMPLICIT]);
    let multiple = s.poa("multiple", &[IMPLICIT, MULTIPLE]);
    let servant = named("it");
    let id = unique.servant_to_id(&servant).expect("it is activated");
    assert_eq!(unique.servant_to_id(&servant), Ok(id.clone()));
    let object = unique.servant_to_reference(&servant).expect("it is active");
    assert_eq!(unique.reference_to_id(&object), Ok(id));
    assert_eq!(unique.active_objects(), 1);

    let first = multiple.servant_to_reference(&servant).expect("a new one");
    let second = multiple.servant_to_reference(&servant).expect("a new one");
    assert_ne!(first, second);
    assert_eq!(multiple.active_objects(), 2);
    for object in [object, first, second] {
        assert_eq!(ask(&s.remote(&object)), told("it"));
    }
}

#[test]
fn threads_that_activate_one_servant_implicitly_get_one_object() {
    let s = site();
    for _ in 0..20 {
        let servant = named("it");
        let ids: Vec<ObjectId> = std::thread::scope(|threads| {
            let asking: Vec<_> = (0..4)
                .map(|_| threads.spawn(|| s.root.servant_to_id(&servant)))
                .collect();
            let ids = asking.into_iter().map(|t| t.join().expect("no panic"));
            ids.map(|id| id.expect("it is activated")).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}

#[test]
fn a_reference_may_be_made_before_its_object() {
    let s = site();
    for policies in [vec![], vec![PERSISTENT]] {
        let poa = s.poa(&format!("{policies:?}"), &policies);
        let early = poa.create_reference(PROBE_ID).expect("SYSTEM_ID");
        let other = poa.create_reference(PROBE_ID).expect("SYSTEM_ID");
        assert_ne!(early, other);
        let client = s.remote(&early);
        assert_eq!(kind(ask(&client)), NOT_THERE);
        assert_eq!(client.non_existent(), Ok(true));
        assert_eq!(locate(&client), LocateStatus::UnknownObject);
        let id = poa.reference_to_id(&early).expect("it is ours");
        poa.activate_object_with_id(&id, named("it"))
            .expect("it is free");
        assert_eq!(ask(&client), told("it"));
        assert_eq!(client.non_existent(), Ok(false));
        assert_eq!(locate(&client), LocateStatus::ObjectHere);
        assert_eq!(kind(ask(&s.remote(&other))), NOT_THERE);
    }
}

/// Deactivation while a request is in progress.
#[test]
fn a_deactivated_object_finishes_its_request_and_takes_no_other() {
    let s = site();
    for (n, policies) in [vec![], vec![USER], vec![USER, PERSISTENT]]
        .iter()
        .enumerate()
    {
        let poa = s.poa(&n.to_string(), policies);
        let latch = Arc::new(Latch::default());
        let servant = waiter_if_asked(&latch);
        let alive = Arc::downgrade(&servant);
        let id = if policies.is_empty() {
            poa.activate_object(servant).expect("it is new")
        } else {
            poa.activate_object_with_id("x", servant)
                .expect("it is free");
            ObjectId::from("x")
        };
        let object = s.remote(&poa.id_to_reference(&id).expect("it is active"));
        std::thread::scope(|threads| {
            let busy = threads.spawn(|| ask_for(&object, "wait"));
            latch.reach(1);
            poa.deactivate_object(&id).expect("it is active");
            assert_eq!(kind(ask(&object)), NOT_THERE);
            assert_eq!(poa.active_objects(), 0);
            assert!(alive.strong_count() > 0, "the servant is in use");
            // There is room for a successor at once.
            poa.activate_object_with_id(&id, named("next"))
                .expect("the id is free");
            assert_eq!(ask(&object), told("next"));
            latch.set(2);
            assert_eq!(busy.join().expect("no panic"), told("done"));
        });
        until("the servant is dropped", || alive.strong_count() == 0);
        assert_eq!(ask(&object), told("next"));
    }
}

#[test]
fn a_servant_may_deactivate_itself() {
    let s = site();
    let token = Arc::new(());
    let held = token.clone();
    let servant = crate::support::adapters::teller(move |call| {
        let _ = &held;
        let id = call.object_id();
        call.poa().deactivate_object(id).expect("it is active");
        assert_eq!(
            call.poa().deactivate_object(id),
            Err(ObjectError::ObjectNotActive)
        );
        Ok(format!(
            "{:?}",
            call.orb().poa_current().object_id().as_ref() == Ok(id)
        ))
    });
    let object = s.root.serve(servant).expect("it is new");
    assert_eq!(ask(&s.remote(&object)), told("true"));
    until("the servant is dropped", || Arc::strong_count(&token) == 1);
    assert_eq!(kind(ask(&s.remote(&object))), NOT_THERE);
}

#[test]
fn a_servant_is_dropped_once_nobody_needs_it() {
    let s = site();
    let token = Arc::new(());
    let id = s.root.activate_object(holding(&token)).expect("it is new");
    assert_eq!(Arc::strong_count(&token), 2);
    s.root.deactivate_object(&id).expect("it is active");
    assert_eq!(Arc::strong_count(&token), 1);
    s.root.activate_object(holding(&token)).expect("it is new");
    let child = s.poa("child", &[]);
    child.activate_object(holding(&token)).expect("it is new");
    s.server.shutdown(true).expect("no servant calls");
    assert_eq!(Arc::strong_count(&token), 1);
}

/// Returns the answer to a request by a key: an object returns the id by which it was called.
fn asked_by(s: &Site, like: &chronorb_orb::Object, key: &[u8]) -> Result<String, SystemException> {
    ask(&with_key(&s.client, like, key))
}

/// Returns objects in every kind of POA, each with an object whose slot another one has taken.
fn population(s: &Site) -> Vec<(Poa, chronorb_orb::Object, chronorb_orb::Object)> {
    let mut objects = Vec::new();
    for (n, policies) in [vec![], vec![USER], vec![PERSISTENT], vec![USER, PERSISTENT]]
        .iter()
        .enumerate()
    {
        let poa = s.poa(&format!("poa {n}"), policies);
        let activate = |name: &str| {
            if policies.contains(&USER) {
                poa.activate_object_with_id(name, id_teller())
                    .expect("it is free");
                ObjectId::from(name)
            } else {
                poa.activate_object(id_teller()).expect("it is new")
            }
        };
        let old = activate("old");
        let stale = poa.id_to_reference(&old).expect("it is active");
        poa.deactivate_object(&old).expect("it is active");
        let new = activate("new");
        let live = poa.id_to_reference(&new).expect("it is active");
        objects.push((poa, stale, live));
    }
    objects
}

#[test]
fn a_stale_key_is_told_although_its_place_is_taken() {
    let s = site();
    for (poa, stale, live) in population(&s) {
        let id = poa.reference_to_id(&live).expect("it is ours");
        assert_eq!(ask(&s.remote(&live)), told(&hex(id.as_bytes())));
        assert_eq!(kind(ask(&s.remote(&stale))), NOT_THERE);
        assert_eq!(kind(ask(&stale)), NOT_THERE, "nor within the process");
        assert_eq!(locate(&stale), LocateStatus::UnknownObject);
    }
}

/// A key with a changed octet leads to the named object, or to none. It may still name the same
/// object if only a hint was changed.
#[test]
fn keys_with_one_octet_changed_never_lead_to_another_object() {
    let s = site();
    let objects = population(&s);
    let live: Vec<_> = objects.iter().map(|(poa, _, live)| (poa, live)).collect();
    for (poa, object) in &live {
        let id = poa.reference_to_id(object).expect("it is ours");
        let key = key_of(object);
        for at in 0..key.len() {
            for bit in 0..8 {
                let mut changed = key.clone();
                changed[at] ^= 1 << bit;
                match asked_by(&s, object, &changed) {
                    Ok(seen) => {
                        assert!(changed.ends_with(id.as_bytes()), "octet {at}, bit {bit}");
                        assert_eq!(seen, hex(id.as_bytes()), "octet {at}, bit {bit}");
                    }
                    Err(exception) => assert_eq!(exception.kind, NOT_THERE),
                }
            }
        }
        for length in 0..key.len() {
            let cut = asked_by(&s, object, &key[..length]);
            assert_eq!(kind(cut), NOT_THERE, "{length} octets");
        }
        let longer = [&key[..], b"x"].concat();
        assert_eq!(kind(asked_by(&s, object, &longer)), NOT_THERE);
    }
    for (poa, object) in &live {
        let id = poa.reference_to_id(object).expect("it is ours");
        assert_eq!(ask(&s.remote(object)), told(&hex(id.as_bytes())));
    }
}

#[test]
fn a_million_random_keys_lead_nowhere() {
    let s = site();
    let objects = population(&s);
    let mut locator = Locator::of(&objects[0].2);
    let live: Vec<Vec<u8>> = objects.iter().map(|(_, _, live)| key_of(live)).collect();
    // The same in each run.
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..1000 {
        let keys: Vec<Vec<u8>> = (0..1000)
            .map(|n: usize| {
                // Random keys, and real ones with a random end, which get further.
                let mut key = live[n % live.len()].clone();
                let length = key.len();
                let from = random.usize(..length);
                random.fill(&mut key[from..]);
                key
            })
            .filter(|key| !live.contains(key))
            .collect();
        let found = locator.locate(&keys);
        for (key, status) in keys.iter().zip(found) {
            if status == LocateStatus::UnknownObject {
                continue;
            }
            // With another hint, the key names the same object.
            let same = live.iter().any(|live| {
                let hints = if live[3] == 3 { 4..12 } else { 20..28 };
                key.len() == live.len()
                    && (0..key.len()).all(|i| hints.contains(&i) || key[i] == live[i])
            });
            assert!(same, "{status:?} for {key:x?}");
        }
    }
    assert_eq!(
        locator.locate(&live),
        vec![LocateStatus::ObjectHere; live.len()]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// User ids are arbitrary octets.
    #[test]
    fn any_octets_can_be_an_id(ids in proptest::collection::hash_set(any::<Vec<u8>>(), 1..20)) {
        let s = site();
        let poa = s.poa("any", &[USER]);
        for id in &ids {
            poa.activate_object_with_id(ObjectId::new(id), id_teller()).expect("it is free");
        }
        for id in &ids {
            let object = poa.id_to_reference(&ObjectId::new(id)).expect("it is active");
            prop_assert_eq!(ask(&object), told(&hex(id)));
        }
    }
}
