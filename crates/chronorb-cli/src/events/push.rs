//! `chronorb events push`: events from the command line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_orb::rtcorba::{ClientPolicy, SetOverride, SyncScope};
use chronorb_orb::{Any, OrbConfig, SystemException};
use chronorb_rt::{Monotonic, sleep_until};
use chronorb_rtec::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    ConnectPushSupplierError, ProxyPushConsumer, Publication, SupplierQOS,
};
use chronorb_rtec::idl::rtec_event_comm::{Event, EventHeader, RtecEventData};
use clap::{Args, value_parser};

use super::channel::{ChannelArguments, EventsError, RemoteChannel};

#[derive(Args, Debug)]
pub(crate) struct PushArguments {
    #[command(flatten)]
    channel: ChannelArguments,

    /// The source of the events; 0 passes every filter of sources.
    #[arg(long, value_name = "N", default_value_t = 1)]
    source: i32,

    /// The type of the events. Types from 1 to 15 are reserved.
    #[arg(long = "type", value_name = "N")]
    event_type: i32,

    /// The number of channels that the events may be forwarded to.
    #[arg(long, value_name = "N", default_value_t = 1)]
    ttl: i32,

    /// The handle of the supplier's operation in the scheduling service of the channel.
    #[arg(long, value_name = "N", default_value_t = 0)]
    rt_info: i32,

    /// The payload, as text.
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "file")]
    payload: String,

    /// The payload, from a file.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// The number of events.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = value_parser!(u64).range(1..))]
    count: u64,

    /// The milliseconds from one event to the next; 0 for none.
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = value_parser!(u64).range(0..=86_400_000))]
    period: u64,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Pushes events.
pub(super) fn run(arguments: &PushArguments, config: OrbConfig) -> Result<(), EventsError> {
    let payload = match &arguments.file {
        None => arguments.payload.clone().into_bytes(),
        Some(file) => {
            let read = chronorb_rt::read_file_up_to(file, MAX_PAYLOAD);
            let (octets, _) = read.map_err(|source| EventsError::File {
                file: file.clone(),
                source,
            })?;
            octets
        }
    };
    let remote = RemoteChannel::connect(&arguments.channel, config)?;
    let failed = |exception| remote.failed("pushing", exception);
    let proxy = connect(&remote, arguments)?;
    // Oneway requests that are answered, so that a failure is noticed.
    let scope = [ClientPolicy::SyncScope(SyncScope::WithTarget)];
    let object = proxy.as_object();
    let object = object.with_policy_overrides(&scope, SetOverride::Add);
    let answered = ProxyPushConsumer::unchecked_narrow(&object.map_err(failed)?);
    let begin = Monotonic::now();
    let period = Duration::from_millis(arguments.period);
    for number in 0..arguments.count {
        if !period.is_zero() {
            let nanos = (period.as_nanos() as u64).saturating_mul(number);
            sleep_until(begin + Duration::from_nanos(nanos));
        }
        let event = Event {
            header: EventHeader {
                ttl: arguments.ttl,
                creation_time: Monotonic::now().as_nanos() / 100,
                ..header(arguments)
            },
            data: data(&payload),
        };
        answered.push(&[event]).map_err(failed)?;
    }
    proxy.disconnect_push_consumer().map_err(failed)?;
    let count = arguments.count;
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(
            out,
            "{}",
            serde_json::json!({ "version": 1, "pushed": count })
        )?;
    } else {
        writeln!(out, "{count} pushed")?;
    }
    Ok(out.flush()?)
}

fn header(arguments: &PushArguments) -> EventHeader {
    EventHeader {
        r#type: arguments.event_type,
        source: arguments.source,
        ..EventHeader::default()
    }
}

fn data(payload: &[u8]) -> RtecEventData<'_> {
    RtecEventData {
        pad1: 0,
        payload,
        any_value: Any::default(),
    }
}

/// Connects a supplier that publishes the events of the command line.
fn connect(
    remote: &RemoteChannel,
    arguments: &PushArguments,
) -> Result<ProxyPushConsumer, EventsError> {
    let failed = |exception: SystemException| remote.failed("connecting a supplier", exception);
    let admin = remote.channel.for_suppliers().map_err(failed)?;
    let admin = admin.ok_or(EventsError::Nil)?;
    let proxy = admin.obtain_push_consumer().map_err(failed)?;
    let proxy = proxy.ok_or(EventsError::Nil)?;
    let publication = Publication {
        event: Event {
            header: header(arguments),
            data: data(&[]),
        },
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls: 1,
            rt_info: arguments.rt_info,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    };
    let qos = SupplierQOS {
        publications: &[publication],
        is_gateway: false,
    };
    let connected = proxy.connect_push_supplier(None, &qos);
    connected.map_err(|error| match error {
        ConnectPushSupplierError::System(exception) => failed(exception),
        error @ ConnectPushSupplierError::AlreadyConnected(_) => {
            EventsError::Refused(error.to_string())
        }
    })?;
    Ok(proxy)
}

pub(super) const EXAMPLES: &str = "\
Examples:
  chronorb events push --source 10 --type 20 --payload 'hello'
  chronorb events push --type 20 --count 100 --period 50
  chronorb events push --channel channel.ior --type 20 --file frame.bin

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";

/// The longest payload that is read from a file.
const MAX_PAYLOAD: usize = 64 << 20;
