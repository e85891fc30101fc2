//! The plots.

use plotters::prelude::*;

use super::claims::free;
use super::class::Class;
use super::load::Load;
use super::outcome::{Client, Mode, Outcome, Side};
use super::published::PUBLISHED;
use super::switch::Switching;
use super::table::IN_PAPERS;
use crate::bench::Placement;
use crate::report::canvas::{
    Axis, FONT, TEXT, TEXT_SIZE, chart, decades, draw, largest, legend, with_room_above,
};
use crate::report::plot::exponent;
use crate::report::{COLOURS, LATENCY, Line, PlotError, lines};
use crate::units;

/// The p99 of the high class, by class and load; a dot at the longest call.
pub(super) fn by_class(outcome: &Outcome) -> Result<String, PlotError> {
    let series = Load::ALL
        .into_iter()
        .zip(COLOURS)
        .map(|(load, colour)| Series {
            name: load.name().to_owned(),
            colour,
            bars: Class::ALL
                .into_iter()
                .map(|class| {
                    let row = outcome.class(free(outcome, class, load), Client::High)?;
                    Some(Bar {
                        us: row.p99_of_rounds_us,
                        dot_us: Some(row.latency.max_us),
                    })
                })
                .collect(),
        });
    let classes = Class::ALL.map(|class| class.name().to_owned());
    bars(
        "p99-by-class",
        &classes,
        &series.collect::<Vec<_>>(),
        "scheduling class",
    )
}

/// A context switch, here and on the papers' systems.
pub(super) fn switches(outcome: &Outcome) -> Result<String, PlotError> {
    let bar = |us| Bar { us, dot_us: None };
    let ours = Series {
        name: "this Linux".to_owned(),
        colour: COLOURS[0],
        bars: IN_PAPERS
            .map(|switching| Some(bar(outcome.switch(switching, 1)?.mean_us)))
            .to_vec(),
    };
    let theirs = PUBLISHED
        .iter()
        .zip(&COLOURS[1..])
        .map(|(of, colour)| Series {
            name: of.system.to_owned(),
            colour: *colour,
            bars: IN_PAPERS
                .map(|switching| of.of(switching).map(|(mean, _)| bar(mean)))
                .to_vec(),
        });
    let series: Vec<_> = [ours].into_iter().chain(theirs).collect();
    let ways = IN_PAPERS.map(|switching| match switching {
        Switching::Semaphore | Switching::PiLock => "synchronisation".to_owned(),
        other => other.name().to_owned(),
    });
    bars(
        "context-switch",
        &ways,
        &series,
        "how two threads take turns, on one CPU",
    )
}

/// Context switches of a request by the number of clients.
pub(super) fn requests(outcome: &Outcome) -> Result<String, PlotError> {
    let places = [
        (Placement::SameCpu, "one CPU"),
        (Placement::AcrossCpus, "pinned apart"),
    ];
    let drawn: Vec<_> = places
        .into_iter()
        .flat_map(|place| [Side::Client, Side::Server].map(|side| (place, side)))
        .zip(COLOURS)
        .filter_map(|(((placement, name), side), colour)| {
            let rows = outcome.requests.iter();
            let rows = rows.filter(|row| row.placement == placement);
            let points: Vec<_> = rows
                .map(|row| {
                    let switches = match side {
                        Side::Client => row.client_switches_per_request,
                        Side::Server => row.server_switches_per_request,
                    };
                    (f64::from(row.clients), switches)
                })
                .collect();
            let line = Line {
                name: format!("{}, {name}", side_name(side)),
                colour,
                is_dashed: side == Side::Server,
                points,
            };
            (!line.points.is_empty()).then_some(line)
        })
        .collect();
    let points = || drawn.iter().flat_map(|line| line.points.iter().copied());
    let most = largest(points().map(|(clients, _)| clients)).max(1.0);
    let top = largest(points().map(|(_, switches)| switches))
        .ceil()
        .max(1.0);
    lines(
        "switches-per-request",
        &drawn,
        (0.0, most),
        (0.0, top + 1.0),
        ("clients that call at once", &|clients| {
            format!("{clients:.0}")
        }),
        ("context switches for each request", &|n| format!("{n:.0}")),
    )
}

