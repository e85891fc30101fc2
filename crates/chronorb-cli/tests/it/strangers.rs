//! Commands with what strangers choose: texts of peers, files, and servers that never end.

use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};

use chronorb_giop::{IiopProfile, Ior, TAG_INTERNET_IOP, TaggedProfile, Version};
use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext};
use chronorb_rt::is_hidden;
use tempfile::TempDir;

use crate::ns::Names;
use crate::operators_day::certificates::Authority;
use crate::support::{Server, chronorb, stderr, stdout};

/// A text that clears a terminal, changes the direction, and hides a part of itself.
const HIDDEN: &str = "a\u{1b}[2J\u{9b}31m\u{202e}b\u{200b}\u{2066}\nc\u{feff}";

/// A reference whose interface, host and key are such texts.
fn hostile_reference() -> String {
    let profile = IiopProfile {
        version: Version::V1_2,
        // A profile has octets of ISO 8859-1.
        host: "a\u{1b}[2J\u{9b}31m\nc".to_owned(),
        port: 1,
        object_key: HIDDEN.as_bytes().to_vec(),
        components: Vec::new(),
    };
    let ior = Ior {
        type_id: format!("IDL:{HIDDEN}:1.0"),
        profiles: vec![TaggedProfile {
            tag: TAG_INTERNET_IOP,
            data: profile.encode().expect("it has a form"),
        }],
    };
    ior.to_string()
}

/// Checks the whole output of a command, which has so many lines at most.
fn is_visible(arguments: &[&str], lines: usize) {
    let output = chronorb(Path::new("."), arguments);
    for text in [stdout(&output), stderr(&output)] {
        let hidden = text.find(|c: char| c != '\n' && is_hidden(c));
        assert_eq!(hidden, None, "{arguments:?}: {text:?}");
        assert!(text.lines().count() <= lines, "{arguments:?}: {text:?}");
    }
}

