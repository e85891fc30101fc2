//! chronorb with the real-time I/O subsystem on one host, omniORB and JacORB on the other. They use
//! plain IIOP and are not aware of RIO.

use std::env;
use std::path::Path;

use chronorb::prelude::*;
use chronorb_interop::groups::idl::{Member, MemberSkeleton};
use chronorb_interop::groups::{Heard, TellingMember};
use chronorb_interop::{Failure, write_file};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};

use crate::support::jacorb::Jacorb;
use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{Server, Side, run_client_at};
use crate::support::{Process, name_of};

/// The drivers of the interface.
const DRIVERS: [&str; 2] = ["xdp", "packet"];
/// The host with RIO.
const HERE: Host = Host::B;
/// The host without RIO.
const THERE: Host = Host::A;

/// Returns the two hosts; `None` if they are not available.
///
/// # Panics
/// With `CHRONORB_PEERS=required`, if they are not available.
fn network() -> Option<Network> {
    match Network::build(&Layout::default()) {
        Ok(network) => Some(network),
        Err(why) => {
            println!("NOT RUN: {why}");
            let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {why}");
            None
        }
    }
}

fn address(network: &Network, host: Host) -> String {
    network.host(host).addresses().v4.to_string()
}

/// Returns the endpoint of RIO.
fn endpoint(network: &Network, driver: &str) -> String {
    let address = address(network, HERE);
    format!("riop://{address}:4710/interface={INTERFACE}&driver={driver}")
}

/// Returns options by which nothing uses the kernel's TCP, including calls back.
fn options_for(driver: &str) -> [&str; 6] {
    [
        "-ORBProtocols",
        "riop",
        "-ORBRioInterface",
        INTERFACE,
        "-ORBRioDriver",
        driver,
    ]
}

#[test]
fn omniorb_on_another_host_calls_chronorb() {
    if !require(&[&OMNIORB]) {
        return;
    }
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let endpoint = endpoint(&network, driver);
        let server = network
            .host(HERE)
            .enter(|| Server::start_at(Side::Chronorb, &endpoint, &options_for(driver)));
        let there = format!("giop:tcp:{}:", address(&network, THERE));
        let options = ["--skip", "latin1-chars", "--shutdown"];
        network.host(THERE).enter(|| {
            run_client_at(Side::OmniOrb, &server.ior, &there, &options);
        });
        server.finish();
    }
}

#[test]
fn chronorb_calls_omniorb_on_another_host_and_is_called_back() {
    if !require(&[&OMNIORB]) {
        return;
    }
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let there = format!("giop:tcp:{}:", address(&network, THERE));
        let server = network
            .host(THERE)
            .enter(|| Server::start_at(Side::OmniOrb, &there, &[]));
        let options = options_for(driver);
        let options = [&options[..], &["--skip", "precise", "--shutdown"]].concat();
        let endpoint = endpoint(&network, driver);
        network.host(HERE).enter(|| {
            run_client_at(Side::Chronorb, &server.ior, &endpoint, &options);
        });
        server.finish();
    }
}

#[test]
fn chronorb_with_the_kernels_tcp_is_a_peer_like_any_other() {
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let endpoint = endpoint(&network, driver);
        let server = network
            .host(HERE)
            .enter(|| Server::start_at(Side::Chronorb, &endpoint, &options_for(driver)));
        let there = format!("iiop://{}:0", address(&network, THERE));
        network.host(THERE).enter(|| {
            run_client_at(
                Side::Chronorb,
                &server.ior,
                &there,
                &["--utf8", "--shutdown"],
            );
        });
        server.finish();
    }
}

/// The environment variable that selects the role of a process on a test host.
const PART: &str = "CHRONORB_TEST_PART";
const IOR_FILE: &str = "ior";

/// The body of chronorb's process on a host; it does nothing in the test's own process.
#[test]
fn a_part() -> Result<(), Failure> {
    let Ok(part) = env::var(PART) else {
        return Ok(());
    };
    let mut words: Vec<String> = part.split(' ').map(str::to_owned).collect();
    let orb = Orb::init(&mut words)?;
    match &words[..] {
        [call, reference] if call == "call" => call_member(&orb, reference),
        [serve, file] if serve == "serve" => serve_member(&orb, Path::new(file)),
        _ => panic!("there is no {part}"),
    }
}

fn octets(count: usize) -> Vec<u8> {
    (0..count).map(|n| n as u8).collect()
}

fn call_member(orb: &Orb, reference: &str) -> Result<(), Failure> {
    let member = Member::unchecked_narrow(&orb.string_to_object(reference)?);
    assert_eq!(member.ask("reversing")?, "gnisrever");
    let large = octets(100_000);
    let sum = large.iter().copied().map(i64::from).sum::<i64>();
    assert_eq!(member.sum(&large)?, sum);
    member.tell("long", &octets(20_000))?;
    Ok(member.leave()?)
}

fn serve_member(orb: &Orb, file: &Path) -> Result<(), Failure> {
    let (tell, told) = std::sync::mpsc::channel();
    let root = orb.root_poa()?;
    let object = root.serve(MemberSkeleton::new(TellingMember::new(tell)))?;
    root.manager().activate()?;
    write_file(&file.display().to_string(), &orb.object_to_string(&object))?;
    assert_eq!(told.recv()?, Heard::Told("short".to_owned(), octets(10)));
    assert_eq!(told.recv()?, Heard::Told("long".to_owned(), octets(20_000)));
    assert_eq!(told.recv()?, Heard::Leave);
    Ok(orb.shutdown(true)?)
}

fn start_part(network: &Network, part: impl FnOnce(&Path) -> String) -> Process {
    let this = env::current_exe().expect("it runs").display().to_string();
    network.host(HERE).enter(|| {
        Process::start("env", |folder| {
            let variable = format!("{PART}={}", part(folder.path()));
            let command = [&variable, &this, "--exact", name_of(a_part), "--nocapture"];
            command.map(str::to_owned).into()
        })
    })
}

#[test]
fn jacorb_on_another_host_calls_chronorb() {
    let Some(jacorb) = Jacorb::get() else { return };
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let endpoint = endpoint(&network, driver);
        let mut member = start_part(&network, |folder| {
            let file = folder.join(IOR_FILE).display().to_string();
            // One thread, so that requests without a reply are served in their order.
            let options = format!("-ORBThreads 1 -ORBListenEndpoints {endpoint}");
            format!("-ORBProtocols riop {options} serve {file}")
        });
        let reference = member.wait_for_file(IOR_FILE);
        let there = address(&network, THERE);
        let caller = network.host(THERE).enter(|| {
            jacorb.start_by(Vec::new(), &there, "JacorbCaller", |_| {
                vec!["-".to_owned(), reference]
            })
        });
        caller.finish();
        member.finish();
    }
}

#[test]
fn chronorb_calls_jacorb_on_another_host() {
    let Some(jacorb) = Jacorb::get() else { return };
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let there = address(&network, THERE);
        let mut member = network.host(THERE).enter(|| {
            jacorb.start_by(Vec::new(), &there, "JacorbMember", |folder| {
                let file = folder.join(IOR_FILE).display().to_string();
                vec![file, "-".to_owned()]
            })
        });
        let reference = member.wait_for_file(IOR_FILE);
        let options = options_for(driver).join(" ");
        start_part(&network, |_| format!("{options} call {reference}")).finish();
        let heard = member.finish();
        let sum: u64 = octets(20_000).iter().copied().map(u64::from).sum();
        let line = format!("heard long 20000 {sum}");
        assert!(heard.lines().any(|heard| heard == line), "{heard}");
    }
}
