//! `chronorb ior ping`: whether an object exists, and the times of asking it.

use std::time::{Duration, Instant};

use chronorb_orb::{BindError, Object, OrbConfig};
use serde::Serialize;

use super::arguments::PingArguments;
use super::{IorError, explain, millis};
use crate::client::{Client, ClientError};
use crate::output::{print, print_json};

/// The outcome of asking an object.
#[derive(Serialize)]
struct PingReport {
    /// The version of the JSON.
    version: u32,
    exists: bool,
    /// The time of connecting and of the locate request.
    locate_ms: f64,
    calls: usize,
    /// The times of `_non_existent`.
    min_ms: f64,
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// Asks the object, and returns whether it exists.
pub(super) fn run(arguments: &PingArguments, config: OrbConfig) -> Result<bool, IorError> {
    let timeout = arguments.reference.timeout(&config);
    let client = Client::new(config, timeout)?;
    let object = client.object(&arguments.reference.reference)?;
    if arguments.explain {
        return explain::run(&client, &object, arguments, timeout);
    }
    let begun = Instant::now();
    let located = locate(&client, &object)?;
    let locate_time = begun.elapsed();
    let mut times = Vec::new();
    let mut exists = located;
    // An object that is not there is not asked again.
    while exists && times.len() < arguments.repeat as usize {
        if !times.is_empty() {
            std::thread::sleep(Duration::from_millis(arguments.interval));
        }
        let begun = Instant::now();
        let gone = object.non_existent();
        let gone = gone.map_err(|exception| client.failed("_non_existent", exception))?;
        times.push(begun.elapsed());
        exists = !gone;
    }
    times.sort_unstable();
    let at = |share: usize| {
        let index = (times.len() * share).div_ceil(100).saturating_sub(1);
        millis(times.get(index).copied().unwrap_or_default())
    };
    let report = PingReport {
        version: 1,
        exists,
        locate_ms: millis(locate_time),
        calls: times.len(),
        min_ms: at(0),
        p50_ms: at(50),
        p90_ms: at(90),
        p99_ms: at(99),
        max_ms: at(100),
    };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&report.text())?;
    }
    Ok(exists)
}

/// Connects and sends a locate request; `false` where the server does not have the object.
pub(super) fn locate(client: &Client, object: &Object) -> Result<bool, ClientError> {
    use chronorb_orb::SystemExceptionKind::ObjectNotExist;
    match object.validate_connection() {
        Ok(()) => Ok(true),
        Err(BindError::System(exception)) if exception.kind == ObjectNotExist => Ok(false),
        Err(BindError::System(exception)) => Err(client.failed("locate request", exception)),
        Err(_) => {
            // The call tells which policy cannot be followed.
            let asked = object.non_existent();
            let gone = asked.map_err(|exception| client.failed("locate request", exception))?;
            Ok(!gone)
        }
    }
}

impl PingReport {
    fn text(&self) -> String {
        if self.calls == 0 {
            return format!(
                "the server does not have the object ({:.3} ms)\n",
                self.locate_ms
            );
        }
        let answer = if self.exists {
            "the object exists"
        } else {
            "the object does not exist"
        };
        let mut text = format!(
            "{answer}\nlocate request, with the connection: {:.3} ms\n",
            self.locate_ms
        );
        text += &if self.calls == 1 {
            format!("_non_existent: {:.3} ms\n", self.max_ms)
        } else {
            format!(
                "_non_existent, {} calls: min {:.3}, median {:.3}, 90 % {:.3}, 99 % {:.3}, \
                 max {:.3} ms\n",
                self.calls, self.min_ms, self.p50_ms, self.p90_ms, self.p99_ms, self.max_ms
            )
        };
        text
    }
}
