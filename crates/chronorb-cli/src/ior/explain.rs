//! `chronorb ior ping --explain`: each address of a reference on its own.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use chronorb_giop::{Component, IiopProfile, Ior, TAG_INTERNET_IOP, TaggedProfile};
use chronorb_orb::Object;
use chronorb_rt::{Deadline, visible};
use chronorb_transport::host_addresses;
use serde::Serialize;

use super::arguments::PingArguments;
use super::decode::profile_name;
use super::{IorError, ping};
use crate::client::{Client, ClientError};
use crate::output::{print, print_json};

/// The steps that were tried.
#[derive(Serialize)]
struct Explanation {
    /// The version of the JSON.
    version: u32,
    exists: bool,
    steps: Vec<ExplainedStep>,
}

#[derive(Serialize)]
struct ExplainedStep {
    step: String,
    ok: bool,
    result: String,
}

/// Tries all addresses, and returns whether one of them leads to the object.
pub(super) fn run(
    client: &Client,
    object: &Object,
    arguments: &PingArguments,
    timeout: Duration,
) -> Result<bool, IorError> {
    let mut this = Explanation {
        version: 1,
        exists: false,
        steps: Vec::new(),
    };
    for (number, profile) in (1..).zip(&object.ior().profiles) {
        let name = format!("profile {number}, {}", profile_name(profile.tag));
        for (host, port) in addresses(profile) {
            this.connect(&name, &host, port, timeout);
        }
        let ior = Ior {
            type_id: object.type_id().to_owned(),
            profiles: vec![profile.clone()],
        };
        match client.orb.ior_to_object(ior) {
            Ok(object) => this.call(client, &name, &object),
            Err(exception) => this.add(format!("{name}: use"), Err(client.cause(exception))),
        }
    }
    if arguments.json {
        print_json(&this)?;
    } else {
        print(&this.text())?;
    }
    Ok(this.exists)
}

impl Explanation {
    fn add(&mut self, step: String, outcome: Result<String, String>) {
        let ok = outcome.is_ok();
        let result = outcome.unwrap_or_else(|problem| problem);
        self.steps.push(ExplainedStep { step, ok, result });
    }

    /// Resolves a host name, and connects to each of its addresses.
    fn connect(&mut self, name: &str, host: &str, port: u16, timeout: Duration) {
        let step = format!("{name}: resolve {host}");
        let mut found = match host_addresses(host, Deadline::after(timeout)) {
            Ok(found) => found,
            Err(error) => return self.add(step, Err(error.to_string())),
        };
        found.iter_mut().for_each(|found| found.set_port(port));
        let shown: Vec<_> = found.iter().map(|found| found.ip().to_string()).collect();
        self.add(step, Ok(shown.join(", ")));
        for address in found {
            let outcome = if port == 0 {
                Err("port 0 cannot be connected to".to_owned())
            } else {
                TcpStream::connect_timeout(&address, timeout)
                    .map(|_| "connected".to_owned())
                    .map_err(|error| error.to_string())
            };
            self.add(format!("{name}: connect to {address}"), outcome);
        }
    }

    /// Locates the object by one profile, and asks for its interface.
    fn call(&mut self, client: &Client, name: &str, object: &Object) {
        let located = ping::locate(client, object);
        let exists = matches!(located, Ok(true));
        let outcome = match located {
            Ok(true) => Ok("the object is there".to_owned()),
            Ok(false) => Err("the server does not have the object".to_owned()),
            Err(ClientError::Failed { cause, .. }) => Err(cause),
            Err(other) => Err(other.to_string()),
        };
        self.add(format!("{name}: locate"), outcome);
        if !exists {
            return;
        }
        let gone = object.non_existent();
        let outcome = match gone {
            Ok(false) => Ok("it exists".to_owned()),
            Ok(true) => Err("it does not exist".to_owned()),
            Err(exception) => Err(client.cause(exception)),
        };
        self.exists |= outcome.is_ok();
        self.add(format!("{name}: _non_existent"), outcome);
        let id = object.type_id();
        if id.is_empty() {
            return;
        }
        let outcome = match object.is_a(id) {
            Ok(true) => Ok("yes".to_owned()),
            Ok(false) => Err("no: the reference names an interface that it lacks".to_owned()),
            Err(exception) => Err(client.cause(exception)),
        };
        self.add(format!("{name}: _is_a {id}"), outcome);
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for ExplainedStep { step, ok, result } in &self.steps {
            let mark = if *ok { "ok    " } else { "failed" };
            let (step, result) = (visible(step), visible(result));
            let _ = writeln!(text, "{mark}  {step}: {result}");
        }
        text.push_str(if self.exists {
            "the object can be called from here\n"
        } else {
            "no address leads to the object from here\n"
        });
        text
    }
}

/// The addresses of IIOP in a profile.
fn addresses(profile: &TaggedProfile) -> Vec<(String, u16)> {
    if profile.tag != TAG_INTERNET_IOP {
        return Vec::new();
    }
    // The step that uses the profile reports that it is malformed.
    let Ok(body) = IiopProfile::decode(&profile.data) else {
        return Vec::new();
    };
    let mut addresses = vec![(body.host, body.port)];
    for component in &body.components {
        if let Ok(Component::AlternateIiopAddress { host, port }) = component.typed() {
            addresses.push((host, port));
        }
    }
    addresses.truncate(MAX_ADDRESSES);
    addresses
}

/// The addresses of a profile that are tried; the ORB tries no more either.
const MAX_ADDRESSES: usize = 64;
