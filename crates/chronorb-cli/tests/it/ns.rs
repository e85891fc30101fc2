//! `chronorb ns` with a name server of this process.

use std::path::Path;
use std::process::Output;

use chronorb_giop::IiopProfile;
use chronorb_naming::{NameServer, NamingService};
use chronorb_orb::{Orb, OrbConfig};

use crate::support::{chronorb, stderr, stdout};

/// A name server, and the reference of its root context.
pub(crate) struct Names {
    pub(crate) orb: Orb,
    pub(crate) root: String,
    service: NamingService,
}

impl Names {
    pub(crate) fn start() -> Self {
        let mut config = OrbConfig::default();
        let endpoints = chronorb_orb::parse_endpoints("iiop://127.0.0.1:0");
        config.listen_endpoints = endpoints.expect("an endpoint");
        let orb = Orb::with_config(config).expect("an ORB");
        let poa = orb.root_poa().expect("the ORB runs");
        let service = NameServer::new().serve_in(&poa).expect("it serves");
        let root = orb.object_to_string(service.root());
        poa.manager().activate().expect("it was not deactivated");
        Self { orb, root, service }
    }

    /// The number of contexts that exist.
    pub(crate) fn contexts(&self) -> usize {
        self.service.context_count()
    }

    /// A URL of an object of the server.
    pub(crate) fn root_url(&self, key: &str) -> String {
        let profile = &self.service.root().ior().profiles[0];
        let profile = IiopProfile::decode(&profile.data).expect("a profile of IIOP");
        format!("corbaloc::{}:{}/{key}", profile.host, profile.port)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let (command, rest) = arguments.split_first().expect("a command");
        let all = [&["ns", *command, "--ns", &self.root][..], rest].concat();
        chronorb(Path::new("."), &all)
    }

    /// Runs a command that has to succeed, and returns its output.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    }

    /// Runs a command that has to fail, and checks its status and a part of its message.
    pub(crate) fn refused(&self, arguments: &[&str], status: i32, part: &str) {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        let told = stderr(&output);
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true);
    }
}

#[test]
fn names_are_bound_and_listed() {
    let names = Names::start();
    names.done(&["mkdir", "--parents", "plant/hall.area"]);
    names.done(&["mkdir", "--parents", "plant/hall.area"]);
    names.done(&["bind", "plant/radar.sensor", &names.root]);
    names.done(&["bind", "plant/a\\.b", "corbaloc::127.0.0.1:1/None"]);
    names.done(&["rebind", "plant/a\\.b", "corbaloc::127.0.0.1:1/Nothing"]);
    let tree = "plant/\n  a\\.b\n  hall.area/\n  radar.sensor\n";
    assert_eq!(names.done(&["list"]), tree);
    assert_eq!(
        names.done(&["list", "plant", "--flat"]),
        "a\\.b\nhall.area/\nradar.sensor\n"
    );
    assert_eq!(names.done(&["list", "--flat"]), "plant/\n");
    assert_eq!(
        names.done(&["resolve", "plant/radar.sensor"]).trim(),
        names.root
    );

    // One object is there, the other has no server.
    let output = names.run(&["list", "--check"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let checked = stdout(&output);
    assert!(checked.contains("  radar.sensor  ok\n"), "{checked}");
    assert!(checked.contains("  a\\.b  unreachable: "), "{checked}");
    assert!(checked.contains("Connection refused"), "{checked}");

    let json = names.done(&["list", "--ior", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["bindings"][3]["name"], "plant/radar.sensor");
    assert_eq!(json["bindings"][3]["kind"], "object");
    assert_eq!(json["bindings"][3]["ior"], names.root.as_str());

    names.done(&["unbind", "plant/a\\.b"]);
    assert_eq!(
        names.done(&["list"]),
        "plant/\n  hall.area/\n  radar.sensor\n"
    );
}

#[test]
fn check_tells_objects_that_are_gone_from_those_that_are_unreachable() {
    let names = Names::start();
    names.done(&["bind", "there", &names.root]);
    let checked = |status: i32| {
        let output = names.run(&["list", "--check"]);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    assert_eq!(checked(0), "there  ok\n");

    names.done(&["bind", "absent", "corbaloc::127.0.0.1:1/None"]);
    let text = checked(3);
    assert!(text.starts_with("absent  unreachable: "), "{text}");

    names.done(&["rebind", "absent", &names.root_url("None")]);
    let gone = "absent  gone: the server does not have the object\nthere  ok\n";
    assert_eq!(checked(3), gone);
}

#[test]
fn a_failure_names_the_component_and_the_remedy() {
    let names = Names::start();
    names.done(&["mkdir", "plant"]);
    names.done(&["bind", "radar", &names.root]);
    let here = names.root.as_str();
    for (arguments, status, part) in [
        (
            &["resolve", "plant/x"][..],
            3,
            "the name is not bound, in component 2, \"x\"",
        ),
        (
            &["bind", "a/b", here],
            3,
            "in component 1, \"a\"; chronorb ns mkdir --parents",
        ),
        (
            &["resolve", "radar/x"],
            3,
            "an object stands where a context should",
        ),
        (
            &["bind", "radar", here],
            1,
            "radar is bound already; chronorb ns rebind",
        ),
        (&["rebind", "plant", here], 3, "a context is bound there"),
        (&["mkdir", "plant"], 1, "bound already"),
        (&["resolve", "a//b"], 1, "a component is empty"),
        (&["bind", "b", "missing.ior"], 1, "the file missing.ior"),
    ] {
        names.refused(arguments, status, part);
    }
    let none = chronorb(
        Path::new("."),
        &["ns", "list", "--ns", "corbaloc::127.0.0.1:1/NameService"],
    );
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr(&none).contains("Is the server running"),
        "{}",
        stderr(&none)
    );
}

#[test]
fn contexts_in_each_other_end_the_list() {
    let names = Names::start();
    names.done(&["mkdir", "--parents", "a/b"]);
    let a = names.done(&["resolve", "a"]);
    // A context that is bound as an object is not listed inside.
    names.done(&["bind", "a/b/again", a.trim()]);
    assert_eq!(names.done(&["list"]), "a/\n  b/\n    again\n");
}

#[test]
fn the_server_comes_from_an_initial_reference_and_is_waited_for() {
    let names = Names::start();
    names.done(&["bind", "radar", &names.root]);
    let init_ref = format!("NameService={}", names.root);
    let arguments = [
        "ns",
        "resolve",
        "radar",
        "--wait",
        "60",
        "-ORBInitRef",
        &init_ref,
    ];
    let output = chronorb(Path::new("."), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), names.root);
    let pinged = [
        "ior",
        "ping",
        "corbaname:rir:#radar",
        "-ORBInitRef",
        &init_ref,
    ];
    let output = chronorb(Path::new("."), &pinged);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    // A name that is bound while a command waits for it.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| names.run(&["resolve", "later", "--wait", "60"]));
        names.done(&["bind", "later", &names.root]);
        let output = waiting.join().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    });
}
