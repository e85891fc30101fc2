//! What interfaces and the kernel's network do to packets.

use super::Examined;
use crate::doctor::finding::Judgement;
use crate::doctor::machine::{Machine, Unreadable};

/// Packets that are collected to be handled together.
pub(super) fn offloads(machine: &Machine) -> Examined {
    let mut survey = Survey::default();
    for name in interfaces(machine)? {
        match machine.links.get(&name).map(|link| &link.offloads) {
            None => survey.untold(&name, "its driver was not asked"),
            Some(Err(error)) => survey.untold(&name, error),
            Some(Ok(offloads)) => {
                let all = [
                    (offloads.generic_receive, "gro"),
                    (offloads.large_receive, "lro"),
                    (offloads.tcp_segmentation, "tso"),
                    (offloads.generic_segmentation, "gso"),
                ];
                let on: Vec<_> = all.iter().filter(|(on, _)| *on).map(|(_, n)| *n).collect();
                match on.is_empty() {
                    true => survey.good(&name, "none"),
                    false => survey.costs(
                        &name,
                        &on.join(", "),
                        &format!("ethtool -K {name} {} off", on.join(" off ")),
                    ),
                }
            }
        }
    }
    survey.judge("collect nothing, where bandwidth does not matter more:")
}

/// Interrupts that are held back.
pub(super) fn coalescing(machine: &Machine) -> Examined {
    let mut survey = Survey::default();
    for name in interfaces(machine)? {
        let flush: u64 = machine.value(&format!("{NET}/{name}/gro_flush_timeout"))?;
        if flush > 0 {
            survey.costs(
                &name,
                &format!("the kernel itself waits for up to {} µs", flush / 1000),
                &format!("echo 0 > {NET}/{name}/gro_flush_timeout"),
            );
        }
        match machine.links.get(&name).map(|link| &link.coalescing) {
            None => survey.untold(&name, "its driver was not asked"),
            Some(Err(error)) => survey.untold(&name, error),
            Some(Ok(set)) if set.adaptive_receive => survey.costs(
                &name,
                &format!("{} µs now, adaptive", set.receive_us),
                &format!("ethtool -C {name} adaptive-rx off rx-usecs 0"),
            ),
            Some(Ok(set)) if set.receive_us > 0 => survey.costs(
                &name,
                &format!("{} µs", set.receive_us),
                &format!("ethtool -C {name} rx-usecs 0"),
            ),
            Some(Ok(set)) if set.receive_frames > 1 => survey.costs(
                &name,
                &format!("{} packets", set.receive_frames),
                &format!("ethtool -C {name} rx-frames 1"),
            ),
            Some(Ok(_)) => survey.good(&name, "none"),
        }
    }
    survey.judge("an interrupt for each packet, which costs CPU time under load:")
}

/// Who does the work of receiving.
pub(super) fn threaded(machine: &Machine) -> Examined {
    let mut survey = Survey::default();
    for name in interfaces(machine)? {
        let path = format!("{NET}/{name}/threaded");
        match machine.value::<u8>(&path) {
            Ok(0) => survey.costs(
                &name,
                "in soft interrupts",
                &format!(
                    "echo 1 > {path}\n  \
                     for p in $(pgrep napi/{name}); do chrt -f -p 50 $p; done"
                ),
            ),
            Ok(1 | 2) => survey.good(&name, "in threads"),
            Ok(other) => return Err(Unreadable::rubbish(&path, &other.to_string())),
            Err(error) if error.is_absent() => {
                return Ok(Judgement::missing(
                    format!("{error}: the kernel cannot do it in threads"),
                    "boot Linux 5.12 or newer",
                ));
            }
            Err(error) => return Err(error),
        }
    }
    survey.judge("receive in threads, and give them a priority of your choice:")
}

