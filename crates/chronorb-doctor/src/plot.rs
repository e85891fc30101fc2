//! Plots of the wake-ups by lateness and by time.

use chronorb_report::canvas::{Axis, BLUE, LATENCY, THIN, chart, decades, draw, exponent, largest};
use chronorb_report::{PlotError, units};
use plotters::prelude::*;

use crate::text::bound;
use crate::wake_ups::{WakeUps, from_us};

/// Draws the number of wake-ups by lateness.
pub(crate) fn by_lateness(wake_ups: &WakeUps) -> Result<String, PlotError> {
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
            (LATE, &|power| {
                bound(from_us(power.max(0.0).round() as usize))
            }),
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

/// Draws the latest wake-ups of all CPUs over time.
pub(crate) fn over_time(wake_ups: &WakeUps) -> Result<String, PlotError> {
    let all = wake_ups.all();
    let points = all.points().iter().map(|point| {
        let us = point.latency_ns as f64 / 1e3;
        (point.at_ns as f64 / 1e9, exponent(us))
    });
    let seconds = wake_ups.length.as_secs_f64();
    draw("wake-ups-over-time", |area| {
        let mut chart = chart(
            area,
            (0.0, seconds),
            decades(points.clone().map(|point| point.1)),
            ("time since the start", &|seconds| format!("{seconds} s")),
            (LATE, LATENCY.1),
        )?;
        let thin = BLUE.mix(0.35).stroke_width(THIN);
        chart.draw_series(LineSeries::new(points.clone(), thin))?;
        chart.draw_series(points.map(|point| Circle::new(point, 2, BLUE.filled())))?;
        Ok(())
    })
}

/// The foot of the bars, a decade below a single wake-up, so that its bar is visible.
const GROUND: f64 = -1.0;
const NUMBER: Axis<'static> = ("wake-ups (logarithmic)", &|exponent| {
    if *exponent < 0.0 {
        return "0".to_owned();
    }
    units::count(10_f64.powf(*exponent).round() as u64)
});
const LATE: &str = "late by (logarithmic)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake_ups::tests::wake_ups;

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
