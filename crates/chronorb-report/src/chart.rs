//! Charts: series on two axes, drawn as SVG that takes its colours from the page.

use std::fmt::Write;

use crate::axis::{Axis, Frame};
use crate::page::escape;

/// A chart: series on two axes, with a caption and a legend.
///
/// A series without a name belongs to the one before it: it has its colour and, beside bars, its
/// place.
#[derive(Clone, Debug)]
pub struct Chart {
    caption: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    is_stacked: bool,
}

/// The points of one thing that is compared.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    colour: Option<usize>,
    mark: Mark,
    points: Vec<(f64, f64)>,
}

/// The shape that shows points.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// A dashed line through the points.
    Dashes,
    /// A dot at each point.
    Dots,
    /// A ring at each point.
    Rings,
    /// A bar from the axis to each point, or on the bar below it in a stacked chart.
    Bars,
    /// A short stroke at each point.
    Strokes,
    /// A thick line between each two points, at the horizontal place of the first.
    Ranges,
    /// A thick line between each two points, at the height of the first, as in a Gantt chart.
    Spans,
}

/// The colour of what the other series are compared with: a grey.
pub const NEUTRAL: usize = COLOURS;

/// The number of colours that tell series apart. The style sheet of pages has a light and a dark
/// variant of each.
pub const COLOURS: usize = 8;

impl Series {
    /// A series, with the points from left to right.
    #[must_use]
    pub fn new(
        mark: Mark,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter();
        Self {
            name: name.into(),
            colour: None,
            mark,
            points: points
                .filter(|(x, y)| x.is_finite() && y.is_finite())
                .collect(),
        }
    }

    /// A series on an axis of groups: a value for each group that has one.
    #[must_use]
    pub fn of_groups(
        mark: Mark,
        name: impl Into<String>,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        let values = values.into_iter().enumerate();
        let points = values.filter_map(|(group, value)| Some((group as f64, value?)));
        Self::new(mark, name, points)
    }

    /// Chooses a colour by its number, instead of the number of the series.
    #[must_use]
    pub const fn colour(mut self, colour: usize) -> Self {
        self.colour = Some(colour);
        self
    }
}

