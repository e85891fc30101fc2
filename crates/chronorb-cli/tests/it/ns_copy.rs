//! `chronorb ns export`, `import` and `gc` with name servers of this process.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext};

use crate::ns::Names;
use tempfile::TempDir;

use crate::support::{chronorb, has_peer, stderr, stdout};

#[test]
fn an_export_is_imported_as_it_was() {
    let (from, to) = (Names::start(), Names::start());
    let elsewhere = Names::start();
    from.done(&["mkdir", "--parents", "plant/hall.area"]);
    from.done(&["bind", "plant/hall.area/a radar\\.x.sensor", &from.root]);
    from.done(&["bind", "gone", "corbaloc::127.0.0.1:1/None"]);
    let context = |names: &Names| {
        let object = names
            .orb
            .string_to_object(&names.root)
            .expect("a reference");
        NamingContext::unchecked_narrow(&object)
    };
    let root = context(&from);
    let component = |id| NameComponent { id, kind: "" };
    let plant = root.resolve(&[component("plant")]).expect("it is bound");
    let plant = NamingContext::unchecked_narrow(&plant.expect("a context"));
    // A second name of a context, a loop to the root, a context as an object, one of another
    // server.
    root.bind_context(&[component("also")], Some(&plant))
        .expect("a free name");
    plant
        .bind_context(&[component("up")], Some(&root))
        .expect("a free name");
    root.bind(&[component("as")], Some(plant.as_object()))
        .expect("a free name");
    root.bind(&[component("nil")], None).expect("a free name");
    let other = context(&elsewhere);
    root.bind_context(&[component("other")], Some(&other))
        .expect("a free name");
    elsewhere.done(&["bind", "there", "corbaloc::127.0.0.1:1/None"]);

    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("names.txt");
    let file = file.to_str().expect("a path in UTF-8");
    from.done(&["export", file]);
    let text = fs::read_to_string(file).expect("it was written");
    assert_eq!(from.done(&["export"]), text);
    for line in [
        "context also\n",
        "context also/hall.area\n",
        "context also/up =/\n",
        "context plant =also\n",
        "object as =also\n",
        "context other IOR:",
        "object also/hall.area/a%20radar\\.x.sensor =/\n",
        "object nil IOR:01000000010000000000000000000000\n",
    ] {
        assert!(text.contains(line), "{line:?} in\n{text}");
    }

    to.done(&["import", file]);
    let imported = to.done(&["export"]);
    // The loop of the importing server is its own, so equal texts show equal trees.
    assert_eq!(imported, text);

    // The names are bound now.
    to.refused(&["import", file], 1, "is bound already");
    to.done(&["import", "--rebind", file]);
    assert_eq!(to.done(&["export"]), text);

    let followed = from.done(&["export", "--follow"]);
    assert!(followed.contains("context other\n"), "{followed}");
    assert!(followed.contains("object other/there IOR:"), "{followed}");
}

#[test]
fn an_import_that_fails_says_how_far_it_came() {
    let names = Names::start();
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("names.txt");
    let path = file.to_str().expect("a path in UTF-8");
    let import = |text: &str| fs::write(&file, text).expect("it is written");
    let nil = "IOR:0100000001000000000000000000000000";

    import(&format!(
        "context plant\nobject plant/a {nil}\nobject plant {nil}\n"
    ));
    names.refused(
        &["import", path],
        1,
        "line 3: a line before binds this name",
    );
    assert_eq!(names.done(&["list"]), "");

    names.done(&["mkdir", "plant"]);
    names.done(&["bind", "plant/b", &names.root]);
    import(&format!(
        "context plant\nobject plant/a {nil}\nobject plant/b {nil}\n"
    ));
    names.refused(&["import", path], 1, "2 of 3 bindings were made before");
    assert_eq!(names.done(&["list"]), "plant/\n  a\n  b\n");

    // Where an object is bound, no context is.
    import(&format!(
        "context plant\ncontext plant/b\nobject plant/b/c {nil}\n"
    ));
    names.refused(&["import", "--rebind", path], 1, "plant/b is bound already");

    import(&format!("object leased {nil} lease=3600\n"));
    names.done(&["import", path]);
    import(&format!("object other {nil} lease=86401\n"));
    names.refused(
        &["import", path],
        1,
        "the time to live is not a number within",
    );
    names.refused(&["import", "/nonexistent/names"], 1, "No such file");
}

