//! The changes between two reports of a monitor.

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_orb::monitor::{ChannelSnapshot, QueueSnapshot, Report, Strategy};
use chronorb_orb::quota::QuotaSnapshot;
use chronorb_orb::rtcorba::{LaneOrder, Priority};
use chronorb_orb::{Activity, LaneSnapshot, OperationSnapshot, ThreadSnapshot};
use chronorb_rt::Scheduling;
use serde::Serialize;

/// An ORB at the end of an interval, and its activity within. `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OrbView {
    /// The version of this form.
    pub(super) version: u32,
    pub(super) pid: u32,
    pub(super) orb_id: String,
    pub(super) command: String,
    pub(super) strategy: Strategy,
    pub(super) real_time: bool,
    pub(super) interval_ms: f64,
    pub(super) waiting_for_main_thread: usize,
    /// The incidents by the name of their cause.
    pub(super) incidents: BTreeMap<String, IncidentView>,
    pub(super) lanes: Vec<LaneView>,
    pub(super) other_threads: Vec<ThreadView>,
    /// The measured operations.
    pub(super) operations: Vec<OperationView>,
    /// The event channels.
    pub(super) channels: Vec<ChannelView>,
    /// The quotas of services.
    pub(super) quotas: Vec<QuotaSnapshot>,
}

/// An event channel. Rates are those of the interval.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ChannelView {
    pub(super) name: String,
    pub(super) received_per_s: f64,
    pub(super) delivered_per_s: f64,
    pub(super) lost_per_s: f64,
    pub(super) lost: u64,
    pub(super) evicted: u64,
    pub(super) suppliers: u64,
    pub(super) consumers: u64,
    pub(super) queues: Vec<QueueView>,
}

/// The queue of a consumer of a channel.
#[derive(Clone, Debug, Serialize)]
pub(super) struct QueueView {
    pub(super) number: u64,
    pub(super) subscription: String,
    pub(super) is_suspended: bool,
    pub(super) events_per_s: f64,
    pub(super) lost_per_s: f64,
    pub(super) lost: u64,
    pub(super) queued: u64,
}

/// A measured operation. Rates, counts and times are those of the interval, except for the maxima.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OperationView {
    /// The scoped name.
    pub(super) name: String,
    pub(super) requests_per_s: f64,
    pub(super) execution_p50_us: Option<f64>,
    pub(super) execution_p99_us: Option<f64>,
    pub(super) worst_execution_us: f64,
    pub(super) budget_us: Option<f64>,
    pub(super) overruns: u64,
    pub(super) demoted: u64,
    pub(super) skipped: u64,
    pub(super) response_p50_us: Option<f64>,
    pub(super) response_p99_us: Option<f64>,
    pub(super) worst_response_us: f64,
    pub(super) deadline_us: Option<f64>,
    /// Responses after the deadline.
    pub(super) late: u64,
    pub(super) lateness_p99_us: Option<f64>,
}

/// The incidents of a cause.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct IncidentView {
    /// The number since the ORB was created.
    pub(super) total: u64,
    /// The number in the interval.
    pub(super) new: u64,
}

/// A lane. Rates are those of the interval, and so are times, if there were requests.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LaneView {
    pub(super) name: String,
    pub(super) pool: u32,
    /// Whether it is a lane, or stands for a pool without lanes.
    pub(super) is_lane: bool,
    pub(super) priority: Option<Priority>,
    pub(super) scheduling: Scheduling,
    pub(super) order: LaneOrder,
    pub(super) endpoints: Vec<String>,
    pub(super) connections: usize,
    pub(super) seats: u32,
    /// The threads that do not wait for work.
    pub(super) threads_busy: usize,
    pub(super) queued: u32,
    pub(super) requests_per_s: f64,
    pub(super) refused_per_s: f64,
    /// The requests that were refused since the lane was made.
    pub(super) refused: u64,
    pub(super) buffered_per_s: f64,
    pub(super) borrowed_per_s: f64,
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) max_us: Option<f64>,
    pub(super) threads: Vec<ThreadView>,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ThreadView {
    pub(super) name: String,
    pub(super) tid: u32,
    pub(super) scheduling: Scheduling,
    pub(super) cpus: Vec<usize>,
    pub(super) activity: Activity,
    pub(super) requests_per_s: f64,
}

