//! Plans that the kernel enforces: shares of an interface by its own queues, with the kernel's
//! counters.

use chronorb_net::{Discipline, Handle, Offloads, QueueInfo, Undo};
use chronorb_rio::kernel::{EnforcedPlan, KernelError, Ways, counted};
use chronorb_rio::plan::{DriverKind, Interface, Policy, Processing, Reservation};
use chronorb_rt::{Scheduling, scheduling_of_process};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const FAST: u16 = 4711;
const SLOW: u16 = 4712;

fn interface() -> Interface {
    Interface {
        name: INTERFACE.to_owned(),
        rate: Some(20_000_000),
        mtu: 1500,
        driver: DriverKind::Kernel,
    }
}

/// Returns a class with this many packets per 10 ms to or from a port.
fn class(name: &str, priority: u8, port: u16, packets: u32) -> Reservation {
    Reservation {
        name: name.to_owned(),
        policy: Policy::Fifo,
        priority,
        processing: Processing::Periodic {
            period: Duration::from_millis(10),
            budget: packets,
        },
        ports: vec![port..=port],
        ..Reservation::default()
    }
}

/// Returns classes of 10 Mbit/s and 2 Mbit/s.
fn classes() -> [Reservation; 2] {
    [class("fast", 20, FAST, 8), class("slow", 10, SLOW, 2)]
}

fn keep(network: &Network, ways: Ways) -> Result<EnforcedPlan, KernelError> {
    let mut told = |_: &Undo| Ok(());
    let keep = || EnforcedPlan::keep(&interface(), &classes(), ways, &mut told);
    network.host(Host::A).enter(keep)
}

/// Lets host A send to a port of host B until it has sent this many octets, or `end` is set.
fn send(network: &Network, to: IpAddr, port: u16, octets: usize, end: &AtomicBool) {
    let listen = || TcpListener::bind(SocketAddr::new(to, port)).expect("the port is free");
    let listener = network.host(Host::B).enter(listen);
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("A connects");
        io::copy(&mut stream, &mut io::sink()).expect("A closes")
    });
    let connect = || TcpStream::connect((to, port)).expect("B listens");
    let mut stream = network.host(Host::A).enter(connect);
    let mut sent = 0;
    while sent < octets && !end.load(Ordering::Relaxed) {
        stream.write_all(&[7; 1000]).expect("B receives");
        sent += 1000;
    }
    drop(stream);
    receiver.join().expect("it does not panic");
}

fn index(network: &Network) -> u32 {
    network.host(Host::A).link().expect("it is there").index
}

fn sent_by_class(network: &Network, kept: &EnforcedPlan) -> Vec<(String, QueueInfo)> {
    let mut netlink = network.host(Host::A).netlink().expect("it opens");
    let all = netlink.classes(index(network)).expect("they are listed");
    let found = kept.tree().branches.iter().map(|branch| {
        let found = all.iter().find(|class| class.handle == branch.handle);
        (branch.name.clone(), found.expect("it is there").clone())
    });
    found.collect()
}

#[test]
fn classes_have_their_shares_by_both_protocols() {
    let layout = Layout::default();
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    for to in [IpAddr::from(layout.b.v4), layout.b.v6.into()] {
        let kept = keep(&network, Ways::Out).expect("the plan can be kept");
        let end = AtomicBool::new(false);
        thread::scope(|scope| {
            let slow = scope.spawn(|| send(&network, to, SLOW, usize::MAX, &end));
            send(&network, to, FAST, 1_000_000, &end);
            let sent = sent_by_class(&network, &kept);
            end.store(true, Ordering::Relaxed);
            // The queued packets leave without a limit.
            give_back(&network, kept);
            slow.join().expect("it does not panic");
            let [(_, fast), (_, slow), (_, others)] = &sent[..] else {
                panic!("{sent:?}");
            };
            // All packets of each one used its class, and had to wait for its rate.
            assert!(fast.sent.octets > 1_000_000, "{sent:#?}");
            assert!(
                fast.sent.over_rate > 0 && slow.sent.over_rate > 0,
                "{sent:#?}"
            );
            // The shares are 5 to 1, blurred by bursts and by the end of the faster one.
            let ratio = fast.sent.octets as f64 / slow.sent.octets as f64;
            assert!((2.5..10.0).contains(&ratio), "{ratio}: {sent:#?}");
            assert!(others.sent.octets < 10_000, "{sent:#?}");
        });
    }
}

