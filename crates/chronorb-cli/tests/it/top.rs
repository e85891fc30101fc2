//! `chronorb top`, as it is used.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use chronorb_orb::codegen::v1::{Decoder, bad_operation};
use chronorb_orb::rtcorba::{Lane, Priority, ThreadpoolLanes};
use chronorb_orb::{
    Call, MonitorSocket, Operation, Orb, OrbConfig, ReplyWriter, Scope, Skeleton, SystemException,
};
use chronorb_rt::Deadline;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{stderr, stdout};

/// A user's runtime directory, with the sockets that this process's ORBs would have there.
struct Runtime(TempDir);

impl Runtime {
    fn new() -> Self {
        let runtime = Self(tempfile::tempdir().expect("a directory"));
        let made = DirBuilder::new().mode(0o700).create(runtime.directory());
        made.expect("it can be made");
        runtime
    }

    fn directory(&self) -> PathBuf {
        self.0.path().join("chronorb")
    }

    fn socket(&self, number: u32) -> PathBuf {
        let name = format!("{}-{number}.sock", std::process::id());
        self.directory().join(name)
    }

    /// An ORB with a monitor and two lanes.
    fn orb(&self, number: u32, id: &str) -> TestOrb {
        let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
            .map(str::to_owned)
            .to_vec();
        let mut config = OrbConfig::read(&mut args).expect("the options are correct");
        config.orb_id = id.to_owned();
        config.monitor = MonitorSocket::At(self.socket(number));
        let orb = Orb::with_config(config).expect("it can be made");
        let lane = |value| Priority::new(value).map(|priority| Lane::new(priority, 1));
        let lanes = ThreadpoolLanes {
            lanes: [8_000, 24_000].into_iter().filter_map(lane).collect(),
            ..Default::default()
        };
        let pool = orb.rt().create_threadpool_with_lanes(&lanes);
        pool.expect("the lanes open");
        TestOrb(orb)
    }

    fn top(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chronorb"));
        command
            .arg("top")
            .args(arguments)
            .env("XDG_RUNTIME_DIR", self.0.path())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR");
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.top(arguments).output().expect("the command starts")
    }
}

struct TestOrb(Orb);

impl Drop for TestOrb {
    fn drop(&mut self) {
        let _ = self.0.shutdown(true);
    }
}

fn succeeds(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    stdout(output)
}

#[test]
fn once_prints_a_table_of_lanes_and_threads() {
    let runtime = Runtime::new();
    let _orb = runtime.orb(1, "quotes");
    let output = runtime.output(&["--once", "--interval", "100"]);
    let table = succeeds(&output);
    let lines: Vec<&str> = table.lines().collect();
    let head = format!("ORB quotes  pid {}  leader/followers", std::process::id());
    assert!(lines[0].starts_with(&head), "{table}");
    assert!(
        lines[3].starts_with("LANE") && lines[3].ends_with("MAX"),
        "{table}"
    );
    for (lane, priority) in [("1:0", " 8000/"), ("1:1", " 24000/")] {
        let is_lane = |line: &&&str| line.starts_with(lane) && line.contains(priority);
        assert_eq!(lines.iter().filter(is_lane).count(), 1, "{table}");
        let thread = format!("  {lane}.0 quotes");
        assert!(
            lines.iter().any(|line| line.starts_with(&thread)),
            "{table}"
        );
    }
    assert!(table.contains("monitor quotes"), "{table}");
    assert!(table.ends_with("\n\n"), "tables are parted");
    assert!(
        !table.contains('\x1b'),
        "no colour outside of a terminal: {table}"
    );
}

