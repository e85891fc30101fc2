//! The sizes of the processor's caches.

use std::fs;

use serde::Serialize;

/// The data caches that the first CPU has or shares, in octets; nothing where the system does not
/// tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Caches {
    /// The first level.
    pub l1d: Option<u64>,
    /// The second level.
    pub l2: Option<u64>,
    /// The third level, which several CPUs share, on a virtual machine also those of others.
    pub l3: Option<u64>,
}

impl Caches {
    /// What the kernel says in `/sys/devices/system/cpu/cpu0/cache`.
    #[must_use]
    pub fn probe() -> Self {
        let mut caches = Self::default();
        for index in 0..8 {
            let read = |name: &str| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
                fs::read_to_string(path).ok()
            };
            if let (Some(level), Some(kind), Some(size)) =
                (read("level"), read("type"), read("size"))
            {
                caches.add(level.trim(), kind.trim(), size.trim());
            }
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
        *place = octets(size).or(*place);
    }
}

/// A size as the kernel writes it: `512K`.
fn octets(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'M']) {
        Some(digits) if text.ends_with('K') => (digits, 1 << 10),
        Some(digits) => (digits, 1 << 20),
        None => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
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
