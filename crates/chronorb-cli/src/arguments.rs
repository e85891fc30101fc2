//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use chronorb_lab::demo::{CLIENT_COMMAND, Options, SERVER_COMMAND};
use chronorb_lab::os::OperatingSystem;
use chronorb_lab::thread_pools::{self, ThreadPools};
use chronorb_lab::whitebox::Whitebox;
use chronorb_lab::{Experiment, Setup, default_report};
use chronorb_lab::{
    contest, demux, doctor, inversion, latency, os, overtake, peer, throughput, waits, whitebox,
};
use chronorb_orb::OrbConfig;
use clap::{Args, Parser, Subcommand, value_parser};

use crate::top;

/// Real-time CORBA: show that priorities hold, examine the machine, measure what calls cost,
/// compile IDL to Rust.
///
/// Without a command it runs the demonstration.
#[derive(Debug, Parser)]
#[command(name = "chronorb", version, after_help = STATUS)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the same load without priorities and with them.
    ///
    /// Starts a server and clients on this machine: one client of high priority that calls 20
    /// times a second, and many of low priority that saturate the server. First everyone is
    /// equal, then priorities hold from the client's thread to the servant. Ends with a table,
    /// a sentence that says what it means, and a report with plots.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArguments),

    /// Find out what costs latency on this machine, and how to mend it.
    ///
    /// Looks at the kernel, the rights of this process, CPUs, timers, memory and network, and
    /// says of each what was found, what it costs and how to mend it: what is missing first, most
    /// costly first. What cannot be read is said, and why. Changes nothing on the machine. With
    /// --measure it also shows how late threads wake up that sleep until a fixed time.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArguments),

    /// Run an experiment of the laboratory.
    #[command(subcommand)]
    Lab(LabCommand),

    /// Show what a running ORB's lanes and threads are doing.
    ///
    /// A live view: a line for each lane with its queue, rates and times, and below it its threads.
    /// It is asked of the ORB's monitor, which there is where its program was started with
    /// -ORBMonitor on. Where the output is no terminal, one table follows the other.
    #[command(after_help = TOP_EXAMPLES)]
    Top(TopArguments),

    /// Check IDL files, or compile them to Rust.
    #[command(subcommand)]
    Idl(IdlCommand),

    #[command(name = SERVER_COMMAND, hide = true)]
    DemoServer { order: String },

    #[command(name = CLIENT_COMMAND, hide = true)]
    DemoClient { order: String },

    #[command(name = contest::SERVER_COMMAND, hide = true)]
    ContestServer { order: String },

    #[command(name = contest::CLIENT_COMMAND, hide = true)]
    ContestClient { order: String },

    #[command(name = contest::CROWD_COMMAND, hide = true)]
    ContestCrowd { order: String },

    #[command(name = inversion::SERVER_COMMAND, hide = true)]
    InversionServer { order: String },

    #[command(name = inversion::CLIENT_COMMAND, hide = true)]
    InversionClient { order: String },

    #[command(name = os::PART_COMMAND, hide = true)]
    OsPart { order: String },

    #[command(name = overtake::SERVER_COMMAND, hide = true)]
    OvertakeServer { order: String },

    #[command(name = overtake::CLIENT_COMMAND, hide = true)]
    OvertakeClient { order: String },

    #[command(name = thread_pools::SERVER_COMMAND, hide = true)]
    ThreadPoolsServer { order: String },

    #[command(name = thread_pools::CLIENT_COMMAND, hide = true)]
    ThreadPoolsClient { order: String },

    #[command(name = waits::SERVER_COMMAND, hide = true)]
    WaitsServer { order: String },

    #[command(name = whitebox::PART_COMMAND, hide = true)]
    WhiteboxPart { order: String },
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Print the figures as one JSON object instead of the table.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = Options::default().report)]
    report: PathBuf,

    /// How long each of the two phases lasts, 1 to 3600 seconds.
    #[arg(long, value_name = "N", default_value_t = Setup::default().phase.as_secs(),
          value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