impl OrbView {
    /// Returns the changes from one report of an ORB to a later one.
    pub(super) fn between(before: &Report, after: &Report) -> Self {
        let interval_us = after.monotonic_us.saturating_sub(before.monotonic_us);
        let seconds = interval_us as f64 / 1e6;
        let lanes_before: BTreeMap<&str, &LaneSnapshot> = before
            .pools
            .iter()
            .flat_map(|pool| &pool.lanes)
            .map(|lane| (lane.name.as_str(), lane))
            .collect();
        let lanes = after.pools.iter().flat_map(|pool| {
            let lanes = pool.lanes.iter();
            lanes.map(move |lane| (pool.number, pool.has_lanes, lane))
        });
        let lanes = lanes.map(|(pool, is_lane, lane)| LaneView {
            pool,
            is_lane,
            ..LaneView::between(lanes_before.get(lane.name.as_str()).copied(), lane, seconds)
        });
        Self {
            version: VERSION,
            pid: after.pid,
            orb_id: after.orb_id.clone(),
            command: after.command.clone(),
            strategy: after.strategy,
            real_time: after.real_time,
            interval_ms: interval_us as f64 / 1e3,
            waiting_for_main_thread: after.waiting_for_main_thread,
            incidents: after
                .incidents
                .iter()
                .map(|(cause, &total)| {
                    let earlier = before.incidents.get(cause).copied().unwrap_or(0);
                    let new = total.saturating_sub(earlier);
                    (cause.clone(), IncidentView { total, new })
                })
                .collect(),
            lanes: lanes.collect(),
            other_threads: after
                .other_threads
                .iter()
                .map(|thread| ThreadView::between(&[], thread, seconds))
                .collect(),
            operations: after
                .operations
                .iter()
                .map(|operation| {
                    let mut known = before.operations.iter();
                    let earlier = known.find(|known| is_same(known, operation));
                    OperationView::between(earlier, operation, seconds)
                })
                .collect(),
            channels: after
                .channels
                .iter()
                .map(|channel| {
                    let mut known = before.channels.iter();
                    let earlier = known.find(|known| known.name == channel.name);
                    ChannelView::between(earlier, channel, seconds)
                })
                .collect(),
            quotas: after.quotas.clone(),
        }
    }

