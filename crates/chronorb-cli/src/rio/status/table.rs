//! The activity of classes as lines of text.

use std::time::Duration;

use chronorb_rio::plan::Policy;
use chronorb_rio::status::{ClassSnapshot, Count, Level};

use super::shares::{ShareView, SharesView};
use super::view::{ClassView, View, mode};
use crate::top::table::{Line, Look};
use crate::top::text::{count, cut, number, plain, time};

/// Renders the whole view.
pub(super) fn lines(view: &View) -> Vec<Line> {
    let mut lines = Vec::new();
    for process in &view.processes {
        for interface in &process.interfaces {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            let whose = format!("{} ({})", cut(&process.command, 16), process.pid);
            match &interface.name {
                Ok(name) => {
                    lines.push(Line::of(Look::Title, name).and(Look::Plain, format!("  {whose}")));
                }
                Err(error) => {
                    lines.push(Line::of(Look::Wrong, format!("{whose}: {error}")));
                    continue;
                }
            }
            if interface.classes.is_empty() {
                lines.push(Line::of(Look::Faint, "no class is open"));
                continue;
            }
            lines.push(Line::of(Look::Title, TITLES));
            for class in &interface.classes {
                lines.push(class_line(class));
                lines.extend(trouble(&class.now));
            }
        }
    }
    match &view.kernel {
        Ok(kept) => kept
            .iter()
            .for_each(|shares| kept_lines(shares, &mut lines)),
        Err(error) => {
            let error = format!("what the kernel keeps is not seen: {error}");
            lines.extend([Line::default(), Line::of(Look::Wrong, error)]);
        }
    }
    if view.unseen > 0 {
        let unseen = format!(
            "what {} other processes have open cannot be seen",
            view.unseen
        );
        lines.push(Line::default());
        lines.push(Line::of(Look::Faint, unseen));
    }
    lines
}

/// Renders the shares of an interface that the kernel keeps.
fn kept_lines(shares: &SharesView, lines: &mut Vec<Line>) {
    if !lines.is_empty() {
        lines.push(Line::default());
    }
    let whose = if shares.is_inward {
        "  the kernel, what comes in"
    } else {
        "  the kernel, what goes out"
    };
    let title = Line::of(Look::Title, &shares.interface).and(Look::Plain, whose);
    lines.push(match &shares.other_than {
        Some(plan) => title.and(
            Look::Waits,
            format!(", by another plan than {}", plan.display()),
        ),
        None => title,
    });
    lines.push(Line::of(Look::Title, KEPT_TITLES));
    for share in &shares.shares {
        lines.push(share_line(share, shares.is_inward));
        lines.extend(share_trouble(share));
    }
}

/// The titles of the kernel's shares, in the columns of [`TITLES`] that have a meaning for them.
const KEPT_TITLES: &str = "CLASS        RANK RATE   CEILING  IN/S BIT/S OUT/S BIT/S QUEUE  MOST \
     \x20USED  CONN DROPS   P50   P99   MAX";

fn share_line(share: &ShareView, is_inward: bool) -> Line {
    let now = &share.now;
    let bits = |octets: u64| number(8.0 * octets as f64);
    let rates = [share.packets_per_s(), 8.0 * share.octets_per_s()].map(number);
    let rates = if is_inward {
        format!(" {:>5} {:>5} {:>5} {:>5}", rates[0], rates[1], "-", "-")
    } else {
        format!(" {:>5} {:>5} {:>5} {:>5}", "-", "-", rates[0], rates[1])
    };
    let used = share.used();
    let used = used.map_or_else(|| "-".to_owned(), |used| format!("{:.0}%", 100.0 * used));
    let when = |is: bool, look: Look| if is { look } else { Look::Plain };
    let drops = share.drops_per_s();
    let name = cut(&share.title(), 12);
    let rank = format!(" {:>4} ", now.rates.priority);
    let own = format!("{:<6} {:<7}", bits(now.rates.rate), bits(now.rates.ceiling));
    Line::of(Look::Title, format!("{name:<12}"))
        .and(Look::Plain, format!("{rank}{own}{rates}"))
        .and(
            when(now.sent.waiting > 0, Look::Waits),
            format!(" {:>5}", count(now.sent.waiting.into())),
        )
        .and(Look::Plain, format!(" {:>5} {used:>5} {:>5}", "-", "-"))
        .and(
            when(drops > 0.0, Look::Wrong),
            format!(" {:>5}", number(drops)),
        )
        .and(Look::Plain, format!(" {:>5} {:>5} {:>5}", "-", "-", "-"))
}

