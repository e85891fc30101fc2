//! The command line of `chronorb ns`.

use std::path::PathBuf;
use std::time::Duration;

use chronorb_orb::OrbConfig;
use clap::{Args, Subcommand, value_parser};

use super::serve::ServeArguments;
use crate::client::call_time;

#[derive(Debug, Subcommand)]
pub(crate) enum NsCommand {
    /// Serve names: the naming service of CORBA (CosNaming).
    ///
    /// Prints the references of the root context, one in a line, when clients can use it, and
    /// serves until SIGTERM or Ctrl-C. The names are kept in memory, unless --store names a
    /// directory: a change is then answered when it is on disc. Only programs on this machine
    /// reach the server, unless --listen names another address. Takes -ORB options too, as
    /// -ORBServerTransportRule for the clients that may connect.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArguments),

    /// List contexts and their bindings as a tree.
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArguments),

    /// Print the reference that is bound to a name.
    #[command(after_help = RESOLVE_EXAMPLES)]
    Resolve {
        #[command(flatten)]
        server: ServerArguments,

        /// The name: ID.KIND/ID.KIND, with a \ before /, . and \ that belong to an id or a kind.
        #[arg(value_name = "NAME")]
        name: String,
    },

    /// Bind an object to a name that is not bound.
    #[command(after_help = BIND_EXAMPLES)]
    Bind {
        #[command(flatten)]
        server: ServerArguments,

        /// The name; its contexts exist.
        #[arg(value_name = "NAME")]
        name: String,

        /// The object: IOR:, corbaloc:, corbaname:, file:, a file, or - for standard input.
        #[arg(value_name = "REF")]
        reference: String,
    },

    /// Bind an object to a name, in place of the object that is bound to it.
    #[command(after_help = BIND_EXAMPLES)]
    Rebind {
        #[command(flatten)]
        server: ServerArguments,

        /// The name; its contexts exist.
        #[arg(value_name = "NAME")]
        name: String,

        /// The object: IOR:, corbaloc:, corbaname:, file:, a file, or - for standard input.
        #[arg(value_name = "REF")]
        reference: String,
    },

    /// Remove the binding of a name. The object or context itself stays.
    #[command(after_help = STATUS)]
    Unbind {
        #[command(flatten)]
        server: ServerArguments,

        /// The name.
        #[arg(value_name = "NAME")]
        name: String,
    },

    /// Make a context, and bind it to a name.
    #[command(after_help = STATUS)]
    Mkdir {
        #[command(flatten)]
        server: ServerArguments,

        /// Make the contexts on the way too, and accept one that exists.
        #[arg(long, short)]
        parents: bool,

        /// The name.
        #[arg(value_name = "NAME")]
        name: String,
    },

    /// Write all bindings as text, which import reads.
    ///
    /// A context of another server is written as its reference, unless --follow is given. Leases
    /// are not written, because name servers do not show them.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),

    /// Make the bindings of a text, or of the data file of omniNames, in a server that runs.
    ///
    /// The file is read as a whole before the first binding is made. Contexts that exist are used.
    /// The first name that is bound already ends the import, unless --rebind is given; what was
    /// imported before stays.
    #[command(after_help = EXPORT_EXAMPLES)]
    Import(ImportArguments),

    /// Find bindings of objects that do not exist, and contexts without a name; remove them with
    /// --yes.
    ///
    /// Asks each object as list --check does. Contexts that no name leads to are found in servers
    /// of chronorb; others do not list them. Contexts of other servers are not entered.
    #[command(after_help = GC_EXAMPLES)]
    Gc(GcArguments),
}

/// The name server that a command calls.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerArguments {
    /// The root context. The default is the initial reference NameService, as -ORBInitRef gives it,
    /// or else `corbaloc::1.2@localhost:2809/NameService`.
    #[arg(long, value_name = "REF")]
    pub(super) ns: Option<String>,

    /// The longest time of a call, in milliseconds; by default that of -ORBRequestTimeout, or 5000.
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=3_600_000))]
    timeout: Option<u64>,

    /// Wait so many seconds for the server to be reachable; resolve also waits for the name.
    #[arg(long, value_name = "SECONDS", default_value_t = 0,
          value_parser = value_parser!(u64).range(0..=86_400))]
    wait: u64,
}

