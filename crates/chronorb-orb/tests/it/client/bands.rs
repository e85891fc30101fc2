//! Priority-banded connections: the choice of connection and lane for a request.

use chronorb_giop::{
    Component, IiopProfile, Policies, PolicyValue, PriorityBandValue, TAG_POLICIES,
};
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{ClientPolicy, PriorityBands, SetOverride};
use chronorb_orb::{
    BindError, CompletionStatus, Object, Orb, SystemException, SystemExceptionKind, minor,
};

use crate::support::laned::{DECLARED, LANES, LanedServer, PROPAGATED, Pool, bands, corba, laned};
use crate::support::{add, priority};

const TWO: [(i16, i16); 2] = [(0, 15), (16, 40)];

/// Returns the reference with bands of the client.
fn banded(object: &Object, bands: PriorityBands) -> Object {
    let policy = ClientPolicy::PriorityBandedConnection(bands);
    object
        .with_policy_overrides(&[policy], SetOverride::Add)
        .expect("there is one of the kind")
}

fn model() -> Policy {
    Policy::PriorityModel(PROPAGATED, corba(LANES[0]))
}

fn inv_policy() -> SystemException {
    SystemException::no(SystemExceptionKind::InvPolicy, minor::POLICIES_CONFLICT)
}

fn no_connection() -> SystemException {
    let kind = SystemExceptionKind::NoResources;
    SystemException::no(kind, minor::NO_CONNECTION_FOR_PRIORITY)
}

/// The lane that serves a request, for each priority of the caller. The lanes have the priorities
/// 10, 20 and 30; the bands are 0 to 15 and 16 to 40.
const LANE_OF: [(Option<i16>, Option<i16>); 12] = [
    (Some(10), Some(10)), // its own
    (Some(0), Some(10)),  // the next more urgent one of the band
    (Some(12), Some(10)), // none of the band is more urgent
    (Some(15), Some(10)),
    (Some(16), Some(20)),
    (Some(20), Some(20)),
    (Some(21), Some(30)),
    (Some(30), Some(30)),
    (Some(40), Some(30)),
    (Some(41), None), // in no band
    (Some(30_000), None),
    (None, Some(10)), // served at the server's priority
];

/// `ceiling` is the most urgent priority that the server admits.
fn check_lanes(s: &LanedServer, object: &Object, ceiling: i16) {
    for (value, lane) in LANE_OF {
        let (served, connected) = s.at(value, || (priority(object), s.connected()));
        match lane {
            Some(lane) => {
                let (served, _) = served.expect("it is served");
                let expected = value.unwrap_or(LANES[0]).min(ceiling);
                assert_eq!(served, expected, "the priority stays");
                assert_eq!(connected, [lane], "{value:?}");
            }
            None => {
                assert_eq!(served, Err(inv_policy()), "{value:?}");
                assert_eq!(connected, [0; 0], "{value:?}");
            }
        }
    }
}

#[test]
fn a_request_takes_the_lane_of_its_band_with_bands_of_the_client() {
    let s = laned(Pool::Lanes, &[model()]);
    check_lanes(&s, &banded(&s.object, bands(&TWO)), LANES[2]);
}

#[test]
fn a_request_takes_the_lane_of_its_band_with_bands_of_the_server() {
    let policy = Policy::PriorityBandedConnection(bands(&TWO));
    let s = laned(Pool::Lanes, &[model(), policy]);
    check_lanes(&s, &s.object, 40);
}

#[test]
fn a_priority_in_several_bands_belongs_to_the_first() {
    // Each lane's priority is in both bands next to it.
    let touching = || bands(&[(0, 20), (20, 30), (0, 40)]);
    let s = laned(
        Pool::Lanes,
        &[model(), Policy::PriorityBandedConnection(touching())],
    );
    let other = laned(Pool::Lanes, &[model()]);
    let of_client = banded(&other.object, touching());
    // The server knows nothing of the client's bands.
    for (s, object, ceiling) in [(&s, &s.object, 40), (&other, &of_client, 30)] {
        for (value, lane) in [(10, 10), (15, 20), (20, 20), (21, 30), (30, 30), (35, 30)] {
            let (served, connected) = s.at(Some(value), || (priority(object), s.connected()));
            assert_eq!(served.map(|(corba, _)| corba), Ok(value.min(ceiling)));
            assert_eq!(connected, [lane], "{value}");
        }
    }
}

/// Returns the reference with another policy instead of the server's.
fn with_policy(object: &Object, client: &Orb, policy: PolicyValue) -> Object {
    let mut ior = object.ior().clone();
    let mut profile = IiopProfile::decode(&ior.profiles[0].data).expect("our own");
    profile
        .components
        .retain(|component| component.tag != TAG_POLICIES);
    let policies = Component::Policies(Policies(vec![policy]));
    profile
        .components
        .push(policies.tagged().expect("it is short"));
    ior.profiles[0].data = profile.encode().expect("it is short");
    client.string_to_object(&ior.to_string()).expect("it reads")
}

