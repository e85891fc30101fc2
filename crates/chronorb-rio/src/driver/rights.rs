//! A probe of the rights to access packets of network interfaces.

use std::io;

use super::bpf::Program;
use super::socket::socket;
use crate::bpf::classifier::XDP_PASS;
use crate::bpf::extended::{Alu, EbpfCode, EbpfOp, Register, Width};

/// The rights of the process to packets of network interfaces, determined by trying.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketRights {
    /// Sockets that receive whole packets (`AF_PACKET`), with `CAP_NET_RAW`.
    pub packet_socket: PacketAccess,
    /// Sockets that bypass the kernel's network stack (`AF_XDP`), with `CAP_NET_RAW`.
    pub xdp_socket: PacketAccess,
    /// Programs that classify packets on arrival (XDP), with `CAP_NET_ADMIN` and `CAP_BPF`.
    pub xdp_program: PacketAccess,
}

/// The result of one probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PacketAccess {
    /// The operation succeeded.
    Granted,
    /// The process lacks the right.
    Denied,
    /// The kernel does not support this access, or failed with this error number.
    Absent(i32),
}

impl PacketRights {
    /// Probes the rights. Affects no interface and leaves nothing open.
    #[must_use]
    pub fn probe() -> Self {
        let raw = |family| PacketAccess::of(socket(family, libc::SOCK_RAW, 0));
        Self {
            packet_socket: raw(libc::AF_PACKET),
            xdp_socket: raw(libc::AF_XDP),
            xdp_program: PacketAccess::of(load_passing()),
        }
    }
}

impl PacketAccess {
    fn of<T>(tried: io::Result<T>) -> Self {
        match tried.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)) {
            Ok(_) => Self::Granted,
            Err(libc::EPERM | libc::EACCES) => Self::Denied,
            Err(other) => Self::Absent(other),
        }
    }
}

/// Loads an XDP program that passes every packet, without attaching it.
fn load_passing() -> io::Result<Program> {
    let pass = EbpfOp::Alu(Alu::Move, Width::Half, Register::R0, XDP_PASS.into());
    let mut code = EbpfCode::default();
    code.extend([pass, EbpfOp::Exit]);
    let program = code.assemble().map_err(io::Error::other)?;
    Program::xdp(&program).map_err(|error| error.source)
}

#[cfg(test)]
mod tests {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    #[test]
    fn a_process_without_the_capabilities_is_denied_each_of_them() {
        // Capabilities belong to a thread, and this thread ends.
        let probed = std::thread::spawn(|| {
            let mut sets = capabilities(None).expect("it has some, or none");
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).expect("any thread may drop capabilities");
            PacketRights::probe()
        });
        let rights = probed.join().expect("it ends");
        for access in [rights.packet_socket, rights.xdp_socket, rights.xdp_program] {
            assert_ne!(access, PacketAccess::Granted, "{rights:?}");
        }
    }
}