impl Default for DemoArguments {
    fn default() -> Self {
        let options = Options::default();
        Self {
            json: options.json,
            report: options.report,
            seconds: options.setup.phase.as_secs(),
        }
    }
}

impl From<DemoArguments> for Options {
    fn from(arguments: DemoArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            setup: Setup {
                phase: Duration::from_secs(arguments.seconds),
                ..Setup::default()
            },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Print what was found as one JSON object instead of the list.
    #[arg(long)]
    json: bool,

    /// Measure wake-ups: one thread on each CPU, at the highest real-time priority that is
    /// permitted, wakes up each ms.
    #[arg(long)]
    measure: bool,

    /// How long wake-ups are measured, 1 to 86400 seconds.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure",
          value_parser = value_parser!(u64).range(1..=86400))]
    seconds: u64,

    /// Also write a report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl From<DoctorArguments> for doctor::Options {
    fn from(arguments: DoctorArguments) -> Self {
        Self {
            json: arguments.json,
            measure: (arguments.measure).then_some(Duration::from_secs(arguments.seconds)),
            report: arguments.report,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Measure what finding the target of a request costs, stage by stage.
    ///
    /// Reading the header, finding the POA, the servant and the operation, and the whole way, each
    /// for 1 to 10,000 entries (servants to 1,000,000) and by every strategy: active demultiplexing
    /// and perfect hashing, dynamic hashing, binary and linear search. It also activates a million
    /// objects and makes ten thousand POAs, to see what they take. Ends with tables, what is claimed
    /// of the figures and whether it holds, and a report with plots. Takes about a minute.
    #[command(after_help = DEMUX_EXAMPLES)]
    Demux(DemuxArguments),

    /// Measure how the architecture of an ORB inverts priorities.
    ///
    /// One client of high priority and up to fifty of low priority call the same server, as in the paper
    /// "Measuring the Real-time CORBA ORB Core": with the real-time architecture, with those of the
    /// conventional ORBs of the paper, and with omniORB where that is installed. Ends with tables, what the
    /// paper claims and whether it is so here, and a report with plots. Takes about twenty minutes, and two
    /// processors.
    #[command(after_help = INVERSION_EXAMPLES)]
    Inversion(InversionArguments),

    /// Measure what a call takes, beside raw sockets and omniORB.
    ///
    /// The same call is made by turns on raw TCP, with as many octets as the messages of chronorb have,
    /// on chronorb, and on omniORB where that is installed: blocking and spinning, with client and
    /// server on the same CPU, on two, and unpinned. Then it opens ten thousand idle connections to a
    /// server, to see what they cost in time and memory. Ends with tables, what is claimed of the
    /// figures and whether it holds, and a report with plots. Takes a minute or two.
    #[command(after_help = LATENCY_EXAMPLES)]
    Latency(LatencyArguments),

    /// Hold the ORB, and vary how the operating system schedules it.
    ///
    /// A client of high priority and some of low call under SCHED_OTHER, SCHED_FIFO, SCHED_RR and
    /// SCHED_DEADLINE, on an idle machine and while others compute and do I/O; pinned and free, with
    /// memory locked and not. Also: what real-time throttling takes, what a context switch costs and
    /// how many a request has, what the ORB leaves of a CPU, and four clients at four rates. Ends with
    /// tables, the papers' figures beside ours, what is claimed and whether it holds, and a report with
    /// plots. Takes some five minutes, with --short about one, and all processors.
    #[command(after_help = OS_EXAMPLES)]
    Os(OsArguments),

    /// Measure calls of high priority while all lower lanes are saturated by endless work.
    ///
    /// Runs a server for each strategy of thread pools, Leader/Followers and Half-Sync/Half-Async, and
    /// clients: one of high priority, which is measured, and others that keep the lower lanes or the
    /// high lane busy, or do nothing. Compares lanes, request buffering with full buffers, borrowing,
    /// and a pool without lanes. Ends with tables, what is claimed of the figures and whether it
    /// holds, and a report with plots. Takes some six minutes, and all processors.
    #[command(after_help = OVERTAKE_EXAMPLES)]
    Overtake(OvertakeArguments),

    /// Be a server or a client in a comparison that another program makes.
    #[command(subcommand)]
    Peer(PeerCommand),

    /// Compare Leader/Followers and Half-Sync/Half-Async, and try what thread pools promise.
    ///
    /// A client that leaves it no rest has a server serve 100,000 requests: by each strategy of thread
    /// pools, with one to six threads, and with five amounts of work, in three rounds. Then it tries
    /// what is promised of thread pools: buffers, borrowing, threads on demand, priorities. Ends with
    /// tables, the paper's claims and whether they are reproduced, and a report with plots. Takes some
    /// twenty minutes, and two processors; with --short about a minute.
    #[command(after_help = THREAD_POOLS_EXAMPLES)]
    ThreadPools(ThreadPoolsArguments),

    /// Measure how many calls, and how much data, in a second, beside raw sockets and omniORB.
    ///
    /// One, four and sixteen clients at a time call chronorb, omniORB where that is installed, and
    /// raw servers with epoll sets. Then a MiB of octets, and 64 KiB of doubles and of small structs
    /// go there and back. Ends with tables, what is claimed of the figures and whether it holds, and a
    /// report with plots. Takes a few minutes.
    #[command(after_help = THROUGHPUT_EXAMPLES)]
    Throughput(ThroughputArguments),

    /// Measure the ways in which a server's thread can wait for a request.
    ///
    /// On raw sockets: one client calls, and one thread serves, which waits in recv, in epoll sets of
    /// every kind, by spinning, and in io_uring; on one processor and on two, with ordinary scheduling
    /// and with real-time priorities, alone and with a thousand idle connections. Ends with tables,
    /// what is claimed of the figures and whether it holds, and a report with plots. Takes some
    /// minutes, and two processors.
    #[command(after_help = WAITS_EXAMPLES)]
    Waits(WaitsArguments),

    /// Count what a call does inside: allocations, locks, system calls, and more.
    ///
    /// Makes calls of several kinds in steady state and counts, on client and server apart: heap
    /// allocations, lock operations, system calls by name, context switches, page faults, and octets
    /// copied by the ORB and by the kernel. Ends with a table, the papers' figures beside ours, the
    /// budgets and whether they are kept, and a report with a plot. Takes some seconds.
    #[command(after_help = WHITEBOX_EXAMPLES)]
    Whitebox(WhiteboxArguments),
}

/// What every experiment can be asked.
#[derive(Args, Debug)]
pub(crate) struct ExperimentArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file; its figures go beside it, to the
    /// same name with .json [default: chronorb-EXPERIMENT.html].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Measure less, in little time; also --quick.
    #[arg(long, alias = "quick")]
    short: bool,
}

