//! The excerpts of the book's pages on Real-Time CORBA, compiled and run: `cargo xtask tidy` finds
//! each of them here.

use std::error::Error;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::observe::{Activity, ThreadSnapshot};
use chronorb::prelude::*;
use chronorb::rtcorba::{
    ClientPolicy, FailoverPolicy, FailoverSemantics, Heartbeat, LaneOrder, MappingKind,
    NativePriority, NetworkPriority, PriorityBand, PriorityBands, PriorityMapping,
    PriorityTransform, Protocols, RebindMode, SetOverride, TcpProtocolProperties, ThreadpoolId,
    TimeConstraint,
};
use chronorb::transport::parse_endpoints;
use quoter_example::{Book, QuoterSkeleton};

type Outcome = Result<(), Box<dyn Error>>;

fn orb() -> Result<Orb, Box<dyn Error>> {
    let mut config = OrbConfig::default();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    Ok(Orb::with_config(config)?)
}

fn priorities() -> Result<(Priority, Priority), SystemException> {
    Ok((Priority::try_from(1_000)?, Priority::try_from(20_000)?))
}

/// Returns an object on a pool with lanes, which is called through the transport.
fn object(orb: &Orb) -> Result<Object, Box<dyn Error>> {
    let (low, high) = priorities()?;
    let pool = lanes(orb, low, high)?;
    let root = orb.root_poa()?;
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ClientPropagated, low),
    ];
    let poa = root.create_poa("quotes", Some(root.manager()), &policies)?;
    root.manager().activate()?;
    Ok(poa.serve(QuoterSkeleton::new(Book::acme()))?)
}

fn lanes(orb: &Orb, low: Priority, high: Priority) -> Result<ThreadpoolId, SystemException> {
    orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(low, 1), Lane::new(high, 1)],
        ..Default::default()
    })
}

#[test]
fn a_pool_with_lanes_and_its_end() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let (low, high) = priorities()?;
    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(low, 4), Lane::new(high, 2)],
        ..Default::default()
    })?;
    let poa = root.create_poa(
        "control",
        Some(root.manager()),
        &[
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ClientPropagated, low),
        ],
    )?;
    for pool in orb.snapshot().pools {
        for lane in pool.lanes {
            let busy = |thread: &&ThreadSnapshot| thread.activity == Activity::Serving;
            println!(
                "{}: {} of {} serve, {} wait; {} refused so far",
                lane.name,
                lane.threads.iter().filter(busy).count(),
                lane.seats,
                lane.queued,
                lane.refused,
            );
        }
    }
    poa.destroy(true, true)?;
    orb.rt().destroy_threadpool(pool)?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn threads_on_demand_and_request_buffering() -> Outcome {
    let orb = orb()?;
    let (low, high) = priorities()?;
    let pool = orb.rt().create_threadpool(&Threadpool {
        dynamic_threads: 4,
        ..Threadpool::new(low, 2)
    })?;
    assert_eq!(pool.number(), 1);
    let lane = Lane {
        dynamic_threads: 6,
        ..Lane::new(low, 2)
    };
    assert_eq!(lane.static_threads, 2);
    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(low, 4), Lane::new(high, 2)],
        request_buffering: Some(RequestBuffering {
            max_requests: 64,
            max_octets: 1 << 20,
        }),
        ..Default::default()
    })?;
    assert_eq!(pool.number(), 2);
    Ok(orb.shutdown(true)?)
}

#[test]
fn deadlines_and_lanes_with_an_order() -> Outcome {
    let orb = orb()?;
    let (low, high) = priorities()?;
    let current = orb.rt_current();
    let _until = current.constrain(TimeConstraint {
        execution: Duration::from_micros(400),
        criticality: 2,
        ..TimeConstraint::within(Duration::from_millis(20))
    });
    assert!(current.time_left() <= Some(20_000_000));
    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![
            Lane::new(low, 2),
            Lane::new(high, 1).ordered(LaneOrder::Deadline),
        ],
        ..Default::default()
    })?;
    assert_eq!(pool.number(), 1);
    Ok(orb.shutdown(true)?)
}

