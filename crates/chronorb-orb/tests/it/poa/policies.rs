//! Policies of POAs: permitted combinations, defaults, and the policies that operations require.

use chronorb_orb::poa::{
    ActivateError, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectError, ObjectId,
    Poa, Policy, RequestProcessing, ServantActivator, ServantError, ServantLocator,
    ServantManagerError, ServantRetention, ThreadModel,
};
use chronorb_orb::poa::{Cookie, Refusal};
use chronorb_orb::{Servant, SystemExceptionKind};

use crate::support::adapters::{
    DEFAULT, IMPLICIT, MANAGER, MULTIPLE, NON_RETAIN, PERSISTENT, USER, ask, id_teller, named, omg,
    site, told,
};
use crate::support::{PROBE_ID, invalid_policy, orb};

/// Every combination of interdependent policies, and the result according to CORBA 3.3, 15.3.8: it
/// is legal, or the policies that contradict each other.
const TABLE: &str = "
RETAIN      MAP      UNIQUE    SYSTEM  NO_IMPLICIT  legal
RETAIN      MAP      UNIQUE    SYSTEM  IMPLICIT     legal
RETAIN      MAP      UNIQUE    USER    NO_IMPLICIT  legal
RETAIN      MAP      UNIQUE    USER    IMPLICIT     implicit
RETAIN      MAP      MULTIPLE  SYSTEM  NO_IMPLICIT  legal
RETAIN      MAP      MULTIPLE  SYSTEM  IMPLICIT     legal
RETAIN      MAP      MULTIPLE  USER    NO_IMPLICIT  legal
RETAIN      MAP      MULTIPLE  USER    IMPLICIT     implicit
RETAIN      DEFAULT  UNIQUE    SYSTEM  NO_IMPLICIT  processing
RETAIN      DEFAULT  UNIQUE    SYSTEM  IMPLICIT     processing
RETAIN      DEFAULT  UNIQUE    USER    NO_IMPLICIT  processing
RETAIN      DEFAULT  UNIQUE    USER    IMPLICIT     processing implicit
RETAIN      DEFAULT  MULTIPLE  SYSTEM  NO_IMPLICIT  legal
RETAIN      DEFAULT  MULTIPLE  SYSTEM  IMPLICIT     legal
RETAIN      DEFAULT  MULTIPLE  USER    NO_IMPLICIT  legal
RETAIN      DEFAULT  MULTIPLE  USER    IMPLICIT     implicit
RETAIN      MANAGER  UNIQUE    SYSTEM  NO_IMPLICIT  legal
RETAIN      MANAGER  UNIQUE    SYSTEM  IMPLICIT     legal
RETAIN      MANAGER  UNIQUE    USER    NO_IMPLICIT  legal
RETAIN      MANAGER  UNIQUE    USER    IMPLICIT     implicit
RETAIN      MANAGER  MULTIPLE  SYSTEM  NO_IMPLICIT  legal
RETAIN      MANAGER  MULTIPLE  SYSTEM  IMPLICIT     legal
RETAIN      MANAGER  MULTIPLE  USER    NO_IMPLICIT  legal
RETAIN      MANAGER  MULTIPLE  USER    IMPLICIT     implicit
NON_RETAIN  MAP      UNIQUE    SYSTEM  NO_IMPLICIT  retention processing
NON_RETAIN  MAP      UNIQUE    SYSTEM  IMPLICIT     retention processing implicit
NON_RETAIN  MAP      UNIQUE    USER    NO_IMPLICIT  retention processing
NON_RETAIN  MAP      UNIQUE    USER    IMPLICIT     retention processing implicit
NON_RETAIN  MAP      MULTIPLE  SYSTEM  NO_IMPLICIT  retention processing
NON_RETAIN  MAP      MULTIPLE  SYSTEM  IMPLICIT     retention processing implicit
NON_RETAIN  MAP      MULTIPLE  USER    NO_IMPLICIT  retention processing
NON_RETAIN  MAP      MULTIPLE  USER    IMPLICIT     retention processing implicit
NON_RETAIN  DEFAULT  UNIQUE    SYSTEM  NO_IMPLICIT  processing
NON_RETAIN  DEFAULT  UNIQUE    SYSTEM  IMPLICIT     processing implicit
NON_RETAIN  DEFAULT  UNIQUE    USER    NO_IMPLICIT  processing
NON_RETAIN  DEFAULT  UNIQUE    USER    IMPLICIT     processing implicit
NON_RETAIN  DEFAULT  MULTIPLE  SYSTEM  NO_IMPLICIT  legal
NON_RETAIN  DEFAULT  MULTIPLE  SYSTEM  IMPLICIT     implicit
NON_RETAIN  DEFAULT  MULTIPLE  USER    NO_IMPLICIT  legal
NON_RETAIN  DEFAULT  MULTIPLE  USER    IMPLICIT     implicit
NON_RETAIN  MANAGER  UNIQUE    SYSTEM  NO_IMPLICIT  legal
NON_RETAIN  MANAGER  UNIQUE    SYSTEM  IMPLICIT     implicit
NON_RETAIN  MANAGER  UNIQUE    USER    NO_IMPLICIT  legal
NON_RETAIN  MANAGER  UNIQUE    USER    IMPLICIT     implicit
NON_RETAIN  MANAGER  MULTIPLE  SYSTEM  NO_IMPLICIT  legal
NON_RETAIN  MANAGER  MULTIPLE  SYSTEM  IMPLICIT     implicit
NON_RETAIN  MANAGER  MULTIPLE  USER    NO_IMPLICIT  legal
NON_RETAIN  MANAGER  MULTIPLE  USER    IMPLICIT     implicit
";

