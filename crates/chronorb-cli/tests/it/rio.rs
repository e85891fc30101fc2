//! `chronorb rio`, as it is used.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use chronorb_net::{NetworkNamespace, receive_queues};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{chronorb, stderr, stdout};

/// A setup that is up; `None`, with a word about it, where this process may not have one.
struct Setup {
    process: Option<Child>,
    shown: Value,
}

impl Drop for Setup {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // Its guardian undoes what a test that failed has left.
            let _ = process.kill().and_then(|()| process.wait());
        }
    }
}

impl Setup {
    fn up(arguments: &[&str]) -> Option<Self> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_chronorb"))
            .args(["rio", "setup", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("it is text");
        if !line.is_empty() {
            let shown = serde_json::from_str(&line).expect("an object");
            return Some(Self {
                process: Some(process),
                shown,
            });
        }
        let (_, said) = end(process);
        not_run(&said);
        None
    }

    /// The paths of the names that its namespaces have.
    fn names(&self) -> Vec<String> {
        let hosts = self.shown["hosts"].as_array().expect("a list").iter();
        let names = hosts
            .map(|host| &host["namespace"])
            .chain([&self.shown["switch"]]);
        let directory = self.shown["directory"].as_str().expect("a path");
        let path = |name: &Value| format!("{directory}/{}", name.as_str().expect("a name"));
        names.map(path).collect()
    }

    /// Sends the process a signal, and waits for the end of it and of its guardian.
    fn signal(mut self, signal: Signal) -> (ExitStatus, String) {
        let process = self.process.take().expect("it has not ended");
        kill_process(Pid::from_child(&process), signal).expect("it runs");
        end(process)
    }
}

/// Says why a test is not run, which can only be that rights are missing.
fn not_run(why: &str) {
    assert!(why.contains("CAP_"), "{why}");
    println!("NOT RUN: {why}");
    let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
    assert!(!required, "CHRONORB_PEERS=required: {why}");
}

/// Waits for a process and its guardian, which inherits its standard error. Returns the exit status
/// and the standard error of both.
fn end(mut process: Child) -> (ExitStatus, String) {
    let mut said = String::new();
    let mut output = process.stderr.take().expect("it is piped");
    output.read_to_string(&mut said).expect("it is text");
    (process.wait().expect("it ends"), said)
}

#[test]
fn a_network_is_there_until_the_command_is_asked_to_end() {
    for signal in [Signal::INT, Signal::TERM] {
        let network = ["--netns", "--rate", "100 Mbit", "--mtu", "9000"];
        let arguments = [&network[..], &["--delay", "1ms"]].concat();
        let Some(setup) = Setup::up(&arguments) else {
            return;
        };
        let names = setup.names();
        assert!(
            names.iter().all(|name| Path::new(name).exists()),
            "{names:?}"
        );
        assert_eq!(setup.shown["mtu"], 9000);
        assert_eq!(setup.shown["delay_us"], 1000);
        let (status, said) = setup.signal(signal);
        assert_eq!((status.code(), &*said), (Some(0), ""));
        assert!(
            !names.iter().any(|name| Path::new(name).exists()),
            "{names:?}"
        );
    }
}

#[test]
fn hosts_receive_by_as_many_queues_as_they_shall() {
    for (arguments, queues) in [(&["--netns"][..], 1), (&["--netns", "--queues", "3"], 3)] {
        let Some(setup) = Setup::up(arguments) else {
            return;
        };
        assert_eq!(setup.shown["receive_queues"], queues);
        for name in &setup.names()[..2] {
            let host = NetworkNamespace::open(Path::new(name)).expect("it is there");
            let asked = host
                .enter(|| receive_queues(INTERFACE))
                .expect("root may read it");
            assert_eq!(asked.expect("it tells"), queues);
        }
        let (status, said) = setup.signal(Signal::TERM);
        assert_eq!((status.code(), &*said), (Some(0), ""));
    }
}

#[test]
fn nothing_is_left_where_the_command_is_killed() {
    let Some(setup) = Setup::up(&["--netns"]) else {
        return;
    };
    let names = setup.names();
    let (_, said) = setup.signal(Signal::KILL);
    assert_eq!(said, "");
    assert!(
        !names.iter().any(|name| Path::new(name).exists()),
        "{names:?}"
    );
}

#[test]
fn where_its_guardian_is_killed_the_command_undoes_all_and_ends() {
    let Some(mut setup) = Setup::up(&["--netns"]) else {
        return;
    };
    let names = setup.names();
    let command = setup.process.take().expect("it has not ended");
    let process = command.id();
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.expect("it runs");
    let guardian = children.split_whitespace().next().expect("it has one");
    let guardian = guardian.parse().ok().and_then(Pid::from_raw);
    kill_process(guardian.expect("a process"), Signal::KILL).expect("it runs");
    let (status, said) = end(command);
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("guardian"), "{said}");
    assert!(
        !names.iter().any(|name| Path::new(name).exists()),
        "{names:?}"
    );
}

