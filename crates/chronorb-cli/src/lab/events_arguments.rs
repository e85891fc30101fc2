//! The arguments of `chronorb lab events`.

use std::process::ExitCode;

use chronorb_lab::events::{Events, EventsPart};
use clap::Args;

use super::ExperimentArguments;
use crate::status;

#[derive(Args, Debug)]
pub(crate) struct EventsArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Run these parts alone: ev1, ev2, ev3, ev4, ev5, ev6, ev7, ev8, ev9.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<EventsPart>,
}

impl EventsArguments {
    /// Runs the experiment.
    pub(super) fn run(self) -> ExitCode {
        let mut plan = self.common.plan::<Events>();
        if !self.only.is_empty() {
            plan.parts = self.only;
        }
        status(chronorb_lab::run::<Events>(&self.common.options::<Events>(plan)).map(drop))
    }
}

pub(super) const EXAMPLES: &str = "\
Examples:
  chronorb lab events
  chronorb lab events --short --only ev2,ev3 --report short.html
  chronorb lab events --json | jq '.claims[] | [.verdict, .claim, .measured]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the experiment runs all the same and marks its figures as not real-time. A claim that was missed is
shown, and is no failure of the command.";
