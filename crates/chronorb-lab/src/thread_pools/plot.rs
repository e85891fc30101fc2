//! The plots: the improvement as a map and as lines, and what all requests took.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Strategy;
use super::case::Cell;
use super::outcome::{Outcome, percent};
use super::page::short;
use crate::report::canvas::{BLUE, FONT, ORANGE, TEXT, TEXT_SIZE, chart, draw};
use crate::report::{COLOURS, Line, PlotError, lines};

/// The improvement in each cell: the paper's surface, from above.
pub(super) fn improvement_map(outcome: &Outcome) -> Result<String, PlotError> {
    let plan = &outcome.plan;
    let cells = outcome.improvements();
    let strongest = cells.iter().map(|(_, i)| i.abs()).fold(1.0, f64::max);
    let label_of = |all: &[u32], place: f64, unit: &str| {
        let number = whole(place).and_then(|index| all.get(index));
        number.map_or_else(String::new, |number| format!("{number}{unit}"))
    };
    draw("improvement-map", |area| {
        let mut chart = chart(
            area,
            (-0.5, plan.work_us.len() as f64 - 0.5),
            (-0.5, plan.threads.len() as f64 - 0.5),
            ("work of a request", &|place| {
                label_of(&plan.work_us, *place, " µs")
            }),
            ("threads that serve", &|place| {
                label_of(&plan.threads, *place, "")
            }),
        )?;
        let placed = cells.iter().filter_map(|(cell, improvement)| {
            let x = plan.work_us.iter().position(|work| *work == cell.work_us)?;
            let y = plan.threads.iter().position(|n| *n == cell.threads)?;
            Some(((x as f64, y as f64), *improvement))
        });
        chart.draw_series(placed.clone().map(|((x, y), improvement)| {
            let corners = [(x - 0.49, y - 0.48), (x + 0.49, y + 0.48)];
            Rectangle::new(corners, colour(improvement, strongest).filled())
        }))?;
        let text = (FONT, TEXT_SIZE)
            .into_font()
            .color(&TEXT)
            .pos(Pos::new(HPos::Center, VPos::Center));
        chart.draw_series(
            placed.map(|(at, improvement)| Text::new(percent(improvement), at, text.clone())),
        )?;
        Ok(())
    })
}

/// The improvement by the work of a request, a line for each number of threads.
pub(super) fn improvement_by_work(outcome: &Outcome) -> Result<String, PlotError> {
    let plan = &outcome.plan;
    let improvements = outcome.improvements();
    let all = || improvements.iter().map(|(_, improvement)| *improvement);
    let scale = Scale::of(all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let drawn: Vec<Line> = plan
        .threads
        .iter()
        .enumerate()
        .map(|(index, &threads)| Line {
            name: match threads {
                1 => "1 thread".to_owned(),
                threads => format!("{threads} threads"),
            },
            colour: COLOURS[index % COLOURS.len()],
            is_dashed: index >= COLOURS.len(),
            points: along(&plan.work_us, |work_us| {
                let improvement = outcome.improvement(Cell { threads, work_us });
                improvement.map(|improvement| scale.height(improvement))
            }),
        })
        .collect();
    lines(
        "improvement-by-work",
        &drawn,
        (0.0, (plan.work_us.len() as f64 - 1.0).max(1.0)),
        scale.with_room_above(),
        ("work of a request", &|place| {
            let work = whole(*place).and_then(|index| plan.work_us.get(index));
            work.map_or_else(String::new, |work| format!("{work} µs"))
        }),
        ("improvement", &|height| {
            format!("{:.0} %", scale.value(*height))
        }),
    )
}

/// What all requests took by the number of threads, for the least, a middle and the greatest amount of work.
pub(super) fn elapsed_by_threads(outcome: &Outcome) -> Result<String, PlotError> {
    let plan = &outcome.plan;
    let seconds = |cell, strategy| Some(outcome.row(cell, strategy)?.elapsed_ms / 1e3);
    let rows = outcome.rows();
    let greatest = rows.iter().map(|row| row.elapsed_ms / 1e3);
    let scale = Scale::of(0.0, greatest.fold(0.0, f64::max));
    let works = match plan.work_us.as_slice() {
        [first, middle @ .., last] => {
            let middle = middle.get(middle.len() / 2);
            [Some(first), middle, Some(last)]
                .into_iter()
                .flatten()
                .collect()
        }
        few => few.iter().collect::<Vec<_>>(),
    };
    let drawn: Vec<Line> = works
        .into_iter()
        .enumerate()
        .flat_map(|(index, &work_us)| {
            Strategy::ALL.map(|strategy| Line {
                name: format!("{}, {work_us} µs of work", short(strategy)),
                colour: COLOURS[index],
                is_dashed: strategy == Strategy::HalfSyncHalfAsync,
                points: along(&plan.threads, |threads| {
                    let elapsed = seconds(Cell { threads, work_us }, strategy);
                    elapsed.map(|elapsed| scale.height(elapsed))
                }),
            })
        })
        .collect();
    lines(
        "elapsed-by-threads",
        &drawn,
        (0.0, (plan.threads.len() as f64 - 1.0).max(1.0)),
        scale.with_room_above(),
        ("threads that serve", &|place| {
            let threads = whole(*place).and_then(|index| plan.threads.get(index));
            threads.map_or_else(String::new, u32::to_string)
        }),
        ("time for all requests", &|height| {
            // Short runs take less than a second.
            let digits = if scale.step < 1.0 { 2 } else { 0 };
            format!("{:.digits$} s", scale.value(*height))
        }),
    )
}

/// A linear axis whose marks are round: one at each whole height.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// From one mark to the next.
    step: f64,
    bottom: f64,
    top: f64,
}

