//! The activity of an ORB as lines of text.

use chronorb_orb::Activity;
use chronorb_orb::monitor::Strategy;
use chronorb_orb::quota::QuotaSnapshot;
use chronorb_orb::rtcorba::LaneOrder;
use chronorb_rt::{Policy, Scheduling};

use super::rates::{ChannelView, LaneView, OperationView, OrbView, ThreadView};
use super::text::{count, cut, cut_front, number, plain, ranges, time};

/// The space for the lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The characters of a line.
    pub(super) width: usize,
    /// Whether threads are shown below their lanes.
    pub(super) threads: bool,
}

/// A line of parts with different looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<(Look, String)>);

/// The look of a part of a line, if there are colours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    Plain,
    Title,
    /// A part of less interest.
    Faint,
    /// Work in progress.
    Busy,
    /// Work that waits.
    Waits,
    /// A failure.
    Wrong,
}

impl Look {
    fn sequence(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Title => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Busy => "\x1b[32m",
            Self::Waits => "\x1b[33m",
            Self::Wrong => "\x1b[1;31m",
        }
    }
}

impl Line {
    pub(crate) fn of(look: Look, text: impl Into<String>) -> Self {
        Self(vec![(look, text.into())])
    }

    pub(crate) fn and(mut self, look: Look, text: impl Into<String>) -> Self {
        self.0.push((look, text.into()));
        self
    }

    /// Renders the line for a terminal of this width.
    pub(crate) fn paint(&self, width: usize, has_color: bool) -> String {
        let mut text = String::new();
        let mut left = width;
        for (look, part) in &self.0 {
            let part: String = part.chars().take(left).collect();
            left -= part.chars().count();
            match look.sequence() {
                sequence if has_color && !sequence.is_empty() => {
                    text += &format!("{sequence}{part}\x1b[0m");
                }
                _ => text += &part,
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }
}

/// Renders the whole view.
pub(super) fn lines(view: &OrbView, layout: Layout) -> Vec<Line> {
    let mut lines = head(view, layout);
    let columns = Columns::fit(&view.lanes, layout.width);
    lines.push(Line::of(Look::Title, columns.titles()));
    for lane in &view.lanes {
        lines.push(columns.lane(lane));
        if layout.threads {
            let threads = lane.threads.iter();
            lines.extend(threads.map(|thread| thread_line(thread, layout, true)));
        }
    }
    if view.lanes.is_empty() {
        lines.push(Line::of(Look::Faint, "no thread pool is in use yet"));
    }
    if layout.threads && !view.other_threads.is_empty() {
        lines.push(Line::default());
        lines.push(Line::of(Look::Title, "threads of no lane"));
        let threads = view.other_threads.iter();
        lines.extend(threads.map(|thread| thread_line(thread, layout, false)));
    }
    if !view.operations.is_empty() {
        lines.push(Line::default());
        lines.extend(operations(&view.operations, layout.width));
    }
    if !view.channels.is_empty() {
        lines.push(Line::default());
        lines.extend(channels(&view.channels, layout.width));
    }
    if !view.quotas.is_empty() {
        lines.push(Line::default());
        lines.extend(quotas(&view.quotas, layout.width));
    }
    lines
}

/// Renders the measured operations, below their titles.
fn operations(operations: &[OperationView], width: usize) -> Vec<Line> {
    let longest = operations.iter().map(|it| it.name.chars().count()).max();
    let left = width.saturating_sub(OPERATION_FIXED).max(LEAST_OPERATION);
    let name = longest.unwrap_or(0).clamp(LEAST_OPERATION, left);
    let titles = format!(
        "{:<name$} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5}",
        "OPERATION", "REQ/S", "C50", "CMAX", "BUDG", "OVER", "SKIP", "R50", "RMAX", "DEADL", "LATE",
    );
    let line = |it: &OperationView| {
        let maybe = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), time);
        let wrong = |count: u64| if count > 0 { Look::Wrong } else { Look::Plain };
        let execution = [
            number(it.requests_per_s),
            maybe(it.execution_p50_us),
            time(it.worst_execution_us),
            maybe(it.budget_us),
        ];
        let response = [
            maybe(it.response_p50_us),
            time(it.worst_response_us),
            maybe(it.deadline_us),
        ];
        let columns = |texts: &[String]| -> String {
            texts.iter().map(|text| format!(" {text:>5}")).collect()
        };
        Line::of(
            Look::Title,
            format!("{:<name$}", cut_front(&plain(&it.name), name)),
        )
        .and(Look::Plain, columns(&execution))
        .and(wrong(it.overruns), format!(" {:>5}", count(it.overruns)))
        .and(wrong(it.skipped), format!(" {:>5}", count(it.skipped)))
        .and(Look::Plain, columns(&response))
        .and(wrong(it.late), format!(" {:>5}", count(it.late)))
    };
    let titles = Line::of(Look::Title, titles);
    std::iter::once(titles)
        .chain(operations.iter().map(line))
        .collect()
}

