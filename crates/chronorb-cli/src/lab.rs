//! The commands of the laboratory.

mod all_arguments;
mod attack_arguments;
mod experiment_arguments;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use chronorb_lab::all;
use chronorb_lab::compare;
use chronorb_lab::demux::Demux;
use chronorb_lab::events::{Events, EventsPart};
use chronorb_lab::failover::Failover;
use chronorb_lab::inversion::{self, Inversion, InversionPlan};
use chronorb_lab::latency::{self, Latency};
use chronorb_lab::os::OperatingSystem;
use chronorb_lab::overtake::Overtake;
use chronorb_lab::protocols::{Protocol, Protocols};
use chronorb_lab::rio::{self, RealTimeIo};
use chronorb_lab::scheduling::{Scheduling, SchedulingPart};
use chronorb_lab::thread_pools::{self, ThreadPools};
use chronorb_lab::throughput::Throughput;
use chronorb_lab::timeprobes::{self, TimeProbes};
use chronorb_lab::waits::WaitsExperiment;
use chronorb_lab::whitebox::Whitebox;
use chronorb_lab::{Experiment, bench, peer};
use chronorb_orb::OrbConfig;
use clap::{Args, Subcommand, value_parser};

use all_arguments::AllArguments;
use attack_arguments::{
    ENDURANCE_EXAMPLES, EnduranceArguments, HOSTILE_EXAMPLES, HostileArguments,
};
use experiment_arguments::ExperimentArguments;