/// What is left of the processors of client and server, by the rate of calls.
pub(super) fn scavengers(outcome: &Outcome) -> Result<String, PlotError> {
    let line = |side: Side, is_waking: bool, name: &str, colour| Line {
        name: name.to_owned(),
        colour,
        is_dashed: is_waking,
        points: outcome
            .scavengers
            .iter()
            .filter(|row| row.side == side)
            .map(|row| {
                let left = match is_waking {
                    true => row.left_by_waking_percent,
                    false => row.left_percent,
                };
                // The axis has a mark for each ten.
                (f64::from(row.rate_hz) / 1e3, left / 10.0)
            })
            .collect(),
    };
    let drawn = [
        line(Side::Client, false, "client, calling", COLOURS[0]),
        line(Side::Client, true, "client, only waking up", COLOURS[2]),
        line(Side::Server, false, "server", COLOURS[1]),
    ];
    let points = || drawn.iter().flat_map(|line| line.points.iter().copied());
    let most = largest(points().map(|(_, tens)| tens)).max(10.0).ceil();
    let right = largest(points().map(|(thousands, _)| thousands))
        .ceil()
        .max(1.0);
    lines(
        "left-to-scavengers",
        &drawn,
        (0.0, right),
        // There is room for the legend above.
        (0.0, most + 4.0),
        ("calls a second", &|thousands| {
            format!("{:.0}", thousands * 1e3)
        }),
        ("CPU left to a scavenger", &|tens| match *tens <= most {
            true => format!("{:.0} %", tens * 10.0),
            false => String::new(),
        }),
    )
}

/// The means of four clients under load; a dot at the mean and its jitter together.
pub(super) fn rates(outcome: &Outcome) -> Result<String, PlotError> {
    let shown = [
        (Class::Fifo, Mode::Scaled, "SCHED_FIFO, loaded"),
        (Class::Other, Mode::Scaled, "SCHED_OTHER, loaded"),
        (Class::Fifo, Mode::Paper, "SCHED_FIFO, idle"),
        (Class::Other, Mode::Paper, "SCHED_OTHER, idle"),
    ];
    let series = shown
        .into_iter()
        .zip(COLOURS)
        .filter_map(|((class, mode, name), colour)| {
            let four = outcome.four(class, mode)?;
            let bars = four.map(|row| {
                Some(Bar {
                    us: row.latency.mean_us,
                    dot_us: Some(row.latency.mean_us + row.latency.jitter_us),
                })
            });
            Some(Series {
                name: name.to_owned(),
                colour,
                bars: bars.to_vec(),
            })
        });
    let clients = [1, 2, 3, 4].map(|client| format!("C{client}"));
    let series: Vec<_> = series.collect();
    bars(
        "four-rates",
        &clients,
        &series,
        "the client, the most urgent first",
    )
}

/// Bars of one kind, one in each group.
struct Series {
    name: String,
    colour: RGBColor,
    bars: Vec<Option<Bar>>,
}

/// A time, and another one above it.
#[derive(Clone, Copy)]
struct Bar {
    us: f64,
    dot_us: Option<f64>,
}

