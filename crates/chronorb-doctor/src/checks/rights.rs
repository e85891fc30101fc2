//! The rights of this process, found by trying.

use std::io;

use chronorb_rio::PacketAccess;
use chronorb_rt::{MemoryLock, PriorityRefusal, Rights};

use crate::check::{ReadStates, one};
use crate::machine::{Machine, Unreadable, value_of};

/// Reads the right to real-time priorities.
pub(super) fn priorities(machine: &Machine) -> ReadStates {
    let max = machine.rights.max_fifo;
    let granted = max.map_or_else(
        || "SCHED_FIFO refused".to_owned(),
        |max| format!("SCHED_FIFO 1 to {max} granted"),
    );
    let mut rights = machine.rights;
    rights.memory_lock = MemoryLock::Unlimited;
    // The ORB leaves 99 to the kernel.
    let suffices = max.is_some_and(|max| max >= 98);
    let state = if suffices { "granted" } else { "refused" };
    one(state, [&granted, &reasons(machine), &remedy(&rights)])
}

/// Reads the right to lock memory.
pub(super) fn memory_lock(machine: &Machine) -> ReadStates {
    let (state, octets) = match machine.rights.memory_lock {
        MemoryLock::Unlimited => ("unlimited", 0),
        MemoryLock::Limited(octets) => ("limited", octets),
        MemoryLock::None => ("none", 0),
    };
    let mut rights = machine.rights;
    (rights.max_fifo, rights.refusal) = (Some(99), None);
    one(state, [&(octets >> 10), &remedy(&rights)])
}

fn remedy(rights: &Rights) -> String {
    let missing = rights.missing();
    missing.iter().map(|right| right.remedy).collect()
}

/// The origin of the right to priorities, as far as it can be read.
fn reasons(machine: &Machine) -> String {
    let status = machine.read("/proc/self/status").unwrap_or_default();
    let effective = value_of(&status, "CapEff");
    let effective = effective.and_then(|text| u64::from_str_radix(text, 16).ok());
    let capability = match effective.map(|sets| sets & CAP_SYS_NICE != 0) {
        Some(true) => "with CAP_SYS_NICE",
        Some(false) => "without CAP_SYS_NICE",
        None => "CAP_SYS_NICE unknown",
    };
    let limits = machine.read("/proc/self/limits").unwrap_or_default();
    let mut lines = limits.lines();
    let limit = lines.find_map(|line| line.strip_prefix("Max realtime priority"));
    let limit = limit.and_then(|text| text.split_whitespace().next());
    format!("{capability}, RTPRIO limit {}", limit.unwrap_or("unknown"))
}

/// Reads the budget of the control group, where the kernel has `RT_GROUP_SCHED`.
pub(super) fn group_budget(machine: &Machine) -> ReadStates {
    let Some(folder) = cpu_group(machine)? else {
        return match (machine.rights.max_fifo, machine.rights.refusal) {
            (Some(_), _) => one("granted", []),
            (None, Some(PriorityRefusal::ControlGroup)) => one("refused", []),
            (None, _) => one("untried", []),
        };
    };
    let path = format!("{folder}/cpu.rt_runtime_us");
    match machine.value::<i64>(&path) {
        Ok(0) => one("none", [&path]),
        Ok(-1) => one("unbounded", [&path]),
        Ok(runtime) if runtime > 0 => {
            let period: i64 = machine.value(&format!("{folder}/cpu.rt_period_us"))?;
            one("share", [&runtime, &period])
        }
        Ok(other) => Err(Unreadable::rubbish(&path, &other.to_string())),
        Err(unreadable) if unreadable.absent().is_some() => one("undivided", []),
        Err(unreadable) => Err(unreadable),
    }
}

/// Returns the folder of this process's group in the hierarchy of the controller `cpu`, version 1.
/// Only that version has budgets; it may not be mounted.
fn cpu_group(machine: &Machine) -> Result<Option<String>, Unreadable> {
    let has_cpu = |list: &str| list.split(',').any(|name| name == "cpu");
    let mounts = machine.read("/proc/self/mounts")?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup" && has_cpu(options)).then_some(folder)
    });
    let Some(mount) = mount else {
        return Ok(None);
    };
    let groups = machine.read("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        has_cpu(controllers).then_some(path.trim_end_matches('/'))
    });
    let group = group.ok_or_else(|| Unreadable::rubbish("/proc/self/cgroup", &groups))?;
    // Within a container the group is the mount itself, whatever its path outside.
    let folder = Some(format!("{mount}{group}")).filter(|folder| machine.exists(folder));
    Ok(Some(folder.unwrap_or_else(|| mount.to_owned())))
}

/// Reads which drivers of RIO can be opened.
pub(super) fn packet_rights(machine: &Machine) -> ReadStates {
    use PacketAccess::{Denied, Granted};

    let packets = machine.packets;
    let all = [
        ("AF_XDP", packets.xdp_socket),
        ("XDP programs", packets.xdp_program),
        ("AF_PACKET", packets.packet_socket),
    ];
    let state = match all.map(|(_, access)| access) {
        [Granted, Granted, Granted] => "granted",
        access if access.contains(&Denied) => "denied",
        [_, _, Granted] => "without XDP",
        _ => "absent",
    };
    let found = all.map(|(name, access)| match access {
        Granted => format!("{name}: granted"),
        Denied => format!("{name}: denied"),
        PacketAccess::Absent(number) => {
            let error = io::Error::from_raw_os_error(number);
            format!("{name}: not available ({error})")
        }
    });
    one(state, [&found.join(", ")])
}

const CAP_SYS_NICE: u64 = 1 << 23;
