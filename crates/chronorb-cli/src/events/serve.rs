//! `chronorb events serve`: an event channel until a signal.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chronorb_orb::outbox::OutboxLimits;
use chronorb_orb::rtcorba::Priority;
use chronorb_orb::{Orb, OrbConfig, SystemException};
use chronorb_rtec::{
    AdmissionPolicy, ChannelLimits, ChannelOptions, EventServer, EventService, LaneOptions,
    Notation, OperationNeeds, OperationSource, PeerPolicy, QueueOptions, Rules, UnpublishedPolicy,
    keep_order,
};
use chronorb_sched_service::idl::rtec_base::{DependencyInfo, DependencyTypeT};
use chronorb_sched_service::idl::rtec_scheduler::{GetError, PriorityError, Scheduler};
use clap::{Args, ValueEnum, value_parser};

use super::channel::{EventsError, NAME};
use crate::listen::{Endpoints, INACTIVE, endpoints, print_references, set_endpoints};
use crate::ns::{Binding, ServerArguments, calling_config};
use crate::quotas::{GivenLimits, QuotaArguments, QuotaOption, QuotaTable};

#[derive(Args, Debug)]
pub(crate) struct EventServerArguments {
    /// The endpoint to listen at, as iiop://10.0.0.1:2812; iiop://:2812 is all interfaces of this
    /// machine [default: a free port of iiop://127.0.0.1, if -ORBListenEndpoints names no other].
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoints)]
    listen: Vec<Endpoints>,

    /// Bind the channel to this name in a name server, in place of another object, and unbind it at
    /// the end. TAO's clients resolve EventService.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = NAME)]
    bind: Option<String>,

    #[command(flatten)]
    server: ServerArguments,

    /// Write the reference, as IOR:…, into this file, which is replaced.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,

    /// Ask this scheduling service, as IOR:, corbaloc: or corbaname:, for the operations that
    /// consumers and publications name in rt_info: execution times, periods and levels. A client
    /// with which a consumer could miss the period of its events is not admitted.
    #[arg(long, value_name = "REF")]
    scheduler: Option<String>,

    /// The treatment of clients that are not admitted.
    #[arg(long, value_enum, default_value_t = AdmissionChoice::Refuse, requires = "scheduler")]
    admission: AdmissionChoice,

    #[command(flatten)]
    options: OptionArguments,
}

/// The options of a channel.
#[derive(Args, Debug)]
struct OptionArguments {
    /// The notation of subscriptions that are different in the two. The other one is recognised
    /// by the numbers of children that groups state.
    #[arg(long, value_enum, default_value_t = NotationChoice::Prefix)]
    notation: NotationChoice,

    /// The rules of groups.
    #[arg(long, value_enum, default_value_t = RuleChoice::Corrected)]
    rules: RuleChoice,

    /// Add a lane with this CORBA priority, 0 to 32767, the most urgent lane first. Consumers name
    /// their lane by its number, from 1, in rt_info; others belong to the last one. Without lanes
    /// the thread that receives an event pushes it.
    #[arg(long = "lane", value_name = "PRIORITY", value_parser = priority)]
    lanes: Vec<Priority>,

    /// Let so many events wait for a consumer that is too slow, and then drop the oldest, unless it
    /// states its own queue. Without it a push waits for the consumer's connection, up to
    /// --push-timeout.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    outbox: Option<u32>,

    /// The most events that wait for a consumer of a lane, without --outbox. Then the oldest is
    /// dropped. A consumer can state its own queue.
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = value_parser!(u32).range(1..=1_000_000))]
    queue: u32,

    /// The greatest queue that a consumer may state.
    #[arg(long, value_name = "N", default_value_t = 4096,
          value_parser = value_parser!(u32).range(0..=1_000_000))]
    max_queue: u32,

    /// The longest time for which a consumer may make suppliers wait, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = value_parser!(u64).range(0..=60_000))]
    max_block: u64,

    /// Drop events that their supplier did not publish.
    #[arg(long)]
    strict_publications: bool,

    /// Let a second connection of a consumer replace its subscription.
    #[arg(long)]
    consumer_reconnect: bool,

    /// Let a second connection of a supplier replace its publications.
    #[arg(long)]
    supplier_reconnect: bool,

    /// Call clients back that disconnect themselves.
    #[arg(long)]
    disconnect_callbacks: bool,

    /// The longest time of a push to a consumer, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = value_parser!(u64).range(1..=3_600_000))]
    push_timeout: u64,

    /// The failures after which a client is disconnected, since it answered a check.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = value_parser!(u32).range(1..))]
    failures: u32,

    /// The seconds between two checks of idle clients; 0 for none.
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = value_parser!(u64).range(0..=86_400))]
    check_period: u64,

    /// Let consumers be groups of objects, or objects that are reached by datagrams. Events to them
    /// can reach hosts that have not asked for them.
    #[arg(long)]
    datagram_consumers: bool,

    /// Refuse clients that want to destroy the channel.
    #[arg(long)]
    no_destroy: bool,

    #[command(flatten)]
    limits: LimitArguments,
}

