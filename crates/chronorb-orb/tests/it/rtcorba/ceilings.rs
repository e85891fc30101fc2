//! Clients choose priorities up to a ceiling.

use chronorb_orb::poa::{CreatePoaError, Policy, PolicyRule, PriorityModel};
use chronorb_orb::{Incident, Orb, OrbConfig, PriorityExcess, SystemException, parse_endpoints};
use chronorb_orb::{SystemExceptionKind as Kind, minor};

#[cfg(feature = "uiop")]
use chronorb_orb::SecurityProfile;

use crate::support::laned::{LANES, LanedServer, PROPAGATED, Pool, bands, corba, laned_by};
use crate::support::{orb_with, priority};

const ABOVE: i16 = 32_000;

fn propagated() -> Policy {
    Policy::PriorityModel(PROPAGATED, corba(LANES[0]))
}

/// Returns the priority at which the probe is called by a client with this priority, independent of
/// the lanes in the reference.
fn served_at(s: &LanedServer, wanted: i16) -> Result<i16, SystemException> {
    let object = without_lanes(s);
    s.at(Some(wanted), || priority(&object).map(|(corba, _)| corba))
}

/// Returns the object from the point of view of clients that know no lanes and bands, and propagate
/// priorities.
fn without_lanes(s: &LanedServer) -> chronorb_orb::Object {
    use chronorb_giop::{Component, IiopProfile};
    let mut ior = s.object.ior().clone();
    let mut profile = IiopProfile::decode(&ior.profiles[0].data).expect("our own");
    profile
        .components
        .retain(|component| !matches!(component.typed(), Ok(Component::TaoEndpoints(_))));
    for component in &mut profile.components {
        if let Ok(Component::Policies(mut policies)) = component.typed() {
            policies.0.retain(|policy| policy.policy_type == MODEL);
            *component = Component::Policies(policies).tagged().expect("it fits");
        }
    }
    ior.profiles[0].data = profile.encode().expect("it fits");
    s.client.ior_to_object(ior).expect("it is not nil")
}

/// The policy of priority models, by its number.
const MODEL: u32 = 40;

fn count(orb: &Orb, incident: Incident) -> u64 {
    let incidents = orb.snapshot().incidents;
    let of = incidents.iter().find(|(of, _)| *of == incident);
    of.map_or(0, |(_, count)| *count)
}

fn server(pool: Pool, policies: &[Policy], configure: impl FnOnce(&mut OrbConfig)) -> LanedServer {
    let policies = [&[propagated()], policies].concat();
    laned_by(orb_with(configure), pool, &policies)
}

#[test]
fn the_highest_lane_is_the_ceiling() {
    let s = server(Pool::Lanes, &[], |_| {});
    for (wanted, served) in [(10, 10), (30, 30), (31, 30), (ABOVE, 30)] {
        assert_eq!(served_at(&s, wanted), Ok(served), "{wanted}");
    }
    assert_eq!(count(&s.server, Incident::PriorityClamped), 2);
    assert_eq!(count(&s.server, Incident::PriorityRefused), 0);
}

#[test]
fn the_highest_band_is_the_ceiling() {
    let policy = Policy::PriorityBandedConnection(bands(&[(0, 25), (26, 60)]));
    let s = server(Pool::Lanes, &[policy], |_| {});
    for (wanted, served) in [(60, 60), (61, 60), (ABOVE, 60)] {
        assert_eq!(served_at(&s, wanted), Ok(served), "{wanted}");
    }
}

#[test]
fn pools_without_lanes_have_the_ceiling_of_the_orb() {
    for pool in [Pool::Default, Pool::Plain] {
        let s = server(pool, &[], |config| {
            config.priority_ceiling = Some(corba(50))
        });
        assert_eq!(served_at(&s, 50), Ok(50));
        assert_eq!(served_at(&s, ABOVE), Ok(50));
        let s = server(pool, &[], |_| {});
        assert_eq!(served_at(&s, ABOVE), Ok(ABOVE), "there is none");
        assert_eq!(count(&s.server, Incident::PriorityClamped), 0);
    }
}

#[test]
fn a_poa_has_a_ceiling_of_its_own() {
    for pool in [Pool::Default, Pool::Plain, Pool::Lanes] {
        let own = Policy::PriorityCeiling(corba(40));
        let s = server(pool, &[own], |config| {
            config.priority_ceiling = Some(corba(20))
        });
        assert_eq!(served_at(&s, ABOVE), Ok(40), "{pool:?}");
    }
    let server = orb_with(|_| {});
    let root = server.root_poa().expect("it is made");
    let declared = Policy::PriorityModel(PriorityModel::ServerDeclared, corba(1));
    for model in [Some(declared), None] {
        let mut policies = vec![Policy::PriorityCeiling(corba(40))];
        policies.extend(model);
        let refused = root.create_poa("none", None, &policies).map(drop);
        assert_eq!(
            refused,
            Err(CreatePoaError::InvalidPolicy {
                index: 0,
                rule: PolicyRule::NoCeiling
            })
        );
    }
    server.shutdown(true).expect("no servant calls it");
}

