//! Chance that can be repeated.

/// Numbers that follow from a seed (SplitMix64: Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Dice of their own for each `stream` and `number` of it.
    pub(super) fn new(seed: u64, stream: u64, number: u64) -> Self {
        let mut dice = Self(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
        dice.0 = dice.next() ^ number;
        dice.0 = dice.next();
        dice
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Whether an event with this probability occurs. Probabilities of 0 and 1 draw no random
    /// number, so that faults outside of a plan do not change when the others occur.
    pub(super) fn falls(&mut self, probability: f64) -> bool {
        if probability <= 0.0 || probability >= 1.0 {
            return probability >= 1.0;
        }
        // 53 bits are all that a fraction holds.
        ((self.next() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    /// A number below `bound`, and 0 below 1.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % (bound as u64).max(1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_no_two_streams_are_alike() {
        let thrown = |stream, number| Dice::new(7, stream, number).next();
        assert_eq!(thrown(1, 2), thrown(1, 2));
        assert_ne!(thrown(1, 2), thrown(2, 1));
        assert_ne!(thrown(1, 2), thrown(1, 3));
    }

    #[test]
    fn what_has_a_probability_happens_about_as_often() {
        let mut dice = Dice::new(7, 0, 0);
        let happened = (0..10_000).filter(|_| dice.falls(0.25)).count();
        assert!((2_300..2_700).contains(&happened), "{happened}");
        assert!((0..100).all(|_| dice.falls(1.0) && !dice.falls(0.0)));
        assert!((0..100).all(|_| dice.below(3) < 3 && dice.below(0) == 0));
    }
}
