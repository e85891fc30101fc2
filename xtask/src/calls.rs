//! The calls of `benches/calls`, whose instructions are counted and whose times are compared.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::run::{self, Failure, ask};

/// One of the two programs of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The connection between client and server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transport {
    Tcp,
    Unix,
    /// TCP, where an access rule permits the client, and an authorizer each request.
    Guarded,
    /// The object is in the client's process.
    Collocated,
}

/// A kind of call whose instructions are counted.
pub(crate) struct Case {
    /// The name in the budget and on the command line.
    pub(crate) name: &'static str,
    /// The name of the operation for the programs.
    pub(crate) operation: &'static str,
    pub(crate) transport: Transport,
}

impl Case {
    const fn new(name: &'static str, operation: &'static str, transport: Transport) -> Self {
        Self {
            name,
            operation,
            transport,
        }
    }

    pub(crate) fn sides(&self) -> &'static [Side] {
        match self.transport {
            Transport::Tcp | Transport::Unix | Transport::Guarded => &[Side::Client, Side::Server],
            Transport::Collocated => &[Side::Client],
        }
    }

    /// Whether other ORBs have it too.
    pub(crate) fn is_common(&self) -> bool {
        !matches!(self.operation, "deadline" | "segment")
    }
}

pub(crate) const CASES: [Case; 11] = [
    Case::new("octet", "octet", Transport::Tcp),
    Case::new("octet-deadline", "deadline", Transport::Tcp),
    Case::new("octet-segment", "segment", Transport::Tcp),
    Case::new("octet-unix", "octet", Transport::Unix),
    Case::new("octet-guarded", "octet", Transport::Guarded),
    Case::new("oneway", "oneway", Transport::Tcp),
    Case::new("structs", "structs", Transport::Tcp),
    Case::new("string", "string", Transport::Tcp),
    Case::new("any", "any", Transport::Tcp),
    Case::new("reference", "reference", Transport::Tcp),
    Case::new("collocated", "octet", Transport::Collocated),
];

