//! In which order entries are looked up.

/// Entries in an order that is drawn beforehand, so that the drawing is not measured and the next
/// entry cannot be foreseen. It is walked again and again; every entry comes equally often.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    entries: Vec<u32>,
    next: usize,
}

impl Sequence {
    /// All entries below `count`, shuffled; few entries several times, each time anew.
    pub(super) fn shuffled(count: u32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut entries = Vec::new();
        while entries.len() < SHORTEST {
            let start = entries.len();
            entries.extend(0..count.max(1));
            random.shuffle(&mut entries[start..]);
        }
        Self { entries, next: 0 }
    }

    /// Always the same entry.
    pub(super) fn only(entry: u32) -> Self {
        Self {
            entries: vec![entry; SHORTEST],
            next: 0,
        }
    }

    /// The next few entries.
    pub(super) fn take(&mut self, count: usize) -> &[u32] {
        if self.next + count > self.entries.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += count;
        &self.entries[start..self.next]
    }
}

/// Longer than any batch, and long enough that branch prediction does not learn it by heart.
const SHORTEST: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_comes_equally_often() {
        let mut sequence = Sequence::shuffled(10, 1);
        let mut seen = [0; 10];
        for entry in sequence.take(100) {
            seen[*entry as usize] += 1;
        }
        assert_eq!(seen, [10; 10]);
    }

    #[test]
    fn the_order_is_drawn() {
        let mut many: Vec<u32> = Sequence::shuffled(20_000, 7).take(20_000).to_vec();
        assert!(!many.is_sorted());
        many.sort_unstable();
        assert!(many.into_iter().eq(0..20_000));
    }

    #[test]
    fn it_goes_round() {
        let mut sequence = Sequence::only(3);
        for _ in 0..1_000 {
            assert_eq!(sequence.take(64), [3; 64]);
        }
    }
}
