//! Cases 17 and 18: connections that are refused, and what they leave.

use chronorb::SystemExceptionKind;
use chronorb_events::{Entry, Filter, write_entries};
use chronorb_rtec::idl::rtec_event_channel_admin::{
    AlreadyConnected, ConnectPushConsumerError, ConnectPushSupplierError,
};
use chronorb_rtec::{ChannelLimits, ChannelOptions, Notation, Rules};

use crate::support::{Clients, Fixture, all, connect, everywhere, publish};

const GLOBAL: i32 = 7;
const CONJUNCTION: i32 = 8;
const DISJUNCTION: i32 = 9;
const NEGATION: i32 = 10;
const BITMASK: i32 = 12;

fn entry(source: i32, event_type: i32) -> Entry {
    Entry {
        source,
        event_type,
        time: 0,
    }
}

fn kind_of(error: ConnectPushConsumerError) -> Option<SystemExceptionKind> {
    match error {
        ConnectPushConsumerError::System(exception) => Some(exception.kind),
        _ => None,
    }
}

#[test]
fn case_17_a_nil_consumer_is_a_bad_parameter() {
    everywhere(|f| {
        let (proxy, _) = f.proxy_supplier();
        let refused = connect(&proxy, None, &[entry(0, 20)]).unwrap_err();
        assert_eq!(kind_of(refused), Some(SystemExceptionKind::BadParam));
    });
}

#[test]
fn case_17_a_nil_supplier_is_accepted() {
    everywhere(|f| {
        let proxy = f.proxy_consumer();
        publish(&proxy, None, &[(1, 20)]).unwrap();
        assert!(f.service.statistics().suppliers[0].is_connected);
    });
}

#[test]
fn case_17_a_second_connection_is_refused() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::of_type(20));
        let other = write_entries(&Filter::of_type(21));
        let twice = connect(&consumer.proxy, Some(&consumer.consumer), &other).unwrap_err();
        let expected = ConnectPushConsumerError::AlreadyConnected(AlreadyConnected);
        assert_eq!(twice, expected);

        let supplier = f.supplier(&[(1, 20)]);
        let twice = publish(&supplier.proxy, None, &[(1, 21)]).unwrap_err();
        let expected = ConnectPushSupplierError::AlreadyConnected(AlreadyConnected);
        assert_eq!(twice, expected);
        assert_eq!(f.state_of(consumer.number).unwrap().subscription, "20");
    });
}

#[test]
fn case_17_a_reconnection_replaces_the_subscription() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let options = ChannelOptions {
            consumer_reconnect: true,
            supplier_reconnect: true,
            ..ChannelOptions::default()
        };
        let f = Fixture::new(clients, options);
        let consumer = f.subscribe(&Filter::of_type(20));
        let supplier = f.supplier(&[(1, 20)]);
        f.push(&supplier, &[(1, 20), (1, 21)]);
        let other = write_entries(&Filter::of_type(21));
        connect(&consumer.proxy, Some(&consumer.consumer), &other).unwrap();
        publish(&supplier.proxy, None, &[(1, 21)]).unwrap();
        f.push(&supplier, &[(1, 20), (1, 21)]);
        assert_eq!(f.sets(&consumer), [[(1, 20)], [(1, 21)]]);
        assert_eq!(f.state_of(consumer.number).unwrap().subscription, "21");
    }
}

#[test]
fn case_17_no_event_is_lost_or_doubled_around_a_reconnection() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let options = ChannelOptions {
            consumer_reconnect: true,
            ..ChannelOptions::default()
        };
        let f = Fixture::new(clients, options);
        let consumer = f.subscribe(&Filter::of_type(20));
        let others = [Filter::of_type(20), Filter::Everything].map(|it| write_entries(&it));
        std::thread::scope(|scope| {
            for source in 1..=4 {
                let f = &f;
                scope.spawn(move || {
                    let supplier = f.supplier(&[(source, 20)]);
                    for _ in 0..50 {
                        let one = crate::support::event(source, 20);
                        supplier.proxy.push(&[one]).unwrap();
                    }
                });
            }
            for entries in others.iter().cycle().take(40) {
                connect(&consumer.proxy, Some(&consumer.consumer), entries).unwrap();
            }
        });
        f.expect(200);
        let sets = f.sets(&consumer);
        for source in 1..=4 {
            let of_source = sets.iter().filter(|set| set[0].0 == source);
            assert_eq!(of_source.count(), 50);
        }
    }
}

