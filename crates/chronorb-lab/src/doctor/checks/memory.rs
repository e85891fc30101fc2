//! What the kernel does with memory while programs use it.

use super::Examined;
use crate::doctor::finding::{Judgement, boot_with};
use crate::doctor::machine::{Machine, Unreadable};
use crate::environment::marked;

/// Huge pages that the kernel makes by itself.
pub(super) fn huge_pages(machine: &Machine) -> Examined {
    let text = match machine.read(HUGE_PAGES) {
        Err(error) if error.is_absent() => {
            return Ok(Judgement::good(format!("the kernel has none ({error})")));
        }
        text => text?,
    };
    match marked(&text, ['[', ']']) {
        Some(mode @ ("never" | "madvise")) => Ok(Judgement::good(mode)),
        Some("always") => Ok(Judgement::costs(
            "always",
            format!(
                "let programs ask for them:\n  echo madvise > {HUGE_PAGES}\n{}",
                boot_with("transparent_hugepage=madvise")
            ),
        )),
        _ => Err(Unreadable::rubbish(HUGE_PAGES, &text)),
    }
}

/// Where the kernel puts memory that it takes from programs.
pub(super) fn swap(machine: &Machine) -> Examined {
    let text = match machine.read(SWAPS) {
        Err(error) if error.is_absent() => {
            return Ok(Judgement::good(format!("the kernel has none ({error})")));
        }
        text => text?,
    };
    let mut lines = text.lines();
    if !lines
        .next()
        .is_some_and(|line| line.starts_with("Filename"))
    {
        return Err(Unreadable::rubbish(SWAPS, &text));
    }
    let places: Vec<_> = lines
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    if places.is_empty() {
        return Ok(Judgement::good("none"));
    }
    Ok(Judgement::costs(
        places.join(", "),
        "lock the memory of real-time processes (-ORBLockMemory true), or have no swap:\n  \
         swapoff -a",
    ))
}

/// Pages that the kernel shares because they are equal.
pub(super) fn same_page_merging(machine: &Machine) -> Examined {
    match machine.value::<u8>(MERGING) {
        Err(error) if error.is_absent() => {
            Ok(Judgement::good(format!("the kernel has none ({error})")))
        }
        Ok(0 | 2) => Ok(Judgement::good("off")),
        Ok(1) => Ok(Judgement::costs(
            "on",
            format!("end it and take the merged pages apart:\n  echo 2 > {MERGING}"),
        )),
        Ok(other) => Err(Unreadable::rubbish(MERGING, &other.to_string())),
        Err(error) => Err(error),
    }
}

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SWAPS: &str = "/proc/swaps";
const MERGING: &str = "/sys/kernel/mm/ksm/run";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good};
    use crate::doctor::fixture::{UNREADABLE, assert_verdicts, finding};

    #[test]
    fn huge_pages_are_made_on_request_or_always() {
        assert_verdicts(
            "transparent-huge-pages",
            &[],
            HUGE_PAGES,
            &[
                ("always madvise [never]", Good),
                ("always [madvise] never", Good),
                ("[always] madvise never", CostsLatency),
                ("[banana]", CannotBeTold),
                ("always madvise never", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn swap_is_there_or_not() {
        let header = "Filename  Type  Size  Used  Priority\n";
        assert_verdicts(
            "swap",
            &[],
            SWAPS,
            &[
                (header, Good),
                (
                    &format!("{header}/dev/sda2 partition 8 0 -2\n"),
                    CostsLatency,
                ),
                ("banana", CannotBeTold),
                ("", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn pages_are_merged_or_not() {
        assert_verdicts(
            "same-page-merging",
            &[],
            MERGING,
            &[
                ("0", Good),
                ("2", Good),
                ("1", CostsLatency),
                ("9", CannotBeTold),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn what_the_kernel_does_not_have_costs_nothing() {
        for id in ["transparent-huge-pages", "swap", "same-page-merging"] {
            assert_eq!(finding(id, &[]).verdict, Good, "{id}");
        }
    }
}
