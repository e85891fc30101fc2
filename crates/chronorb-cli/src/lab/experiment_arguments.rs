//! The arguments that every experiment has.

use std::path::PathBuf;

use chronorb_lab::{Experiment, Options};
use clap::Args;

/// The arguments of every experiment.
#[derive(Args, Debug)]
pub(crate) struct ExperimentArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// The path of the report, an HTML page that needs no other file; its figures go beside it, to
    /// the same name with .json [default: EXPERIMENT.html in $XDG_STATE_HOME/chronorb/reports
    /// (~/.local/state/chronorb/reports), which replaces the last].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Run a short version of the experiment; --quick is another name for this option.
    #[arg(long, alias = "quick")]
    pub(super) short: bool,
}

impl ExperimentArguments {
    /// Returns the plan, before an experiment's own arguments change it.
    pub(super) fn plan<E: Experiment>(&self) -> E::Plan {
        if self.short { E::short() } else { E::full() }
    }

    /// Returns the options of an experiment.
    pub(super) fn options<E: Experiment>(self, plan: E::Plan) -> Options<E::Plan> {
        Options {
            json: self.json,
            report: self.report,
            plan,
        }
    }
}
