//! Order among a few.

/// Puts the few things that there are of this kind into the order of their ranks; those of one rank stay in
/// theirs. The standard library's sorting is made for many, and is far larger.
pub(crate) fn sort_few<T, R: Ord>(things: &mut [T], rank: impl Fn(&T) -> R) {
    for next in 1..things.len() {
        let own = rank(&things[next]);
        let before = things[..next].iter().filter(|thing| rank(thing) <= own);
        let place = before.count();
        things[place..=next].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_order_of_the_standard_library(things: Vec<(u8, u16)>) {
            let (mut few, mut expected) = (things.clone(), things);
            sort_few(&mut few, |(rank, _)| *rank);
            expected.sort_by_key(|(rank, _)| *rank);
            prop_assert_eq!(few, expected);
        }
    }
}
