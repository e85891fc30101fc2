//! Filter chains: one thread reads for all lanes of a pool and selects the serving lane; the
//! application may select it first.

use chronorb_giop::{MessageType, ResponseFlags, Version};
use chronorb_orb::ThreadpoolStrategy::{FilterChain, HalfSyncHalfAsync};
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::rtcorba::{Lane, ThreadpoolLanes};
use chronorb_orb::{
    FilterDecision, FilteredRequest, InitError, Orb, OrbConfig, SystemException,
    SystemExceptionKind, parse_endpoints,
};
use chronorb_rt::PiMutex;
use std::net::TcpListener;
use std::sync::Arc;

use crate::support::adapters::{PERSISTENT, USER, ask, ask_for, named, teller, told};
use crate::support::laned::{LANES, Pool, endpoints, pool_policy};
use crate::support::pools::{
    Bench, Buffering, Case, HIGH, LOW, MID, Sight, Threads, corba, native, no_room,
};
use crate::support::{orb, orb_with};

const LANED: Case = Case {
    strategy: FilterChain,
    lanes: 3,
    buffering: Buffering::Off,
    borrowing: false,
    threads: Threads::Static,
    model: PriorityModel::ClientPropagated,
};
const LANELESS: Case = Case { lanes: 0, ..LANED };
const REFUSED: SystemException = SystemException::no(SystemExceptionKind::NoPermission, 7);

/// Returns a bench with these filters.
fn filtered<const N: usize>(
    case: Case,
    filters: [fn(&FilteredRequest<'_>) -> FilterDecision; N],
) -> Bench {
    Bench::with(case, |config| {
        filters
            .into_iter()
            .for_each(|filter| config.request_filters.add(filter));
    })
}

fn chained(configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        config.threadpool_strategy = FilterChain;
        configure(config);
    })
}

/// Makes a request of a class be served, and returns the serving lane and the priority.
fn sight_of(bench: &mut Bench, class: usize, number: u32) -> Sight {
    let asked = bench.hold_now(class, number);
    let sight = bench.floor.begun(number);
    bench.floor.release(number);
    assert_eq!(bench.answer(asked), Ok(()));
    sight
}

fn serves(bench: &Bench, sight: &Sight, class: usize, priority: i16) {
    let lane = sight.lane.expect("a thread of the pool");
    assert_eq!(bench.case.class_of_lane(lane), class, "{sight:?}");
    let seen = (sight.corba, sight.native);
    assert_eq!(seen, (Some(priority), native(priority)), "{sight:?}");
}

#[test]
fn all_lanes_have_the_same_endpoint() {
    let bench = Bench::new(LANED);
    for object in &bench.objects {
        let endpoints: Vec<_> = endpoints(object).into_iter().collect();
        let priorities: Vec<_> = endpoints.iter().map(|(priority, _)| *priority).collect();
        assert_eq!(priorities, [LOW, MID, HIGH]);
        let (_, port) = endpoints[0];
        assert!(endpoints.iter().all(|(_, other)| *other == port));
    }
    let snapshot = bench.server.snapshot();
    let lanes = &snapshot.pools.last().expect("it is there").lanes;
    assert!(
        lanes
            .iter()
            .all(|lane| lane.endpoints == lanes[0].endpoints)
    );
    // The most urgent lane, which is the first one here, has the only reading thread.
    let readers: Vec<_> = lanes.iter().map(|lane| lane.threads.len()).collect();
    assert_eq!(readers, [3, 2, 2]);
}

#[test]
fn endpoints_of_any_lane_are_those_of_all() {
    let server = chained(|config| {
        let endpoint = |host| parse_endpoints(host).expect("it reads").remove(0);
        config.lane_listen_endpoints = vec![
            ((1, 0), endpoint("iiop://127.0.0.1:0")),
            ((1, 2), endpoint("iiop://127.0.0.1:0")),
        ];
    });
    let pool = pool_policy(&server, Pool::Lanes).expect("it has one");
    let root = server.root_poa().expect("it is open");
    let model = Policy::PriorityModel(PriorityModel::ClientPropagated, corba(LANES[0]));
    let poa = root.create_poa("poa", None, &[pool, model]);
    let object = poa.expect("they agree").serve(teller(|_| told("")));
    let ends = endpoints(&object.expect("it activates"));
    let of_lane = |lane| -> Vec<_> {
        let own = ends.iter().filter(move |(priority, _)| *priority == lane);
        own.map(|(_, port)| *port).collect()
    };
    assert_eq!(of_lane(LANES[0]).len(), 2);
    for lane in LANES {
        assert_eq!(of_lane(lane), of_lane(LANES[0]));
    }
    server.shutdown(true).expect("no servant calls it");
}

