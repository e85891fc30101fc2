//! The treatment of packets by interfaces and the kernel.

use crate::check::{Check, Reading, Rule, State, costs, good, missing, one, unknown};
use crate::machine::{Link, Machine, Unreadable};

/// The line that introduces the commands against held-back interrupts.
macro_rules! interrupt_each {
    () => {
        "have an interrupt for each packet, which costs CPU time under load:\n  "
    };
}

pub(super) static OFFLOADS: Check = Check {
    id: "network-offloads",
    title: "Network offloads",
    cost: "a message waits for packets received with it, some µs, and behind a segment of 64 KiB \
           that is being sent, 0.5 ms at 1 Gbit/s",
    look: "ask:\n  ethtool -k INTERFACE",
    read: |machine| each(machine, |name| Ok(vec![offloads(machine, name)])),
    rules: &[
        NO_INTERFACE,
        UNTOLD,
        good("none", "{0}: none"),
        costs(
            "some",
            "{0}: {1}",
            "merge nothing, unless bandwidth matters more:\n  ethtool -K {0} {2} off",
        ),
    ],
};

pub(super) static COALESCING: Check = Check {
    id: "interrupt-coalescing",
    title: "Interrupt coalescing",
    cost: "each message waits for up to this time in the interface: tens to hundreds of µs",
    look: "ask:\n  ethtool -c INTERFACE",
    read: |machine| each(machine, |name| coalescing(machine, name)),
    rules: &[
        NO_INTERFACE,
        UNTOLD,
        good("none", "{0}: none"),
        costs(
            "flush",
            "{0}: the kernel itself waits for up to {1} µs",
            concat!(
                interrupt_each!(),
                "echo 0 > /sys/class/net/{0}/gro_flush_timeout"
            ),
        ),
        costs(
            "adaptive",
            "{0}: {1} µs now, adaptive",
            concat!(
                interrupt_each!(),
                "ethtool -C {0} adaptive-rx off rx-usecs 0"
            ),
        ),
        costs(
            "time",
            "{0}: {1} µs",
            concat!(interrupt_each!(), "ethtool -C {0} rx-usecs 0"),
        ),
        costs(
            "frames",
            "{0}: {1} packets",
            concat!(interrupt_each!(), "ethtool -C {0} rx-frames 1"),
        ),
    ],
};

pub(super) static RECEIVE_THREADS: Check = Check {
    id: "napi-threads",
    title: "Receive threads",
    cost: "packets are received in the context of the thread that is interrupted, or by ksoftirqd \
           without a priority: urgent ones wait for the others, up to ms under load",
    look: "read:\n  cat /sys/class/net/*/threaded",
    read: |machine| each(machine, |name| threaded(machine, name)),
    rules: &[
        NO_INTERFACE,
        good("1|2", "{0}: in threads"),
        costs(
            "0",
            "{0}: in soft interrupts",
            "receive in threads, and give them a priority of your choice:\n  \
             echo 1 > /sys/class/net/{0}/threaded\n  \
             for p in $(pgrep napi/{0}); do chrt -f -p 50 $p; done",
        ),
        missing(
            "absent",
            "{0}: the kernel has no receive threads ({1})",
            "boot Linux 5.12 or newer",
        ),
    ],
};

pub(super) static QUEUEING: Check = Check {
    id: "network-queueing",
    title: "Network queueing",
    cost: "urgent packets wait behind earlier ones: with a full queue ms",
    look: "ask:\n  tc qdisc show",
    read: |machine| match &machine.disciplines {
        Ok(all) => each(machine, |name| queueing(machine, name, all)),
        Err(error) => one("unlisted", [error]),
    },
    rules: &[
        NO_INTERFACE,
        UNTOLD,
        unknown(
            "unlisted",
            "the kernel did not list them: {0}",
            "ask for them:\n  tc qdisc show",
        ),
        good("by priority", "{0}: {1}"),
        costs(
            "in order",
            "{0}: {1}",
            "let packets of urgent connections (SO_PRIORITY, DSCP) go first:\n  \
             tc qdisc replace dev {0} root pfifo_fast",
        ),
    ],
};

pub(super) static BUSY_POLL: Check = Check {
    id: "busy-poll",
    title: "Busy polling",
    cost: "each message costs an interrupt and a wake-up: some to tens of µs",
    look: "ask:\n  sysctl net.core.busy_read net.core.busy_poll",
    read: |machine| {
        let read: u32 = machine.value("/proc/sys/net/core/busy_read")?;
        let poll: u32 = machine.value("/proc/sys/net/core/busy_poll")?;
        let state = if read > 0 && poll > 0 { "on" } else { "off" };
        one(state, [&read, &poll])
    },
    rules: &[
        good("on", "{0} µs in reads, {1} µs in polls"),
        costs(
            "off",
            "{0} µs in reads, {1} µs in polls",
            "only where a CPU may spin, and the interface's driver supports it:\n  \
             sysctl -w net.core.busy_read=50 net.core.busy_poll=50",
        ),
        missing(
            "/proc/sys/net/core/busy_read|/proc/sys/net/core/busy_poll",
            "the kernel cannot poll ({0})",
            "boot a kernel with CONFIG_NET_RX_BUSY_POLL=y",
        ),
    ],
};

const NO_INTERFACE: Rule = good("no interface", "no interface but the loopback is up");
const UNTOLD: Rule = unknown(
    "untold",
    "{0} cannot be told: {1}",
    "ask the driver, or look at the host if the interface is a virtual one:\n  \
     ethtool -k INTERFACE; ethtool -c INTERFACE; tc qdisc show",
);