/// Renders the event channels with the queues of their consumers, below the titles.
fn channels(channels: &[ChannelView], width: usize) -> Vec<Line> {
    let name = width
        .saturating_sub(CHANNEL_FIXED)
        .clamp(LEAST_CHANNEL, MOST_CHANNEL);
    let titles = format!(
        "{:<name$} {:>5} {:>5} {:>5} {:>6} {:>5} {:>5}",
        "CHANNEL", "IN/S", "OUT/S", "QUEUE", "LOST/S", "LOST", "EVICT",
    );
    let wrong = |is: bool| if is { Look::Wrong } else { Look::Plain };
    let waits = |queued: u64| if queued > 0 { Look::Waits } else { Look::Plain };
    let losses = |line: Line, lost_per_s: f64, lost: u64| {
        line.and(
            wrong(lost_per_s > 0.0),
            format!(" {:>6}", number(lost_per_s)),
        )
        .and(wrong(lost > 0), format!(" {:>5}", count(lost)))
    };
    let mut lines = vec![Line::of(Look::Title, titles)];
    for it in channels {
        let title = format!("{} ({} to {})", plain(&it.name), it.suppliers, it.consumers);
        let rates = [it.received_per_s, it.delivered_per_s].map(number);
        let queued = it.queues.iter().map(|queue| queue.queued).sum();
        let line = Line::of(Look::Title, format!("{:<name$}", cut(&title, name)))
            .and(Look::Plain, format!(" {:>5} {:>5}", rates[0], rates[1]))
            .and(waits(queued), format!(" {:>5}", count(queued)));
        let line = losses(line, it.lost_per_s, it.lost);
        lines.push(line.and(wrong(it.evicted > 0), format!(" {:>5}", count(it.evicted))));
        for queue in &it.queues {
            let subscription = match queue.subscription.as_str() {
                "" => "not connected",
                _ if queue.is_suspended => "suspended",
                subscription => subscription,
            };
            let title = format!("  {} {}", queue.number, plain(subscription));
            let line = Line::of(Look::Plain, format!("{:<name$}", cut(&title, name)))
                .and(
                    Look::Plain,
                    format!(" {:>5} {:>5}", "", number(queue.events_per_s)),
                )
                .and(waits(queue.queued), format!(" {:>5}", count(queue.queued)));
            lines.push(losses(line, queue.lost_per_s, queue.lost));
        }
    }
    lines
}

/// Renders the quotas of services, below the titles.
fn quotas(quotas: &[QuotaSnapshot], width: usize) -> Vec<Line> {
    let name = width
        .saturating_sub(QUOTA_FIXED)
        .clamp(LEAST_CHANNEL, MOST_CHANNEL);
    let titles = format!(
        "{:<name$} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5}",
        "QUOTA", "USED", "LIMIT", "PEERS", "MOST", "EACH", "REFUS",
    );
    let line = |it: &QuotaSnapshot| {
        let near = |used: u64, limit: u64| {
            if used >= limit - limit / 10 {
                Look::Waits
            } else {
                Look::Plain
            }
        };
        let refused = if it.refused > 0 {
            Look::Wrong
        } else {
            Look::Plain
        };
        let pair = |used, limit| format!(" {:>5} {:>5}", count(used), count(limit));
        let title = format!("{:<name$}", cut(&plain(&it.name), name));
        Line::of(Look::Title, title)
            .and(near(it.used, it.total), pair(it.used, it.total))
            .and(Look::Plain, format!(" {:>5}", count(it.origins)))
            .and(near(it.most, it.per_origin), pair(it.most, it.per_origin))
            .and(refused, format!(" {:>5}", count(it.refused)))
    };
    let titles = Line::of(Look::Title, titles);
    std::iter::once(titles)
        .chain(quotas.iter().map(line))
        .collect()
}

/// Six columns of five characters with their gaps.
const QUOTA_FIXED: usize = 6 * 6;

const LEAST_CHANNEL: usize = 16;
const MOST_CHANNEL: usize = 40;
/// Six columns with their gaps.
const CHANNEL_FIXED: usize = 5 * 6 + 7;

const LEAST_OPERATION: usize = "OPERATION".len();
/// Ten columns of five characters with their gaps.
const OPERATION_FIXED: usize = 10 * 6;

