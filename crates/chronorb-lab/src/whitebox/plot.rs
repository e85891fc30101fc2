//! The plot: lock operations for each request, ours beside the papers'.

use plotters::prelude::*;

use super::outcome::Outcome;
use super::published::PUBLISHED;
use super::table::{beside_the_papers, number};
use crate::report::PlotError;
use crate::report::canvas::{Axis, BLUE, FONT, ORANGE, TEXT, TEXT_SIZE, chart, draw, legend};

/// Lock operations of client and server for each two-way request, as bars on a logarithmic scale.
pub(super) fn lock_operations(outcome: &Outcome) -> Result<String, PlotError> {
    let ours = beside_the_papers(outcome).map(|(name, counts)| {
        let name = name.trim_start_matches("chronorb, ");
        (name.to_owned(), counts)
    });
    let published = PUBLISHED.iter().map(|of| {
        let counts = [of.client, of.server].map(|count| Some(f64::from(count)));
        (of.orb.to_owned(), counts)
    });
    let orbs: Vec<_> = ours.into_iter().chain(published).collect();
    let names = |place: &f64| {
        let place = place.round();
        let at = (place >= 0.0).then_some(place as usize);
        at.and_then(|at| orbs.get(at))
            .map_or_else(String::new, |(name, _)| name.clone())
    };

    draw("lock-operations", |area| {
        let mut chart = chart(
            area,
            (-1.0, orbs.len() as f64),
            (FLOOR, TOP),
            ("chronorb, by strategy; and the ORBs of 1998", &names),
            OPERATIONS,
        )?;
        for (side, (name, colour)) in [("client", BLUE), ("server", ORANGE)]
            .into_iter()
            .enumerate()
        {
            let counted = orbs.iter().enumerate().filter_map(|(at, (_, counts))| {
                let left = at as f64 + (side as f64 - 1.0) * WIDTH;
                Some((left, counts[side]?))
            });
            let bar = |(left, count): (f64, f64)| {
                let corners = [(left, FLOOR), (left + WIDTH, height(count))];
                Rectangle::new(corners, colour.filled())
            };
            chart
                .draw_series(counted.clone().map(bar))?
                .label(name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 22, y + 5)], colour.filled())
                });
            let text = (FONT, TEXT_SIZE).into_font().color(&TEXT);
            chart.draw_series(counted.map(|(left, count)| {
                let at = (left + WIDTH / 8.0, height(count) + 0.2);
                Text::new(number(count), at, text.clone())
            }))?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// How high a bar is; none is as high as the axis.
fn height(count: f64) -> f64 {
    match count > 0.0 {
        true => count.log10().max(FLOOR),
        false => FLOOR,
    }
}

/// The vertical axis, from a tenth of an operation to ten thousand.
const OPERATIONS: Axis<'static> = ("lock operations (logarithmic)", &|exponent| {
    10_f64.powf(exponent.round()).to_string()
});
const FLOOR: f64 = -1.0;
const TOP: f64 = 4.0;
/// Of a bar, where orbs are 1 apart.
const WIDTH: f64 = 0.36;

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_plot_names_its_axes_orbs_and_sides() {
        let svg = lock_operations(&outcome()).unwrap();
        for text in [
            "Leader/Followers",
            "Half-Sync/Half-Async",
            "MT-Orbix",
            "599",
            "lock operations (logarithmic)",
            "1000",
            "client",
            "server",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn none_has_no_height_and_more_is_higher() {
        assert_eq!(height(0.0), FLOOR);
        assert!(height(41.0) < height(100.0));
    }
}
