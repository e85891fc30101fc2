//! `chronorb sched plan`: the plan of real-time I/O of a node.

use std::path::PathBuf;

use clap::Args;

use super::check::require_fit;
use super::source::{SchedCommandError, assign, print, read};

#[derive(Args, Debug)]
pub(crate) struct NodePlanArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// The node [default: the only one with an interface].
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
}

/// Prints the plan of a node.
pub(crate) fn run(arguments: &NodePlanArguments) -> Result<(), SchedCommandError> {
    let file = &arguments.file;
    let schedule = read(file)?;
    let assignment = assign(file, &schedule)?;
    require_fit(file, &schedule, &assignment, false)?;
    let lock = assignment.lock_file(&schedule);
    let nodes: Vec<_> = lock.interfaces.iter().map(|it| it.node.as_str()).collect();
    let node = match (&arguments.node, nodes.as_slice()) {
        (Some(node), _) => node.as_str(),
        (None, [node]) => node,
        (None, []) => {
            let problem = format!("{}: no link has an interface", file.display());
            return Err(SchedCommandError::Argument(problem));
        }
        (None, several) => {
            let nodes = several.join(", ");
            let problem = format!("the nodes {nodes} have interfaces: choose one by --node");
            return Err(SchedCommandError::Argument(problem));
        }
    };
    let plan = lock.rio_plan(node).ok_or_else(|| {
        let nodes = nodes.join(", ");
        SchedCommandError::Argument(format!(
            "{}: no link has an interface of node {node}; nodes with one: {nodes}",
            file.display()
        ))
    })?;
    print(plan.trim_end())
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched plan mission.toml --node server
  chronorb sched plan mission.toml --node server > server.plan.toml
  chronorb rio plan server.plan.toml

Exit status: 0 when the plan is printed; 1 when a deadline is missed, a link has no room, the file
is no schedule or the node has no interface; 2 when the command line is wrong.";