#[test]
fn priorities_in_short() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let low = Priority::try_from(1_000)?;
    let high = Priority::try_from(20_000)?;

    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(low, 2), Lane::new(high, 1)],
        ..Default::default()
    })?;
    let poa = root.create_poa(
        "control",
        Some(root.manager()),
        &[
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ClientPropagated, low),
        ],
    )?;
    orb.rt_current().set_priority(high)?;
    assert_eq!(orb.rt_current().priority()?, high);
    assert_eq!(poa.name(), "control");
    Ok(orb.shutdown(true)?)
}

/// The plant's three urgencies, and nothing else.
#[derive(Debug)]
struct Plant;

impl PriorityMapping for Plant {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        match priority.value() {
            0 => Some(0),
            1 => Some(30),
            2 => Some(60),
            _ => None,
        }
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        let mut all = (0..3).filter_map(Priority::new);
        all.find(|priority| self.to_native(*priority) == Some(native))
    }
}

#[test]
fn a_mapping_of_the_application() -> Outcome {
    let mut config = OrbConfig::read(&mut std::env::args().collect())?;
    config.priority_mapping = MappingKind::Custom(Arc::new(Plant));
    let orb = Orb::with_config(config)?;
    let mapping = orb.rt().priority_mapping();
    assert_eq!(mapping.to_corba(60), Priority::new(2));
    Ok(orb.shutdown(true)?)
}

#[test]
fn objects_with_priorities_of_their_own() -> Outcome {
    const VALVE: &str = "IDL:Valve:1.0";
    let orb = orb()?;
    let root = orb.root_poa()?;
    let (low, high) = priorities()?;
    let model = Policy::PriorityModel(PriorityModel::ServerDeclared, low);
    let pool = Policy::Threadpool(lanes(&orb, low, high)?);
    let poa = root.create_poa("plant", Some(root.manager()), &[model, pool])?;
    let servant = QuoterSkeleton::new(Book::acme());
    let id = poa.activate_object_with_priority(servant, high)?;
    let valve = poa.create_reference_with_priority(VALVE, high)?;
    let own = Some((PriorityModel::ServerDeclared, high));
    assert_eq!(poa.id_to_reference(&id)?.priority_model(), own);
    assert_eq!(valve.priority_model(), own);
    Ok(orb.shutdown(true)?)
}

/// Makes calls of servants a little less urgent than the requests that they serve.
struct Onward;

impl PriorityTransform for Onward {
    fn inbound(&self, priority: Priority, _object_id: &[u8]) -> Option<Priority> {
        Some(priority)
    }

    fn outbound(&self, priority: Priority, _object_id: &[u8]) -> Option<Priority> {
        Priority::new(priority.value().saturating_sub(100).max(1))
    }
}

