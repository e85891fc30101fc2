//! Client and server as on two hosts: network namespaces with a cable between them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{self, Command, Stdio};

use super::error::InversionError;

/// Two network namespaces, joined by a pair of virtual Ethernet devices. They are removed when this is dropped, and
/// named after this process, so that those of several runs do not get in each other's way, and those that a killed one
/// left are known.
#[derive(Debug)]
pub(super) struct Namespaces {
    client: String,
    server: String,
}

impl Namespaces {
    /// Makes them.
    pub(super) fn create() -> Result<Self, InversionError> {
        remove_abandoned();
        let name = |side| format!("{PREFIX}{side}-{}", process::id());
        // Whatever fails, what was made before is removed with this.
        let both = Self {
            client: name("client"),
            server: name("server"),
        };
        let (client, server) = (both.client.as_str(), both.server.as_str());
        ip(&["netns", "add", client])?;
        ip(&["netns", "add", server])?;
        let pair = ["type", "veth", "peer", "name", DEVICE, "netns", server];
        ip(&[&["-n", client, "link", "add", DEVICE][..], &pair].concat())?;
        for (side, address) in [(client, CLIENT), (server, SERVER)] {
            let address = format!("{address}/30");
            ip(&["-n", side, "address", "add", &address, "dev", DEVICE])?;
            ip(&["-n", side, "link", "set", DEVICE, "up"])?;
            ip(&["-n", side, "link", "set", "lo", "up"])?;
        }
        Ok(both)
    }

    /// To run a program beside the client.
    pub(super) fn by_client(&self, program: &OsStr) -> Command {
        within(&self.client, program)
    }

    /// To run a program beside the server.
    pub(super) fn by_server(&self, program: &OsStr) -> Command {
        within(&self.server, program)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // The pair of devices goes with either of them. Where one was not made there is none to remove.
        for name in [&self.client, &self.server] {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// Removes what processes left that were killed before they could do it. What cannot be removed does no harm.
fn remove_abandoned() {
    let names = fs::read_dir(NAMES).into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        if owner(&name).is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

/// The process that a namespace is named after, where it is one of ours.
fn owner(name: &str) -> Option<u32> {
    let (_, process) = name.strip_prefix(PREFIX)?.split_once('-')?;
    process.parse().ok()
}

/// `ip netns exec` becomes the program, so that the process is the program's own.
fn within(namespace: &str, program: &OsStr) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

fn ip(arguments: &[&str]) -> Result<(), InversionError> {
    let failed = |reason: String| InversionError::Namespaces {
        command: format!("ip {}", arguments.join(" ")),
        reason,
    };
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}

/// Where the server listens.
pub(super) const SERVER: &str = "10.78.0.2";
const CLIENT: &str = "10.78.0.1";
const PREFIX: &str = "chronorb-";
/// Where `ip` keeps the names of namespaces.
const NAMES: &str = "/run/netns";
/// Each namespace has one of this name.
const DEVICE: &str = "veth0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        assert_eq!(owner("chronorb-client-4711"), Some(4711));
        for other in ["other", "chronorb-4711", "chronorb-client-x"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn what_fails_is_said_with_what_it_needs() {
        let error = ip(&["netns", "no-such-command"]).unwrap_err().to_string();
        for part in ["ip netns no-such-command", "root", "--namespaces"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
