//! Order among the few things that there are of a kind, or the many that a peer may list.

use std::collections::BinaryHeap;

/// Puts things into the order of their ranks; those of one rank stay in theirs.
///
/// In `n log n` steps, as the sorting of slices. That is made for many more things, and each kind of them would add
/// some 3 KiB to a minimal server.
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
        fn it_is_the_order_of_the_standard_library(things: Vec<(u8, u16)>) {
            let (mut sorted, mut expected) = (things.clone(), things);
            sort_by_rank(&mut sorted, |(rank, _)| *rank);
            expected.sort_by_key(|(rank, _)| *rank);
            prop_assert_eq!(sorted, expected);
        }
    }
}