use crate::peer_arguments::PeerCommand;
use crate::status;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run every experiment, one after the other, and write an index of the findings.
    ///
    /// Each experiment leaves its report and its figures in one directory. The index has the
    /// findings of each, and the claims of the papers beside the results here. An experiment that
    /// fails is named, and does not stop the others. With --short it takes less than a quarter of
    /// an hour.
    #[command(after_help = ALL_EXAMPLES)]
    All(AllArguments),

    /// Compare the figures of two runs of the same experiment.
    ///
    /// The runs can be of two machines, versions or days. Shows the figures of equal rows side by
    /// side with their ratios, the largest changes first; then the claims that became true or
    /// false, and the settings and machines that differ. Figures of several rounds are compared by
    /// their median.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),

    /// Measure the cost of finding the target of a request, stage by stage.
    ///
    /// Reading the header, finding the POA, the servant and the operation, and the whole way, each
    /// for 1 to 10,000 entries (servants to 1,000,000) and by every strategy: active demultiplexing
    /// and perfect hashing, dynamic hashing, binary and linear search. It also activates a million
    /// objects and creates ten thousand POAs, and measures what they take. Ends with tables, the
    /// claims about the figures with their verdicts, and a report with plots. Takes about a minute.
    #[command(after_help = DEMUX_EXAMPLES)]
    Demux(ExperimentArguments),

    /// Kill and stop the processes of a mixed load at random, and count failures.
    ///
    /// Clients call at two priorities and asynchronously, bind and resolve names, and push and take
    /// events. Servers and clients are killed (SIGKILL) or stopped (SIGSTOP, then SIGCONT) by a
    /// seeded generator. Counts answers that are wrong, calls that hang, calls that fail though
    /// nothing was disturbed, processes that end by themselves, acknowledged names that are lost,
    /// and events out of order, and shows the memory of the servers over time. Ends with tables,
    /// the aims of chronorb with their verdicts, and a report with a plot. Takes a quarter of an
    /// hour, with --short a minute.
    #[command(after_help = ENDURANCE_EXAMPLES)]
    Endurance(EnduranceArguments),

    /// Measure the event channel: priorities, fan-out, filters, losses, timers.
    ///
    /// Urgent events go through a channel alone and beside a saturated lane, with lanes and without
    /// (ev1). The instructions, allocations, locks and system calls of a push within a process are
    /// counted, by consumers (ev2) and by filters (ev3), and the channel's work for an event that
    /// many consumers take over TCP (ev4). Bursts compare what was taken and told lost with what
    /// was pushed (ev5). Clients connect and disconnect (ev6), a thousand timers run on one lane
    /// (ev7), and a consumer takes nothing (ev8). A ring of shared memory has up to a thousand
    /// cursors (ev9). Ends with tables, the claims about the figures with their verdicts, and a
    /// report with plots. Takes about three minutes, with --short half of one.
    #[command(after_help = EVENTS_EXAMPLES)]
    Events(EventsArguments),

    /// Measure calls whose server dies under load.
    ///
    /// A server is killed or stopped at a random moment while threads of a client call it, a
    /// thousand times, with each fail-over policy. Servers record what they execute, and each call
    /// must have been executed as often as its policy and its result say. Shows the time from the
    /// death to the next reply, which a backup gives, beside the bound of the heartbeats. Ends with
    /// tables, the aims of chronorb with their verdicts, and a report with a plot. Takes about four
    /// minutes, with --short some seconds.
    #[command(after_help = FAILOVER_EXAMPLES)]
    Failover(ExperimentArguments),

    /// Measure the effect of attacks on a server and on the services on their other clients.
    ///
    /// Each attack on an ORB has a server with the default settings, a legitimate client whose
    /// calls are measured before, during and after the attack, new clients that connect meanwhile,
    /// and an attacker: idle connections, half headers, requests that are never finished, replies
    /// that are never read, floods, and small messages that are deep, endless or expensive to
    /// decode. Shows the latencies and failures of calls, the memory and processor time of the
    /// server, and whether it survives. Then the services of names, events and scheduling are
    /// attacked by one client that takes all it can, by some octets and by twice as many. Ends with
    /// tables, the aims of chronorb with their verdicts, and a report with plots. Takes about ten
    /// minutes, with --short about two.
    #[command(after_help = HOSTILE_EXAMPLES)]
    Hostile(HostileArguments),

    /// Measure how the architecture of an ORB inverts priorities.
    ///
    /// One client of high priority and up to fifty of low priority call the same server, as in the
    /// paper "Alleviating Priority Inversion and Non-determinism in Real-time CORBA ORB Core
    /// Architectures": with the real-time architecture, with those of the conventional ORBs of the
    /// paper, and with omniORB where that is installed; with a processor for the server, with one
    /// for both, and with a server under more load than it can serve. Ends with tables, the claims
    /// of the paper with their verdicts, and a report with plots. Takes about twenty minutes, with
    /// --short about four, and two processors.
    #[command(after_help = INVERSION_EXAMPLES)]
    Inversion(InversionArguments),

    /// Measure the time of a call, beside raw sockets and omniORB.
    ///
    /// The same call is made in turns on raw TCP, with as many octets as the messages of chronorb
    /// have, on chronorb, and on omniORB where that is installed: blocking and spinning, with
    /// client and server on the same CPU, on two, and unpinned. Then ten thousand idle connections
    /// to a server are opened, and their cost in time and memory is measured. Ends with tables, the
    /// claims about the figures with their verdicts, and a report with plots. Takes a minute or
    /// two.
    #[command(after_help = LATENCY_EXAMPLES)]
    Latency(LatencyArguments),

    /// Measure the same ORB under different scheduling by the operating system.
    ///
    /// A client of high priority and some of low call under SCHED_OTHER, SCHED_FIFO, SCHED_RR and
    /// SCHED_DEADLINE, on an idle machine and beside threads that compute and do I/O; pinned and
    /// free, with memory locked and not. Also: the cost of real-time throttling, the cost of a
    /// context switch and their number for a request, the rest of a CPU that the ORB leaves, and
    /// four clients at four rates. Ends with tables, the papers' figures beside the measured
    /// ones, the claims with their verdicts, and a report with plots. Takes about five minutes,
    /// with --short about one, and all processors.
    #[command(after_help = OS_EXAMPLES)]
    Os(ExperimentArguments),

    /// Measure calls of high priority while all lower lanes are saturated by endless work.
    ///
    /// Runs a server for each strategy of thread pools, Leader/Followers and Half-Sync/Half-Async,
    /// and clients: one of high priority, which is measured, and others that keep the lower lanes
    /// or the high lane busy, or do nothing. Compares lanes, request buffering with full buffers,
    /// borrowing, and a pool without lanes. Ends with tables, the claims about the figures with
    /// their verdicts, and a report with plots. Takes about six minutes, and all processors.
    #[command(after_help = OVERTAKE_EXAMPLES)]
    Overtake(ExperimentArguments),

    /// Run a server or a client of a comparison that another program makes.
    #[command(subcommand)]
    Peer(PeerCommand),

    /// Measure the cost of the ORB above its transports, and the savings of GIOPlite.
    ///
    /// Every protocol runs with GIOP and with GIOPlite, beside the same octets on its bare
    /// transport: TCP, Unix-domain sockets, shared memory, UDP, TLS by rustls, multicast; and
    /// omniORB where that is installed. Calls of three sizes, messages without an answer, and
    /// several clients at a time; client and server on one CPU and on two; threads that block and
    /// threads that spin. Each system has a turn in each of many short rounds. Ends with tables,
    /// the claims about the figures with their verdicts, and a report with plots. Takes about ten
    /// minutes, with --short about one.
    #[command(after_help = PROTOCOLS_EXAMPLES)]
    Protocols(ProtocolsArguments),

    /// Measure the gain of real-time I/O: packets classified by priority, and scheduled protocol
    /// processing.
    ///
    /// Runs in a network of two hosts on this machine, with a switch that limits rates, as in the
    /// paper "The Design and Performance of an I/O Subsystem for Real-time ORB Endsystem
    /// Middleware": the cost of scheduled processing (e10), echoes beside bulk traffic that keeps
    /// the receiver busy (e11), guarantees and limits of bandwidth (e12), and calls of the ORB with
    /// and without RIO below it (e13), beside the kernel's own stack. Ends with tables, the paper's
    /// figures beside the measured ones, its claims with their verdicts, and a report with plots.
    /// Takes about a quarter of an hour, with --short two minutes, root, and two processors.
    #[command(after_help = RIO_EXAMPLES)]
    Rio(RioArguments),

    /// Compare the deadlines that calls keep with an analysis and with a simulation.
    ///
    /// Eight operations ask for more than a processor has (x1): simulated by rate-monotonic
    /// priorities, earliest deadline, least laxity and maximum urgency, and run on the lanes of a
    /// server for fixed priorities and maximum urgency. The instructions of a look-up in the
    /// run-time scheduler (x3) and of a queue of a lane (x4) are counted. The scheduling service
    /// computes many operations (x5). Segments of distributable threads, and calls within them, are
    /// timed (x8). Three task sets have their response times analysed, simulated and measured (x9).
    /// The static scheduling service is timed (x10). An operation exceeds its budget under each
    /// policy for overruns (x11). Deadlines travel over two calls, with clocks 10 ms apart (x12).
    /// One lane serves by arrival and by deadlines (x13). Six schedule files are analysed,
    /// simulated, and run as they are assigned (x14). Ends with tables, the claims about the
    /// figures with their verdicts, and a report with plots. Takes about five minutes, with --short
    /// half of that.
    #[command(after_help = SCHEDULING_EXAMPLES)]
    Scheduling(SchedulingArguments),

    /// Compare Leader/Followers and Half-Sync/Half-Async, and test the guarantees of thread pools.
    ///
    /// A client calls without a pause until the server has served 100,000 requests: by each
    /// strategy of thread pools, with one to six threads, and with five amounts of work, in three
    /// rounds. Then the guarantees of thread pools are tested: buffers, borrowing, threads on
    /// demand, priorities. Ends with tables, the paper's claims with their verdicts, and a report
    /// with plots. Takes about twenty minutes, and two processors; with --short about a minute.
    #[command(after_help = THREAD_POOLS_EXAMPLES)]
    ThreadPools(ThreadPoolsArguments),

    /// Measure calls and data per second, beside raw sockets and omniORB.
    ///
    /// One, four and sixteen clients at a time call chronorb, omniORB where that is installed, and
    /// raw servers with epoll sets. Then a MiB of octets, and 64 KiB of doubles and of small
    /// structs are sent and returned. Ends with tables, the claims about the figures with their
    /// verdicts, and a report with plots. Takes a few minutes.
    #[command(after_help = THROUGHPUT_EXAMPLES)]
    Throughput(ExperimentArguments),

    /// Measure the time of a call by layer: ORB, transport, operating system.
    ///
    /// Client and server take time stamps at each stage of a request and around each system call,
    /// by one clock, and each call is followed from the stub through the server and back. Ends with
    /// a table of the parts of a call for each transport of this program, on one CPU and on two,
    /// the cost of a stamp, the findings of the tutorial, and a report with a plot. Takes some
    /// seconds.
    #[command(after_help = TIMEPROBES_EXAMPLES)]
    Timeprobes(TimeprobesArguments),

    /// Measure the ways in which a server's thread can wait for a request.
    ///
    /// Uses raw sockets: one client calls, and one thread serves. It waits in recv, in epoll sets
    /// of every kind, by spinning, and in io_uring; on one processor and on two, with ordinary
    /// scheduling and with real-time priorities, alone and with a thousand idle connections. Ends
    /// with tables, the claims about the figures with their verdicts, and a report with plots.
    /// Takes some minutes, and two processors.
    #[command(after_help = WAITS_EXAMPLES)]
    Waits(ExperimentArguments),

    /// Count the operations inside a call: allocations, locks, system calls, and more.
    ///
    /// Makes calls of several kinds in steady state and counts, on client and server separately:
    /// heap allocations, lock operations, system calls by name, context switches, page faults, and
    /// octets copied by the ORB and by the kernel. Then does so for ten clients at a time, one of
    /// high priority and nine of low, by the architecture of client and server, and finds out how
    /// the time is spent: synchronisation, I/O, protocol, application. Ends with tables, the
    /// papers' figures beside the measured ones, the budgets with their verdicts, and a report with
    /// plots. Takes less than a minute.
    #[command(after_help = WHITEBOX_EXAMPLES)]
    Whitebox(WhiteboxArguments),
}