/// Returns the drops and waits of a share since it was set up, if there were any.
fn share_trouble(share: &ShareView) -> Option<Line> {
    let sent = share.now.sent;
    let counted = [(sent.dropped, "queue full"), (sent.over_rate, "waited")];
    let parts: Vec<_> = (counted.into_iter())
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{word} {}", count(n.into())))
        .collect();
    (!parts.is_empty()).then(|| Line::of(Look::Waits, format!("  in all: {}", parts.join(", "))))
}

const TITLES: &str = "CLASS        PRIO PROCESSING      IN/S BIT/S OUT/S BIT/S QUEUE  MOST \
     BUDGT  CONN DROPS   P50   P99   MAX";

fn class_line(class: &ClassView) -> Line {
    let now = &class.now;
    let name = cut(&plain(&now.name), 12);
    let rates = [
        class.rate(Count::PacketsIn),
        8.0 * class.rate(Count::OctetsIn),
        class.rate(Count::PacketsOut),
        8.0 * class.rate(Count::OctetsOut),
    ]
    .map(number);
    let queue = now.level(Level::Queue);
    let budget = match now.bound {
        Some(_) => count(now.level(Level::BudgetUsed).now),
        None => "-".to_owned(),
    };
    let when = |is: bool, look: Look| if is { look } else { Look::Plain };
    let is_full = queue.most >= now.queue;
    let drops = class.drop_rate();
    let latencies = class.latencies();
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let shown = |latency: Option<Duration>| match latency {
        Some(latency) => time(micros(latency)),
        None => "-".to_owned(),
    };
    let longest = (now.latencies.count() > 0).then_some(now.latencies.longest);
    Line::of(Look::Title, format!("{name:<12}"))
        .and(
            Look::Plain,
            format!(" {:>4} {:<14}", priority(now), cut(&processing(now), 14)),
        )
        .and(
            Look::Plain,
            format!(
                " {:>5} {:>5} {:>5} {:>5}",
                rates[0], rates[1], rates[2], rates[3]
            ),
        )
        .and(
            when(queue.now > 0, Look::Waits),
            format!(" {:>5}", count(queue.now)),
        )
        .and(
            when(is_full, Look::Wrong),
            format!(" {:>5}", count(queue.most)),
        )
        .and(
            Look::Plain,
            format!(" {budget:>5} {:>5}", count(now.level(Level::Open).now)),
        )
        .and(
            when(drops > 0.0, Look::Wrong),
            format!(" {:>5}", number(drops)),
        )
        .and(
            Look::Plain,
            format!(
                " {:>5} {:>5} {:>5}",
                shown(latencies.quantile(0.5)),
                shown(latencies.quantile(0.99)),
                shown(longest)
            ),
        )
}

/// Returns the errors of a class since it was opened, if there were any.
fn trouble(class: &ClassSnapshot) -> Option<Line> {
    let kinds = [
        (Count::QueueFull, "queue full"),
        (Count::Malformed, "malformed"),
        (Count::NoConnection, "no connection"),
        (Count::NoBuffers, "no buffers"),
        (Count::SynOverLimit, "SYN over limit"),
        (Count::Refused, "refused"),
        (Count::Retransmissions, "sent again"),
        (Count::Overruns, "periods missed"),
    ];
    let counted = kinds.map(|(kind, word)| (class.count(kind), word));
    let parts: Vec<_> = (counted.into_iter())
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{word} {}", count(n)))
        .collect();
    (!parts.is_empty()).then(|| Line::of(Look::Waits, format!("  in all: {}", parts.join(", "))))
}

