//! Groups of checks of a server.

mod basics;
mod data;
mod exceptions;
mod large;
mod objects;
mod references;
mod state;
mod texts;
mod wide;

use chronorb::Orb;

use crate::idl::{Echo, Hub};
use crate::{Failure, Report};

/// The server under test.
#[derive(Debug)]
pub struct Subject {
    orb: Orb,
    hub: Hub,
    echo: Echo,
}

impl Subject {
    /// Returns the server with this hub.
    ///
    /// # Errors
    /// An error if the hub does not answer.
    pub fn new(orb: Orb, hub: Hub) -> Result<Self, Failure> {
        let echo = hub.get_echo()?.ok_or(NIL)?;
        Ok(Self { orb, hub, echo })
    }

    /// Returns the server's first object.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }
}

/// A group of related checks.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    name: &'static str,
    run: fn(&Subject, &mut Report) -> Result<(), Failure>,
}

impl Group {
    /// Returns its name on the command line.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs its checks. A check that cannot be run ends the group, and counts as failed.
    pub fn run(&self, subject: &Subject, report: &mut Report) {
        report.group(self.name);
        if let Err(error) = (self.run)(subject, report) {
            report.ok(
                false,
                &format!("{} runs to its end", self.name),
                &error.to_string(),
            );
        }
    }

    const fn new(
        name: &'static str,
        run: fn(&Subject, &mut Report) -> Result<(), Failure>,
    ) -> Self {
        Self { name, run }
    }
}

/// All groups, in the order of execution. The names are those of the clients of other ORBs.
pub const GROUPS: &[Group] = &[
    Group::new("basics", basics::check),
    Group::new("texts", texts::check),
    Group::new("latin1", texts::check_latin1),
    Group::new("latin1-chars", texts::check_latin1_chars),
    Group::new("multibyte", texts::check_multibyte),
    Group::new("structs", data::check_structs),
    Group::new("sequences", data::check_sequences),
    Group::new("arrays", data::check_arrays),
    Group::new("large", large::check),
    Group::new("threads", large::check_threads),
    Group::new("wide", wide::check),
    Group::new("precise", wide::check_precise),
    Group::new("user-exceptions", exceptions::check_user),
    Group::new("system-exceptions", exceptions::check_system),
    Group::new("oneway", state::check_oneway),
    Group::new("attributes", state::check_attributes),
    Group::new("inheritance", state::check_inheritance),
    Group::new("references", references::check),
    Group::new("callbacks", references::check_callbacks),
    Group::new("objects", objects::check),
    Group::new("corbaloc", objects::check_corbaloc),
];

const NIL: &str = "the server gave a nil reference";
