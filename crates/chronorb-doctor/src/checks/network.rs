//! The treatment of packets by interfaces and the kernel.

use crate::check::{ReadStates, State, one};
use crate::machine::{Link, Machine, Unreadable, is_among};

/// Reads the states of each interface that counts: those that are up, without the loopback; of
/// these, if any has a device, those with a device.
pub(super) fn each(machine: &Machine, read: impl Fn(&Machine, &str) -> ReadStates) -> ReadStates {
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
    let states: Result<Vec<_>, _> = up.iter().map(|name| read(machine, name)).collect();
    Ok(states?.into_iter().flatten().collect())
}

/// Reads which packets an interface merges or cuts.
pub(super) fn offloads(machine: &Machine, name: &str) -> ReadStates {
    let link = machine.links.get(name).map(|link| &link.offloads);
    let offloads = match link {
        Some(Ok(offloads)) => offloads,
        other => return Ok(vec![untold(name, other)]),
    };
    let all = [
        (offloads.generic_receive, "gro"),
        (offloads.large_receive, "lro"),
        (offloads.tcp_segmentation, "tso"),
        (offloads.generic_segmentation, "gso"),
    ];
    let on = all
        .iter()
        .filter_map(|(is_on, name)| is_on.then_some(*name));
    let on: Vec<_> = on.collect();
    let state = if on.is_empty() { "none" } else { "some" };
    one(state, [&name, &on.join(", "), &on.join(" off ")])
}

/// Reads how long interrupts are held back, by the interface and by the kernel.
pub(super) fn coalescing(machine: &Machine, name: &str) -> ReadStates {
    let flush: u64 = machine.value(&format!("{NET}/{name}/gro_flush_timeout"))?;
    let link: Option<&Link> = machine.links.get(name);
    let state = match link.map(|link| &link.coalescing) {
        Some(Ok(set)) if set.adaptive_receive => State::new("adaptive", [&name, &set.receive_us]),
        Some(Ok(set)) if set.receive_us > 0 => State::new("time", [&name, &set.receive_us]),
        Some(Ok(set)) if set.receive_frames > 1 => {
            State::new("frames", [&name, &set.receive_frames])
        }
        Some(Ok(_)) => State::new("none", [&name]),
        other => untold(name, other),
    };
    let waits = (flush > 0).then(|| State::new("flush", [&name, &(flush / 1000)]));
    Ok(waits.into_iter().chain([state]).collect())
}

fn untold<T>(name: &str, asked: Option<&Result<T, String>>) -> State {
    let error = asked.and_then(|asked| asked.as_ref().err());
    let reason = error.map_or("its driver was not asked", String::as_str);
    State::new("untold", [&name, &reason])
}

/// Reads whether an interface receives in threads.
pub(super) fn threaded(machine: &Machine, name: &str) -> ReadStates {
    let path = format!("{NET}/{name}/threaded");
    let mode = match machine.read(&path) {
        Err(error) if error.absent().is_some() => return one("absent", [&name, &error]),
        mode => mode?,
    };
    if !["0", "1", "2"].contains(&mode.as_str()) {
        return Err(Unreadable::rubbish(&path, &mode));
    }
    one(&mode, [&name])
}

/// Reads how packets wait to be sent.
pub(super) fn queueing(machine: &Machine) -> ReadStates {
    match &machine.disciplines {
        Ok(all) => each(machine, |machine, name| queueing_of(machine, name, all)),
        Err(error) => one("unlisted", [error]),
    }
}

fn queueing_of(machine: &Machine, name: &str, disciplines: &[(u32, String)]) -> ReadStates {
    let index: u32 = machine.value(&format!("{NET}/{name}/ifindex"))?;
    let kinds = disciplines.iter().filter(|(of, _)| *of == index);
    let mut kinds: Vec<_> = kinds.map(|(_, kind)| kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let shown = kinds.join(", ");
    let is_urgent_first = kinds.iter().any(|kind| is_among(BY_PRIORITY, kind));
    if kinds.is_empty() {
        one("untold", [&name, &"the kernel lists none for it"])
    } else if is_urgent_first || kinds == ["noqueue"] {
        one("by priority", [&name, &shown])
    } else if kinds.iter().all(|kind| is_among(WITHOUT_PRIORITY, kind)) {
        one("in order", [&name, &shown])
    } else {
        one("untold", [&name, &format!("{shown} is not known here")])
    }
}

/// Reads whether receivers poll for packets.
pub(super) fn busy_poll(machine: &Machine) -> ReadStates {
    let read: u32 = machine.value("/proc/sys/net/core/busy_read")?;
    let poll: u32 = machine.value("/proc/sys/net/core/busy_poll")?;
    let state = if read > 0 && poll > 0 { "on" } else { "off" };
    one(state, [&read, &poll])
}

const NET: &str = "/sys/class/net";
/// Disciplines with a queue for each priority or class.
const BY_PRIORITY: &str = "cbs drr etf ets hfsc htb mqprio pfifo_fast prio qfq taprio";
/// Disciplines without priorities, and those that only hold others.
const WITHOUT_PRIORITY: &str = "bfifo cake clsact codel fq fq_codel fq_pie ingress mq noqueue \
                                pfifo red sfq tbf";