const THREADS: [ThreadModel; 3] = [
    ThreadModel::OrbControl,
    ThreadModel::SingleThread,
    ThreadModel::MainThread,
];
const LIFESPANS: [Lifespan; 2] = [Lifespan::Transient, Lifespan::Persistent];

/// Returns the policy of a word in the table.
fn policy(word: &str) -> Policy {
    match word {
        "RETAIN" => Policy::ServantRetention(ServantRetention::Retain),
        "NON_RETAIN" => NON_RETAIN,
        "MAP" => Policy::RequestProcessing(RequestProcessing::ActiveObjectMapOnly),
        "DEFAULT" => DEFAULT,
        "MANAGER" => MANAGER,
        "UNIQUE" => Policy::IdUniqueness(IdUniqueness::Unique),
        "MULTIPLE" => MULTIPLE,
        "SYSTEM" => Policy::IdAssignment(IdAssignment::System),
        "USER" => USER,
        "NO_IMPLICIT" => Policy::ImplicitActivation(ImplicitActivation::NoImplicit),
        "IMPLICIT" => IMPLICIT,
        other => panic!("{other} is no policy"),
    }
}

/// A row: its words, and the policies at fault.
struct Row {
    words: Vec<&'static str>,
    at_fault: Vec<&'static str>,
}

impl Row {
    fn policies(&self) -> Vec<Policy> {
        self.words.iter().map(|word| policy(word)).collect()
    }

    fn is_legal(&self) -> bool {
        self.at_fault == ["legal"]
    }
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.is_empty());
    let rows = lines.map(|line| {
        let mut words: Vec<_> = line.split_whitespace().collect();
        let at_fault = words.split_off(5);
        Row { words, at_fault }
    });
    rows.collect()
}

/// Returns the column of the table for a kind of policy.
fn column(policy: &Policy) -> &'static str {
    match policy {
        Policy::ServantRetention(_) => "retention",
        Policy::RequestProcessing(_) => "processing",
        Policy::IdUniqueness(_) => "uniqueness",
        Policy::IdAssignment(_) => "assignment",
        Policy::ImplicitActivation(_) => "implicit",
        _ => "other",
    }
}

#[test]
fn every_combination_is_legal_or_the_first_policy_at_fault_is_named() {
    assert_eq!(rows().len(), 2 * 3 * 2 * 2 * 2);
    let orb = orb();
    let root = orb.root_poa().expect("it is made");
    let mut combinations = 0;
    for row in rows() {
        for (thread, lifespan) in THREADS.iter().flat_map(|t| LIFESPANS.map(|l| (*t, l))) {
            combinations += 1;
            let mut list = row.policies();
            list.extend([Policy::Thread(thread), Policy::Lifespan(lifespan)]);
            for turn in 0..2 * list.len() {
                if turn == list.len() {
                    list.reverse();
                }
                list.rotate_left(1);
                let at_fault = list.iter().position(|p| row.at_fault.contains(&column(p)));
                let made = root.create_poa("one", None, &list);
                match at_fault {
                    None => made
                        .expect("it is legal")
                        .destroy(false, true)
                        .expect("no servant calls"),
                    Some(index) => {
                        assert_eq!(invalid_policy(made), Some(index as u16), "{list:?}");
                    }
                }
            }
        }
    }
    assert_eq!(combinations, 288);
}

#[test]
fn a_policy_given_twice_is_named_where_it_stands_again() {
    let orb = orb();
    let root = orb.root_poa().expect("it is made");
    let list = [USER, MULTIPLE, Policy::IdAssignment(IdAssignment::System)];
    let made = root.create_poa("twice", None, &list);
    assert_eq!(invalid_policy(made), Some(2));
    // Even if both have the same value.
    let made = root.create_poa("twice", None, &[PERSISTENT, PERSISTENT]);
    assert_eq!(invalid_policy(made), Some(1));
    root.create_poa("twice", None, &[USER])
        .expect("the name is free still");
}