impl ExperimentArguments {
    /// The plan that is asked for, before what an experiment's own arguments change of it.
    pub(crate) fn plan<E: Experiment>(&self) -> E::Plan {
        match self.short {
            true => E::short(),
            false => E::full(),
        }
    }

    /// All that is asked for.
    pub(crate) fn with<E: Experiment>(self, plan: E::Plan) -> chronorb_lab::Options<E::Plan> {
        chronorb_lab::Options {
            json: self.json,
            report: self.report.unwrap_or_else(default_report::<E>),
            plan,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct WhiteboxArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Fail where a budget is broken.
    #[arg(long)]
    pub(crate) check: bool,

    /// How many calls a run has, 10 to 100000, instead of 1000 or, with --short, 300.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(10..=100_000))]
    calls: Option<u32>,
}

impl From<WhiteboxArguments> for chronorb_lab::Options<whitebox::Plan> {
    fn from(arguments: WhiteboxArguments) -> Self {
        let mut plan = arguments.common.plan::<Whitebox>();
        plan.calls = arguments.calls.unwrap_or(plan.calls);
        arguments.common.with::<Whitebox>(plan)
    }
}

#[derive(Args, Debug)]
pub(crate) struct InversionArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file; its figures go beside it.
    #[arg(long, value_name = "FILE",
          default_value_os_t = chronorb_lab::default_report::<inversion::Inversion>())]
    report: PathBuf,

    /// Measure for some minutes only: fewer numbers of clients, and for a shorter time.
    #[arg(long)]
    short: bool,

    /// Run this mode: paper, short, loaded or saturated. May be given several times; without it loaded
    /// and saturated. The paper's own, with 4,000 calls of each client, takes more than an hour for each
    /// architecture.
    #[arg(long, value_name = "MODE")]
    mode: Vec<inversion::Mode>,

    /// Run this architecture alone; may be given several times. Some claims need real-time.
    #[arg(long, value_name = "NAME")]
    architecture: Vec<inversion::Architecture>,

    /// How many clients of low priority, 1 to 200: a list of numbers.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',',
          value_parser = value_parser!(u32).range(1..=200))]
    clients: Vec<u32>,

    /// How long calls are due with each number of clients, 1 to 3600 seconds; in the mode paper too.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,

    /// Where client and server run: apart on two CPUs, together on one, or free.
    #[arg(long, value_name = "apart|together|free", default_value_t)]
    place: inversion::Place,

    /// Put client and server into network namespaces of their own, joined by a pair of virtual Ethernet
    /// devices, instead of the loopback device. Needs root, and the program ip.
    #[arg(long)]
    namespaces: bool,

    /// What a servant computes for each call of the modes loaded and saturated, in µs.
    #[arg(long, value_name = "US", default_value_t = 10,
          value_parser = value_parser!(u64).range(0..=1_000_000))]
    work: u64,

    /// How busy fifty low-priority clients keep the server's CPU in the mode loaded with the real-time
    /// architecture, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 70,
          value_parser = value_parser!(u32).range(1..=100))]
    utilisation: u32,
}