/// Reads the states of each interface that counts: those that are up, without the loopback; of
/// these, if any has a device, those with a device.
fn each(machine: &Machine, read: impl Fn(&str) -> Result<Vec<State>, Unreadable>) -> Reading {
    let mut up = Vec::new();
    for name in machine.list(NET)? {
        let path = format!("{NET}/{name}/operstate");
        // The folder may also have files that are no interfaces.
        if name == "lo" || !machine.exists(&path) {
            continue;
        }
        match machine.read(&path)?.as_str() {
            "up" | "unknown" => up.push(name),
            "down" | "dormant" | "lowerlayerdown" | "notpresent" | "testing" => {}
            other => return Err(Unreadable::rubbish(&path, other)),
        }
    }
    let has_device = |name: &String| machine.exists(&format!("{NET}/{name}/device"));
    if up.iter().any(has_device) {
        up.retain(has_device);
    }
    if up.is_empty() {
        return one("no interface", []);
    }
    let states: Result<Vec<_>, _> = up.iter().map(|name| read(name)).collect();
    Ok(states?.into_iter().flatten().collect())
}

fn offloads(machine: &Machine, name: &str) -> State {
    let link = machine.links.get(name).map(|link| &link.offloads);
    let offloads = match link {
        Some(Ok(offloads)) => offloads,
        other => return untold(name, other.and_then(|asked| asked.as_ref().err())),
    };
    let all = [
        (offloads.generic_receive, "gro"),
        (offloads.large_receive, "lro"),
        (offloads.tcp_segmentation, "tso"),
        (offloads.generic_segmentation, "gso"),
    ];
    let on: Vec<_> = all
        .iter()
        .filter(|(is_on, _)| *is_on)
        .map(|(_, name)| *name)
        .collect();
    let state = if on.is_empty() { "none" } else { "some" };
    State::new(state, [&name, &on.join(", "), &on.join(" off ")])
}

/// Reads how long interrupts are held back, by the interface and by the kernel.
fn coalescing(machine: &Machine, name: &str) -> Result<Vec<State>, Unreadable> {
    let flush: u64 = machine.value(&format!("{NET}/{name}/gro_flush_timeout"))?;
    let link: Option<&Link> = machine.links.get(name);
    let state = match link.map(|link| &link.coalescing) {
        Some(Ok(set)) if set.adaptive_receive => State::new("adaptive", [&name, &set.receive_us]),
        Some(Ok(set)) if set.receive_us > 0 => State::new("time", [&name, &set.receive_us]),
        Some(Ok(set)) if set.receive_frames > 1 => {
            State::new("frames", [&name, &set.receive_frames])
        }
        Some(Ok(_)) => State::new("none", [&name]),
        other => untold(name, other.and_then(|asked| asked.as_ref().err())),
    };
    let waits = (flush > 0).then(|| State::new("flush", [&name, &(flush / 1000)]));
    Ok(waits.into_iter().chain([state]).collect())
}

fn untold(name: &str, error: Option<&String>) -> State {
    let reason = error.map_or("its driver was not asked", String::as_str);
    State::new("untold", [&name, &reason])
}

/// Reads whether an interface receives in threads.
fn threaded(machine: &Machine, name: &str) -> Result<Vec<State>, Unreadable> {
    let path = format!("{NET}/{name}/threaded");
    let mode = match machine.read(&path) {
        Err(error) if error.absent().is_some() => {
            return Ok(vec![State::new("absent", [&name, &error])]);
        }
        mode => mode?,
    };
    if !["0", "1", "2"].contains(&mode.as_str()) {
        return Err(Unreadable::rubbish(&path, &mode));
    }
    Ok(vec![State::new(&mode, [&name])])
}

/// Reads how packets wait to be sent.
fn queueing(
    machine: &Machine,
    name: &str,
    disciplines: &[(u32, String)],
) -> Result<Vec<State>, Unreadable> {
    let index: u32 = machine.value(&format!("{NET}/{name}/ifindex"))?;
    let kinds = disciplines
        .iter()
        .filter(|(interface, _)| *interface == index);
    let mut kinds: Vec<_> = kinds.map(|(_, kind)| kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let shown = kinds.join(", ");
    let is_urgent_first = kinds.iter().any(|kind| BY_PRIORITY.contains(kind));
    let state = if kinds.is_empty() {
        State::new("untold", [&name, &"the kernel lists none for it"])
    } else if is_urgent_first || kinds == ["noqueue"] {
        State::new("by priority", [&name, &shown])
    } else if kinds.iter().all(|kind| WITHOUT_PRIORITY.contains(kind)) {
        State::new("in order", [&name, &shown])
    } else {
        State::new("untold", [&name, &format!("{shown} is not known here")])
    };
    Ok(vec![state])
}

const NET: &str = "/sys/class/net";
/// Disciplines with a queue for each priority or class.
const BY_PRIORITY: [&str; 11] = [
    "cbs",
    "drr",
    "etf",
    "ets",
    "hfsc",
    "htb",
    "mqprio",
    "pfifo_fast",
    "prio",
    "qfq",
    "taprio",
];
/// Disciplines without priorities, and those that only hold others.
const WITHOUT_PRIORITY: [&str; 14] = [
    "bfifo", "cake", "clsact", "codel", "fq", "fq_codel", "fq_pie", "ingress", "mq", "noqueue",
    "pfifo", "red", "sfq", "tbf",
];
