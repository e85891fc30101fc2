//! Axes that are not logarithmic.

/// An axis from 0 up, in units that make a mark each.
///
/// What is drawn on it is divided by [`unit`](Self::unit).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The distance of two marks.
    pub unit: f64,
    /// How many of them.
    pub marks: f64,
}

impl Scale {
    /// For values up to this, in some six units of 1, 2 or 5 of a power of ten.
    pub fn to(top: f64) -> Self {
        if !top.is_finite() || top <= 0.0 {
            return Self {
                unit: 1.0,
                marks: 1.0,
            };
        }
        let power = 10_f64.powf((top / 6.0).log10().floor());
        let mut units = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter();
        let unit = units.find(|unit| top / unit <= 7.0).unwrap_or(10.0 * power);
        Self {
            unit,
            marks: (top / unit).ceil().max(1.0),
        }
    }

    /// The value at a mark, as it is written.
    pub fn label(&self, mark: f64) -> String {
        let value = mark * self.unit;
        match self.unit {
            unit if unit >= 1.0 => format!("{value:.0}"),
            unit if unit >= 0.1 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        for (top, unit, marks) in [
            (19.3, 5.0, 4.0),
            (6.4, 1.0, 7.0),
            (0.37, 0.1, 4.0),
            (700.0, 100.0, 7.0),
            (1.0, 0.2, 5.0),
        ] {
            let scale = Scale::to(top);
            assert!((scale.unit - unit).abs() < 1e-9, "{top}: {scale:?}");
            assert_eq!(scale.marks, marks, "{top}: {scale:?}");
        }
        assert_eq!(Scale::to(0.0).marks, 1.0);
        assert_eq!(Scale::to(19.3).label(3.0), "15");
        assert_eq!(Scale::to(0.37).label(3.0), "0.3");
    }
}
