//! Client policies on three levels, their combination with the server's policies, and the related
//! POA policies.

use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{
    BidirectionalMode, ClientPolicy, ClientPolicyKind, NetworkPriority,
    OnewayBuffering as Buffering, Protocol, Protocols, RebindMode, SetOverride, SyncScope as Scope,
    TcpProtocolProperties,
};
use chronorb_orb::{Object, SystemException, SystemExceptionKind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ClientPolicyKind::{
    Bidirectional, ClientProtocol, ConnectTimeout, OnewayBuffering, PriorityBandedConnection,
    PrivateConnection, Rebind, RelativeRequestTimeout, RelativeRoundtripTimeout, ReplyEndTime,
    RequestEndTime, SyncScope,
};

use crate::support::adapters::{ask, omg, site, waiter};
use crate::support::laned::{
    DECLARED, LANES, LanedServer, PROPAGATED, Pool, bands, corba, laned, laned_by, pool_policy,
};
use crate::support::{Latch, PATIENCE, add, invalid_policy, orb};

/// Returns a policy of a kind, which its number distinguishes from others of the kind.
fn numbered(kind: ClientPolicyKind, number: u32) -> ClientPolicy {
    match kind {
        PrivateConnection => ClientPolicy::PrivateConnection,
        PriorityBandedConnection => {
            ClientPolicy::PriorityBandedConnection(bands(&[(0, 100 + number as i16)]))
        }
        ClientProtocol => ClientPolicy::ClientProtocol(iiop(1 << 16, number)),
        RelativeRoundtripTimeout => {
            ClientPolicy::RelativeRoundtripTimeout(PATIENCE + Duration::from_secs(number.into()))
        }
        Rebind => ClientPolicy::Rebind(match number {
            1 => RebindMode::NoRebind,
            2 => RebindMode::NoReconnect,
            _ => RebindMode::Transparent,
        }),
        SyncScope => ClientPolicy::SyncScope(match number {
            1 => Scope::None,
            2 => Scope::WithServer,
            _ => Scope::WithTarget,
        }),
        RequestEndTime => ClientPolicy::RequestEndTime(far(number)),
        ReplyEndTime => ClientPolicy::ReplyEndTime(far(number)),
        RelativeRequestTimeout => {
            ClientPolicy::RelativeRequestTimeout(PATIENCE + Duration::from_secs(number.into()))
        }
        ConnectTimeout => {
            ClientPolicy::ConnectTimeout(PATIENCE + Duration::from_secs(number.into()))
        }
        OnewayBuffering => ClientPolicy::OnewayBuffering(Buffering {
            octets: 1 << 10,
            requests: number,
            delay: PATIENCE,
        }),
        Bidirectional => ClientPolicy::Bidirectional(match number {
            2 => BidirectionalMode::Normal,
            _ => BidirectionalMode::Both,
        }),
        other => panic!("{other:?} is new"),
    }
}

/// Returns a time in the next century.
fn far(number: u32) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(5_000_000_000 + u64::from(number))
}

fn iiop(send_buffer_size: u32, recv_buffer_size: u32) -> Protocols {
    let properties = TcpProtocolProperties {
        send_buffer_size,
        recv_buffer_size,
        ..Default::default()
    };
    Protocols::iiop(properties).expect("they are in range")
}

fn propagated() -> Policy {
    Policy::PriorityModel(PROPAGATED, corba(LANES[0]))
}

/// Returns the policy that a POA exports.
fn exported(policy: &ClientPolicy) -> Option<Policy> {
    match policy.clone() {
        ClientPolicy::PriorityBandedConnection(bands) => {
            Some(Policy::PriorityBandedConnection(bands))
        }
        ClientPolicy::ClientProtocol(protocols) => Some(Policy::ClientProtocol(protocols)),
        _ => None,
    }
}

/// The levels, the innermost first, and the server. A policy that they set has their number.
const OBJECT: u32 = 1;
const THREAD: u32 = 2;
const ORB: u32 = 3;
const SERVER: u32 = 4;

/// Returns the policy in effect at the client, which is that of the innermost level with one.
fn expected_at_client(levels: &[u32]) -> Option<u32> {
    levels.iter().copied().find(|level| *level != SERVER)
}