#[test]
fn a_request_does_not_wait_behind_those_of_other_lanes() {
    for model in [
        PriorityModel::ClientPropagated,
        PriorityModel::ServerDeclared,
    ] {
        let mut bench = Bench::new(Case { model, ..LANED });
        let mut low = vec![bench.hold_now(0, 0), bench.hold_now(0, 1)];
        for number in 2..20 {
            low.push(bench.hold_buffered(0, number));
        }
        for (class, number, priority) in [(2, 20, HIGH), (1, 21, MID)] {
            let sight = sight_of(&mut bench, class, number);
            serves(&bench, &sight, class, priority);
        }
        assert_eq!(bench.floor.count_begun(), 4, "the low ones still wait");
        bench.floor.open();
        for asked in low {
            assert_eq!(bench.answer(asked), Ok(()));
        }
        let snapshot = bench.server.snapshot();
        let pool = snapshot.pools.iter().find(|pool| pool.number == 1);
        let buffered: Vec<_> = pool
            .expect("it is there")
            .lanes
            .iter()
            .map(|lane| (lane.buffered, lane.borrowed, lane.refused))
            .collect();
        assert_eq!(buffered, [(0, 0, 0), (18, 0, 0), (0, 0, 0)]);
    }
}

#[test]
fn requests_of_one_connection_go_each_to_its_lane() {
    let bench = Bench::new(LANED);
    let mut peer = bench.raw(0);
    let mut requests = Vec::new();
    for (number, priority) in [(1, LOW), (2, HIGH), (3, MID)] {
        peer.set_priority(priority);
        let two_way = ResponseFlags::SyncWithTarget;
        requests.extend(peer.request(Version::V1_2, two_way, b"hold", number, 10));
    }
    peer.send(&requests);
    for (number, class, priority) in [(1, 0, LOW), (2, 2, HIGH), (3, 1, MID)] {
        let sight = bench.floor.begun(number);
        serves(&bench, &sight, class, priority);
    }
    // Each is answered when its servant is done.
    for number in [2, 3, 1] {
        bench.floor.release(number);
        assert_eq!(peer.reply(), (Version::V1_2, number, None));
    }
}

#[test]
fn a_priority_without_a_lane_is_served_by_the_least_urgent_one() {
    let mut bench = Bench::new(LANED);
    let mut peer = bench.raw(2);
    peer.set_priority(MID + 1);
    peer.hold(Version::V1_2, 1, 10);
    let sight = bench.floor.begun(1);
    assert_eq!(bench.case.class_of_lane(sight.lane.expect("it has one")), 0);
    assert_eq!(sight.corba, Some(MID + 1));
    bench.floor.release(1);
    assert_eq!(peer.reply(), (Version::V1_2, 1, None));
    bench.await_home();
    let sight = sight_of(&mut bench, 0, 2);
    serves(&bench, &sight, 0, LOW);
}

#[test]
fn persistent_objects_find_their_lane() {
    let server = chained(|_| {});
    let pool = pool_policy(&server, Pool::Lanes).expect("it has one");
    let root = server.root_poa().expect("it is open");
    let model = Policy::PriorityModel(PriorityModel::ServerDeclared, corba(LANES[0]));
    let poa = root
        .create_poa(
            "kept",
            Some(root.manager()),
            &[pool, model, PERSISTENT, USER],
        )
        .expect("they agree");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    for (name, priority) in ["low", "mid", "high"].into_iter().zip(LANES) {
        let servant = teller(|_| {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            told(name.split('.').next().expect("it has a lane"))
        });
        poa.activate_object_with_id_and_priority(name, servant, corba(priority))
            .expect("it is free");
        let object = poa.id_to_reference(&name.into()).expect("it is active");
        let text = server.object_to_string(&object);
        let object = client.string_to_object(&text).expect("it reads");
        let lane = LANES.iter().position(|lane| *lane == priority);
        let expected = format!("1:{}", lane.expect("it has one"));
        assert_eq!(ask(&object), told(&expected));
    }
    for orb in [client, server] {
        orb.shutdown(true).expect("no servant calls it");
    }
}