#[test]
fn gc_removes_what_no_client_can_use() {
    let names = Names::start();
    names.done(&["mkdir", "--parents", "plant/hall"]);
    names.done(&["mkdir", "lost"]);
    names.done(&["mkdir", "lost/inner"]);
    names.done(&["bind", "lost/inner/a", &names.root]);
    names.done(&["unbind", "lost"]);
    names.done(&["bind", "plant/down", "corbaloc::127.0.0.1:1/None"]);
    let missing = names.root_url("Missing");
    names.done(&["bind", "plant/gone", &missing]);
    names.done(&["bind", "plant/there", &names.root]);

    let before = names.done(&["list"]);
    let output = names.run(&["gc"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let found = stdout(&output);
    assert!(found.contains("plant/gone  gone: "), "{found}");
    assert_eq!(
        found.matches("context without a name  IOR:").count(),
        2,
        "{found}"
    );
    assert!(!found.contains("plant/down"), "{found}");
    assert_eq!(names.done(&["list"]), before);
    assert_eq!(names.contexts(), 5);

    let output = names.run(&["gc", "--yes", "--grace", "0", "--unreachable"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("4 of 4 removed"),
        "{}",
        stderr(&output)
    );
    assert_eq!(names.done(&["list"]), "plant/\n  hall/\n  there\n");
    assert_eq!(names.contexts(), 3);
    assert_eq!(names.done(&["gc"]), "");
}

/// The name server of omniORB, which is killed when this is dropped.
struct OmniNames {
    process: Child,
    root: String,
    _folder: TempDir,
}

impl OmniNames {
    /// Starts it at a free port; `None` if it is not installed.
    ///
    /// # Panics
    /// With `CHRONORB_PEERS=required`, if it is not installed.
    fn start() -> Option<Self> {
        if !has_peer("omniNames", INSTALL) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a directory");
        for _ in 0..ATTEMPTS {
            let free = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = free.local_addr().expect("it is bound").port().to_string();
            drop(free);
            let logs = folder.path().join(&port);
            fs::create_dir(&logs).expect("a directory");
            let started = Command::new("omniNames")
                .args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")])
                .args(["-start", &port, "-logdir"])
                .arg(&logs)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let mut process = started.expect("omniNames starts");
            let root = format!("corbaloc::127.0.0.1:{port}/NameService");
            let arguments = ["ns", "list", "--wait", "60", "--ns", &root];
            let listed = chronorb(Path::new("."), &arguments);
            // Another process may have taken the port.
            if process.try_wait().expect("its state").is_none() {
                assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
                return Some(Self {
                    process,
                    root,
                    _folder: folder,
                });
            }
        }
        panic!("omniNames does not start");
    }

    fn done(&self, arguments: &[&str]) -> String {
        let all = [&["ns"], arguments, &["--ns", &self.root]].concat();
        let output = chronorb(Path::new("."), &all);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{all:?}: {}",
            stderr(&output)
        );
        stdout(&output).to_owned()
    }
}

impl Drop for OmniNames {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn omninames_is_used_like_a_server_of_chronorb() {
    let Some(omni) = OmniNames::start() else {
        return;
    };
    let ours = Names::start();
    omni.done(&["mkdir", "--parents", "plant/hall.area"]);
    omni.done(&["bind", r"plant/hall.area/a\.b.sensor", &ours.root]);
    omni.done(&["bind", "plant/gone", &ours.root_url("Missing")]);
    let tree = "plant/\n  gone\n  hall.area/\n    a\\.b.sensor\n";
    assert_eq!(omni.done(&["list"]), tree);
    let resolved = omni.done(&["resolve", r"plant/hall.area/a\.b.sensor"]);
    assert_eq!(resolved.trim(), ours.root);
    omni.done(&["rebind", "plant/gone", &ours.root_url("None")]);
    let checked = chronorb(
        Path::new("."),
        &["ns", "list", "--check", "--ns", &omni.root],
    );
    assert_eq!(checked.status.code(), Some(3));
    assert!(
        stdout(&checked).contains("gone  gone: "),
        "{}",
        stdout(&checked)
    );

    // Contexts of omniNames are contexts of ours after an import, and the other way.
    let text = omni.done(&["export"]);
    assert!(
        text.contains("context plant\ncontext plant/hall.area\n"),
        "{text}"
    );
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("names.txt");
    fs::write(&file, &text).expect("it is written");
    let file = file.to_str().expect("a path in UTF-8");
    ours.done(&["import", file]);
    assert_eq!(ours.done(&["list"]), tree);
    ours.done(&["mkdir", "plant/new"]);
    ours.done(&["export", file]);
    omni.done(&["import", "--rebind", file]);
    // It publishes its own address, and the root is found by it.
    omni.done(&["mkdir", "--parents", "plant/new"]);
    assert_eq!(omni.done(&["list"]), ours.done(&["list"]));

    omni.done(&["gc", "--yes", "--grace", "0"]);
    omni.done(&["unbind", r"plant/hall.area/a\.b.sensor"]);
    assert_eq!(omni.done(&["list"]), "plant/\n  hall.area/\n  new/\n");
}

/// The number of ports that are tried.
const ATTEMPTS: usize = 20;
const INSTALL: &str = "apt-get install omniorb-nameserver";