#[test]
fn case_18_malformed_subscriptions_are_bad_parameters_and_the_channel_lives() {
    let timer = |time| Entry {
        source: 0,
        event_type: 5,
        time,
    };
    let deep = |depth: usize| {
        let mut entries = vec![entry(0, NEGATION); depth];
        entries.push(entry(1, 20));
        entries
    };
    let malformed = [
        vec![],
        vec![entry(5, CONJUNCTION), entry(1, 20), entry(2, 20)],
        vec![entry(0, GLOBAL)],
        vec![entry(0, NEGATION)],
        vec![entry(0, BITMASK)],
        vec![entry(0, BITMASK), entry(1, 1)],
        vec![entry(-1, CONJUNCTION), entry(1, 20)],
        deep(2_000),
        vec![entry(1, 20); 2_000],
        vec![timer(0)],
        vec![timer(u64::MAX)],
    ];
    everywhere(|f| {
        let (proxy, number) = f.proxy_supplier();
        let (recorder, consumer) = f.recorder();
        for entries in &malformed {
            let refused = connect(&proxy, Some(&consumer), entries).unwrap_err();
            assert_eq!(kind_of(refused), Some(SystemExceptionKind::BadParam));
            assert_eq!(f.state_of(number).unwrap().subscription, "");
        }
        connect(&proxy, Some(&consumer), &[entry(1, 20)]).unwrap();
        let supplier = f.supplier(&[(1, 20)]);
        f.push(&supplier, &[(1, 20)]);
        assert_eq!(recorder.sets(1), [[(1, 20)]]);
    });
}

/// TAO's gateway connects with such a group while its channel has no consumers.
#[test]
fn case_18_a_group_without_children_connects_and_gets_nothing() {
    everywhere(|f| {
        let (proxy, number) = f.proxy_supplier();
        let (recorder, consumer) = f.recorder();
        connect(&proxy, Some(&consumer), &[entry(0, DISJUNCTION)]).unwrap();
        f.wait_until_reached(number);
        assert_eq!(f.state_of(number).unwrap().subscription, "()");
        let other = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(1, 20)]);
        f.push(&supplier, &[(1, 20), (0, 20), (0, 0)]);
        assert_eq!(f.sets(&other).len(), 3);
        assert_eq!(f.state_of(number).unwrap().sets, 0);
        assert_eq!(recorder.sets(0).len(), 0);
    });
}

#[test]
fn case_18_subscriptions_beyond_the_memory_of_a_request_are_refused() {
    everywhere(|f| {
        let (proxy, _) = f.proxy_supplier();
        let (_, consumer) = f.recorder();
        for entries in [vec![entry(0, NEGATION); 10_000], vec![entry(1, 20); 10_000]] {
            let refused = kind_of(connect(&proxy, Some(&consumer), &entries).unwrap_err());
            // A direct call needs no memory for the arguments.
            let expected = [SystemExceptionKind::BadParam, SystemExceptionKind::NoMemory];
            assert!(
                refused.is_some_and(|kind| expected.contains(&kind)),
                "{refused:?}"
            );
        }
        connect(&proxy, Some(&consumer), &[entry(1, 20)]).unwrap();
    });
}

#[test]
fn case_18_publications_are_bounded() {
    everywhere(|f| {
        let proxy = f.proxy_consumer();
        let many = vec![(1, 20); 1025];
        let refused = publish(&proxy, None, &many).unwrap_err();
        let ConnectPushSupplierError::System(exception) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(exception.kind, SystemExceptionKind::BadParam);
        publish(&proxy, None, &many[1..]).unwrap();
    });
}