impl LabCommand {
    /// Runs the command. `config` has the settings of an ORB that a peer was given.
    pub(crate) fn run(self, config: OrbConfig) -> ExitCode {
        match self {
            Self::All(asked) => status(all::run(&asked.into())),
            Self::Compare(asked) => asked.run(),
            Self::Demux(asked) => asked.run::<Demux>(),
            Self::Events(asked) => asked.run(),
            Self::Failover(asked) => asked.run::<Failover>(),
            Self::Endurance(asked) => status(asked.run()),
            Self::Hostile(asked) => status(asked.run()),
            Self::Inversion(asked) => asked.run(),
            Self::Latency(asked) => asked.run(),
            Self::Os(asked) => asked.run::<OperatingSystem>(),
            Self::Overtake(asked) => asked.run::<Overtake>(),
            Self::Peer(PeerCommand::Server(server)) => status(peer::serve(server.with(config))),
            Self::Peer(PeerCommand::Client(client)) => status(peer::call(client.with(config))),
            Self::Protocols(asked) => asked.run(),
            Self::Rio(asked) => asked.run(),
            Self::Scheduling(asked) => asked.run(),
            Self::ThreadPools(asked) => asked.run(),
            Self::Throughput(asked) => asked.run::<Throughput>(),
            Self::Timeprobes(asked) => asked.run(),
            Self::Waits(asked) => asked.run::<WaitsExperiment>(),
            Self::Whitebox(asked) => asked.run(),
        }
    }
}

