//! References that are valid after a restart of the server.

use chronorb_orb::poa::{ObjectId, Poa, Policy};
use chronorb_orb::{Orb, SystemExceptionKind as Kind, parse_endpoints};
use std::net::TcpListener;

use crate::support::adapters::{
    PERSISTENT, USER, ask, hex, id_teller, kind, named, profile_of, told, with_profile,
};
use crate::support::descriptors::uncopied;
use crate::support::{PROBE_ID, orb, orb_with};

/// Returns a port that is not in use at present.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}

/// One run of a server that listens at a fixed port.
struct Run {
    orb: Orb,
    root: Poa,
}

fn run_at(endpoint: &str) -> Run {
    let orb = orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoint).expect("it is correct");
    });
    let root = orb.root_poa().expect("it is made");
    root.manager().activate().expect("it is not inactive");
    Run { orb, root }
}

impl Run {
    fn poa(&self, path: &[&str], policies: &[Policy]) -> Poa {
        path.iter().fold(self.root.clone(), |poa, name| {
            poa.find_poa(name, false).unwrap_or_else(|_| {
                poa.create_poa(name, Some(self.root.manager()), policies)
                    .expect("it is free")
            })
        })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true);
    }
}

/// Serves the object `id` of the POA `path`, and returns its reference as text.
fn serve(run: &Run, path: &[&str], id: &str) -> String {
    let poa = run.poa(path, &[PERSISTENT, USER]);
    poa.activate_object_with_id(id, named(format!("{} {id}", path.join(" "))))
        .expect("it is free");
    let object = poa.id_to_reference(&id.into()).expect("it is active");
    run.orb.object_to_string(&object)
}

#[test]
fn references_are_the_same_octet_for_octet_whatever_comes_before() {
    let _uncopied = uncopied();
    let endpoint = format!("iiop://127.0.0.1:{}", free_port());
    let objects: [(&[&str], &str); 4] = [
        (&["one"], "a"),
        (&["one"], "b"),
        (&["one", "two"], "a"),
        (&["three"], "a"),
    ];
    let first: Vec<String> = {
        let run = run_at(&endpoint);
        objects.map(|(path, id)| serve(&run, path, id)).into()
    };
    let client = orb();
    let run = run_at(&endpoint);
    // The order of creation differs between the runs.
    let other = run.poa(&["other"], &[]);
    let gone = other.activate_object(named("x")).expect("it is new");
    other.deactivate_object(&gone).expect("it is active");
    serve(&run, &["one"], "c");
    let second: Vec<String> = objects
        .iter()
        .rev()
        .map(|(path, id)| serve(&run, path, id))
        .collect();
    let second: Vec<String> = second.into_iter().rev().collect();
    assert_eq!(first, second);
    for (text, (path, id)) in first.iter().zip(objects) {
        let object = client.string_to_object(text).expect("it reads");
        assert_eq!(ask(&object), told(&format!("{} {id}", path.join(" "))));
    }
    // So does a reference that was created without an object.
    let poa = run.poa(&["one"], &[]);
    let made = poa.create_reference_with_id(&"a".into(), PROBE_ID);
    let made = run.orb.object_to_string(&made.expect("ids are ours"));
    assert_eq!(made, first[0]);
}

#[test]
fn a_client_goes_on_with_the_next_run() {
    let _uncopied = uncopied();
    let endpoint = format!("iiop://127.0.0.1:{}", free_port());
    let client = orb();
    let mut run = run_at(&endpoint);
    let text = serve(&run, &["one"], "a");
    let object = client.string_to_object(&text).expect("it reads");
    assert_eq!(ask(&object), told("one a"));
    for _ in 0..3 {
        drop(run);
        run = run_at(&endpoint);
        serve(&run, &["one"], "a");
        assert_eq!(ask(&object), told("one a"));
    }
}

#[test]
fn system_ids_may_be_activated_again_in_the_next_run() {
    let _uncopied = uncopied();
    let endpoint = format!("iiop://127.0.0.1:{}", free_port());
    let (ids, texts): (Vec<ObjectId>, Vec<String>) = {
        let run = run_at(&endpoint);
        let poa = run.poa(&["system"], &[PERSISTENT]);
        let ids = (0..3).map(|_| poa.activate_object(id_teller()).expect("it is new"));
        ids.map(|id| {
            let object = poa.id_to_reference(&id).expect("it is active");
            (id, run.orb.object_to_string(&object))
        })
        .unzip()
    };
    let client = orb();
    let run = run_at(&endpoint);
    let poa = run.poa(&["system"], &[PERSISTENT]);
    // New ids differ from the old ones.
    for _ in 0..3 {
        let new = poa.activate_object(id_teller()).expect("it is new");
        assert!(!ids.contains(&new));
    }
    for (id, text) in ids.iter().zip(&texts) {
        let object = client.string_to_object(text).expect("it reads");
        assert_eq!(kind(ask(&object)), Kind::ObjectNotExist);
        poa.activate_object_with_id(id, id_teller())
            .expect("it is an id of this POA's");
        assert_eq!(ask(&object), told(&hex(id.as_bytes())));
        let again = poa.id_to_reference(id).expect("it is active");
        assert_eq!(run.orb.object_to_string(&again), *text);
    }
}

