//! Callbacks on the client's connection, with omniORB and JacORB on either side. Access rules
//! refuse all other connections for callbacks.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use chronorb::config::{BidirectionalConnections, OrbConfig};
use chronorb::prelude::*;
use chronorb::rtcorba::{BidirectionalMode, ClientPolicy, SetOverride};
use chronorb::transport::parse_endpoints;
use chronorb_interop::Failure;
use chronorb_interop::groups::idl::{Member, MemberSkeleton};
use chronorb_interop::groups::{Heard, TellingMember};

use crate::support::Process;
use crate::support::jacorb::Jacorb;
use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{Server, Side, run_client};

/// The options of chronorb's server and client, which have one thread each.
const ACCEPT: &[&str] = &[
    "-ORBBiDir",
    "accept",
    "-ORBThreads",
    "1",
    "-ORBClientTransportRule",
    "* none",
];
const OFFER: &[&str] = &[
    "-ORBBiDir",
    "offer",
    "-ORBThreads",
    "1",
    "-ORBServerTransportRule",
    "* none",
];

#[test]
fn chronorb_calls_chronorb_back() {
    let server = Server::start(Side::Chronorb, ACCEPT);
    let options = [&["--utf8"], OFFER].concat();
    run_client(Side::Chronorb, &server.ior, &options);
}

#[test]
fn chronorb_calls_omniorb_back() {
    if !require(&[&OMNIORB]) {
        return;
    }
    let server = Server::start(Side::Chronorb, ACCEPT);
    let options = [
        "--skip",
        "latin1-chars",
        "-ORBofferBiDirectionalGIOP",
        "1",
        "-ORBclientTransportRule",
        "* bidir,tcp",
        "-ORBserverTransportRule",
        "* none",
    ];
    run_client(Side::OmniOrb, &server.ior, &options);
}

#[test]
fn omniorb_calls_chronorb_back() {
    if !require(&[&OMNIORB]) {
        return;
    }
    let options = [
        "-ORBacceptBiDirectionalGIOP",
        "1",
        "-ORBserverTransportRule",
        "* tcp,bidir",
    ];
    let server = Server::start(Side::OmniOrb, &options);
    let options = [&["--skip", "precise"], OFFER].concat();
    run_client(Side::Chronorb, &server.ior, &options);
}

fn orb(mode: BidirectionalConnections) -> Result<Orb, Failure> {
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    config.bidirectional = mode;
    config.threads = "1".parse()?;
    match mode {
        BidirectionalConnections::Accept => config.client_transport_rules.push("* none".parse()?),
        _ => config.server_transport_rules.push("* none".parse()?),
    }
    Ok(Orb::with_config(config)?)
}

fn serve(poa: &Poa) -> Result<(Member, Receiver<Heard>), Failure> {
    let (tell, told) = channel();
    let object = poa.serve(MemberSkeleton::new(TellingMember::new(tell)))?;
    poa.manager().activate()?;
    Ok((Member::unchecked_narrow(&object), told))
}

/// Starts a program of JacORB with bidirectional GIOP.
fn start(jacorb: &Jacorb, program: &str, arguments: impl FnOnce(&Path) -> Vec<String>) -> Process {
    let options = "JAVA_TOOL_OPTIONS=-Dpeer.bidirectional=true";
    let command = ["env", options].map(str::to_owned).into();
    jacorb.start_by(command, "127.0.0.1", program, arguments)
}

#[test]
fn chronorb_calls_jacorb_back() -> Result<(), Failure> {
    let Some(jacorb) = Jacorb::get() else {
        return Ok(());
    };
    let server = orb(BidirectionalConnections::Accept)?;
    let (member, told) = serve(&server.root_poa()?)?;
    let reference = server.object_to_string(member.as_object());
    start(jacorb, "JacorbCalledBack", |_| vec![reference]).finish();
    assert_eq!(told.try_recv(), Ok(Heard::Leave));
    Ok(server.shutdown(true)?)
}

#[test]
fn jacorb_calls_chronorb_back() -> Result<(), Failure> {
    let Some(jacorb) = Jacorb::get() else {
        return Ok(());
    };
    let mut process = start(jacorb, "JacorbMember", |folder| {
        vec![folder.join("ior").display().to_string(), "-".to_owned()]
    });
    let reference = process.wait_for_file("ior");
    let client = orb(BidirectionalConnections::Offer)?;
    let both = BidirectionalMode::Both;
    let root = client.root_poa()?;
    let (own, _told) = serve(&root.create_poa("both", None, &[Policy::Bidirectional(both)])?)?;
    let policies = [ClientPolicy::Bidirectional(both)];
    let manager = client.policy_manager();
    manager.set_policy_overrides(&policies, SetOverride::Add)?;
    let member = Member::unchecked_narrow(&client.string_to_object(&reference)?);
    for _ in 0..100 {
        assert_eq!(member.relay(Some(&own), "back")?, "kcab");
    }
    member.leave()?;
    process.finish();
    Ok(client.shutdown(true)?)
}