impl ExperimentArguments {
    /// Runs an experiment that has no other arguments.
    fn run<E: Experiment>(self) -> ExitCode {
        let plan = self.plan::<E>();
        status(chronorb_lab::run::<E>(&self.options::<E>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// The figures of one run, as --json or a report leaves them.
    #[arg(value_name = "A.json")]
    first: PathBuf,

    /// The figures of the other run, shown as ratios of the first.
    #[arg(value_name = "B.json")]
    second: PathBuf,

    /// Print the comparison as one JSON object instead of tables.
    #[arg(long)]
    json: bool,

    /// Also write a report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Compare these figures alone, by their names in the files.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    figures: Vec<String>,

    /// List the figures that changed by more than this percentage.
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = percent)]
    threshold: f64,

    /// Fail, with exit status 1, if a time or an amount of memory grew, or a rate fell, by more
    /// than this percentage.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_if_worse: Option<f64>,
}

impl CompareArguments {
    fn run(self) -> ExitCode {
        status(compare::run(&compare::CompareOptions {
            first: self.first,
            second: self.second,
            json: self.json,
            report: self.report,
            figures: self.figures,
            threshold: self.threshold,
            fail_if_worse: self.fail_if_worse,
        }))
    }
}

/// Parses a percentage: not negative, and finite.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent),
        _ => Err("no number from 0 to 1000000".to_owned()),
    }
}

