//! The kernel's changes to memory that programs use.

use crate::check::{ReadStates, State, one};
use crate::machine::{Machine, Unreadable, marked};

/// Reads when the kernel makes huge pages.
pub(super) fn huge_pages(machine: &Machine) -> ReadStates {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = machine.read(path)?;
    let mode = marked(&text, ['[', ']']).unwrap_or(&text);
    Ok(vec![State::told(path, mode)])
}

/// Reads where the kernel puts evicted pages.
pub(super) fn swap(machine: &Machine) -> ReadStates {
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
