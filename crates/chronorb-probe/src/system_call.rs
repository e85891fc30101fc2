//! System calls by number and by name.

use libc::c_long;

/// The name of the system call with this number on this machine, as `futex`; of one that is not
/// listed here its number, as `syscall_999`.
#[must_use]
pub fn system_call_name(number: u64) -> String {
    let mut all = COMMON.iter().chain(OF_THIS_MACHINE);
    let found = all.find(|(known, _)| u64::try_from(*known) == Ok(number));
    match found {
        Some((_, constant)) => constant.trim_start_matches("SYS_").to_owned(),
        None => format!("syscall_{number}"),
    }
}

/// Whether the system call returns how many octets it moved to or from a descriptor.
pub(crate) fn moves_octets(number: u64) -> bool {
    MOVERS
        .iter()
        .any(|known| u64::try_from(*known) == Ok(number))
}

macro_rules! constants {
    ($($constant:ident)*) => { &[$((libc::$constant, stringify!($constant))),*] };
}

const MOVERS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The calls that an ORB, its allocator or its threads may use, and that both architectures have.
const COMMON: &[(c_long, &str)] = constants! {
    SYS_accept4 SYS_bind SYS_brk SYS_clock_gettime SYS_clock_nanosleep SYS_clone SYS_clone3
    SYS_close SYS_connect SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2
    SYS_eventfd2 SYS_exit SYS_exit_group SYS_fcntl SYS_futex SYS_getpid SYS_getrandom SYS_getrusage
    SYS_getsockname SYS_getsockopt SYS_gettid SYS_io_uring_enter SYS_io_uring_register
    SYS_io_uring_setup SYS_ioctl SYS_listen SYS_madvise SYS_membarrier SYS_mlock SYS_mlockall
    SYS_mmap SYS_mprotect SYS_mremap SYS_munmap SYS_nanosleep SYS_openat SYS_ppoll SYS_prctl
    SYS_pselect6 SYS_read SYS_readv SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_restart_syscall
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sched_getaffinity SYS_sched_getparam
    SYS_sched_getscheduler SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_yield SYS_sendmmsg
    SYS_timerfd_settime
    SYS_sendmsg SYS_sendto SYS_set_robust_list SYS_setsockopt SYS_shutdown SYS_sigaltstack
    SYS_socket SYS_statx SYS_tgkill SYS_write SYS_writev
};

#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[(c_long, &str)] =
    constants! { SYS_epoll_wait SYS_open SYS_poll SYS_select SYS_stat };
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: &[(c_long, &str)] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_and_strange_ones_are_numbered() {
        assert_eq!(system_call_name(libc::SYS_sendto as u64), "sendto");
        assert_eq!(
            system_call_name(libc::SYS_epoll_pwait2 as u64),
            "epoll_pwait2"
        );
        assert_eq!(system_call_name(99_999), "syscall_99999");
    }
}
