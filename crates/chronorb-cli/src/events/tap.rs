//! `chronorb events tap`: the events of a channel, as lines.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use chronorb_events::{EVENTS_LOST, Entry, Filter, fits_basic, write_entries};
use chronorb_orb::{Any, Call, Orb, OrbConfig, RealTimeMode, SystemException};
use chronorb_rt::{Deadline, Gate, PiMutex, ThreadBuilder, is_hidden};
use chronorb_rtec::idl::chronorb_events::{
    OverflowPolicy, QueueQOS, QueuedProxyPushSupplier, SetQueueError,
};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConnectPushConsumerError, ConsumerQOS, Dependency, ProxyPushSupplier,
};
use chronorb_rtec::idl::rtec_event_comm::{
    Event, EventBuf, EventHeader, EventSet, PushConsumer, PushConsumerOwnedServant,
    PushConsumerSkeleton, RtecEventData,
};
use chronorb_rtec::{ChannelChange, ChannelCheck, keep_order};
use clap::{Args, ValueEnum, value_parser};
use serde_json::{Value, json};

use super::channel::{ChannelArguments, EventsError, RemoteChannel};
use super::serve::NotationChoice;
use crate::listen::{Endpoints, INACTIVE, endpoints, set_endpoints};
use crate::ns::calling_config;
use crate::output;

#[derive(Args, Debug)]
pub(crate) struct TapArguments {
    #[command(flatten)]
    channel: ChannelArguments,

    /// The subscription. 20 is a type, 10:20 a source and a type, * everything; | or, & and, ! not,
    /// + a group of which one set is made; every 1s, after 1s and silence 1s are timers.
    #[arg(long, value_name = "FILTER", default_value = "*")]
    filter: Filter,

    /// The notation that the channel reads, for a filter of nested groups. Channels of chronorb
    /// read both; without this option the command warns if the channel is another one.
    #[arg(long, value_enum)]
    notation: Option<NotationChoice>,

    /// The number of the lane of the channel that pushes to this consumer, from 1; 0 is the last.
    #[arg(long, value_name = "N", default_value_t = 0)]
    lane: i32,

    /// The handle of this consumer's operation in the scheduling service of the channel.
    #[arg(long, value_name = "N", conflicts_with = "lane")]
    rt_info: Option<i32>,

    /// Let so many events wait in the channel for this consumer, and print how many it loses.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    queue: Option<u32>,

    /// The policy for events that find the queue full.
    #[arg(long, value_enum, default_value_t = OverflowChoice::Oldest, requires = "queue")]
    overflow: OverflowChoice,

    /// The longest wait of a supplier with --overflow block, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "queue")]
    block: u64,

    /// Subscribe again when the channel has died, and say so on standard error. Without this the
    /// command ends when the channel does not answer twice, or has forgotten it.
    #[arg(long)]
    reconnect: bool,

    /// End after so many sets of events.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Print a JSON object for each set.
    #[arg(long)]
    json: bool,

    /// The endpoint at which the channel reaches this consumer; for a channel on another machine
    /// one of an address of this one [default: a free port of iiop://127.0.0.1].
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoints)]
    listen: Vec<Endpoints>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverflowChoice {
    /// The oldest event in the queue is lost.
    Oldest,
    /// The new event is lost.
    Newest,
    /// The event of the same source and type is replaced, else the oldest is lost.
    Latest,
    /// The supplier waits for the time of --block, and then the new event is lost.
    Block,
    /// This consumer is disconnected.
    Disconnect,
}

impl TapArguments {
    /// The queue that the consumer states.
    fn queue(&self) -> Option<QueueQOS> {
        let overflow = match self.overflow {
            OverflowChoice::Oldest => OverflowPolicy::DropOldest,
            OverflowChoice::Newest => OverflowPolicy::DropNewest,
            OverflowChoice::Latest => OverflowPolicy::LatestByKey,
            OverflowChoice::Block => OverflowPolicy::Block,
            OverflowChoice::Disconnect => OverflowPolicy::Disconnect,
        };
        Some(QueueQOS {
            capacity: self.queue?,
            overflow,
            block: self.block.saturating_mul(10_000),
            tells_losses: true,
        })
    }
}

/// The end of the events, or a set of them.
enum Message {
    Set(Vec<EventBuf>),
    /// The channel has disconnected the consumer.
    Disconnected,
    /// The channel has died.
    Lost(String),
    /// A signal has ended the command.
    Ended,
}

/// The consumer. A thread of its own prints, because printing can wait.
struct Tap {
    messages: SyncSender<Message>,
    /// The sets that the printer was too slow for.
    lost: Arc<AtomicU64>,
}

