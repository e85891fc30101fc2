//! The kernel threads that receive the packets of an interface, instead of soft interrupts.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use chronorb_rt::{Scheduling, set_scheduling_of_process};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Restores the setting of an interface, if that still exists.
pub(crate) fn restore_threaded(interface: &str, index: u32, was: u8) -> io::Result<()> {
    match read_threaded(interface, index) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(now) if now == was => Ok(()),
        read => read.and_then(|_| write_threaded(interface, index, was)),
    }
}

/// Restores the scheduling of a thread, if that still exists.
pub(crate) fn restore_scheduling(process: u32, scheduling: Scheduling) -> io::Result<()> {
    match fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(name) if name.starts_with(PREFIX) => {
            set_scheduling_of_process(process, scheduling).map_err(io::Error::other)
        }
        _ => Ok(()),
    }
}

/// The numbers and names of the threads of the kernel that take in packets of interfaces of this
/// name.
///
/// # Errors
/// `/proc` cannot be read.
pub fn napi_threads_of(interface: &str) -> io::Result<Vec<(u32, String)>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that has ended meanwhile is none.
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if is_of(name.trim_end(), interface) {
            threads.push((process, name.trim_end().to_owned()));
        }
    }
    Ok(threads)
}

/// Whether a thread takes in packets of an interface. Some kernels cut its name.
fn is_of(name: &str, interface: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    match rest.strip_prefix(interface) {
        Some("" | "-") if name.len() == CUT => true,
        Some(number) => {
            let number = number.strip_prefix('-').unwrap_or_default();
            !number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit())
        }
        None => name.len() == CUT && interface.starts_with(rest),
    }
}

/// Whether threads receive the packets of an interface of the network namespace: its setting
/// `threaded`.
///
/// # Errors
/// The system's error; `NotFound` where there is no such interface.
pub fn read_threaded(interface: &str, index: u32) -> io::Result<u8> {
    let mut text = String::new();
    open(interface, index, "threaded", OFlags::RDONLY)?.read_to_string(&mut text)?;
    text.trim()
        .parse()
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Changes the setting `threaded` of an interface of the network namespace.
///
/// # Errors
/// The system's error; `EOPNOTSUPP` where its driver has no such threads.
pub fn write_threaded(interface: &str, index: u32, value: u8) -> io::Result<()> {
    let mut file = open(interface, index, "threaded", OFlags::WRONLY)?;
    file.write_all(value.to_string().as_bytes())
}

/// Opens a file of an interface of this network namespace. `/sys` may show another namespace, so a
/// private file system is mounted.
fn open(interface: &str, index: u32, name: &str, flags: OFlags) -> io::Result<File> {
    let path = |name| format!("class/net/{interface}/{name}");
    let open = |directory: &OwnedFd, name, flags| -> io::Result<File> {
        let file = openat(
            directory,
            path(name),
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        );
        Ok(file?.into())
    };
    let is_right = |directory: &OwnedFd| {
        let mut text = String::new();
        let read = open(directory, "ifindex", OFlags::RDONLY);
        let read = read.and_then(|mut file| file.read_to_string(&mut text));
        read.is_ok() && text.trim().parse() == Ok(index)
    };
    let usual: OwnedFd = File::open("/sys")?.into();
    if is_right(&usual) {
        return open(&usual, name, flags);
    }
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let own = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    if is_right(&own) {
        open(&own, name, flags)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

const PREFIX: &str = "napi/";
/// Octets of a thread's name where it is cut.
const CUT: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_known_by_their_names() {
        assert!(is_of("napi/eth0-8193", "eth0"));
        for other in [
            "napi/eth0",
            "napi/eth0-",
            "napi/eth01-1",
            "napi/eth0-x",
            "eth0-1",
            "kworker/0:1",
        ] {
            assert!(!is_of(other, "eth0"), "{other}");
        }
        // "napi/enp0s31f6np0-8193", cut.
        assert!(is_of("napi/enp0s31f6n", "enp0s31f6np0"));
        assert!(is_of("napi/enp0s31f6-", "enp0s31f6"));
    }
}
