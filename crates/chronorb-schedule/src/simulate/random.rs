//! The choices of a simulation: random ones of a seed, or those that take longest.

use fastrand::Rng;

use crate::schedule::Time;

/// Random choices, or fixed ones without a seed.
pub(super) struct Choices {
    random: Option<Rng>,
    /// Whether each execution takes its longest time.
    takes_longest: bool,
    /// Whether arrivals have exactly their period between them.
    is_periodic: bool,
}

impl Choices {
    /// Seeds differ also in whether executions are shortened and arrivals are late at all, because
    /// the longest responses are found where neither is.
    pub(super) fn new(seed: Option<u64>) -> Self {
        let mut random = seed.map(Rng::with_seed);
        let mut coin = || random.as_mut().is_none_or(Rng::bool);
        let (takes_longest, is_periodic) = (coin(), coin());
        Self {
            random,
            takes_longest,
            is_periodic,
        }
    }

    /// Returns the time that an execution, or the octets that a message takes of at most `longest`.
    pub(super) fn taken(&mut self, longest: Time) -> Time {
        self.between(0, longest)
    }

    /// Returns a time of at least `least`, and not zero unless `longest` is.
    pub(super) fn between(&mut self, least: Time, longest: Time) -> Time {
        match &mut self.random {
            Some(random) if !self.takes_longest && longest > 0 => {
                random.u64(least.clamp(1, longest)..=longest)
            }
            _ => longest,
        }
    }

    /// Returns a value from 0 to `most`; 0 without a seed.
    pub(super) fn up_to(&mut self, most: Time) -> Time {
        self.random.as_mut().map_or(0, |it| it.u64(0..=most))
    }

    /// Returns an index below `count`; 0 without a seed.
    pub(super) fn index(&mut self, count: usize) -> usize {
        self.random.as_mut().map_or(0, |it| it.usize(0..count))
    }

    /// Returns the delay of a release. Without a seed the first job is late, and no other one.
    pub(super) fn delay(&mut self, jitter: Time, is_first: bool) -> Time {
        match &mut self.random {
            None if is_first => jitter,
            None => 0,
            Some(random) => match random.u8(0..3) {
                0 => 0,
                1 => jitter,
                _ => random.u64(0..=jitter),
            },
        }
    }

    /// Returns the time by which an arrival is later than the period after the one before it.
    pub(super) fn gap(&mut self, period: Time) -> Time {
        match &mut self.random {
            Some(random) if !self.is_periodic => {
                let gap = random.u64(0..=period);
                if random.u8(0..4) == 0 { gap } else { 0 }
            }
            _ => 0,
        }
    }

    /// Shuffles values; leaves them in their order without a seed.
    pub(super) fn shuffle<T>(&mut self, values: &mut [T]) {
        if let Some(random) = &mut self.random {
            random.shuffle(values);
        }
    }
}
