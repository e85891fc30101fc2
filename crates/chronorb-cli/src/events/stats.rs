//! `chronorb events stats`: the state of a channel.

use std::fmt::Write as _;

use chronorb_orb::OrbConfig;
use chronorb_rt::visible;
use chronorb_rtec::all_statistics;
use chronorb_rtec::idl::chronorb_events::{ChannelStatisticsBuf, MonitoredChannel};
use clap::Args;
use serde_json::json;

use super::channel::{ChannelArguments, EventsError, RemoteChannel};
use crate::output::{print, print_json};

#[derive(Args, Debug)]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    channel: ChannelArguments,

    /// The greatest number of clients to ask for.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    max: usize,

    /// Print one JSON object instead of the tables.
    #[arg(long)]
    json: bool,
}

/// Shows the state of a channel.
pub(super) fn run(arguments: &StatsArguments, config: OrbConfig) -> Result<(), EventsError> {
    let remote = RemoteChannel::connect(&arguments.channel, config)?;
    let failed = |exception| remote.failed("asking for the statistics", exception);
    let channel = MonitoredChannel::narrow(remote.channel.as_object()).map_err(failed)?;
    let channel = channel.ok_or(EventsError::NotMonitored)?;
    let statistics = all_statistics(&channel, arguments.max).map_err(failed)?;
    if arguments.json {
        print_json(&as_json(&statistics))?;
    } else {
        print(&as_text(&statistics))?;
    }
    Ok(())
}

/// The number of units of the channel's times in a second.
const UNITS: f64 = 1e7;

fn as_json(statistics: &ChannelStatisticsBuf) -> serde_json::Value {
    let consumer = |it: &chronorb_rtec::idl::chronorb_events::ConsumerStatisticsBuf| {
        json!({
            "number": it.number,
            "subscription": it.subscription,
            "answered": it.has_answered,
            "suspended": it.is_suspended,
            "gateway": it.is_gateway,
            "sets": it.sets,
            "events": it.events,
            "lost": it.lost,
            "queued": it.queued,
            "pauses": it.pauses,
            "failures": it.failures,
            "last_error": it.last_error,
        })
    };
    let supplier = |it: &chronorb_rtec::idl::chronorb_events::SupplierStatistics| {
        json!({
            "number": it.number,
            "connected": it.is_connected,
            "gateway": it.is_gateway,
            "events": it.events,
            "unpublished": it.unpublished,
        })
    };
    json!({
        "version": 1,
        "age_s": statistics.age as f64 / UNITS,
        "received": statistics.received,
        "sets": statistics.sets,
        "delivered": statistics.delivered,
        "lost": statistics.lost,
        "evicted": statistics.evicted,
        "returned": statistics.returned,
        "observers": statistics.observers,
        "consumers": statistics.consumers.iter().map(consumer).collect::<Vec<_>>(),
        "suppliers": statistics.suppliers.iter().map(supplier).collect::<Vec<_>>(),
    })
}

fn as_text(statistics: &ChannelStatisticsBuf) -> String {
    let mut text = format!(
        "{} s: {} events received, {} delivered, {} lost; {} clients evicted, {} observers\n",
        statistics.age / UNITS as u64,
        statistics.received,
        statistics.delivered,
        statistics.lost,
        statistics.evicted,
        statistics.observers,
    );
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "\n{:>8} {:>12} {:>12} {:>8} {:>8} {:>8}  subscription",
        "consumer", "sets", "events", "lost", "queued", "failures",
    );
    for it in &statistics.consumers {
        let subscription = match it.subscription.as_str() {
            "" => "(not connected)".into(),
            subscription => visible(subscription),
        };
        let state = if it.is_suspended {
            " (suspended)"
        } else if !it.has_answered && !it.subscription.is_empty() {
            " (has not answered)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{:>8} {:>12} {:>12} {:>8} {:>8} {:>8}  {subscription}{state}",
            it.number, it.sets, it.events, it.lost, it.queued, it.failures,
        );
        if !it.last_error.is_empty() {
            let _ = writeln!(text, "{:>8} last failure: {}", "", visible(&it.last_error));
        }
    }
    let _ = writeln!(
        text,
        "\n{:>8} {:>12} {:>12}",
        "supplier", "events", "unpublished"
    );
    for it in &statistics.suppliers {
        let state = if it.is_connected {
            ""
        } else {
            "  (not connected)"
        };
        let _ = writeln!(
            text,
            "{:>8} {:>12} {:>12}{state}",
            it.number, it.events, it.unpublished,
        );
    }
    text
}

pub(super) const EXAMPLES: &str = "\
Examples:
  chronorb events stats
  chronorb events stats --channel channel.ior --json | jq '.consumers[] | select(.lost > 0)'

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";

#[cfg(test)]
mod tests {
    use chronorb_rt::is_hidden;
    use chronorb_rtec::idl::chronorb_events::ConsumerStatisticsBuf;

    use super::*;

    #[test]
    fn the_texts_of_a_channel_are_visible() {
        let hidden = "a\u{1b}[2J\n\u{9b}\u{202e}\u{200b}";
        let connected = ConsumerStatisticsBuf {
            number: 1,
            subscription: hidden.to_owned(),
            has_answered: true,
            is_suspended: false,
            is_gateway: false,
            sets: 0,
            events: 0,
            lost: 0,
            queued: 0,
            pauses: 0,
            failures: 1,
            last_error: hidden.to_owned(),
        };
        let statistics = ChannelStatisticsBuf {
            age: 0,
            received: 0,
            sets: 0,
            delivered: 0,
            lost: 0,
            evicted: 0,
            returned: 0,
            observers: 0,
            consumers: vec![connected],
            suppliers: Vec::new(),
        };
        let text = as_text(&statistics);
        assert!(!text.contains(|c| c != '\n' && is_hidden(c)), "{text:?}");
        assert_eq!(text.lines().count(), 7, "{text:?}");
    }
}
