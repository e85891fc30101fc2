//! Cases 1 to 6 and 27: which events reach a consumer.

use chronorb::data::AnyBuf;
use chronorb_events::Filter;
use chronorb_rtec::idl::rtec_event_comm::Event;
use chronorb_rtec::{ChannelOptions, UnpublishedPolicy};

use crate::support::{Clients, Fixture, Set, dispatchings, event, everywhere, leaf, single};

#[test]
fn case_1_wildcards_match_every_source_or_type() {
    everywhere(|f| {
        let filters = [(10, 20), (10, 0), (0, 20), (0, 0)].map(leaf);
        let consumers = filters.map(|filter| f.subscribe(&filter));
        let supplier = f.supplier(&[(10, 20), (11, 21)]);
        f.push(&supplier, &[(10, 20), (11, 21)]);
        let numbers = consumers.map(|consumer| f.sets(&consumer).len());
        assert_eq!(numbers, [1, 1, 1, 2]);
    });
}

#[test]
fn case_2_events_without_a_source_pass_every_filter_of_sources() {
    everywhere(|f| {
        assert_eq!(f.sets_of(&leaf((10, 20)), &[(0, 20)]), [[(0, 20)]]);
    });
}

#[test]
fn case_3_negations_deliver_the_others() {
    everywhere(|f| {
        let sets = f.sets_of(&!leaf((10, 20)), &[(10, 20), (10, 21)]);
        assert_eq!(sets, [[(10, 21)]]);
    });
}

#[test]
fn case_4_logical_ands_deliver_what_every_child_accepts() {
    let events = [(10, 20), (10, 21), (11, 20), (11, 21)];
    everywhere(|f| {
        let filter = !Filter::from_source(11) & Filter::of_type(20);
        assert_eq!(f.sets_of(&filter, &events), [[(10, 20)]]);
        let filter = Filter::Everything & !leaf((10, 20));
        assert_eq!(f.sets_of(&filter, &events), single(&events[1..]));
    });
}

#[test]
fn case_5_masks_need_a_bit_of_the_source_and_of_the_type() {
    let suppliers = [(0x1111, 0x1111_0000), (0x0110_0000, 0x0110)];
    let bits = |source_mask, type_mask, then| Filter::Bits {
        source_mask,
        type_mask,
        then: Box::new(then),
    };
    everywhere(|f| {
        let first = bits(0x1111, 0x1111_0000, leaf((0x0110_0000, 0x0110)));
        assert_eq!(f.sets_of(&first, &suppliers), Vec::<Set>::new());
        let second = bits(0x0110_0110, 0x0110_0110, Filter::Everything);
        assert_eq!(f.sets_of(&second, &suppliers), single(&suppliers));
        let third = bits(0x0110, 0x0110_0000, Filter::Everything);
        assert_eq!(f.sets_of(&third, &suppliers), single(&suppliers[..1]));
    });
}

#[test]
fn case_6_masked_values_are_compared() {
    let suppliers = [(0x1111, 0x1111_0000), (0x0110_0000, 0x0110)];
    let filter = Filter::Masked {
        source_mask: 0x1111_0000,
        type_mask: 0x1111,
        source_value: 0x0110_0000,
        type_value: 0x0110,
    };
    everywhere(|f| {
        assert_eq!(f.sets_of(&filter, &suppliers), single(&suppliers[1..]));
    });
}

#[test]
fn case_27_unpublished_events_are_filtered_as_others_by_default() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(10, 20)]);
        f.push(&supplier, &[(10, 20), (10, 21)]);
        assert_eq!(f.sets(&consumer), single(&[(10, 20), (10, 21)]));
        assert_eq!(f.service.statistics().suppliers[0].unpublished, 0);
    });
}

#[test]
fn case_27_unpublished_events_reach_nobody_if_the_channel_is_strict() {
    for clients in [Clients::Collocated, Clients::Remote] {
        for options in dispatchings() {
            let options = ChannelOptions {
                unpublished: UnpublishedPolicy::Dropped,
                ..options
            };
            let f = Fixture::new(clients, options);
            let everything = f.subscribe(&Filter::Everything);
            let exact = f.subscribe(&leaf((10, 21)));
            let supplier = f.supplier(&[(10, 20), (11, 0)]);
            f.push(&supplier, &[(10, 20), (10, 21), (11, 21)]);
            assert_eq!(f.sets(&everything), single(&[(10, 20), (11, 21)]));
            assert_eq!(f.sets(&exact), Vec::<Set>::new());
            assert_eq!(f.service.statistics().suppliers[0].unpublished, 1);
        }
    }
}

#[test]
fn events_of_one_push_are_filtered_one_by_one_and_keep_their_order() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::of_type(20));
        let supplier = f.supplier(&[(0, 0)]);
        let pushed = [event(1, 20), event(1, 21), event(2, 20)];
        supplier.proxy.push(&pushed).unwrap();
        f.expect(3);
        assert_eq!(f.sets(&consumer), single(&[(1, 20), (2, 20)]));
    });
}

#[test]
fn payloads_and_anys_arrive_as_they_were_sent() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(0, 0)]);
        let value = AnyBuf::new(&2.5).unwrap();
        let mut sent: Event<'_> = event(1, 20);
        sent.data.payload = b"payload";
        sent.data.any_value = value.as_view();
        supplier.proxy.push(&[sent]).unwrap();
        f.expect(1);
        f.sets(&consumer);
        let (payload, any) = consumer.recorder.payloads().remove(0);
        assert_eq!(payload, b"payload");
        assert_eq!(any.extract::<f64>().unwrap(), 2.5);
    });
}

#[test]
fn events_of_a_supplier_that_has_not_connected_are_ignored() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::Everything);
        let proxy = f.proxy_consumer();
        proxy.push(&[event(1, 20)]).unwrap();
        while f.service.statistics().suppliers[0].unpublished == 0 {
            std::thread::yield_now();
        }
        assert_eq!(f.sets(&consumer), Vec::<Set>::new());
    });
}