#[derive(Args, Debug)]
pub(crate) struct InversionArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Run this mode: paper, short, loaded, one-cpu or saturated. May be given several times;
    /// without it loaded, one-cpu and saturated. The mode paper, with 4,000 calls of each client,
    /// takes more than an hour for each architecture.
    #[arg(long, value_name = "MODE")]
    mode: Vec<inversion::Mode>,

    /// Run this architecture alone; may be given several times. Some claims need real-time.
    #[arg(long, value_name = "NAME")]
    architecture: Vec<inversion::Architecture>,

    /// The numbers of clients of low priority, 1 to 200.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',',
          value_parser = value_parser!(u32).range(1..=200))]
    clients: Vec<u32>,

    /// The length of the calls with each number of clients, 1 to 3600 seconds; in the mode paper
    /// too.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,

    /// The placement of client and server: apart on two CPUs, together on one, or free; without it
    /// that of the mode.
    #[arg(long, value_name = "apart|together|free")]
    place: Option<inversion::CpuPlacement>,

    /// Put client and server into network namespaces of their own, with a switch between them,
    /// instead of the loopback device. Needs root.
    #[arg(long)]
    namespaces: bool,

    /// The work of a servant for each call of the modes loaded, one-cpu and saturated, in µs,
    /// instead of 100.
    #[arg(long, value_name = "US", value_parser = value_parser!(u64).range(0..=1_000_000))]
    work: Option<u64>,

    /// Let idle processors sleep. Without it a thread of the lowest urgency keeps each of them
    /// awake.
    #[arg(long)]
    let_sleep: bool,

    /// The share of a CPU that fifty low-priority clients keep busy in the modes loaded and one-cpu
    /// with the real-time architecture, in per cent, instead of 65.
    #[arg(long, value_name = "PERCENT", value_parser = value_parser!(u32).range(1..=100))]
    utilisation: Option<u32>,
}

