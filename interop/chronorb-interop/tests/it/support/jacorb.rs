//! Start of JacORB's test programs, in a network namespace where multicast works.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::Process;

/// JacORB's programs, compiled.
#[derive(Debug)]
pub(crate) struct Jacorb {
    class_path: String,
}

impl Jacorb {
    /// Returns JacORB from Maven Central, or from Maven's cache; `None` if it is not available.
    ///
    /// # Panics
    /// With `CHRONORB_PEERS=required`, if it is not available.
    pub(crate) fn get() -> Option<&'static Self> {
        static BUILT: OnceLock<Result<Jacorb, String>> = OnceLock::new();
        match BUILT.get_or_init(Self::build) {
            Ok(jacorb) => Some(jacorb),
            Err(why) => {
                not_run(&format!("JacORB cannot be had: {why}"));
                None
            }
        }
    }

    fn build() -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jacorb");
        fs::create_dir_all(&folder).expect("a folder");
        // Another process may be building them.
        let lock = File::create(folder.join("lock")).expect("a file");
        lock.lock().expect("a lock");
        let interop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jacorb");
        let libraries = libraries(&interop, &folder)?;
        let made = folder.join("java");
        let classes = folder.join("classes");
        let (made, classes) = (text(&made), text(&classes));
        let idl = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("idl/groups.idl"));
        let compiler = [
            "-cp",
            &libraries,
            "org.jacorb.idl.parser",
            "-d",
            &made,
            &idl,
        ];
        // The compiler runs, so a failure here is an error of the test.
        run("java", &compiler).expect("the IDL compiles");
        let mut sources = java_files(&interop.join("src"));
        sources.extend(java_files(Path::new(&made)));
        let options = ["-nowarn", "-d", &classes, "-cp", &libraries];
        let options = options.into_iter().map(str::to_owned);
        let all: Vec<String> = options.chain(sources).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        run("javac", &all).expect("the programs compile");
        Ok(Self {
            class_path: format!("{classes}:{libraries}"),
        })
    }

    /// Starts a program at an address, on a machine if one is given.
    pub(crate) fn start(
        &self,
        network: Option<&Network>,
        program: &str,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Process {
        let address = network.map_or("127.0.0.1", |_| ADDRESS);
        let command = network.map_or_else(Vec::new, Network::enter);
        self.start_by(command, address, program, arguments)
    }

    /// Starts a program at an address, by a command that runs it there.
    pub(crate) fn start_by(
        &self,
        command: Vec<String>,
        address: &str,
        program: &str,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Process {
        let java = [
            "java",
            "-Djava.net.preferIPv4Stack=true",
            &format!("-Dpeer.address={address}"),
            "-cp",
            &self.class_path,
            program,
        ];
        let java: Vec<String> = java.map(str::to_owned).into();
        let command = [command, java].concat();
        Process::start(&command[0], |folder| {
            let arguments = arguments(folder.path());
            command[1..].iter().cloned().chain(arguments).collect()
        })
    }
}

/// Returns the class path of the libraries.
fn libraries(interop: &Path, folder: &Path) -> Result<String, String> {
    let file = folder.join("libraries");
    let pom = text(&interop.join("pom.xml"));
    let output = format!("-Dmdep.outputFile={}", text(&file));
    let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath";
    let arguments = ["-q", "-B", "-f", &pom, goal, &output];
    // With a cached copy, no network is needed.
    let offline: Vec<_> = ["-o"].into_iter().chain(arguments).collect();
    let online = |_| run("mvn", &arguments);
    // An interrupted download is continued.
    run("mvn", &offline).or_else(online).or_else(online)?;
    fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn java_files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(java_files(&path));
        } else if path.extension().is_some_and(|e| e == "java") {
            files.push(text(&path));
        }
    }
    files
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A machine with one network interface and multicast: a network namespace.
#[derive(Debug)]
pub(crate) struct Network(String);

/// The address of the machine.
pub(crate) const ADDRESS: &str = "10.78.0.1";

impl Network {
    /// Creates the machine. Returns `None` without the right to it.
    ///
    /// # Panics
    /// With `CHRONORB_PEERS=required`, without the right to it.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let this = Self(format!("chronorb-{name}-{}", std::process::id()));
        if let Err(why) = run("ip", &["netns", "add", &this.0]) {
            std::mem::forget(this);
            not_run(&format!("there are no network namespaces: {why}"));
            return None;
        }
        for command in [
            "link set lo up",
            "link add eth type veth peer name unused",
            "link set unused up",
            "link set eth up",
            "addr add 10.78.0.1/24 dev eth",
            "route add 224.0.0.0/4 dev eth",
        ] {
            let command = format!("-n {} {command}", this.0);
            let command: Vec<_> = command.split(' ').collect();
            run("ip", &command).expect("it can be set up");
        }
        Some(this)
    }

    /// Returns the beginning of a command line that runs on the machine.
    pub(crate) fn enter(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.0].map(str::to_owned).into()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Err(problem) = run("ip", &["netns", "del", &self.0]) {
            eprintln!("a namespace stays behind: {problem}");
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(PathBuf::from(program))
        .args(arguments)
        .output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Err(format!(
            "{program} {}: {}",
            arguments.join(" "),
            said.trim()
        ))
    }
}

fn not_run(why: &str) {
    println!("NOT RUN: {why}");
    let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
    assert!(!required, "CHRONORB_PEERS=required: {why}");
}