/// The limits of what clients can make the channel keep.
#[derive(Args, Debug)]
struct LimitArguments {
    #[command(flatten)]
    quotas: QuotaArguments<ChannelQuotas, 9>,

    /// The greatest number of nodes that the events of one push are compared with. Beyond it the
    /// rest of its events are lost and counted.
    #[arg(long, value_name = "N", default_value_t = 16_000_000)]
    max_push_work: u64,

    /// The octets of the events that wait for one consumer.
    #[arg(long, value_name = "OCTETS", default_value_t = 32 << 20)]
    max_waiting_per_consumer: u64,
}

#[derive(Debug)]
struct ChannelQuotas;

impl QuotaTable<9> for ChannelQuotas {
    const SHARER: &'static str = "client";
    const QUOTAS: [QuotaOption; 9] = [
        QuotaOption::new(
            "consumers",
            8192,
            "The greatest number of consumers, connected or not",
        ),
        QuotaOption::new(
            "suppliers",
            8192,
            "The greatest number of suppliers, connected or not",
        ),
        QuotaOption::new("observers", 16, "The greatest number of observers").within(0..=1024),
        QuotaOption::new(
            "publications",
            1 << 16,
            "The greatest number of publications of all suppliers",
        ),
        QuotaOption::new(
            "streams",
            4096,
            "With --scheduler, the greatest number of streams of events: each is a publication \
             with a period, or a timer, of which a consumer gets the events",
        )
        .within(0..=1 << 20),
        QuotaOption::new(
            "periodic-publications",
            8192,
            "With --scheduler, the greatest number of publications with periods",
        )
        .within(0..=1 << 20),
        QuotaOption::new(
            "nodes",
            1 << 16,
            "The greatest number of nodes (leaves, masks, groups, timers) of all subscriptions",
        ),
        QuotaOption::new(
            "firings",
            20_000,
            "The greatest number of times that the timers of all subscriptions fire in a second",
        ),
        QuotaOption::new(
            "waiting",
            256 << 20,
            "The most octets of the events that wait for consumers. Beyond them events are lost \
             and counted",
        )
        .octets(),
    ];
}