impl InversionArguments {
    fn run(self) -> ExitCode {
        let mut plan = match (self.mode.as_slice(), self.common.short) {
            ([], true) => InversionPlan::short(),
            ([], false) => InversionPlan::full(),
            (modes, short) => InversionPlan::of(modes, short),
        };
        if !self.architecture.is_empty() {
            plan.architectures = self.architecture;
        }
        let mut clients = self.clients;
        clients.sort_unstable();
        clients.dedup();
        for series in &mut plan.series {
            if !clients.is_empty() {
                series.low_clients.clone_from(&clients);
            }
            if let Some(seconds) = self.seconds {
                series.length = Duration::from_secs(seconds);
                series.calls = 0;
            }
        }
        plan.place = self.place;
        plan.namespaces = self.namespaces;
        plan.awake = !self.let_sleep;
        plan.work = self.work.map_or(plan.work, Duration::from_micros);
        plan.utilisation_percent = self.utilisation.unwrap_or(plan.utilisation_percent);
        status(chronorb_lab::run::<Inversion>(&self.common.options::<Inversion>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct LatencyArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// The systems that take part: those that block, those that spin, or both.
    #[arg(long, value_name = "block|spin|both", default_value = "both")]
    wait: latency::WaitSet,

    /// Schedule all clients and servers with SCHED_FIFO, instead of SCHED_OTHER.
    #[arg(long)]
    fifo: bool,

    /// The number of idle connections to a server, instead of ten thousand, or with --short one
    /// thousand; 0 leaves them out.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(0..=1_000_000))]
    connections: Option<u32>,
}

impl LatencyArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<Latency>();
        plan.waits = self.wait;
        if self.fifo {
            plan.scheduled = bench::CallScheduling::Fifo;
        }
        plan.connections = self.connections.unwrap_or(plan.connections);
        status(chronorb_lab::run::<Latency>(&self.common.options::<Latency>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct ProtocolsArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Measure these protocols alone, in this order: iiop, uiop, shmiop, diop, ssliop, miop.
    #[arg(long, value_name = "SCHEME,…", value_delimiter = ',')]
    protocol: Vec<Protocol>,

    /// The systems that take part: those that block, those that spin, or both.
    #[arg(long, value_name = "block|spin|both", default_value = "both")]
    wait: latency::WaitSet,

    /// The placement of client and server: on the same CPU, across two, or unpinned; without it on
    /// the same and across. Threads spin only across two CPUs.
    #[arg(long, value_name = "PLACE,…", value_delimiter = ',')]
    place: Vec<bench::Placement>,

    /// Schedule all clients and servers with SCHED_FIFO, instead of SCHED_OTHER.
    #[arg(long)]
    fifo: bool,

    /// The number of rounds, instead of 40, or with --short 5.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,

    /// The number of small calls of each system in a round, instead of 500, or with --short 200.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(10..=100_000))]
    calls: Option<u32>,
}

impl ProtocolsArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<Protocols>();
        if !self.protocol.is_empty() {
            plan.protocols = self.protocol;
        }
        plan.waits.retain(|waits| match waits {
            bench::Waits::Block => self.wait.block,
            bench::Waits::Spin => self.wait.spin,
        });
        if !self.place.is_empty() {
            plan.places = self.place;
        }
        if self.fifo {
            plan.scheduled = bench::CallScheduling::Fifo;
        }
        plan.rounds = self.rounds.unwrap_or(plan.rounds);
        plan.calls = self.calls.unwrap_or(plan.calls);
        status(chronorb_lab::run::<Protocols>(&self.common.options::<Protocols>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct RioArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Run these experiments alone: e10, e11, e12, e13, e13-packets, stages.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<rio::RioPart>,

    /// The driver of RIO: auto, xdp or packet.
    #[arg(long, value_name = "DRIVER", default_value = "auto",
          value_parser = ["auto", "xdp", "packet"])]
    driver: String,

    /// The work of the receiver of bulk traffic for each block of 8,000 octets in e11 and
    /// e13-packets, in µs, instead of 12.
    #[arg(long, value_name = "US", value_parser = value_parser!(u64).range(0..=100_000))]
    work: Option<u64>,

    /// The rate of the switch in e11 and e13-packets, in Mbit/s, instead of 10,000.
    #[arg(long, value_name = "MBIT", value_parser = value_parser!(u64).range(1..=100_000))]
    rate: Option<u64>,

    /// The rates of calls of e13: paper, short or loaded, as in lab inversion; without it short and
    /// loaded. The mode paper, with 4,000 calls of each client, takes more than an hour.
    #[arg(long, value_name = "MODE")]
    mode: Vec<inversion::Mode>,

    /// The number of turns of each way in e10, e11 and e13-packets, instead of 10, or with --short
    /// 3.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000))]
    rounds: Option<u32>,
}

impl RioArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<RealTimeIo>();
        if !self.only.is_empty() {
            plan.parts = self.only;
        }
        if !self.mode.is_empty() {
            plan.calls = rio::RioPlan::calls_of(&self.mode, self.common.short);
        }
        plan.bulk_work = self.work.map_or(plan.bulk_work, Duration::from_micros);
        plan.bulk_rate = self.rate.map_or(plan.bulk_rate, |mbit| mbit * 1_000_000);
        plan.driver = self.driver;
        plan.rounds = self.rounds.unwrap_or(plan.rounds);
        status(chronorb_lab::run::<RealTimeIo>(&self.common.options::<RealTimeIo>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct EventsArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Run these parts alone: ev1, ev2, ev3, ev4, ev5, ev6, ev7, ev8, ev9.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<EventsPart>,
}

impl EventsArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<Events>();
        if !self.only.is_empty() {
            plan.parts = self.only;
        }
        status(chronorb_lab::run::<Events>(&self.common.options::<Events>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct SchedulingArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Run these parts alone: x1, x3, x4, x5, x8, x9, x10, x11, x12, x13, x14.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<SchedulingPart>,
}

impl SchedulingArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<Scheduling>();
        if !self.only.is_empty() {
            plan.parts = self.only;
        }
        status(chronorb_lab::run::<Scheduling>(&self.common.options::<Scheduling>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct ThreadPoolsArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// The number of timed requests for each strategy, cell and round, instead of 100,000.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(100..=10_000_000))]
    requests: Option<u32>,

    /// The numbers of threads that serve, instead of 1 to 6: numbers and ranges.
    #[arg(long, value_name = "N,N-M")]
    threads: Option<thread_pools::Threads>,

    /// The placement of client and server: on two CPUs, on the same, or left to the kernel.
    #[arg(long, value_name = "apart|together|free", default_value = "apart")]
    place: thread_pools::Place,

    /// Use the ordinary scheduling for all threads, instead of SCHED_FIFO.
    #[arg(long)]
    ordinary: bool,
}

impl ThreadPoolsArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<ThreadPools>();
        plan.requests = self.requests.unwrap_or(plan.requests);
        if let Some(thread_pools::Threads(threads)) = self.threads {
            plan.threads = threads;
        }
        plan.place = self.place;
        plan.real_time = !self.ordinary;
        status(
            chronorb_lab::run::<ThreadPools>(&self.common.options::<ThreadPools>(plan)).map(drop),
        )
    }
}

#[derive(Args, Debug)]
pub(crate) struct TimeprobesArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Measure this transport alone; may be given several times.
    #[arg(long, value_name = "SCHEME", value_parser = timeprobes::transport_named)]
    transport: Vec<&'static str>,

    /// The number of calls that are followed, 100 to 100000, instead of 10000, or with --short
    /// 1000.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(100..=100_000))]
    calls: Option<u32>,
}

impl TimeprobesArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<TimeProbes>();
        plan.calls = self.calls.unwrap_or(plan.calls);
        plan.only = self.transport;
        status(chronorb_lab::run::<TimeProbes>(&self.common.options::<TimeProbes>(plan)).map(drop))
    }
}

#[derive(Args, Debug)]
pub(crate) struct WhiteboxArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Fail if a budget is exceeded.
    #[arg(long)]
    check: bool,