#[test]
fn nothing_is_left_where_the_command_is_killed_and_its_guardian_was_stopped() {
    let Some(setup) = Setup::up(&["--netns"]) else {
        return;
    };
    let names = setup.names();
    let process = setup.process.as_ref().expect("it has not ended").id();
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.expect("it runs");
    let guardian = children.split_whitespace().next().expect("it has one");
    let state = format!("/proc/{guardian}/stat");
    let guardian = guardian.parse().ok().and_then(Pid::from_raw);
    kill_process(guardian.expect("a process"), Signal::STOP).expect("it runs");
    // The kernel continues only those that have stopped when their parent ends.
    while !fs::read_to_string(&state)
        .expect("it runs")
        .contains(") T ")
    {
        std::thread::yield_now();
    }
    let (_, said) = setup.signal(Signal::KILL);
    assert_eq!(said, "");
    assert!(
        !names.iter().any(|name| Path::new(name).exists()),
        "{names:?}"
    );
}

#[test]
fn an_address_that_no_host_can_have_is_refused() {
    for address in ["0.0.0.0", "127.0.0.1", "10.0.0.255"] {
        let refused = chronorb(
            Path::new("."),
            &["rio", "setup", "--netns", "--address", address],
        );
        assert_eq!(refused.status.code(), Some(1), "{address}");
        assert!(stderr(&refused).contains(address), "{}", stderr(&refused));
    }
}