#[test]
fn a_filter_says_at_which_priority_a_request_is_served_whatever_the_model() {
    for model in [
        PriorityModel::ClientPropagated,
        PriorityModel::ServerDeclared,
    ] {
        let case = Case { model, ..LANED };
        let mut bench = filtered(
            case,
            [|request| match request.operation {
                b"hold" => FilterDecision::ServeAt(corba(HIGH)),
                _ => FilterDecision::PassOn,
            }],
        );
        for class in 0..3 {
            let sight = sight_of(&mut bench, class, class as u32);
            serves(&bench, &sight, 2, HIGH);
            assert_eq!(bench.look(class), Ok(bench.own_sight(class)));
        }
        bench.await_home();
    }
}

#[test]
fn without_lanes_too() {
    let mut bench = filtered(LANELESS, [|_| FilterDecision::ServeAt(corba(MID))]);
    for class in 0..3 {
        let sight = sight_of(&mut bench, class, class as u32);
        serves(&bench, &sight, 0, MID);
    }
    bench.await_home();
}

#[test]
fn the_first_filter_that_decides_does() {
    let mut bench = filtered(
        LANED,
        [
            |_| FilterDecision::PassOn,
            |request| {
                if request.priority == Some(corba(LOW)) {
                    FilterDecision::ServeAt(corba(MID))
                } else {
                    FilterDecision::PassOn
                }
            },
            |request| {
                if request.priority == Some(corba(HIGH)) {
                    FilterDecision::PassOn
                } else {
                    FilterDecision::Refuse(REFUSED)
                }
            },
        ],
    );
    let low = sight_of(&mut bench, 0, 1);
    serves(&bench, &low, 1, MID);
    let mid = bench.hold(1, 2);
    assert_eq!(bench.answer(mid), Err(REFUSED));
    let high = sight_of(&mut bench, 2, 3);
    serves(&bench, &high, 2, HIGH);
    assert!(!bench.floor.has_begun(2));
}

#[test]
fn a_oneway_that_is_refused_is_dropped_and_its_connection_goes_on() {
    let bench = filtered(
        LANED,
        [|request| {
            if request.response_expected {
                FilterDecision::PassOn
            } else {
                FilterDecision::Refuse(REFUSED)
            }
        }],
    );
    let mut peer = bench.raw(0);
    peer.send(&peer.request(Version::V1_2, ResponseFlags::None, b"note", 1, 0));
    let two_way = ResponseFlags::SyncWithTarget;
    peer.send(&peer.request(Version::V1_2, two_way, b"pass", 2, 0));
    assert_eq!(peer.reply(), (Version::V1_2, 2, None));
    assert_eq!(bench.floor.notes(), 0);
}

#[test]
fn filters_see_what_the_header_says() {
    type RequestView = (Vec<u8>, bool, Option<i16>, Option<i16>, bool, usize);
    let seen: Arc<PiMutex<Vec<RequestView>>> = Arc::default();
    let filter = {
        let seen = seen.clone();
        move |request: &FilteredRequest<'_>| {
            seen.lock().push((
                request.operation.to_vec(),
                request.object_id.is_some(),
                request.priority.map(|priority| priority.value()),
                request.propagated.map(|priority| priority.value()),
                request.response_expected,
                request.octets,
            ));
            FilterDecision::PassOn
        }
    };
    let bench = Bench::with(LANED, |config| config.request_filters.add(filter));
    let mut peer = bench.raw(1);
    let request = peer.request(
        Version::V1_2,
        ResponseFlags::SyncWithTarget,
        b"pass",
        1,
        100,
    );
    peer.send(&request);
    assert_eq!(peer.reply(), (Version::V1_2, 1, None));
    let expected = (
        b"pass".to_vec(),
        true,
        Some(MID),
        Some(MID),
        true,
        request.len(),
    );
    assert_eq!(*seen.lock(), [expected]);
}

#[test]
fn a_filter_that_panics_ends_the_connection_of_its_request_alone() {
    let mut bench = filtered(
        LANED,
        [|request| {
            assert!(
                request.operation != b"look",
                "the filter was asked to panic"
            );
            FilterDecision::PassOn
        }],
    );
    let held = bench.hold_now(0, 1);
    let mut peer = bench.raw(0);
    let two_way = ResponseFlags::SyncWithTarget;
    peer.send(&peer.request(Version::V1_2, two_way, b"look", 2, 0));
    assert!(peer.receive().is_none(), "the connection ends");
    let other = sight_of(&mut bench, 2, 3);
    serves(&bench, &other, 2, HIGH);
    bench.floor.release(1);
    assert_eq!(bench.answer(held), Ok(()));
}