impl PushConsumerOwnedServant for Tap {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        let set = data.iter().map(Event::to_owned).collect();
        if self.messages.try_send(Message::Set(set)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        // The printer may have ended.
        let _ = self.messages.send(Message::Disconnected);
        Ok(())
    }
}

/// Prints events until the end.
pub(super) fn run(mut arguments: TapArguments, mut config: OrbConfig) -> Result<(), EventsError> {
    if arguments.notation == Some(NotationChoice::Basic) && !fits_basic(&arguments.filter) {
        return Err(EventsError::NestedGroups);
    }
    arguments.channel.read_input()?;
    let calling = calling_config(&config);
    let remote = RemoteChannel::connect(&arguments.channel, calling.clone())?;
    let queue = arguments.queue();
    set_endpoints(&mut config, arguments.listen, LOOPBACK);
    keep_order(&mut config);
    if config.real_time == RealTimeMode::Preferred {
        // Printing needs no right to priorities.
        config.real_time = RealTimeMode::Off;
    }
    let orb = Orb::with_config(config)?;
    orb.catch_signals()?;
    let (messages, received) = sync_channel(QUEUE);
    let lost = Arc::new(AtomicU64::new(0));
    let tap = Tap {
        messages: messages.clone(),
        lost: lost.clone(),
    };
    let poa = orb.root_poa()?;
    let object = poa
        .serve(PushConsumerSkeleton::new(tap))
        .map_err(|_| INACTIVE)?;
    poa.manager().activate().map_err(|_| INACTIVE)?;
    let consumer = PushConsumer::unchecked_narrow(&object);
    let request = Request {
        consumer,
        filter: arguments.filter,
        rt_info: arguments.rt_info.unwrap_or(arguments.lane),
        queue,
    };
    let proxy = request.connect(&remote)?;
    if arguments.notation.is_none() && !fits_basic(&request.filter) && !is_of_chronorb(&proxy) {
        output::report(UNKNOWN_NOTATION);
    }
    let connection = Arc::new(PiMutex::new(Some(TapConnection {
        remote: Arc::new(remote),
        proxy,
    })));
    let watch = Watch {
        connection: connection.clone(),
        request,
        reconnects: arguments.reconnect.then_some((arguments.channel, calling)),
        messages: messages.clone(),
    };
    let ended_watch = Arc::new(Gate::new(RUNNING));
    let gate = ended_watch.clone();
    // It is not joined, because a call of a silent channel may take its time.
    ThreadBuilder::new("events.watch").spawn(move || watch.run(&gate))?;
    let printer = Printer {
        received,
        lost,
        told_lost: 0,
        count: arguments.count,
        json: arguments.json,
        goes_on: arguments.reconnect,
    };
    let ended = orb.clone();
    let printing = ThreadBuilder::new("events.tap").spawn(move || {
        let outcome = printer.run();
        // A signal may have shut it down.
        let _ = ended.shutdown(true);
        outcome
    })?;
    orb.run_until_signal()?;
    // The printer has ended by itself, or ends now.
    let _ = messages.try_send(Message::Ended);
    drop(messages);
    let outcome = printing.join().unwrap_or(Ok(()));
    ended_watch.set(ENDED);
    let last = connection.lock().take();
    if let Some(last) = last
        && !matches!(
            outcome,
            Err(EventsError::Disconnected | EventsError::Lost(_))
        )
    {
        // A channel that has gone meanwhile has no consumer any more.
        let _ = last.proxy.disconnect_push_supplier();
    }
    outcome
}

/// A channel, and the proxy of the consumer in it.
#[derive(Clone)]
struct TapConnection {
    remote: Arc<RemoteChannel>,
    proxy: ProxyPushSupplier,
}

/// The thread that asks the channel whether it still has the consumer.
struct Watch {
    /// Nothing after the end of the command.
    connection: Arc<PiMutex<Option<TapConnection>>>,
    request: Request,
    /// The channel to find again, and the settings of the ORB that calls it.
    reconnects: Option<(ChannelArguments, OrbConfig)>,
    messages: SyncSender<Message>,
}

impl Watch {
    fn run(&self, gate: &Gate) {
        let mut check = ChannelCheck::default();
        let mut told = String::new();
        while gate.wait_while(RUNNING, Deadline::after(PERIOD)) == RUNNING {
            let Some(TapConnection { remote, proxy }) = self.connection.lock().clone() else {
                return;
            };
            let change = check.heard(proxy.as_object().non_existent());
            let change = change.map(|change| remote.describe(&change));
            let Some((channel, config)) = &self.reconnects else {
                if let Some(change) = change {
                    // The printer may have ended.
                    let _ = self.messages.send(Message::Lost(change));
                    return;
                }
                continue;
            };
            if let Some(change) = change {
                output::report(change);
            }
            if !check.is_lost() {
                continue;
            }
            match self.subscribe(channel, config.clone()) {
                Ok(()) => {
                    output::report(ChannelChange::Subscribed);
                    (check, told) = (ChannelCheck::default(), String::new());
                    // The channel may have the consumer twice, if it was slow only.
                    let _ = proxy.disconnect_push_supplier();
                }
                Err(error) => {
                    let error = error.to_string();
                    if error != told {
                        output::report(format_args!("not subscribed yet: {error}"));
                        told = error;
                    }
                }
            }
        }
    }

