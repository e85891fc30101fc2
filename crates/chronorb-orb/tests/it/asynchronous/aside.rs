//! A server's call to a host whose name must be resolved delays no other call.

use std::sync::Arc;

use chronorb_giop::{IiopProfile, Ior, TaggedProfile, Version};
use chronorb_orb::transport::tcp::Tcp;
use chronorb_orb::transport::{
    Acceptor, Address, ConnectError, Connection, ListenError, Setup, Transport,
};
use chronorb_orb::{AddressForm, Endpoint, EndpointError, PluggableProtocol};
use chronorb_rt::Deadline;

use crate::support::asynchronous::{Alarm, Inbox, begin_add, block_on, poll_once};
use crate::support::raw_server::{Peer, forward, raw_server};
use crate::support::strategies::STRATEGIES;
use crate::support::{Latch, PROBE_ID, orb_with};

/// TCP with named hosts. Names are resolved once the latch is at 2. It is at 1 while a thread waits
/// for that.
#[derive(Default)]
struct NamedHosts(Arc<Latch>);

impl std::fmt::Debug for NamedHosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NamedHosts")
    }
}

impl Transport for NamedHosts {
    fn scheme(&self) -> &str {
        "named"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        Tcp.check(endpoint)
    }

    fn listen(&self, e: &Endpoint, setup: Setup) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        Tcp.listen(e, setup)
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let (host, port) = address.as_host().expect("it is a host");
        assert_eq!(host, "name.of.a.host");
        self.0.arrive();
        self.0.reach(2);
        Tcp.connect(&Address::host("127.0.0.1", port), setup, deadline)
    }
}

/// A number in the range for experiments.
const NAMED: u32 = 0x7f00_0002;

fn at(port: u16, host: &str, tag: u32) -> Ior {
    let profile = IiopProfile {
        version: Version::V1_2,
        host: host.to_owned(),
        port,
        object_key: b"key".to_vec(),
        components: Vec::new(),
    };
    Ior {
        type_id: PROBE_ID.to_owned(),
        profiles: vec![TaggedProfile {
            tag,
            data: profile.encode().expect("it fits"),
        }],
    }
}

#[test]
fn a_forward_to_a_host_with_a_name_holds_up_no_other_handler() {
    for strategy in STRATEGIES {
        for is_future in [false, true] {
            eprintln!("with {strategy:?}");
            let there = raw_server(Peer::answer_all);
            let to = at(there.address.port(), "name.of.a.host", NAMED);
            let here = raw_server(move |mut peer: Peer| {
                while let Some((id, (a, b))) = peer.request() {
                    match a {
                        0 => peer.send(&forward(id, &to)),
                        _ => peer.answer((id, (a, b))),
                    }
                }
            });
            let latch = Arc::new(Latch::default());
            let transport = Arc::new(NamedHosts(latch.clone()));
            let orb = orb_with(|config| {
                config.client_connection = strategy;
                let form = AddressForm::HOST_AND_PORT;
                config.add_protocol(PluggableProtocol::new(transport, NAMED, form));
            });
            let object = at(
                here.address.port(),
                "127.0.0.1",
                chronorb_giop::TAG_INTERNET_IOP,
            );
            let object = orb.string_to_object(&object.to_string()).expect("it reads");
            let (first, second) = (Inbox::new(), Inbox::new());
            let mut forwarded = Some(begin_add(&object, 0, 7).expect("it begins"));
            if is_future {
                let alarm = Arc::new(Alarm::default());
                let pending = forwarded.as_mut().expect("it is there");
                assert!(poll_once(pending, &alarm).is_pending());
            } else {
                let pending = forwarded.take().expect("it is there");
                pending.on_reply(first.handler()).expect("a thread");
            }
            latch.reach(1);
            let other = begin_add(&object, 1, 1).expect("it begins");
            other.on_reply(second.handler()).expect("a thread");
            assert_eq!(second.take(1), [Ok(2)], "the name is not found yet");
            latch.set(2);
            match forwarded {
                Some(pending) => assert_eq!(block_on(pending), Ok(7)),
                None => assert_eq!(first.take(1), [Ok(7)]),
            }
            orb.shutdown(true).expect("it ends");
        }
    }
}