    /// Renders the view as a line of JSON, without the line feed.
    pub(super) fn to_json(&self) -> String {
        // Texts, numbers and lists of them can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Whether two snapshots are of one operation.
fn is_same(one: &OperationSnapshot, other: &OperationSnapshot) -> bool {
    (&one.interface, &one.operation) == (&other.interface, &other.operation)
}

impl OperationView {
    fn between(
        before: Option<&OperationSnapshot>,
        after: &OperationSnapshot,
        seconds: f64,
    ) -> Self {
        let times = |times: fn(&OperationSnapshot) -> &[(Duration, u64)]| {
            Times::between(before.map_or(&[][..], times), times(after))
        };
        let new = |count: fn(&OperationSnapshot) -> u64| {
            count(after).saturating_sub(before.map_or(0, count))
        };
        let execution = times(|it| &it.execution);
        let response = times(|it| &it.response);
        let lateness = times(|it| &it.lateness);
        let requests = before.map_or(0, |it| it.requests);
        Self {
            name: format!("{}::{}", after.interface, after.operation),
            requests_per_s: per_second(requests, after.requests, seconds),
            execution_p50_us: execution.quantile_us(0.5),
            execution_p99_us: execution.quantile_us(0.99),
            worst_execution_us: microseconds(after.worst_execution),
            budget_us: after.budget.map(microseconds),
            overruns: new(|it| it.overruns),
            demoted: new(|it| it.demoted),
            skipped: new(|it| it.skipped),
            response_p50_us: response.quantile_us(0.5),
            response_p99_us: response.quantile_us(0.99),
            worst_response_us: microseconds(after.worst_response),
            deadline_us: after.deadline.map(microseconds),
            late: lateness.count(),
            lateness_p99_us: lateness.quantile_us(0.99),
        }
    }
}

impl ChannelView {
    fn between(before: Option<&ChannelSnapshot>, after: &ChannelSnapshot, seconds: f64) -> Self {
        let rate = |count: fn(&ChannelSnapshot) -> u64| {
            per_second(before.map_or(0, count), count(after), seconds)
        };
        let queues_before = before.map_or(&[][..], |channel| &channel.queues);
        Self {
            name: after.name.clone(),
            received_per_s: rate(|channel| channel.received),
            delivered_per_s: rate(|channel| channel.delivered),
            lost_per_s: rate(|channel| channel.lost),
            lost: after.lost,
            evicted: after.evicted,
            suppliers: after.suppliers,
            consumers: after.consumers,
            queues: after
                .queues
                .iter()
                .map(|queue| {
                    let mut known = queues_before.iter();
                    let earlier = known.find(|known| known.number == queue.number);
                    QueueView::between(earlier, queue, seconds)
                })
                .collect(),
        }
    }
}

impl QueueView {
    fn between(before: Option<&QueueSnapshot>, after: &QueueSnapshot, seconds: f64) -> Self {
        let rate = |count: fn(&QueueSnapshot) -> u64| {
            // One that was not in the report before has no rate yet.
            per_second(
                before.map_or_else(|| count(after), count),
                count(after),
                seconds,
            )
        };
        Self {
            number: after.number,
            subscription: after.subscription.clone(),
            is_suspended: after.is_suspended,
            events_per_s: rate(|queue| queue.events),
            lost_per_s: rate(|queue| queue.lost),
            lost: after.lost,
            queued: after.queued,
        }
    }
}

fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

impl LaneView {
    fn between(before: Option<&LaneSnapshot>, after: &LaneSnapshot, seconds: f64) -> Self {
        let rate = |count: fn(&LaneSnapshot) -> u64| {
            let earlier = before.map_or(0, count);
            per_second(earlier, count(after), seconds)
        };
        let times = Times::between(before.map_or(&[][..], |lane| &lane.times), &after.times);
        let threads_before = before.map_or(&[][..], |lane| &lane.threads);
        let busy = after.threads.iter();
        Self {
            name: after.name.clone(),
            pool: 0,
            is_lane: true,
            priority: after.priority,
            scheduling: after.scheduling,
            order: after.order,
            endpoints: after.endpoints.clone(),
            connections: after.connections,
            seats: after.seats,
            threads_busy: busy.filter(|t| t.activity != Activity::Waiting).count(),
            queued: after.queued,
            requests_per_s: rate(|lane| lane.served),
            refused_per_s: rate(|lane| lane.refused),
            refused: after.refused,
            buffered_per_s: rate(|lane| lane.buffered),
            borrowed_per_s: rate(|lane| lane.borrowed),
            p50_us: times.quantile_us(0.5),
            p99_us: times.quantile_us(0.99),
            max_us: times.quantile_us(1.0),
            threads: after
                .threads
                .iter()
                .map(|thread| ThreadView::between(threads_before, thread, seconds))
                .collect(),
        }
    }
}

impl ThreadView {
    fn between(before: &[ThreadSnapshot], after: &ThreadSnapshot, seconds: f64) -> Self {
        let is_same =
            |thread: &&ThreadSnapshot| thread.tid == after.tid && thread.name == after.name;
        let earlier = before
            .iter()
            .find(is_same)
            .map_or(0, |thread| thread.served);
        Self {
            name: after.name.clone(),
            tid: after.tid,
            scheduling: after.scheduling,
            cpus: after.affinity.clone(),
            activity: after.activity,
            requests_per_s: per_second(earlier, after.served, seconds),
        }
    }
}

fn per_second(earlier: u64, later: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        later.saturating_sub(earlier) as f64 / seconds
    } else {
        0.0
    }
}

/// The numbers of requests of the interval by the nanoseconds that they stayed below.
struct Times(BTreeMap<u64, u64>);

impl Times {
    fn between(before: &[(Duration, u64)], after: &[(Duration, u64)]) -> Self {
        let counts = |times: &[(Duration, u64)]| -> BTreeMap<u64, u64> {
            let times = times.iter();
            times
                .map(|(below, count)| (below.as_nanos() as u64, *count))
                .collect()
        };
        let earlier = counts(before);
        let mut times = counts(after);
        for (below, count) in &mut times {
            *count = count.saturating_sub(earlier.get(below).copied().unwrap_or(0));
        }
        Self(times)
    }

