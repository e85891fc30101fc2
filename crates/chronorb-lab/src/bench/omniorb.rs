//! omniORB, if it is installed: its programs are compiled once and kept.

use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, with_time_sharing};
use serde::{Deserialize, Serialize};

use super::order::ObjectAddresses;
use crate::process::{Child, output};
use crate::progress::Progress;
use crate::xdg;

/// The installation of omniORB on this machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OmniOrb {
    /// The version; nothing if it takes no part.
    pub version: Option<String>,
    /// The reason why it takes no part, with the remedy; empty if it takes part.
    pub missing: String,
    /// The folder of its programs.
    #[serde(skip)]
    pub(crate) programs: Option<PathBuf>,
}

/// The executable files of a server and its client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Programs {
    /// The server.
    pub server: PathBuf,
    /// The client.
    pub client: PathBuf,
}

impl OmniOrb {
    /// Looks for omniORB and compiles its programs, unless they are there from an earlier time.
    ///
    /// A missing installation is no error, and neither is a failure to compile.
    #[must_use]
    pub fn find() -> Self {
        let found = version().and_then(|version| {
            let programs = programs(&version)?;
            try_out(&programs)?;
            Ok((version, programs))
        });
        match found {
            Ok((version, programs)) => Self {
                version: Some(version),
                missing: String::new(),
                programs: Some(programs),
            },
            Err(missing) => Self::without(missing),
        }
    }

    /// Returns the programs that measure calls of several priorities; nothing if omniORB takes no
    /// part. The heads of their sources describe arguments, input and output.
    #[must_use]
    pub fn inversion(&self) -> Option<Programs> {
        self.pair(INVERSION)
    }

    /// Returns the programs of `latency` and `throughput`.
    pub(crate) fn contest(&self) -> Option<Programs> {
        self.pair(CONTEST)
    }

    fn pair(&self, [server, client]: [&str; 2]) -> Option<Programs> {
        let folder = self.programs.as_ref()?;
        Some(Programs {
            server: folder.join(server),
            client: folder.join(client),
        })
    }

    /// Returns an omniORB that takes no part, for this reason.
    pub(crate) const fn without(missing: String) -> Self {
        Self {
            version: None,
            missing,
            programs: None,
        }
    }

    /// Returns the caveat that omniORB takes no part, if that is so.
    pub(crate) fn absence(&self) -> Option<String> {
        let is_absent = self.version.is_none();
        is_absent.then(|| self.sentence())
    }

    /// Returns the note that omniORB takes part, if that is so.
    pub(crate) fn presence(&self) -> Option<String> {
        let is_present = self.version.is_some();
        is_present.then(|| self.sentence())
    }

    /// Returns the part that omniORB takes, as a sentence.
    pub(crate) fn sentence(&self) -> String {
        match &self.version {
            Some(version) => format!(
                "omniORB {version} has a thread for each connection on the server, and a \
                 connection for each calling thread."
            ),
            None => format!("omniORB takes no part: {}", self.missing),
        }
    }
}

/// Returns the version of the library whose headers the compiler finds.
fn version() -> Result<String, String> {
    for program in ["omniidl", "g++"] {
        if !is_installed(program) {
            return Err(format!("{program} is not installed. {REMEDY}"));
        }
    }
    let macros = feed(
        Command::new("g++").args(["-E", "-dM", "-x", "c++", "-"]),
        "#include <omniORB4/CORBA.h>\n#include <omniORB4/acconfig.h>\n",
    );
    let macros = macros.map_err(|error| format!("g++ cannot be run: {error}. {REMEDY}"))?;
    if !macros.status.success() {
        return Err(format!("its headers are not installed. {REMEDY}"));
    }
    let macros = String::from_utf8_lossy(&macros.stdout);
    let version = macros
        .lines()
        .find_map(|line| line.strip_prefix("#define PACKAGE_VERSION "));
    Ok(version.map_or_else(
        || "of unknown version".to_owned(),
        |version| version.trim_matches('"').to_owned(),
    ))
}

/// Returns the folder of the compiled programs. Of several processes one compiles them.
fn programs(version: &str) -> Result<PathBuf, String> {
    let cache = xdg::cache().unwrap_or_else(|| env::temp_dir().join("chronorb"));
    let folder = cache.join(format!("omniorb-lab-{:016x}", fingerprint(version)));
    let are_there = || all_programs().all(|program| folder.join(program).is_file());
    if are_there() {
        return Ok(folder);
    }
    let explain = |error: io::Error| {
        let folder = folder.display();
        format!("its programs cannot be put into {folder}: {error}")
    };
    fs::create_dir_all(&cache).map_err(explain)?;
    let lock = File::create(folder.with_extension("lock")).map_err(explain)?;
    lock.lock().map_err(explain)?;
    if are_there() {
        return Ok(folder);
    }
    let unfinished = folder.with_extension(format!("part-{}", std::process::id()));
    fs::create_dir_all(&unfinished).map_err(explain)?;
    let compiled = compile(&unfinished);
    if compiled.is_ok() && fs::rename(&unfinished, &folder).is_err() && !folder.is_dir() {
        return Err(explain(io::Error::other("it cannot be renamed")));
    }
    // After a successful rename there is nothing to remove.
    let _ = fs::remove_dir_all(&unfinished);
    compiled.map(|()| folder)
}

