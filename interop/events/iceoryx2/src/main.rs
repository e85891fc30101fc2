//! iceoryx2: publish and subscribe in shared memory, with an event that wakes the consumers.
//! README.md describes the arguments and the lines.

use std::sync::Arc;
use std::time::Duration;

use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use peer::{Latencies, PAYLOAD, Part, hear, tell};

#[path = "../../peer.rs"]
mod peer;

type Payload = [u8; PAYLOAD];

/// The most consumers.
const MOST: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    match peer::part() {
        Part::Supply {
            warm_up,
            events,
            period,
        } => {
            let name = format!("chronorb/{}", std::process::id());
            let service = node
                .service_builder(&name.as_str().try_into()?)
                .publish_subscribe::<Payload>()
                .max_subscribers(MOST)
                .subscriber_max_buffer_size(16)
                .create()?;
            let woken = node
                .service_builder(&name.as_str().try_into()?)
                .event()
                .max_listeners(MOST)
                .create()?;
            let publisher = service.publisher_builder().create()?;
            let notifier = woken.notifier_builder().create()?;
            tell(&format!("{name:?}"));
            hear();
            peer::supply(warm_up, events, period, |payload| {
                let sample = publisher.loan_uninit().expect("there is memory");
                sample.write_payload(payload).send().expect("it is sent");
                notifier.notify().expect("they are woken");
            });
            hear();
        }
        Part::Consume {
            address,
            consumers,
            events,
        } => {
            let service = node
                .service_builder(&address.as_str().try_into()?)
                .publish_subscribe::<Payload>()
                .open()?;
            let woken = node
                .service_builder(&address.as_str().try_into()?)
                .event()
                .open()?;
            let all: Result<Vec<Subscriber<ipc::Service, Payload, ()>>, _> = (0..consumers)
                .map(|_| service.subscriber_builder().create())
                .collect();
            let subscribers = all?;
            let listener = woken.listener_builder().create()?;
            let latencies = Arc::new(Latencies::default());
            tell("{}");
            // The parent speaks when the supplier has ended.
            let told = latencies.clone();
            let speaking = std::thread::spawn(move || {
                hear();
                told.conclude(consumers * events);
                hear();
            });
            while !speaking.is_finished() {
                listener.timed_wait(|_| {}, Duration::from_millis(100))?;
                for subscriber in &subscribers {
                    while let Some(sample) = subscriber.receive()? {
                        latencies.take(&sample[..]);
                    }
                }
            }
        }
    }
    Ok(())
}