impl Side {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The programs of one ORB. Both ORBs' programs have the same command line.
pub(crate) struct Programs {
    client: PathBuf,
    server: PathBuf,
    /// The options of a server with this transport, for a socket at this path.
    endpoint: fn(Transport, &Path) -> Vec<String>,
}

/// Builds programs from the workspace in this folder, in the target folder `target`. `programs` are
/// options of cargo.
pub(crate) fn build(workspace: &Path, target: &Path, programs: &[&str]) -> Result<(), Failure> {
    let manifest = workspace.join("Cargo.toml").display().to_string();
    let mut args = vec![
        "build",
        "--quiet",
        "--profile=dist",
        "--package=calls-bench",
        "--manifest-path",
        &manifest,
    ];
    args.extend(programs);
    let target_dir = ("CARGO_TARGET_DIR", target.display().to_string());
    run::cargo(&args, &[target_dir])
}

/// Builds the client and the server of chronorb, as [`build`] does.
pub(crate) fn chronorb(workspace: &Path, target: &Path) -> Result<Programs, Failure> {
    // Without the compiler of IDL as a library.
    let programs = [
        "--no-default-features",
        "--bin=calls-client",
        "--bin=calls-server",
    ];
    build(workspace, target, &programs)?;
    let folder = target.join("dist");
    Ok(Programs {
        client: folder.join("calls-client"),
        server: folder.join("calls-server"),
        endpoint: |transport, socket| {
            let endpoint = match transport {
                Transport::Unix => format!("uiop://{}", socket.display()),
                _ => "iiop://127.0.0.1".to_owned(),
            };
            // A thread that starts in one of two counted runs would count as part of each call.
            let fixed = ["-ORBThreads", "4", "-ORBListenEndpoints"].map(str::to_owned);
            let mut options = [&fixed[..], &[endpoint]].concat();
            if transport == Transport::Guarded {
                options.extend(["-ORBServerTransportRule", "localhost tcp"].map(str::to_owned));
            }
            options
        },
    })
}

/// The way to install the dependencies of [`omniorb`].
pub(crate) const OMNIORB_MISSING: &str = "omniidl, g++ or its headers are missing (install with: \
     apt-get install g++ omniidl libomniorb4-dev)";

/// Builds the programs of omniORB, or returns nothing where it is not installed.
pub(crate) fn omniorb() -> Result<Option<Programs>, Failure> {
    let headers = Path::new("/usr/include/omniORB4/CORBA.h");
    if ask("omniidl", &["-V"]).is_none()
        || ask("g++", &["--version"]).is_none()
        || !headers.exists()
    {
        return Ok(None);
    }
    let sources = run::root().join("benches/calls");
    let folder = run::target_dir().join("instructions/omniorb");
    fs::create_dir_all(&folder).map_err(|e| Failure(format!("{}: {e}", folder.display())))?;
    let mut omniidl = Command::new("omniidl");
    omniidl.current_dir(&folder);
    omniidl.args(["-bcxx", "-Wba", "-Wbh=.hh", "-Wbs=.cc", "-Wbd=_any.cc"]);
    run::run(omniidl.arg(sources.join("idl/calls.idl")))?;
    for program in ["client", "server"] {
        let mut compiler = Command::new("g++");
        compiler.current_dir(&folder);
        compiler.args(["-O2", "-I.", "-o", program, "calls.cc", "calls_any.cc"]);
        compiler.arg(sources.join(format!("omniorb/{program}.cc")));
        run::run(compiler.args(["-lomniORB4", "-lomniDynamic4", "-lomnithread"]))?;
    }
    Ok(Some(Programs {
        client: folder.join("client"),
        server: folder.join("server"),
        endpoint: |transport, socket| {
            let endpoint = match transport {
                Transport::Unix => format!("giop:unix:{}", socket.display()),
                _ => "giop:tcp:127.0.0.1:".to_owned(),
            };
            let mut options = vec!["-ORBendPoint".to_owned(), endpoint];
            if transport == Transport::Guarded {
                options.extend(["-ORBserverTransportRule", "localhost tcp"].map(str::to_owned));
            }
            // A call that is slower than this period in milliseconds takes another path in the
            // server. Under callgrind calls are slow.
            options.extend([
                "-ORBconnectionWatchPeriod".to_owned(),
                "500000000".to_owned(),
            ]);
            options
        },
    }))
}

impl Programs {
    /// Makes `calls` calls, with one side under `counter`: a program and its options, which are
    /// followed by the program that is counted.
    pub(crate) fn count(
        &self,
        case: &Case,
        side: Side,
        calls: u32,
        counter: &[String],
        folder: &RunFolder,
    ) -> Result<(), Failure> {
        let before = |this| if this == side { counter } else { &[] };
        let mut client = self.client("count", case, calls, before(Side::Client), folder)?;
        if case.transport == Transport::Collocated {
            return folder.run(&mut client).map(drop);
        }
        // Only the server's reads depend on the pace of oneways.
        let fifo = (case.operation == "oneway" && side == Side::Server).then(|| folder.fifo());
        let server = self.serve(case, before(Side::Server), fifo.as_deref(), folder)?;
        client.arg(&server.reference).args(fifo);
        folder.run(&mut client)?;
        server.end(folder)
    }

    /// Starts the server of a case, with a counter before it unless that is empty.
    pub(crate) fn serve(
        &self,
        case: &Case,
        counter: &[String],
        fifo: Option<&Path>,
        folder: &RunFolder,
    ) -> Result<Server, Failure> {
        let mut server = folder.command(counter, &self.server)?;
        server.args((self.endpoint)(case.transport, &folder.socket()));
        server.args(fifo);
        Server::start(&mut server, folder)
    }

    /// Starts a server with default settings.
    pub(crate) fn serve_by_default(&self, folder: &RunFolder) -> Result<Server, Failure> {
        Server::start(&mut folder.command(&[], &self.server)?, folder)
    }

