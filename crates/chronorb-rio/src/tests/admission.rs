//! Admission of endpoints without a plan, one by one, by the values that they give.

use crate::plan::{Policy, Processing, Reservation};
use crate::transport::{Riop, RiopSettings};
use chronorb_rt::{Scheduling, ThreadBuilder};
use chronorb_transport::{Acceptor, ListenError, Setup, Transport, parse_endpoints};
use std::sync::Arc;
use std::time::Duration;

use crate::tests::support::rig::{RigHost, wired};

/// Returns whether this process may have real-time threads. Prints a note if not.
fn may_be_urgent() -> bool {
    let urgent = ThreadBuilder::new("urgent").scheduling(Scheduling::fifo(1));
    let Err(error) = urgent.spawn(|| ()).map(|thread| thread.join()) else {
        return true;
    };
    println!("NOT RUN: {error}");
    let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
    assert!(!required, "CHRONORB_PEERS=required: {error}");
    false
}

fn transport(host: &RigHost, plan: Vec<Reservation>) -> Riop {
    let riop = Riop::new(RiopSettings {
        plan,
        ..RiopSettings::default()
    });
    riop.add(Arc::new(host.subsystem()));
    riop
}

type Acceptors = Vec<Box<dyn Acceptor>>;

/// Listens with a class of its own.
fn listen(riop: &Riop, port: u16, options: &str) -> Result<Acceptors, ListenError> {
    let text = format!("riop://10.0.0.1:{port}/interface=wire1&connections=4&{options}");
    let endpoints = parse_endpoints(&text).expect("it is one");
    riop.listen(&endpoints[0], Setup::default())
}

/// Returns the error of a class that does not fit.
fn refusal(listened: Result<Acceptors, ListenError>) -> String {
    listened.expect_err("it does not fit").to_string()
}

#[test]
fn an_endpoint_is_refused_that_leaves_another_late_or_without_an_end() {
    if !may_be_urgent() {
        return;
    }
    let (_wire, [host, _other]) = wired();
    let riop = transport(&host, Vec::new());
    let video = "policy=fifo&priority=2&period=10ms&budget=60&cost=100us";
    let video = listen(&riop, 7001, video).expect("it is alone");

    let great = "policy=fifo&priority=3&period=10ms&budget=50&cost=100us";
    let refused = refusal(listen(&riop, 7002, great));
    let why = "class \"port-7002\" is not admitted: class \"port-7001\": a processor is taken to \
               110.0 %, 15.0 % more than the 95 % that real time has: 45 packets in each period \
               would fit";
    assert!(refused.ends_with(why), "{refused}");

    let endless = "policy=fifo&priority=3&processing=arrival";
    let refused = refusal(listen(&riop, 7002, endless));
    let why =
        "its packets are processed on arrival without end, and class \"port-7001\" waits as long";
    assert!(refused.contains(why), "{refused}");
    let expecting = format!("{endless}&period=10ms&budget=2&cost=100us");
    let _expecting = listen(&riop, 7002, &expecting).expect("its peers promise not to");

    drop(video);
    let _great = listen(&riop, 7003, great).expect("that reservation has ended");
}

#[test]
fn an_endpoint_that_is_other_than_its_plan_is_not_of_the_plan() {
    if !may_be_urgent() {
        return;
    }
    let (_wire, [host, _other]) = wired();
    let video = Reservation {
        name: "video".to_owned(),
        policy: Policy::Fifo,
        priority: 2,
        processing: Processing::Periodic {
            period: Duration::from_millis(10),
            budget: 60,
        },
        cost: Some(Duration::from_micros(100)),
        ports: vec![7001..=7001],
        ..Reservation::default()
    };
    let riop = transport(&host, vec![video]);
    let refused = refusal(listen(&riop, 7001, "budget=100&period=10ms"));
    let why = "class \"video\" is not admitted: class \"video\": a processor is taken to 100.0 %";
    assert!(refused.contains(why), "{refused}");
    let as_planned = parse_endpoints("riop://10.0.0.1:7001/interface=wire1").expect("it is one");
    let opened = riop.listen(&as_planned[0], Setup::default());
    opened.expect("the plan was admitted before");
}
