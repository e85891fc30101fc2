//! Objects with individual priorities: the operations of the RT POA.

use chronorb_giop::{Component, TaoEndpoint};
use chronorb_orb::poa::{
    ActivateError, Cookie, ObjectError, ObjectId, Poa, Policy, PriorityModel, Refusal,
    ServantActivator, ServantLocator, ServantRetention,
};
use chronorb_orb::rtcorba::{
    Lane, LinearMapping, MappingKind, Priority, PriorityMapping, Threadpool, ThreadpoolLanes,
};
use chronorb_orb::{Endpoint, parse_endpoints};
use chronorb_orb::{Object, Orb, Servant, SystemException, SystemExceptionKind as Kind};
use chronorb_rt::{PiMutex, Scheduling};
use std::net::TcpListener;
use std::sync::Arc;

use crate::support::adapters::{
    DEFAULT, IMPLICIT, MANAGER, MULTIPLE, NON_RETAIN, PERSISTENT, Site, USER, ask, key_of, kind,
    omg, profile_of, site, site_with, skeleton_of, teller, with_key, with_profile,
};
use crate::support::descriptors::uncopied;
use crate::support::{PROBE_ID, has_real_time, invalid_policy, orb, orb_with};

const LOW: i16 = 8_000;
const MIDDLE: i16 = 16_000;
const HIGH: i16 = 24_000;
/// The lanes of a pool.
const LANES: [i16; 3] = [LOW, MIDDLE, HIGH];
const NO_LANE: i16 = 12_000;

fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

fn declared(value: i16) -> Policy {
    Policy::PriorityModel(PriorityModel::ServerDeclared, corba(value))
}

fn laned(orb: &Orb) -> Policy {
    let lanes = LANES.map(|value| Lane::new(corba(value), 1)).to_vec();
    let pool = ThreadpoolLanes {
        lanes,
        ..Default::default()
    };
    let id = orb.rt().create_threadpool_with_lanes(&pool);
    Policy::Threadpool(id.expect("the lanes open"))
}

impl Site {
    /// Returns a POA with lanes, whose objects have the low priority unless they have an individual
    /// one.
    fn rt(&self, policies: &[Policy]) -> Poa {
        let rt = [laned(&self.server), declared(LOW)];
        self.poa("rt", &[&rt[..], policies].concat())
    }
}

/// Returns a servant that returns its serving lane, its priority and its thread's scheduling.
fn witness() -> Servant {
    teller(|call| {
        let here = std::thread::current();
        let lane = here.name().and_then(|name| name.split(['.', ' ']).next());
        let lane = lane.unwrap_or_default();
        let priority = call.priority().map_or(-1, Priority::value);
        let native = chronorb_rt::current().expect("it can be asked");
        Ok(format!("{lane}, {priority}, {native}"))
    })
}

/// Returns the expected result of a [`witness`] that the lane of one priority serves at another.
fn in_lane_at(lane: i16, value: i16) -> Result<String, SystemException> {
    let native = LinearMapping.to_native(corba(value)).expect("it has one");
    let native = if has_real_time() {
        Scheduling::fifo(native)
    } else {
        Scheduling::OTHER
    };
    let lane = LANES
        .iter()
        .position(|of| *of == lane)
        .expect("there is one");
    Ok(format!("1:{lane}, {value}, {native}"))
}

/// Returns the expected result in the lane of the same priority.
fn at(value: i16) -> Result<String, SystemException> {
    in_lane_at(value, value)
}

/// Returns the server's priority in a reference.
fn told_priority(object: &Object) -> Option<(u32, i16)> {
    let components = profile_of(object).components;
    components.iter().find_map(|c| match c.typed() {
        Ok(Component::Policies(policies)) => {
            let value = policies.priority_model()?;
            Some((value.model, value.server_priority))
        }
        _ => None,
    })
}