#[test]
fn the_innermost_level_holds_and_the_server_may_not_have_the_policy_too() {
    for kind in ClientPolicyKind::ALL {
        let policy = |level| numbered(kind, level);
        let servers = match exported(&policy(SERVER)) {
            None => vec![laned(Pool::Default, &[])],
            Some(policy) => vec![
                laned(Pool::Default, &[propagated()]),
                laned(Pool::Default, &[propagated(), policy]),
            ],
        };
        let exports = [false, true];
        for (s, exports) in servers.iter().zip(exports) {
            for subset in 0..8_u32 {
                let has = |level: u32| match level {
                    SERVER => exports,
                    level => subset & (1 << (level - 1)) != 0,
                };
                let levels = [OBJECT, THREAD, ORB, SERVER];
                let levels: Vec<_> = levels.into_iter().filter(|level| has(*level)).collect();
                check(s, kind, &levels);
            }
        }
    }
}

/// Sets the policy at these levels, and checks the effect.
fn check(s: &LanedServer, kind: ClientPolicyKind, levels: &[u32]) {
    let at = |level| {
        if levels.contains(&level) {
            vec![numbered(kind, level)]
        } else {
            vec![]
        }
    };
    let manager = s.client.policy_manager();
    manager
        .set_policy_overrides(&at(ORB), SetOverride::Set)
        .expect("one of the kind");
    s.at(Some(50), || {
        let current = s.client.policy_current();
        current
            .set_policy_overrides(&at(THREAD), SetOverride::Set)
            .expect("one of the kind");
        let object = s
            .object
            .with_policy_overrides(&at(OBJECT), SetOverride::Set)
            .expect("one of the kind");
        assert_eq!(manager.policy_overrides(&[]), at(ORB));
        assert_eq!(current.policy_overrides(&[kind]), at(THREAD));
        assert_eq!(object.policy_overrides(&[kind]), at(OBJECT));

        let default = (kind == RelativeRoundtripTimeout)
            .then_some(ClientPolicy::RelativeRoundtripTimeout(PATIENCE));
        let client = expected_at_client(levels).map(|level| numbered(kind, level));
        assert_eq!(
            object.client_policy(kind),
            client.clone().or_else(|| default.clone()),
            "{kind:?} {levels:?}"
        );
        let server = levels.contains(&SERVER).then(|| numbered(kind, SERVER));
        let inv_policy: SystemException = omg(SystemExceptionKind::InvPolicy, 1);
        let (effective, called) = match (client, server) {
            (Some(_), Some(_)) => (Err(inv_policy), Err(inv_policy)),
            (one, other) => (Ok(one.or(other).or(default)), Ok(2)),
        };
        assert_eq!(object.policy(kind), effective, "{kind:?} {levels:?}");
        assert_eq!(add(&object, 1, 1), called, "{kind:?} {levels:?}");
    });
}

#[test]
fn policies_are_added_to_those_of_a_level_or_take_their_place() {
    let s = laned(Pool::Default, &[]);
    let (private, short, long) = (
        numbered(PrivateConnection, 0),
        numbered(RelativeRoundtripTimeout, 1),
        numbered(RelativeRoundtripTimeout, 2),
    );
    let with = |object: &Object, policies: &[ClientPolicy], how| {
        let object = object.with_policy_overrides(policies, how);
        object.expect("one of each kind")
    };
    let first = with(
        &s.object,
        &[private.clone(), short.clone()],
        SetOverride::Set,
    );
    let added = with(&first, std::slice::from_ref(&long), SetOverride::Add);
    assert_eq!(added.policy_overrides(&[]), [private.clone(), long.clone()]);
    let set = with(&first, std::slice::from_ref(&long), SetOverride::Set);
    assert_eq!(set.policy_overrides(&[]), [long]);
    let none = with(&first, &[], SetOverride::Set);
    assert_eq!(none.policy_overrides(&[]), []);
    // The original reference is unchanged.
    assert_eq!(first.policy_overrides(&[]), [private, short]);
    assert_eq!(
        first.with_timeout(PATIENCE).policy_overrides(&[]),
        [
            numbered(PrivateConnection, 0),
            ClientPolicy::RelativeRoundtripTimeout(PATIENCE)
        ]
    );
}

