//! What drivers ask of sockets beyond what the standard library does.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, sock_filter, sock_fprog, socklen_t};

use super::DriverError;
use crate::bpf::classic::Instruction;

/// A new socket, which never waits and is closed on `exec`.
pub(super) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call has no pointers.
    let socket = unsafe { libc::socket(domain, kind, protocol) };
    done(socket)?;
    // SAFETY: the call succeeded, so that the descriptor is open, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Sets an option whose value is a number.
pub(super) fn set_number(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: c_int,
) -> io::Result<()> {
    // SAFETY: any number may be the value of a number.
    unsafe { set_option(socket, level, option, &value) }
}

/// Sets an option.
///
/// # Safety
/// The kernel takes a `T` for this option, and what pointers in it point to is alive.
pub(super) unsafe fn set_option<T>(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    let (value, len) = ((&raw const *value).cast::<c_void>(), size_of::<T>());
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is alive and of the size given.
    done(unsafe { libc::setsockopt(socket, level, option, value, len as socklen_t) })
}

/// What an option is.
///
/// # Safety
/// The kernel gives a `T` for this option.
pub(super) unsafe fn option<T: Default>(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
) -> io::Result<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as socklen_t;
    let place = (&raw mut value).cast::<c_void>();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `place` is writable and of the size given.
    done(unsafe { libc::getsockopt(socket, level, option, place, &raw mut len) })?;
    Ok(value)
}

/// The error that has come up at a socket since it was last asked, if any.
pub(super) fn take_error(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: the option is a number.
    match unsafe { option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR) }? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Has the kernel put each packet to this filter first, in the place of the one before.
pub(super) fn attach_filter(socket: impl AsFd, program: &[Instruction]) -> io::Result<()> {
    let program = sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        // An instruction is laid out as one of these.
        filter: program.as_ptr().cast::<sock_filter>().cast_mut(),
    };
    // SAFETY: the option is such a program, which the kernel copies and does not write to.
    unsafe { set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program) }
}

/// Whether there is an interface of this number where the socket is, once whoever is changing
/// interfaces has done so.
///
/// An interface that is removed goes down first, and sockets are told of that alone: who asked in
/// between, and did not wait, would never know.
pub(super) fn interface_exists(socket: impl AsFd, index: u32) -> bool {
    // SAFETY: all of its fields may be zero.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = index.cast_signed();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the request is alive, and of the type that this call takes.
    let named = done(unsafe { libc::ioctl(socket, libc::SIOCGIFNAME as _, &raw mut request) });
    if named.is_err() {
        return false;
    }
    // The kernel answers this one only when it is not changing interfaces. What it answers does not
    // matter.
    let mut question: [u32; 2] = [ETHTOOL_GGRO, 0];
    request.ifr_ifru.ifru_data = (&raw mut question).cast();
    // SAFETY: the request has the name of an interface, and room for the answer; both are alive.
    let asked = done(unsafe { libc::ioctl(socket, libc::SIOCETHTOOL as _, &raw mut request) });
    !asked.is_err_and(|error| error.raw_os_error() == Some(libc::ENODEV))
}

/// Asks whether packets are merged (`linux/ethtool.h`).
const ETHTOOL_GGRO: u32 = 0x2b;

/// An error, or that what was to be done needs a capability.
pub(super) fn failed(
    what: &'static str,
    capability: &'static str,
) -> impl FnOnce(io::Error) -> DriverError {
    move |source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => DriverError::Denied { what, capability },
        Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ENOPROTOOPT | libc::EOPNOTSUPP) => {
            DriverError::Unsupported { what, source }
        }
        _ => DriverError::Failed { what, source },
    }
}

/// What a system call that returns a negative number where it fails has returned.
pub(super) fn done(result: c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