/// Returns the lane whose endpoint is in the reference's profile.
fn endpoint_lane(object: &Object) -> Option<i16> {
    let profile = profile_of(object);
    let lanes = profile.components.iter().find_map(|c| match c.typed() {
        Ok(Component::TaoEndpoints(lanes)) => Some(lanes),
        _ => None,
    });
    let is_own = |lane: &&TaoEndpoint| (&lane.host, lane.port) == (&profile.host, profile.port);
    Some(lanes?.iter().find(is_own)?.priority)
}

fn reassigned() -> SystemException {
    omg(Kind::BadInvOrder, 18)
}

fn tells_priority(object: &Object, value: i16) {
    assert_eq!(told_priority(object), Some((1, value)), "{object:?}");
    assert_eq!(endpoint_lane(object), Some(value), "{object:?}");
}

#[test]
fn each_object_is_served_at_its_own_priority_in_its_own_lane() {
    let s = site();
    let poa = s.rt(&[]);
    for value in LANES {
        let id = poa.activate_object_with_priority(witness(), corba(value));
        let object = poa.id_to_reference(&id.expect("it is new"));
        let object = object.expect("it is active");
        tells_priority(&object, value);
        assert_eq!(ask(&s.remote(&object)), at(value));
    }
    let object = poa.serve(witness()).expect("it is new");
    tells_priority(&object, LOW);
    assert_eq!(ask(&s.remote(&object)), at(LOW), "that of the POA");
}

#[test]
fn the_clients_priority_is_none_of_its_business() {
    let s = site();
    let poa = s.rt(&[USER]);
    poa.activate_object_with_id_and_priority("a", witness(), corba(HIGH))
        .expect("it is free");
    let object = s.remote_to(&poa, "a");
    let set = s.client.rt_current().set_priority(corba(MIDDLE));
    set.expect("it has a native priority");
    assert_eq!(ask(&object), at(HIGH));
}

#[test]
fn every_way_to_a_reference_leads_to_the_same() {
    let s = site();
    let poa = s.rt(&[USER]);
    let id = ObjectId::from("a");
    let servant = witness();
    poa.activate_object_with_id_and_priority(&id, &servant, corba(HIGH))
        .expect("it is free");
    let reference = poa.id_to_reference(&id).expect("it is active");
    tells_priority(&reference, HIGH);
    assert_eq!(poa.servant_to_reference(&servant), Ok(reference.clone()));
    assert_eq!(
        poa.create_reference_with_id(&id, PROBE_ID),
        Ok(reference.clone())
    );
    let with_priority = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(HIGH));
    assert_eq!(with_priority, Ok(reference.clone()));
    assert_eq!(poa.reference_to_id(&reference), Ok(id));
    assert!(poa.reference_to_servant(&reference).is_ok());
}

#[test]
fn a_request_in_another_lane_is_served_at_the_objects_priority() {
    let s = site();
    let poa = s.rt(&[USER]);
    poa.activate_object_with_id_and_priority("a", witness(), corba(HIGH))
        .expect("it is free");
    let own = s.remote_to(&poa, "a");
    for lane in LANES {
        let id = ObjectId::from(lane.to_string().as_str());
        let other = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(lane));
        let there = profile_of(&other.expect("ids are the test's")).port;
        let stale = with_profile(&s.client, &own, |profile| profile.port = there);
        assert_eq!(ask(&stale), in_lane_at(lane, HIGH));
    }
    // The lane's thread has its own priority again.
    poa.activate_object_with_id("low", witness())
        .expect("it is free");
    assert_eq!(ask(&s.remote_to(&poa, "low")), at(LOW));
    assert_eq!(ask(&own), at(HIGH));
}

#[test]
fn a_reference_that_says_nothing_of_it_leads_to_the_same() {
    let s = site();
    let poa = s.rt(&[USER]);
    let before = s.remote_to(&poa, "a");
    tells_priority(&before, LOW);
    poa.activate_object_with_id_and_priority("a", witness(), corba(HIGH))
        .expect("it is free");
    assert_eq!(ask(&before), in_lane_at(LOW, HIGH));
}