    /// Subscribes again.
    fn subscribe(&self, channel: &ChannelArguments, config: OrbConfig) -> Result<(), EventsError> {
        let remote = RemoteChannel::connect(channel, config)?;
        let proxy = self.request.connect(&remote)?;
        let remote = Arc::new(remote);
        if let Some(connection) = self.connection.lock().as_mut() {
            *connection = TapConnection { remote, proxy };
        }
        Ok(())
    }
}

/// The subscription of the consumer.
struct Request {
    consumer: PushConsumer,
    filter: Filter,
    rt_info: i32,
    queue: Option<QueueQOS>,
}

impl Request {
    /// Connects the consumer. After a failure nothing is left at the channel.
    fn connect(&self, remote: &RemoteChannel) -> Result<ProxyPushSupplier, EventsError> {
        let failed = |exception: SystemException| remote.failed("connecting a consumer", exception);
        let admin = remote.channel.for_consumers().map_err(failed)?;
        let admin = admin.ok_or(EventsError::Nil)?;
        let proxy = admin.obtain_push_supplier().map_err(failed)?;
        let proxy = proxy.ok_or(EventsError::Nil)?;
        let connected = self.connect_by(remote, &proxy);
        connected.inspect_err(|_| {
            // The channel may have gone.
            let _ = proxy.disconnect_push_supplier();
        })?;
        Ok(proxy)
    }

    fn connect_by(
        &self,
        remote: &RemoteChannel,
        proxy: &ProxyPushSupplier,
    ) -> Result<(), EventsError> {
        let failed = |exception: SystemException| remote.failed("connecting a consumer", exception);
        if let Some(queue) = &self.queue {
            let queued = QueuedProxyPushSupplier::narrow(proxy.as_object()).map_err(failed)?;
            let queued = queued.ok_or(EventsError::NoQueues)?;
            queued.set_queue(queue).map_err(|error| match error {
                SetQueueError::System(exception) => failed(exception),
                error => EventsError::Refused(error.to_string()),
            })?;
        }
        let dependencies: Vec<_> = (write_entries(&self.filter).iter())
            .map(|entry| dependency(entry, self.rt_info))
            .collect();
        let qos = ConsumerQOS {
            dependencies: &dependencies,
            is_gateway: false,
        };
        // A reference of the ORB that calls, so that it is sent as it is.
        let text = self.consumer.as_object().ior().to_string();
        let consumer = remote.client.object(&text)?;
        let consumer = PushConsumer::unchecked_narrow(&consumer);
        let connected = proxy.connect_push_consumer(Some(&consumer), &qos);
        connected.map_err(|error| match error {
            ConnectPushConsumerError::System(exception) => {
                shortfall(proxy).map_or_else(|| failed(exception), EventsError::Refused)
            }
            error => EventsError::Refused(error.to_string()),
        })
    }
}

/// Whether a proxy is one of a channel of chronorb.
fn is_of_chronorb(proxy: &ProxyPushSupplier) -> bool {
    QueuedProxyPushSupplier::narrow(proxy.as_object()).is_ok_and(|queued| queued.is_some())
}

/// The time that is missing for a consumer that was not admitted.
fn shortfall(proxy: &ProxyPushSupplier) -> Option<String> {
    let queued = QueuedProxyPushSupplier::narrow(proxy.as_object()).ok()??;
    queued.shortfall().ok().filter(|text| !text.is_empty())
}

fn dependency(entry: &Entry, rt_info: i32) -> Dependency<'static> {
    let header = EventHeader {
        r#type: entry.event_type,
        source: entry.source,
        creation_time: entry.time,
        ..EventHeader::default()
    };
    let data = RtecEventData {
        pad1: 0,
        payload: &[],
        any_value: Any::default(),
    };
    Dependency {
        event: Event { header, data },
        rt_info,
    }
}

/// The thread that prints.
struct Printer {
    received: Receiver<Message>,
    lost: Arc<AtomicU64>,
    told_lost: u64,
    count: Option<u64>,
    json: bool,
    /// Whether it goes on without a channel.
    goes_on: bool,
}