impl Chart {
    /// A chart without series.
    #[must_use]
    pub fn new(caption: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            caption: caption.into(),
            x,
            y,
            series: Vec::new(),
            is_stacked: false,
        }
    }

    /// Adds series. One without points is left out.
    #[must_use]
    pub fn series(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        let drawn = series.into_iter().filter(|of| !of.points.is_empty());
        self.series.extend(drawn);
        self
    }

    /// Puts the bars of a group on each other.
    #[must_use]
    pub const fn stacked(mut self) -> Self {
        self.is_stacked = true;
        self
    }

    /// Whether the chart has nothing to draw.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Renders the chart as an HTML figure with a legend, or nothing if it is empty.
    #[must_use]
    pub fn html(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut html = String::from("<figure>\n<ul class=\"legend\">");
        for (series, (_, colour)) in self.series.iter().zip(self.places()) {
            if !series.name.is_empty() {
                let dashed = match series.mark {
                    Mark::Dashes => " dashed",
                    _ => "",
                };
                let _ = write!(
                    html,
                    "<li><i class=\"c{colour}{dashed}\"></i>{}</li>",
                    escape(&series.name)
                );
            }
        }
        let _ = writeln!(
            html,
            "</ul>\n<div class=\"wide\">{}</div>\n<figcaption>{}</figcaption>\n</figure>",
            self.svg(),
            escape(&self.caption)
        );
        html
    }

    fn svg(&self) -> String {
        let heights = self.heights();
        let points = || self.series.iter().flat_map(|series| &series.points);
        let has_bars = self.series.iter().any(|of| of.mark == Mark::Bars);
        let frame = Frame::new(
            (&self.x, points().map(|point| point.0)),
            (&self.y, heights.into_iter()),
            has_bars,
        );
        let mut svg = format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\">\n",
            Frame::WIDTH,
            Frame::HEIGHT
        );
        frame.draw(&mut svg);
        let places = self.places();
        let slots = places.iter().filter_map(|(slot, _)| *slot).max();
        let slots = if self.is_stacked {
            1
        } else {
            slots.map_or(1, |last| last + 1)
        };
        let mut stacked: Vec<f64> = Vec::new();
        for (series, (slot, colour)) in self.series.iter().zip(places) {
            let shift = match slot {
                Some(_) if self.is_stacked => frame.slot(0, 1),
                Some(slot) => frame.slot(slot, slots),
                None => (0.0, 0.0),
            };
            let _ = write!(svg, "<g class=\"c{colour}\">");
            self.draw(&mut svg, series, &frame, shift, &mut stacked);
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>");
        svg
    }

    /// Returns the place within a group and the colour of each series. Lines have no place.
    fn places(&self) -> Vec<(Option<usize>, usize)> {
        let mut slots = 0;
        let mut names = 0;
        let mut colour = 0;
        let place = |series: &Series| {
            let is_line = matches!(series.mark, Mark::Line | Mark::Dashes | Mark::Spans);
            if !series.name.is_empty() || names == 0 {
                names += 1;
                slots += usize::from(!is_line);
                colour = series.colour.unwrap_or((names - 1) % COLOURS);
            }
            let slot = (!is_line).then(|| slots.saturating_sub(1));
            (slot, series.colour.unwrap_or(colour))
        };
        self.series.iter().map(place).collect()
    }

    /// Returns the values on the vertical axis; those of stacked bars are sums.
    fn heights(&self) -> Vec<f64> {
        let mut heights: Vec<f64> = Vec::new();
        let mut sums: Vec<f64> = Vec::new();
        for series in &self.series {
            for (x, y) in &series.points {
                heights.push(if self.is_stacked && series.mark == Mark::Bars {
                    stack(&mut sums, *x, *y).1
                } else {
                    *y
                });
            }
        }
        heights
    }

    fn draw(
        &self,
        svg: &mut String,
        series: &Series,
        frame: &Frame<'_>,
        (shift, width): (f64, f64),
        stacked: &mut Vec<f64>,
    ) {
        let at = |(x, y): &(f64, f64)| (frame.x(*x) + shift, frame.y(*y));
        match series.mark {
            Mark::Line | Mark::Dashes => {
                let points = series.points.iter().map(at);
                let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let dashes = match series.mark {
                    Mark::Dashes => " stroke-dasharray=\"6 4\"",
                    _ => "",
                };
                let _ = write!(svg, "<polyline points=\"{}\"{dashes}/>", points.join(" "));
                if (3..=MOST_DOTS_ON_A_LINE).contains(&series.points.len()) {
                    self.dots(svg, series, at, "r=\"3\"");
                }
            }
            Mark::Dots => self.dots(svg, series, at, "r=\"3.5\" class=\"dot\""),
            Mark::Rings => self.dots(svg, series, at, "r=\"4\" class=\"ring\""),
            Mark::Strokes => {
                for (x, y) in series.points.iter().map(at) {
                    let half = width.min(24.0) * 0.4;
                    let _ = write!(
                        svg,
                        "<path d=\"M{:.1} {y:.1}h{:.1}\"/>",
                        x - half,
                        2.0 * half
                    );
                }
            }
            Mark::Ranges => {
                for pair in series.points.chunks_exact(2) {
                    let ((x, from), (_, to)) = (at(&pair[0]), at(&pair[1]));
                    let _ = write!(
                        svg,
                        "<path class=\"range\" d=\"M{x:.1} {from:.1}V{to:.1}\"/>"
                    );
                }
            }
            Mark::Spans => {
                for pair in series.points.chunks_exact(2) {
                    let ((from, y), (to, _)) = (at(&pair[0]), at(&pair[1]));
                    let _ = write!(
                        svg,
                        "<path class=\"span\" d=\"M{from:.2} {y:.1}H{to:.2}\"/>"
                    );
                }
            }
            Mark::Bars => {
                for (x, y) in &series.points {
                    let (from, to) = if self.is_stacked {
                        stack(stacked, *x, *y)
                    } else {
                        (f64::NEG_INFINITY, *y)
                    };
                    let (centre, top) = (frame.x(*x) + shift, frame.y(to));
                    let bottom = frame.y(from);
                    let value = self.y.unit().mark(*y);
                    let _ = write!(
                        svg,
                        "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                         <title>{} {value}</title></rect>",
                        centre - width * 0.46,
                        width * 0.92,
                        (bottom - top).max(0.0),
                        escape(&series.name),
                    );
                    let has_room = width > 6.5 * value.chars().count() as f64;
                    let is_part = self.is_stacked && bottom - top < 14.0;
                    if has_room && !is_part {
                        let (class, line) = if self.is_stacked {
                            (" class=\"part\"", (top + bottom) / 2.0 + 4.0)
                        } else {
                            ("", top - 4.0)
                        };
                        let _ = write!(
                            svg,
                            "<text x=\"{centre:.1}\" y=\"{line:.1}\"{class}>{value}</text>"
                        );
                    }
                }
            }
        }
    }

    fn dots(
        &self,
        svg: &mut String,
        series: &Series,
        at: impl Fn(&(f64, f64)) -> (f64, f64),
        style: &str,
    ) {
        for point in &series.points {
            let (x, y) = at(point);
            let _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" {style}><title>{}: {}</title></circle>",
                escape(&self.x.value(point.0)),
                self.y.unit().format(point.1)
            );
        }
    }
}