#[test]
fn a_pool_without_lanes_takes_each_objects_priority() {
    let s = site_with(|config| config.priority_mapping = MappingKind::Direct);
    let pool = s
        .server
        .rt()
        .create_threadpool(&Threadpool::new(corba(1), 1));
    let threadpool = Policy::Threadpool(pool.expect("it opens"));
    let poa = s.poa("rt", &[threadpool, declared(2), USER]);
    let native = |value| {
        if has_real_time() {
            Scheduling::fifo(value)
        } else {
            Scheduling::OTHER
        }
    };
    for (id, value) in [("a", 30_u8), ("b", 50), ("c", 1), ("d", 0)] {
        let priority = corba(value.into());
        poa.activate_object_with_id_and_priority(id, witness(), priority)
            .expect("it is free");
        let object = s.remote_to(&poa, id);
        let native = match value {
            0 => Scheduling::OTHER,
            value => native(value),
        };
        assert_eq!(told_priority(&object), Some((1, value.into())));
        assert_eq!(ask(&object), Ok(format!("1:0, {value}, {native}")));
    }
    let refused = poa.activate_object_with_priority(witness(), corba(99));
    assert_eq!(refused, Err(ActivateError::WrongPolicy), "ids are given");
    let refused = poa.activate_object_with_id_and_priority("e", witness(), corba(99));
    let error = refused.expect_err("it has no native priority");
    let no_native = omg(Kind::DataConversion, 2);
    assert_eq!(error.system_exception(), Some(no_native));
}

#[test]
fn a_call_within_the_process_is_served_at_the_objects_priority() {
    let s = site();
    let poa = s.poa("near", &[declared(LOW), USER]);
    let servant = teller(|call| Ok(call.priority().map_or(-1, Priority::value).to_string()));
    poa.activate_object_with_id_and_priority("a", servant, corba(HIGH))
        .expect("it is free");
    let object = poa.create_reference_with_id(&"a".into(), PROBE_ID);
    let object = object.expect("ids are the test's");
    assert_eq!(ask(&object), Ok(HIGH.to_string()));
}

#[test]
fn only_a_poa_whose_server_declares_priorities_has_objects_with_their_own() {
    let s = site();
    let propagated = Policy::PriorityModel(PriorityModel::ClientPropagated, corba(LOW));
    let poas = [
        ("no model", vec![]),
        ("client-propagated", vec![propagated]),
        ("implicit activation", vec![declared(LOW), IMPLICIT]),
    ];
    for (name, policies) in poas {
        let poa = s.poa(name, &policies);
        let id = poa.activate_object(skeleton_of(1)).expect("it is new");
        let refused = poa.create_reference_with_priority(PROBE_ID, corba(LOW));
        assert_eq!(refused, Err(ObjectError::WrongPolicy), "{name}");
        let refused = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(LOW));
        assert_eq!(refused, Err(ObjectError::WrongPolicy), "{name}");
        let refused = poa.activate_object_with_priority(witness(), corba(LOW));
        assert_eq!(refused, Err(ActivateError::WrongPolicy), "{name}");
        let refused = poa.activate_object_with_id_and_priority(&id, witness(), corba(LOW));
        assert_eq!(refused, Err(ActivateError::WrongPolicy), "{name}");
    }
}