/// How packets wait to be sent.
pub(super) fn queueing(machine: &Machine) -> Examined {
    let disciplines = match &machine.disciplines {
        Ok(disciplines) => disciplines,
        Err(error) => {
            return Ok(Judgement::unknown(
                format!("the kernel did not list them: {error}"),
                "ask for them:\n  tc qdisc show",
            ));
        }
    };
    let mut survey = Survey::default();
    for name in interfaces(machine)? {
        let index: u32 = machine.value(&format!("{NET}/{name}/ifindex"))?;
        let mut kinds: Vec<_> = disciplines
            .iter()
            .filter(|(interface, _)| *interface == index)
            .map(|(_, kind)| kind.as_str())
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let shown = kinds.join(", ");
        let known = |set: &[&str]| kinds.iter().all(|kind| set.contains(kind));
        if kinds.is_empty() {
            survey.untold(&name, "the kernel lists none for it");
        } else if kinds.iter().any(|kind| BY_PRIORITY.contains(kind)) || known(&["noqueue"]) {
            survey.good(&name, &shown);
        } else if known(&WITHOUT_PRIORITY) {
            survey.costs(
                &name,
                &shown,
                &format!("tc qdisc replace dev {name} root pfifo_fast"),
            );
        } else {
            survey.untold(&name, &format!("{shown} is not known here"));
        }
    }
    survey.judge("let packets of urgent connections (SO_PRIORITY, DSCP) go first:")
}