fn head(view: &OrbView, layout: Layout) -> Vec<Line> {
    let strategy = match view.strategy {
        Strategy::LeaderFollowers => "leader/followers",
        Strategy::HalfSync => "half-sync/half-async",
        Strategy::WorkerPool => "worker pool",
        Strategy::FilterChain => "filter chain",
        Strategy::Reactive => "reactive",
        Strategy::ThreadPerConnection => "thread per connection",
        _ => "?",
    };
    let first = Line::of(Look::Title, format!("ORB {}", plain(&view.orb_id)))
        .and(Look::Plain, format!("  pid {}  {strategy}  ", view.pid));
    let mut first = if view.real_time {
        first.and(Look::Plain, "real-time")
    } else {
        first.and(Look::Wrong, "NOT real-time")
    };
    if view.waiting_for_main_thread > 0 {
        let waiting = format!(
            "  {} wait for the main thread",
            view.waiting_for_main_thread
        );
        first = first.and(Look::Waits, waiting);
    }
    let command = cut(&plain(&view.command), layout.width);
    let mut head = vec![first, Line::of(Look::Faint, command)];
    head.extend(incidents(view, layout.width));
    head.push(Line::default());
    head
}

/// Renders the incidents, as many as fit in a line: those of the interval first, which are marked.
fn incidents(view: &OrbView, width: usize) -> Option<Line> {
    let told = view.incidents.iter();
    let told = told.filter(|(cause, count)| count.total > 0 && !ORDINARY.contains(&cause.as_str()));
    let (new, old): (Vec<_>, Vec<_>) = told.partition(|(_, count)| count.new > 0);
    if new.is_empty() && old.is_empty() {
        return None;
    }
    let mut line = Line::of(Look::Plain, "incidents");
    let mut left = width.saturating_sub("incidents".len());
    for (cause, count) in new.into_iter().chain(old) {
        let cause = plain(cause);
        let (look, part) = match count.new {
            0 => (Look::Plain, format!("  {cause} {}", count.total)),
            new => (Look::Wrong, format!("  {cause} {} (+{new})", count.total)),
        };
        let Some(rest) = left.checked_sub(part.chars().count()) else {
            break;
        };
        left = rest;
        line = line.and(look, part);
    }
    Some(line)
}

/// The incidents of regular operation.
const ORDINARY: [&str; 3] = ["listening", "started lane", "ended lane"];

/// The widths of a lane's columns that vary.
struct Columns {
    name: usize,
    endpoint: usize,
}

impl Columns {
    fn fit(lanes: &[LaneView], width: usize) -> Self {
        let longest = |text: fn(&LaneView) -> String| {
            let lengths = lanes.iter().map(|lane| text(lane).chars().count());
            lengths.max().unwrap_or(0)
        };
        let name = longest(title).clamp("LANE".len(), 12);
        let left = width.saturating_sub(name + FIXED).max(LEAST_ENDPOINT);
        Self {
            name,
            endpoint: longest(endpoint).clamp(LEAST_ENDPOINT, left),
        }
    }

    fn titles(&self) -> String {
        format!(
            "{:<name$} {:>9} {:<endpoint$} {:>4} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5}",
            "LANE",
            "PRIORITY",
            "ENDPOINT",
            "CONN",
            "BUSY",
            "QUEUE",
            "REQ/S",
            "REF/S",
            "BOR/S",
            "P50",
            "P99",
            "MAX",
            name = self.name,
            endpoint = self.endpoint,
        )
    }

    fn lane(&self, lane: &LaneView) -> Line {
        let priority = match lane.priority {
            None => long(lane.scheduling),
            Some(corba) => format!("{corba}/{}", short(lane.scheduling)),
        };
        let busy = format!("{}/{}", lane.threads_busy, lane.threads.len());
        let when = |is: bool, look: Look| if is { look } else { Look::Plain };
        let serving = lane
            .threads
            .iter()
            .filter(|t| t.activity == Activity::Serving);
        let is_full = serving.count() >= lane.seats as usize;
        let times = [lane.p50_us, lane.p99_us, lane.max_us]
            .map(|us| us.map_or_else(|| "-".to_owned(), time));
        Line::of(
            Look::Title,
            format!(
                "{:<width$}",
                cut(&plain(&title(lane)), self.name),
                width = self.name
            ),
        )
        .and(
            Look::Plain,
            format!(
                " {priority:>9} {:<width$} {:>4}",
                cut_front(&endpoint(lane), self.endpoint),
                count(lane.connections as u64),
                width = self.endpoint
            ),
        )
        .and(when(is_full, Look::Waits), format!(" {busy:>5}"))
        .and(
            when(lane.queued > 0, Look::Waits),
            format!(" {:>5}", count(lane.queued.into())),
        )
        .and(Look::Plain, format!(" {:>5}", number(lane.requests_per_s)))
        .and(
            when(lane.refused_per_s > 0.0, Look::Wrong),
            format!(" {:>5}", number(lane.refused_per_s)),
        )
        .and(
            Look::Plain,
            format!(
                " {:>5} {:>5} {:>5} {:>5}",
                number(lane.borrowed_per_s),
                times[0],
                times[1],
                times[2]
            ),
        )
    }
}

