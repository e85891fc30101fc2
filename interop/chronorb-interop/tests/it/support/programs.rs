//! The servers and clients of both ORBs, and the name server.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use chronorb::Orb;
use chronorb::config::OrbConfig;
use chronorb_giop::{IiopProfile, Ior, TAG_INTERNET_IOP};

use super::Process;

/// The ORB of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Chronorb,
    OmniOrb,
}

impl Side {
    fn program(self, role: Role) -> PathBuf {
        let omniorb = |name| omniorb_programs().join(name);
        match (self, role) {
            (Self::Chronorb, Role::Server | Role::SslServer) => {
                env!("CARGO_BIN_EXE_chronorb-interop-server").into()
            }
            (Self::Chronorb, Role::Client | Role::SslClient) => {
                env!("CARGO_BIN_EXE_chronorb-interop-client").into()
            }
            (Self::Chronorb, Role::AdaptersServer) => {
                env!("CARGO_BIN_EXE_chronorb-interop-adapters-server").into()
            }
            (Self::OmniOrb, Role::Server) => omniorb("omni_server"),
            (Self::OmniOrb, Role::Client) => omniorb("omni_client"),
            (Self::OmniOrb, Role::SslServer) => omniorb("omni_ssl_server"),
            (Self::OmniOrb, Role::SslClient) => omniorb("omni_ssl_client"),
            (Self::OmniOrb, Role::AdaptersServer) => omniorb("omni_adapters_server"),
            // chronorb's servant is in the test's process.
            (_, Role::ValuesServer) => omniorb("omni_values_server"),
        }
    }

    /// Returns the endpoint options of servers, and of clients that are called back; port 0 stands
    /// for any free one.
    fn endpoint(self, role: Role, (host, port): (&str, u16)) -> [String; 2] {
        let scheme = match (self, role) {
            (Self::Chronorb, Role::SslServer | Role::SslClient) => "ssliop://",
            (Self::Chronorb, _) => "iiop://",
            (Self::OmniOrb, Role::SslServer | Role::SslClient) => "giop:ssl:",
            (Self::OmniOrb, _) => "giop:tcp:",
        };
        let option = self.endpoint_option().to_owned();
        [option, format!("{scheme}{host}:{port}")]
    }

    /// Returns the option for endpoints.
    const fn endpoint_option(self) -> &'static str {
        match self {
            Self::Chronorb => LISTEN,
            Self::OmniOrb => "-ORBendPoint",
        }
    }

    /// Returns the same for a socket file, and the option for references to it.
    fn endpoint_of_file(self, path: &Path) -> [String; 2] {
        let path = path.display();
        match self {
            // omniORB reads only profiles of IIOP.
            Self::Chronorb => [
                "-ORBListenEndpoints".to_owned(),
                format!("iiop://127.0.0.1:0;uiop://{path}"),
            ],
            Self::OmniOrb => ["-ORBendPoint".to_owned(), format!("giop:unix:{path}")],
        }
    }

    /// Returns the option for the greatest version of GIOP.
    pub(crate) const fn max_giop_version(self) -> &'static str {
        match self {
            Self::Chronorb => "-ORBMaxGIOPVersion",
            Self::OmniOrb => "-ORBmaxGIOPVersion",
        }
    }
}

/// The role of a program.
#[derive(Clone, Copy, Debug)]
enum Role {
    Server,
    Client,
    SslServer,
    SslClient,
    AdaptersServer,
    ValuesServer,
}

/// A server of `Interop::Hub` or of `Adapters::Control`.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    /// The object reference that the program printed first, as text.
    pub(crate) ior: String,
}

impl Server {
    /// Starts a server of `Interop::Hub`.
    pub(crate) fn start(side: Side, options: &[&str]) -> Self {
        Self::start_as(
            side,
            Role::Server,
            &[],
            side.endpoint(Role::Server, ANY_PORT),
            options,
        )
    }

    /// Starts a server of `Interop::Hub` at a socket file, with a reference that has only this
    /// address.
    pub(crate) fn start_at_file(side: Side, path: &Path) -> Self {
        let endpoint = side.endpoint_of_file(path);
        let mut this = Self::start_as(side, Role::Server, &[], endpoint, &[]);
        let mut ior: Ior = this.ior.parse().expect("a reference");
        for profile in &mut ior.profiles {
            if profile.tag == TAG_INTERNET_IOP {
                let mut told = IiopProfile::decode(&profile.data).expect("a profile");
                told.port = 0;
                profile.data = told.encode().expect("it fits");
            }
        }
        this.ior = ior.to_string();
        this
    }