#[test]
fn a_class_is_known_by_the_code_point_of_its_packets() {
    let layout = Layout::default();
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let marked = Reservation {
        ports: Vec::new(),
        dscp: Some(46),
        ..class("marked", 20, 1, 8)
    };
    let mut told = |_: &Undo| Ok(());
    let keep = || EnforcedPlan::keep(&interface(), &[marked], Ways::Out, &mut told);
    let kept = network.host(Host::A).enter(keep).expect("it can be kept");
    let address = SocketAddr::from((layout.b.v4, FAST));
    let listener = network.host(Host::B).enter(|| TcpListener::bind(address));
    let listener = listener.expect("the port is free");
    let connect = || TcpStream::connect(address).expect("B listens");
    let mut stream = network.host(Host::A).enter(connect);
    let octets = |kept: &EnforcedPlan| sent_by_class(&network, kept)[0].1.sent.octets;
    assert_eq!(octets(&kept), 0, "nothing is marked yet");
    rustix::net::sockopt::set_ip_tos(&stream, 46 << 2).expect("any process may");
    stream.write_all(&[7; 10_000]).expect("B receives");
    let (mut there, _) = listener.accept().expect("A has connected");
    there.read_exact(&mut [0; 10_000]).expect("A has sent");
    assert!(octets(&kept) > 10_000);
    give_back(&network, kept);
}

#[test]
fn what_comes_in_has_its_share_too_where_that_is_asked_for() {
    let layout = Layout::default();
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let a = network.host(Host::A);
    let kept = keep(&network, Ways::Both).expect("the plan can be kept");
    let inward = kept.inward().expect("it is asked for").to_owned();
    let listener = a.enter(|| TcpListener::bind((layout.a.v4, FAST)));
    let listener = listener.expect("the port is free");
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("B connects");
        io::copy(&mut stream, &mut io::sink()).expect("B closes")
    });
    let connect = || TcpStream::connect((layout.a.v4, FAST)).expect("A listens");
    let mut stream = network.host(Host::B).enter(connect);
    stream.write_all(&[7; 200_000]).expect("A receives");
    drop(stream);
    assert_eq!(receiver.join().expect("it does not panic"), 200_000);

    let mut netlink = a.netlink().expect("it opens");
    let index = netlink.link(&inward).expect("it is there").index;
    let classes = netlink.classes(index).expect("they are listed");
    let handle = kept.tree().branches[0].handle;
    let fast = classes.iter().find(|class| class.handle == handle);
    let fast = fast.expect("it is there").sent;
    assert!(fast.octets > 200_000 && fast.over_rate > 0, "{fast:?}");
    give_back(&network, kept);
    assert!(netlink.link(&inward).unwrap_err().is_absent());
}

#[test]
fn all_is_as_before_at_the_end() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let before = state(&network);
    let kept = keep(&network, Ways::Both).expect("the plan can be kept");
    assert_ne!(state(&network), before);
    give_back(&network, kept);
    assert_eq!(state(&network), before);
}

#[test]
fn packets_are_taken_in_by_threads_that_come_before_those_of_the_classes() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    // A virtual interface has such threads only if it merges packets.
    let merge = || Offloads::set_generic_receive(INTERFACE, true);
    network.host(Host::A).enter(merge).expect("it can");
    let before = state(&network);
    let kept = keep(&network, Ways::Out).expect("the plan can be kept");
    assert_eq!(threaded(&network), "1");
    let [thread] = kept.threads() else {
        panic!("one queue, one thread: {:?}", kept.threads());
    };
    assert!(thread.name.starts_with("napi/rio0-"), "{thread:?}");
    assert_eq!(thread.scheduling, Scheduling::fifo(21));
    let its = scheduling_of_process(thread.process).expect("it is there");
    assert_eq!(its, thread.scheduling);
    send(
        &network,
        Layout::default().b.v4.into(),
        FAST,
        10_000,
        &AtomicBool::new(false),
    );
    give_back(&network, kept);
    assert_eq!(state(&network), before);
}

fn give_back(network: &Network, kept: EnforcedPlan) {
    let ended = network.host(Host::A).enter(|| kept.end());
    ended.expect("it can be undone");
}

#[test]
fn queues_that_somebody_else_has_set_are_left_alone() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let mut netlink = network.host(Host::A).netlink().expect("it opens");
    let discipline = Discipline::Rate {
        rate: 1_000_000,
        burst: 10_000,
        limit: 100_000,
    };
    netlink
        .set_discipline(
            index(&network),
            Handle::ROOT,
            Handle::new(7, 0),
            &discipline,
        )
        .expect("it is allowed");
    let before = state(&network);
    let refused = keep(&network, Ways::Out).unwrap_err();
    assert!(matches!(refused, KernelError::Taken { .. }), "{refused}");
    assert_eq!(state(&network), before);
}

