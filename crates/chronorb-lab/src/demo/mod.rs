//! `chronorb demo`: the same load without priorities and with them, each for some seconds.
//!
//! [`run`] starts the server and each client as a process of its own: this very program, with the
//! hidden commands [`SERVER_COMMAND`] and [`CLIENT_COMMAND`]. Beside their orders, they exchange
//! lines of JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the reference of its object | the end of its input: shut down |
//! | client | that it is connected, then what it measured | when to start |

mod client;
mod error;
mod order;
mod phase;
mod report;
mod server;
mod work;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronorb_report::{check_writable, write_page};
use chronorb_rt::Rights;

use crate::comparison::{Comparison, Setup};
use crate::environment::{Environment, ProcessorTime};
use crate::report::folder;

pub use client::client_main;
pub use error::DemoError;
pub use server::server_main;

/// The hidden command that [`run`] uses for the server; its argument goes to [`server_main`].
pub const SERVER_COMMAND: &str = "demo-server";
/// The hidden command that [`run`] uses for a client; its argument goes to [`client_main`].
pub const CLIENT_COMMAND: &str = "demo-client";

/// What `chronorb demo` was asked to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print one JSON object instead of the table.
    pub json: bool,
    /// Where the HTML report goes. Without it, to `chronorb/reports/demo.html` in the user's folder
    /// for state (`XDG_STATE_HOME`, or `.local/state` in `HOME`).
    pub report: Option<PathBuf>,
    /// The load.
    pub setup: Setup,
}

/// Runs the demonstration, prints its outcome on standard output and writes the report.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON
/// object.
///
/// # Errors
///
/// See [`DemoError`]. All processes that were started have ended when this returns.
pub fn run(options: &Options) -> Result<(), DemoError> {
    let path = folder::file(options.report.as_deref(), "demo")?;
    check_writable(&path)?;
    let comparison = compare(&options.setup)?;
    write_page(&report::document(&comparison).html(), &path)?;
    print(options.json, &path, &comparison).map_err(DemoError::Output)
}

fn compare(setup: &Setup) -> Result<Comparison, DemoError> {
    let mut environment = Environment::probe();
    let steps = work::Steps::calibrate(setup);
    let start = ProcessorTime::now();
    let without = phase::run(setup, steps, false)?;
    let middle = ProcessorTime::now();
    let with = phase::run(setup, steps, true)?;
    let end = ProcessorTime::now();
    environment.stolen_percent = vec![start.stolen_percent(middle), middle.stolen_percent(end)];
    Ok(Comparison {
        real_time: with.real_time,
        setup: setup.clone(),
        without_priorities: without.calls,
        with_priorities: with.calls,
        environment,
    })
}

fn print(json: bool, file: &Path, comparison: &Comparison) -> io::Result<()> {
    let path = file.canonicalize();
    let path = path.as_deref().unwrap_or(file).display();
    let caveats = caveats(comparison);
    let mut out = io::stdout().lock();
    if json {
        eprint!("{caveats}");
        serde_json::to_writer(&mut out, &comparison.figures())?;
        writeln!(out)?;
        eprintln!("Report with plots: {path}");
    } else {
        writeln!(out, "{}", report::table(comparison).text())?;
        writeln!(out, "{}", comparison.meaning())?;
        write!(out, "{caveats}")?;
        writeln!(out, "Report with plots: {path}")?;
    }
    out.flush()
}

/// What has to be known beside the figures, and how to get better ones.
fn caveats(comparison: &Comparison) -> String {
    let mut text = String::new();
    for caveat in comparison.caveats() {
        let _ = writeln!(text, "{caveat}");
    }
    if !comparison.real_time {
        for missing in Rights::probe().missing() {
            let _ = writeln!(text, "  {}: {}", missing.what, missing.cost);
            let _ = writeln!(text, "  to get it: {}", missing.remedy);
        }
    }
    text
}