    /// Returns the number of requests.
    fn count(&self) -> u64 {
        let counts = self.0.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the microseconds that a share of the requests stayed below, if there were any.
    fn quantile_us(&self, share: f64) -> Option<f64> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let rank = (share * all as f64).ceil().max(1.0) as u64;
        let mut passed: u64 = 0;
        let below = self.0.iter().find(|(_, count)| {
            passed = passed.saturating_add(**count);
            passed >= rank
        });
        below.map(|(below, _)| *below as f64 / 1e3)
    }
}

const VERSION: u32 = 1;

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns a report at this second, with these lanes.
    pub(crate) fn report(second: f64, lanes: &[Value]) -> Report {
        let report = json!({
            "version": 1, "monotonic_us": (second * 1e6) as u64, "pid": 77, "orb_id": "quotes",
            "command": "./server --port 4000", "strategy": "leader-followers", "real_time": true,
            "waiting_for_main_thread": 0,
            "pools": [{ "number": 1, "has_lanes": true, "lanes": lanes }],
            "other_threads": [{
                "name": "monitor quotes", "tid": 80, "cpus": [0, 1], "activity": "monitoring",
                "scheduling": { "policy": "other", "priority": 0 }, "served": 0,
            }],
        });
        serde_json::from_value(report).expect("it has the wire form")
    }

    pub(crate) fn lane(name: &str, served: u64, times: &[(u64, u64)]) -> Value {
        let times = times.iter();
        json!({
            "name": name, "priority": 24000, "scheduling": { "policy": "fifo", "priority": 72 },
            "endpoints": ["iiop://127.0.0.1:4001"], "connections": 3, "seats": 2, "queued": 5,
            "accepted": 4, "served": served, "refused": served / 10, "buffered": served / 2,
            "borrowed": served / 5,
            "times": times.map(|(below, count)| json!({ "below_ns": below, "count": count }))
                .collect::<Vec<_>>(),
            "threads": [
                { "name": format!("{name}.0 quotes"), "tid": 78, "cpus": [1], "activity": "serving",
                  "scheduling": { "policy": "fifo", "priority": 72 }, "served": served },
                { "name": format!("{name}.1 quotes"), "tid": 79, "cpus": [0, 1],
                  "activity": "waiting", "scheduling": { "policy": "fifo", "priority": 72 },
                  "served": 0 },
            ],
        })
    }

    #[test]
    fn rates_are_differences_by_the_second() {
        let before = report(10.0, &[lane("1:0", 1_000, &[])]);
        let after = report(12.5, &[lane("1:0", 1_500, &[])]);
        let view = OrbView::between(&before, &after);
        assert_eq!(view.interval_ms, 2_500.0);
        let lane = &view.lanes[0];
        assert_eq!((lane.requests_per_s, lane.refused_per_s), (200.0, 20.0));
        assert_eq!((lane.buffered_per_s, lane.borrowed_per_s), (100.0, 40.0));
        assert_eq!((lane.threads_busy, lane.queued, lane.pool), (1, 5, 1));
        let threads: Vec<f64> = lane.threads.iter().map(|t| t.requests_per_s).collect();
        assert_eq!(threads, [200.0, 0.0]);
    }

    #[test]
    fn a_lane_that_is_new_or_was_begun_again_counts_from_nothing() {
        let before = report(1.0, &[lane("1:0", 700, &[])]);
        let after = report(2.0, &[lane("1:0", 100, &[]), lane("2:0", 50, &[])]);
        let view = OrbView::between(&before, &after);
        assert_eq!(view.lanes[0].requests_per_s, 0.0);
        assert_eq!(view.lanes[1].requests_per_s, 50.0);
        let at_once = OrbView::between(&after, &after);
        assert_eq!(
            at_once.lanes[0].requests_per_s, 0.0,
            "and not by zero seconds"
        );
    }

    #[test]
    fn times_are_those_of_the_interval_alone() {
        // Before, one request took a second. Since then 98 took less than 20 us, and 2 more.
        let before = report(1.0, &[lane("1:0", 1, &[(1_000_000_000, 1)])]);
        let times = [(16_000, 49), (20_000, 49), (640_000, 2), (1_000_000_000, 1)];
        let after = report(2.0, &[lane("1:0", 101, &times)]);
        let lane = &OrbView::between(&before, &after).lanes[0];
        assert_eq!(lane.p50_us, Some(20.0));
        assert_eq!(lane.p99_us, Some(640.0));
        assert_eq!(lane.max_us, Some(640.0));
    }

    #[test]
    fn without_requests_there_are_no_times() {
        let times = [(16_000, 7)];
        let both = [1.0, 2.0].map(|second| report(second, &[lane("1:0", 7, &times)]));
        let lane = &OrbView::between(&both[0], &both[1]).lanes[0];
        assert_eq!((lane.p50_us, lane.p99_us, lane.max_us), (None, None, None));
    }

