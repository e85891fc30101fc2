//! The kernel's changes to memory that programs use.

use crate::check::{Check, Reading, State, boot_with, costs, good, one, told};
use crate::machine::{Machine, Unreadable, marked};

pub(super) static SWAP: Check = Check {
    id: "swap",
    title: "Swap",
    cost: "a page of a process without locked memory may have to be read from the disk: ms",
    look: "ask:\n  swapon --show",
    read: swap,
    rules: &[
        good("/proc/swaps", "the kernel has none ({0})"),
        good("none", "none"),
        costs(
            "some",
            "{0}",
            "lock the memory of real-time processes (-ORBLockMemory true), or have no swap:\n  \
             swapoff -a",
        ),
    ],
};

pub(super) static HUGE_PAGES: Check = Check {
    id: "transparent-huge-pages",
    title: "Huge pages",
    cost: "the kernel moves pages together while programs use them, and a thread that touches one \
           waits: hundreds of µs",
    look: "read:\n  cat /sys/kernel/mm/transparent_hugepage/enabled",
    read: |machine| {
        let path = "/sys/kernel/mm/transparent_hugepage/enabled";
        let text = machine.read(path)?;
        let mode = marked(&text, ['[', ']']).unwrap_or(&text);
        Ok(vec![State::told(path, mode)])
    },
    rules: &[
        good(
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "the kernel has none ({0})",
        ),
        good("never|madvise", "{0}"),
        costs(
            "always",
            "{0}",
            concat!(
                "let programs ask for them:\n  \
                 echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\n",
                boot_with!("transparent_hugepage=madvise")
            ),
        ),
    ],
};

pub(super) static MERGING: Check = Check {
    id: "same-page-merging",
    title: "Page merging",
    cost: "a thread that writes to a merged page waits for its copy: some µs; only in programs \
           that asked for merging",
    look: "read:\n  cat /sys/kernel/mm/ksm/run",
    read: |machine| told(machine, "/sys/kernel/mm/ksm/run"),
    rules: &[
        good("/sys/kernel/mm/ksm/run", "the kernel has none ({0})"),
        good("0|2", "off"),
        costs(
            "1",
            "on",
            "end it and take the merged pages apart:\n  echo 2 > /sys/kernel/mm/ksm/run",
        ),
    ],
};

fn swap(machine: &Machine) -> Reading {
    let text = machine.read("/proc/swaps")?;
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if !header.starts_with("Filename") {
        return Err(Unreadable::rubbish("/proc/swaps", &text));
    }
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.collect();
    let state = if names.is_empty() { "none" } else { "some" };
    one(state, [&names.join(", ")])
}