#[test]
fn the_rules_of_the_other_operations_hold() {
    let s = site();
    let user = s.poa("user", &[declared(LOW), USER]);
    assert_eq!(
        user.create_reference_with_priority(PROBE_ID, corba(LOW)),
        Err(ObjectError::WrongPolicy)
    );
    assert_eq!(
        user.activate_object_with_priority(witness(), corba(LOW)),
        Err(ActivateError::WrongPolicy)
    );
    let map_less = [declared(LOW), USER, NON_RETAIN, MANAGER];
    let map_less = s.poa("map-less", &map_less);
    assert_eq!(
        map_less.activate_object_with_id_and_priority("a", witness(), corba(LOW)),
        Err(ActivateError::WrongPolicy)
    );
    let system = s.poa("system", &[declared(LOW)]);
    let foreign = ObjectId::from("not one of its ids");
    let invalid = omg(Kind::BadParam, 14);
    assert_eq!(
        system.create_reference_with_id_and_priority(&foreign, PROBE_ID, corba(LOW)),
        Err(invalid.into())
    );
    assert_eq!(
        system.activate_object_with_id_and_priority(&foreign, witness(), corba(LOW)),
        Err(invalid.into())
    );
}

#[test]
fn only_a_declared_priority_needs_a_lane_of_the_pool() {
    let s = site();
    let lanes = laned(&s.server);
    let root = s.server.root_poa().expect("it is made");
    let declared = [lanes.clone(), declared(NO_LANE)];
    assert_eq!(
        invalid_policy(root.create_poa("declared", None, &declared)),
        Some(1)
    );
    let model = Policy::PriorityModel(PriorityModel::ClientPropagated, corba(NO_LANE));
    let poa = s.poa("propagated", &[lanes, model, USER]);
    poa.activate_object_with_id("teller", witness())
        .expect("it is free");
    let object = poa.id_to_reference(&"teller".into()).expect("it is active");
    assert_eq!(told_priority(&object), Some((0, NO_LANE)));
    assert_eq!(endpoint_lane(&object), Some(LOW));
}

#[test]
fn a_priority_that_no_lane_has_is_refused() {
    let s = site();
    let poa = s.rt(&[]);
    let bad_param = SystemException::no(Kind::BadParam, 0);
    let id = poa.activate_object(witness()).expect("it is new");
    for value in [NO_LANE, 0, i16::MAX] {
        let priority = corba(value);
        let refused = poa.create_reference_with_priority(PROBE_ID, priority);
        assert_eq!(refused, Err(bad_param.into()));
        let refused = poa.create_reference_with_id_and_priority(&id, PROBE_ID, priority);
        assert_eq!(refused, Err(bad_param.into()));
        let refused = poa.activate_object_with_priority(skeleton_of(1), priority);
        assert_eq!(refused, Err(bad_param.into()));
        let refused = poa.activate_object_with_id_and_priority(&id, witness(), priority);
        assert_eq!(refused, Err(bad_param.into()));
    }
    assert_eq!(poa.active_objects(), 1);
}

#[test]
fn an_object_and_a_servant_are_active_once() {
    let s = site();
    let poa = s.rt(&[USER]);
    poa.activate_object_with_id_and_priority("a", skeleton_of(1), corba(HIGH))
        .expect("it is free");
    for value in [HIGH, LOW] {
        assert_eq!(
            poa.activate_object_with_id_and_priority("a", skeleton_of(2), corba(value)),
            Err(ActivateError::ObjectAlreadyActive)
        );
        assert_eq!(
            poa.activate_object_with_id_and_priority("b", skeleton_of(1), corba(value)),
            Err(ActivateError::ServantAlreadyActive)
        );
    }
}

#[test]
fn the_priority_of_a_created_reference_cannot_be_reassigned() {
    let s = site();
    let poa = s.rt(&[USER]);
    let id = ObjectId::from("a");
    let create = |value| {
        poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(value))
            .map(drop)
    };
    let activate = |value| poa.activate_object_with_id_and_priority(&id, witness(), corba(value));
    assert_eq!(create(HIGH), Ok(()));
    assert_eq!(create(HIGH), Ok(()), "the same again");
    assert_eq!(create(LOW), Err(reassigned().into()));
    assert_eq!(activate(MIDDLE), Err(reassigned().into()));
    assert_eq!(poa.active_objects(), 0);
    assert_eq!(activate(HIGH), Ok(()));
    assert_eq!(create(MIDDLE), Err(reassigned().into()));
    assert_eq!(create(HIGH), Ok(()));
    // Also if the object was activated without one: it has that of the POA.
    poa.activate_object_with_id("b", witness())
        .expect("it is free");
    let create = |value| {
        let id = "b".into();
        poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(value))
            .map(drop)
    };
    assert_eq!(create(HIGH), Err(reassigned().into()));
    assert_eq!(create(LOW), Ok(()));
}