#[test]
fn the_defaults_are_those_of_the_standard() {
    let s = site();
    let poa = s.poa("default", &[]);
    let servant = named("it");
    assert_eq!(
        poa.servant_to_id(&servant),
        Err(ServantError::ServantNotActive),
        "NO_IMPLICIT_ACTIVATION"
    );
    let id = poa.activate_object(&servant).expect("RETAIN and SYSTEM_ID");
    assert_eq!(
        poa.activate_object(&servant),
        Err(ActivateError::ServantAlreadyActive),
        "UNIQUE_ID"
    );
    assert_eq!(
        poa.servant().err(),
        Some(ServantError::WrongPolicy),
        "USE_ACTIVE_OBJECT_MAP_ONLY"
    );
    let manager = poa.servant_manager().map(|_| ());
    assert_eq!(manager, Err(ServantManagerError::WrongPolicy));
    let object = poa.id_to_reference(&id).expect("it is active");
    let late = s.remote(&object);
    assert_eq!(ask(&late), told("it"));
    // TRANSIENT: a POA with the same name is a different one.
    poa.destroy(true, true).expect("no servant calls");
    let poa = s.poa("default", &[]);
    poa.activate_object(named("another"))
        .expect("it is a new one");
    let gone = crate::support::adapters::kind(ask(&late));
    assert_eq!(gone, SystemExceptionKind::ObjectNotExist);
}

#[test]
fn the_root_activates_implicitly() {
    let s = site();
    let servant = named("it");
    let object = s.root.servant_to_reference(&servant).expect("IMPLICIT");
    assert_eq!(ask(&s.remote(&object)), told("it"));
    assert_eq!(
        s.root.servant_to_reference(&servant),
        Ok(object),
        "UNIQUE_ID: the same again"
    );
}

#[test]
fn children_do_not_inherit_policies() {
    let s = site();
    let parent = s.poa("parent", &[USER, MULTIPLE]);
    let child = parent.create_poa("child", None, &[]).expect("it is free");
    child.activate_object(named("x")).expect("SYSTEM_ID");
}

/// The policies that each operation requires (CORBA 3.3, 15.3.9), outside of any request: one of
/// the alternatives that `|` separates. Without them, the result is `WrongPolicy`.
const OPERATIONS: &str = "
activate_object           SYSTEM RETAIN
activate_object_with_id   RETAIN
deactivate_object         RETAIN
create_reference          SYSTEM
create_reference_with_id  |
servant_to_id             DEFAULT | RETAIN UNIQUE | RETAIN IMPLICIT
servant_to_reference      RETAIN UNIQUE | RETAIN IMPLICIT
reference_to_servant      RETAIN | DEFAULT
reference_to_id           |
id_to_servant             RETAIN | DEFAULT
id_to_reference           RETAIN
servant                   DEFAULT
set_servant               DEFAULT
servant_manager           MANAGER
set_servant_activator     MANAGER
set_servant_locator       MANAGER
";

/// Returns whether an operation fails because of the policies.
fn is_wrong_policy(poa: &Poa, operation: &str) -> bool {
    let id = ObjectId::from("x");
    let servant = named("it");
    let reference = || {
        let made = poa.create_reference(PROBE_ID);
        made.or_else(|_| poa.create_reference_with_id(&id, PROBE_ID))
            .expect("either is possible")
    };
    let wrong = |error| matches!(error, Some(ActivateError::WrongPolicy));
    let wrong_object = |error| matches!(error, Some(ObjectError::WrongPolicy));
    let wrong_servant = |error| matches!(error, Some(ServantError::WrongPolicy));
    let wrong_manager = |error| matches!(error, Some(ServantManagerError::WrongPolicy));
    match operation {
        "activate_object" => wrong(poa.activate_object(servant).err()),
        "activate_object_with_id" => wrong(poa.activate_object_with_id(id, servant).err()),
        "deactivate_object" => wrong_object(poa.deactivate_object(&id).err()),
        "create_reference" => wrong_object(poa.create_reference(PROBE_ID).err()),
        "create_reference_with_id" => {
            wrong_object(poa.create_reference_with_id(&id, PROBE_ID).err())
        }
        "servant_to_id" => wrong_servant(poa.servant_to_id(&servant).err()),
        "servant_to_reference" => wrong_servant(poa.servant_to_reference(&servant).err()),
        "reference_to_servant" => wrong_object(poa.reference_to_servant(&reference()).err()),
        "reference_to_id" => wrong_object(poa.reference_to_id(&reference()).err()),
        "id_to_servant" => wrong_object(poa.id_to_servant(&id).err()),
        "id_to_reference" => wrong_object(poa.id_to_reference(&id).err()),
        "servant" => wrong_servant(poa.servant().err()),
        "set_servant" => wrong_servant(poa.set_servant(servant).err()),
        "servant_manager" => wrong_manager(poa.servant_manager().err()),
        "set_servant_activator" => wrong_manager(poa.set_servant_activator(Nobody).err()),
        "set_servant_locator" => wrong_manager(poa.set_servant_locator(Nobody).err()),
        other => panic!("{other} is no operation"),
    }
}