    /// Starts a server of `Interop::Hub` at this endpoint, in the notation of its side.
    pub(crate) fn start_at(side: Side, endpoint: &str, options: &[&str]) -> Self {
        let endpoint = [side.endpoint_option().to_owned(), endpoint.to_owned()];
        Self::start_as(side, Role::Server, &[], endpoint, options)
    }

    /// Starts a server of `Interop::Hub` that is only reachable by TLS.
    pub(crate) fn start_ssl(side: Side, options: &[&str]) -> Self {
        Self::start_as(
            side,
            Role::SslServer,
            &[],
            side.endpoint(Role::SslServer, ANY_PORT),
            options,
        )
    }

    /// Starts a server of `Adapters::Control` with a name, at a host and port.
    pub(crate) fn start_adapters(
        side: Side,
        name: &str,
        address: (&str, u16),
        options: &[&str],
    ) -> Self {
        let named = ["--name", name];
        Self::start_as(
            side,
            Role::AdaptersServer,
            &named,
            side.endpoint(Role::Server, address),
            options,
        )
    }

    /// Starts omniORB's server of `Values::Mirror`.
    pub(crate) fn start_values() -> Self {
        let side = Side::OmniOrb;
        Self::start_as(
            side,
            Role::ValuesServer,
            &[],
            side.endpoint(Role::Server, ANY_PORT),
            &[],
        )
    }

    fn start_as(
        side: Side,
        role: Role,
        first: &[&str],
        endpoint: [String; 2],
        options: &[&str],
    ) -> Self {
        let mut process = Process::start(side.program(role), |folder| {
            let file = folder.path().join(IOR_FILE).display().to_string();
            let mut arguments: Vec<String> = first.iter().map(|&s| s.to_owned()).collect();
            arguments.extend(["--ior-file".to_owned(), file]);
            arguments.extend(endpoint);
            arguments.extend(options.iter().map(|&s| s.to_owned()));
            arguments
        });
        let ior = process.wait_for_file(IOR_FILE);
        Self { process, ior }
    }

    /// Returns the port in the reference.
    pub(crate) fn port(&self) -> u16 {
        let ior: Ior = self.ior.parse().expect("a reference");
        let mut profiles = ior.profiles.iter();
        let profile = profiles.find(|profile| profile.tag == TAG_INTERNET_IOP);
        let profile = profile.expect("an IIOP profile");
        IiopProfile::decode(&profile.data).expect("a profile").port
    }

    /// Waits for the end of a server after its shutdown.
    pub(crate) fn finish(self) {
        self.process.finish();
    }
}

/// Runs a client to its end, and asserts that it made checks and that all of them passed. Returns
/// its output.
pub(crate) fn run_client(side: Side, reference: &str, options: &[&str]) -> String {
    let client = Process::start(side.program(Role::Client), |_| {
        client_arguments(side, Role::Client, reference, options)
    });
    passed(client)
}

/// As [`run_client`], with calls back at this endpoint, in the notation of its side.
pub(crate) fn run_client_at(
    side: Side,
    reference: &str,
    endpoint: &str,
    options: &[&str],
) -> String {
    let client = Process::start(side.program(Role::Client), |_| {
        let own = ["--ior", reference, side.endpoint_option(), endpoint];
        let own = own.into_iter().chain(options.iter().copied());
        own.map(str::to_owned).collect()
    });
    passed(client)
}

/// As [`run_client`], with calls back only by TLS.
pub(crate) fn run_ssl_client(side: Side, reference: &str, options: &[&str]) -> String {
    let client = Process::start(side.program(Role::SslClient), |_| {
        client_arguments(side, Role::SslClient, reference, options)
    });
    passed(client)
}

/// Runs omniORB's client of `Values::Mirror` to its end, and asserts that it made checks and that
/// all of them passed.
pub(crate) fn run_values_client(reference: &str) {
    let client = Process::start(omniorb_programs().join("omni_values_client"), |_| {
        vec!["--ior".to_owned(), reference.to_owned()]
    });
    passed(client);
}

/// omniORB's client of two servers of `Adapters::Control`.
#[derive(Debug)]
pub(crate) struct AdaptersClient {
    process: Process,
}

impl AdaptersClient {
    /// Starts the client.
    pub(crate) fn start(here: &Server, there: &Server, options: &[&str]) -> Self {
        Self::start_with(here, there, options, false)
    }

    /// Starts the client. After it has ended a server, it waits for [`proceed`](Self::proceed).
    pub(crate) fn start_waiting(here: &Server, there: &Server, options: &[&str]) -> Self {
        Self::start_with(here, there, options, true)
    }

