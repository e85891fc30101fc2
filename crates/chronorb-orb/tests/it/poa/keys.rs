//! Object keys that only their POA can create.

use chronorb_giop::LocateStatus;
use chronorb_orb::poa::{CreatePoaError, ObjectKeySecret, ObjectKeys, Policy, PolicyRule};
use chronorb_orb::{ConfigError, Incident, OrbConfig, SystemExceptionKind as Kind};

use crate::support::adapters::{
    Locator, PERSISTENT, Site, USER, ask, key_of, kind, named, site, site_with, told, with_key,
};

const AUTHENTICATED: Policy = Policy::ObjectKeys(ObjectKeys::Authenticated);
/// The length of the key's fields for the incarnation and slot of the POA, the id, and the code.
const PLACE: usize = 16;
const ID: usize = 8;
const CODE: usize = 8;

/// Returns the keys of possible neighbouring objects that can be derived from this one's reference.
fn neighbours(key: &[u8]) -> Vec<Vec<u8>> {
    let id = key.len() - ID;
    let slots = (0..4_u32).flat_map(|index| (1..3_u32).map(move |generation| (index, generation)));
    let keys = slots.map(|(index, generation)| {
        let slot = [index.to_be_bytes(), generation.to_be_bytes()].concat();
        [&key[..id], &slot].concat()
    });
    keys.filter(|other| other != key).collect()
}

fn forged(site: &Site) -> u64 {
    let snapshot = site.server.snapshot();
    let mut incidents = snapshot.incidents.iter();
    let forged = incidents.find(|(incident, _)| *incident == Incident::ForgedObjectKey);
    forged.expect("they are all there").1
}

#[test]
fn who_has_one_reference_cannot_make_others_of_a_poa_with_authenticated_keys() {
    let site = site();
    for (name, policies, expected) in [("plain", &[][..], 2), ("guarded", &[AUTHENTICATED], 0)] {
        let poa = site.poa(name, policies);
        let objects: Vec<_> = (0..3)
            .map(|n| {
                let id = poa.activate_object(named(format!("{name} {n}")));
                let object = poa.id_to_reference(&id.expect("it is new"));
                site.remote(&object.expect("it is active"))
            })
            .collect();
        for (n, object) in objects.iter().enumerate() {
            assert_eq!(ask(object), told(&format!("{name} {n}")));
        }
        let key = key_of(&objects[0]);
        let mut locator = Locator::of(&objects[0]);
        assert_eq!(locator.locate(&[&key]), [LocateStatus::ObjectHere]);
        let tried = neighbours(&key);
        let before = forged(&site);
        let by_key = |key: &Vec<u8>| with_key(&site.client, &objects[0], key);
        let found = tried.iter().filter(|other| ask(&by_key(other)).is_ok());
        assert_eq!(found.count(), expected, "{name}");
        let located = locator.locate(&tried);
        let found = located.iter().filter(|at| **at == LocateStatus::ObjectHere);
        assert_eq!(found.count(), expected, "{name}");
        if expected == 0 {
            assert_eq!(forged(&site) - before, tried.len() as u64);
        }
    }
}

#[test]
fn a_key_without_its_code_or_with_another_is_of_no_object() {
    let site = site();
    let poa = site.poa("guarded", &[AUTHENTICATED]);
    let id = poa.activate_object(named("it")).expect("it is new");
    let object = poa.id_to_reference(&id).expect("it is active");
    let key = key_of(&object);
    assert_eq!(key.len(), 4 + CODE + PLACE + ID);
    let mut plain = [&key[..4], &key[4 + CODE..]].concat();
    plain[3] &= !0x20;
    let mut wrong = key.clone();
    wrong[4] ^= 1;
    for other in [plain, wrong, [&key[..], b"x"].concat()] {
        let other = with_key(&site.client, &object, &other);
        assert_eq!(kind(ask(&other)), Kind::ObjectNotExist);
    }
    assert_eq!(ask(&with_key(&site.client, &object, &key)), told("it"));
}

#[test]
fn requests_wait_for_a_poa_with_authenticated_keys_as_for_any() {
    let site = site();
    let root = site.server.root_poa().expect("it is made");
    let poa = root
        .create_poa("held", None, &[AUTHENTICATED])
        .expect("it is free");
    let id = poa.activate_object(named("it")).expect("it is new");
    let object = site.remote(&poa.id_to_reference(&id).expect("it is active"));
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| ask(&object));
        poa.manager().activate().expect("it was not deactivated");
        assert_eq!(asked.join().expect("it does not panic"), told("it"));
    });
    // Within the process, too.
    let near = poa.id_to_reference(&id).expect("it is active");
    assert_eq!(ask(&near), told("it"));
    poa.destroy(true, true).expect("no servant waits");
    assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
}

#[test]
fn persistent_keys_are_authenticated_by_the_applications_secret() {
    let key_by = |secret: [u8; 16]| {
        let site = site_with(|config| {
            config.object_key_secret = Some(ObjectKeySecret::new(secret));
        });
        let poa = site.poa("kept", &[PERSISTENT, USER, AUTHENTICATED]);
        let id = "it".into();
        poa.activate_object_with_id("it", named("it"))
            .expect("it is free");
        let object = site.remote(&poa.id_to_reference(&id).expect("it is active"));
        assert_eq!(ask(&object), told("it"));
        let mut other = key_of(&object);
        *other.last_mut().expect("it has an id") ^= 1;
        assert_eq!(
            kind(ask(&with_key(&site.client, &object, &other))),
            Kind::ObjectNotExist
        );
        key_of(&object)
    };
    assert_eq!(key_by([1; 16]), key_by([1; 16]), "the same in every run");
    assert_ne!(key_by([1; 16]), key_by([2; 16]));
    let site = site();
    let made = site
        .root
        .create_poa("kept", None, &[USER, AUTHENTICATED, PERSISTENT]);
    assert_eq!(
        made.err(),
        Some(CreatePoaError::InvalidPolicy {
            index: 1,
            rule: PolicyRule::NoSecret,
        })
    );
}

#[test]
fn a_secret_is_a_regular_file_of_16_octets() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("secret");
    let read = || {
        let path = file.to_str().expect("it is text").to_owned();
        OrbConfig::read(&mut vec!["-ORBObjectKeySecret".to_owned(), path])
    };
    for octets in [&b""[..], &[7; 15], &[7; 17]] {
        std::fs::write(&file, octets).expect("it is ours");
        let Err(ConfigError::BadValue { name, problem, .. }) = read() else {
            panic!("{} octets are a secret", octets.len());
        };
        assert_eq!(name, "-ORBObjectKeySecret");
        assert!(problem.contains("16 octets"), "{problem}");
    }
    std::fs::write(&file, [7; 16]).expect("it is ours");
    let config = read().expect("it is a secret");
    assert_eq!(
        config.object_key_secret,
        Some(ObjectKeySecret::new([7; 16]))
    );
    assert!(!format!("{config:?}").contains("[7, 7"), "it is not shown");
    let device = ["-ORBObjectKeySecret", "/dev/zero"].map(str::to_owned);
    assert!(OrbConfig::read(&mut device.to_vec()).is_err());
}