impl ServerArguments {
    pub(crate) fn timeout(&self, config: &OrbConfig) -> Duration {
        call_time(self.timeout, config)
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

/// The bound of commands that ask for all bindings.
#[derive(Args, Debug)]
pub(crate) struct BoundArguments {
    /// The most bindings and contexts to ask for; a server that has more ends the command.
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000,
          value_parser = value_parser!(u32).range(1..=GREATEST_MAX))]
    max: u32,
}

impl BoundArguments {
    pub(super) fn max(&self) -> usize {
        self.max as usize
    }
}

/// The greatest number of bindings that fits into memory.
pub(super) const GREATEST_MAX: i64 = 1_000_000;

#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(super) server: ServerArguments,

    #[command(flatten)]
    pub(super) bound: BoundArguments,

    /// The name of the context to begin with; the root by default.
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,

    /// Do not list the contexts inside.
    #[arg(long)]
    pub(super) flat: bool,

    /// Print the reference of each object.
    #[arg(long)]
    pub(super) ior: bool,

    /// Ask each object whether it exists, several at the same time, each within --timeout, and
    /// print ok, gone or unreachable.
    #[arg(long)]
    pub(super) check: bool,

    /// Print one JSON object instead of the tree.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(super) server: ServerArguments,

    #[command(flatten)]
    pub(super) bound: BoundArguments,

    /// Write the contexts of other servers and their bindings, instead of their references.
    #[arg(long)]
    pub(super) follow: bool,

    /// The file, which is replaced; standard output by default or for -.
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    #[command(flatten)]
    pub(super) server: ServerArguments,

    /// Replace the objects of names that are bound already.
    #[arg(long)]
    pub(super) rebind: bool,

    /// The file; - for standard input.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct GcArguments {
    #[command(flatten)]
    pub(super) server: ServerArguments,

    #[command(flatten)]
    pub(super) bound: BoundArguments,

    /// Remove what is found. Without it nothing is changed.
    #[arg(long)]
    pub(super) yes: bool,

    /// Also find the bindings of objects whose servers cannot be reached.
    #[arg(long)]
    pub(super) unreachable: bool,

    /// The seconds after which a context has to be without a name still: its client may be about to
    /// bind it.
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = value_parser!(u64).range(0..=3600))]
    pub(super) grace: u64,
}

const STATUS: &str = "\
Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong, 3 when
the name is not bound.";

const LIST_EXAMPLES: &str = "\
Examples:
  chronorb ns list
  chronorb ns list plant --check --ns corbaloc::names.example:2809/NameService
  chronorb ns list --json --ior | jq -r '.bindings[] | [.name, .ior] | @tsv'

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong, 3 when
the name is not bound, or --check found an object that does not exist (gone), or whose server does
not answer (unreachable).";

const RESOLVE_EXAMPLES: &str = "\
Examples:
  chronorb ns resolve plant/radar.sensor | chronorb ior ping -
  chronorb ns resolve radar --wait 30

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong, 3 when
the name is not bound.";

const BIND_EXAMPLES: &str = "\
Examples:
  chronorb ns mkdir --parents plant
  chronorb ns bind plant/radar.sensor radar.ior
  chronorb ns rebind plant/radar.sensor corbaloc::radar.example:2810/Radar

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong, 3 when
a context of the name is not bound.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  chronorb ns export names.txt
  chronorb ns export --ns corbaloc::old.example:2809/NameService | chronorb ns import -
  chronorb ns import --rebind names.txt

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong, 3 when
a context of a name is not bound, or bindings are left out.";

const GC_EXAMPLES: &str = "\
Examples:
  chronorb ns gc
  chronorb ns gc --unreachable --yes

Exit status: 0 when nothing is left to remove, 1 when something failed, 2 when the command line is
wrong, 3 when something is left.";

const SERVE_EXAMPLES: &str = "\
Examples:
  chronorb ns serve
  chronorb ns serve --listen iiop://:2809 --reap 60
  chronorb ns serve --store /var/lib/chronorb/names
  chronorb ns serve --store names --import /var/lib/omniorb/omninames-HOST.dat
  chronorb ns serve --listen iiop://10.0.0.1:2809 -ORBServerTransportRule '10.0.0.0/24 tcp'

Clients reach the root context by corbaloc::HOST:2809/NameService, as in the option
-ORBInitRef NameService=corbaloc::HOST:2809/NameService.";