    /// The client of a case, with a counter before it unless that is empty; the reference of the
    /// server is to be added.
    pub(crate) fn client(
        &self,
        mode: &str,
        case: &Case,
        calls: u32,
        counter: &[String],
        folder: &RunFolder,
    ) -> Result<Command, Failure> {
        let mut client = folder.command(counter, &self.client)?;
        client.args([mode, case.operation, &calls.to_string()]);
        Ok(client)
    }
}

/// A server, which ends at the end of its standard input or when this is dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) reference: String,
}

impl Server {
    /// Starts it and waits for its reference.
    fn start(command: &mut Command, folder: &RunFolder) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| folder.failure(error))?;
        let output = process.stdout.take().map(BufReader::new);
        let mut server = Self {
            process,
            reference: String::new(),
        };
        if let Some(mut output) = output {
            let read = output.read_line(&mut server.reference);
            read.map_err(|error| folder.failure(error))?;
        }
        server.reference.truncate(server.reference.trim_end().len());
        if server.reference.is_empty() {
            return Err(folder.failure("the server printed no reference"));
        }
        Ok(server)
    }

    /// The process id of the program, which is a child of timeout(1).
    pub(crate) fn program(&self, folder: &RunFolder) -> Result<u32, Failure> {
        let id = self.process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.map_err(|error| folder.failure(error))?;
        let first = children.split_whitespace().next();
        first
            .and_then(|first| first.parse().ok())
            .ok_or_else(|| folder.failure("the server has ended"))
    }

    pub(crate) fn end(mut self, folder: &RunFolder) -> Result<(), Failure> {
        drop(self.process.stdin.take());
        let status = self.process.wait().map_err(|error| folder.failure(error))?;
        if status.success() {
            return Ok(());
        }
        Err(folder.failure(status))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended unless something failed before, which is told instead.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A temporary folder with the sockets, the FIFO and the messages of a run. Its path is short, as
/// that of a socket has to be.
pub(crate) struct RunFolder {
    path: PathBuf,
    /// The number of servers that have a socket.
    sockets: Cell<u32>,
}

impl RunFolder {
    pub(crate) fn new() -> Result<Self, Failure> {
        let name = format!("chronorb-calls-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|e| Failure(format!("{}: {e}", path.display())))?;
        let folder = Self {
            path,
            sockets: Cell::new(0),
        };
        run::run(Command::new("mkfifo").arg(folder.fifo()))?;
        Ok(folder)
    }

    /// Returns the path of the counter's profile.
    pub(crate) fn profile(&self) -> PathBuf {
        self.path.join("profile")
    }

    fn fifo(&self) -> PathBuf {
        self.path.join("fifo")
    }

    /// A path for the socket of one more server.
    fn socket(&self) -> PathBuf {
        let number = self.sockets.get();
        self.sockets.set(number + 1);
        self.path.join(format!("socket-{number}"))
    }

    /// A program with a time limit, and with a counter before it unless that is empty.
    pub(crate) fn command(&self, counter: &[String], program: &Path) -> Result<Command, Failure> {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).args(counter).arg(program);
        // The size of the environment is part of the alignment of the stack.
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let messages = File::options()
            .create(true)
            .append(true)
            .open(self.messages());
        command.stderr(messages.map_err(|error| self.failure(error))?);
        Ok(command)
    }

    /// Runs a program to its end, and returns what it printed.
    pub(crate) fn run(&self, command: &mut Command) -> Result<String, Failure> {
        // Only the output is captured.
        let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let output = output.and_then(Child::wait_with_output);
        let output = output.map_err(|error| self.failure(format!("{command:?}: {error}")))?;
        if !output.status.success() {
            return Err(self.failure(format!("{command:?}: {}", output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A failure with the messages of the programs so far.
    pub(crate) fn failure(&self, why: impl Display) -> Failure {
        let messages = fs::read_to_string(self.messages()).unwrap_or_default();
        Failure(format!("{why}\n{messages}"))
    }

    fn messages(&self) -> PathBuf {
        self.path.join("messages")
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What is left is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The time limit of a program in seconds, for timeout(1).
const LIMIT: &str = "300";