#[test]
fn two_policies_of_a_kind_are_refused_and_change_nothing() {
    let s = laned(Pool::Default, &[]);
    let twice = [1, 2].map(|number| numbered(RelativeRoundtripTimeout, number));
    let duplicate = Err(omg(SystemExceptionKind::BadParam, 30));
    let manager = s.client.policy_manager();
    let current = s.client.policy_current();
    let one = [numbered(PrivateConnection, 0)];
    manager
        .set_policy_overrides(&one, SetOverride::Set)
        .expect("it is one");
    current
        .set_policy_overrides(&one, SetOverride::Set)
        .expect("it is one");
    for how in [SetOverride::Set, SetOverride::Add] {
        assert_eq!(manager.set_policy_overrides(&twice, how), duplicate);
        assert_eq!(current.set_policy_overrides(&twice, how), duplicate);
        let object = s.object.with_policy_overrides(&twice, how);
        assert_eq!(object.map(drop), duplicate);
    }
    assert_eq!(manager.policy_overrides(&[]), one);
    assert_eq!(current.policy_overrides(&[]), one);
}

#[test]
fn a_thread_sets_policies_for_itself_and_for_one_orb() {
    let s = laned(Pool::Default, &[]);
    let other = orb();
    let policy = [numbered(RelativeRoundtripTimeout, 9)];
    s.at(None, || {
        let current = s.client.policy_current();
        current
            .set_policy_overrides(&policy, SetOverride::Set)
            .expect("it is one");
        assert_eq!(other.policy_current().policy_overrides(&[]), []);
        let elsewhere = s.at(None, || current.policy_overrides(&[]));
        assert_eq!(elsewhere, []);
        assert_eq!(current.policy_overrides(&[]), policy);
    });
}

#[test]
fn a_time_out_of_any_level_ends_a_call() {
    let s = site();
    let latch = Arc::new(Latch::default());
    let servant = s.root.servant_to_reference(&waiter(&latch));
    let object = s.remote(&servant.expect("the root activates implicitly"));
    let soon = [ClientPolicy::RelativeRoundtripTimeout(
        Duration::from_millis(20),
    )];
    let late = |object: &Object| {
        let answer = ask(object).map_err(|exception| exception.kind);
        assert_eq!(answer, Err(SystemExceptionKind::Timeout));
    };
    let own = object.with_policy_overrides(&soon, SetOverride::Set);
    late(&own.expect("it is one"));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let current = s.client.policy_current();
            current
                .set_policy_overrides(&soon, SetOverride::Set)
                .expect("it is one");
            late(&object);
        });
    });
    s.client
        .policy_manager()
        .set_policy_overrides(&soon, SetOverride::Set)
        .expect("it is one");
    late(&object);
    latch.set(2);
}

#[test]
fn a_change_holds_for_references_that_are_bound_already() {
    let s = laned(Pool::Default, &[propagated()]);
    let inv_policy = Err(omg(SystemExceptionKind::InvPolicy, 1));
    let elsewhere = [ClientPolicy::PriorityBandedConnection(bands(&[(1, 9)]))];
    let here = [ClientPolicy::PriorityBandedConnection(bands(&[(1, 99)]))];
    s.at(Some(50), || {
        let (manager, current) = (s.client.policy_manager(), s.client.policy_current());
        assert_eq!(add(&s.object, 1, 1), Ok(2));
        let set = manager.set_policy_overrides(&elsewhere, SetOverride::Set);
        assert_eq!((set, add(&s.object, 1, 1)), (Ok(()), inv_policy));
        let set = current.set_policy_overrides(&here, SetOverride::Set);
        assert_eq!((set, add(&s.object, 1, 1)), (Ok(()), Ok(2)));
        let set = current.set_policy_overrides(&[], SetOverride::Set);
        assert_eq!((set, add(&s.object, 1, 1)), (Ok(()), inv_policy));
        let set = manager.set_policy_overrides(&[], SetOverride::Set);
        assert_eq!((set, add(&s.object, 1, 1)), (Ok(()), Ok(2)));
    });
}