/// Puts a part on those of its group, and returns its beginning and its end.
fn stack(sums: &mut Vec<f64>, group: f64, height: f64) -> (f64, f64) {
    let group = group as usize;
    if sums.len() <= group {
        sums.resize(group + 1, 0.0);
    }
    let from = sums[group];
    sums[group] += height;
    (from, sums[group])
}

/// The number of dots that fit on a line without touching.
const MOST_DOTS_ON_A_LINE: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Unit;

    fn groups() -> Axis {
        Axis::groups("name", ["one & all".to_owned(), "other".to_owned()])
    }

    #[test]
    fn series_axes_and_values_are_named() {
        let chart = Chart::new("Caption", groups(), Axis::log("time", Unit::Time)).series([
            Series::of_groups(Mark::Bars, "first", [Some(10.0), Some(2_000.0)]),
            Series::of_groups(Mark::Rings, "", [Some(20.0), None]),
            Series::of_groups(Mark::Bars, "second", [None, Some(0.5)]),
        ]);
        let html = chart.html();
        for text in [
            "one &amp; all",
            "other",
            "name",
            "time",
            "first",
            "second",
            "1 ms",
            "2 ms",
            "Caption",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
        assert_eq!(html.matches("<rect").count(), 3);
        assert_eq!(html.matches("<li>").count(), 2);
        assert_eq!(chart.places(), [(Some(0), 0), (Some(0), 0), (Some(1), 1)]);
    }

    #[test]
    fn parts_of_a_stack_stand_on_each_other() {
        let chart = Chart::new("", groups(), Axis::linear("share", Unit::Percent))
            .stacked()
            .series([
                Series::of_groups(Mark::Bars, "a", [Some(40.0), Some(30.0)]),
                Series::of_groups(Mark::Bars, "b", [Some(60.0), Some(70.0)]),
            ]);
        assert_eq!(chart.heights(), [40.0, 30.0, 100.0, 100.0]);
    }

    #[test]
    fn a_chart_without_points_is_left_out() {
        let none: [Option<f64>; 2] = [None, Some(f64::NAN)];
        let chart = Chart::new("", groups(), Axis::linear("", Unit::Count));
        let chart = chart.series([Series::of_groups(Mark::Dots, "none", none)]);
        assert!(chart.is_empty() && chart.html().is_empty());
    }

    #[test]
    fn lines_are_drawn_with_their_points() {
        let percentiles = Axis::percentiles("percentile");
        let points = [(0.0, 5.0), (1.0, 7.0), (2.0, 900.0)];
        let html = Chart::new("", percentiles, Axis::log("latency", Unit::Time))
            .series([
                Series::new(Mark::Line, "line", points),
                Series::new(Mark::Dashes, "dashed", points).colour(NEUTRAL),
            ])
            .html();
        assert_eq!(html.matches("<polyline").count(), 2);
        assert_eq!(html.matches("<circle").count(), 6);
        assert!(html.contains("stroke-dasharray") && html.contains("<i class=\"c8 dashed\">"));
        assert!(html.contains(">99<") && html.contains("1 ms"), "{html}");
    }
}
