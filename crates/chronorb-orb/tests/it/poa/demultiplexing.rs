//! Equal results of every demultiplexing strategy for POAs and objects, with any number of them,
//! and under concurrent changes.

use chronorb_giop::LocateStatus;
use chronorb_orb::poa::{AdapterActivator, CreatePoaError, ObjectId, Poa};
use chronorb_orb::{Demultiplexing, Object, Servant, SystemException, SystemExceptionKind as Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::PROBE_ID;
use crate::support::adapters::{
    PERSISTENT, Site, USER, ask, hex, id_teller, key_of, kind, locate, named, site_with, teller,
    told, with_key,
};

const STRATEGIES: [Demultiplexing; 3] = [
    Demultiplexing::Active,
    Demultiplexing::DynamicHash,
    Demultiplexing::LinearSearch,
];

/// Runs a test with each strategy for POAs and each for objects.
fn with_each(test: impl Fn(&Site)) {
    for poas in STRATEGIES {
        for objects in STRATEGIES {
            println!("POAs {poas:?}, objects {objects:?}");
            test(&site_of(poas, objects));
        }
    }
}

fn site_of(poas: Demultiplexing, objects: Demultiplexing) -> Site {
    site_with(|config| {
        config.poa_demultiplexing = poas;
        config.servant_demultiplexing = objects;
    })
}

/// Returns a POA of each combination of life span and assignment of ids.
fn poas_of_each_kind(s: &Site) -> Vec<Poa> {
    let kinds = [vec![], vec![USER], vec![PERSISTENT], vec![USER, PERSISTENT]];
    let poas = kinds
        .iter()
        .enumerate()
        .map(|(n, policies)| s.poa(&format!("poa {n}"), policies));
    poas.collect()
}

fn activate(poa: &Poa, id: &str, servant: Servant) -> ObjectId {
    match poa.activate_object_with_id(id, &servant) {
        Ok(()) => ObjectId::from(id),
        // The POA assigns the ids.
        Err(_) => poa.activate_object(servant).expect("it is new"),
    }
}

#[test]
fn every_strategy_finds_what_is_there_and_nothing_else() {
    with_each(|s| {
        for poa in poas_of_each_kind(s) {
            let ids: Vec<ObjectId> = (0..10)
                .map(|n| activate(&poa, &n.to_string(), id_teller()))
                .collect();
            let objects: Vec<Object> = ids
                .iter()
                .map(|id| poa.id_to_reference(id).expect("it is active"))
                .collect();
            for (id, object) in ids.iter().zip(&objects) {
                assert_eq!(ask(object), told(&hex(id.as_bytes())));
                assert_eq!(ask(&s.remote(object)), told(&hex(id.as_bytes())));
            }
            let object = s.remote(&objects[3]);
            for name in ["second", "third"] {
                poa.deactivate_object(&ids[3]).expect("it is active");
                assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
                activate(&poa, name, named("another"));
                assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
                poa.activate_object_with_id(&ids[3], named(name))
                    .expect("it is free");
                assert_eq!(ask(&object), told(name));
            }
            // The POA itself is destroyed, and one with its name created.
            let name = poa.name().to_owned();
            poa.destroy(true, true).expect("no servant calls");
            assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
            let transient = s.poa(&name, &[USER]);
            transient
                .activate_object_with_id(&ids[3], named("a stranger"))
                .expect("it is free");
            assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
        }
    });
}

#[test]
fn every_strategy_tells_keys_that_were_changed() {
    with_each(|s| {
        for poa in poas_of_each_kind(s) {
            activate(&poa, "old", id_teller());
            let id = activate(&poa, "new", id_teller());
            let object = poa.id_to_reference(&id).expect("it is active");
            let key = key_of(&object);
            for at in 0..key.len() {
                let mut changed = key.clone();
                changed[at] ^= 0x11;
                match ask(&with_key(&s.client, &object, &changed)) {
                    Ok(seen) => assert_eq!(seen, hex(id.as_bytes()), "octet {at}"),
                    Err(exception) => assert_eq!(exception.kind, Kind::ObjectNotExist),
                }
            }
        }
    });
}

/// An activator of persistent POAs, in which `x` returns the name.
struct Maker;

impl AdapterActivator for Maker {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        let poa = parent
            .create_poa(name, Some(parent.manager()), &[PERSISTENT, USER])
            .expect("it is not there");
        poa.set_activator(parent.activator());
        poa.activate_object_with_id("x", named(name))
            .expect("it is free");
        Ok(true)
    }
}

#[test]
fn every_strategy_lets_adapters_be_made() {
    with_each(|s| {
        s.root.set_activator(Some(Arc::new(Maker)));
        let one = s.root.find_poa("one", true).expect("it is made");
        let two = one.find_poa("a/b", true).expect("it is made");
        let object = two.id_to_reference(&"x".into()).expect("it is active");
        let object = s.remote(&object);
        assert_eq!(ask(&object), told("a/b"));
        for _ in 0..3 {
            let one = s.root.find_poa("one", false).expect("it is there");
            one.destroy(true, true).expect("no servant calls");
            assert_eq!(locate(&object), LocateStatus::ObjectHere, "it is made anew");
            assert_eq!(ask(&object), told("a/b"));
        }
    });
}

