//! The servers and clients of both ORBs, and the name server.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use chronorb_giop::{IiopProfile, Ior, TAG_INTERNET_IOP};

use super::Process;

/// Whose program it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Chronorb,
    OmniOrb,
}

impl Side {
    fn program(self, role: &str) -> PathBuf {
        match (self, role) {
            (Self::Chronorb, "server") => env!("CARGO_BIN_EXE_chronorb-interop-server").into(),
            (Self::Chronorb, _) => env!("CARGO_BIN_EXE_chronorb-interop-client").into(),
            (Self::OmniOrb, role) => omniorb_programs().join(format!("omni_{role}")),
        }
    }

    /// A free port of the loopback interface, for servers and for clients that are called back.
    const fn endpoint(self) -> [&'static str; 2] {
        match self {
            Self::Chronorb => ["-ORBListenEndpoints", "iiop://127.0.0.1:0"],
            Self::OmniOrb => ["-ORBendPoint", "giop:tcp:127.0.0.1:0"],
        }
    }

    /// The option for the greatest version of GIOP.
    pub(crate) const fn max_giop_version(self) -> &'static str {
        match self {
            Self::Chronorb => "-ORBMaxGIOPVersion",
            Self::OmniOrb => "-ORBmaxGIOPVersion",
        }
    }
}

/// A server of `Interop::Hub`.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    /// The hub's reference as text.
    pub(crate) ior: String,
}

impl Server {
    pub(crate) fn start(side: Side, options: &[&str]) -> Self {
        let mut process = Process::start(side.program("server"), |folder| {
            let file = folder.path().join(IOR_FILE).display().to_string();
            let mut arguments = vec!["--ior-file".to_owned(), file];
            arguments.extend(side.endpoint().iter().chain(options).map(|&s| s.to_owned()));
            arguments
        });
        let ior = process.wait_for_file(IOR_FILE);
        Self { process, ior }
    }

    /// The port in the hub's reference.
    pub(crate) fn port(&self) -> u16 {
        let ior: Ior = self.ior.parse().expect("a reference");
        let mut profiles = ior.profiles.iter();
        let profile = profiles.find(|profile| profile.tag == TAG_INTERNET_IOP);
        let profile = profile.expect("an IIOP profile");
        IiopProfile::decode(&profile.data).expect("a profile").port
    }

    /// Waits for the end of a server that was told to shut down.
    pub(crate) fn finish(self) {
        self.process.finish();
    }
}

/// Runs a client to its end, and asserts that it made checks and that all of them passed.
/// Returns its output.
pub(crate) fn run_client(side: Side, reference: &str, options: &[&str]) -> String {
    let client = Process::start(side.program("client"), |_| {
        client_arguments(side, reference, options)
    });
    let output = client.finish();
    let last = output.lines().next_back().unwrap_or_default();
    let passed = last.strip_suffix(" passed, 0 failed");
    let passed = passed.and_then(|n| n.parse::<u32>().ok());
    assert!(passed.is_some_and(|n| n > 0), "the last line is {last:?}");
    output
}

fn client_arguments(side: Side, reference: &str, options: &[&str]) -> Vec<String> {
    let arguments = ["--ior", reference].into_iter();
    let arguments = arguments
        .chain(side.endpoint())
        .chain(options.iter().copied());
    arguments.map(str::to_owned).collect()
}

/// Runs a client while what it says to the server is recorded, and has tshark check that.
/// Returns how many messages of each type there were.
pub(crate) fn run_client_recorded(side: Side, server: &Server, options: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = folder.path().join("traffic.pcap").display().to_string();
    let port = server.port().to_string();
    let capture = Process::start(interop_folder().join("capture.sh"), |_| {
        let client = side.program("client").display().to_string();
        let mut arguments = vec![port.clone(), recording.clone(), client];
        arguments.extend(client_arguments(side, &server.ior, options));
        arguments
    });
    capture.finish();
    let check = interop_folder().join("check_pcap.sh");
    Process::start(check, |_| vec![recording.clone(), port.clone()]).finish()
}

/// omniORB's name server.
#[derive(Debug)]
pub(crate) struct NameServer {
    _process: Process,
    /// The URL of its root context.
    pub(crate) url: String,
}

impl NameServer {
    pub(crate) fn start() -> Self {
        let port = free_port();
        let mut process = Process::start("omniNames", |folder| {
            let folder = folder.path().display().to_string();
            let port = port.to_string();
            let endpoint = format!("giop:tcp:127.0.0.1:{port}");
            let arguments = [
                "-start",
                &port,
                "-always",
                "-datadir",
                &folder,
                "-ORBendPoint",
                &endpoint,
            ];
            arguments.map(str::to_owned).to_vec()
        });
        process.poll("name server", |process| {
            assert!(process.ended().is_none(), "it has ended");
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Self {
            _process: process,
            url: format!("corbaloc::127.0.0.1:{port}/NameService"),
        }
    }
}

/// A port that was free a moment ago, for a program that cannot choose one itself.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The folder with omniORB's programs, which are built once.
fn omniorb_programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("omniorb");
        std::fs::create_dir_all(&folder).expect("a folder");
        // Another process may be building them.
        let lock = File::create(folder.join("lock")).expect("a file");
        lock.lock().expect("a lock");
        let made = Command::new("make")
            .arg("-C")
            .arg(interop_folder().join("omniorb"))
            .arg(format!("BUILD={}", folder.display()))
            .args(["CXXFLAGS=-O1", "-j2"])
            .output()
            .expect("make runs");
        let errors = String::from_utf8_lossy(&made.stderr);
        assert!(
            made.status.success(),
            "omniORB's programs are not built: {errors}"
        );
        folder
    })
}

fn interop_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    folder
        .expect("the folder of all interoperability programs")
        .to_owned()
}

const IOR_FILE: &str = "hub.ior";
