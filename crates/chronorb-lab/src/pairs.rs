//! Ratios between the figures of two systems that took turns in the same rounds.

use serde::Serialize;

use crate::stats::median;

/// A comparison of two systems by their figures in the same rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedRatio {
    /// The number of rounds in which both have a figure.
    pub rounds: usize,
    /// The median over the rounds of the first figure divided by the second.
    pub ratio: f64,
    /// The lower end of the 95 % confidence interval of the ratio, by a bootstrap over the rounds.
    pub ratio_low: f64,
    /// The upper end of that interval.
    pub ratio_high: f64,
    /// The median over the rounds of the first figure minus the second.
    pub difference: f64,
    /// The number of rounds in which the first figure is less.
    pub less: usize,
    /// The probability of so uneven a result if both were alike (two-sided sign test).
    pub chance: f64,
}

impl PairedRatio {
    /// Compares the figures of each round. Returns nothing without a round.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let ratios: Vec<f64> = pairs.iter().map(|(a, b)| a / b.max(LEAST)).collect();
        let ratio = median(ratios.iter().copied())?;
        let (ratio_low, ratio_high) = bootstrap(&ratios);
        let less = pairs.iter().filter(|(a, b)| a < b).count();
        let more = pairs.iter().filter(|(a, b)| a > b).count();
        Some(Self {
            rounds: pairs.len(),
            ratio,
            ratio_low,
            ratio_high,
            difference: median(pairs.iter().map(|(a, b)| a - b))?,
            less,
            chance: sign_test(less, more),
        })
    }

    /// Compares the figures of the rounds that both have, each with the number of its round.
    pub(crate) fn of_rounds(
        figures: impl IntoIterator<Item = (u32, f64)>,
        others: impl IntoIterator<Item = (u32, f64)>,
    ) -> Option<Self> {
        let others: Vec<_> = others.into_iter().collect();
        let pairs = figures.into_iter().filter_map(|(round, figure)| {
            let (_, other) = others.iter().find(|(of, _)| *of == round)?;
            Some((figure, *other))
        });
        Self::of(&pairs.collect::<Vec<_>>())
    }

    /// Returns the comparison of the second system with the first.
    pub(crate) fn inverse(&self) -> Self {
        Self {
            ratio: 1.0 / self.ratio,
            ratio_low: 1.0 / self.ratio_high,
            ratio_high: 1.0 / self.ratio_low,
            difference: -self.difference,
            less: self.rounds.saturating_sub(self.less),
            ..*self
        }
    }

    /// Formats the ratio with its interval: `1.080 (1.060 to 1.100)`.
    pub(crate) fn text(&self) -> String {
        format!(
            "{:.3} ({:.3} to {:.3})",
            self.ratio, self.ratio_low, self.ratio_high
        )
    }
}

/// Returns the median over the rounds of a figure of one system divided by that of another in the
/// same round.
pub(crate) fn median_ratio<'a, R: 'a>(
    rows: impl IntoIterator<Item = &'a R>,
    others: impl IntoIterator<Item = &'a R>,
    round: impl Fn(&R) -> u32,
    figure: impl Fn(&R) -> f64,
) -> Option<f64> {
    let others: Vec<&R> = others.into_iter().collect();
    median(rows.into_iter().filter_map(|row| {
        let mut others = others.iter();
        let other = others.find(|other| round(other) == round(row))?;
        Some(figure(row) / figure(other).max(LEAST))
    }))
}

/// Returns the 95 % confidence interval of the median of these values.
fn bootstrap(values: &[f64]) -> (f64, f64) {
    // Seeded, so that the same figures have the same interval in each run.
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut sample = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            sample.fill_with(|| values[random.usize(..values.len())]);
            let middle = sample.len() / 2;
            *sample.select_nth_unstable_by(middle, f64::total_cmp).1
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[(share * (SAMPLES - 1) as f64).round() as usize];
    (at(0.025), at(0.975))
}

/// Returns the probability that `a + b` throws of a fair coin are divided as unevenly as `a` to
/// `b`, or more so.
fn sign_test(a: usize, b: usize) -> f64 {
    let throws = a + b;
    let extreme = a.max(b);
    // Factorials exceed the range of a float, their logarithms do not.
    let log_factorial = |n: usize| (1..=n).map(|n| (n as f64).ln()).sum::<f64>();
    let tail: f64 = (extreme..=throws)
        .map(|heads| {
            let ways = log_factorial(throws) - log_factorial(heads) - log_factorial(throws - heads);
            (ways - throws as f64 * 2_f64.ln()).exp()
        })
        .sum();
    (2.0 * tail).min(1.0)
}

const SAMPLES: usize = 1_000;
const SEED: u64 = 1;
/// The resolution of the clock in µs, the unit of the figures.
const LEAST: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_factor_is_found_and_is_certain() {
        let pairs: Vec<_> = (1..=40)
            .map(|n| (f64::from(n) * 0.98, f64::from(n)))
            .collect();
        let paired = PairedRatio::of(&pairs).unwrap();
        assert!((paired.ratio - 0.98).abs() < 1e-9);
        assert!((paired.ratio_high - paired.ratio_low).abs() < 1e-9);
        assert_eq!((paired.rounds, paired.less), (40, 40));
        assert!(paired.chance < 1e-9);
        let inverse = paired.inverse();
        assert!((inverse.ratio - 1.0 / 0.98).abs() < 1e-9 && inverse.less == 0);
    }

    #[test]
    fn what_is_as_often_more_as_less_is_told_by_nothing() {
        let pairs: Vec<_> = (0..40)
            .map(|n| (1.0 + f64::from(n % 2) * 0.2, 1.1))
            .collect();
        let paired = PairedRatio::of(&pairs).unwrap();
        assert!(
            paired.ratio_low < 1.0 && paired.ratio_high > 1.0,
            "{paired:?}"
        );
        assert!(paired.chance > 0.99, "{paired:?}");
    }

    #[test]
    fn the_same_figures_have_the_same_interval() {
        let pairs: Vec<_> = (1..=40)
            .map(|n| (f64::from(n % 7) + 1.0, f64::from(n % 5) + 1.0))
            .collect();
        let paired = PairedRatio::of(&pairs).unwrap();
        assert!(paired.ratio_low < paired.ratio && paired.ratio < paired.ratio_high);
        assert_eq!(PairedRatio::of(&pairs), Some(paired));
    }

    #[test]
    fn the_sign_test_has_the_values_of_the_binomial_distribution() {
        for (a, b, expected) in [(5, 0, 0.0625), (4, 1, 0.375), (3, 3, 1.0), (0, 0, 1.0)] {
            assert!((sign_test(a, b) - expected).abs() < 1e-9, "{a} {b}");
        }
    }

    #[test]
    fn nothing_is_said_of_no_round() {
        assert_eq!(PairedRatio::of(&[]), None);
    }
}