#[test]
fn a_name_is_given_once() {
    let name = format!("chronorb-test-{}", std::process::id());
    let arguments = ["--netns", "--name", &name, "--address", "10.80.3.1"];
    let Some(setup) = Setup::up(&arguments) else {
        return;
    };
    assert_eq!(setup.shown["hosts"][1]["addresses"][0], "10.80.3.2");
    let again = [&["rio", "setup"], &arguments[..]].concat();
    let again = chronorb(Path::new("."), &again);
    assert_eq!(again.status.code(), Some(1));
    let refused = stderr(&again);
    assert!(
        refused.contains(&name) && refused.contains("another name"),
        "{refused}"
    );
    // The network that is there has not suffered.
    assert!(setup.names().iter().all(|name| Path::new(name).exists()));
    let (status, _) = setup.signal(Signal::TERM);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn what_is_left_behind_can_be_removed_by_name() {
    let name = format!("chronorb-left-{}", std::process::id());
    let Some(setup) = Setup::up(&["--netns", "--name", &name]) else {
        return;
    };
    let names = setup.names();
    let down = ["rio", "setup", "--down", "--json", "--name", &name];
    let down = chronorb(Path::new("."), &down);
    assert_eq!(down.status.code(), Some(0), "{}", stderr(&down));
    let removed: Value = serde_json::from_str(stdout(&down)).expect("an object");
    let removed = removed["removed"].as_array().expect("a list");
    assert!(
        removed.contains(&format!("{name}-switch").into()),
        "{removed:?}"
    );
    assert!(
        !names.iter().any(|name| Path::new(name).exists()),
        "{names:?}"
    );
    // It has nothing left to undo, which is no failure.
    let (status, said) = setup.signal(Signal::TERM);
    assert_eq!((status.code(), &*said), (Some(0), ""));
}

#[test]
fn what_others_have_made_is_not_removed() {
    let name = format!("chronorb-others-{}", std::process::id());
    // No process has this id.
    let absent = 4_000_000_000 + std::process::id();
    let namespaces = [format!("{name}-a"), format!("chronorb-{absent}-b")];
    let ip = |verb: &str, namespace: &str| {
        let mut command = Command::new("ip");
        let status = command.args(["netns", verb, namespace]).status();
        status.is_ok_and(|status| status.success())
    };
    if !namespaces.iter().all(|it| ip("add", it)) {
        let _those_that_are_there = namespaces.map(|it| ip("delete", &it));
        return not_run("it needs iproute2 and CAP_SYS_ADMIN");
    }
    let link = format!("/run/netns/{name}-b");
    std::os::unix::fs::symlink("/proc/self/ns/net", &link).expect("it is free");
    let all = chronorb(Path::new("."), &["rio", "setup", "--down"]);
    let named = chronorb(Path::new("."), &["rio", "setup", "--down", "--name", &name]);
    let is_left = fs::symlink_metadata(&link).is_ok();
    let _removed = fs::remove_file(&link);
    let are_left = namespaces.map(|it| ip("delete", &it));
    assert_eq!(all.status.code(), Some(0), "{}", stderr(&all));
    assert_eq!(named.status.code(), Some(1), "{}", stdout(&named));
    assert!(stderr(&named).contains("left alone"), "{}", stderr(&named));
    assert_eq!((is_left, are_left), (true, [true; 2]));
}

const PLAN: &str = r#"
[interface]
name = "rio0"
rate = "20 Mbit"
driver = "kernel"

[[class]]
name = "control"
native = 20
processing = "periodic"
period = "10 ms"
budget = 8
ports = "4711"
"#;

#[test]
fn the_kernel_keeps_a_plan_until_the_command_ends() {
    let network = match Network::build(&Layout::default()) {
        Ok(network) => network,
        Err(error) => return not_run(&error.to_string()),
    };
    let host = network.host(Host::A);
    let directory = tempfile::tempdir().expect("a directory");
    let plan = directory.path().join("plan.toml");
    fs::write(&plan, PLAN).expect("it can be written");
    let plan = plan.to_str().expect("a text");
    let index = host.link().expect("it is there").index;
    let queues = || {
        let mut netlink = host.netlink().expect("it opens");
        let queues = netlink.disciplines(index).expect("they are listed");
        queues
            .into_iter()
            .map(|queue| queue.kind)
            .collect::<Vec<_>>()
    };
    let links = || {
        let mut netlink = host.netlink().expect("it opens");
        netlink.links().expect("they are listed").len()
    };
    let links_before = links();
    assert_eq!(queues(), ["noqueue"]);
    for signal in [Signal::TERM, Signal::KILL] {
        let up = || Setup::up(&["--kernel", plan, "--ingress"]);
        let Some(setup) = host.enter(up) else { return };
        assert_eq!(queues(), ["htb", "pfifo", "ingress"]);
        assert_eq!(links(), links_before + 1);
        let control = &setup.shown["classes"][0];
        assert_eq!(control["name"], "control");
        // 8 packets of 1,500 octets, and 42 around each, in 10 ms.
        assert_eq!(control["rate_bit_per_s"], 9_868_800);
        let endpoint = "'riop://HOST:4711/driver=kernel&class=control'";
        let options = format!("-ORBRioPlan {plan} -ORBListenEndpoints {endpoint}");
        assert_eq!(control["endpoints"], options);
        let (_, said) = setup.signal(signal);
        assert_eq!(said, "");
        assert_eq!(
            (queues(), links()),
            (vec!["noqueue".to_owned()], links_before)
        );
    }
}

#[test]
fn what_the_kernel_keeps_is_shown_with_the_names_of_the_plan() {
    let layout = Layout::default();
    let network = match Network::build(&layout) {
        Ok(network) => network,
        Err(error) => return not_run(&error.to_string()),
    };
    let [a, b] = [Host::A, Host::B].map(|host| network.host(host));
    let directory = tempfile::tempdir().expect("a directory");
    let [plan, other] = [
        ("plan", PLAN.to_owned()),
        ("other", PLAN.replace("8\n", "9\n")),
    ];
    let [plan, other] = [plan, other].map(|(name, text)| {
        let file = directory.path().join(name);
        fs::write(&file, text).expect("it can be written");
        file.to_str().expect("a text").to_owned()
    });
    let status = |arguments: &[&str]| {
        let once = ["rio", "status", "--once", "--interval", "100"];
        a.enter(|| chronorb(Path::new("."), &[&once[..], arguments].concat()))
    };
    let json = |arguments: &[&str]| {
        let output = status(&[&["--json"], arguments].concat());
        let object: Value = serde_json::from_slice(&output.stdout).expect("an object");
        object["kernel"].as_array().expect("a list").clone()
    };
    let up = || Setup::up(&["--kernel", &plan, "--ingress"]);
    let Some(setup) = a.enter(up) else { return };

    let address = SocketAddr::from((layout.b.v4, 4711));
    let listener = b.enter(|| TcpListener::bind(address)).expect("it is free");
    let mut stream = (a.enter(|| TcpStream::connect(address))).expect("B listens");
    stream.write_all(&[7; 10_000]).expect("B receives");
    let (mut there, _) = listener.accept().expect("A has connected");
    there.read_exact(&mut [0; 10_000]).expect("A has sent");
    let [out, inward] = &json(&["--plan", &plan])[..] else {
        panic!("both ways are shown");
    };
    assert_eq!(
        (&out["interface"], &out["direction"]),
        (&"rio0".into(), &"out".into())
    );
    assert_eq!(
        (&inward["interface"], &inward["direction"]),
        (&"rio0".into(), &"in".into())
    );
    let [control, others] = &out["classes"].as_array().expect("a list")[..] else {
        panic!("{out}");
    };
    assert_eq!(
        (&control["name"], &others["name"]),
        (&"control".into(), &"others".into())
    );
    assert_eq!(control["rate_bit_per_s"], 9_868_800);
    assert!(control["octets"].as_u64() > Some(10_000), "{control}");
    // All has gone out by then.
    assert_eq!(
        (&control["used"], &control["queue"]["packets"]),
        (&0.0.into(), &0.into())
    );

    // The kernel alone does not know the name; another plan does not give it one.
    let handle = control["handle"].as_str().expect("a text");
    assert_eq!(json(&[])[0]["classes"][0]["name"], Value::Null);
    assert_eq!(
        json(&["--plan", &other])[0]["classes"][0]["name"],
        Value::Null
    );
    let shown = status(&["--plan", &plan]);
    let text = stdout(&shown);
    assert!(text.contains("rio0  the kernel, what comes in"), "{text}");
    let line = text.lines().find(|line| line.starts_with("control "));
    let begin =
        "control         0 9.9M   9.9M        -     -     0     0     0     -    0%     -     0";
    assert!(line.is_some_and(|line| line.starts_with(begin)), "{text}");
    let shown = status(&["--plan", &other]);
    let text = stdout(&shown);
    assert!(
        text.contains(&format!("by another plan than {other}")),
        "{text}"
    );
    assert!(text.contains(&format!("\n{handle} ")), "{text}");

    let (_, said) = setup.signal(Signal::TERM);
    assert_eq!(said, "");
    let object = status(&["--json"]);
    // Other processes of the machine may run RIO.
    if object.status.success() {
        let object: Value = serde_json::from_slice(&object.stdout).expect("an object");
        assert_eq!(object["kernel"], Value::Array(Vec::new()));
    }
}

#[test]
fn wrong_arguments_are_told() {
    for arguments in [
        &["rio"][..],
        &["rio", "setup"],
        &["rio", "setup", "--rate", "1 Mbit"],
        &["rio", "setup", "--netns", "--rate", "fast"],
        &["rio", "setup", "--netns", "--mtu", "60"],
        &["rio", "setup", "--netns", "--delay", "long"],
        &["rio", "setup", "--netns", "--delay", "1ms", "--offloads"],
        &["rio", "setup", "--netns", "--down"],
        &["rio", "setup", "--netns", "--kernel", "plan.toml"],
        &["rio", "setup", "--netns", "--mapping", "direct"],
        &["rio", "setup", "--netns", "--ingress"],
        &["rio", "setup", "--netns", "--address", "here"],
        &["rio", "status", "--pid", "1", "--plan", "plan.toml"],
    ] {
        let output = chronorb(Path::new("."), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let output = chronorb(
        Path::new("."),
        &["rio", "setup", "--netns", "--name", "../x"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot be named"),
        "{}",
        stderr(&output)
    );
}
