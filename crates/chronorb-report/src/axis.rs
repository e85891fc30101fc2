//! The axes of charts: scales, their marks, and the frame that they make.

use std::fmt::Write;

use crate::page::escape;
use crate::units::Unit;

/// An axis of a chart.
#[derive(Clone, Debug)]
pub struct Axis {
    name: String,
    scale: Scale,
    unit: Unit,
}

#[derive(Clone, Debug)]
enum Scale {
    /// From 0, or the least value if that is less.
    Linear,
    /// Whole decades.
    Logarithmic,
    /// Numbers of nines: 0 is the minimum, 1 is 90 %, 2 is 99 %.
    Percentiles,
    /// A place for each name.
    Groups(Vec<String>),
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn linear(name: impl Into<String>, unit: Unit) -> Self {
        Self::of(name, Scale::Linear, unit)
    }

    /// A logarithmic axis. Values that are not positive stand at its end.
    #[must_use]
    pub fn log(name: impl Into<String>, unit: Unit) -> Self {
        Self::of(name, Scale::Logarithmic, unit)
    }

    /// An axis of percentiles, given as numbers of nines: each step to the right is ten times
    /// rarer.
    #[must_use]
    pub fn percentiles(name: impl Into<String>) -> Self {
        Self::of(name, Scale::Percentiles, Unit::Number)
    }

    /// An axis with a place for each name; values are their indices.
    #[must_use]
    pub fn groups<S: Into<String>>(
        name: impl Into<String>,
        names: impl IntoIterator<Item = S>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self::of(name, Scale::Groups(names), Unit::Number)
    }

    fn of(name: impl Into<String>, scale: Scale, unit: Unit) -> Self {
        Self {
            name: name.into(),
            scale,
            unit,
        }
    }

    pub(crate) const fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the name of a value.
    pub(crate) fn value(&self, value: f64) -> String {
        match &self.scale {
            Scale::Linear | Scale::Logarithmic => self.unit.format(value),
            Scale::Percentiles => percentile(value),
            Scale::Groups(names) => names.get(value as usize).cloned().unwrap_or_default(),
        }
    }

    /// Returns the least and the greatest value that the axis shows.
    fn range(&self, values: impl Iterator<Item = f64>, begins_below: bool) -> (f64, f64) {
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::MAX, f64::MIN), |(least, most), value| {
                (least.min(value), most.max(value))
            })
        };
        match &self.scale {
            Scale::Linear => {
                let (least, most) = ends(&mut values.chain([0.0]));
                let step = step(most - least);
                // A sum of shares may exceed 100 % by an error of rounding.
                let bottom = (least / step + ROUNDING).floor() * step;
                let top = (most / step - ROUNDING).ceil() * step;
                (bottom, top.max(bottom + step))
            }
            Scale::Logarithmic => {
                let (least, most) = ends(&mut values.filter(|value| *value > 0.0));
                if least > most {
                    return (0.1, 1.0);
                }
                // Bars of the least value are seen, too.
                let bottom = if begins_below {
                    below(least * 0.95)
                } else {
                    below(least)
                };
                let top = -below(-most);
                (bottom, if top > bottom { top } else { bottom * 10.0 })
            }
            Scale::Percentiles => (0.0, ends(&mut values.chain([1.0])).1.ceil()),
            Scale::Groups(names) => (-0.5, names.len().max(1) as f64 - 0.5),
        }
    }

    /// Returns the marks within a range, each with its text.
    fn marks(&self, (least, most): (f64, f64)) -> Vec<(f64, String)> {
        match &self.scale {
            Scale::Linear => {
                let step = step(most - least);
                let steps = ((most - least) / step).round() as usize;
                let marks = (0..=steps).map(|at| least + at as f64 * step);
                // A rounded zero may be negative.
                let marks = marks.map(|mark| if mark.abs() < step / 1e3 { 0.0 } else { mark });
                marks.map(|mark| (mark, self.unit.mark(mark))).collect()
            }
            Scale::Logarithmic => {
                let (bottom, top) = (least.log10().floor() as i32, most.log10().ceil() as i32);
                let decades = top - bottom;
                let every = decades.unsigned_abs() as usize / 8 + 1;
                let digits = if decades <= 2 {
                    &[1.0, 2.0, 5.0][..]
                } else {
                    &[1.0]
                };
                let marks = (bottom..=top).step_by(every);
                let marks =
                    marks.flat_map(|power| digits.iter().map(move |of| of * 10_f64.powi(power)));
                let shown = marks.filter(|mark| *mark >= least * 0.999 && *mark <= most * 1.001);
                shown.map(|mark| (mark, self.unit.mark(mark))).collect()
            }
            Scale::Percentiles => {
                let marks = (0..=most.round() as usize).map(|nines| nines as f64);
                marks.map(|nines| (nines, percentile(nines))).collect()
            }
            Scale::Groups(names) => {
                let named = names.iter().cloned().enumerate();
                named.map(|(at, name)| (at as f64, name)).collect()
            }
        }
    }

    /// Returns the place of a value as a share of the length of the axis.
    fn share(&self, (least, most): (f64, f64), value: f64) -> f64 {
        let share = match &self.scale {
            Scale::Logarithmic if value <= 0.0 => 0.0,
            Scale::Logarithmic => (value / least).log10() / (most / least).log10(),
            _ => (value - least) / (most - least),
        };
        share.clamp(0.0, 1.0)
    }
}

