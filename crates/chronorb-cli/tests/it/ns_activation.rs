//! `chronorb ns serve` with sockets that its parent has opened, as systemd does.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{chronorb, stderr};

/// The sockets that a parent passes, with their endpoints and the references of the root context.
struct Sockets {
    ipv4: TcpListener,
    ipv6: TcpListener,
    unix: UnixListener,
    endpoints: [String; 3],
    roots: [String; 3],
}

impl Sockets {
    fn open(folder: &Path) -> Self {
        let ipv4 = TcpListener::bind("127.0.0.1:0").expect("a port");
        let ipv6 = TcpListener::bind("[::1]:0").expect("a port");
        let path = folder.join("socket");
        let unix = UnixListener::bind(&path).expect("a socket");
        let hosts = [&ipv4, &ipv6].map(|socket| socket.local_addr().expect("it is bound"));
        let path = path.display();
        Self {
            endpoints: [
                format!("iiop://{}", hosts[0]),
                format!("iiop://{}", hosts[1]),
                format!("uiop://{path}"),
            ],
            roots: [
                format!("corbaloc::{}/NameService", hosts[0]),
                format!("corbaloc::{}/NameService", hosts[1]),
                format!("corbaloc:uiop:1.2@{path}|/NameService"),
            ],
            ipv4,
            ipv6,
            unix,
        }
    }

    /// Starts a name server at these endpoints, with the sockets as descriptors 3 to 5, and
    /// `LISTEN_PID` as a shell gives it.
    fn start(&self, pid: &str) -> Child {
        let [first, second, third] = &self.endpoints;
        let script = format!(
            "export LISTEN_FDS=3 LISTEN_PID={pid}; \
             exec \"$0\" \"$@\" 3<&0 4<&1 5<&2 0</dev/null 1>/dev/null 2>/dev/null"
        );
        Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_chronorb"), "ns", "serve"])
            .args(["--listen", first, "--listen", second, "--listen", third])
            .stdin(copy(self.ipv4.try_clone().map(OwnedFd::from)))
            .stdout(copy(self.ipv6.try_clone().map(OwnedFd::from)))
            .stderr(copy(self.unix.try_clone().map(OwnedFd::from)))
            .spawn()
            .expect("a shell")
    }
}

fn copy(socket: std::io::Result<OwnedFd>) -> Stdio {
    socket.expect("a descriptor is left").into()
}

#[test]
fn endpoints_take_over_the_sockets_of_the_parent() {
    let folder = tempfile::tempdir().expect("a directory");
    let sockets = Sockets::open(folder.path());
    let mut server = sockets.start("$$");
    // Clients wait in the backlog of the socket until the server accepts.
    for (number, root) in sockets.roots.iter().enumerate() {
        let context = format!("c{number}");
        let made = chronorb(Path::new("."), &["ns", "mkdir", &context, "--ns", root]);
        assert_eq!(made.status.code(), Some(0), "{root}: {}", stderr(&made));
    }
    // The children of the server would not inherit them.
    for fd in 3..=5 {
        let information = format!("/proc/{}/fdinfo/{fd}", server.id());
        let information = fs::read_to_string(information).expect("the descriptor is open");
        let flags = information
            .lines()
            .find_map(|line| line.strip_prefix("flags:"));
        let flags = i64::from_str_radix(flags.expect("flags").trim(), 8).expect("octal digits");
        assert_ne!(flags & O_CLOEXEC, 0, "{information}");
    }
    server.kill().expect("it runs");
    server.wait().expect("it has ended");
    assert!(
        folder.path().join("socket").exists(),
        "the file is the parent's"
    );
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let folder = tempfile::tempdir().expect("a directory");
    let sockets = Sockets::open(folder.path());
    let status = sockets.start("1").wait().expect("it has ended");
    // The address is in use.
    assert_eq!(status.code(), Some(1));
}

/// `O_CLOEXEC` of Linux on most processors.
const O_CLOEXEC: i64 = 0o2_000_000;