#[test]
fn a_policy_that_cannot_be_read_is_inv_policy_and_not_none() {
    let s = laned(Pool::Lanes, &[model()]);
    let band = |low, high| {
        let bands = [PriorityBandValue { low, high }];
        PolicyValue::priority_bands(&bands).expect("it is short")
    };
    let mut cut = band(1, 2);
    cut.data.truncate(10);
    let policy = |policy_type, data: &[u8]| PolicyValue {
        policy_type,
        data: data.to_vec(),
    };
    let bands_that_are_none = [cut, band(2, 1), band(-1, 2), policy(45, &[0; 8])];
    let protocols = [
        policy(43, b"\0\0\0\0\0\0\0\x01\0\0\0\x4d\0\0\0\0"),
        policy(43, &[0; 8]),
    ];
    let models = [policy(40, b"\0\0\0\0\0\0\0\x09\0\0"), policy(40, &[])];
    let kind = SystemExceptionKind::InvPolicy;
    let unreadable = SystemException::no(kind, minor::POLICY_UNREADABLE);
    for policy in bands_that_are_none
        .into_iter()
        .chain(protocols)
        .chain(models)
    {
        let object = with_policy(&s.object, &s.client, policy.clone());
        assert_eq!(add(&object, 1, 1), Err(unreadable), "{policy:?}");
        let bound = object.validate_connection();
        assert_eq!(bound, Err(BindError::System(unreadable)), "{policy:?}");
    }
    // Policies of other kinds may be unknown.
    let unknown = policy(99, &[1, 2, 3]);
    let object = with_policy(&s.object, &s.client, unknown);
    assert_eq!(s.at(None, || add(&object, 1, 1)), Ok(2));
}

#[test]
fn requests_of_one_band_share_a_connection_and_those_of_two_do_not() {
    for pool in [Pool::Default, Pool::Plain] {
        let s = laned(pool, &[model()]);
        let object = banded(&s.object, bands(&TWO));
        let calls = |object: &Object| {
            for value in [1, 2, 15, 16, 40, 3] {
                s.raise(value);
                assert_eq!(priority(object).map(|(corba, _)| corba), Ok(value));
            }
            s.connections().len()
        };
        assert_eq!(s.at(None, || calls(&object)), 2, "{pool:?}");
        assert_eq!(s.at(None, || calls(&s.object)), 6, "{pool:?} without bands");
    }
}

#[test]
fn a_declared_priority_chooses_the_band_whatever_the_client_has() {
    let s = laned(Pool::Lanes, &[Policy::PriorityModel(DECLARED, corba(20))]);
    let object = banded(&s.object, bands(&[(18, 22)]));
    let connections = s.at(None, || {
        for value in [5, 20, 30] {
            s.raise(value);
            assert_eq!(priority(&object).map(|(corba, _)| corba), Ok(20));
        }
        s.connected()
    });
    assert_eq!(connections, [20]);
    let elsewhere = banded(&s.object, bands(&[(5, 15)]));
    assert_eq!(s.at(Some(10), || add(&elsewhere, 1, 1)), Err(inv_policy()));
}

#[test]
fn bands_of_both_sides_are_inv_policy_even_where_they_are_the_same() {
    let policy = Policy::PriorityBandedConnection(bands(&TWO));
    let s = laned(Pool::Lanes, &[model(), policy]);
    let both = banded(&s.object, bands(&TWO));
    assert_eq!(s.at(Some(10), || add(&both, 1, 1)), Err(inv_policy()));
    assert_eq!(s.at(Some(10), || add(&s.object, 1, 1)), Ok(2));
}

#[test]
fn bands_for_a_server_without_a_priority_model_are_inv_policy() {
    let s = laned(Pool::Default, &[]);
    let object = banded(&s.object, bands(&TWO));
    let refused = s.at(Some(10), || add(&object, 1, 1));
    assert_eq!(refused, Err(inv_policy()));
    assert_eq!(inv_policy().completed, CompletionStatus::No);
}

#[test]
fn a_band_in_which_the_server_has_no_lane_is_no_resources() {
    let s = laned(Pool::Lanes, &[model()]);
    let object = banded(&s.object, bands(&[(0, 9), (10, 40)]));
    assert_eq!(s.at(Some(5), || add(&object, 1, 1)), Err(no_connection()));
    assert_eq!(s.at(Some(15), || add(&object, 1, 1)), Ok(2));
}

#[test]
fn connections_of_bands_are_kept_for_the_next_call() {
    let s = laned(Pool::Lanes, &[model()]);
    let object = banded(&s.object, bands(&TWO));
    s.at(None, || {
        let calls = || {
            for value in [10, 20, 12, 18] {
                s.raise(value);
                assert_eq!(add(&object, 1, 1), Ok(2));
            }
            s.connections()
        };
        let connections = calls();
        assert_eq!(s.connected(), [10, 20]);
        assert_eq!(calls(), connections);
    });
}
