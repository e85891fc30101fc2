//! `chronorb rio plan`: checks whether the promises of a plan can be kept.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_orb::rtcorba::{
    ContinuousMapping, DirectMapping, LinearMapping, Priority, PriorityMapping,
};
use chronorb_rio::plan::{
    Admission, Bits, Cap, ClassAdmission, Interface, Plan, PlanError, Processing,
};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use thiserror::Error;

#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    /// The plan, a file of TOML.
    file: PathBuf,

    /// The mapping of the plan's CORBA priorities to native ones, as -ORBPriorityMapping of ORBs.
    #[arg(long, value_name = "MAPPING", default_value = "linear")]
    mapping: Mapping,

    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

/// A mapping of CORBA priorities to native ones.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Mapping {
    Linear,
    Direct,
    Continuous,
}

/// The file is not a plan, or the plan cannot be kept.
#[derive(Debug, Error)]
pub(crate) enum PlanCommandError {
    #[error("{}: {error}", file.display())]
    Plan { file: PathBuf, error: PlanError },
    #[error("the plan cannot be kept: {0}")]
    Refused(String),
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

/// Prints the admission of a plan.
pub(crate) fn run(arguments: &PlanArguments) -> Result<(), PlanCommandError> {
    let file = &arguments.file;
    let to_native = |corba| arguments.mapping.to_native(corba);
    let plan = Plan::read(file, &to_native).map_err(|error| PlanCommandError::Plan {
        file: file.clone(),
        error,
    })?;
    let admission = plan.admit();
    let mut text = if arguments.json {
        object(&plan.interface, &admission).to_string()
    } else {
        text(&plan.interface, &admission)
    };
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes())?;
    match admission.refusals.len() {
        0 => Ok(()),
        1 => Err(PlanCommandError::Refused("1 promise is refused".to_owned())),
        n => Err(PlanCommandError::Refused(format!(
            "{n} promises are refused"
        ))),
    }
}

impl Mapping {
    pub(super) fn to_native(self, corba: i16) -> Option<u8> {
        let priority = Priority::new(corba)?;
        match self {
            Self::Linear => LinearMapping.to_native(priority),
            Self::Direct => DirectMapping.to_native(priority),
            Self::Continuous => ContinuousMapping.to_native(priority),
        }
    }
}

/// Renders the admission for people.
fn text(interface: &Interface, admission: &Admission) -> String {
    let rate = match interface.rate {
        Some(rate) => Bits(rate).to_string(),
        None => "of unknown rate".to_owned(),
    };
    let mut text = format!(
        "interface {}: {rate}, packets of up to {} octets, driver {}\n",
        interface.name, interface.mtu, interface.driver
    );
    if !admission.classes.is_empty() {
        text.push('\n');
        text += &table(&admission.classes);
        if let Some(rate) = interface.rate {
            let reserved = admission.reserved();
            let _ = writeln!(
                text,
                "\nreserved: {} of {}, {:.1} %",
                Bits(reserved),
                Bits(rate),
                100.0 * reserved as f64 / rate as f64
            );
        }
    }
    for (word, problems) in [
        (
            "warning",
            admission
                .warnings
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        ),
        (
            "refused",
            admission.refusals.iter().map(ToString::to_string).collect(),
        ),
    ] {
        for problem in problems {
            let _ = write!(text, "\n{word}: {problem}");
        }
    }
    if admission.is_admitted() {
        text.push_str("\nadmitted: all promises can be kept");
    }
    text
}