#[test]
fn five_hundred_adapters_are_found() {
    for strategy in STRATEGIES {
        let s = site_of(strategy, Demultiplexing::Active);
        let objects: Vec<(Poa, Object)> = (0..500)
            .map(|n| {
                let policies = [vec![USER], vec![USER, PERSISTENT]];
                let poa = s.poa(&n.to_string(), &policies[n % 2]);
                poa.activate_object_with_id("x", named(n.to_string()))
                    .expect("it is free");
                let object = poa.id_to_reference(&"x".into()).expect("it is active");
                (poa, object)
            })
            .collect();
        for (poa, object) in &objects {
            assert_eq!(ask(object), told(poa.name()));
        }
        for (poa, object) in &objects {
            poa.destroy(true, true).expect("no servant calls");
            assert_eq!(kind(ask(object)), Kind::ObjectNotExist);
        }
        assert_eq!(s.root.children(), []);
    }
}

/// Returns a servant that returns its id, and counts its instances.
fn counted(id: u64, alive: &Arc<AtomicU64>) -> Servant {
    struct CountedServant(Arc<AtomicU64>);
    impl Drop for CountedServant {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    alive.fetch_add(1, Ordering::SeqCst);
    let counted = CountedServant(alive.clone());
    teller(move |call| {
        let _ = &counted;
        let called = String::from_utf8_lossy(call.object_id().as_bytes()).into_owned();
        assert_eq!(called, id.to_string(), "it is another object");
        Ok(called)
    })
}

/// Runs `change` in two threads while two others call the objects 0 to 15 of `target` by new
/// references. Every answer is that of the object, or that it does not exist.
fn storm(
    s: &Site,
    target: impl Fn() -> Option<Poa> + Sync,
    change: impl Fn(u64, &Arc<AtomicU64>) + Sync,
) {
    const OBJECTS: u64 = 16;
    let alive = Arc::new(AtomicU64::new(0));
    let over = AtomicBool::new(false);
    let served = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let changing: Vec<_> = (0..2_u64)
            .map(|thread| {
                let (change, alive) = (&change, &alive);
                threads.spawn(move || {
                    for n in 0..1_500 {
                        change((n * 7 + thread * 3) % OBJECTS, alive);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            threads.spawn(|| {
                let mut n = 0;
                while !over.load(Ordering::Relaxed) {
                    n = (n + 1) % OBJECTS;
                    let id = n.to_string();
                    let Some(poa) = target() else {
                        std::thread::yield_now();
                        continue;
                    };
                    let object = poa.create_reference_with_id(&id.as_str().into(), PROBE_ID);
                    let Ok(object) = object else { continue };
                    match ask(&object) {
                        Ok(seen) => {
                            assert_eq!(seen, id);
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(exception) => assert!(
                            matches!(exception.kind, Kind::ObjectNotExist | Kind::Transient),
                            "{exception:?}"
                        ),
                    }
                }
            });
        }
        let ended: Vec<_> = changing.into_iter().map(|t| t.join()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    s.server.shutdown(true).expect("no servant calls");
    assert_eq!(alive.load(Ordering::SeqCst), 0, "servants are left");
}

#[test]
fn objects_that_come_and_go_are_never_taken_for_each_other() {
    for strategy in STRATEGIES {
        for policies in [vec![USER], vec![USER, PERSISTENT]] {
            let s = site_of(strategy, strategy);
            let poa = s.poa("poa", &policies);
            storm(
                &s,
                || Some(poa.clone()),
                |n, alive| {
                    let id = n.to_string();
                    if poa.deactivate_object(&id.as_str().into()).is_err() {
                        // The other thread may have been faster.
                        let _ = poa.activate_object_with_id(id.as_str(), counted(n, alive));
                    }
                },
            );
        }
    }
}

#[test]
fn adapters_that_come_and_go_are_never_taken_for_each_other() {
    for strategy in STRATEGIES {
        for policies in [vec![USER], vec![USER, PERSISTENT]] {
            let s = site_of(strategy, strategy);
            let manager = s.root.manager();
            storm(
                &s,
                || s.root.find_poa("poa", false).ok(),
                |n, alive| match s.root.create_poa("poa", Some(manager), &policies) {
                    Ok(poa) => {
                        for n in [n, (n + 1) % 16] {
                            let id = n.to_string();
                            let _ = poa.activate_object_with_id(id.as_str(), counted(n, alive));
                        }
                    }
                    Err(CreatePoaError::AdapterAlreadyExists) => {
                        if let Ok(poa) = s.root.find_poa("poa", false) {
                            poa.destroy(true, n % 2 == 0).expect("no servant calls");
                        }
                    }
                    // The former POA is still being destroyed.
                    Err(_) => std::thread::yield_now(),
                },
            );
        }
    }
}