#[test]
fn every_operation_is_wrong_policy_exactly_where_the_standard_says() {
    let s = site();
    for (number, row) in rows().iter().filter(|row| row.is_legal()).enumerate() {
        for lifespan in LIFESPANS {
            let mut policies = row.policies();
            policies.push(Policy::Lifespan(lifespan));
            let lines = OPERATIONS.lines().filter(|line| !line.is_empty());
            for line in lines {
                let (operation, demands) = line.split_once(' ').expect("two columns");
                let allowed = demands.split('|').any(|alternative| {
                    let mut words = alternative.split_whitespace();
                    words.all(|word| row.words.contains(&word))
                });
                let poa = s.poa(&format!("{number} {lifespan:?} {operation}"), &policies);
                assert_eq!(
                    is_wrong_policy(&poa, operation),
                    !allowed,
                    "{operation} with {:?} {lifespan:?}",
                    row.words
                );
            }
        }
    }
}

#[test]
fn a_default_servant_knows_its_reference_while_it_serves() {
    // NON_RETAIN, so that only the request in progress can provide the answer.
    let s = site();
    let poa = s.poa("default", &[NON_RETAIN, DEFAULT, MULTIPLE, USER]);
    let servant = crate::support::adapters::teller(|call| {
        let current = call.orb().poa_current();
        let servant = current.servant().expect("a request is in progress");
        let id = call.poa().servant_to_id(&servant).expect("it is this one");
        let object = call
            .poa()
            .servant_to_reference(&servant)
            .expect("it is this one");
        assert_eq!(call.poa().reference_to_id(&object), Ok(id.clone()));
        Ok(crate::support::adapters::hex(id.as_bytes()))
    });
    poa.set_servant(&servant).expect("USE_DEFAULT_SERVANT");
    let object = s.remote_to(&poa, "one");
    assert_eq!(ask(&object), told(&crate::support::adapters::hex(b"one")));
    assert_eq!(
        poa.servant_to_id(&servant),
        Err(ServantError::ServantNotActive),
        "outside of a request"
    );
    assert_eq!(
        poa.servant_to_reference(&servant).err(),
        Some(ServantError::WrongPolicy)
    );
}

#[test]
fn a_servant_manager_of_the_wrong_kind_is_obj_adapter_and_a_second_one_bad_inv_order() {
    let s = site();
    let wrong = |result: Result<(), ServantManagerError>, kind, code| {
        assert_eq!(result, Err(ServantManagerError::System(omg(kind, code))));
    };
    let retains = s.poa("retains", &[MANAGER]);
    let forgets = s.poa("forgets", &[MANAGER, NON_RETAIN]);
    let obj_adapter = SystemExceptionKind::ObjAdapter;
    let bad_inv_order = SystemExceptionKind::BadInvOrder;
    wrong(retains.set_servant_locator(Nobody), obj_adapter, 4);
    wrong(forgets.set_servant_activator(Nobody), obj_adapter, 4);
    retains.set_servant_activator(Nobody).expect("it is one");
    forgets.set_servant_locator(Nobody).expect("it is one");
    wrong(retains.set_servant_activator(Nobody), bad_inv_order, 6);
    wrong(forgets.set_servant_locator(Nobody), bad_inv_order, 6);
}

#[test]
fn nothing_is_wrong_with_user_ids_that_look_like_anything() {
    let s = site();
    for (n, policies) in [vec![USER, MULTIPLE], vec![USER, MULTIPLE, PERSISTENT]]
        .iter()
        .enumerate()
    {
        let poa = s.poa(&format!("user {n}"), policies);
        for id in [&b""[..], b"\0", b"a", &[0xff; 8], &[0; 16], &[7; 300]] {
            poa.activate_object_with_id(ObjectId::new(id), id_teller())
                .expect("it is free");
            let object = poa
                .id_to_reference(&ObjectId::new(id))
                .expect("it is active");
            let hex = crate::support::adapters::hex(id);
            assert_eq!(ask(&s.remote(&object)), told(&hex));
            assert_eq!(ask(&object), told(&hex));
        }
    }
}

/// A servant manager without servants.
struct Nobody;

impl ServantActivator for Nobody {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Err(omg(SystemExceptionKind::ObjectNotExist, 0).into())
    }
}

impl ServantLocator for Nobody {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, Cookie), Refusal> {
        Err(omg(SystemExceptionKind::ObjectNotExist, 0).into())
    }
}