#[test]
fn transient_references_of_an_earlier_run_are_told() {
    let _uncopied = uncopied();
    let endpoint = format!("iiop://127.0.0.1:{}", free_port());
    let populate = |run: &Run| {
        let system = run.poa(&["system"], &[]);
        let user = run.poa(&["user"], &[USER]);
        let first = system.serve(named("x")).expect("it is new");
        user.activate_object_with_id("x", named("x"))
            .expect("it is free");
        let second = user.id_to_reference(&"x".into()).expect("it is active");
        [first, second].map(|object| run.orb.object_to_string(&object))
    };
    let old = populate(&run_at(&endpoint));
    let run = run_at(&endpoint);
    let new = populate(&run);
    let client = orb();
    for (old, new) in old.iter().zip(&new) {
        assert_ne!(old, new);
        let [old, new] = [old, new].map(|text| client.string_to_object(text).expect("it reads"));
        assert_eq!(ask(&new), told("x"));
        assert_eq!(kind(ask(&old)), Kind::ObjectNotExist);
        // The server itself is not deceived either.
        let text = client.object_to_string(&old);
        let within = run.orb.string_to_object(&text).expect("it reads");
        assert_eq!(kind(ask(&within)), Kind::ObjectNotExist);
    }
}

#[test]
fn a_published_host_name_hides_where_the_server_listens() {
    let _uncopied = uncopied();
    let port = free_port();
    let client = orb();
    let endpoints = [
        format!("iiop://127.0.0.1:{port}/hostname_in_ior=localhost"),
        format!("iiop://0.0.0.0:{port}/hostname_in_ior=localhost"),
        format!("iiop://localhost:{port}"),
    ];
    let mut texts = Vec::new();
    let mut object = None;
    for endpoint in &endpoints {
        let run = run_at(endpoint);
        texts.push(serve(&run, &["one"], "a"));
        let object =
            object.get_or_insert_with(|| client.string_to_object(&texts[0]).expect("it reads"));
        assert_eq!(profile_of(object).host, "localhost");
        assert_eq!(ask(object), told("one a"), "{endpoint}");
        // For the server itself it is the local object too.
        let within = run.orb.string_to_object(&texts[0]).expect("it reads");
        assert_eq!(ask(&within), told("one a"), "{endpoint}");
    }
    assert_eq!(texts, [(); 3].map(|()| texts[0].clone()));
}

#[test]
fn at_another_port_the_key_is_the_same() {
    let _uncopied = uncopied();
    let client = orb();
    let (old, old_text) = {
        let run = run_at(&format!("iiop://127.0.0.1:{}", free_port()));
        let text = serve(&run, &["one"], "a");
        (client.string_to_object(&text).expect("it reads"), text)
    };
    let port = free_port();
    let run = run_at(&format!("iiop://127.0.0.1:{port}"));
    let text = serve(&run, &["one"], "a");
    assert_ne!(text, old_text);
    let new = client.string_to_object(&text).expect("it reads");
    let (old_profile, new_profile) = (profile_of(&old), profile_of(&new));
    assert_eq!(new_profile.port, port);
    assert_eq!(new_profile.object_key, old_profile.object_key);
    // The old reference with the new address, and a URL of the old key.
    let moved = with_profile(&client, &old, |profile| profile.port = port);
    assert_eq!(ask(&moved), told("one a"));
    let key: String = old_profile
        .object_key
        .iter()
        .map(|octet| format!("%{octet:02x}"))
        .collect();
    let url = format!("corbaloc::127.0.0.1:{port}/{key}");
    let by_url = client.string_to_object(&url).expect("it reads");
    assert_eq!(ask(&by_url), told("one a"));
}

#[test]
fn servers_with_the_same_names_are_told_apart_by_their_addresses() {
    let _uncopied = uncopied();
    let client = orb();
    let runs = [(); 2].map(|()| run_at("iiop://127.0.0.1:0"));
    for (n, run) in runs.iter().enumerate() {
        let poa = run.poa(&["one"], &[PERSISTENT, USER]);
        poa.activate_object_with_id("a", named(n.to_string()))
            .expect("it is free");
    }
    for (n, run) in runs.iter().enumerate() {
        let poa = run.poa(&["one"], &[]);
        let object = poa.id_to_reference(&"a".into()).expect("it is active");
        let text = run.orb.object_to_string(&object);
        for orb in [&client, &runs[0].orb, &runs[1].orb] {
            let object = orb.string_to_object(&text).expect("it reads");
            assert_eq!(ask(&object), told(&n.to_string()));
        }
    }
}
