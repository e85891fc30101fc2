//! `chronorb rio setup --kernel`: an interface whose kernel keeps a plan.

use std::fmt::Write as _;
use std::path::Path;

use chronorb_rio::kernel::{EnforcedPlan, Ways};
use chronorb_rio::plan::{Bits, Plan, Reservation};
use chronorb_rt::Termination;
use serde_json::{Value, json};

use super::{SetupArguments, SetupError, print};
use crate::rio::guardian::{Guardian, GuardianError};

/// Has the kernel keep the plan until the command ends.
pub(super) fn run(file: &Path, arguments: &SetupArguments) -> Result<(), SetupError> {
    let to_native = |corba| arguments.mapping.to_native(corba);
    let plan = Plan::read(file, &to_native).map_err(|error| SetupError::Plan {
        file: file.to_owned(),
        error,
    })?;
    let admission = plan.admit();
    if let Some(refusal) = admission.refusals.first() {
        return Err(SetupError::Refused {
            file: file.to_owned(),
            refusal: refusal.to_string(),
        });
    }
    let termination = Termination::install().map_err(SetupError::Signals)?;
    let mut guardian = Guardian::start().map_err(GuardianError::Process)?;
    let mut tell = |change: &_| guardian.tell(change);
    let ways = if arguments.ingress {
        Ways::Both
    } else {
        Ways::Out
    };
    let kept = EnforcedPlan::keep(&plan.interface, &plan.classes, ways, &mut tell);
    let waited = kept.map_err(SetupError::from).and_then(|kept| {
        if arguments.json {
            print(&object(file, &plan, &kept).to_string())?
        } else {
            print(&text(file, &plan, &kept))?
        }
        Ok(guardian.wait(termination)?)
    });
    let ended = guardian.end();
    waited?;
    Ok(ended?)
}

/// Renders the plan that is kept, for people.
fn text(file: &Path, plan: &Plan, kept: &EnforcedPlan) -> String {
    let mut text = format!("{}: the kernel keeps the plan\n\n", plan.interface.name);
    for branch in &kept.tree().branches {
        let (rate, ceiling) = (Bits(branch.share.rate * 8), Bits(branch.share.ceiling * 8));
        let _ = writeln!(
            text,
            "  {}: class {}, {rate}, at most {ceiling}",
            branch.name, branch.handle
        );
    }
    if let Some(inward) = kept.inward() {
        let _ = writeln!(text, "  {inward}: the same for received traffic");
    }
    for thread in kept.threads() {
        let _ = writeln!(text, "  {}: {}", thread.name, thread.scheduling);
    }
    if kept.threads().is_empty() {
        text +=
            "  packets are received in soft interrupts: no thread with a priority receives them\n";
    }
    let endpoints: Vec<_> = (plan.classes.iter())
        .map(|class| endpoints(file, class))
        .collect();
    if !endpoints.is_empty() {
        let _ = write!(
            text,
            "\nThe endpoints of its classes, with an address of the interface for HOST:\n\n  {}\n",
            endpoints.join("\n  ")
        );
    }
    text += "\nCtrl-C undoes it all.";
    text
}

/// Renders the plan that is kept, for programs.
fn object(file: &Path, plan: &Plan, kept: &EnforcedPlan) -> Value {
    let classes: Vec<_> = (kept.tree().branches.iter())
        .map(|branch| {
            let class = plan.classes.iter().find(|class| class.name == branch.name);
            json!({
                "name": branch.name,
                "handle": branch.handle.to_string(),
                "rate_bit_per_s": branch.share.rate * 8,
                "ceiling_bit_per_s": branch.share.ceiling * 8,
                "priority": branch.share.priority,
                "endpoints": class.map(|class| endpoints(file, class)),
            })
        })
        .collect();
    let threads: Vec<_> = (kept.threads().iter())
        .map(|thread| {
            json!({
                "name": thread.name,
                "process": thread.process,
                "scheduling": thread.scheduling.to_string(),
            })
        })
        .collect();
    json!({
        "interface": plan.interface.name,
        "inward": kept.inward(),
        "classes": classes,
        "threads": threads,
    })
}

/// Returns the options of servers whose packets belong to the classes.
fn endpoints(file: &Path, class: &Reservation) -> String {
    let port = class
        .ports
        .first()
        .map(|ports| format!(":{}", ports.start()));
    format!(
        "-ORBRioPlan {} -ORBListenEndpoints 'riop://HOST{}/driver=kernel&class={}'",
        file.display(),
        port.unwrap_or_default(),
        class.name
    )
}