#[test]
fn a_priority_transform() -> Outcome {
    let orb = orb()?;
    orb.rt().set_priority_transform(Arc::new(Onward))?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn what_is_bound_again() -> Outcome {
    let orb = orb()?;
    let object = object(&orb)?;
    let object = object.with_policy_overrides(
        &[ClientPolicy::Rebind(RebindMode::NoReconnect)],
        SetOverride::Add,
    )?;
    object.validate_connection()?;
    assert!(!object.non_existent()?);
    Ok(orb.shutdown(true)?)
}

#[test]
fn calls_that_go_on_elsewhere() -> Outcome {
    let orb = orb()?;
    let object = object(&orb)?;
    let policy = FailoverPolicy {
        semantics: FailoverSemantics::AtLeastOnce,
        standbys: 1,
        heartbeat: Some(Heartbeat {
            interval: Duration::from_millis(20),
            time_out: Duration::from_millis(40),
        }),
        ..FailoverPolicy::default()
    };
    let object =
        object.with_policy_overrides(&[ClientPolicy::Failover(policy)], SetOverride::Add)?;
    object.validate_connection()?;
    assert!(!object.non_existent()?);
    Ok(orb.shutdown(true)?)
}

#[test]
fn private_connections_and_explicit_binding() -> Outcome {
    let orb = orb()?;
    let (_, high) = priorities()?;
    let object = object(&orb)?;
    let object =
        object.with_policy_overrides(&[ClientPolicy::PrivateConnection], SetOverride::Add)?;
    orb.rt_current().set_priority(high)?;
    object.validate_connection()?;
    assert!(!object.non_existent()?);
    Ok(orb.shutdown(true)?)
}

#[test]
fn bands_of_the_client() -> Outcome {
    let orb = orb()?;
    let object = object(&orb)?;
    let bands = PriorityBands::new(&[
        PriorityBand::new(Priority::MIN, Priority::try_from(15_999)?),
        PriorityBand::new(Priority::try_from(16_000)?, Priority::MAX),
    ])?;
    let object = object.with_policy_overrides(
        &[ClientPolicy::PriorityBandedConnection(bands)],
        SetOverride::Add,
    )?;
    orb.rt_current().set_priority(Priority::try_from(17_000)?)?;
    object.validate_connection()?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn bands_of_the_server() -> Outcome {
    let orb = orb()?;
    let root = orb.root_poa()?;
    let (low, high) = priorities()?;
    let pool = lanes(&orb, low, high)?;
    let bands = PriorityBands::new(&[PriorityBand::new(low, high)])?;
    let poa = root.create_poa(
        "control",
        Some(root.manager()),
        &[
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ClientPropagated, low),
            Policy::PriorityBandedConnection(bands),
        ],
    )?;
    assert_eq!(poa.name(), "control");
    Ok(orb.shutdown(true)?)
}

#[test]
fn protocols_of_the_client() -> Outcome {
    let orb = orb()?;
    let object = object(&orb)?;
    let protocols = Protocols::iiop(TcpProtocolProperties {
        send_buffer_size: 64 * 1024,
        network_priority: NetworkPriority::FromPriority,
        ..Default::default()
    })?;
    let object = object
        .with_policy_overrides(&[ClientPolicy::ClientProtocol(protocols)], SetOverride::Add)?;
    object.validate_connection()?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn protocols_of_the_server() -> Outcome {
    let orb = orb()?;
    let protocols = Protocols::iiop(TcpProtocolProperties {
        network_priority: NetworkPriority::FromPriority,
        ..Default::default()
    })?;
    orb.policy_manager().set_server_protocol(protocols)?;
    object(&orb)?.validate_connection()?;
    Ok(orb.shutdown(true)?)
}

#[test]
fn levels_of_policies() -> Outcome {
    let orb = orb()?;
    let object = object(&orb)?;
    let timeout = ClientPolicy::RelativeRoundtripTimeout(Duration::from_millis(20));
    orb.policy_manager()
        .set_policy_overrides(slice::from_ref(&timeout), SetOverride::Add)?;
    orb.policy_current()
        .set_policy_overrides(slice::from_ref(&timeout), SetOverride::Add)?;
    let object = object.with_policy_overrides(&[timeout], SetOverride::Add)?;
    assert_eq!(object.policy_overrides(&[]).len(), 1);
    Ok(orb.shutdown(true)?)
}

#[test]
fn mutexes() -> Outcome {
    let orb = orb()?;
    let mutex = orb.rt().create_mutex();
    if mutex.try_lock(Duration::from_millis(5))? {
        // The critical section.
        mutex.unlock()?;
    }
    let section = mutex.guard()?;
    drop(section);
    orb.rt().destroy_mutex(&mutex)?;

    let (mutex, created) = orb.rt().create_named_mutex("axis");
    let same = orb.rt().open_named_mutex("axis")?;
    assert!(created && mutex == same);
    Ok(orb.shutdown(true)?)
}
