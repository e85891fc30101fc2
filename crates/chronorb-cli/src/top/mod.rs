//! `chronorb top`: the activity of a running ORB's lanes and threads, from its monitor.

mod find;
mod live;
mod rates;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_orb::monitor::{Client, ClientError, Report};
use chronorb_rt::{Monotonic, sleep_until};
use thiserror::Error;

use find::FoundMonitor;
use rates::OrbView;
use table::Layout;

/// The options of the command.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) target: Option<Target>,
    /// The interval between two queries of the ORB.
    pub(crate) interval: Duration,
    /// The number of tables or objects; `None` for no end.
    pub(crate) count: Option<u64>,
    /// Print JSON objects, a line each, instead of tables.
    pub(crate) json: bool,
}

/// The ORB to show.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    /// The ORB of a process.
    Process(u32),
    /// The ORB with this socket.
    Socket(PathBuf),
}

/// Parses a target: a number is a process, and anything else a path.
pub(crate) fn target(text: &str) -> Result<Target, String> {
    match text.parse() {
        Ok(pid) => Ok(Target::Process(pid)),
        Err(_) if text.contains(['/', '.']) => Ok(Target::Socket(text.into())),
        Err(_) => Err("neither the number of a process nor a path".to_owned()),
    }
}

/// There is nothing to show, or the output has ended.
#[derive(Debug, Error)]
pub(crate) enum TopError {
    /// No ORB has a monitor.
    #[error(
        "{whose} ({looked}).\nTo give an ORB a monitor, start its program with -ORBMonitor on, or \
         with CHRONORB_ORB_MONITOR=on in its environment."
    )]
    NoMonitor {
        /// The text that no ORB, or not that of this process, has one.
        whose: String,
        /// The directories that were searched.
        looked: String,
    },
    /// Several ORBs have a monitor, and none was named.
    #[error("{}", find::say_which(.0))]
    Several(Vec<FoundMonitor>),
    /// The monitor does not answer as it should.
    #[error("the monitor {}: {source}", path.display())]
    Monitor { path: PathBuf, source: ClientError },
    /// The ORB ended before the last table.
    #[error("{ENDED}")]
    Ended,
    #[error("the terminal: {0}")]
    Terminal(io::Error),
    #[error("nothing can be written: {0}")]
    Output(io::Error),
}

/// Shows the activity of an ORB until the count is reached, or the ORB ends.
pub(crate) fn run(options: &Options) -> Result<(), TopError> {
    let found = find::one(options.target.as_ref())?;
    let is_live = options.count.is_none() && !options.json && is_screen();
    let shown = if is_live {
        live::show(found, options.interval)
    } else {
        show_in_turn(found, options)
    };
    match shown {
        Err(TopError::Ended) if options.count.is_none() => {
            eprintln!("chronorb: {ENDED}.");
            Ok(())
        }
        // The reader of the output has closed it.
        Err(TopError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        shown => shown,
    }
}

/// Returns the present report of the target's monitor, or of the only one.
pub(crate) fn report(target: Option<&Target>) -> Result<Report, TopError> {
    find::one(target).map(|source| source.before)
}

/// A monitor that is queried repeatedly.
pub(crate) struct Source {
    path: PathBuf,
    client: Client,
    /// The last report.
    before: Report,
}

impl Source {
    /// Returns the changes since the report before.
    fn next(&mut self) -> Result<OrbView, TopError> {
        let report = self.client.snapshot().map_err(|source| match source {
            ClientError::Closed => TopError::Ended,
            source => TopError::Monitor {
                path: self.path.clone(),
                source,
            },
        })?;
        let view = OrbView::between(&self.before, &report);
        self.before = report;
        Ok(view)
    }
}

/// Writes one table or object after another.
fn show_in_turn(mut source: Source, options: &Options) -> Result<(), TopError> {
    let mut shown = 0;
    let mut next = Monotonic::now();
    while options.count.is_none_or(|count| shown < count) {
        next = next + options.interval;
        sleep_until(next);
        let view = source.next()?;
        let mut text = if options.json {
            chronorb_rt::visible_json(&view.to_json()).into_owned()
        } else {
            table(&view)
        };
        text.push('\n');
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(TopError::Output)?;
        shown += 1;
    }
    Ok(())
}

fn table(view: &OrbView) -> String {
    let is_terminal = io::stdout().is_terminal();
    let layout = Layout {
        width: screen::size().map_or(PAPER, |(width, _)| width),
        threads: true,
    };
    let has_color = is_terminal && wants_color();
    table::lines(view, layout)
        .iter()
        .map(|line| line.paint(layout.width, has_color) + "\n")
        .collect()
}

/// Whether a live view can be shown.
pub(crate) fn is_screen() -> bool {
    io::stdout().is_terminal() && env::var_os("TERM").is_some_and(|term| term != "dumb")
}

pub(crate) fn wants_color() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

const ENDED: &str = "the ORB has ended";
/// The characters of a line if there is no terminal.
const PAPER: usize = 120;
