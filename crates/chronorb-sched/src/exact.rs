//! Natural numbers of any size, for exact comparisons of sums of fractions.

use std::cmp::Ordering;

/// A natural number: limbs of 64 bits, the least one first, without zeros at the end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Natural(Vec<u64>);

impl Natural {
    pub(crate) fn one() -> Self {
        Self(vec![1])
    }

    pub(crate) const fn zero() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn times(&self, factor: u64) -> Self {
        let mut limbs = Vec::with_capacity(self.0.len() + 1);
        let mut carry = 0;
        for limb in &self.0 {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            limbs.push(product as u64);
            carry = product >> 64;
        }
        limbs.push(carry as u64);
        Self(limbs).normalised()
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let len = self.0.len().max(other.0.len());
        let mut limbs = Vec::with_capacity(len + 1);
        let mut carry = 0;
        for i in 0..len {
            let limb = |it: &Self| u128::from(it.0.get(i).copied().unwrap_or(0));
            let sum = limb(self) + limb(other) + carry;
            limbs.push(sum as u64);
            carry = sum >> 64;
        }
        limbs.push(carry as u64);
        Self(limbs).normalised()
    }

    fn normalised(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_len = self.0.len().cmp(&other.0.len());
        by_len.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}
