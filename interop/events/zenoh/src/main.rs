//! zenoh: two peers with its low-latency transport over TCP. README.md describes the arguments and
//! the lines.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use peer::{Latencies, Part, hear, tell};
use zenoh::Wait;
use zenoh::qos::CongestionControl;

#[path = "../../peer.rs"]
mod peer;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const KEY: &str = "chronorb/events";

/// Peers on the loopback, without scouting.
fn open(setting: &str, address: &str) -> Result<zenoh::Session, Failure> {
    let mut config = zenoh::Config::default();
    let addresses = format!("[{address:?}]");
    let settings = [
        ("mode", "\"peer\""),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
        ("transport/unicast/qos/enabled", "false"),
        ("transport/unicast/lowlatency", "true"),
        (setting, &addresses),
    ];
    for (key, value) in settings {
        config.insert_json5(key, value)?;
    }
    zenoh::open(config).wait()
}

fn main() -> Result<(), Failure> {
    match peer::part() {
        Part::Supply {
            warm_up,
            events,
            period,
        } => {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let address = format!("tcp/127.0.0.1:{port}");
            let session = open("listen/endpoints", &address)?;
            let publisher = session
                .declare_publisher(KEY)
                .congestion_control(CongestionControl::Block)
                .express(true)
                .wait()?;
            tell(&format!("{address:?}"));
            hear();
            while !publisher.matching_status().wait()?.matching() {
                std::thread::sleep(Duration::from_millis(10));
            }
            peer::supply(warm_up, events, period, |payload| {
                publisher.put(&payload[..]).wait().expect("it is sent");
            });
            hear();
        }
        Part::Consume {
            address,
            consumers,
            events,
        } => {
            let session = open("connect/endpoints", &address)?;
            let latencies = Arc::new(Latencies::default());
            let subscribers = (0..consumers).map(|_| {
                let latencies = latencies.clone();
                let subscriber = session.declare_subscriber(KEY);
                subscriber
                    .callback(move |sample| latencies.take(&sample.payload().to_bytes()))
                    .wait()
            });
            let _subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
            tell("{}");
            hear();
            latencies.conclude(consumers * events);
            hear();
        }
    }
    Ok(())
}