fn table(classes: &[ClassAdmission]) -> String {
    let titles = TITLES.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(titles)
        .chain(classes.iter().map(row))
        .collect();
    let mut widths = [0; TITLES.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (number, (cell, width)) in row.iter().zip(widths).enumerate() {
            // Names are on the left, figures on the right.
            let _ = match number {
                0..FIRST_FIGURE => write!(line, "{cell:<width$}  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn row(class: &ClassAdmission) -> [String; TITLES.len()] {
    let reservation = &class.reservation;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let policy = reservation.policy;
    let scheduling = match reservation.priority {
        0 => policy.to_string(),
        native => format!("{policy} {native}"),
    };
    [
        reservation.name.clone(),
        scheduling,
        processing(reservation.processing, reservation.expected),
        or_none(reservation.cpu.map(|cpu| cpu.to_string())),
        or_none(
            class
                .utilisation
                .map(|share| format!("{:.1} %", 100.0 * share)),
        ),
        or_none(class.response.map(|time| format!("{time:?}"))),
        or_none(
            reservation
                .bound()
                .map(|bound| format!("{:?}", bound.period)),
        ),
        or_none(class.rate.map(|rate| Bits(rate).to_string())),
        format!("{}/{}", class.frames_in_flight, reservation.queue),
    ]
}

fn processing(processing: Processing, expected: Option<Cap>) -> String {
    match expected {
        Some(cap) => format!("{processing}, {cap} expected"),
        None => processing.to_string(),
    }
}

const TITLES: [&str; 9] = [
    "CLASS",
    "THREADS",
    "PROCESSING",
    "CPU",
    "TAKES",
    "RESPONSE",
    "PERIOD",
    "NETWORK",
    "QUEUE",
];
/// The first column of figures.
const FIRST_FIGURE: usize = 3;

/// Renders the admission for programs.
fn object(interface: &Interface, admission: &Admission) -> Value {
    let refusals = admission.refusals.iter().map(|refusal| {
        json!({
            "class": refusal.class,
            "reason": refusal.why.word(),
            "fits": refusal.why.fits(),
            "text": refusal.why.to_string(),
        })
    });
    let warnings = admission.warnings.iter().map(ToString::to_string);
    json!({
        "version": 1,
        "interface": {
            "name": interface.name,
            "bits_per_s": interface.rate,
            "mtu": interface.mtu,
            "driver": interface.driver.to_string(),
        },
        "admitted": admission.is_admitted(),
        "reserved_bits_per_s": admission.reserved(),
        "classes": admission.classes.iter().map(class).collect::<Vec<_>>(),
        "refusals": refusals.collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}

fn class(class: &ClassAdmission) -> Value {
    let reservation = &class.reservation;
    let bound = reservation.bound();
    let mode = match reservation.processing {
        Processing::OnArrival => "arrival",
        Processing::OnDemand { .. } => "demand",
        Processing::Periodic { .. } => "periodic",
    };
    json!({
        "name": reservation.name,
        "policy": reservation.policy.to_string(),
        "native": reservation.priority,
        "priority": reservation.corba_priority,
        "processing": mode,
        "packets": bound.map(|bound| bound.packets),
        "period_us": bound.map(|bound| micros(bound.period)),
        "cpu": reservation.cpu,
        "utilisation": class.utilisation,
        "response_us": class.response.map(micros),
        "bits_per_s": class.rate,
        "octets_per_s": class.octets,
        "frames_in_flight": class.frames_in_flight,
        "queue": reservation.queue,
    })
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb rio plan plan.toml
  chronorb rio plan plan.toml --json | jq '.refusals[] | [.class, .reason, .fits]'

A plan:
  [interface]
  name = \"eth0\"
  rate = \"1 Gbit\"

  [[class]]
  name = \"control\"
  priority = 24000
  processing = \"periodic\"
  period = \"10 ms\"
  budget = 8
  cost = \"12 us\"
  port = 2809

Exit status: 0 when all promises can be kept, 1 when one cannot or the file is no plan, 2 when the
command line is wrong.";

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        [interface]
        name = "eth7"
        rate = "100 Mbit"

        [[class]]
        name = "rest"
        cap = "40 %"
        cost = "10 us"

        [[class]]
        name = "video"
        priority = 16000
        processing = "periodic"
        period = "10 ms"
        budget = 40
        cost = "20 us"
        cpu = 1

        [[class]]
        name = "control"
        priority = 24000
        policy = "rr"
        processing = "arrival"
        period = "5 ms"
        budget = 2
        cost = "20 us"
    "#;

    fn plan(text: &str) -> Plan {
        Plan::parse(text, &|corba| Mapping::Linear.to_native(corba)).expect("it is a plan")
    }

    #[test]
    fn a_plan_that_can_be_kept_is_shown_as_a_table() {
        let plan = plan(PLAN);
        let text = text(&plan.interface, &plan.admit());
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "interface eth7: 100.00 Mbit/s, packets of up to 1500 octets, driver auto",
                "",
                "CLASS    THREADS  PROCESSING                            CPU  TAKES  RESPONSE     PERIOD       NETWORK    QUEUE",
                "control  rr 72    on arrival, 2 each 5ms expected         -  0.8 %      60µs        5ms   4.93 Mbit/s  368/512",
                "video    fifo 48  40 each 10ms                            1  8.0 %     890µs       10ms  49.34 Mbit/s  368/512",
                "rest     other    on demand, at most 33 each 10.1772ms    -  3.2 %         -  10.1772ms  40.00 Mbit/s  368/512",
                "",
                "reserved: 54.28 Mbit/s of 100.00 Mbit/s, 54.3 %",
                "",
                "admitted: all promises can be kept",
            ]
        );
    }

    #[test]
    fn what_cannot_be_kept_is_told_below() {
        let plan = plan(&PLAN.replace("budget = 40", "budget = 90"));
        let text = text(&plan.interface, &plan.admit());
        let last = text.lines().last().expect("there is one");
        assert_eq!(
            last,
            "refused: class \"video\": it wants 111.02 Mbit/s of the network, 15.96 Mbit/s more than \
             the 95.07 Mbit/s that are left: 77 packets in each period would fit"
        );
        let object = object(&plan.interface, &plan.admit());
        assert_eq!(object["admitted"], false);
        assert_eq!(object["refusals"][0]["reason"], "network");
        assert_eq!(object["classes"][0]["name"], "control");
        assert_eq!(object["classes"][0]["priority"], 24_000);
    }

    #[test]
    fn what_cannot_be_at_all_has_no_table() {
        let plan = plan(&PLAN.replace("\"video\"", "\"rest\""));
        let text = text(&plan.interface, &plan.admit());
        assert!(!text.contains("THREADS"), "{text}");
        assert!(text.contains("another class has this name"), "{text}");
    }
}