    /// The number of calls of a run, 10 to 100000, instead of 1000, or with --short 300.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(10..=100_000))]
    calls: Option<u32>,

    /// The number of calls of each of ten clients, by architecture, 10 to 100000, instead of 4000
    /// or, with --short, 500.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(10..=100_000))]
    calls_of_each: Option<u32>,
}

impl WhiteboxArguments {
    fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<Whitebox>();
        plan.calls_of_each = self.calls_of_each.unwrap_or(plan.calls_of_each);
        plan.calls = self.calls.unwrap_or(plan.calls);
        match chronorb_lab::run::<Whitebox>(&self.common.options::<Whitebox>(plan)) {
            Ok(outcome) if self.check => status(outcome.check()),
            ran => status(ran.map(drop)),
        }
    }
}

const ALL_EXAMPLES: &str = "\
Examples:
  chronorb lab all --short
  chronorb lab all --out figures --skip overtake,waits
  chronorb lab all --only demux,whitebox --json | jq '.claims[] | [.paper, .verdict, .claim]'

Exit status: 1 when an experiment failed. A claim that does not hold is shown, and is no failure.
Other programs that run at the same time change the figures.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  chronorb lab compare monday.json tuesday.json
  chronorb lab compare monday.json tuesday.json --report week.html --threshold 25
  chronorb lab compare old.json new.json --figures p50_us,p99_us --fail-if-worse 20
  chronorb lab compare a.json b.json --json | jq '.figures[] | select(.worse)'

Exit status: 0 also when figures differ; 1 when a file does not hold figures, when the files are of
different experiments, or with --fail-if-worse when something is worse.";

const DEMUX_EXAMPLES: &str = "\
Examples:
  chronorb lab demux
  chronorb lab demux --short --report short.html
  chronorb lab demux --json | jq '.rows[] | select(.stage == \"total\" and .entries == 1000)'

Other programs that run at the same time change the figures. A claim that was missed is shown, and
is no failure of the command.";

const EVENTS_EXAMPLES: &str = "\
Examples:
  chronorb lab events
  chronorb lab events --short --only ev2,ev3 --report short.html
  chronorb lab events --json | jq '.claims[] | [.verdict, .claim, .measured]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the experiment runs all the same and marks its figures as not real-time. A claim that was missed is
shown, and is no failure of the command.";

const FAILOVER_EXAMPLES: &str = "\
Examples:
  chronorb lab failover
  chronorb lab failover --short --report short.html
  chronorb lab failover --json | jq '.rows[] | [.policy, .plug, .p99_us, .violations]'

Only servers that the command itself starts are killed. Other programs that run at the same time
change the times, but not the numbers of executions.";

const INVERSION_EXAMPLES: &str = "\
Examples:
  chronorb lab inversion
  chronorb lab inversion --short --report short.html
  chronorb lab inversion --mode loaded --architecture real-time --clients 1,50
  chronorb lab inversion --mode paper --namespaces
  chronorb lab inversion --json |
    jq '.rows[] | select(.class == \"high\") | [.architecture, .low_clients, .mean_us]'

Other programs that run at the same time change the figures. The threads need the right to real-time
priorities (CAP_SYS_NICE or RLIMIT_RTPRIO); without it the figures are marked as not real-time. For
omniORB install g++, omniidl and libomniorb4-dev. A claim that is not reproduced is shown, with the
known reasons, and is no failure of the command.";

const LATENCY_EXAMPLES: &str = "\
Examples:
  chronorb lab latency
  chronorb lab latency --short --report short.html
  chronorb lab latency --wait block --fifo --connections 0
  chronorb lab latency --json | jq '.ratios[] | [.system, .placement, .p50_by_raw]'

Other programs that run at the same time change the figures. For omniORB install g++, omniidl and
libomniorb4-dev: its programs are compiled once and kept in ~/.cache/chronorb. A claim that was
missed is shown, and is no failure of the command.";

const OS_EXAMPLES: &str = "\
Examples:
  chronorb lab os
  chronorb lab os --short --report os.html
  chronorb lab os --json | jq '.rows[] | select(.part == \"context-switch\")'
  chronorb lab os --json | jq '.claims[] | [.verdict, .paper, .claim, .measured]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO), and the right to