#[test]
fn a_message_that_is_none_ends_its_connection_alone() {
    let mut bench = Bench::new(LANED);
    let held = bench.hold_now(0, 1);
    let two_way = ResponseFlags::SyncWithTarget;
    for cut in [0, 4, 9, 20] {
        let mut peer = bench.raw(0);
        let mut message = peer.request(Version::V1_2, two_way, b"pass", 2, 0);
        // The header ends in the middle of its announced content.
        message.truncate(12 + cut);
        let size = (cut as u32).to_ne_bytes();
        message[8..12].copy_from_slice(&size);
        peer.send(&message);
        let (header, _) = peer.receive().expect("an answer");
        assert_eq!(header.kind, MessageType::MessageError, "{cut}");
        assert!(peer.receive().is_none(), "{cut}");
    }
    let other = sight_of(&mut bench, 1, 3);
    serves(&bench, &other, 1, MID);
    bench.floor.release(1);
    assert_eq!(bench.answer(held), Ok(()));
}

#[test]
fn each_queue_is_bounded_for_itself() {
    let mut bench = Bench::with(LANED, |config| config.max_buffered_octets = 100_000);
    let mut low = vec![bench.hold_now(0, 0), bench.hold_now(0, 1)];
    for number in 2..4 {
        low.push(bench.hold_with(0, number, 40_000));
        bench.barrier(0);
    }
    let beyond = bench.hold_with(0, 4, 40_000);
    assert_eq!(bench.answer(beyond), Err(no_room()));
    let high = sight_of(&mut bench, 2, 5);
    serves(&bench, &high, 2, HIGH);
    bench.floor.open();
    for asked in low {
        assert_eq!(bench.answer(asked), Ok(()));
    }
}

#[test]
fn filters_that_nobody_would_ask_are_refused() {
    let mut config = OrbConfig::default();
    config.threadpool_strategy = HalfSyncHalfAsync;
    config
        .request_filters
        .add(|_: &FilteredRequest<'_>| FilterDecision::PassOn);
    let refused = Orb::with_config(config).expect_err("they would never be called");
    assert!(matches!(refused, InitError::Config(_)), "{refused}");
    assert!(refused.to_string().contains("filter-chain"), "{refused}");
}

#[test]
fn a_pool_whose_endpoint_is_taken_leaves_nothing_behind() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port();
    let server = chained(|config| {
        let endpoint = parse_endpoints(&format!("iiop://127.0.0.1:{port}")).expect("it reads");
        config.lane_listen_endpoints = vec![((1, 1), endpoint[0].clone())];
    });
    let lanes = ThreadpoolLanes {
        lanes: LANES.map(|value| Lane::new(corba(value), 1)).to_vec(),
        ..ThreadpoolLanes::default()
    };
    let refused = server.rt().create_threadpool_with_lanes(&lanes);
    let expected = SystemException::no(SystemExceptionKind::NoResources, 0);
    assert_eq!(refused, Err(expected));
    // It would wait for lanes that never end.
    server.shutdown(true).expect("no servant calls it");
}

#[test]
fn the_orbs_own_pool_is_one_of_one_lane() {
    let server = chained(|config| {
        config
            .request_filters
            .add(|request: &FilteredRequest<'_>| match request.operation {
                b"tell" => FilterDecision::PassOn,
                _ => FilterDecision::Refuse(REFUSED),
            });
    });
    let root = server.root_poa().expect("it is open");
    let object = root.serve(named("own")).expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = orb();
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("it reads");
    assert_eq!(ask(&object), told("own"));
    assert_eq!(ask_for(&object, "other"), Err(REFUSED));
    for orb in [client, server] {
        orb.shutdown(true).expect("no servant calls it");
    }
}

/// The excerpt of the book's page on architectures.
#[test]
fn a_filter_as_the_book_shows_it() -> Result<(), Box<dyn std::error::Error>> {
    use chronorb_orb::Architecture;
    use chronorb_orb::rtcorba::Priority;

    let urgent = Priority::try_from(20_000)?;
    let no_permission = REFUSED;
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let mut config = OrbConfig::read(&mut args)?;
    config.set_architecture(Architecture::FilterChain);
    config.request_filters.add(
        move |request: &FilteredRequest<'_>| match request.operation {
            b"emergency_stop" => FilterDecision::ServeAt(urgent),
            b"shutdown" if request.propagated.is_none() => FilterDecision::Refuse(no_permission),
            _ => FilterDecision::PassOn,
        },
    );
    let orb = Orb::with_config(config)?;
    Ok(orb.shutdown(true)?)
}