/// Draws groups of bars on a logarithmic scale, each with its time.
fn bars(
    name: &'static str,
    groups: &[String],
    series: &[Series],
    x: &str,
) -> Result<String, PlotError> {
    let heights = series
        .iter()
        .flat_map(|series| series.bars.iter().flatten())
        .flat_map(|bar| [Some(bar.us), bar.dot_us].into_iter().flatten())
        .map(exponent);
    let (bottom, top) = with_room_above(decades(heights));
    let width = ROOM / series.len().max(1) as f64;
    let label = |place: &f64| {
        let near = place.round();
        let is_whole = (place - near).abs() < 1e-6 && near >= 0.0;
        let group = groups.get(near as usize).filter(|_| is_whole);
        group.cloned().unwrap_or_default()
    };
    let y: Axis<'_> = ("time (logarithmic)", LATENCY.1);
    draw(name, |area| {
        let sides = (-0.6, groups.len() as f64 - 0.4);
        let mut chart = chart(area, sides, (bottom, top), (x, &label), y)?;
        for (at, Series { name, colour, bars }) in series.iter().enumerate() {
            let left = |group: usize| group as f64 - ROOM / 2.0 + at as f64 * width;
            let drawn = || {
                let bars = bars.iter().enumerate();
                bars.filter_map(|(group, bar)| Some((left(group), (*bar)?)))
            };
            let bodies = drawn().map(|(left, bar)| {
                let corners = [(left, bottom), (left + width * 0.92, exponent(bar.us))];
                Rectangle::new(corners, colour.filled())
            });
            chart
                .draw_series(bodies)?
                .label(name)
                .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 22, y + 5)], colour.filled()));
            let dots = drawn().filter_map(|(left, bar)| {
                let at = (left + width * 0.46, exponent(bar.dot_us?));
                Some(Circle::new(at, 4, colour.stroke_width(2)))
            });
            chart.draw_series(dots)?;
            let text = (FONT, TEXT_SIZE - 3).into_font().color(&TEXT);
            chart.draw_series(drawn().map(|(left, bar)| {
                // A ring may be just above the bar.
                let foot = match bar.dot_us {
                    Some(_) => bottom,
                    None => exponent(bar.us),
                };
                let at = (left + width * 0.04, foot + (top - bottom) * 0.045);
                Text::new(short(bar.us), at, text.clone())
            }))?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperRight)
    })
}

/// A time at a bar, without a space that a narrow one has no room for.
fn short(us: f64) -> String {
    units::time(us).replace(' ', "")
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Of a group, where groups are 1 apart.
const ROOM: f64 = 0.84;

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    fn assert_shows(svg: &str, parts: &[&str]) {
        for part in parts {
            assert!(svg.contains(part), "{part}");
        }
        assert!(svg.contains("currentColor"));
    }

    #[test]
    fn plots_name_their_axes_units_and_series() {
        let outcome = outcome();
        let classes = Class::ALL.map(Class::name);
        let svg = by_class(&outcome).unwrap();
        assert_shows(&svg, &classes);
        assert_shows(
            &svg,
            &["hogs and I/O", "time (logarithmic)", "1 ms", "2.40ms"],
        );
        let svg = switches(&outcome).unwrap();
        let systems = ["this Linux", "LynxOS", "synchronisation", "128µs", "0.75µs"];
        assert_shows(&svg, &systems);
        let svg = requests(&outcome).unwrap();
        assert_shows(
            &svg,
            &["server, one CPU", "clients that call at once", "50"],
        );
        assert!(!svg.contains("pinned apart"), "it was not measured");
        let svg = scavengers(&outcome).unwrap();
        assert_shows(
            &svg,
            &["client, only waking up", "100 %", "4000", "calls a second"],
        );
        assert!(!svg.contains("110 %"));
        let svg = rates(&outcome).unwrap();
        assert_shows(
            &svg,
            &["SCHED_OTHER, loaded", "C4", "the most urgent first"],
        );
    }

    #[test]
    fn a_bar_that_was_not_measured_is_left_out() {
        let mut outcome = outcome();
        let bars = |outcome: &Outcome| by_class(outcome).unwrap().matches("<rect").count();
        let all = bars(&outcome);
        let rows = &mut outcome.classes;
        rows.retain(|row| row.case.class != Class::Deadline);
        assert_eq!(bars(&outcome), all - Load::ALL.len());
        outcome.classes.clear();
        assert!(by_class(&outcome).is_ok());
    }
}