#[test]
fn json_is_one_object_for_each_interval() {
    let runtime = Runtime::new();
    let orb = runtime.orb(1, "quotes");
    let pid = std::process::id().to_string();
    let root = orb.0.root_poa().expect("the endpoint opens");
    let object = root.serve(Nothing).expect("it activates");
    root.manager().activate().expect("it was not deactivated");
    let client = Orb::init(&mut Vec::new()).expect("it can be made");
    let text = orb.0.object_to_string(&object);
    let object = client.string_to_object(&text).expect("it reads");
    let call = || {
        let done = Scope::with(|scope| {
            let operation = Operation::twoway("nothing");
            object.invoke(scope, &operation, &|_| Ok(())).map(drop)
        });
        done.expect("it is served");
    };
    call();
    let arguments = [&pid, "--json", "--count", "3", "--interval", "500"];
    let child = runtime.top(&arguments).stdout(Stdio::piped()).spawn();
    // Until the command has seen enough.
    let mut child = ChildGuard(child.expect("the command starts"));
    while child.has_not_ended() {
        call();
    }
    client.shutdown(true).expect("it ends");
    let mut text = String::new();
    let mut out = child.0.stdout.take().expect("it is piped");
    out.read_to_string(&mut text).expect("it is text");
    let objects: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(objects.len(), 3);
    for object in &objects {
        assert_eq!(object["orb_id"], "quotes");
        assert!(object["interval_ms"].as_f64() > Some(0.0), "{object}");
    }
    // A look that was late makes the interval after it short.
    let own = objects.iter().filter_map(|object| {
        let lanes = object["lanes"].as_array().expect("a list");
        lanes.iter().find(|lane| lane["name"] == "0:0")
    });
    let mut busy = own.filter(|own| own["requests_per_s"].as_f64() > Some(0.0));
    let own = busy.next().expect("the ORB's own pool is in use");
    assert!(own["p99_us"].as_f64() > Some(0.0), "{own}");
    assert!(own["p50_us"].as_f64() <= own["max_us"].as_f64(), "{own}");
}

/// An object whose operation does nothing.
struct Nothing;

impl Skeleton for Nothing {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Nothing:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        _: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"nothing" => reply.normal().map(drop),
            _ => Err(bad_operation()),
        }
    }
}

/// A child that does not outlive the test.
struct ChildGuard(Child);

