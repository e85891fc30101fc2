//! What the real-time I/O subsystem needs.

use std::io;

use chronorb_rio::PacketAccess;

use super::Examined;
use crate::doctor::finding::Judgement;
use crate::doctor::machine::Machine;

/// Which of the drivers of RIO can be had, found by trying.
pub(super) fn drivers(machine: &Machine) -> Examined {
    let packets = machine.packets;
    let all = [
        ("AF_XDP", packets.xdp_socket),
        ("XDP programs", packets.xdp_program),
        ("AF_PACKET", packets.packet_socket),
    ];
    let found: Vec<_> = all.map(|(what, access)| told(what, access)).into();
    let found = format!("{}, as tried", found.join(", "));
    let is_denied = all
        .iter()
        .any(|(_, access)| *access == PacketAccess::Denied);
    let has_xdp = [packets.xdp_socket, packets.xdp_program]
        .iter()
        .all(|access| *access == PacketAccess::Granted);
    Ok(match (has_xdp, packets.packet_socket) {
        (true, PacketAccess::Granted) => Judgement::good(found),
        _ if is_denied => Judgement::missing(found, RIGHTS),
        (false, PacketAccess::Granted) => {
            Judgement::costs(found, KERNEL_WITH_XDP).costing(WITHOUT_XDP)
        }
        _ => Judgement::missing(found, KERNEL),
    })
}

fn told(what: &str, access: PacketAccess) -> String {
    match access {
        PacketAccess::Granted => format!("{what}: granted"),
        PacketAccess::Denied => format!("{what}: denied"),
        PacketAccess::Absent(number) => {
            let error = io::Error::from_raw_os_error(number);
            format!("{what}: not here ({error})")
        }
    }
}

const RIGHTS: &str = "where RIO is wanted, run as root, or grant the capabilities (cap_net_raw for the driver \
                      packet, all for xdp):\n  \
                      setcap cap_net_raw,cap_net_admin,cap_bpf,cap_sys_nice,cap_ipc_lock+ep PROGRAM";
const KERNEL_WITH_XDP: &str =
    "boot a kernel with CONFIG_XDP_SOCKETS=y and CONFIG_BPF_SYSCALL=y, Linux 5.9 or newer";
const KERNEL: &str = "boot a kernel with CONFIG_PACKET=y, and for XDP with CONFIG_XDP_SOCKETS=y and \
                      CONFIG_BPF_SYSCALL=y";
const WITHOUT_XDP: &str = "RIO (riop) has the driver packet only: the kernel looks at each packet too, and copies it: \
                           some µs each";

#[cfg(test)]
mod tests {
    use PacketAccess::{Absent, Denied, Granted};

    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::doctor::fixture::Fixture;

    #[test]
    fn what_is_missing_is_a_right_or_the_kernel() {
        const NO_FAMILY: PacketAccess = Absent(97);
        for (socket, program, packet, verdict, remedy) in [
            (Granted, Granted, Granted, Verdict::Good, ""),
            (Denied, Denied, Denied, Verdict::Missing, "setcap"),
            (Granted, Denied, Granted, Verdict::Missing, "cap_bpf"),
            (
                NO_FAMILY,
                Granted,
                Granted,
                Verdict::CostsLatency,
                "XDP_SOCKETS",
            ),
            (
                NO_FAMILY,
                NO_FAMILY,
                NO_FAMILY,
                Verdict::Missing,
                "CONFIG_PACKET",
            ),
        ] {
            let mut fixture = Fixture::new(&[]);
            let packets = &mut fixture.machine.packets;
            packets.xdp_socket = socket;
            packets.xdp_program = program;
            packets.packet_socket = packet;
            let finding = fixture.finding("real-time-io");
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            let told = finding.remedy.unwrap_or_default();
            assert!(told.contains(remedy), "{told}");
        }
    }
}