/// Returns the name of a lane, and the order of its requests if that is not the order of arrival.
fn title(lane: &LaneView) -> String {
    match lane.order {
        LaneOrder::Fifo => lane.name.clone(),
        order => format!("{} {}", lane.name, order.name()),
    }
}

/// Formats the endpoints of a lane: the first, and the number of others. The scheme of IIOP is left
/// out.
fn endpoint(lane: &LaneView) -> String {
    let plain = |endpoint: &str| plain(endpoint.strip_prefix("iiop://").unwrap_or(endpoint));
    match &lane.endpoints[..] {
        [] => String::new(),
        [one] => plain(one),
        [first, others @ ..] => format!("{}+{}", plain(first), others.len()),
    }
}

const LEAST_ENDPOINT: usize = "ENDPOINT".len();
/// The columns after the name with their gaps, without the endpoint itself: priority, connections
/// and 8 of five characters.
const FIXED: usize = 10 + 1 + 5 + 8 * 6;

fn thread_line(thread: &ThreadView, layout: Layout, serves: bool) -> Line {
    // Id, scheduling, CPUs, activity and rate have 8, 7, 8, 10 and 7 with their gaps.
    let name = layout
        .width
        .saturating_sub(2 + 9 + 8 + 9 + 11 + 8)
        .clamp(12, 32);
    let (look, activity) = match thread.activity {
        Activity::Waiting => (Look::Faint, "waiting"),
        Activity::Reading => (Look::Busy, "reading"),
        Activity::Serving => (Look::Busy, "serving"),
        Activity::Blocked => (Look::Waits, "blocked"),
        Activity::Monitoring => (Look::Plain, "monitoring"),
        Activity::Running => (Look::Busy, "running"),
        Activity::Sleeping => (Look::Faint, "sleeping"),
        _ => (Look::Plain, "?"),
    };
    let rate = if serves {
        format!("{}/s", number(thread.requests_per_s))
    } else {
        String::new()
    };
    Line::of(
        Look::Plain,
        format!(
            "  {:<name$} {:>8} {:<7} {:<8} ",
            cut(&plain(&thread.name), name),
            thread.tid,
            long(thread.scheduling),
            cut(&ranges(&thread.cpus), 8),
        ),
    )
    .and(look, format!("{activity:<10}"))
    .and(Look::Plain, format!(" {rate:>7}"))
}

/// Formats the scheduling: `fifo 72`.
fn long(scheduling: Scheduling) -> String {
    match scheduling.policy {
        Policy::Other => "other".to_owned(),
        Policy::Fifo => format!("fifo {}", scheduling.priority),
        Policy::RoundRobin => format!("rr {}", scheduling.priority),
    }
}