/// Rounds a value down to 1, 2 or 5 by a power of ten.
fn below(value: f64) -> f64 {
    let size = value.abs();
    let power = 10_f64.powf(size.log10().floor());
    let digit = size / power;
    let digits = [1.0, 2.0, 5.0, 10.0];
    let near = |of: &f64| (digit / of - 1.0).abs() < 1e-6;
    if value > 0.0 {
        let digit = digits.into_iter().rev().find(|of| digit > *of || near(of));
        digit.unwrap_or(1.0) * power
    } else {
        let digit = digits.into_iter().find(|of| digit < *of || near(of));
        -digit.unwrap_or(10.0) * power
    }
}

/// Formats a number of nines: 0 is the minimum, 1 is 90 %, 2 is 99 %.
fn percentile(nines: f64) -> String {
    match nines.round() as usize {
        0 => "0".to_owned(),
        1 => "90".to_owned(),
        2 => "99".to_owned(),
        nines => format!("99.{}", "9".repeat(nines - 2)),
    }
}

/// Returns a round distance of marks, of which about six cover a range.
fn step(range: f64) -> f64 {
    if range.is_nan() || range <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf((range / 6.0).log10().floor());
    let mut steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter();
    steps.find(|step| range / step <= 7.0).unwrap_or(power)
}

/// The two axes of a chart on its picture.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    x: (&'a Axis, (f64, f64)),
    y: (&'a Axis, (f64, f64)),
    left: f64,
}

impl<'a> Frame<'a> {
    pub(crate) const WIDTH: f64 = 760.0;
    pub(crate) const HEIGHT: f64 = 350.0;
    const TOP: f64 = 30.0;
    const BOTTOM: f64 = Self::HEIGHT - 66.0;
    const RIGHT: f64 = Self::WIDTH - 20.0;

    /// Axes that show all values. Bars begin below the least of them.
    pub(crate) fn new(
        (x, across): (&'a Axis, impl Iterator<Item = f64>),
        (y, upwards): (&'a Axis, impl Iterator<Item = f64>),
        has_bars: bool,
    ) -> Self {
        let (x, y) = ((x, x.range(across, false)), (y, y.range(upwards, has_bars)));
        let marks = y.0.marks(y.1).into_iter();
        let widest = marks.map(|(_, text)| text.chars().count()).max();
        Self {
            x,
            y,
            left: 20.0 + CHARACTER * widest.unwrap_or(0) as f64,
        }
    }

    /// Returns the place of a value on the horizontal axis.
    pub(crate) fn x(&self, value: f64) -> f64 {
        self.left + self.x.0.share(self.x.1, value) * (Self::RIGHT - self.left)
    }

    /// Returns the place of a value on the vertical axis.
    pub(crate) fn y(&self, value: f64) -> f64 {
        Self::BOTTOM - self.y.0.share(self.y.1, value) * (Self::BOTTOM - Self::TOP)
    }

    /// Returns the distance of a slot from the centre of its group, and its width.
    pub(crate) fn slot(&self, slot: usize, slots: usize) -> (f64, f64) {
        let Scale::Groups(names) = &self.x.0.scale else {
            return (0.0, 24.0);
        };
        let group = (Self::RIGHT - self.left) / names.len().max(1) as f64;
        let width = (group * 0.84 / slots as f64).min(80.0);
        let shift = (slot as f64 - (slots as f64 - 1.0) / 2.0) * width;
        (shift, width)
    }

    pub(crate) fn draw(&self, svg: &mut String) {
        svg.push_str("<g class=\"axes\">");
        let (left, right) = (self.left, Self::RIGHT);
        for (mark, text) in self.y.0.marks(self.y.1) {
            let y = self.y(mark);
            let _ = write!(
                svg,
                "<path d=\"M{left:.1} {y:.1}H{right}\"/><text class=\"end\" x=\"{:.1}\" \
                 y=\"{:.1}\">{}</text>",
                left - 6.0,
                y + 4.0,
                escape(&text)
            );
        }
        let marks = self.x.0.marks(self.x.1);
        let room = (right - left) / marks.len().max(1) as f64;
        for (index, (mark, text)) in marks.iter().enumerate() {
            let x = self.x(*mark);
            if !matches!(self.x.0.scale, Scale::Groups(_)) {
                let _ = write!(
                    svg,
                    "<path d=\"M{x:.1} {:.1}V{}\"/>",
                    Self::TOP,
                    Self::BOTTOM
                );
            }
            for (line, words) in wrapped(text, room, index).iter().enumerate() {
                let _ = write!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                    Self::BOTTOM + 16.0 + 13.0 * line as f64,
                    escape(words)
                );
            }
        }
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"4\" y=\"16\">{}</text><text class=\"name end\" x=\"{right}\" \
             y=\"{}\">{}</text></g>",
            escape(&self.y_name()),
            Self::HEIGHT - 6.0,
            escape(&self.x_name())
        );
    }