impl LimitArguments {
    fn limits(&self) -> ChannelLimits {
        let [
            consumers,
            suppliers,
            observers,
            all_publications,
            streams,
            periodic_publications,
            nodes,
            firings,
            octets,
        ] = self.quotas.limits().map(GivenLimits::or_half);
        ChannelLimits {
            consumers,
            suppliers,
            observers,
            all_publications,
            streams,
            periodic_publications,
            nodes,
            firings,
            octets,
            consumer_octets: self.max_waiting_per_consumer,
            push_work: self.max_push_work,
            ..ChannelLimits::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum NotationChoice {
    /// A group states its number of children, and groups nest.
    Prefix,
    /// A group ends where the next begins.
    Basic,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RuleChoice {
    /// Groups do not starve each other, and a delivery resets the group that made it.
    Corrected,
    /// As in TAO.
    Tao,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AdmissionChoice {
    /// They are refused with NO_RESOURCES.
    Refuse,
    /// They are connected, and reported.
    Report,
}

/// The operations of a scheduling service.
struct RemoteOperations(Scheduler);

impl OperationSource for RemoteOperations {
    fn operation(&self, handle: i32) -> Result<Option<OperationNeeds>, SystemException> {
        let info = match self.0.get(handle) {
            Ok(info) => info,
            Err(GetError::System(exception)) => return Err(exception),
            Err(_) => return Ok(None),
        };
        let place = match self.0.priority(handle) {
            Ok((_, subpriority, level)) => Some((subpriority, level)),
            Err(PriorityError::System(exception)) => return Err(exception),
            // There is no schedule yet.
            Err(_) => None,
        };
        let units = |units: u64| Duration::from_nanos(units.saturating_mul(100));
        // Without threads, the period of an operation with one-way callers is theirs.
        let is_one_way = |one: &DependencyInfo| one.dependency_type == DependencyTypeT::OneWayCall;
        let is_called = info.threads == 0 && info.dependencies.iter().any(is_one_way);
        let period = u64::try_from(info.period).unwrap_or(0);
        Ok(Some(OperationNeeds {
            cost: units(info.worst_case_execution_time),
            period: (period > 0).then(|| units(period)),
            is_called,
            lane: place.and_then(|(_, level)| usize::try_from(level).ok()),
            subpriority: place.map_or(0, |(subpriority, _)| subpriority),
        }))
    }
}

/// Finds a scheduling service.
fn scheduler(orb: &Orb, reference: &str) -> Result<Scheduler, EventsError> {
    let object = orb.string_to_object(reference)?;
    let scheduler = Scheduler::narrow(&object).map_err(EventsError::Scheduler)?;
    scheduler.ok_or(EventsError::NotScheduler)
}

impl OptionArguments {
    fn lane(&self, priority: Priority) -> LaneOptions {
        LaneOptions {
            priority: Some(priority),
            queue: QueueOptions {
                capacity: self.queue as usize,
                ..QueueOptions::default()
            },
        }
    }

    fn options(&self) -> ChannelOptions {
        ChannelOptions {
            notation: match self.notation {
                NotationChoice::Prefix => Notation::Prefix,
                NotationChoice::Basic => Notation::Basic,
            },
            rules: match self.rules {
                RuleChoice::Corrected => Rules::Corrected,
                RuleChoice::Tao => Rules::Tao,
            },
            unpublished: if self.strict_publications {
                UnpublishedPolicy::Dropped
            } else {
                UnpublishedPolicy::Filtered
            },
            consumer_reconnect: self.consumer_reconnect,
            supplier_reconnect: self.supplier_reconnect,
            disconnect_callbacks: self.disconnect_callbacks,
            lanes: self.lanes.iter().map(|lane| self.lane(*lane)).collect(),
            outboxes: self.outbox.map(|requests| OutboxLimits {
                requests: requests as usize,
                ..OutboxLimits::default()
            }),
            peers: PeerPolicy {
                push_timeout: Duration::from_millis(self.push_timeout),
                failures: self.failures,
                check_period: match self.check_period {
                    0 => None,
                    seconds => Some(Duration::from_secs(seconds)),
                },
                ..PeerPolicy::default()
            },
            datagram_consumers: self.datagram_consumers,
            clients_destroy: !self.no_destroy,
            limits: ChannelLimits {
                queue: self.max_queue as usize,
                block: Duration::from_millis(self.max_block),
                ..self.limits.limits()
            },
        }
    }
}

fn priority(text: &str) -> Result<Priority, String> {
    let number = text.parse().ok().and_then(Priority::new);
    number.ok_or_else(|| "a priority is a number from 0 to 32767".to_owned())
}

/// Serves until a signal, or until the channel is destroyed.
pub(super) fn run(
    arguments: EventServerArguments,
    mut config: OrbConfig,
) -> Result<(), EventsError> {
    let calling = calling_config(&config);
    set_endpoints(&mut config, arguments.listen, LOOPBACK);
    keep_order(&mut config);
    let orb = Orb::with_config(config)?;
    orb.catch_signals()?;
    let poa = orb.root_poa()?;
    let mut service = EventServer::new().options(arguments.options.options());
    if let Some(reference) = &arguments.scheduler {
        let policy = match arguments.admission {
            AdmissionChoice::Refuse => AdmissionPolicy::Refuse,
            AdmissionChoice::Report => AdmissionPolicy::Report,
        };
        service = service.admission(RemoteOperations(scheduler(&orb, reference)?), policy);
    }
    let service = service.serve_in(&poa);
    let service =
        service.map_err(|error| EventsError::Serve(error, orb.last_failure().map(Box::new)))?;
    poa.manager().activate().map_err(|_| INACTIVE)?;
    let channel = service.channel();
    if let Some(file) = arguments.ior_file {
        let written = chronorb_rt::write_file(&file, format!("{}\n", channel.ior()).as_bytes());
        written.map_err(|source| EventsError::File { file, source })?;
    }
    let binding = match arguments.bind {
        Some(name) => {
            let bound = Binding::make(name, &arguments.server, calling, channel);
            Some(bound.map_err(EventsError::Bind)?)
        }
        None => None,
    };
    print_references(channel.ior(), NAME)?;
    orb.notify_ready()?;
    let service = Arc::new(service);
    let ends = thread::scope(|scope| {
        let watched = (service.clone(), orb.clone());
        scope.spawn(move || shut_down_when_destroyed(&watched.0, &watched.1));
        orb.run_until_signal()
    });
    ends?;
    let removed = binding.map_or(Ok(()), Binding::remove);
    removed.map_err(EventsError::Unbind)
}

/// Shuts the ORB down after the reply to the client that destroys the channel.
fn shut_down_when_destroyed(service: &EventService, orb: &Orb) {
    while !orb.is_shut_down() {
        if service.wait_until_destroyed(WATCH_PERIOD) {
            // It fails only if a signal has shut it down.
            let _ = orb.shutdown(true);
        }
    }
}

/// The time after which the end of the ORB is noticed.
const WATCH_PERIOD: Duration = Duration::from_millis(200);
/// The endpoint that only programs on this machine reach.
const LOOPBACK: &str = "iiop://127.0.0.1:0";

pub(super) const EXAMPLES: &str = "\
Examples:
  chronorb events serve
  chronorb events serve --bind --ns corbaloc::names.example:2809/NameService
  chronorb events serve --listen iiop://:2812 --rules tao --consumer-reconnect
  chronorb events serve --lane 20000 --lane 10000 --outbox 64
  chronorb events serve --lane 20000 --lane 10000 --scheduler REF
  chronorb events serve --ior-file channel.ior -ORBServerTransportRule '10.0.0.0/24 tcp'

Clients reach the channel by corbaloc:iiop:HOST:PORT/EventService.

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        limits: LimitArguments,
    }

    #[test]
    fn the_default_limits_are_those_of_the_service() {
        let program = Program::parse_from(["program"]);
        assert_eq!(program.limits.limits(), ChannelLimits::default());
    }
}