impl Scale {
    fn of(least: f64, greatest: f64) -> Self {
        let rough = ((greatest - least) / MARKS).max(0.01);
        let decade = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = steps.into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * decade);
        Self {
            step,
            bottom: (least / step).floor(),
            top: (greatest / step).ceil().max((least / step).floor() + 1.0),
        }
    }

    fn height(self, value: f64) -> f64 {
        value / self.step
    }

    fn value(self, height: f64) -> f64 {
        // No mark is at minus zero.
        height.round() * self.step + 0.0
    }

    /// As much again for the legend as it takes.
    fn with_room_above(self) -> (f64, f64) {
        let room = ((self.top - self.bottom) * 0.6).ceil();
        (self.bottom, self.top + room)
    }
}

/// The points of a line: the first number at 0, and so on.
fn along(numbers: &[u32], height: impl Fn(u32) -> Option<f64>) -> Vec<(f64, f64)> {
    let numbered = numbers.iter().enumerate();
    numbered
        .filter_map(|(index, number)| Some((index as f64, height(*number)?)))
        .collect()
}

/// Where a mark is at a whole place.
fn whole(place: f64) -> Option<usize> {
    let index = place.round();
    ((place - index).abs() < 1e-6 && index >= 0.0).then_some(index as usize)
}

/// Stronger for more; what is behind it shows through, so that text can be read on light and on dark.
fn colour(improvement: f64, strongest: f64) -> RGBAColor {
    let strength = 0.08 + 0.62 * (improvement.abs() / strongest).min(1.0);
    match improvement > 0.0 {
        true => BLUE.mix(strength),
        false => ORANGE.mix(strength),
    }
}

/// About how many marks an axis has.
const MARKS: f64 = 6.0;

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn the_map_has_a_value_in_each_cell_and_names_its_axes() {
        let svg = improvement_map(&outcome(|cell| f64::from(cell.threads))).unwrap();
        assert_eq!(svg.matches(" %").count(), 30);
        for text in ["+10 %", "+0.9 %", "threads that serve", "75 µs"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn lines_are_named_with_units() {
        let outcome = outcome(|cell| 7.0 - f64::from(cell.threads));
        let by_work = improvement_by_work(&outcome).unwrap();
        for text in ["1 thread", "6 threads", "50 µs", "20 %", "improvement"] {
            assert!(by_work.contains(text), "{text}");
        }
        let elapsed = elapsed_by_threads(&outcome).unwrap();
        for text in [
            "L/F, 0 µs of work",
            "HS/HA, 100 µs of work",
            "12 s",
            "time for all requests",
        ] {
            assert!(elapsed.contains(text), "{text}");
        }
    }

    #[test]
    fn ahead_and_behind_have_colours_of_their_own_and_more_is_stronger() {
        let [little, much, behind] = [1.0, 50.0, -50.0].map(|of| colour(of, 50.0));
        assert!(little.3 < much.3);
        assert_eq!((much.0, much.1, much.2), (BLUE.0, BLUE.1, BLUE.2));
        assert_eq!(
            (behind.0, behind.1, behind.2),
            (ORANGE.0, ORANGE.1, ORANGE.2)
        );
    }

    #[test]
    fn marks_are_round_and_hold_all() {
        let scale = Scale::of(-3.0, 61.0);
        assert_eq!(scale.step, 20.0);
        assert_eq!((scale.bottom, scale.top), (-1.0, 4.0));
        assert_eq!(scale.value(2.0), 40.0);
        let nothing = Scale::of(0.0, 0.0);
        assert!(nothing.top > nothing.bottom);
    }
}