/// Whether receivers look for packets themselves.
pub(super) fn busy_poll(machine: &Machine) -> Examined {
    let value = |name| machine.value::<u32>(&format!("/proc/sys/net/core/{name}"));
    let (read, poll) = match (value("busy_read"), value("busy_poll")) {
        (Ok(read), Ok(poll)) => (read, poll),
        (Err(error), _) | (_, Err(error)) if error.is_absent() => {
            return Ok(Judgement::missing(
                format!("the kernel cannot poll ({error})"),
                "boot a kernel with CONFIG_NET_RX_BUSY_POLL=y",
            ));
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let found = format!("{read} µs in reads, {poll} µs in polls");
    if read > 0 && poll > 0 {
        return Ok(Judgement::good(found));
    }
    Ok(Judgement::costs(
        found,
        "only where a CPU may spin, and the interface's driver supports it:\n  \
         sysctl -w net.core.busy_read=50 net.core.busy_poll=50",
    ))
}

/// The interfaces that count: those that are up, without the loopback; of these, where there are
/// such, those with a device.
fn interfaces(machine: &Machine) -> Result<Vec<String>, Unreadable> {
    let mut up = Vec::new();
    for name in machine.list(NET)? {
        let path = format!("{NET}/{name}/operstate");
        // There may be files among them that are no interfaces.
        if name == "lo" || !machine.exists(&path) {
            continue;
        }
        match machine.read(&path)?.as_str() {
            "up" | "unknown" => up.push(name),
            "down" | "dormant" | "lowerlayerdown" | "notpresent" | "testing" => {}
            other => return Err(Unreadable::rubbish(&path, other)),
        }
    }
    let real: Vec<_> = (up.iter())
        .filter(|name| machine.exists(&format!("{NET}/{name}/device")))
        .cloned()
        .collect();
    Ok(if real.is_empty() { up } else { real })
}

/// What the interfaces have, each with its name.
#[derive(Default)]
struct Survey {
    good: Vec<String>,
    costs: Vec<String>,
    untold: Vec<String>,
    commands: Vec<String>,
}

impl Survey {
    fn good(&mut self, name: &str, what: &str) {
        self.good.push(format!("{name}: {what}"));
    }

    fn costs(&mut self, name: &str, what: &str, command: &str) {
        self.costs.push(format!("{name}: {what}"));
        self.commands.push(format!("\n  {command}"));
    }

    fn untold(&mut self, name: &str, why: &str) {
        self.untold.push(format!("{name} cannot be told: {why}"));
    }

    fn judge(self, advice: &str) -> Examined {
        let found = [&self.costs[..], &self.untold, &self.good]
            .concat()
            .join("; ");
        Ok(if !self.costs.is_empty() {
            Judgement::costs(found, format!("{advice}{}", self.commands.concat()))
        } else if !self.untold.is_empty() {
            Judgement::unknown(
                found,
                "ask the driver, or look at the host if the interface is a virtual one:\n  \
                 ethtool -k INTERFACE; ethtool -c INTERFACE; tc qdisc show",
            )
        } else if found.is_empty() {
            Judgement::good("no interface but the loopback is up")
        } else {
            Judgement::good(found)
        })
    }
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
/// Disciplines that know no priority, and those that only hold others.
const WITHOUT_PRIORITY: [&str; 14] = [
    "bfifo", "cake", "clsact", "codel", "fq", "fq_codel", "fq_pie", "ingress", "mq", "noqueue",
    "pfifo", "red", "sfq", "tbf",
];

#[cfg(test)]
mod tests {
    use chronorb_net::{Coalescing, Offloads};

    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good, Missing};
    use crate::doctor::fixture::{Fixture, UNREADABLE, assert_verdicts, finding};
    use crate::doctor::machine::Link;

    /// A loopback, `eth0` which is up, and `eth1` which is down.
    const INTERFACES: [(&str, &str); 5] = [
        ("/sys/class/net/lo/operstate", "unknown"),
        ("/sys/class/net/eth0/operstate", "up"),
        ("/sys/class/net/eth0/ifindex", "2"),
        ("/sys/class/net/eth0/gro_flush_timeout", "0"),
        ("/sys/class/net/eth1/operstate", "down"),
    ];

    fn with_link(link: Link) -> Fixture {
        let mut fixture = Fixture::new(&INTERFACES);
        fixture.machine.links.insert("eth0".to_owned(), link);
        fixture
    }

    fn refused() -> Link {
        Link {
            offloads: Err("not permitted".to_owned()),
            coalescing: Err("not supported".to_owned()),
        }
    }

    #[test]
    fn interfaces_that_are_down_and_the_loopback_do_not_count() {
        let names = |files: &[(&str, &str)]| interfaces(&Fixture::new(files).machine).unwrap();
        assert_eq!(names(&INTERFACES), ["eth0"]);
        let mut files = INTERFACES.to_vec();
        files.push(("/sys/class/net/veth7/operstate", "up"));
        assert_eq!(names(&files), ["eth0", "veth7"]);
        files.push(("/sys/class/net/eth0/device", UNREADABLE));
        assert_eq!(names(&files), ["eth0"]);
    }

    #[test]
    fn an_interface_that_does_not_say_whether_it_is_up_is_not_left_out() {
        for id in ["network-offloads", "napi-threads"] {
            assert_verdicts(
                id,
                &[("/sys/class/net/bonding_masters", "bond0")],
                "/sys/class/net/eth0/operstate",
                &[
                    ("down", Good),
                    ("banana", CannotBeTold),
                    (UNREADABLE, CannotBeTold),
                ],
            );
        }
    }

    #[test]
    fn a_machine_without_interfaces_has_none_that_cost() {
        let files = [("/sys/class/net/lo/operstate", "unknown")];
        for id in [
            "network-offloads",
            "interrupt-coalescing",
            "napi-threads",
            "network-queueing",
        ] {
            assert_eq!(finding(id, &files).verdict, Good, "{id}");
            assert_eq!(finding(id, &[]).verdict, CannotBeTold, "{id}");
        }
    }

    #[test]
    fn each_offload_is_named_with_its_switch() {
        let offloads = Offloads {
            generic_receive: true,
            tcp_segmentation: true,
            ..Offloads::default()
        };
        let on = with_link(Link {
            offloads: Ok(offloads),
            ..refused()
        });
        let finding = on.finding("network-offloads");
        assert_eq!(finding.verdict, CostsLatency);
        assert_eq!(finding.found, "eth0: gro, tso");
        let remedy = finding.remedy.unwrap();
        assert!(
            remedy.ends_with("\n  ethtool -K eth0 gro off tso off"),
            "{remedy}"
        );

        let off = with_link(Link {
            offloads: Ok(Offloads::default()),
            ..refused()
        });
        assert_eq!(off.finding("network-offloads").verdict, Good);
        let untold = with_link(refused()).finding("network-offloads");
        assert_eq!(untold.verdict, CannotBeTold);
        assert!(untold.found.contains("not permitted"), "{}", untold.found);
        assert_eq!(
            Fixture::new(&INTERFACES)
                .finding("network-offloads")
                .verdict,
            CannotBeTold
        );
    }

    #[test]
    fn held_back_interrupts_are_told_with_their_time() {
        let verdict = |receive_us, receive_frames, adaptive_receive| {
            let fixture = with_link(Link {
                coalescing: Ok(Coalescing {
                    receive_us,
                    receive_frames,
                    adaptive_receive,
                }),
                ..refused()
            });
            fixture.finding("interrupt-coalescing").verdict
        };
        assert_eq!(verdict(0, 1, false), Good);
        assert_eq!(verdict(50, 0, false), CostsLatency);
        assert_eq!(verdict(0, 32, false), CostsLatency);
        assert_eq!(verdict(0, 0, true), CostsLatency);
        let untold = with_link(refused()).finding("interrupt-coalescing");
        assert_eq!(untold.verdict, CannotBeTold);
    }

    #[test]
    fn the_kernel_may_hold_interrupts_back_itself() {
        for (content, verdict) in [
            ("20000", CostsLatency),
            ("0", Good),
            ("banana", CannotBeTold),
            (UNREADABLE, CannotBeTold),
        ] {
            let mut files = INTERFACES.to_vec();
            files[3].1 = content;
            let mut fixture = Fixture::new(&files);
            let link = Link {
                coalescing: Ok(Coalescing::default()),
                ..refused()
            };
            fixture.machine.links.insert("eth0".to_owned(), link);
            let finding = fixture.finding("interrupt-coalescing");
            assert_eq!(finding.verdict, verdict, "{finding:?}");
        }
    }

    #[test]
    fn receiving_is_done_in_threads_or_not() {
        assert_verdicts(
            "napi-threads",
            &INTERFACES,
            "/sys/class/net/eth0/threaded",
            &[
                ("1", Good),
                ("0", CostsLatency),
                ("7", CannotBeTold),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        assert_eq!(finding("napi-threads", &INTERFACES).verdict, Missing);
    }

    #[test]
    fn queues_know_priorities_or_not() {
        let verdict = |kinds: &[&str]| {
            let mut fixture = Fixture::new(&INTERFACES);
            let discipline = |kind: &&str| (2, (*kind).to_owned());
            fixture.machine.disciplines = Ok(kinds.iter().map(discipline).collect());
            fixture.finding("network-queueing").verdict
        };
        assert_eq!(verdict(&["pfifo_fast"]), Good);
        assert_eq!(verdict(&["noqueue"]), Good);
        assert_eq!(verdict(&["htb", "pfifo"]), Good);
        assert_eq!(verdict(&["fq_codel"]), CostsLatency);
        assert_eq!(verdict(&["mq", "fq_codel", "fq_codel"]), CostsLatency);
        assert_eq!(verdict(&["banana"]), CannotBeTold);
        assert_eq!(verdict(&[]), CannotBeTold);

        let mut fixture = Fixture::new(&INTERFACES);
        fixture.machine.disciplines = Err("no answer".to_owned());
        let finding = fixture.finding("network-queueing");
        assert_eq!(finding.verdict, CannotBeTold);
        assert!(finding.found.contains("no answer"), "{}", finding.found);
    }

    #[test]
    fn polling_is_on_off_or_impossible() {
        let read = ("/proc/sys/net/core/busy_read", "50");
        assert_verdicts(
            "busy-poll",
            &[read],
            "/proc/sys/net/core/busy_poll",
            &[
                ("50", Good),
                ("0", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        assert_eq!(finding("busy-poll", &[read]).verdict, Missing);
    }
}
