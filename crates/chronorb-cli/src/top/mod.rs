//! `chronorb top`: what a running ORB's lanes and threads are doing, asked of its monitor.

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

use find::Found;
use rates::View;
use table::Layout;

/// What is to be shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) target: Option<Target>,
    /// How far apart two looks at the ORB are.
    pub(crate) interval: Duration,
    /// How many tables or objects there are; `None` for no end.
    pub(crate) count: Option<u64>,
    /// Objects of JSON, a line each, instead of tables.
    pub(crate) json: bool,
}

/// The ORB that is meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    /// That of a process.
    Process(u32),
    /// That with this socket.
    Socket(PathBuf),
}

/// Nothing can be shown, or no more.
#[derive(Debug, Error)]
pub(crate) enum TopError {
    /// No ORB tells anything.
    #[error(
        "{whose} ({looked}).\nTo give an ORB a monitor, start its program with -ORBMonitor on, or with \
         CHRONORB_ORB_MONITOR=on in its environment."
    )]
    NoMonitor {
        /// That nobody, or that this process, has one.
        whose: String,
        /// Where it was looked for.
        looked: String,
    },
    /// It has to be said which.
    #[error("{}", find::say_which(.0))]
    Several(Vec<Found>),
    /// The monitor does not answer as it should.
    #[error("the monitor {}: {source}", path.display())]
    Monitor { path: PathBuf, source: ClientError },
    /// It ended before all was shown.
    #[error("{ENDED}")]
    Ended,
    #[error("the terminal: {0}")]
    Terminal(io::Error),
    #[error("nothing can be written: {0}")]
    Output(io::Error),
}

/// Shows what an ORB is doing until that is enough, or it ends.
pub(crate) fn run(options: &Options) -> Result<(), TopError> {
    let found = find::one(options.target.as_ref())?;
    let is_live = options.count.is_none() && !options.json && is_screen();
    let shown = match is_live {
        true => live::show(found, options.interval),
        false => show_in_turn(found, options),
    };
    match shown {
        Err(TopError::Ended) if options.count.is_none() => {
            eprintln!("chronorb: {ENDED}.");
            Ok(())
        }
        // Who reads has seen enough.
        Err(TopError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        shown => shown,
    }
}

/// A monitor that is asked again and again.
pub(crate) struct Source {
    path: PathBuf,
    client: Client,
    /// What it told last.
    before: Report,
}

impl Source {
    /// What has happened since it was asked before.
    fn next(&mut self) -> Result<View, TopError> {
        let report = self.client.snapshot().map_err(|source| match source {
            ClientError::Closed => TopError::Ended,
            source => TopError::Monitor {
                path: self.path.clone(),
                source,
            },
        })?;
        let view = View::between(&self.before, &report);
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
        let mut text = match options.json {
            true => view.to_json(),
            false => table(&view),
        };
        text.push('\n');
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(TopError::Output)?;
        shown += 1;
    }
    Ok(())
}

fn table(view: &View) -> String {
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
/// Characters of a line where no terminal says how many there are.
const PAPER: usize = 120;