    fn x_name(&self) -> String {
        scale_name(self.x.0)
    }

    fn y_name(&self) -> String {
        scale_name(self.y.0)
    }
}

/// The name of an axis, with the kind of its scale where that is not linear.
fn scale_name(axis: &Axis) -> String {
    match axis.scale {
        Scale::Logarithmic => format!("{} (logarithmic)", axis.name),
        _ => axis.name.clone(),
    }
}

/// Breaks a text into lines that fit into the room; where a word does not, marks take turns in two
/// rows.
fn wrapped(text: &str, room: f64, index: usize) -> Vec<String> {
    let fits = |text: &str| CHARACTER * text.chars().count() as f64 <= room;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_inclusive([' ', '-', '/']) {
        match lines.last_mut() {
            Some(line) if fits(&format!("{line}{}", word.trim_end())) => line.push_str(word),
            _ => lines.push(word.to_owned()),
        }
    }
    let is_good = lines.len() <= MOST_LINES && lines.iter().all(|line| fits(line.trim_end()));
    match (is_good, index.is_multiple_of(2)) {
        (true, _) => lines,
        (false, true) => vec![text.to_owned()],
        (false, false) => vec![String::new(), text.to_owned()],
    }
}

/// The lines below a mark.
const MOST_LINES: usize = 3;
/// The width of a character of the text beside axes.
const CHARACTER: f64 = 6.6;
/// The part of a step that a value may exceed a mark by.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, values: &[f64]) -> Vec<String> {
        let range = axis.range(values.iter().copied(), false);
        axis.marks(range).into_iter().map(|mark| mark.1).collect()
    }

    #[test]
    fn marks_are_round_and_hold_all_values() {
        let linear = Axis::linear("", Unit::Percent);
        assert_eq!(
            texts(&linear, &[61.0]),
            [
                "0 %", "10 %", "20 %", "30 %", "40 %", "50 %", "60 %", "70 %"
            ]
        );
        assert_eq!(
            texts(&linear, &[-3.0, 3.0]),
            ["-3 %", "-2 %", "-1 %", "0 %", "1 %", "2 %", "3 %"]
        );
        let whole = texts(&linear, &[100.0 + 1e-12]);
        assert_eq!(whole.last().map(String::as_str), Some("100 %"));
        assert_eq!(texts(&linear, &[]).len(), 6);
        assert_eq!([0.3, 1.0, 700.0].map(below), [0.2, 1.0, 500.0]);
        assert_eq!([-0.3, -1.0, -700.0].map(below), [-0.5, -1.0, -1_000.0]);
        let time = Axis::log("", Unit::Time);
        assert_eq!(
            texts(&time, &[110.0, 1_900.0]),
            ["100 µs", "200 µs", "500 µs", "1 ms", "2 ms"]
        );
        assert_eq!(
            texts(&time, &[0.5, 900.0]),
            ["1 µs", "10 µs", "100 µs", "1 ms"]
        );
        assert_eq!(texts(&time, &[0.0]).len(), 4);
    }

    #[test]
    fn percentiles_are_named_by_their_nines() {
        let axis = Axis::percentiles("");
        assert_eq!(texts(&axis, &[3.4]), ["0", "90", "99", "99.9", "99.99"]);
    }

    #[test]
    fn places_follow_the_scale() {
        let axis = Axis::log("", Unit::Number);
        let share = axis.share((1.0, 100.0), 10.0);
        assert!((share - 0.5).abs() < 1e-9);
        assert_eq!(axis.share((1.0, 100.0), 0.0), 0.0);
        assert_eq!(Axis::linear("", Unit::Number).share((0.0, 4.0), 1.0), 0.25);
    }

    #[test]
    fn long_names_take_two_lines() {
        assert_eq!(wrapped("short", 60.0, 1), ["short"]);
        assert_eq!(wrapped("hogs and I/O", 60.0, 1), ["hogs and ", "I/O"]);
        assert_eq!(wrapped("unbreakable", 30.0, 1), ["", "unbreakable"]);
    }
}