lock memory. Scheduling classes that are refused are left out and named. The settings of the
machine are never changed. A claim that was missed is shown, and is no failure of the command.";

const OVERTAKE_EXAMPLES: &str = "\
Examples:
  chronorb lab overtake
  chronorb lab overtake --short --report short.html
  chronorb lab overtake --json | jq '.claims[] | [.verdict, .ratio, .claim]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the experiment runs all the same and marks its figures as not real-time. A claim that was missed is
shown, and is no failure of the command.";

const PROTOCOLS_EXAMPLES: &str = "\
Examples:
  chronorb lab protocols
  chronorb lab protocols --short --protocol shmiop,uiop --wait spin
  chronorb lab protocols --protocol iiop --wait block --place same --fifo --rounds 200
  chronorb lab protocols --json |
    jq '.ratios[] | select(.by == \"raw\") | [.protocol, .system, .trial, .p50.ratio]'

Other programs that run at the same time change the figures. A system that cannot take part is left
out and named: omniORB needs g++, omniidl and libomniorb4-dev, and TLS the program openssl, which
makes certificates for the run. A claim that was missed is shown, and is no failure.";

const RIO_EXAMPLES: &str = "\
Examples:
  chronorb lab rio
  chronorb lab rio --short --only e11 --report short.html
  chronorb lab rio --only e10,e12 --driver packet
  chronorb lab rio --json | jq '.rows[] | select(.part == \"e12\") |
    [.flow, .phase, .least_octets_per_s, .most_octets_per_s]'

The network consists of namespaces that end with this program, however it ends; nothing else of the
machine is touched. That needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN). Other programs that run at the
same time change the figures. A claim that is not reproduced is shown, and is no failure of the
command.";

const SCHEDULING_EXAMPLES: &str = "\
Examples:
  chronorb lab scheduling
  chronorb lab scheduling --short --only x9 --report short.html
  chronorb lab scheduling --json | jq '.rows[] | select(.above > 0) |
    [.set, .task, .analysed_ns, .measured_ns, .disturbance_ns]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the experiment runs all the same, and does not judge what it measured. A claim that was missed is
shown, and is no failure of the command.";

const THREAD_POOLS_EXAMPLES: &str = "\
Examples:
  chronorb lab thread-pools
  chronorb lab thread-pools --short --report short.html
  chronorb lab thread-pools --short --threads 1,4-6 --requests 20000 --place together
  chronorb lab thread-pools --json | jq '.rows[] | [.threads, .work_us, .improvement_percent]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it other
programs change the figures, and some guarantees cannot be tested. A claim that is not reproduced is
shown, and is no failure of the command.";

const THROUGHPUT_EXAMPLES: &str = "\
Examples:
  chronorb lab throughput
  chronorb lab throughput --short --report short.html
  chronorb lab throughput --json | jq '.claims[] | [.verdict, .ratio, .claim]'

Other programs that run at the same time change the figures. For omniORB install g++, omniidl and
libomniorb4-dev: its programs are compiled once and kept in ~/.cache/chronorb. A claim that was
missed is shown, and is no failure of the command.";

const TIMEPROBES_EXAMPLES: &str = "\
Examples:
  chronorb lab timeprobes
  chronorb lab timeprobes --transport uiop --transport iiop --report where.html
  chronorb lab timeprobes --short --json |
    jq '.rows[] | select(.part == null) | [.transport, .what, .percent]'
";

const WAITS_EXAMPLES: &str = "\
Examples:
  chronorb lab waits
  chronorb lab waits --short --report short.html
  chronorb lab waits --json | jq '.claims[] | [.verdict, .ratio, .claim]'

Other programs that run at the same time change the figures. A claim that was missed is shown, and
is no failure of the command: those of io_uring are questions. Where the system refuses io_uring or
real-time priorities, the report names that too.";

const WHITEBOX_EXAMPLES: &str = "\
Examples:
  chronorb lab whitebox
  chronorb lab whitebox --check --report budget.html
  chronorb lab whitebox --json | jq '.rows[] | [.case, .side, .allocations, .system_calls]'
  chronorb lab whitebox --short --json | jq '.rows[] | select(.architecture)'

System calls are traced (ptrace). Where that is refused they are not counted, and the report names
that. A budget that is broken is shown (missed); it is a failure of the command, with exit status 1,
only with --check.";
