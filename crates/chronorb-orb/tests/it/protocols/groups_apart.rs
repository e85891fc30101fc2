//! Groups whose members are on several machines: network namespaces, joined by a bridge.
//!
//! The test starts itself again in each of them. It needs the command `ip` and the right to make
//! namespaces.

use chronorb_orb::OrbConfig;
use chronorb_orb::transport::multicast::MulticastOptions;
use std::env;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::descriptors::spawn;
use crate::support::group::{Ears, group, group_orb_with, tell_octets};
use crate::support::name_of;

/// The environment variable that tells a process on one of the machines its part.
const PART: &str = "CHRONORB_TEST_PART";
/// The mark before output for the test.
const MARK: &str = "TOLD: ";

const GROUPS: [&str; 2] = [
    "corbaloc:miop:1.0@1.0-Apart-1/239.255.7.1:7001",
    "corbaloc:miop:1.0@1.0-Apart-2/[ff15::7]:7002",
];

/// The body of a machine's process; it does nothing in the test's own process.
#[test]
fn a_part() {
    match env::var(PART).as_deref() {
        Err(_) => {}
        Ok("call") => call(),
        Ok(name) => be_a_member(name),
    }
}

fn configure(config: &mut OrbConfig) {
    let options = MulticastOptions::parse("interface=eth");
    config.multicast = options.expect("right options");
}

fn be_a_member(name: &str) {
    let name: &'static str = name.to_owned().leak();
    let server = group_orb_with(configure);
    let root = server.root_poa().expect("the endpoint opens");
    root.manager().activate().expect("it was not deactivated");
    let ears = Ears::new();
    let id = root
        .activate_object(ears.member(name))
        .expect("it activates");
    for url in GROUPS {
        let joined = root.associate_reference_with_id(&group(&server, url), &id);
        joined.expect("the group can be listened at");
    }
    println!("\n{MARK}joined");
    for _ in 0..2 * GROUPS.len() {
        let heard = ears.next();
        println!(
            "\n{MARK}{} {} {}",
            heard.member,
            heard.text,
            heard.octets.len()
        );
    }
}

fn call() {
    let client = group_orb_with(configure);
    for (text, url) in ["four", "six"].into_iter().zip(GROUPS) {
        let group = group(&client, url);
        for len in [10, 20_000] {
            tell_octets(&group, text, &vec![7; len]).expect("it is sent");
        }
    }
}

#[test]
fn a_group_is_called_from_one_machine_and_heard_on_others() {
    let machines = match Machines::new() {
        Ok(machines) => machines,
        Err(missing) => {
            println!("NOT RUN: there are no network namespaces: {missing}");
            let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {missing}");
            return;
        }
    };
    let mut members = [1, 2].map(|n| {
        let mut member = machines.start(n, ["", "first", "second"][n]);
        assert_eq!(member.word(), "joined");
        member
    });
    machines.start(0, "call").finish();
    for (member, name) in members.iter_mut().zip(["first", "second"]) {
        let mut heard: Vec<_> = (0..4).map(|_| member.word()).collect();
        heard.sort();
        let expected = ["four 10", "four 20000", "six 10", "six 20000"];
        assert_eq!(heard, expected.map(|text| format!("{name} {text}")));
    }
    members.into_iter().for_each(Part::finish);
}

/// Three machines at one bridge, which is a fourth one.
struct Machines(Vec<String>);

impl Machines {
    fn new() -> Result<Self, String> {
        let name = |n| format!("chronorb-{}-{n}", std::process::id());
        let mut this = Self(Vec::new());
        for n in 0..=HUB {
            ip(&format!("netns add {}", name(n)))?;
            this.0.push(name(n));
            this.at(n, "link set lo up")?;
        }
        this.at(HUB, "link add hub type bridge mcast_snooping 0")?;
        this.at(HUB, "link set hub up")?;
        for n in 0..HUB {
            let machine = &this.0[n];
            this.at(
                HUB,
                &format!("link add port{n} type veth peer name eth netns {machine}"),
            )?;
            this.at(HUB, &format!("link set port{n} master hub up"))?;
            this.at(n, &format!("addr add 10.77.0.{}/24 dev eth", n + 1))?;
            this.at(n, &format!("addr add fd77::{}/64 dev eth nodad", n + 1))?;
            this.at(n, "link set eth up")?;
        }
        Ok(this)
    }

    fn at(&self, machine: usize, command: &str) -> Result<(), String> {
        ip(&format!("-n {} {command}", self.0[machine]))
    }

    /// Starts a part on a machine.
    fn start(&self, machine: usize, part: &str) -> Part {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.0[machine]])
            .arg(env::current_exe().expect("it runs"))
            .args(["--exact", name_of(a_part), "--nocapture"])
            .env(PART, part)
            .stdout(Stdio::piped());
        let mut child = spawn(&mut command).expect("it starts again");
        let output = child.stdout.take().expect("it is piped");
        Part {
            child,
            output: BufReader::new(output),
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in &self.0 {
            if let Err(problem) = ip(&format!("netns del {machine}")) {
                eprintln!("a namespace stays behind: {problem}");
            }
        }
    }
}

fn ip(command: &str) -> Result<(), String> {
    let run = || -> io::Result<std::process::Output> {
        let mut program = Command::new("ip");
        program
            .args(command.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        spawn(&mut program)?.wait_with_output()
    };
    let output = run().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("ip {command}: {}", said.trim()))
    }
}

/// A process on a machine.
struct Part {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Part {
    /// Returns the next output of the process.
    fn word(&mut self) -> String {
        loop {
            let mut line = String::new();
            let n = self.output.read_line(&mut line).expect("it is open");
            assert_ne!(n, 0, "the process ended without a word");
            if let Some(word) = line.strip_prefix(MARK) {
                return word.trim_end().to_owned();
            }
        }
    }

    /// Waits until the process succeeds.
    fn finish(mut self) {
        while self.output.read_line(&mut String::new()).unwrap_or(0) > 0 {}
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "a process failed: {status}");
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended long since.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The machine that is the bridge.
const HUB: usize = 3;
