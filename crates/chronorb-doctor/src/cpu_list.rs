//! Lists of CPUs as the kernel writes them: `0-3,8`.

use std::collections::BTreeSet;
use std::fmt;

/// A set of CPUs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct CpuList(BTreeSet<usize>);

impl CpuList {
    /// Parses a list of numbers and ranges.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        let parts = text.split(',').map(str::trim);
        for part in parts.filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= MOST {
                return None;
            }
            cpus.extend(first..=last);
        }
        Some(Self(cpus))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the numbers in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    pub(crate) fn insert(&mut self, cpu: usize) {
        self.0.insert(cpu);
    }

    /// The difference of two sets.
    pub(crate) fn without(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// The union of two sets.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// Whether two sets have a CPU in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

impl FromIterator<usize> for CpuList {
    fn from_iter<T: IntoIterator<Item = usize>>(cpus: T) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| *next == last + 1) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

/// A bound above the number of CPUs of any kernel.
const MOST: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for list in ["", "0", "0-3", "0-3,8", "1,3,5-7"] {
            assert_eq!(CpuList::parse(list).unwrap().to_string(), list);
        }
        assert_eq!(CpuList::parse("2,0,1").unwrap().to_string(), "0-2");
        assert_eq!(CpuList::parse("0-3,8").unwrap().len(), 5);
    }

    #[test]
    fn other_texts_are_refused() {
        for wrong in [",", "a", "3-1", "-1", "0-", "0-4000000000", "1 2", "0x3"] {
            assert_eq!(CpuList::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sets_are_compared() {
        let list = |text| CpuList::parse(text).unwrap();
        assert_eq!(list("0-3").without(&list("1,2")), list("0,3"));
        assert_eq!(list("0").with(&list("1")), list("0-1"));
        assert!(list("0-3").meets(&list("3-4")) && !list("0").meets(&list("1")));
    }
}