    fn start_with(here: &Server, there: &Server, options: &[&str], waits: bool) -> Self {
        let process = Process::start(omniorb_programs().join("omni_adapters_client"), |folder| {
            let proceed = folder.path().join(PROCEED_FILE).display().to_string();
            let servers = ["--here", &here.ior, "--there", &there.ior];
            let proceed = waits.then_some(["--proceed", &proceed]);
            servers
                .into_iter()
                .chain(proceed.into_iter().flatten())
                .chain(options.iter().copied())
                .map(str::to_owned)
                .collect()
        });
        Self { process }
    }

    /// Lets the client continue after it has ended a server.
    pub(crate) fn proceed(&self) {
        self.process.put_file(PROCEED_FILE);
    }

    /// Waits for its end, and asserts that it made checks and that all of them passed.
    pub(crate) fn finish(self) {
        passed(self.process);
    }
}

/// Starts omniORB's server of `Anys::Mirror`.
pub(crate) fn start_anys() -> Server {
    let mut process = Process::start(omniorb_programs().join("omni_anys"), |folder| {
        let file = folder.path().join(IOR_FILE).display().to_string();
        let mut arguments = vec!["--ior-file".to_owned(), file];
        arguments.extend(Side::OmniOrb.endpoint(Role::Server, ANY_PORT));
        arguments
    });
    let ior = process.wait_for_file(IOR_FILE);
    Server { process, ior }
}

/// Runs omniORB's checks of a server of `Anys::Mirror`, and asserts that all of them passed.
pub(crate) fn check_anys(reference: &str) {
    passed(Process::start(omniorb_programs().join("omni_anys"), |_| {
        vec!["--ior".to_owned(), reference.to_owned()]
    }));
}

/// Returns omniORB's encoding of each sample of `idl/anys.idl`, as hexadecimal digits.
pub(crate) fn print_anys(byte_order: &str) -> String {
    Process::start(omniorb_programs().join("omni_anys"), |_| {
        vec!["--print".to_owned(), byte_order.to_owned()]
    })
    .finish()
}

/// Waits for the end of a client that checks, and asserts that it made checks and that all of them
/// passed. Returns its output.
fn passed(client: Process) -> String {
    let output = client.finish();
    let last = output.lines().next_back().unwrap_or_default();
    let passed = last.strip_suffix(" passed, 0 failed");
    let passed = passed.and_then(|n| n.parse::<u32>().ok());
    assert!(passed.is_some_and(|n| n > 0), "the last line is {last:?}");
    output
}

fn client_arguments(side: Side, role: Role, reference: &str, options: &[&str]) -> Vec<String> {
    let mut arguments = vec!["--ior".to_owned(), reference.to_owned()];
    arguments.extend(side.endpoint(role, ANY_PORT));
    arguments.extend(options.iter().map(|&s| s.to_owned()));
    arguments
}

/// Runs a client while its traffic with the server is recorded, and makes tshark check that.
/// Returns the number of messages of each type.
pub(crate) fn run_client_recorded(side: Side, server: &Server, options: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = folder.path().join("traffic.pcap").display().to_string();
    let port = server.port().to_string();
    let capture = Process::start(interop_folder().join("capture.sh"), |_| {
        let client = side.program(Role::Client).display().to_string();
        let mut arguments = vec![port.clone(), recording.clone(), client];
        arguments.extend(client_arguments(side, Role::Client, &server.ior, options));
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
        let port = free_port("127.0.0.1");
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
        let url = format!("corbaloc::127.0.0.1:{port}/NameService");
        let orb = Orb::with_config(OrbConfig::default()).expect("an ORB");
        let root = orb.string_to_object(&url).expect("a URL");
        process.poll("name server", |process| {
            assert!(process.ended().is_none(), "it has ended");
            // It listens for a moment before its root context exists.
            (root.non_existent() == Ok(false)).then_some(())
        });
        orb.shutdown(true).expect("it serves nothing");
        Self {
            _process: process,
            url,
        }
    }
}

/// Returns a port that was free a moment ago, for a program that cannot choose one itself.
pub(crate) fn free_port(host: &str) -> u16 {
    let listener = TcpListener::bind((host, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Returns the folder with omniORB's programs, which are built once.
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

/// Any free port of the loopback interface.
pub(crate) const ANY_PORT: (&str, u16) = ("127.0.0.1", 0);
const LISTEN: &str = "-ORBListenEndpoints";
const IOR_FILE: &str = "first.ior";
const PROCEED_FILE: &str = "proceed";