impl ChildGuard {
    fn has_not_ended(&mut self) -> bool {
        let status = self.0.try_wait().expect("it is a child");
        assert!(status.is_none_or(|status| status.success()), "{status:?}");
        status.is_none()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn without_a_monitor_it_says_how_to_get_one() {
    let runtime = Runtime::new();
    // One whose process was ended by force does not count.
    drop(UnixListener::bind(runtime.directory().join("1-1.sock")).expect("it opens"));
    let own = std::process::id().to_string();
    for arguments in [&["--once"][..], &["--once", &own]] {
        let output = runtime.output(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(stdout(&output), "");
        let said = stderr(&output);
        assert!(said.contains("-ORBMonitor on"), "{said}");
        let directory = runtime.directory();
        assert!(said.contains(directory.to_str().expect("text")), "{said}");
    }
}

#[test]
fn among_several_monitors_one_has_to_be_chosen() {
    let runtime = Runtime::new();
    let _orbs = [runtime.orb(1, "quotes"), runtime.orb(2, "orders\x1b[2J")];
    for arguments in [
        &["--once"][..],
        &["--once", &std::process::id().to_string()],
    ] {
        let output = runtime.output(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = stderr(&output);
        for (number, id) in [(1, "quotes"), (2, "orders")] {
            let socket = runtime.socket(number);
            let line = said.lines().find(|line| line.contains(id));
            let line = line.unwrap_or_else(|| panic!("{id} is not listed: {said}"));
            assert!(line.contains(&*socket.to_string_lossy()), "{said}");
        }
        assert!(said.contains("For example: chronorb top "), "{said}");
        assert!(!said.contains('\x1b'), "{said:?}");
    }
    let socket = runtime.socket(2);
    let socket = socket.to_str().expect("text");
    let output = runtime.output(&[socket, "--once", "--interval", "100"]);
    assert!(succeeds(&output).starts_with("ORB orders"), "{output:?}");
}

#[test]
fn what_is_no_monitor_is_told() {
    let runtime = Runtime::new();
    let missing = runtime.directory().join("missing.sock");
    let file = runtime.directory().join("file.sock");
    fs::write(&file, "").expect("it can be written");
    for path in [&missing, &file] {
        let path = path.to_str().expect("text");
        let output = runtime.output(&[path, "--once"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains(path), "{output:?}");
    }
}

#[test]
fn a_monitor_that_says_something_else_is_not_believed() {
    for (answer, why) in [
        (&b"{\"version\":9}\n"[..], "version 9"),
        (b"hello\n", "not the answer of a monitor"),
        (b"\xff\n", "not the answer of a monitor"),
        (b"{\"version\":1,\"error\":\"busy\"}\n", "refuses: busy"),
        (b"{\"version\":1,", "closed the connection"),
    ] {
        let runtime = Runtime::new();
        let path = runtime.socket(1);
        let listener = UnixListener::bind(&path).expect("it opens");
        let monitor = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it connects");
            let mut question = [0; 9];
            stream.read_exact(&mut question).expect("it asks");
            stream.write_all(answer).expect("it listens");
            question
        });
        let output = runtime.output(&[path.to_str().expect("text"), "--once"]);
        assert_eq!(&monitor.join().expect("it does not panic"), b"snapshot\n");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains(why), "{why}: {output:?}");
    }
}

#[test]
fn an_orb_that_ends_too_early_is_a_failure_only_where_more_was_asked_for() {
    for (arguments, status) in [(&["--count", "9999"][..], 1), (&[], 0)] {
        let runtime = Runtime::new();
        let orb = runtime.orb(1, "quotes");
        let mut command = runtime.top(&[arguments, &["--interval", "100"]].concat());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("the command starts");
        let mut first = [0; 3];
        let out = child.stdout.as_mut().expect("it is piped");
        out.read_exact(&mut first).expect("there is a table");
        drop(orb);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(stderr(&output).contains("the ORB has ended"), "{output:?}");
    }
}

#[test]
fn who_reads_only_the_beginning_does_not_disturb() {
    let runtime = Runtime::new();
    let _orb = runtime.orb(1, "quotes");
    let mut command = runtime.top(&["--interval", "100"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the command starts");
    let mut first = [0; 3];
    let mut out = child.stdout.take().expect("it is piped");
    out.read_exact(&mut first).expect("there is a table");
    drop(out);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stderr(&output), "");
}

/// A terminal with the live view in it.
struct Terminal {
    screen: File,
    /// The terminal. It stays open, so that its modes can be read after the view has ended.
    keyboard: OwnedFd,
    view: ChildGuard,
    shown: String,
}

impl Terminal {
    fn open(mut command: Command, columns: u16, rows: u16) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).expect("it is ours");
        unlockpt(&screen).expect("it is ours");
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&screen, size).expect("it has a size");
        let name = ptsname(&screen, Vec::new()).expect("it has a name");
        let name = Path::new(name.to_str().expect("text"));
        let open = || File::options().read(true).write(true).open(name);
        let side = || OwnedFd::from(open().expect("its other side"));
        let view = command.stdin(side()).stdout(side()).stderr(side()).spawn();
        Self {
            screen: screen.into(),
            keyboard: side(),
            view: ChildGuard(view.expect("the command starts")),
            shown: String::new(),
        }
    }