#[test]
fn a_reference_holds_its_priority_for_the_object_that_comes_later() {
    let s = site();
    let poa = s.rt(&[]);
    for named in [true, false] {
        let reference = poa.create_reference_with_priority(PROBE_ID, corba(HIGH));
        let reference = reference.expect("ids are the POA's");
        tells_priority(&reference, HIGH);
        let id = poa.reference_to_id(&reference).expect("it is its own");
        let remote = s.remote(&reference);
        assert_eq!(kind(ask(&remote)), Kind::ObjectNotExist);
        if named {
            poa.activate_object_with_id_and_priority(&id, witness(), corba(HIGH))
        } else {
            poa.activate_object_with_id(&id, witness())
        }
        .expect("it is free");
        assert_eq!(ask(&remote), at(HIGH), "{named}");
        let active = poa.id_to_reference(&id).expect("it is active");
        tells_priority(&active, HIGH);
        assert_eq!(ask(&s.remote(&active)), at(HIGH));
    }
    let plain = poa.create_reference(PROBE_ID).expect("ids are the POA's");
    tells_priority(&plain, LOW);
}

#[test]
fn a_default_servant_serves_each_object_at_the_priority_of_its_reference() {
    let s = site();
    let poa = s.rt(&[USER, MULTIPLE, DEFAULT]);
    poa.set_servant(witness()).expect("it uses one");
    for (id, value) in [("a", HIGH), ("b", MIDDLE), ("c", LOW)] {
        let id = ObjectId::from(id);
        let object = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(value));
        let object = object.expect("ids are the test's");
        tells_priority(&object, value);
        assert_eq!(ask(&s.remote(&object)), at(value));
    }
    assert_eq!(ask(&s.remote_to(&poa, "d")), at(LOW), "that of the POA");
}

#[test]
fn a_default_servants_own_reference_keeps_the_priority() {
    let s = site();
    let poa = s.rt(&[USER, MULTIPLE, DEFAULT]);
    let servant = teller(|call| {
        let orb = call.orb();
        let current = orb.poa_current();
        let mine = current.reference().expect("it serves a request");
        let servant = current.servant().expect("it serves a request");
        let same = call.poa().servant_to_reference(&servant);
        assert_eq!(same, Ok(mine.clone()));
        Ok(orb.object_to_string(&mine))
    });
    poa.set_servant(servant).expect("it uses one");
    let id = "a".into();
    let object = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(HIGH));
    let object = object.expect("ids are the test's");
    assert_eq!(
        ask(&s.remote(&object)),
        Ok(s.server.object_to_string(&object))
    );
}

/// A servant manager that creates witnesses, and records the priorities of its calls.
#[derive(Clone, Default)]
struct Manager {
    asked: Arc<PiMutex<Vec<i16>>>,
}

impl Manager {
    fn witness(&self, adapter: &Poa) -> Servant {
        assert!(!adapter.name().is_empty());
        let native = chronorb_rt::current().expect("it can be asked");
        self.asked.lock().push(native.priority.into());
        witness()
    }
}

impl ServantActivator for Manager {
    fn incarnate(&self, _: &ObjectId, adapter: &Poa) -> Result<Servant, Refusal> {
        Ok(self.witness(adapter))
    }
}

impl ServantLocator for Manager {
    fn preinvoke(
        &self,
        _: &ObjectId,
        adapter: &Poa,
        _: &str,
    ) -> Result<(Servant, Cookie), Refusal> {
        Ok((self.witness(adapter), Cookie::default()))
    }
}