#[test]
fn an_endpoint_has_a_ceiling_of_its_own() {
    let s = server(Pool::Default, &[], |config| {
        let endpoints = parse_endpoints("iiop://127.0.0.1:0/ceiling=15");
        config.listen_endpoints = endpoints.expect("it is correct");
        config.priority_ceiling = Some(corba(50));
    });
    assert_eq!(served_at(&s, 15), Ok(15));
    assert_eq!(served_at(&s, 16), Ok(15));
    assert_eq!(count(&s.server, Incident::PriorityClamped), 1);
    for wrong in ["-1", "32768", "high"] {
        let mut args = ["-ORBListenEndpoints", &format!("iiop://:0/ceiling={wrong}")]
            .map(str::to_owned)
            .to_vec();
        assert!(Orb::init(&mut args).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_above_the_ceiling_may_be_refused() {
    let s = server(Pool::Lanes, &[], |config| {
        config.priority_excess = PriorityExcess::Refuse;
    });
    assert_eq!(served_at(&s, 30), Ok(30));
    let refused = SystemException::no(Kind::NoPermission, minor::PRIORITY_ABOVE_CEILING);
    assert_eq!(served_at(&s, 31), Err(refused));
    assert_eq!(count(&s.server, Incident::PriorityRefused), 1);
    assert_eq!(count(&s.server, Incident::PriorityClamped), 0);
}

#[cfg(feature = "uiop")]
#[test]
fn with_the_secure_profile_the_ceiling_is_0() {
    for (ceiling, served) in [(None, 0), (Some(corba(9)), 9)] {
        let s = server(Pool::Default, &[], |config| {
            config.profile = SecurityProfile::Secure;
            config.listen_endpoints = parse_endpoints("uiop://").expect("it is correct");
            let rule = "uid=self unix".parse();
            config.server_transport_rules = [rule.expect("it is correct")].into_iter().collect();
            config.priority_ceiling = ceiling;
        });
        let at = s.at(Some(ABOVE), || priority(&s.object).map(|(corba, _)| corba));
        assert_eq!(at, Ok(served));
        assert_eq!(count(&s.server, Incident::PriorityClamped), 1);
    }
}

#[test]
fn a_declared_priority_is_not_the_clients_to_exceed() {
    let model = Policy::PriorityModel(PriorityModel::ServerDeclared, corba(LANES[0]));
    let s = laned_by(orb_with(|_| {}), Pool::Lanes, &[model]);
    assert_eq!(
        s.at(Some(ABOVE), || priority(&s.object)).map(|p| p.0),
        Ok(LANES[0])
    );
    assert_eq!(count(&s.server, Incident::PriorityClamped), 0);
}

#[test]
fn who_leaves_priorities_to_anybody_is_named() {
    let named = |pool, policies: &[Policy], endpoint: &str, ceiling: Option<i16>| {
        let s = server(pool, policies, |config| {
            let endpoints = parse_endpoints(endpoint);
            config.listen_endpoints = endpoints.expect("it is correct");
            config.priority_ceiling = ceiling.map(corba);
        });
        let warnings = s.server.listening().warnings;
        let named = warnings
            .into_iter()
            .filter(|warning| warning.contains("priorities"));
        named.collect::<Vec<_>>()
    };
    let network = "iiop://0.0.0.0:0/hostname_in_ior=192.0.2.1";
    let warns = |clients| {
        [format!(
            "{clients} chooses the priorities of the POA \"rt\" (-ORBPriorityCeiling)"
        )]
    };
    let by_network = warns("any client on the network");
    assert_eq!(named(Pool::Default, &[], network, None), by_network);
    assert_eq!(named(Pool::Plain, &[], network, None), by_network);
    let none: [String; 0] = [];
    assert_eq!(named(Pool::Lanes, &[], network, None), none);
    assert_eq!(named(Pool::Default, &[], network, Some(9)), none);
    let own = Policy::PriorityCeiling(corba(40));
    assert_eq!(named(Pool::Default, &[own], network, None), none);
    let bounded = format!("{network}&ceiling=7");
    assert_eq!(named(Pool::Default, &[], &bounded, None), none);
    let local = "iiop://127.0.0.1:0";
    let by_users = warns("any user of this machine");
    assert_eq!(named(Pool::Default, &[], local, None), by_users);
    assert_eq!(named(Pool::Default, &[], local, Some(9)), none);
    let both = format!("{local};{network}");
    assert_eq!(named(Pool::Default, &[], &both, None), by_network);
    let directory = tempfile::tempdir().expect("there is room");
    let file = |name: &str| format!("uiop://{}", directory.path().join(name).display());
    assert_eq!(named(Pool::Default, &[], &file("own"), None), none);
    let shared = format!("{}|mode=0666", file("shared"));
    assert_eq!(named(Pool::Default, &[], &shared, None), by_users);
    let unnamed = format!("uiop://@chronorb-ceilings-{}", std::process::id());
    assert_eq!(named(Pool::Default, &[], &unnamed, None), by_users);
}
