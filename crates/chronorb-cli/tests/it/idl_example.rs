//! `chronorb idl example`: the package that it writes is built and run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{chronorb, stderr, stdout};

/// The repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("it is there")
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    folder
}

/// A server that is ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes the package of a file, builds it, runs its programs, and returns what the client and the
/// server print.
fn run_example(folder: &Path, arguments: &[&str]) -> (String, Vec<String>) {
    let root = root();
    let checkout = root.to_str().expect("text");
    let command = [
        &["idl", "example"],
        arguments,
        &["--checkout", checkout, "--out", "made"],
    ];
    let output = chronorb(folder, &command.concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let package = folder.join("made");
    // The versions that all else is built with.
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).expect("copied");
    // One directory for all packages, so that the crates are built once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("idl-example");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--offline", "--quiet", "--bins"])
        .current_dir(&package)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("RUSTFLAGS", "-D warnings")
        .output()
        .expect("cargo starts");
    assert!(built.status.success(), "{}", stderr(&built));
    // The next package replaces the programs.
    let programs = ["server", "client"].map(|name| {
        let program = package.join(name);
        fs::copy(target.join("debug").join(name), &program).expect("copied");
        program
    });
    let mut server = Command::new(&programs[0])
        .args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .map(Server)
        .expect("it starts");
    let printed = server.0.stdout.take().expect("it is piped");
    let mut printed = BufReader::new(printed)
        .lines()
        .map(|line| line.expect("text"));
    let reference = printed.next().expect("a reference");
    let client = Command::new(&programs[1])
        .arg(reference)
        .output()
        .expect("it starts");
    assert!(client.status.success(), "{}", stderr(&client));
    drop(server);
    (stdout(&client).to_owned(), printed.collect())
}

#[test]
fn the_package_of_the_tutorial_s_file_serves_and_calls() {
    let idl = fs::read_to_string(root().join("examples/quoter/idl/quoter.idl")).expect("read");
    let folder = folder(&[("quoter.idl", &idl)]);
    let (client, server) = run_example(folder.path(), &["quoter.idl"]);
    assert_eq!(
        client,
        "get_quote: Ok(QuoteBuf { symbol: \"\", levels: [], curve: [] })\nping: Ok(0)\n"
    );
    assert_eq!(server, ["get_quote(\"text\", [1.5])", "ping(1)"]);
}

const BASE: &str = "
module base {
    interface Named { readonly attribute string name; };
};
";

const MARKET: &str = "
#include \"parts/base.idl\"
#include <limits.idl>
module market {
    enum Side { BUY, SELL };
    struct Order { string symbol; Side way; double prices[3]; sequence<string, LIMIT> notes; };
    typedef sequence<Order> Orders;
    union Outcome switch (Side) { case BUY: Order bought; case SELL: long sold; };
    valuetype Stamp { public long when; };
    exception Refused { string why; };
    local interface Inside { void f(); };
    abstract interface Described { string text(); };

    interface Venue : base::Named {
        attribute long type;
        attribute Side best;
        readonly attribute any extra;
        Orders list(in Orders some, inout Order last, out long count) raises (Refused);
        Outcome trade(in Order wanted, in Side way) raises (Refused);
        string<2> shorten(in string<2> text, in wstring<3> wide, in char letter, in boolean up);
        long more(out long a, out string b, out Order c);
        Stamp stamped(in Stamp first, in Object subject, in Venue other);
        oneway void ring(in octet times);
        @rt::nonnil Venue next();
        void visit(@rt::nonnil in Venue visitor);
        void lines(in sequence<sequence<long> > all, in map<string, long> counts);
    };
    interface Later {};
};
";

#[test]
fn a_package_has_the_included_files_renames_and_all_kinds_of_operations() {
    let folder = folder(&[
        ("market.idl", MARKET),
        ("market.rename", "::market::Venue::ring = knock\n"),
        ("parts/base.idl", BASE),
        ("elsewhere/limits.idl", "\n"),
    ]);
    let options = ["-I", "elsewhere", "-D", "LIMIT=4", "market.idl"];
    let (client, server) = run_example(folder.path(), &options);
    let order = "OrderBuf { symbol: \"\", way: Buy, prices: [0.0, 0.0, 0.0], notes: [] }";
    for line in [
        "name: Ok(\"\")".to_owned(),
        "r#type: Ok(0)".to_owned(),
        "set_best: Ok(())".to_owned(),
        format!("list: Ok(([], 0)), last: {order}"),
        format!("trade: Ok(Bought({order}))"),
        "shorten: Ok(\"\")".to_owned(),
        format!("more: Ok(MoreOutBuf {{ result: 0, a: 0, b: \"\", c: {order} }})"),
        "stamped: Ok(None)".to_owned(),
        "knock: Ok(())".to_owned(),
        "visit: not called, because it needs a reference that is not nil".to_owned(),
        "lines: Ok(())".to_owned(),
    ] {
        let line = line.replace("r#", "");
        assert!(
            client.lines().any(|l| l == line),
            "`{line}` is missing in:\n{client}"
        );
    }
    // A reference that is never nil has no empty value.
    assert!(
        client.contains("next: Err(SystemException { kind: NoImplement"),
        "{client}"
    );
    for call in [
        "name()",
        "set_best(Buy)",
        "shorten(\"te\", \"tex\", '\\0', true)",
        "knock(1)",
    ] {
        assert!(
            server.iter().any(|line| line == call),
            "`{call}` is missing in: {server:?}"
        );
    }
}

#[test]
fn nothing_is_written_where_it_would_be_wrong() {
    let folder = folder(&[
        ("clock.idl", "interface Clock { long long now(); };"),
        ("local.idl", "local interface Clock { long long now(); };"),
        ("outside/part.idl", "interface Part {};"),
        (
            "inside/main.idl",
            "#include \"../outside/part.idl\"\ninterface Main : Part {};",
        ),
        ("full/file", ""),
    ]);
    for (arguments, message) in [
        (
            &["clock.idl", "--out", "full"][..],
            "full exists and is not empty",
        ),
        (
            &["clock.idl", "--checkout", "full"],
            "full is not a checkout of chronorb",
        ),
        (
            &["local.idl"],
            "the file defines no interface for which there can be a server",
        ),
        (
            &["inside/main.idl"],
            "is included and has no place in the package",
        ),
        (&["-"], "standard input has no name"),
        (&["missing.idl"], "missing.idl"),
    ] {
        let output = chronorb(folder.path(), &[&["idl", "example"], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
        assert!(!folder.path().join("clock-example").exists());
        assert!(!folder.path().join("main-example").exists());
    }
    let output = chronorb(folder.path(), &["idl", "example", "clock.idl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let manifest = fs::read_to_string(folder.path().join("clock-example/Cargo.toml"));
    let manifest = manifest.expect("written");
    assert!(manifest.contains("chronorb = \"0.1"), "{manifest}");
    assert!(stdout(&output).contains("corbaloc::127.0.0.1:2809/Clock"));
}
