//! Whether packets can be taken from network interfaces here.

#![allow(unsafe_code, reason = "bpf(2) has no safe wrapper elsewhere")]

use std::mem::size_of;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// What the process may do with the packets of network interfaces, found by trying.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketRights {
    /// Sockets that get whole packets (`AF_PACKET`), with `CAP_NET_RAW`.
    pub packet_socket: PacketAccess,
    /// Sockets whose packets pass the kernel by (`AF_XDP`), with `CAP_NET_RAW`.
    pub xdp_socket: PacketAccess,
    /// Programs that tell packets apart as they come in (XDP), with `CAP_NET_ADMIN` and `CAP_BPF`.
    pub xdp_program: PacketAccess,
}

/// Whether the kernel lets the process do it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PacketAccess {
    /// It does.
    Granted,
    /// The process has no right to it.
    Denied,
    /// The kernel cannot do it, or says so, with this error number of Linux.
    Absent(i32),
}

impl PacketRights {
    /// Tries what the process may do. No interface is touched, and nothing stays open.
    #[must_use]
    pub fn probe() -> Self {
        let raw = |family| {
            let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None);
            PacketAccess::of(socket)
        };
        Self {
            packet_socket: raw(AddressFamily::PACKET),
            xdp_socket: raw(AddressFamily::XDP),
            xdp_program: PacketAccess::of(load_passing()),
        }
    }
}

impl PacketAccess {
    fn of(tried: Result<OwnedFd, Errno>) -> Self {
        match tried {
            Ok(_) => Self::Granted,
            Err(Errno::PERM | Errno::ACCESS) => Self::Denied,
            Err(other) => Self::Absent(other.raw_os_error()),
        }
    }
}

/// Loads a program for XDP that lets every packet pass, for no interface.
fn load_passing() -> Result<OwnedFd, Errno> {
    // `r0 = XDP_PASS; exit`, each in the kernel's eight octets.
    let mut instructions: [[u8; 8]; 2] = [
        [0xb7, 0, 0, 0, XDP_PASS, 0, 0, 0],
        [0x95, 0, 0, 0, 0, 0, 0, 0],
    ];
    if cfg!(target_endian = "big") {
        instructions[0][4..].reverse();
    }
    let attributes = LoadAttributes {
        program_type: BPF_PROG_TYPE_XDP,
        instruction_count: 2,
        instructions: instructions.as_ptr() as u64,
        licence: c"Dual MIT/GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
    };
    // SAFETY: the attributes, and what they point at, are alive, and as long as they say.
    let loaded = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const attributes,
            size_of::<LoadAttributes>(),
        )
    };
    if loaded < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    // SAFETY: the kernel has just given it out, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(loaded as i32) })
}

/// What bpf(2) reads of `union bpf_attr` to load a program.
#[repr(C)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TYPE_XDP: u32 = 6;
const XDP_PASS: u8 = 2;

#[cfg(test)]
mod tests {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    #[test]
    fn a_process_without_the_capabilities_is_denied_each_of_them() {
        // Capabilities are those of a thread, and this one ends.
        let probed = std::thread::spawn(|| {
            let mut sets = capabilities(None).expect("it has some, or none");
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).expect("anybody may have fewer");
            PacketRights::probe()
        });
        let rights = probed.join().expect("it ends");
        for access in [rights.packet_socket, rights.xdp_socket, rights.xdp_program] {
            assert_ne!(access, PacketAccess::Granted, "{rights:?}");
        }
    }
}