#[test]
fn what_is_kept_is_found_with_its_figures_and_nothing_else_is() {
    let layout = Layout::default();
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let mut netlink = network.host(Host::A).netlink().expect("it opens");
    assert_eq!(counted(&mut netlink).expect("it is told"), []);
    let foreign = Discipline::Classes { default: 0 };
    let (root, mine) = (Handle::ROOT, Handle::new(7, 0));
    netlink
        .set_discipline(index(&network), root, mine, &foreign)
        .expect("it is allowed");
    assert_eq!(counted(&mut netlink).expect("it is told"), []);
    netlink
        .remove_discipline(index(&network), root)
        .expect("it is there");

    let kept = keep(&network, Ways::Both).expect("the plan can be kept");
    send(
        &network,
        layout.b.v4.into(),
        FAST,
        10_000,
        &AtomicBool::new(false),
    );
    let [out, inward] = &counted(&mut netlink).expect("it is told")[..] else {
        panic!("it is kept both ways");
    };
    assert_eq!(
        (&*out.interface, &*inward.interface),
        (INTERFACE, INTERFACE)
    );
    assert_eq!((out.is_inward, inward.is_inward), (false, true));
    assert_eq!(Some(&*inward.queues), kept.inward());
    let names = out.names(&interface(), &classes());
    assert_eq!(names.expect("it is this plan"), ["fast", "slow", "others"]);
    let another = [class("fast", 20, FAST, 9), class("slow", 10, SLOW, 2)];
    assert_eq!(out.names(&interface(), &another), None);
    let [fast, slow, others] = out.shares[..] else {
        panic!("{out:?}");
    };
    let of_plan = kept.tree().branches[0].share;
    assert_eq!(
        (fast.rates.rate, fast.rates.ceiling, fast.rates.priority),
        (of_plan.rate, of_plan.ceiling, of_plan.priority)
    );
    assert!(fast.sent.octets > 10_000 && fast.wire_octets() > fast.sent.octets);
    assert_eq!((slow.sent.octets, slow.sent.dropped), (0, 0));
    assert!(others.is_of_others() && !slow.is_of_others());
    give_back(&network, kept);
    assert_eq!(counted(&mut netlink).expect("it is told"), []);
}

/// The body of the process that is killed; it does nothing in the test's own process.
#[test]
fn a_part() {
    if env::var_os(PART).is_none() {
        return;
    }
    let mut told = |change: &Undo| {
        println!("{TOLD}{change}");
        Ok(())
    };
    let kept = EnforcedPlan::keep(&interface(), &classes(), Ways::Both, &mut told)
        .expect("it can be kept");
    println!("{KEPT}");
    io::stdin()
        .read_to_end(&mut Vec::new())
        .expect("it is held open");
    drop(kept);
}

#[test]
fn what_a_killed_process_has_told_is_enough_to_undo_it() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let here = network.host(Host::A);
    let before = state(&network);
    let mut program = Command::new(env::current_exe().expect("it runs"));
    program
        .args(["--exact", "kernel::a_part", "--nocapture"])
        .env(PART, "keep")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = here.spawn(&mut program).expect("it starts again");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let lines = output.lines().map(|line| line.expect("a text"));
    let said: Vec<_> = lines.take_while(|line| line != KEPT).collect();
    assert_ne!(state(&network), before, "{said:?}");
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    assert_ne!(state(&network), before, "queues outlive a process");

    let told = said.iter().filter_map(|line| line.strip_prefix(TOLD));
    let told: Vec<Undo> = told.map(|line| line.parse().expect("a change")).collect();
    here.enter(|| chronorb_net::undo_all(&told))
        .expect("it can be undone");
    assert_eq!(state(&network), before);
}

/// Returns the queues of A's interface, its receiving mode, and the other interfaces.
fn state(network: &Network) -> (Vec<String>, String, Vec<String>) {
    let mut netlink = network.host(Host::A).netlink().expect("it opens");
    let queues = netlink
        .disciplines(index(network))
        .expect("they are listed");
    let queues = queues
        .iter()
        .map(|queue| format!("{} {}", queue.kind, queue.handle));
    let queues = queues.collect();
    let links = netlink.links().expect("they are listed").into_iter();
    (
        queues,
        threaded(network),
        links.map(|link| link.name).collect(),
    )
}

/// Reads sysfs, which shows the network namespace in which it was mounted.
fn threaded(network: &Network) -> String {
    let mut command = Command::new("unshare");
    let script = format!("mount -t sysfs none /sys && cat /sys/class/net/{INTERFACE}/threaded");
    command
        .args(["--mount", "sh", "-c", &script])
        .stdout(Stdio::piped());
    let child = network
        .host(Host::A)
        .spawn(&mut command)
        .expect("unshare is there");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .expect("a text")
        .trim()
        .to_owned()
}

const PART: &str = "CHRONORB_TEST_PART";
const TOLD: &str = "TOLD: ";
const KEPT: &str = "KEPT";