/// Checks that the server runs: its library may be gone since it was compiled.
fn try_out(programs: &Path) -> Result<(), String> {
    let soon = Deadline::after(START_UP);
    Child::run("omniORB server", &mut Command::new(programs.join("server")))
        .and_then(|mut server| {
            let ObjectAddresses { .. } = server.hear(soon)?;
            server.stop(soon)
        })
        .map_err(|error| format!("it does not run: {error}"))
}

fn compile(folder: &Path) -> Result<(), String> {
    let begun = Monotonic::now();
    let progress = Progress::start(
        "compiling omniORB's programs, once",
        2 + all_programs().count() as u64,
    );
    for (name, text) in SOURCES {
        fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    let run = |command: &mut Command| {
        let output = output(command.current_dir(folder));
        let output = output.map_err(|error| error.to_string())?;
        progress.advance(1);
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<_> = errors.lines().take(5).collect();
        Err(format!(
            "its programs cannot be compiled: {}",
            errors.join(" ")
        ))
    };
    let compiler = || {
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-O2", "-DNDEBUG", "-w", "-pthread", "-I."]);
        compiler
    };
    run(Command::new("omniidl").args(["-bcxx", "-Wba", "peers.idl"]))?;
    run(compiler().args(["-c", "peersSK.cc", "peersDynSK.cc"]))?;
    for program in all_programs() {
        let source = format!("{program}.cc");
        run(compiler()
            .args([&source, "peersSK.o", "peersDynSK.o", "-o", program])
            .args(["-lomniDynamic4", "-lomniORB4", "-lomnithread"]))?;
    }
    let took = Monotonic::now().since(begun).as_secs();
    drop(progress);
    eprintln!("omniORB's programs were compiled in {took} s, and are kept for the next time");
    Ok(())
}

/// Returns a hash of all that the programs depend on.
fn fingerprint(version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (version, SOURCES).hash(&mut hasher);
    hasher.finish()
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[expect(clippy::disallowed_methods, reason = "it has time sharing")]
fn feed(command: &mut Command, input: &str) -> io::Result<Output> {
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = process.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    with_time_sharing(|| process.wait_with_output()).flatten()
}

fn all_programs() -> impl Iterator<Item = &'static str> {
    [CONTEST, INVERSION].into_iter().flatten()
}

/// A server and its client; each has a source of its name.
const CONTEST: [&str; 2] = ["server", "client"];
const INVERSION: [&str; 2] = ["inversion_server", "inversion_client"];

const SOURCES: [(&str, &str); 8] = [
    ("peers.idl", include_str!("../../idl/peers.idl")),
    ("server.cc", include_str!("../../omniorb/server.cc")),
    ("client.cc", include_str!("../../omniorb/client.cc")),
    (
        "inversion_server.cc",
        include_str!("../../omniorb/inversion_server.cc"),
    ),
    (
        "inversion_client.cc",
        include_str!("../../omniorb/inversion_client.cc"),
    ),
    ("barrier.h", include_str!("../../omniorb/barrier.h")),
    ("schedule.h", include_str!("../../omniorb/schedule.h")),
    ("work.h", include_str!("../../omniorb/work.h")),
];

/// The time that the server may take to start.
const START_UP: Duration = Duration::from_secs(20);
const REMEDY: &str = "On Debian or Ubuntu: apt-get install g++ omniidl libomniorb4-dev";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_reported_with_its_remedy() {
        assert!(!is_installed("no-such-compiler-anywhere"));
        let sentence = OmniOrb::without(format!("g++ is not installed. {REMEDY}")).sentence();
        assert!(sentence.contains("takes no part") && sentence.contains("apt-get install"));
    }

    #[test]
    fn programs_need_an_installation() {
        let mut omniorb = OmniOrb::without("it is not installed".to_owned());
        assert_eq!((omniorb.contest(), omniorb.inversion()), (None, None));
        omniorb.programs = Some(PathBuf::from("/kept"));
        let programs = omniorb.inversion().expect("it takes part");
        assert_eq!(programs.server, Path::new("/kept/inversion_server"));
        assert_eq!(programs.client, Path::new("/kept/inversion_client"));
        assert_ne!(omniorb.contest(), omniorb.inversion());
    }

    #[test]
    fn every_program_has_its_source() {
        for program in all_programs() {
            let source = format!("{program}.cc");
            assert!(SOURCES.iter().any(|(name, _)| *name == source), "{source}");
        }
    }

    #[test]
    fn another_version_is_compiled_anew() {
        assert_ne!(fingerprint("4.2.5"), fingerprint("4.3.2"));
        assert_eq!(fingerprint("4.2.5"), fingerprint("4.2.5"));
    }
}