/// Formats the scheduling: `f72`.
fn short(scheduling: Scheduling) -> String {
    match scheduling.policy {
        Policy::Other => "-".to_owned(),
        Policy::Fifo => format!("f{}", scheduling.priority),
        Policy::RoundRobin => format!("r{}", scheduling.priority),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rates::tests::{lane, report, with_channel, with_operation, with_quota};
    use super::*;

    fn view() -> OrbView {
        let before = report(1.0, &[lane("1:0", 0, &[])]);
        let times = [(16_000, 900), (1_250_000, 100)];
        OrbView::between(&before, &report(2.0, &[lane("1:0", 1_000, &times)]))
    }

    fn shown(view: &OrbView, width: usize) -> Vec<String> {
        let layout = Layout {
            width,
            threads: true,
        };
        let lines = lines(view, layout);
        lines.iter().map(|line| line.paint(width, false)).collect()
    }

    #[test]
    fn each_lane_is_one_line_above_its_threads() {
        let text = shown(&view(), 100);
        assert_eq!(
            text,
            [
                "ORB quotes  pid 77  leader/followers  real-time",
                "./server --port 4000",
                "",
                "LANE  PRIORITY ENDPOINT       CONN  BUSY QUEUE REQ/S REF/S BOR/S   P50   P99   \
                 MAX",
                "1:0  24000/f72 127.0.0.1:4001    3   1/2     5  1000   100   200  16us 1.2ms \
                 1.2ms",
                "  1:0.0 quotes                           78 fifo 72 1        serving     1000/s",
                "  1:0.1 quotes                           79 fifo 72 0-1      waiting        0/s",
                "",
                "threads of no lane",
                "  monitor quotes                         80 other   0-1      monitoring",
            ]
        );
    }

    #[test]
    fn the_order_of_a_lane_stands_behind_its_name() {
        let mut view = view();
        view.lanes[0].order = LaneOrder::Urgency;
        let text = shown(&view, 100);
        assert!(text[4].starts_with("1:0 muf "), "{}", text[4]);
    }

    #[test]
    fn each_operation_is_one_line() {
        let before = with_operation(1.0, 100, &[]);
        let after = with_operation(2.0, 200, &[(16_000, 98), (640_000, 2)]);
        let text = shown(&OrbView::between(&before, &after), 100);
        let at = text.iter().position(|line| line.starts_with("OPERATION"));
        let at = at.expect("there are measured operations");
        assert_eq!(
            text[at..],
            [
                "OPERATION                   REQ/S   C50  CMAX  BUDG  OVER  SKIP   R50  RMAX \
                 DEADL  LATE",
                "Flight::Navigator::position   100  16us 640us 500us    10    20  16us 1.2ms \
                 1.0ms    10",
            ]
        );
        for width in [1, 70, 80] {
            for line in shown(&OrbView::between(&before, &after), width) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn each_channel_is_one_line_above_the_queues_of_its_consumers() {
        let (before, after) = (with_channel(1.0, 100), with_channel(2.0, 2_100));
        let view = OrbView::between(&before, &after);
        let text = shown(&view, 80);
        let at = text.iter().position(|line| line.starts_with("CHANNEL"));
        let at = at.expect("there is a channel");
        assert_eq!(
            text[at..],
            [
                "CHANNEL                                   IN/S OUT/S QUEUE LOST/S  LOST EVICT",
                "EventService (1 to 2)                     2000  4000   105   1000  1050     1",
                "  3 1:20                                        2000     0      0     0",
                "  4 not connected                               2000   105   1000  1050",
            ]
        );
        for width in [1, 40, 80] {
            for line in shown(&view, width) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn each_quota_is_one_line() {
        let (before, after) = (with_quota(1.0), with_quota(2.0));
        let view = OrbView::between(&before, &after);
        let text = shown(&view, 80);
        let at = text.iter().position(|line| line.starts_with("QUOTA"));
        let at = at.expect("there is a quota");
        assert_eq!(
            text[at..],
            [
                "QUOTA                                     USED LIMIT PEERS  MOST  EACH REFUS",
                "iterators                                  930  1000    12   500   500    17",
            ]
        );
        for width in [1, 40, 80] {
            for line in shown(&view, width) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn it_fits_whatever_the_width_is() {
        let mut view = view();
        view.lanes[0].endpoints[0] = "[fe80::5054:ff:fe12:3456%eth0]:54321".to_owned();
        view.lanes[0].threads[0].cpus = (0..128).step_by(2).collect();
        for width in [1, 20, 79, 80, 120, 400] {
            for line in shown(&view, width) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
        let text = shown(&view, 80).join("\n");
        assert!(text.contains(":54321 "), "the port matters most: {text}");
        assert!(text.contains("MAX\n"), "all columns are there: {text}");
    }

    #[test]
    fn colours_add_nothing_to_the_text() {
        let layout = Layout {
            width: 80,
            threads: true,
        };
        for line in lines(&view(), layout) {
            let mut painted = line.paint(80, true);
            for sequence in [
                "\x1b[0m",
                "\x1b[1m",
                "\x1b[2m",
                "\x1b[32m",
                "\x1b[33m",
                "\x1b[1;31m",
            ] {
                painted = painted.replace(sequence, "");
            }
            assert_eq!(painted.trim_end(), line.paint(80, false));
        }
    }

    #[test]
    fn what_an_orb_calls_itself_does_not_reach_the_terminal_as_a_command() {
        let mut view = view();
        view.orb_id = "\x1b]0;owned\x07".to_owned();
        view.command = "\x1b[2J".to_owned();
        view.lanes[0].name = "\x1b[1".to_owned();
        view.lanes[0].threads[0].name = "\r\n\x1b[H".to_owned();
        let text = shown(&view, 80).concat();
        assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    }
}