/// Returns the native priority of a high request.
fn high_native() -> i16 {
    if has_real_time() { 72 } else { 0 }
}

#[test]
fn a_servant_activator_makes_an_object_of_the_references_priority() {
    let s = site();
    let poa = s.rt(&[USER, MANAGER]);
    let manager = Manager::default();
    poa.set_servant_activator(manager.clone())
        .expect("it uses one");
    let id = "a".into();
    let object = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(HIGH));
    let object = s.remote(&object.expect("ids are the test's"));
    for _ in 0..2 {
        assert_eq!(ask(&object), at(HIGH));
    }
    assert_eq!(*manager.asked.lock(), [high_native()]);
    tells_priority(&poa.id_to_reference(&id).expect("it is active"), HIGH);
}

#[test]
fn a_servant_locator_is_asked_at_the_references_priority() {
    let s = site();
    let poa = s.rt(&[USER, MANAGER, NON_RETAIN]);
    let manager = Manager::default();
    poa.set_servant_locator(manager.clone())
        .expect("it uses one");
    let id = "a".into();
    let object = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(HIGH));
    let object = s.remote(&object.expect("ids are the test's"));
    assert_eq!(ask(&object), at(HIGH));
    assert_eq!(*manager.asked.lock(), [high_native()]);
}

/// Returns ports that are not in use at present.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("there is a port"));
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}

/// Returns one run of a server with lanes at these ports, and its persistent POA.
fn run_at(ports: [u16; 3], policies: &[Policy]) -> (Orb, Poa) {
    let endpoint = |port: u16| -> Endpoint {
        let endpoints = parse_endpoints(&format!("iiop://127.0.0.1:{port}"));
        endpoints.expect("it is correct").remove(0)
    };
    let orb = orb_with(|config| {
        let lanes = ports.iter().enumerate();
        config.lane_listen_endpoints = lanes
            .map(|(lane, port)| ((1, lane as u32), endpoint(*port)))
            .collect();
    });
    let root = orb.root_poa().expect("it is made");
    root.manager().activate().expect("it is not inactive");
    let rt = [laned(&orb), declared(LOW), PERSISTENT, USER];
    let policies = [&rt[..], policies].concat();
    let poa = root.create_poa("plant", Some(root.manager()), &policies);
    (orb, poa.expect("the policies agree"))
}

#[test]
fn a_persistent_reference_keeps_its_priority_over_a_restart() {
    let _uncopied = uncopied();
    let ports = free_ports();
    let text = {
        let (orb, poa) = run_at(ports, &[]);
        poa.activate_object_with_id_and_priority("boiler", witness(), corba(HIGH))
            .expect("it is free");
        let object = poa.id_to_reference(&"boiler".into()).expect("it is active");
        tells_priority(&object, HIGH);
        let text = orb.object_to_string(&object);
        orb.shutdown(true).expect("no servant calls it");
        text
    };
    let client = orb();
    let object = client.string_to_object(&text).expect("it reads");
    // Independent of the priority in the next run.
    let activated = run_at(ports, &[]);
    let again = activated
        .1
        .activate_object_with_id_and_priority("boiler", witness(), corba(HIGH));
    again.expect("it is free");
    let reference = activated.1.id_to_reference(&"boiler".into());
    let reference = reference.expect("it is active");
    assert_eq!(activated.0.object_to_string(&reference), text);
    assert_eq!(ask(&object), at(HIGH));
    activated.0.shutdown(true).expect("no servant calls it");
    // A priority that the server has not declared in this run is ignored.
    let plain = run_at(ports, &[]);
    plain
        .1
        .activate_object_with_id("boiler", witness())
        .expect("it is free");
    assert_eq!(ask(&object), in_lane_at(HIGH, LOW));
    plain.0.shutdown(true).expect("no servant calls it");
    let by_default = run_at(ports, &[MULTIPLE, DEFAULT]);
    by_default.1.set_servant(witness()).expect("it uses one");
    assert_eq!(ask(&object), in_lane_at(HIGH, LOW));
    let id = "boiler".into();
    let declared = by_default
        .1
        .create_reference_with_id_and_priority(&id, PROBE_ID, corba(HIGH));
    let declared = by_default.0.object_to_string(&declared.expect("it is new"));
    assert_eq!(declared, text);
    assert_eq!(ask(&object), at(HIGH));
    by_default.0.shutdown(true).expect("no servant calls it");
    // The server's present declaration takes precedence.
    let other = run_at(ports, &[]);
    other
        .1
        .activate_object_with_id_and_priority("boiler", witness(), corba(MIDDLE))
        .expect("it is free");
    assert_eq!(ask(&object), in_lane_at(HIGH, MIDDLE));
    other.0.shutdown(true).expect("no servant calls it");
}