/// Formats the scheduling: `f72`.
fn priority(class: &ClassSnapshot) -> String {
    match class.policy {
        Policy::Fifo => format!("f{}", class.priority),
        Policy::RoundRobin => format!("r{}", class.priority),
        Policy::Deadline => "dl".to_owned(),
        Policy::Other => "-".to_owned(),
    }
}

/// Formats the budget: `8/10ms`.
fn processing(class: &ClassSnapshot) -> String {
    match class.bound {
        Some((packets, period)) => {
            let each = format!(
                "{}/{}",
                count(packets),
                time(period.as_nanos() as f64 / 1e3)
            );
            match mode(class.mode) {
                "periodic" => each,
                mode => format!("{mode} {each}"),
            }
        }
        None => mode(class.mode).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use chronorb_rio::class::ClassId;
    use chronorb_rio::plan::{Processing, Reservation};
    use chronorb_rio::status::{Page, PageSearch, find};

    use super::super::view::{Seen, Watch};
    use super::*;

    /// A view without shares of the kernel.
    fn alone(looked: PageSearch) -> Seen {
        Seen {
            looked,
            kernel: Ok(Vec::new()),
        }
    }

    #[test]
    fn a_class_is_a_line_and_another_one_where_something_went_wrong() {
        let page = Page::create("test-0").expect("a page");
        let video = Reservation {
            name: "video".to_owned(),
            policy: Policy::Fifo,
            priority: 70,
            processing: Processing::Periodic {
                period: Duration::from_millis(10),
                budget: 8,
            },
            ..Reservation::default()
        };
        let open = |number, reservation: &Reservation| {
            page.open(ClassId::new(number).expect("there is one"), reservation)
        };
        let video = open(0, &video);
        let _rest = open(1, &Reservation::default());
        video.set(Level::Queue, 9);
        video.set(Level::Queue, 3);
        video.set(Level::BudgetUsed, 8);
        video.set(Level::Open, 2);
        video.add(Count::Overruns, 1);
        video.add(Count::QueueFull, 12);
        video.delivered_after(Duration::from_micros(30), 1);
        let looked = find(Some(process::id())).expect("this process is there");
        let view = Watch::default().look(alone(looked));
        let text: Vec<_> = (lines(&view).iter())
            .map(|line| line.paint(120, false))
            .collect();
        let begins = text.iter().position(|line| line.starts_with("test-0"));
        let begins = begins.expect("the page is shown");
        assert_eq!(
            text[begins + 1..begins + 5],
            [
                "CLASS        PRIO PROCESSING      IN/S BIT/S OUT/S BIT/S QUEUE  MOST BUDGT  CONN DROPS   P50   P99   MAX",
                "video         f70 8/10ms             0     0     0     0     3     9     8     2     0  30us  30us  30us",
                "  in all: queue full 12, periods missed 1",
                "best-effort     - demand             0     0     0     0     0     0     -     0     0     -     -     -",
            ]
        );
    }

    #[test]
    fn what_a_process_calls_its_classes_does_not_reach_the_terminal_as_a_command() {
        let page = Page::create("\x1b[2J").expect("a page");
        let name = "\x1b]0;owned\x07\u{202e}".to_owned();
        let reservation = Reservation {
            name,
            ..Reservation::default()
        };
        let _open = page.open(ClassId::new(0).expect("there is one"), &reservation);
        let looked = find(Some(process::id())).expect("it is there");
        let view = Watch::default().look(alone(looked));
        let painted = lines(&view)
            .iter()
            .map(|line| line.paint(120, false))
            .collect::<String>();
        assert!(painted.contains("owned"), "{painted:?}");
        assert!(
            !painted.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{painted:?}"
        );
    }
}
