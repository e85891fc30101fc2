//! Calls between chronorb and JacORB: of one object by IIOP, and of groups by MIOP.

use std::env;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb::transport::multicast::MulticastOptions;
use chronorb::transport::parse_endpoints;
use chronorb_interop::groups::idl::{Member, MemberSkeleton};
use chronorb_interop::groups::{Heard, TellingMember};
use chronorb_interop::{Failure, write_file};

use crate::support::jacorb::{ADDRESS, Jacorb, Network};
use crate::support::{Process, name_of};

/// The environment variable that tells a process on the machine of a test its part.
const PART: &str = "CHRONORB_TEST_PART";
const GROUP: &str = "corbaloc:miop:1.0@1.0-Interop-5506/239.255.5.6:5506";
const IOR_FILE: &str = "ior";
/// The time until a member is called, while a virtual machine starts on a slow machine.
const PATIENCE: Duration = Duration::from_secs(240);

fn orb(host: &str) -> Result<Orb, Failure> {
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints(&format!("iiop://{host}:0"))?;
    config.multicast = MulticastOptions::parse("interface=eth")?;
    Ok(Orb::with_config(config)?)
}

/// Returns a member of the group, with the messages that it receives.
fn serve_member(orb: &Orb) -> Result<(Member, Receiver<Heard>), Failure> {
    let (tell, told) = channel();
    let root = orb.root_poa()?;
    let object = root.serve(MemberSkeleton::new(TellingMember::new(tell)))?;
    root.manager().activate()?;
    Ok((Member::unchecked_narrow(&object), told))
}

fn octets(count: usize) -> Vec<u8> {
    (0..count).map(|n| n as u8).collect()
}

/// Calls all operations of one member.
fn check(member: &Member) -> Result<(), Failure> {
    assert_eq!(member.ask("reversing")?, "gnisrever");
    let large = octets(100_000);
    let sum = large.iter().copied().map(i64::from).sum::<i64>();
    assert_eq!(member.sum(&large)?, sum);
    assert!(!member.as_object().non_existent()?);
    assert!(member.as_object().is_a("IDL:chronorb/Groups/Member:1.0")?);
    Ok(())
}

/// The body of chronorb's process on a machine; it does nothing in the test's own process.
#[test]
fn a_part() -> Result<(), Failure> {
    match env::var(PART).as_deref() {
        Err(_) => Ok(()),
        Ok(part) => match part.split_once(' ') {
            Some(("call", reference)) => call_group(reference),
            Some(("serve", file)) => be_a_member(Path::new(file)),
            _ => panic!("there is no {part}"),
        },
    }
}

fn call_group(reference: &str) -> Result<(), Failure> {
    let orb = orb(ADDRESS)?;
    check(&Member::unchecked_narrow(&orb.string_to_object(reference)?))?;
    let all = Member::unchecked_narrow(&orb.string_to_object(GROUP)?);
    all.tell("short", &octets(10))?;
    all.tell("long", &octets(20_000))?;
    Ok(all.leave()?)
}

fn be_a_member(file: &Path) -> Result<(), Failure> {
    let orb = orb(ADDRESS)?;
    let (member, told) = serve_member(&orb)?;
    let root = orb.root_poa()?;
    let id = root.reference_to_id(member.as_object())?;
    root.associate_reference_with_id(&orb.string_to_object(GROUP)?, &id)?;
    let reference = orb.object_to_string(member.as_object());
    write_file(&file.display().to_string(), &reference)?;
    // The threads of the pool serve requests without a reply concurrently, so their order is
    // undefined.
    let mut missing = vec![
        Heard::Told("short".to_owned(), octets(10)),
        Heard::Told("long".to_owned(), octets(20_000)),
        Heard::Leave,
    ];
    while !missing.is_empty() {
        let next = told.recv_timeout(PATIENCE);
        let next = next.map_err(|_| format!("never heard: {missing:?}"))?;
        let place = missing.iter().position(|heard| *heard == next);
        missing.swap_remove(place.ok_or_else(|| format!("heard beside: {next:?}"))?);
    }
    Ok(orb.shutdown(true)?)
}

fn start_part(network: &Network, part: impl FnOnce(&Path) -> String) -> Process {
    let this = env::current_exe().expect("it runs").display().to_string();
    let enter = network.enter();
    Process::start(&enter[0], |folder| {
        let variable = format!("{PART}={}", part(folder.path()));
        let this = [
            "env",
            &variable,
            &this,
            "--exact",
            name_of(a_part),
            "--nocapture",
        ];
        let this = this.map(str::to_owned);
        enter[1..].iter().cloned().chain(this).collect()
    })
}

#[test]
fn chronorb_calls_jacorb_and_a_group_that_it_is_in() {
    let Some(jacorb) = Jacorb::get() else { return };
    let Some(network) = Network::new("to-jacorb") else {
        return;
    };
    let mut member = jacorb.start(Some(&network), "JacorbMember", |folder| {
        let file = folder.join(IOR_FILE).display().to_string();
        vec![file, GROUP.to_owned()]
    });
    let reference = member.wait_for_file(IOR_FILE);
    start_part(&network, |_| format!("call {reference}")).finish();
    let heard = member.finish();
    let sum = |count| octets(count).iter().copied().map(u64::from).sum::<u64>();
    for line in [
        format!("heard short 10 {}", sum(10)),
        format!("heard long 20000 {}", sum(20_000)),
    ] {
        assert!(heard.lines().any(|heard| heard == line), "{heard}");
    }
}

#[test]
fn jacorb_calls_chronorb_and_a_group_that_it_is_in() {
    let Some(jacorb) = Jacorb::get() else { return };
    let Some(network) = Network::new("of-jacorb") else {
        return;
    };
    let mut member = start_part(&network, |folder| {
        format!("serve {}", folder.join(IOR_FILE).display())
    });
    let reference = member.wait_for_file(IOR_FILE);
    let caller = jacorb.start(Some(&network), "JacorbCaller", |_| {
        vec![GROUP.to_owned(), reference]
    });
    caller.finish();
    member.finish();
}

#[test]
fn chronorb_calls_chronorb() -> Result<(), Failure> {
    let (client, server) = (orb("127.0.0.1")?, orb("127.0.0.1")?);
    let (member, told) = serve_member(&server)?;
    let text = server.object_to_string(member.as_object());
    let member = Member::unchecked_narrow(&client.string_to_object(&text)?);
    check(&member)?;
    member.tell("short", &octets(10))?;
    let next = told.recv_timeout(Duration::from_secs(60))?;
    assert_eq!(next, Heard::Told("short".to_owned(), octets(10)));
    Ok(())
}