#[test]
fn proxies_are_bounded_and_give_their_room_back() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let options = ChannelOptions {
            limits: ChannelLimits {
                consumers: all(2),
                suppliers: all(1),
                ..ChannelLimits::default()
            },
            ..ChannelOptions::default()
        };
        let f = Fixture::new(clients, options);
        let consumers = f.channel.for_consumers().unwrap().unwrap();
        let suppliers = f.channel.for_suppliers().unwrap().unwrap();
        let first = consumers.obtain_push_supplier().unwrap().unwrap();
        consumers.obtain_push_supplier().unwrap();
        let refused = consumers.obtain_push_supplier().unwrap_err();
        assert_eq!(refused.kind, SystemExceptionKind::ImpLimit);
        first.disconnect_push_supplier().unwrap();
        consumers.obtain_push_supplier().unwrap();

        suppliers.obtain_push_consumer().unwrap();
        let refused = suppliers.obtain_push_consumer().unwrap_err();
        assert_eq!(refused.kind, SystemExceptionKind::ImpLimit);
    }
}

#[test]
fn the_basic_notation_is_read_if_the_channel_has_it() {
    for clients in [Clients::Collocated, Clients::Remote] {
        let options = ChannelOptions {
            notation: Notation::Basic,
            ..ChannelOptions::default()
        };
        let f = Fixture::new(clients, options);
        let (proxy, number) = f.proxy_supplier();
        let (_, consumer) = f.recorder();
        // The number of children does not count.
        let entries = [entry(0, CONJUNCTION), entry(1, 20), entry(2, 20)];
        connect(&proxy, Some(&consumer), &entries).unwrap();
        assert_eq!(f.state_of(number).unwrap().subscription, "1:20 + 2:20");
    }
}

/// The subscriptions of TAO's programs, which begin a group without a count by default.
#[test]
fn subscriptions_of_the_programs_of_tao_are_read_whatever_the_notation_of_the_channel() {
    for clients in [Clients::Collocated, Clients::Remote] {
        for notation in [Notation::Prefix, Notation::Basic] {
            let options = ChannelOptions {
                notation,
                ..ChannelOptions::default()
            };
            let f = Fixture::new(clients, options);
            let text = |entries: &[Entry]| {
                let (proxy, number) = f.proxy_supplier();
                let (_, consumer) = f.recorder();
                connect(&proxy, Some(&consumer), entries).unwrap();
                f.state_of(number).unwrap().subscription
            };
            let [one, two, three] = [1, 2, 3].map(|source| entry(source, 20));
            assert_eq!(text(&[entry(0, DISJUNCTION), one, two]), "1:20 | 2:20");
            assert_eq!(text(&[entry(0, CONJUNCTION), one, two]), "1:20 + 2:20");
            let nested = [
                entry(2, DISJUNCTION),
                entry(2, CONJUNCTION),
                one,
                two,
                three,
            ];
            assert_eq!(text(&nested), "1:20 + 2:20 | 3:20");
        }
    }
}

#[test]
fn with_the_rules_of_tao_a_channel_ignores_what_follows_the_first_filter() {
    let sets = |rules| {
        let options = ChannelOptions {
            rules,
            ..ChannelOptions::default()
        };
        let f = Fixture::new(Clients::Remote, options);
        let (proxy, number) = f.proxy_supplier();
        let (recorder, consumer) = f.recorder();
        let entries = [entry(1, DISJUNCTION), entry(0, 20), entry(0, 21)];
        connect(&proxy, Some(&consumer), &entries).unwrap();
        f.wait_until_reached(number);
        let supplier = f.supplier(&[(0, 0)]);
        f.push(&supplier, &[(1, 20), (1, 21)]);
        recorder.sets(f.state_of(number).unwrap().sets as usize)
    };
    assert_eq!(sets(Rules::Corrected), [[(1, 20)], [(1, 21)]]);
    assert_eq!(sets(Rules::Tao), [[(1, 20)]]);
}
