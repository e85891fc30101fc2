//! The sizes of the processor's caches.

use std::fs;

use serde::Serialize;

/// The sizes of the data caches of the first CPU in bytes, as far as the system reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Caches {
    /// The first level.
    pub l1d: Option<u64>,
    /// The second level.
    pub l2: Option<u64>,
    /// The third level. Several CPUs share it, on a virtual machine also those of other guests.
    pub l3: Option<u64>,
}

impl Caches {
    /// Reads `/sys/devices/system/cpu/cpu0/cache`.
    #[must_use]
    pub fn probe() -> Self {
        let mut caches = Self::default();
        for index in 0..8 {
            let read = |name: &str| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
                let text = fs::read_to_string(path).unwrap_or_default();
                text.trim().to_owned()
            };
            caches.add(&read("level"), &read("type"), &read("size"));
        }
        caches
    }

    fn add(&mut self, level: &str, kind: &str, size: &str) {
        let place = match (level, kind) {
            ("1", "Data" | "Unified") => &mut self.l1d,
            ("2", "Data" | "Unified") => &mut self.l2,
            ("3", "Data" | "Unified") => &mut self.l3,
            _ => return,
        };
        *place = bytes(size).or(*place);
    }
}

/// Parses a size in the form of the kernel: `512K`.
fn bytes(text: &str) -> Option<u64> {
    let units = [("K", 1 << 10), ("M", 1 << 20), ("", 1)].into_iter();
    let mut sizes = units.filter_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) = sizes.next()?;
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_the_form_of_the_kernel() {
        let mut caches = Caches::default();
        caches.add("1", "Instruction", "64K");
        assert_eq!(caches, Caches::default());
        caches.add("1", "Data", "32K");
        caches.add("2", "Unified", "512K");
        caches.add("3", "Unified", "32M");
        caches.add("3", "Unified", "some");
        assert_eq!(caches.l1d, Some(32 << 10));
        assert_eq!(caches.l2, Some(512 << 10));
        assert_eq!(caches.l3, Some(32 << 20));
    }
}
