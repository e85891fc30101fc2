//! IIOP by the real-time I/O subsystem, with the classes of a plan or of a schedule.

#[cfg(feature = "schedule")]
use std::path::Path;
use std::sync::Arc;

use chronorb_rio::plan::{DriverKind, Plan};
use chronorb_rio::{DriverChoice, DriverOptions, Riop, RiopSettings};

use super::{PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;
use crate::rtcorba::Priority;

/// Returns the protocol. Calls use it only if there is an interface for them.
pub(super) fn protocol(config: &OrbConfig) -> Result<PluggableProtocol, ProtocolProblem> {
    let settings = &config.rio;
    let mut riop = RiopSettings {
        interface: settings.interface.clone(),
        driver: DriverOptions {
            driver: settings.driver,
            ..DriverOptions::default()
        },
        ..RiopSettings::default()
    };
    let mut given = "-ORBRioInterface";
    if let Some((plan, setting)) = plan_of(config)? {
        if riop.interface.is_none() {
            (riop.interface, given) = (Some(plan.interface.name.clone()), setting);
        }
        riop.driver.driver = match (settings.driver, plan.interface.driver) {
            (DriverChoice::Auto, DriverKind::Xdp) => DriverChoice::Xdp,
            (DriverChoice::Auto, DriverKind::Packet) => DriverChoice::Packet,
            (DriverChoice::Auto, DriverKind::Kernel) => DriverChoice::Kernel,
            (driver, _) => driver,
        };
        (riop.plan, riop.reserved_on) = (plan.classes, Some(plan.interface));
    }
    let calls = riop.interface.is_some();
    let riop = Riop::open(riop).map_err(|error| of(given, error.to_string()))?;
    let protocol = PluggableProtocol::beside_iiop(Arc::new(riop));
    Ok(if calls {
        protocol
    } else {
        protocol.for_servers()
    })
}

/// Returns the plan of the configuration, with its setting: the file of `-ORBRioPlan`, or else the
/// plan of the schedule, with which the file has to agree.
fn plan_of(config: &OrbConfig) -> Result<Option<(Plan, &'static str)>, ProtocolProblem> {
    let mapping = config.priority_mapping.mapping();
    let to_native = |corba| mapping.to_native(Priority::new(corba)?);
    let planned = match &config.rio.plan {
        None => None,
        Some(file) => {
            let refused = |problem: String| of(FILE, format!("{}: {problem}", file.display()));
            let plan = Plan::read(file, &to_native).map_err(|error| refused(error.to_string()))?;
            admitted(&plan).map_err(refused)?;
            Some((plan, file))
        }
    };
    #[cfg(feature = "schedule")]
    if let Some(scheduled) = &config.scheduled_plan {
        use crate::rtcorba::SchedulingPolicy;
        use chronorb_rio::plan::Policy;

        let lock = &scheduled.lock;
        let refused = |problem: String| of(SCHEDULE, format!("{}: {problem}", lock.display()));
        let mut own = Plan::parse(&scheduled.text, &to_native)
            .map_err(|error| refused(format!("its plan of real-time I/O: {error}")))?;
        if config.scheduling_policy == SchedulingPolicy::RoundRobin {
            let fixed = own.classes.iter_mut();
            for class in fixed.filter(|class| class.policy == Policy::Fifo) {
                class.policy = Policy::RoundRobin;
            }
        }
        admitted(&own).map_err(refused)?;
        return match planned {
            None => Ok(Some((own, SCHEDULE))),
            Some((plan, file)) => match disagreement((&plan, file), (&own, lock)) {
                None => Ok(Some((plan, FILE))),
                Some(problem) => Err(of(SCHEDULE, problem)),
            },
        };
    }
    Ok(planned.map(|(plan, _)| (plan, FILE)))
}

fn admitted(plan: &Plan) -> Result<(), String> {
    let refusals = plan.admit().refusals;
    refusals
        .first()
        .map_or(Ok(()), |refusal| Err(refusal.to_string()))
}

/// Returns the first point in which a plan promises less than a schedule needs. Both are named.
#[cfg(feature = "schedule")]
fn disagreement((plan, file): (&Plan, &Path), (schedule, lock): (&Plan, &Path)) -> Option<String> {
    let (file, lock) = (file.display(), lock.display());
    if plan.interface.name != schedule.interface.name {
        let (own, needed) = (&plan.interface.name, &schedule.interface.name);
        return Some(format!(
            "interface {own:?} of {file} contradicts interface {needed:?} of {lock}"
        ));
    }
    schedule.classes.iter().find_map(|needed| {
        let priority = needed.corba_priority.unwrap_or(0);
        let name = &needed.name;
        let same = |policy, native| policy == needed.policy && native == needed.priority;
        let mut classes = plan.classes.iter();
        let Some(class) = classes.find(|it| same(it.policy, it.priority)) else {
            return Some(format!(
                "{file} has no class for {name} of {lock}, whose scheduling is {:?} with the \
                 native priority {} (CORBA priority {priority})",
                needed.policy, needed.priority
            ));
        };
        // An unbounded class takes any number of packets.
        let (Some(bound), Some(need)) = (class.bound(), needed.bound()) else {
            return None;
        };
        let promised = u128::from(bound.packets) * need.period.as_nanos();
        let asked = u128::from(need.packets) * bound.period.as_nanos();
        (promised < asked).then(|| {
            format!(
                "class {:?} of {file} has {} packets each {:?}, and {name} of {lock} (priority \
                 {priority}) needs {} each {:?}",
                class.name, bound.packets, bound.period, need.packets, need.period
            )
        })
    })
}

fn of(setting: &'static str, problem: String) -> ProtocolProblem {
    ProtocolProblem::Of { setting, problem }
}

const FILE: &str = "-ORBRioPlan";
#[cfg(feature = "schedule")]
const SCHEDULE: &str = "-ORBSchedule";

#[cfg(all(test, feature = "schedule"))]
mod tests {
    use super::*;

    /// Returns a plan of an interface with one class of real time.
    fn plan(interface: &str, class: &str) -> Plan {
        let text = format!(
            "[interface]\nname = \"{interface}\"\nrate = \"100 Mbit\"\n[[class]]\n{class}\n"
        );
        Plan::parse(&text, &|priority| u8::try_from(priority).ok()).expect("a plan")
    }

    fn difference(file: &Plan) -> Option<String> {
        let needed = "name = \"lan-20\"\npriority = 20\nprocessing = \"arrival\"\n\
                      period = \"50 ms\"\nbudget = 4";
        let schedule = plan("eth0", needed);
        disagreement(
            (file, Path::new("plan.toml")),
            (&schedule, Path::new("a.rt.lock")),
        )
    }

    #[test]
    fn a_plan_has_to_promise_what_the_schedule_needs() {
        let periodic = |budget| {
            plan(
                "eth0",
                &format!(
                    "name = \"fast\"\nnative = 20\nprocessing = \"periodic\"\n\
                     period = \"100 ms\"\nbudget = {budget}"
                ),
            )
        };
        assert_eq!(difference(&periodic(8)), None);
        let less = "class \"fast\" of plan.toml has 7 packets each 100ms, and lan-20 of a.rt.lock \
                    (priority 20) needs 4 each 50ms";
        assert_eq!(difference(&periodic(7)).as_deref(), Some(less));
        assert_eq!(
            difference(&plan("eth0", "name = \"fast\"\nnative = 20")),
            None
        );
        let none = "plan.toml has no class for lan-20 of a.rt.lock, whose scheduling is Fifo with \
                    the native priority 20 (CORBA priority 20)";
        let other = plan("eth0", "name = \"fast\"\nnative = 21");
        assert_eq!(difference(&other).as_deref(), Some(none));
        let interface = "interface \"eth1\" of plan.toml contradicts interface \"eth0\" of \
                         a.rt.lock";
        let other = plan("eth1", "name = \"fast\"\nnative = 20");
        assert_eq!(difference(&other).as_deref(), Some(interface));
    }
}