#[test]
fn a_reference_tells_the_policies_of_its_poa() {
    let policies = [
        Policy::PriorityModel(DECLARED, corba(20)),
        Policy::PriorityBandedConnection(bands(&[(15, 40), (0, 12)])),
        Policy::ClientProtocol(iiop(1 << 17, 1 << 18)),
    ];
    let s = laned(Pool::Lanes, &policies);
    assert_eq!(s.object.priority_model(), Some((DECLARED, corba(20))));
    assert_eq!(
        s.object.policy(PriorityBandedConnection),
        Ok(Some(ClientPolicy::PriorityBandedConnection(bands(&[
            (15, 40),
            (0, 12)
        ]))))
    );
    assert_eq!(
        s.object.policy(ClientProtocol),
        Ok(Some(ClientPolicy::ClientProtocol(iiop(1 << 17, 1 << 18))))
    );
    assert_eq!(s.at(None, || add(&s.object, 1, 1)), Ok(2));
    let plain = laned(Pool::Default, &[]);
    assert_eq!(plain.object.priority_model(), None);
    assert_eq!(plain.object.policy(PriorityBandedConnection), Ok(None));
}

#[test]
fn protocols_that_are_not_there_are_passed_over_for_the_next() {
    let s = laned(Pool::Default, &[]);
    let with = |list: &[Protocol]| {
        let protocols = Protocols::new(list).expect("they differ");
        let policy = ClientPolicy::ClientProtocol(protocols);
        let object = s.object.with_policy_overrides(&[policy], SetOverride::Set);
        add(&object.expect("it is one"), 1, 1)
    };
    let iiop = Protocol::Iiop(TcpProtocolProperties::default());
    let inv_policy = Err(omg(SystemExceptionKind::InvPolicy, 1));
    assert_eq!(with(&[Protocol::Other(77), iiop]), Ok(2));
    assert_eq!(with(&[Protocol::Other(77)]), inv_policy);
}

#[test]
fn connections_with_other_properties_are_not_shared() {
    let s = laned(Pool::Default, &[]);
    s.at(None, || {
        for (protocols, connections) in [
            (None, 1),
            (Some(iiop(0, 0)), 1), // as without a policy
            (Some(iiop(1 << 16, 0)), 2),
            (Some(iiop(1 << 16, 0)), 2),
            (Some(iiop(0, 1 << 16)), 3),
        ] {
            let policies = protocols.map(ClientPolicy::ClientProtocol);
            let policies: Vec<_> = policies.into_iter().collect();
            let object = s.another();
            let object = object.with_policy_overrides(&policies, SetOverride::Set);
            assert_eq!(add(&object.expect("it is one"), 1, 1), Ok(2));
            assert_eq!(s.connections().len(), connections, "{policies:?}");
        }
    });
}

/// Every combination of pool, priority model and bands, and whether it is legal, or the policy at
/// fault. The lanes have the priorities 10, 20 and 30; that of the model is 10.
const TABLE: &str = "
DEFAULT  NONE        NONE   legal
DEFAULT  NONE        ALL    bands
DEFAULT  NONE        GAP    bands
DEFAULT  PROPAGATED  NONE   legal
DEFAULT  PROPAGATED  ALL    legal
DEFAULT  PROPAGATED  GAP    legal
DEFAULT  DECLARED    NONE   legal
DEFAULT  DECLARED    ALL    legal
DEFAULT  DECLARED    GAP    legal
DEFAULT  DECLARED    OTHER  bands
PLAIN    NONE        NONE   legal
PLAIN    NONE        ALL    bands
PLAIN    NONE        GAP    bands
PLAIN    PROPAGATED  NONE   legal
PLAIN    PROPAGATED  ALL    legal
PLAIN    PROPAGATED  GAP    legal
PLAIN    DECLARED    NONE   legal
PLAIN    DECLARED    ALL    legal
PLAIN    DECLARED    GAP    legal
PLAIN    DECLARED    OTHER  bands
LANES    NONE        NONE   pool
LANES    NONE        ALL    bands
LANES    NONE        GAP    bands
LANES    PROPAGATED  NONE   legal
LANES    PROPAGATED  ALL    legal
LANES    PROPAGATED  GAP    bands
LANES    PROPAGATED  OTHER  legal
LANES    DECLARED    NONE   legal
LANES    DECLARED    ALL    legal
LANES    DECLARED    GAP    bands
LANES    DECLARED    OTHER  bands
LANES    NO_LANE     NONE   model
LANES    NO_LANE     ALL    model
";

