//! The arguments of `chronorb lab all`.

use std::path::PathBuf;

use chronorb_lab::all;
use clap::Args;
use clap::builder::PossibleValuesParser;

#[derive(Args, Debug)]
pub(crate) struct AllArguments {
    /// Print the index as one JSON object instead of tables.
    #[arg(long)]
    json: bool,

    /// The directory for reports, figures and the index; it is created if it is missing [default:
    /// $XDG_STATE_HOME/chronorb/reports (~/.local/state/chronorb/reports), where they replace the
    /// last].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Run a short version of each experiment; --quick is another name for this option.
    #[arg(long, alias = "quick")]
    short: bool,

    /// Run these experiments alone.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = names())]
    only: Vec<String>,

    /// Leave these experiments out.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = names())]
    skip: Vec<String>,
}

/// The names of experiments.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(all::names())
}

impl From<AllArguments> for all::AllOptions {
    fn from(arguments: AllArguments) -> Self {
        Self {
            json: arguments.json,
            out: arguments.out,
            short: arguments.short,
            only: arguments.only,
            skip: arguments.skip,
        }
    }
}
