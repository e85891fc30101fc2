//! Processes that are forked from one with an ORB.

use std::process::Command;

use chronorb_giop::minor;
use chronorb_orb::{SystemException, SystemExceptionKind};
use chronorb_probe::in_forked_child;

use crate::support::descriptors::spawn;
use crate::support::raw_server::{Peer, object_at, raw_server};
use crate::support::strategies::STRATEGIES;
use crate::support::{add, name_of, orb_with};

#[test]
fn a_child_needs_an_orb_of_its_own_and_leaves_the_connections_of_its_parent_alone() {
    let test = name_of(the_forking_process);
    let own = std::env::current_exe().expect("the test program has a name");
    let mut command = Command::new(own);
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    let mut process = spawn(&mut command).expect("it starts");
    assert!(process.wait().expect("it ends").success());
}

#[test]
#[ignore = "run by another test in a process of its own, whose other threads hold no locks"]
fn the_forking_process() {
    for strategy in STRATEGIES {
        let server = raw_server(Peer::answer_all);
        let orb = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&orb, server.address);
        assert_eq!(add(&object, 1, 2), Ok(3));
        let forked = SystemException::no(SystemExceptionKind::BadInvOrder, minor::PROCESS_FORKED);
        let code = in_forked_child(|| {
            assert_eq!(add(&object, 3, 4), Err(forked), "{strategy:?}");
            let again = object_at(&orb, server.address);
            assert_eq!(add(&again, 3, 4), Err(forked), "{strategy:?}");
            let own = orb_with(|config| config.client_connection = strategy);
            assert_eq!(add(&object_at(&own, server.address), 5, 6), Ok(11));
            drop((again, own));
            // The thread drops the parent's connections.
            let _ = orb.shutdown(false);
            0
        });
        assert_eq!(code.expect("it forks"), 0, "{strategy:?}");
        assert_eq!(add(&object, 7, 8), Ok(15), "{strategy:?}");
        assert_eq!(server.connections(), 2, "{strategy:?}");
        let _ = orb.shutdown(true);
    }
}