#[test]
fn every_combination_of_pool_model_and_bands_is_legal_or_the_policy_at_fault_is_named() {
    let server = orb();
    let root = server.root_poa().expect("the ORB runs");
    let pools = [
        ("DEFAULT", None),
        ("PLAIN", pool_policy(&server, Pool::Plain)),
        ("LANES", pool_policy(&server, Pool::Lanes)),
    ];
    let model = |word| match word {
        "PROPAGATED" => Some(propagated()),
        "DECLARED" => Some(Policy::PriorityModel(DECLARED, corba(10))),
        "NO_LANE" => Some(Policy::PriorityModel(DECLARED, corba(11))),
        _ => None,
    };
    let banded = |word| match word {
        "ALL" => Some(bands(&[(0, 15), (16, 40)])),
        "GAP" => Some(bands(&[(0, 10), (11, 19), (20, 30)])),
        "OTHER" => Some(bands(&[(15, 40)])),
        _ => None,
    };
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        let pool = pools.iter().find(|(word, _)| *word == words[0]);
        let pool = pool.expect("a pool").1.clone();
        let bands = banded(words[2]).map(Policy::PriorityBandedConnection);
        let mut list: Vec<_> = [("pool", pool), ("model", model(words[1])), ("bands", bands)]
            .into_iter()
            .filter_map(|(column, policy)| Some((column, policy?)))
            .collect();
        for _ in 0..list.len().max(1) {
            let policies: Vec<_> = list.iter().map(|(_, policy)| policy.clone()).collect();
            let made = root.create_poa("one", None, &policies);
            match list.iter().position(|(column, _)| *column == words[3]) {
                None => made.expect(line).destroy(false, true).expect("no servant"),
                Some(index) => {
                    assert_eq!(invalid_policy(made), Some(index as u16), "{line}");
                }
            }
            let step = usize::from(!list.is_empty());
            list.rotate_left(step);
        }
    }
    server.shutdown(true).expect("no servant calls");
}

#[test]
fn a_poas_server_protocol_is_what_the_orb_listens_by() {
    let other = Policy::ServerProtocol(iiop(1 << 16, 0));
    let nothing = Protocols::new(&[Protocol::Other(77)]).expect("it is one");
    let invalid = Some(1);

    let server = orb();
    let root = server.root_poa().expect("the ORB runs");
    let make = |policy: Policy| {
        let policies = [propagated(), policy];
        root.create_poa("it", None, &policies).map(|poa| {
            poa.destroy(false, true).expect("no servant calls");
        })
    };
    assert_eq!(
        make(Policy::ServerProtocol(iiop(0, 0))),
        Ok(()),
        "the default"
    );
    assert_eq!(invalid_policy(make(other.clone())), invalid);
    let made = make(Policy::ServerProtocol(nothing.clone()));
    assert_eq!(invalid_policy(made), invalid);
    let made = make(Policy::ClientProtocol(nothing.clone()));
    assert_eq!(invalid_policy(made), invalid);
    let late = server.policy_manager().set_server_protocol(iiop(1, 1));
    let bad_inv_order = SystemException::no(SystemExceptionKind::BadInvOrder, 0);
    assert_eq!(late, Err(bad_inv_order), "it was asked for before");

    let server = orb();
    let manager = server.policy_manager();
    let inv_policy = SystemException::no(SystemExceptionKind::InvPolicy, 0);
    assert_eq!(manager.set_server_protocol(nothing), Err(inv_policy));
    assert_eq!(manager.set_server_protocol(iiop(1 << 16, 0)), Ok(()));
    let s = laned_by(server, Pool::Default, &[other]);
    assert_eq!(add(&s.object, 1, 1), Ok(2));
    let late = s.server.policy_manager().set_server_protocol(iiop(1, 1));
    assert_eq!(late, Err(bad_inv_order), "the endpoints are open");
}

#[test]
fn the_mark_of_packets_stays_with_the_side_that_sets_it() {
    let properties = TcpProtocolProperties {
        network_priority: NetworkPriority::FromPriority,
        ..Default::default()
    };
    let protocols = Protocols::iiop(properties).expect("it is in range");
    let s = laned(Pool::Default, &[Policy::ClientProtocol(protocols)]);
    let plain = Protocols::iiop(TcpProtocolProperties::default());
    let plain = ClientPolicy::ClientProtocol(plain.expect("it is in range"));
    assert_eq!(s.object.policy(ClientProtocol), Ok(Some(plain)));
}
