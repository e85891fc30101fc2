//! The first call after a server has ended an idle connection.

use std::sync::Arc;
use std::time::Duration;

use chronorb_orb::rtcorba::{ClientPolicy, RebindMode, SetOverride};
use chronorb_orb::{Object, SystemException, SystemExceptionKind};

use crate::support::asynchronous::begin_add;
use crate::support::raw_server::{Peer, RawServer, object_at, raw_server};
use crate::support::strategies::STRATEGIES;
use crate::support::{Latch, PATIENCE, add, orb_with};

/// Returns a server that ends its first connection after two answers, without CloseConnection. The
/// latch shows when it has.
fn mortal() -> (RawServer, Arc<Latch>) {
    let ended = Arc::new(Latch::default());
    let tell = ended.clone();
    let server = raw_server(move |mut peer: Peer| {
        if peer.number > 0 {
            return peer.answer_all();
        }
        for _ in 0..2 {
            let request = peer.request().expect("a request comes");
            peer.answer(request);
        }
        drop(peer);
        tell.set(1);
    });
    (server, ended)
}

type Call = fn(&Object) -> Result<i32, SystemException>;
const CALLS: [Call; 2] = [
    |object| add(object, 1, 2),
    |object| begin_add(object, 1, 2)?.wait(),
];

/// The simulated idle time between calls, by which the end comes earlier.
const IDLE: Duration = Duration::from_secs(10);

#[test]
fn the_first_call_after_the_end_of_an_idle_connection_goes_by_a_new_one() {
    for strategy in STRATEGIES {
        for call in CALLS {
            eprintln!("with {strategy:?}");
            let (server, ended) = mortal();
            let orb = orb_with(|config| config.client_connection = strategy);
            let object = object_at(&orb, server.address);
            let later = object.with_timeout(PATIENCE + IDLE);
            assert_eq!((call(&object), call(&later)), (Ok(3), Ok(3)));
            ended.reach(1);
            // It ends by as much earlier as the one before would if it had been made so long ago.
            assert_eq!(call(&object), Ok(3));
            assert_eq!(server.connections(), 2);
            let _ = orb.shutdown(true);
        }
    }
}

#[test]
fn a_policy_against_new_connections_holds_for_those_that_have_ended_while_idle() {
    for strategy in STRATEGIES {
        eprintln!("with {strategy:?}");
        let (server, ended) = mortal();
        let orb = orb_with(|config| config.client_connection = strategy);
        let policy = ClientPolicy::Rebind(RebindMode::NoReconnect);
        let object = object_at(&orb, server.address);
        let object = object.with_policy_overrides(&[policy], SetOverride::Add);
        let object = object.expect("it is one policy");
        let later = object.with_timeout(PATIENCE + IDLE);
        assert_eq!((add(&object, 1, 2), add(&later, 1, 2)), (Ok(3), Ok(3)));
        ended.reach(1);
        let refused = add(&object, 1, 2).expect_err("it would connect again");
        assert_eq!(refused.kind, SystemExceptionKind::Rebind);
        assert_eq!(server.connections(), 1);
        let _ = orb.shutdown(true);
    }
}
