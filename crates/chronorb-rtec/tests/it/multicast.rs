//! A group of objects as one consumer: one message reaches all its members.

use chronorb_events::{Filter, write_entries};
use chronorb_rtec::ChannelOptions;
use chronorb_rtec::idl::rtec_event_comm::PushConsumer;

use crate::support::{Clients, Fixture, connect, dispatchings, single};

#[test]
fn a_group_of_consumers_takes_one_message() {
    for (number, options) in dispatchings().into_iter().enumerate() {
        let options = ChannelOptions {
            datagram_consumers: true,
            ..options
        };
        let f = Fixture::new(Clients::Remote, options);
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let address = format!("239.80.{high}.{low}:{}", 31_000 + number);
        let url = format!("corbaloc:miop:1.0@1.0-Events-{number}/{address}");
        let group = f.client.string_to_object(&url).unwrap();
        let root = f.client.root_poa().unwrap();
        let members = [f.recorder(), f.recorder()].map(|(recorder, consumer)| {
            let id = root.reference_to_id(consumer.as_object()).unwrap();
            root.associate_reference_with_id(&group, &id).unwrap();
            recorder
        });
        let (proxy, consumer) = f.proxy_supplier();
        let group = PushConsumer::unchecked_narrow(&group);
        connect(&proxy, Some(&group), &write_entries(&Filter::of_type(20))).unwrap();
        f.wait_until_reached(consumer);
        let supplier = f.supplier(&[(0, 0)]);
        let events = [(1, 20), (2, 21), (3, 20)];
        f.push(&supplier, &events);
        for member in &members {
            // Datagrams have no order, nor do the threads that take them.
            let mut sets = member.sets(2);
            sets.sort();
            assert_eq!(sets, single(&[events[0], events[2]]));
        }
        let state = f.state_of(consumer).unwrap();
        assert_eq!(
            (state.sets, state.lost),
            (2, 0),
            "two messages for all members"
        );
        f.service.check_clients();
        assert!(
            f.state_of(consumer).is_some(),
            "a group answers no questions"
        );
    }
}
