//! Maps, programs and links of the kernel, bpf(2). All of them are freed with their process.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::bpf::extended::EbpfInstruction;

/// A table that is shared between programs and processes.
#[derive(Debug)]
pub(crate) struct Map(OwnedFd);

impl Map {
    /// Creates a map from numbers below `len` to AF_XDP sockets. It is initially empty.
    ///
    /// # Errors
    /// The system's error; `PermissionDenied` without `CAP_NET_ADMIN` and `CAP_BPF`.
    pub(crate) fn of_sockets(len: u32) -> io::Result<Self> {
        Self::create(XSKMAP, 4, len, c"chronorb_xsk")
    }

    /// Creates a map from numbers below `len` to counters, initially 0.
    ///
    /// # Errors
    /// As for [`of_sockets`](Self::of_sockets).
    pub(crate) fn of_counters(len: u32) -> io::Result<Self> {
        Self::create(ARRAY, 8, len, c"chronorb_count")
    }

    fn create(kind: u32, value: u32, len: u32, name: &CStr) -> io::Result<Self> {
        let attributes = CreateMap {
            kind,
            key_size: 4,
            value_size: value,
            max_entries: len,
            flags: 0,
            inner: 0,
            node: 0,
            name: object_name(name),
        };
        // SAFETY: there are no pointers in the attributes.
        unsafe { bpf(MAP_CREATE, &attributes) }.map(|map| Self(descriptor(map)))
    }

    /// Puts a socket into a map of sockets.
    ///
    /// # Errors
    /// The system's error, for example if the socket is not bound.
    pub(crate) fn set_socket(&self, number: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut socket = socket.as_raw_fd();
        self.element(MAP_UPDATE, number, (&raw mut socket).cast())
    }

    /// Removes the socket at a number.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub(crate) fn remove_socket(&self, number: u32) -> io::Result<()> {
        self.element(MAP_DELETE, number, std::ptr::null_mut())
    }

    /// Returns a counter of a map of counters.
    ///
    /// # Errors
    /// `NotFound` if there is no such counter.
    pub(crate) fn count(&self, number: u32) -> io::Result<u64> {
        let mut count = 0_u64;
        self.element(MAP_LOOKUP, number, (&raw mut count).cast())?;
        Ok(count)
    }

    /// Returns the descriptor for use in programs.
    pub(crate) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Performs an operation on one element. `value` is null, or points to as many bytes as the
    /// values of this map have.
    fn element(&self, command: i32, key: u32, value: *mut u8) -> io::Result<()> {
        let attributes = Element {
            map: self.0.as_raw_fd(),
            unused: 0,
            key: (&raw const key).addr() as u64,
            value: value.addr() as u64,
            flags: 0,
        };
        // SAFETY: the key is alive and has the size that all maps here use. The callers above know
        // the kind of their map and pass a value of its size. The kernel refuses sockets for
        // another kind of map, and counters have the largest values.
        unsafe { bpf(command, &attributes) }?;
        Ok(())
    }
}

/// A program that the kernel has verified.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl Program {
    /// Loads a program for interfaces, with support for packets in several pieces.
    ///
    /// # Errors
    /// [`LoadError`], with the output of the kernel's verifier.
    pub(crate) fn xdp(instructions: &[EbpfInstruction]) -> Result<Self, LoadError> {
        let loaded = load(instructions, &mut []);
        let source = match loaded {
            Ok(program) => return Ok(program),
            Err(source) => source,
        };
        // A second attempt, with a log of the reason.
        let mut log = vec![0; LOG_LEN];
        match load(instructions, &mut log) {
            Ok(program) => Ok(program),
            Err(_) => Err(LoadError {
                source,
                log: text(&log),
            }),
        }
    }

    /// Runs the program on a packet without an interface, and returns its result.
    ///
    /// # Errors
    /// The system's error; `InvalidInput` for a packet shorter than an Ethernet header.
    #[cfg(test)]
    pub(crate) fn run(&self, packet: &[u8]) -> io::Result<u32> {
        let mut attributes = TestRun {
            program: self.0.as_raw_fd(),
            data_len: packet.len() as u32,
            data: packet.as_ptr().addr() as u64,
            ..TestRun::default()
        };
        // SAFETY: the packet is alive and has the given length. The kernel writes its answer only
        // to the attributes.
        unsafe { system_call(TEST_RUN, &raw mut attributes) }?;
        Ok(attributes.result)
    }
}