    /// Reads until the view has shown a text.
    fn sees(&mut self, text: &str) {
        let deadline = Deadline::after(PATIENCE);
        let mut part = [0; 4096];
        while !self.shown.contains(text) {
            assert!(
                !deadline.has_passed(),
                "{text:?} is not shown: {}",
                self.shown
            );
            let octets = self.screen.read(&mut part).expect("it is open");
            self.shown += &String::from_utf8_lossy(&part[..octets]);
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.screen.write_all(keys).expect("it is open");
    }

    /// Waits for the end of the view, after which the terminal is as it was.
    fn ends(mut self) -> (ExitStatus, String) {
        self.sees("\x1b[?1049l");
        let status = self.view.0.wait().expect("it is a child");
        let modes = tcgetattr(&self.keyboard).expect("it is open").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG));
        assert!(self.shown.contains("\x1b[?25h"), "the cursor is back");
        (status, self.shown)
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_live_view_is_drawn_in_place_and_gives_the_terminal_back() {
    let runtime = Runtime::new();
    let _orb = runtime.orb(1, "quotes");
    for keys in [&b"q"[..], b"\x03"] {
        let mut terminal = Terminal::open(runtime.top(&["--interval", "100"]), 80, 24);
        terminal.sees("\x1b[?1049h");
        terminal.sees("1:1.0 quotes");
        terminal.sees("q quits, t hides the threads");
        terminal.press(b"t");
        terminal.sees("q quits, t shows the threads");
        terminal.press(keys);
        let (status, shown) = terminal.ends();
        assert!(status.success(), "{status}");
        assert!(shown.contains("\x1b[H"), "it is drawn in place");
        assert!(shown.contains("\x1b[1m"), "it has colours");
        let ended = shown.split("\x1b[?1049l").nth(1);
        assert_eq!(ended, Some(""), "nothing is left behind");
    }
}

#[test]
fn the_live_view_says_that_the_orb_has_ended() {
    let runtime = Runtime::new();
    let orb = runtime.orb(1, "quotes");
    let mut command = runtime.top(&[]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::open(command, 80, 24);
    terminal.sees("1:1.0 quotes");
    drop(orb);
    terminal.sees("the ORB has ended");
    let (status, shown) = terminal.ends();
    assert!(status.success(), "{status}");
    assert!(!shown.contains("\x1b[1m"), "no colour is wanted");
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_tables() {
    let runtime = Runtime::new();
    let _orb = runtime.orb(1, "quotes");
    let mut command = runtime.top(&["--interval", "100"]);
    command.env("TERM", "dumb");
    let mut terminal = Terminal::open(command, 80, 24);
    terminal.sees("threads of no lane");
    assert!(
        !terminal.shown.contains("\x1b[?1049h"),
        "{}",
        terminal.shown
    );
}

#[test]
fn another_user_is_told_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not tested: only root can be another user");
        return;
    }
    const NOBODY: u32 = 65534;
    let runtime = Runtime::new();
    let _orb = runtime.orb(1, "quotes");
    let socket = runtime.socket(1);
    // All that stands in the way of others apart from the monitor itself.
    let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
    open(runtime.0.path(), 0o755).expect("it is ours");
    open(&runtime.directory(), 0o755).expect("it is ours");
    open(&socket, 0o777).expect("it is ours");
    let command = runtime.0.path().join("chronorb-of-none");
    fs::copy(env!("CARGO_BIN_EXE_chronorb"), &command).expect("there is room for it");
    let as_user = |uid| {
        let mut command = Command::new(&command);
        command.arg("top").arg(&socket).arg("--once").uid(uid);
        command.output().expect("it starts")
    };
    let output = as_user(NOBODY);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr(&output).contains("closed the connection"),
        "{output:?}"
    );
    assert_eq!(as_user(0).status.code(), Some(0), "but root is");
}

#[test]
fn the_help_says_how_to_use_it() {
    let output = Runtime::new().output(&["--help"]);
    let help = succeeds(&output);
    assert!(
        help.contains("-ORBMonitor on") && help.contains("Examples:"),
        "{help}"
    );
}

#[test]
fn a_wrong_command_line_ends_with_status_2() {
    let runtime = Runtime::new();
    for arguments in [
        &["--interval", "99"][..],
        &["--interval", "60001"],
        &["--count", "0"],
        &["--once", "--count", "2"],
        &["nonsense"],
        &["1", "2"],
    ] {
        let output = runtime.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
