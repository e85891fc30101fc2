//! The form of events on the wire, which TAO's programs expect.

use std::net::TcpListener;

use chronorb_events::{Filter, write_entries};
use chronorb_rtec::ChannelOptions;
use chronorb_rtec::idl::rtec_event_comm::PushConsumer;

use crate::support::{Clients, Fixture, RawConsumer, connect, data, event};

/// Pushes an event of source 7 and type 20 with a payload, and returns the request that the channel
/// sends to its consumer.
fn request(payload: &[u8]) -> Vec<u8> {
    let f = Fixture::new(Clients::Remote, ChannelOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/Consumer");
    let consumer = PushConsumer::unchecked_narrow(&f.client.string_to_object(&url).unwrap());
    let (proxy, _) = f.proxy_supplier();
    connect(&proxy, Some(&consumer), &write_entries(&Filter::Everything)).unwrap();
    let supplier = f.supplier(&[(7, 20)]);
    let mut one = event(7, 20);
    one.header.ttl = 3;
    one.header.creation_time = 1 << 40;
    one.header.ec_recv_time = 5;
    one.data = data(payload);
    supplier.proxy.push(&[one]).unwrap();
    f.expect(1);

    let mut consumer = RawConsumer::accept(&listener);
    consumer.answer();
    consumer.read()
}

#[test]
fn the_smallest_event_has_52_octets_in_the_order_of_the_idl() {
    let message = request(&[]);
    assert!(message.windows(5).any(|octets| octets == b"push\0"));
    let mut expected = Vec::new();
    for number in [1, 20, 7, 3_u32] {
        expected.extend(number.to_ne_bytes());
    }
    for time in [1 << 40, 5, 0_u64] {
        expected.extend(time.to_ne_bytes());
    }
    // The first pad, an empty payload, and the type code of an empty any.
    expected.extend([0; 12]);
    assert_eq!(expected.len(), 52);
    assert!(message.ends_with(&expected));
    // The body is aligned to 8.
    assert_eq!((message.len() - 52) % 8, 0);
}

#[test]
fn a_payload_begins_at_octet_48_of_the_body() {
    let message = request(b"chronorb");
    let payload = &message[message.len() - 12..];
    assert_eq!(payload, b"chronorb\0\0\0\0");
    assert_eq!((message.len() - 12) % 8, 0);
}
