//! The state that the channel tells of itself.

use chronorb_events::Filter;
use chronorb_rtec::idl::chronorb_events::MonitoredChannel;

use crate::support::{MS, everywhere, leaf, ms};

#[test]
fn the_statistics_are_told_over_the_wire() {
    everywhere(|f| {
        let channel = MonitoredChannel::narrow(f.channel.as_object());
        let channel = channel.unwrap().unwrap();
        let consumer = f.subscribe(&(leaf((1, 20)) | Filter::each(ms(10))));
        let supplier = f.supplier(&[(1, 20)]);
        f.push(&supplier, &[(1, 20), (1, 21)]);
        f.run_until(20 * MS);
        f.sets(&consumer);
        let told = channel.statistics().unwrap();
        assert_eq!(told, f.service.statistics());
        assert_eq!(told.age, 200_000);
        assert_eq!((told.received, told.delivered, told.lost), (2, 3, 0));
        let consumer = &told.consumers[0];
        assert_eq!(consumer.subscription, "1:20 | every 10ms");
        assert_eq!((consumer.sets, consumer.events), (3, 3));
        assert_eq!(told.suppliers[0].events, 2);
    });
}

#[test]
fn counts_stay_when_clients_have_gone() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::Everything);
        let supplier = f.supplier(&[(1, 20)]);
        f.push(&supplier, &[(1, 20)]);
        consumer.proxy.disconnect_push_supplier().unwrap();
        supplier.proxy.disconnect_push_consumer().unwrap();
        let told = f.service.statistics();
        assert_eq!((told.received, told.sets, told.delivered), (1, 1, 1));
        assert_eq!((told.consumers.len(), told.suppliers.len()), (0, 0));
    });
}