impl From<InversionArguments> for chronorb_lab::Options<inversion::Plan> {
    fn from(arguments: InversionArguments) -> Self {
        let mut plan = match (arguments.mode.as_slice(), arguments.short) {
            ([], true) => inversion::Plan::short(),
            ([], false) => inversion::Plan::full(),
            (modes, short) => inversion::Plan::of(modes, short),
        };
        if !arguments.architecture.is_empty() {
            plan.architectures = arguments.architecture;
        }
        for series in &mut plan.series {
            if !arguments.clients.is_empty() {
                series.low_clients.clone_from(&arguments.clients);
            }
            if let Some(seconds) = arguments.seconds {
                series.length = Duration::from_secs(seconds);
                series.calls = 0;
            }
        }
        plan.place = arguments.place;
        plan.namespaces = arguments.namespaces;
        plan.work = Duration::from_micros(arguments.work);
        plan.utilisation_percent = arguments.utilisation;
        Self {
            json: arguments.json,
            report: arguments.report,
            plan,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct LatencyArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = latency::Options::default().report)]
    report: PathBuf,

    /// Measure for some seconds only: few rounds, few calls, and a thousand connections.
    #[arg(long)]
    quick: bool,

    /// Who takes part: those that block, those that spin, or both.
    #[arg(long, value_name = "block|spin|both", default_value = "both")]
    wait: latency::WaitSet,

    /// Schedule all clients and servers with SCHED_FIFO, instead of SCHED_OTHER.
    #[arg(long)]
    fifo: bool,

    /// How many idle connections a server shall have, instead of ten thousand; 0 leaves that out.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(0..=1_000_000))]
    connections: Option<u32>,
}