/// The error of a program that was not loaded.
#[derive(Debug)]
pub(crate) struct LoadError {
    /// The error of the system call.
    pub source: io::Error,
    /// The output of the verifier; empty if it was not requested.
    pub log: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel refuses the program: {}", self.source)?;
        match self.log.trim_end() {
            "" => Ok(()),
            log => write!(f, "; its verifier says:\n{log}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// The hook at which an interface runs a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Attachment {
    /// The interface's driver, before any other processing of a packet.
    Native,
    /// The kernel's network stack, for interfaces of any kind.
    Generic,
}

/// A program attached to an interface. It is detached on drop.
#[derive(Debug)]
pub(crate) struct ProgramLink(OwnedFd);

impl ProgramLink {
    /// Attaches a program to the interface with this index.
    ///
    /// # Errors
    /// The system's error; `ResourceBusy` if the interface runs another program.
    pub(crate) fn new(program: &Program, interface: u32, how: Attachment) -> io::Result<Self> {
        let attributes = CreateLink {
            program: program.0.as_raw_fd(),
            interface,
            kind: XDP_ATTACH,
            flags: match how {
                Attachment::Native => XDP_FLAGS_DRV_MODE,
                Attachment::Generic => XDP_FLAGS_SKB_MODE,
            },
        };
        // SAFETY: there are no pointers in the attributes.
        unsafe { bpf(LINK_CREATE, &attributes) }.map(|link| Self(descriptor(link)))
    }

    /// Atomically replaces the program, between two packets.
    ///
    /// # Errors
    /// The system's error; the former program stays attached then.
    pub(crate) fn replace(&self, program: &Program) -> io::Result<()> {
        let attributes = UpdateLink {
            link: self.0.as_raw_fd(),
            program: program.0.as_raw_fd(),
            flags: 0,
            old: 0,
        };
        // SAFETY: there are no pointers in the attributes.
        unsafe { bpf(LINK_UPDATE, &attributes) }?;
        Ok(())
    }
}

/// Loads a program. The verifier writes to `log` unless it is empty.
fn load(instructions: &[EbpfInstruction], log: &mut [u8]) -> io::Result<Program> {
    let attributes = LoadProgram {
        kind: PROGRAM_XDP,
        len: instructions.len() as u32,
        instructions: instructions.as_ptr().addr() as u64,
        license: LICENSE.as_ptr().addr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_len: log.len() as u32,
        log: match log {
            [] => 0,
            log => log.as_mut_ptr().addr() as u64,
        },
        version: 0,
        flags: XDP_HAS_FRAGS,
        name: object_name(c"chronorb"),
        interface: 0,
        attach: XDP_ATTACH,
    };
    loop {
        // SAFETY: the instructions, the licence and the log are alive and have the given lengths.
        match unsafe { bpf(PROGRAM_LOAD, &attributes) } {
            // The verifier was interrupted by a signal.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
            Ok(program) => return Ok(Program(descriptor(program))),
        }
    }
}

fn text(log: &[u8]) -> String {
    let log = CStr::from_bytes_until_nul(log).unwrap_or_default();
    log.to_string_lossy().into_owned()
}

/// Calls bpf(2) with attributes that the command only reads.
///
/// # Safety
/// Addresses in the attributes refer to memory that is alive and as large as the command expects.
unsafe fn bpf<T>(command: i32, attributes: &T) -> io::Result<i32> {
    let attributes = (&raw const *attributes).cast_mut();
    // SAFETY: the caller guarantees the addresses. No command in use here writes to the attributes.
    unsafe { system_call(command, attributes) }
}

/// Calls bpf(2).
///
/// # Safety
/// As for [`bpf`]; the attributes are writable if the command writes to them.
unsafe fn system_call<T>(command: i32, attributes: *mut T) -> io::Result<i32> {
    // SAFETY: the caller guarantees the attributes, whose length is given.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    match i32::try_from(result) {
        Ok(result @ 0..) => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn descriptor(number: i32) -> OwnedFd {
    // SAFETY: the kernel has just opened it for the caller, and it has no other owner.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn object_name(name: &CStr) -> [u8; NAME_LEN] {
    let mut octets = [0; NAME_LEN];
    for (to, from) in octets.iter_mut().zip(name.to_bytes()) {
        *to = *from;
    }
    octets[NAME_LEN - 1] = 0;
    octets
}

// The parts in use of `union bpf_attr` of <linux/bpf.h>.

#[repr(C)]
struct CreateMap {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; NAME_LEN],
}

#[repr(C)]
struct Element {
    map: i32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct LoadProgram {
    kind: u32,
    len: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_len: u32,
    log: u64,
    version: u32,
    flags: u32,
    name: [u8; NAME_LEN],
    interface: u32,
    attach: u32,
}

#[cfg(test)]
#[derive(Default)]
#[repr(C)]
struct TestRun {
    program: i32,
    result: u32,
    data_len: u32,
    out_len: u32,
    data: u64,
    out: u64,
    repeat: u32,
    duration: u32,
    context_len: u32,
    context_out_len: u32,
    context: u64,
    context_out: u64,
}

#[repr(C)]
struct CreateLink {
    program: i32,
    interface: u32,
    kind: u32,
    flags: u32,
}

#[repr(C)]
struct UpdateLink {
    link: i32,
    program: i32,
    flags: u32,
    old: u32,
}

const NAME_LEN: usize = 16;
/// The licence of programs. GPL-only functions of the kernel are not used.
const LICENSE: &CStr = c"MIT OR Apache-2.0";
/// The length of the verifier's log. The verifier keeps the end of a longer one.
const LOG_LEN: usize = 256 << 10;

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
#[cfg(test)]
const TEST_RUN: i32 = 10;
const LINK_CREATE: i32 = 28;
const LINK_UPDATE: i32 = 29;
const ARRAY: u32 = 2;
const XSKMAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const XDP_ATTACH: u32 = 37;
const XDP_HAS_FRAGS: u32 = 1 << 5;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
