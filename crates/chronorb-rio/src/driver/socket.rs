//! Socket operations that the standard library lacks.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, sock_filter, sock_fprog, socklen_t};

use super::DriverError;
use crate::bpf::classic::Instruction;

/// Creates a non-blocking socket that is closed on `exec`.
pub(super) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call has no pointers.
    let socket = unsafe { libc::socket(domain, kind, protocol) };
    done(socket)?;
    // SAFETY: the call succeeded, so the descriptor is open, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Sets an option that has a number as its value.
pub(super) fn set_number(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: c_int,
) -> io::Result<()> {
    // SAFETY: any number is a valid value of such an option.
    unsafe { set_option(socket, level, option, &value) }
}

/// Sets an option.
///
/// # Safety
/// The kernel expects a `T` for this option, and memory that its pointers refer to is alive.
pub(super) unsafe fn set_option<T>(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    let (value, len) = ((&raw const *value).cast::<c_void>(), size_of::<T>());
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is alive and has the given size.
    done(unsafe { libc::setsockopt(socket, level, option, value, len as socklen_t) })
}

/// Returns the value of an option.
///
/// # Safety
/// The kernel writes a `T` for this option.
pub(super) unsafe fn option<T: Default>(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
) -> io::Result<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as socklen_t;
    let place = (&raw mut value).cast::<c_void>();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `place` is writable and has the given size.
    done(unsafe { libc::getsockopt(socket, level, option, place, &raw mut len) })?;
    Ok(value)
}

/// Returns the socket's pending error, if there is one, and clears it.
pub(super) fn take_error(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: the option is a number.
    match unsafe { option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR) }? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Attaches a filter to the socket, instead of a former one. The kernel applies it to each packet.
pub(super) fn attach_filter(socket: impl AsFd, program: &[Instruction]) -> io::Result<()> {
    let program = sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        // `Instruction` has the layout of `sock_filter`.
        filter: program.as_ptr().cast::<sock_filter>().cast_mut(),
    };
    // SAFETY: the option is a `sock_fprog`, which the kernel copies and does not write to.
    unsafe { set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program) }
}

/// Returns whether an interface with this index exists in the socket's namespace, after pending
/// changes of interfaces are complete.
///
/// The removal of an interface first takes it down, and only that is signalled to sockets. A check
/// between the two steps that did not wait would miss the removal.
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
    // The kernel answers this request under its lock for changes of interfaces, so the call waits
    // for them. The answer itself is irrelevant.
    let mut question: [u32; 2] = [ETHTOOL_GGRO, 0];
    request.ifr_ifru.ifru_data = (&raw mut question).cast();
    // SAFETY: the request holds the name of an interface and a buffer for the answer; both are
    // alive.
    let asked = done(unsafe { libc::ioctl(socket, libc::SIOCETHTOOL as _, &raw mut request) });
    !asked.is_err_and(|error| error.raw_os_error() == Some(libc::ENODEV))
}

/// The request whether packets are merged (`linux/ethtool.h`).
const ETHTOOL_GGRO: u32 = 0x2b;

/// Converts an error of a system call, which is either a missing capability or something else.
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

/// Converts the result of a system call that returns a negative number on failure.
pub(super) fn done(result: c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