impl From<LatencyArguments> for latency::Options {
    fn from(arguments: LatencyArguments) -> Self {
        let mut plan = match arguments.quick {
            true => latency::Plan::quick(),
            false => latency::Plan::full(),
        };
        plan.waits = arguments.wait;
        plan.scheduled = match arguments.fifo {
            true => contest::Scheduled::Fifo,
            false => contest::Scheduled::Other,
        };
        plan.connections = arguments.connections.unwrap_or(plan.connections);
        Self {
            json: arguments.json,
            report: arguments.report,
            plan,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ThreadPoolsArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file; its figures go beside it.
    #[arg(long, value_name = "FILE", default_value_os_t = default_report::<ThreadPools>())]
    report: PathBuf,

    /// Measure for about a minute only, with few requests.
    #[arg(long)]
    short: bool,

    /// How many requests are timed for each strategy, cell and round, instead of 100,000.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(100..=10_000_000))]
    requests: Option<u32>,

    /// How many threads serve, instead of 1 to 6: numbers and ranges.
    #[arg(long, value_name = "N,N-M")]
    threads: Option<thread_pools::Threads>,

    /// Where client and server run: on two CPUs, on the same, or wherever the kernel puts them.
    #[arg(long, value_name = "apart|together|free", default_value = "apart")]
    place: thread_pools::Place,

    /// Leave all threads to the ordinary scheduling, instead of SCHED_FIFO.
    #[arg(long)]
    ordinary: bool,
}

impl From<ThreadPoolsArguments> for chronorb_lab::Options<thread_pools::Plan> {
    fn from(arguments: ThreadPoolsArguments) -> Self {
        let mut plan = match arguments.short {
            true => ThreadPools::short(),
            false => ThreadPools::full(),
        };
        plan.requests = arguments.requests.unwrap_or(plan.requests);
        if let Some(thread_pools::Threads(threads)) = arguments.threads {
            plan.threads = threads;
        }
        plan.place = arguments.place;
        plan.real_time = !arguments.ordinary;
        Self {
            json: arguments.json,
            report: arguments.report,
            plan,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ThroughputArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = throughput::Options::default().report)]
    report: PathBuf,

    /// Measure for some seconds only: few rounds, and few calls.
    #[arg(long)]
    quick: bool,
}

impl From<ThroughputArguments> for throughput::Options {
    fn from(arguments: ThroughputArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            plan: match arguments.quick {
                true => throughput::Plan::quick(),
                false => throughput::Plan::full(),
            },
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum PeerCommand {
    /// Serve, and leave a reference in a file.
    ///
    /// The file appears complete or not at all: a line with the reference of an object that cubes
    /// an octet (Peers::Power), and one with that of an object that gives back data (Peers::Data).
    /// Runs until SIGTERM. Takes -ORB options too.
    #[command(after_help = PEER_SERVER_EXAMPLES)]
    Server(PeerServerArguments),

    /// Call the server whose reference is in a file, and print what that took: one JSON object.
    ///
    /// Without --threads the times of single calls, in microseconds; with it the calls that so many
    /// threads make in a second, each on a connection of its own. Every answer is checked. Takes
    /// -ORB options too.
    #[command(after_help = PEER_CLIENT_EXAMPLES)]
    Client(PeerClientArguments),
}

#[derive(Args, Debug)]
pub(crate) struct PeerServerArguments {
    /// Where the references go.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How clients reach the server, where no -ORBListenEndpoints says it.
    #[arg(long, value_name = "SCHEME", default_value = "iiop")]
    transport: peer::Transport,

    /// How threads wait for requests: block, or spin; without it as -ORBServerWait says.
    #[arg(long, value_name = "block|spin")]
    wait: Option<peer::Waits>,
}

impl PeerServerArguments {
    pub(crate) fn with(self, config: OrbConfig) -> peer::Server {
        peer::Server {
            file: self.file,
            transport: self.transport,
            waits: self.wait,
            config,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct PeerClientArguments {
    /// Where the server has left its references.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How many calls are timed, of all threads together.
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = value_parser!(u32).range(1..=100_000_000))]
    n: u32,

    /// How many calls go before them.
    #[arg(long, value_name = "W", default_value_t = 2_000)]
    warmup: u32,

    /// Let so many threads call at once.
    #[arg(long, value_name = "T", value_parser = value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,

    /// Send data and get it back, instead of cubing: octets:SIZE, doubles:SIZE or structs:SIZE.
    #[arg(long, value_name = "KIND:SIZE", value_parser = peer::payload)]
    payload: Option<peer::Operation>,

    /// How threads wait for replies: block, or spin; without it as -ORBClientWait says.
    #[arg(long, value_name = "block|spin")]
    wait: Option<peer::Waits>,
}

impl PeerClientArguments {
    pub(crate) fn with(self, config: OrbConfig) -> peer::Client {
        peer::Client {
            file: self.file,
            calls: self.n,
            warm_up: self.warmup,
            threads: self.threads,
            operation: self.payload.unwrap_or(peer::Operation::Cube),
            waits: self.wait,
            config,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct WaitsArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = waits::Options::default().report)]
    report: PathBuf,

    /// Measure for about half a minute only, with fewer rounds and calls.
    #[arg(long)]
    quick: bool,
}

impl From<WaitsArguments> for waits::Options {
    fn from(arguments: WaitsArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            plan: match arguments.quick {
                true => waits::Plan::quick(),
                false => waits::Plan::full(),
            },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct OsArguments {
    #[command(flatten)]
    common: ExperimentArguments,
}

impl From<OsArguments> for chronorb_lab::Options<os::Plan> {
    fn from(arguments: OsArguments) -> Self {
        let plan = arguments.common.plan::<OperatingSystem>();
        arguments.common.with::<OperatingSystem>(plan)
    }
}

#[derive(Args, Debug)]
pub(crate) struct OvertakeArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = overtake::Options::default().report)]
    report: PathBuf,

    /// Measure for some seconds only: one round, and few calls of each kind.
    #[arg(long)]
    quick: bool,
}

impl From<OvertakeArguments> for overtake::Options {
    fn from(arguments: OvertakeArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            plan: match arguments.quick {
                true => overtake::Plan::quick(),
                false => overtake::Plan::full(),
            },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DemuxArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = demux::Options::default().report)]
    report: PathBuf,

    /// Measure for some seconds only, with fewer rounds and nothing of a million.
    #[arg(long)]
    quick: bool,
}

impl From<DemuxArguments> for demux::Options {
    fn from(arguments: DemuxArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            plan: match arguments.quick {
                true => demux::Plan::quick(),
                false => demux::Plan::full(),
            },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// The process of the ORB, or the path of its monitor's socket; needed where several ORBs of
    /// this user have a monitor.
    #[arg(value_name = "PID|SOCKET", value_parser = target)]
    target: Option<top::Target>,

    /// How far apart two looks at the ORB are, 100 to 60000 milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = value_parser!(u64).range(100..=60_000))]
    interval: u64,

    /// Print one table and end; the same as --count 1.
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// Print so many tables, one after another, and end.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Print JSON objects, one in a line, instead of tables.
    #[arg(long)]
    json: bool,
}

/// A number is a process, and anything else a path.
fn target(text: &str) -> Result<top::Target, String> {
    match text.parse() {
        Ok(pid) => Ok(top::Target::Process(pid)),
        Err(_) if text.contains(['/', '.']) => Ok(top::Target::Socket(text.into())),
        Err(_) => Err("neither the number of a process nor a path".to_owned()),
    }
}

impl From<TopArguments> for top::Options {
    fn from(arguments: TopArguments) -> Self {
        Self {
            target: arguments.target,
            interval: Duration::from_millis(arguments.interval),
            count: match arguments.once {
                true => Some(1),
                false => arguments.count,
            },
            json: arguments.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum IdlCommand {
    /// Check IDL files and everything that they include.
    ///
    /// Each error is shown with its file and line, a marked excerpt and a hint.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(IdlInput),

    /// Compile IDL files to Rust, each NAME.idl to NAME.rs.
    ///
    /// Files are written when all were compiled without an error; when one of them is wrong,
    /// nothing is written. A build script does the same with the crate chronorb-build.
    #[command(after_help = RUST_EXAMPLES)]
    Rust {
        #[command(flatten)]
        input: IdlInput,

        /// The directory for the Rust files; it is made if it is missing.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct IdlInput {
    /// The IDL files.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Search this directory for included files; may be given several times.
    #[arg(short = 'I', value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,

    /// Define a macro of the preprocessor; without a value it is 1.
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = definition)]
    pub(crate) define: Vec<(String, String)>,
}

/// `NAME` or `NAME=VALUE`.
fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_letter = |c: char| c == '_' || c.is_ascii_alphabetic();
    let is_identifier =
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if is_identifier {
        Ok((name.to_owned(), value.to_owned()))
    } else {
        Err(format!("{name:?} is not the name of a macro"))
    }
}

const STATUS: &str = "\
Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";

const DEMO_EXAMPLES: &str = "\
Examples:
  chronorb demo
  chronorb demo --seconds 60 --report lanes.html
  chronorb demo --json | jq .with_priorities.high.p99_us

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the demonstration runs all the same and says that its figures are not real-time.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  chronorb doctor
  chronorb doctor --measure --seconds 60 --report machine.html
  chronorb doctor --json | jq '.findings[] | select(.verdict == \"missing\")'

Exit status: 0 also when something was found, whatever it is; 1 only when it
could not run.

Root sees more: debugfs and some files are closed to others. Rights are those of
this process: run it as the user, and in the container, that they are asked for.";

const DEMUX_EXAMPLES: &str = "\
Examples:
  chronorb lab demux
  chronorb lab demux --quick --report quick.html
  chronorb lab demux --json | jq '.rows[] | select(.stage == \"total\" and .entries == 1000)'

Other programs that run at the same time change the figures. A claim that was missed is said, and
is no failure of the command.";

const TOP_EXAMPLES: &str = "\
Examples:
  chronorb top
  chronorb top 4711 --interval 250
  chronorb top /run/trading/orb.sock --once
  chronorb top --json --count 60 | jq '.lanes[] | [.name, .requests_per_s, .p99_us]'

Columns: connections, threads busy of all, requests in the queue, then by the second: requests served
by the lane's threads, requests refused, requests served by threads borrowed from lower lanes; then
how long requests took in the interval: half of them, 99 of 100, and all stayed below it.
In the live view q ends it, and t hides the threads.";

const OS_EXAMPLES: &str = "\
Examples:
  chronorb lab os
  chronorb lab os --short --report os.html
  chronorb lab os --json | jq '.rows[] | select(.part == \"context-switch\")'
  chronorb lab os --json | jq '.claims[] | [.verdict, .paper, .claim, .measured]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO), and the right to
lock memory. Scheduling classes that are refused are left out, and said to be. The settings of the
machine are never changed. A claim that was missed is said, and is no failure of the command.";

const OVERTAKE_EXAMPLES: &str = "\
Examples:
  chronorb lab overtake
  chronorb lab overtake --quick --report quick.html
  chronorb lab overtake --json | jq '.claims[] | [.verdict, .ratio, .claim]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the experiment runs all the same and says that its figures are not real-time. A claim that was
missed is said, and is no failure of the command.";

const INVERSION_EXAMPLES: &str = "\
Examples:
  chronorb lab inversion
  chronorb lab inversion --short --report short.html
  chronorb lab inversion --mode loaded --architecture real-time --architecture omniorb --clients 1,50
  chronorb lab inversion --mode paper --namespaces
  chronorb lab inversion --json | jq '.rows[] | select(.class == \"high\") | [.architecture, .low_clients, .mean_us]'

Other programs that run at the same time change the figures. The threads need the right to real-time
priorities (CAP_SYS_NICE or RLIMIT_RTPRIO); without it the figures are said not to be real-time. For
omniORB install g++, omniidl and libomniorb4-dev. What is not reproduced is said, with what is known
of why, and is no failure of the command.";

const LATENCY_EXAMPLES: &str = "\
Examples:
  chronorb lab latency
  chronorb lab latency --quick --report quick.html
  chronorb lab latency --wait block --fifo --connections 0
  chronorb lab latency --json | jq '.ratios[] | [.system, .placement, .p50_by_raw]'

Other programs that run at the same time change the figures. For omniORB install g++, omniidl and
libomniorb4-dev: its programs are compiled once and kept in ~/.cache/chronorb. A claim that was
missed is said, and is no failure of the command.";

const THREAD_POOLS_EXAMPLES: &str = "\
Examples:
  chronorb lab thread-pools
  chronorb lab thread-pools --short --report short.html
  chronorb lab thread-pools --short --threads 1,4-6 --requests 20000 --place together
  chronorb lab thread-pools --json | jq '.rows[] | [.threads, .work_us, .improvement_percent]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it other
programs change the figures, and part of what is promised cannot be told. A claim that is not
reproduced is said, and is no failure of the command.";

const THROUGHPUT_EXAMPLES: &str = "\
Examples:
  chronorb lab throughput
  chronorb lab throughput --quick --report quick.html
  chronorb lab throughput --json | jq '.claims[] | [.verdict, .ratio, .claim]'

Other programs that run at the same time change the figures. For omniORB install g++, omniidl and
libomniorb4-dev: its programs are compiled once and kept in ~/.cache/chronorb. A claim that was
missed is said, and is no failure of the command.";

const PEER_SERVER_EXAMPLES: &str = "\
Examples:
  chronorb lab peer server /tmp/endpoint
  chronorb lab peer server /tmp/endpoint --wait spin
  chronorb lab peer server /tmp/endpoint -ORBThreads 1 -ORBThreadpoolStrategy half-sync";

const PEER_CLIENT_EXAMPLES: &str = "\
Examples:
  chronorb lab peer client /tmp/endpoint --n 20000 --warmup 2000
  chronorb lab peer client /tmp/endpoint --threads 16
  chronorb lab peer client /tmp/endpoint --payload octets:1MiB --n 1000 --warmup 100";

const WAITS_EXAMPLES: &str = "\
Examples:
  chronorb lab waits
  chronorb lab waits --quick --report quick.html
  chronorb lab waits --json | jq '.claims[] | [.verdict, .ratio, .claim]'

Other programs that run at the same time change the figures. A claim that was missed is said, and
is no failure of the command: those of io_uring are questions. Where the system refuses io_uring
or real-time priorities, that is said too.";

const WHITEBOX_EXAMPLES: &str = "\
Examples:
  chronorb lab whitebox
  chronorb lab whitebox --check --report budget.html
  chronorb lab whitebox --json | jq '.rows[] | [.case, .side, .allocations, .system_calls]'

System calls are traced (ptrace). Where that is refused they are not counted, and said not to be.
A budget that is broken is said (MISSED); it is a failure of the command, with exit status 1, only
with --check.";

const CHECK_EXAMPLES: &str = "\
Examples:
  chronorb idl check quoter.idl
  chronorb idl check -I idl -D WITH_HISTORY -D LIMIT=64 market.idl broker.idl";

const RUST_EXAMPLES: &str = "\
Examples:
  chronorb idl rust quoter.idl --out src/generated
  chronorb idl rust -I idl -D LIMIT=64 market.idl broker.idl --out generated";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn macros_are_defined_with_and_without_a_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(definition("DEBUG"), pair("DEBUG", "1"));
        assert_eq!(definition("_N2=a=b"), pair("_N2", "a=b"));
        assert_eq!(definition("EMPTY="), pair("EMPTY", ""));
        for wrong in ["", "=1", "2N", "A-B=1"] {
            assert!(definition(wrong).is_err(), "{wrong}");
        }
    }
}