impl Printer {
    fn run(mut self) -> Result<(), EventsError> {
        let mut printed = 0;
        while self.count.is_none_or(|count| printed < count) {
            match self.received.recv() {
                Ok(Message::Set(set)) => {
                    self.print(&set)?;
                    printed += 1;
                }
                Ok(Message::Disconnected) if self.goes_on => {
                    output::report_error(&EventsError::Disconnected);
                }
                Ok(Message::Disconnected) => return Err(EventsError::Disconnected),
                Ok(Message::Lost(cause)) => return Err(EventsError::Lost(cause)),
                Ok(Message::Ended) | Err(_) => break,
            }
        }
        Ok(())
    }

    fn print(&mut self, set: &[EventBuf]) -> io::Result<()> {
        let lost = self.lost.load(Ordering::Relaxed);
        let mut out = io::stdout().lock();
        if lost > self.told_lost {
            let more = lost - self.told_lost;
            self.told_lost = lost;
            if self.json {
                writeln!(out, "{}", json!({ "lost_sets": more }))?;
            } else {
                writeln!(out, "({more} sets lost, because the output is too slow)")?;
            }
        }
        if let Some(number) = lost_in_channel(set) {
            return if self.json {
                writeln!(out, "{}", json!({ "lost_events": number }))
            } else {
                writeln!(
                    out,
                    "({number} events lost, because this consumer is too slow)"
                )
            };
        }
        if self.json {
            let events: Vec<_> = set.iter().map(as_json).collect();
            writeln!(out, "{}", output::json(&json!({ "events": events }))?)?;
        } else {
            let events: Vec<_> = set.iter().map(as_text).collect();
            writeln!(out, "{}", events.join(" + "))?;
        }
        out.flush()
    }
}

/// Returns the number of events that the channel tells as lost.
fn lost_in_channel(set: &[EventBuf]) -> Option<u64> {
    let [event] = set else { return None };
    let is_loss = event.header.source == 0 && event.header.r#type == EVENTS_LOST;
    is_loss.then(|| event.data.any_value.extract().ok())?
}

/// Returns the payload as text, if it can be read.
fn readable(event: &EventBuf) -> Option<&str> {
    let text = str::from_utf8(&event.data.payload).ok()?;
    (!text.contains(is_hidden)).then_some(text)
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        // Writing to a string does not fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// Returns the type of the value, if there is one.
fn value_type(event: &EventBuf) -> Option<String> {
    let any = &event.data.any_value;
    let is_empty = *any == chronorb_orb::AnyBuf::default();
    (!is_empty).then(|| any.type_code().to_string())
}

fn as_text(event: &EventBuf) -> String {
    let mut text = format!("{}:{}", event.header.source, event.header.r#type);
    let payload = &event.data.payload;
    // Writing to a string does not fail.
    match readable(event) {
        Some("") => {}
        Some(readable) => {
            let _ = write!(text, " {readable:?}");
        }
        None => {
            let shown = &payload[..payload.len().min(SHOWN)];
            let more = if payload.len() > SHOWN { "…" } else { "" };
            let octets = payload.len();
            let _ = write!(text, " {octets} octets {}{more}", hexadecimal(shown));
        }
    }
    if let Some(value) = value_type(event) {
        let _ = write!(text, " <{value}>");
    }
    text
}

fn as_json(event: &EventBuf) -> Value {
    json!({
        "source": event.header.source,
        "type": event.header.r#type,
        "ttl": event.header.ttl,
        "creation_time": event.header.creation_time,
        "payload": hexadecimal(&event.data.payload),
        "text": readable(event),
        "value_type": value_type(event),
    })
}

/// The warning for nested groups at a channel of another make.
const UNKNOWN_NOTATION: &str = "\
warning: the channel is not chronorb's. If it reads subscriptions in the basic notation, TAO's
default, it misreads the nested groups of this filter, and events do not arrive. Use one group of
events, or state --notation prefix if it reads that (-ECFiltering prefix).";
/// The octets of a payload that are shown in a line.
const SHOWN: usize = 32;
/// The sets that wait for the printer.
const QUEUE: usize = 1024;
/// The time between two questions to the channel.
const PERIOD: Duration = Duration::from_secs(1);
const RUNNING: u32 = 0;
const ENDED: u32 = 1;
/// The endpoint that only a channel on this machine reaches.
const LOOPBACK: &str = "iiop://127.0.0.1:0";

pub(super) const EXAMPLES: &str = "\
Examples:
  chronorb events tap
  chronorb events tap --filter '10:20 + 11:20 | silence 500ms'
  chronorb events tap --channel corbaloc:iiop:10.0.0.1:2812/EventService --listen iiop://10.0.0.2:0
  chronorb events tap --queue 16 --overflow latest
  chronorb events tap --reconnect
  chronorb events tap --count 100 --json | jq -c '.events[] | [.source, .type]'

Exit status: 0 when all went well, 1 when something failed, or the channel has disconnected the
command or died, 2 when the command line is wrong.";