    /// Returns a report of an operation with these execution times and late responses.
    pub(crate) fn with_operation(second: f64, requests: u64, execution: &[(u64, u64)]) -> Report {
        let times = |times: &[(u64, u64)]| {
            let times = times.iter();
            times
                .map(|(below, count)| json!({ "below_ns": below, "count": count }))
                .collect::<Vec<_>>()
        };
        let mut report = report(second, &[]);
        let operation = json!({
            "interface": "Flight::Navigator", "operation": "position", "scheduled_as": null,
            "requests": requests, "execution": times(execution), "worst_execution_ns": 640_000,
            "response": times(execution), "worst_response_ns": 1_250_000,
            "lateness": times(&[(20_000, requests / 10)]), "budget_ns": 500_000,
            "deadline_ns": 1_000_000, "overruns": requests / 10, "demoted": 0,
            "skipped": requests / 5,
        });
        report.operations = vec![serde_json::from_value(operation).expect("its form")];
        report
    }

    #[test]
    fn an_operation_has_the_counts_and_times_of_the_interval() {
        let before = with_operation(1.0, 100, &[(1_000_000_000, 1)]);
        let after = with_operation(3.0, 300, &[(16_000, 98), (640_000, 2), (1_000_000_000, 1)]);
        let view = &OrbView::between(&before, &after).operations[0];
        assert_eq!(view.name, "Flight::Navigator::position");
        assert_eq!(
            (view.requests_per_s, view.overruns, view.skipped),
            (100.0, 20, 40)
        );
        assert_eq!(
            (view.execution_p50_us, view.execution_p99_us),
            (Some(16.0), Some(640.0))
        );
        assert_eq!(
            (view.worst_execution_us, view.budget_us),
            (640.0, Some(500.0))
        );
        assert_eq!((view.late, view.lateness_p99_us), (20, Some(20.0)));
    }

    /// Returns a report of a channel with two consumers.
    pub(crate) fn with_channel(second: f64, received: u64) -> Report {
        let queue = |number: u64, subscription: &str, lost: u64| {
            json!({
                "number": number, "subscription": subscription, "is_suspended": false,
                "events": received, "lost": lost, "queued": lost / 10,
            })
        };
        let mut report = report(second, &[]);
        let channel = json!({
            "name": "EventService", "received": received, "delivered": received * 2,
            "lost": received / 2, "evicted": 1, "suppliers": 1, "consumers": 2,
            "queues": [queue(3, "1:20", 0), queue(4, "", received / 2)],
        });
        report.channels = vec![serde_json::from_value(channel).expect("its form")];
        report
    }

    #[test]
    fn a_channel_has_the_rates_of_the_interval() {
        let (before, after) = (with_channel(1.0, 100), with_channel(3.0, 500));
        let view = &OrbView::between(&before, &after).channels[0];
        let rates = (view.received_per_s, view.delivered_per_s, view.lost_per_s);
        assert_eq!(rates, (200.0, 400.0, 100.0));
        assert_eq!((view.lost, view.evicted, view.consumers), (250, 1, 2));
        let slow = &view.queues[1];
        assert_eq!((slow.events_per_s, slow.lost_per_s), (200.0, 100.0));
        assert_eq!((slow.lost, slow.queued), (250, 25));
    }

    /// Returns a report of a name server whose iterators are nearly used up.
    pub(crate) fn with_quota(second: f64) -> Report {
        let mut report = report(second, &[]);
        let quota = json!({
            "name": "iterators", "used": 930, "total": 1000, "per_origin": 500,
            "origins": 12, "most": 500, "refused": 17,
        });
        report.quotas = vec![serde_json::from_value(quota).expect("its form")];
        report
    }

    #[test]
    fn the_object_has_units_in_its_names() {
        let both = [1.0, 2.0].map(|second| report(second, &[lane("1:0", 7, &[(16_000, 7)])]));
        let text = OrbView::between(&both[0], &both[1]).to_json();
        let object: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(object["version"], 1);
        assert_eq!(object["interval_ms"], 1_000.0);
        assert_eq!(object["lanes"][0]["requests_per_s"], 0.0);
        assert!(object["lanes"][0]["p99_us"].is_null());
        assert_eq!(object["lanes"][0]["threads"][0]["activity"], "serving");
        assert_eq!(object["other_threads"][0]["name"], "monitor quotes");
    }
}