#[test]
fn a_forged_priority_is_none() {
    let s = site();
    let poa = s.rt(&[USER, MULTIPLE, DEFAULT]);
    poa.set_servant(witness()).expect("it uses one");
    let id = "a".into();
    let object = poa.create_reference_with_id_and_priority(&id, PROBE_ID, corba(HIGH));
    let object = s.remote(&object.expect("ids are the test's"));
    let key = key_of(&object);
    let forged = |value: i16| {
        let mut key = key.clone();
        key[4..6].copy_from_slice(&value.to_be_bytes());
        with_key(&s.client, &object, &key)
    };
    for value in [HIGH, MIDDLE, LOW, 0, NO_LANE, i16::MAX] {
        assert_eq!(ask(&forged(value)), at(HIGH), "as it was declared");
    }
    // Without a declaration, the key has no effect either, for the priority of any lane.
    let other = s.remote_to(&poa, "b");
    let key = [&key_of(&object)[..6], &key_of(&other)[4..]].concat();
    assert_eq!(ask(&with_key(&s.client, &other, &key)), at(LOW));
    for value in [-1, i16::MIN] {
        assert_eq!(kind(ask(&forged(value))), Kind::ObjectNotExist);
    }
    // It has no effect on an object whose priority the server has declared.
    let poa = s.poa("active", &[declared(LOW), USER]);
    poa.activate_object_with_id_and_priority("a", witness(), corba(LOW))
        .expect("it is free");
    let object = s.remote_to(&poa, "a");
    let mut key = key_of(&object);
    key[4..6].copy_from_slice(&HIGH.to_be_bytes());
    let served = ask(&with_key(&s.client, &object, &key)).expect("it is there");
    assert!(served.contains(&format!(", {LOW}, ")), "{served}");
    // It has no effect on an object with the priority of its POA.
    poa.activate_object_with_id("plain", witness())
        .expect("it is free");
    let plain = s.remote_to(&poa, "plain");
    let key = [
        &key[..3],
        &[key[3] | 0x10],
        &key[4..6],
        &key_of(&plain)[4..],
    ]
    .concat();
    let served = ask(&with_key(&s.client, &plain, &key)).expect("it is there");
    assert!(served.contains(&format!(", {LOW}, ")), "{served}");
}

#[test]
fn what_was_declared_is_remembered_within_bounds() {
    let s = site();
    let retained = Policy::ServantRetention(ServantRetention::Retain);
    let poa = s.poa("many", &[declared(LOW), USER, retained]);
    let create = |id: &str, value| {
        poa.create_reference_with_id_and_priority(&id.into(), PROBE_ID, corba(value))
            .map(|object| told_priority(&object))
    };
    assert_eq!(create("first", HIGH), Ok(Some((1, HIGH))));
    for n in 0..1 << 16 {
        create(&format!("object {n}"), HIGH).expect("there is room");
    }
    // An old declaration is forgotten; a newer one is not.
    assert_eq!(create("first", LOW), Ok(Some((1, LOW))));
    assert_eq!(create("first", HIGH), Err(reassigned().into()));
}