#[test]
fn texts_of_peers_are_visible() {
    let names = Names::start();
    let reference = hostile_reference();
    names.done(&["mkdir", HIDDEN]);
    let inside = format!("{HIDDEN}/{HIDDEN}");
    names.done(&["bind", &inside, &reference]);
    let at = |arguments: &[&str]| {
        let all: Vec<String> = [&["ns"], arguments, &["--ns", &names.root]]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect();
        all
    };
    let commands = [
        (at(&["list"]), 2),
        (at(&["list", "--json", "--ior", "--check"]), 1),
        (at(&["list", "--ior", "--check"]), 2),
        (at(&["export"]), 3),
        (at(&["gc", "--unreachable"]), 2),
        (at(&["resolve", &format!("{inside}/none")]), 1),
        (at(&["bind", &inside, &reference]), 1),
    ];
    for (arguments, lines) in &commands {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        is_visible(&arguments, *lines);
    }
    is_visible(&["ior", "decode", &reference], 8);
    is_visible(&["ior", "decode", "--json", &reference], 1);
    is_visible(&["ior", "decode", "--resolve", &reference], 8);
    is_visible(&["ior", "ping", &reference], 3);
    is_visible(&["ior", "ping", "--explain", &reference], 8);
    is_visible(&["ior", "ping", "--explain", "--json", &reference], 3);
    is_visible(&["ior", "forward", &reference], 3);
    is_visible(&["ior", "is-a", &reference, HIDDEN], 4);
    is_visible(&["events", "stats", "--channel", &reference], 3);
    // The names are what they were: JSON has them, and a text is imported.
    let listed = names.done(&["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("it is JSON");
    assert_eq!(listed["bindings"][0]["name"], HIDDEN);
    let text = names.done(&["export"]);
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("names.txt");
    fs::write(&file, &text).expect("it can be written");
    let other = Names::start();
    other.done(&["import", file.to_str().expect("a path in UTF-8")]);
    assert_eq!(other.done(&["export"]), text);
}

/// A link of another user to a file of this one; `None` if this user cannot make it.
fn foreign_link() -> Option<(TempDir, PathBuf, PathBuf)> {
    let folder = tempfile::tempdir().expect("a directory");
    let (file, link) = (folder.path().join("own"), folder.path().join("link"));
    fs::write(&file, "own").expect("it can be written");
    symlink(&file, &link).expect("a link");
    lchown(&link, Some(65_534), None).ok()?;
    Some((folder, file, link))
}

#[test]
fn nothing_is_written_through_links_of_others() {
    let Some((_folder, file, link)) = foreign_link() else {
        println!("left out: only root can make the link of another user");
        return;
    };
    let link = link.to_str().expect("a path in UTF-8");
    let names = Names::start();
    let schedule = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/avionics/avionics.toml"
    );
    let serve = ["--listen", "iiop://127.0.0.1:0", "--ior-file", link];
    let commands = [
        [&["ns", "export", "--ns", &names.root][..], &[link]].concat(),
        [&["events", "serve"][..], &serve].concat(),
        [&["sched", "serve"][..], &serve].concat(),
        vec!["sched", "assign", schedule, "--output", link],
    ];
    for arguments in commands {
        let output = chronorb(Path::new("."), &arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let told = stderr(&output);
        let reason = "it is a symbolic link of another user";
        assert!(told.contains(reason), "{arguments:?}: {told}");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "own");
    }
}

#[test]
fn only_files_are_imported() {
    let names = Names::start();
    let folder = tempfile::tempdir().expect("a directory");
    let fifo = folder.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a pipe");
    let store = folder.path().join("store");
    let store = store.to_str().expect("a path in UTF-8");
    for file in [fifo.to_str().expect("a path in UTF-8"), "/dev/zero"] {
        names.refused(&["import", file], 1, "it is not a regular file");
        let listen = ["--listen", "iiop://127.0.0.1:0"];
        let serve = [
            &["ns", "serve", "--store", store, "--import", file][..],
            &listen,
        ]
        .concat();
        let output = chronorb(Path::new("."), &serve);
        assert_eq!(output.status.code(), Some(1), "{file}");
        let told = stderr(&output);
        assert!(told.contains("it is not a regular file"), "{told}");
    }
}

/// Contexts with two names each for the next one: a list of 2^40 lines.
#[test]
fn a_server_that_never_ends_is_given_up() {
    let names = Names::start();
    let object = names.orb.string_to_object(&names.root);
    let root = NamingContext::unchecked_narrow(&object.expect("a reference"));
    let component = |id| [NameComponent { id, kind: "" }];
    let mut context = root;
    for _ in 0..40 {
        let inner = context.bind_new_context(&component("a"));
        let inner = inner.expect("a free name").expect("a context");
        let bound = context.bind_context(&component("b"), Some(&inner));
        bound.expect("a free name");
        context = inner;
    }
    let bound = ["--max", "70"];
    let output = names.run(&[&["list"][..], &bound].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("more than 70 bindings"));
    // What was found is printed.
    assert!(stdout(&output).starts_with("a/\n  a/\n    a/\n"));
    for command in ["export", "gc"] {
        names.refused(&[command, "--max", "30"], 1, "--max permits more");
        names.done(&[command, "--max", "80"]);
    }
}

/// No URL names an endpoint of TLS, so the reference is printed as a whole.
#[test]
fn a_name_server_by_tls_prints_a_reference_of_use() {
    let folder = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(folder.path(), "authority");
    let settings = authority.settings("server", &["127.0.0.1"]);
    let file = |path: &Option<PathBuf>| {
        let path = path.as_ref().expect("it has one");
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let tls = [
        "-ORBSSLCertificateAuthority",
        &file(&settings.authority),
        "-ORBSSLCertificate",
        &file(&settings.certificate),
        "-ORBSSLPrivateKey",
        &file(&settings.private_key),
        "-ORBSSLVerify",
        "peer",
    ];
    let listen = ["ns", "serve", "--listen", "ssliop://127.0.0.1:0"];
    let server = Server::start(&[&listen[..], &tls].concat());
    assert!(server.reference.starts_with("IOR:"), "{}", server.reference);
    let list = ["ns", "mkdir", "a", "--ns", &server.reference];
    let output = chronorb(Path::new("."), &[&list[..], &tls].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}
