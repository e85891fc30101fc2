//! The trace has the octets of the connections: read by a reader of our own, and by tshark.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::tcp::Tcp;
use chronorb_transport::trace::{RecordingTransport, TraceFile, TraceLimits};
use chronorb_transport::{
    Acceptor, Connection, Interest, IoError, Reactor, Setup, Transport, parse_endpoints,
};

/// A request of `echo_string("hello")` and its reply, GIOP 1.2.
const REQUEST: &[u8] = b"GIOP\x01\x02\x01\x00\x3e\0\0\0\x04\0\0\0\x03\0\0\0\0\0\0\0\x0e\0\0\0\
    \xfe\xcb\x07\x02k\0\0\x12#\0\0\0\0\0\0\0\x0c\0\0\0echo_string\0\0\0\0\0\x06\0\0\0hello\0";
const REPLY: &[u8] = b"GIOP\x01\x02\x01\x01\x16\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\x06\0\0\0hello\0";

/// A file of the test's own, that is gone after it.
struct TracePath(PathBuf);

impl TracePath {
    fn new(name: &str) -> Self {
        let name = format!("chronorb-trace-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for TracePath {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(self.0.with_extension("1"));
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn traced(file: &Arc<TraceFile>) -> RecordingTransport {
    RecordingTransport::new(Box::new(Tcp) as Box<dyn Transport>, file.clone())
}

fn connect(
    near: &dyn Transport,
    far: &dyn Transport,
) -> (Box<dyn Connection>, Box<dyn Connection>) {
    let endpoints = parse_endpoints("iiop://127.0.0.1:0").expect("an endpoint");
    let acceptors = far.listen(&endpoints[0], Setup::default());
    let acceptor: Box<dyn Acceptor> = acceptors.expect("it listens").remove(0);
    let near = near.connect(&acceptor.published()[0], Setup::default(), soon());
    let reactor = Reactor::new().expect("a set");
    reactor.add(&acceptor, 0, Interest::Read).expect("added");
    reactor.wait(None).expect("a connection");
    let far = acceptor.accept().expect("it can be taken in");
    (near.expect("it connects"), far.expect("it is there"))
}

fn receive(connection: &dyn Connection, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    let mut filled = 0;
    while filled < len {
        filled += connection
            .recv(&mut octets[filled..], soon())
            .expect("more comes");
    }
    octets
}

/// The content of a file.
#[derive(Default)]
struct Trace {
    /// The octets sent by each end of a conversation, with the flags of all its packets.
    streams: BTreeMap<(String, String), (Vec<u8>, Vec<u8>)>,
    comments: Vec<String>,
    dropped: u64,
}

fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(octets[at..at + 4].try_into().expect("four octets"))
}

fn short(octets: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(octets[at..at + 2].try_into().expect("two octets"))
}

/// Takes the blocks of a file apart, checks their structure, and the checksums and sequence of
/// packets.
fn read(path: &Path) -> Trace {
    let file = fs::read(path).expect("it is there");
    let mut trace = Trace::default();
    let mut rest = file.as_slice();
    let mut kinds = Vec::new();
    while !rest.is_empty() {
        let (kind, len) = (word(rest, 0), word(rest, 4) as usize);
        assert_eq!(word(rest, len - 4) as usize, len, "both lengths of a block");
        let body = &rest[8..len - 4];
        match kind {
            0x0a0d_0d0a => assert_eq!(word(body, 0), 0x1a2b_3c4d),
            1 => assert_eq!(short(body, 0), 101, "raw IP"),
            5 => {
                let dropped = options(&body[12..]).remove(&5).expect("how many");
                trace.dropped = u64::from_ne_bytes(dropped.try_into().expect("eight octets"));
            }
            6 => {
                let len = word(body, 12) as usize;
                assert_eq!(word(body, 16) as usize, len, "nothing is cut");
                trace.packet(&body[20..20 + len]);
                let comment = options(&body[20 + len.next_multiple_of(4)..]).remove(&1);
                trace
                    .comments
                    .extend(comment.map(|c| String::from_utf8(c).expect("text")));
            }
            other => panic!("a block of type {other}"),
        }
        kinds.push(kind);
        rest = &rest[len..];
    }
    assert_eq!(kinds[..2], [0x0a0d_0d0a, 1]);
    trace
}

fn options(mut rest: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    let mut options = BTreeMap::new();
    while rest.len() >= 4 && short(rest, 0) != 0 {
        let len = usize::from(short(rest, 2));
        options.insert(short(rest, 0), rest[4..4 + len].to_vec());
        rest = &rest[4 + len.next_multiple_of(4)..];
    }
    options
}

fn sum(octets: &[u8]) -> u32 {
    let pairs = octets.chunks(2);
    let sum: u32 = pairs
        .map(|pair| u32::from(pair[0]) * 256 + u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    (sum & 0xffff) + (sum >> 16)
}

impl Trace {
    /// Adds a TCP segment, given as an IPv4 packet, to the streams of the trace.
    fn packet(&mut self, packet: &[u8]) {
        let (ip, tcp) = packet.split_at(20);
        assert_eq!((ip[0], ip[9]), (0x45, 6));
        assert_eq!(usize::from(ip[2]) * 256 + usize::from(ip[3]), packet.len());
        assert_eq!(sum(ip), 0xffff, "the header's checksum");
        let whole = sum(&ip[12..]) + 6 + tcp.len() as u32 + sum(tcp);
        assert_eq!(
            (whole & 0xffff) + (whole >> 16),
            0xffff,
            "the segment's checksum"
        );
        let of = |address: &[u8], port: &[u8]| {
            let port = u16::from_be_bytes(port.try_into().expect("two octets"));
            format!(
                "{}.{}.{}.{}:{port}",
                address[0], address[1], address[2], address[3]
            )
        };
        let (from, to) = (of(&ip[12..16], &tcp[..2]), of(&ip[16..20], &tcp[2..4]));
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().expect("four octets"));
        let payload = &tcp[usize::from(tcp[12] >> 4) * 4..];
        let (octets, flags) = self.streams.entry((from, to)).or_default();
        let counted = flags.iter().filter(|flags| **flags & 3 != 0).count();
        assert_eq!(
            sequence as usize,
            octets.len() + counted,
            "nothing is left out"
        );
        octets.extend_from_slice(payload);
        flags.push(tcp[13]);
    }

    fn stream(&self, from: &str) -> &(Vec<u8>, Vec<u8>) {
        let mut streams = self.streams.iter();
        let found = streams.find(|((sender, _), _)| sender == from);
        found.unwrap_or_else(|| panic!("nothing of {from}")).1
    }
}

#[test]
fn a_connection_is_a_conversation_from_its_handshake_to_its_end() {
    let path = TracePath::new("conversation");
    let file = TraceFile::create(&path.0, TraceLimits::default()).expect("a file");
    let (near, far) = connect(&traced(&file), &Tcp);
    let great: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    near.send_both(REQUEST, &great, soon())
        .expect("it is taken");
    receive(&*far, REQUEST.len() + great.len());
    far.send_all(REPLY, soon()).expect("it is taken");
    receive(&*near, REPLY.len());
    let (server, client) = (near.peer(), far.peer());
    drop(far);
    assert_eq!(near.recv(&mut [0; 1], soon()), Err(IoError::Ended));
    drop(near);
    assert_eq!(file.counts().dropped, 0);
    drop(file);

    let trace = read(&path.0);
    assert_eq!(trace.dropped, 0);
    let (octets, flags) = trace.stream(&client);
    assert!(*octets == [REQUEST, &great].concat());
    assert_eq!((flags[0], flags[1]), (0x02, 0x10), "a handshake");
    assert_eq!(flags.last(), Some(&0x11), "and an end");
    let (octets, flags) = trace.stream(&server);
    assert_eq!(octets, REPLY);
    assert_eq!(flags[0], 0x12);
    assert!(flags.contains(&0x11));
    assert_eq!(trace.comments, [format!("iiop: connection to {server}")]);
}

#[test]
fn a_connection_of_which_both_ends_are_here_is_written_once() {
    let path = TracePath::new("once");
    let file = TraceFile::create(&path.0, TraceLimits::default()).expect("a file");
    let both = traced(&file);
    let (near, far) = connect(&both, &both);
    assert_eq!(far.try_send(REPLY), Ok(REPLY.len()));
    assert_eq!(receive(&*near, REPLY.len()), REPLY);
    let server = near.peer();
    drop((near, far));
    drop(both);
    drop(file);
    assert_eq!(read(&path.0).stream(&server).0, REPLY);
}

#[test]
fn a_full_file_makes_room_for_the_next_one() {
    let path = TracePath::new("rotated");
    let limits = TraceLimits {
        file: 100_000,
        ..TraceLimits::default()
    };
    let file = TraceFile::create(&path.0, limits).expect("a file");
    let (near, far) = connect(&traced(&file), &Tcp);
    for _ in 0..20 {
        near.send_all(&[1; 20_000], soon()).expect("it is taken");
        receive(&*far, 20_000);
    }
    drop((near, file));
    for path in [path.0.clone(), path.0.with_extension("1")] {
        // What waits when a file is full goes into the next one as a whole.
        let len = fs::metadata(&path).expect("it is there").len();
        assert!(
            len > 0 && len <= 500_000,
            "{len} octets in {}",
            path.display()
        );
    }
}

#[test]
fn nobody_waits_for_a_disk_that_does_not_take_anything() {
    let path = TracePath::new("stuck");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path.0,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    // A reader that never reads, so that the writer can begin.
    let mut opened = fs::OpenOptions::new();
    opened.read(true).custom_flags(libc::O_NONBLOCK);
    let reader = opened.open(&path.0).expect("the reading end");
    let limits = TraceLimits {
        buffer: 256 * 1024,
        ..TraceLimits::default()
    };
    let file = TraceFile::create(&path.0, limits).expect("a file");
    let (near, far) = connect(&traced(&file), &Tcp);
    for _ in 0..100 {
        near.send_all(&[1; 20_000], soon()).expect("it is taken");
        receive(&*far, 20_000);
    }
    let counts = file.counts();
    assert!(counts.packets > 100 && counts.dropped > 50, "{counts:?}");
    // The writer finds no reader any more, and ends.
    drop(reader);
    drop((near, file));
}

#[test]
fn tshark_finds_requests_and_replies_and_nothing_wrong() {
    let path = TracePath::new("tshark");
    let file = TraceFile::create(&path.0, TraceLimits::default()).expect("a file");
    let (near, far) = connect(&traced(&file), &Tcp);
    for _ in 0..3 {
        near.send_all(REQUEST, soon()).expect("it is taken");
        assert_eq!(receive(&*far, REQUEST.len()), REQUEST);
        far.send_all(REPLY, soon()).expect("it is taken");
        assert_eq!(receive(&*near, REPLY.len()), REPLY);
    }
    drop((near, file));
    let Some(types) = tshark(&path.0, &["-Y", "giop", "-T", "fields", "-e", "giop.type"]) else {
        return;
    };
    let types: Vec<&str> = types.split_whitespace().collect();
    assert_eq!(types, ["0", "1", "0", "1", "0", "1"]);
    let wrong = "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0 || \
        ip.checksum.status == 0";
    let checked = [
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "ip.check_checksum:TRUE",
    ];
    let found = tshark(&path.0, &[&checked[..], &["-Y", wrong]].concat());
    assert_eq!(found.as_deref(), Some(""));
}

/// Returns the output of tshark on a file; `None` if there is no tshark.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    match command.arg("-r").arg(path).args(arguments).output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{errors}");
            Some(String::from_utf8(output.stdout).expect("text"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required, but there is no tshark");
            println!("NOT RUN: there is no tshark");
            None
        }
        Err(error) => panic!("tshark: {error}"),
    }
}

#[test]
fn a_trace_is_for_its_owner_and_follows_no_link() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    fs::write(&path, "before").expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    drop(TraceFile::create(&path, TraceLimits::default()).expect("it is replaced"));
    let about = fs::metadata(&path).expect("it is there");
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("the name is free");
    let before = fs::read(&path).expect("it is there");
    let refused = TraceFile::create(&link, TraceLimits::default()).expect_err("it is a link");
    assert!(refused.to_string().contains("symbolic link"), "{refused}");
    assert_eq!(fs::read(&path).expect("it is there"), before);
}
