//! Sorting of small sets, and of lists that a peer may make long.

use std::collections::BinaryHeap;

/// Sorts things by rank; things of equal rank keep their order.
///
/// Takes `n log n` steps, like the sorting of slices. That one is optimized for large slices, and
/// each type that it sorts would add some 3 KiB to a minimal server.
pub(crate) fn sort_by_rank<T, R: Ord>(things: &mut Vec<T>, rank: impl Fn(&T) -> R) {
    let ranked: BinaryHeap<(R, usize)> = things.iter().map(rank).zip(0..).collect();
    let mut left: Vec<Option<T>> = things.drain(..).map(Some).collect();
    let sorted = ranked.into_sorted_vec().into_iter();
    things.extend(sorted.filter_map(|(_, index)| left[index].take()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(things: Vec<(u8, u16)>) {
            let (mut sorted, mut expected) = (things.clone(), things);
            sort_by_rank(&mut sorted, |(rank, _)| *rank);
            expected.sort_by_key(|(rank, _)| *rank);
            prop_assert_eq!(sorted, expected);
        }
    }
}
