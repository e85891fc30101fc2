//! omniORB's references to its Unix-domain sockets, and references for it.

use std::fs;
use std::sync::OnceLock;

use chronorb_giop::{OmniOrbUnixAddress, TAG_OMNIORB_UNIX_TRANS};
use chronorb_transport::Address;

use super::Components;

/// In the profile of IIOP, beside this ORB's own profile of UIOP.
pub(super) const UNIX: Components = Components {
    write: |addresses, _| {
        let Some(host) = host() else {
            return Ok(Vec::new());
        };
        // Names that are no files are unknown to omniORB.
        let paths = addresses.iter().filter_map(Address::as_path);
        let files = paths.filter(|path| path.starts_with('/'));
        let component = |path: &str| {
            let address = OmniOrbUnixAddress {
                host: host.to_owned(),
                path: path.to_owned(),
            };
            address.tagged()
        };
        files.map(component).collect()
    },
    read: |components, _| {
        let told = components
            .iter()
            .filter(|component| component.tag == TAG_OMNIORB_UNIX_TRANS)
            .filter_map(|component| OmniOrbUnixAddress::decode(&component.data).ok());
        let here = told.filter(|told| Some(told.host.as_str()) == host());
        here.map(|told| Address::Path(told.path)).collect()
    },
    lanes: None,
};

/// The name of this machine, as `gethostname` gives it.
fn host() -> Option<&'static str> {
    static HOST: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned())
    };
    HOST.get_or_init(read).as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_this_machine_are_told_and_found_again() {
        let file = Address::Path("/run/radar".to_owned());
        let addresses = [file.clone(), Address::Path("@radar".to_owned())];
        let mut told = (UNIX.write)(&addresses, crate::protocol::Plain::Open).expect("they fit");
        assert_eq!((UNIX.read)(&told, "any"), [file]);
        let elsewhere = OmniOrbUnixAddress {
            host: "no.such.host".to_owned(),
            path: "/run/radar".to_owned(),
        };
        told[0] = elsewhere.tagged().expect("it fits");
        assert_eq!((UNIX.read)(&told, "any"), []);
    }
}
