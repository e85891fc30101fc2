//! The plots: how many wake-ups were how late, and when.

use plotters::prelude::*;

use super::text::bound;
use super::wake_ups::WakeUps;
use crate::report::canvas::{Axis, BLUE, THIN, chart, decades, draw, largest};
use crate::report::{LATENCY, PlotError, course};
use crate::units;

/// The number of wake-ups by lateness.
pub(super) fn by_lateness(wake_ups: &WakeUps) -> Result<String, PlotError> {
    let counts = wake_ups.all().by_powers_of_two();
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let bars: Vec<_> = (counts.iter().enumerate().skip(first))
        .filter(|(_, count)| **count > 0)
        .map(|(power, count)| (power as f64, (*count as f64).log10()))
        .collect();
    let right = counts.len().max(first + 1) as f64;
    let top = largest(bars.iter().map(|bar| bar.1)).ceil().max(1.0);

    draw("wake-ups-by-lateness", |area| {
        let mut chart = chart(
            area,
            (first as f64, right),
            (GROUND, top),
            ("late by (logarithmic)", &|power| boundary(*power)),
            NUMBER,
        )?;
        chart.draw_series(bars.iter().map(|(power, height)| {
            let mut bar = Rectangle::new([(*power, GROUND), (power + 1.0, *height)], BLUE.filled());
            bar.set_margin(0, 0, 2, 2);
            bar
        }))?;
        Ok(())
    })
}

/// The latest wake-ups of all CPUs over time.
pub(super) fn over_time(wake_ups: &WakeUps) -> Result<String, PlotError> {
    let points = course(&wake_ups.all());
    let seconds = wake_ups.length.as_secs_f64();
    draw("wake-ups-over-time", |area| {
        let mut chart = chart(
            area,
            (0.0, seconds),
            decades(points.iter().map(|point| point.1)),
            ("time since the start", &|seconds| format!("{seconds} s")),
            (LATE, LATENCY.1),
        )?;
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            BLUE.mix(0.35).stroke_width(THIN),
        ))?;
        let circles = points
            .iter()
            .map(|point| Circle::new(*point, 2, BLUE.filled()));
        chart.draw_series(circles)?;
        Ok(())
    })
}

/// Where bars stand: a decade below a single wake-up, so that it is seen.
const GROUND: f64 = -1.0;
const NUMBER: Axis<'static> = ("wake-ups (logarithmic)", &|exponent| {
    if *exponent < 0.0 {
        return "0".to_owned();
    }
    units::count(10_f64.powf(*exponent).round() as u64)
});
const LATE: &str = "late by (logarithmic)";

/// The lower bound of a power of two.
fn boundary(power: f64) -> String {
    bound(super::wake_ups::from_us(power.max(0.0).round() as usize))
}

#[cfg(test)]
mod tests {
    use super::super::wake_ups::tests::wake_ups;
    use super::*;

    #[test]
    fn plots_name_their_axes_and_units() {
        let svg = by_lateness(&wake_ups()).unwrap();
        for text in ["late by", "wake-ups", "8 µs", "2 ms", "1\u{a0}000"] {
            assert!(svg.contains(text), "{text}");
        }
        let svg = over_time(&wake_ups()).unwrap();
        for text in ["time since the start", "1 s", "late by", "10 µs"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn a_measurement_without_wake_ups_can_be_drawn() {
        let mut wake_ups = wake_ups();
        wake_ups.cpus.clear();
        assert!(by_lateness(&wake_ups).is_ok());
        assert!(over_time(&wake_ups).is_ok());
    }
}
