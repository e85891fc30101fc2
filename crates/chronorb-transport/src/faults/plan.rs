//! Fault plans: the kinds of faults, their probabilities, and the seed.

use std::time::Duration;

use thiserror::Error;

/// The faults that a [`Faulty`](super::Faulty) transport causes. Probabilities are from 0, never,
/// to 1, always.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// The seed of the random numbers.
    pub seed: u64,
    /// The probability that a connect is refused.
    pub refuse: f64,
    /// The probability that accepting a connection fails for lack of descriptors.
    pub exhaust: f64,
    /// The faults in octets that are received.
    pub incoming: Direction,
    /// The faults in octets that are sent.
    pub outgoing: Direction,
}

/// The faults of one direction. They are drawn for each portion that a read or write moves, or for
/// each message if the connection carries messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Direction {
    /// The added delay.
    pub delay: Option<Delay>,
    /// The probability that a read or write of a stream moves only some of the octets, at least
    /// one.
    pub cut: f64,
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message is delivered twice.
    pub duplicate: f64,
    /// The probability that a message is overtaken by the next one; it waits for that at most 5 ms.
    pub reorder: f64,
    /// The probability that a message, or the stream, is cut off. A stream ends there.
    pub truncate: f64,
    /// The probability that one bit is flipped.
    pub flip: f64,
    /// The probability that up to 16 octets are inserted at a random position.
    pub insert: f64,
    /// The probability that the direction stalls: octets are taken, but no more are delivered.
    pub stall: f64,
    /// The number of octets in this direction after which the connection ends; `None` for never.
    pub disconnect: Option<u64>,
    /// The number of messages in this direction after which the connection ends; `None` for never.
    pub disconnect_messages: Option<u64>,
}

/// A random duration between two bounds, which are included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delay {
    /// The lower bound.
    pub shortest: Duration,
    /// The upper bound.
    pub longest: Duration,
}

/// The plans of several transports, as people write them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlans {
    /// Plans by scheme; the plan without a scheme is for all others.
    plans: Vec<(Option<String>, FaultPlan)>,
}

/// A text that is not a plan of faults.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "faults {text:?}: {problem}; expected [scheme:]name=value[,…][;…], for example \
     seed=7,delay=1ms..3ms,cut=1 or diop:loss=0.01,out.delay=2ms"
)]
pub struct FaultPlanError {
    /// The part that cannot be read.
    pub text: String,
    /// The reason why it is refused.
    pub problem: String,
}

impl FaultPlans {
    /// Parses plans, several separated by `;`: `[scheme:]name=value[,…]`. A plan without a scheme
    /// is for all transports that have none of their own.
    ///
    /// The names are those of the fields of [`FaultPlan`] and [`Direction`]; the latter hold for
    /// both directions, or after `in.` or `out.` for one. Probabilities are numbers from 0 to 1,
    /// delays are such as `2ms`, `50us`, `1s`, or `1ms..3ms`.
    ///
    /// # Errors
    /// [`FaultPlanError`] names the part and the reason.
    pub fn parse(text: &str) -> Result<Self, FaultPlanError> {
        let mut plans: Vec<(Option<String>, FaultPlan)> = Vec::new();
        for one in text.split(';').map(str::trim).filter(|one| !one.is_empty()) {
            let (scheme, faults) = match one.split_once(':') {
                Some((scheme, faults)) => (Some(scheme.trim().to_ascii_lowercase()), faults),
                None => (None, one),
            };
            if plans.iter().any(|(other, _)| *other == scheme) {
                return Err(wrong(one, "there are two plans for the same transport"));
            }
            plans.push((scheme, parse_plan(faults)?));
        }
        if plans.is_empty() {
            return Err(wrong(text, "it is empty"));
        }
        Ok(Self { plans })
    }

    /// The plan of a transport, if there is one.
    #[must_use]
    pub fn of(&self, scheme: &str) -> Option<&FaultPlan> {
        let of = |wanted: Option<&str>| {
            let mut plans = self.plans.iter();
            plans.find(|(scheme, _)| scheme.as_deref() == wanted)
        };
        of(Some(scheme)).or_else(|| of(None)).map(|(_, plan)| plan)
    }

    /// Returns the schemes that the plan names.
    pub fn schemes(&self) -> impl Iterator<Item = &str> {
        self.plans
            .iter()
            .filter_map(|(scheme, _)| scheme.as_deref())
    }
}

impl FaultPlan {
    /// The name of a fault in it that only messages can meet.
    pub(super) fn fault_of_messages(&self) -> Option<&'static str> {
        [&self.incoming, &self.outgoing].iter().find_map(|way| {
            let faults = [
                ("loss", way.loss),
                ("duplicate", way.duplicate),
                ("reorder", way.reorder),
            ];
            let present = faults.iter().find(|(_, probability)| *probability > 0.0);
            present.map(|(name, _)| *name)
        })
    }
}

fn parse_plan(text: &str) -> Result<FaultPlan, FaultPlanError> {
    let mut plan = FaultPlan::default();
    let mut names = Vec::new();
    for setting in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(wrong(setting, "it is not of the form name=value"));
        };
        let (name, value) = (name.trim(), value.trim());
        if names.contains(&name) {
            return Err(wrong(setting, "it is given twice"));
        }
        names.push(name);
        set(&mut plan, name, value).map_err(|problem| wrong(setting, &problem))?;
    }
    if names.is_empty() {
        return Err(wrong(text, "no fault is named"));
    }
    Ok(plan)
}

fn set(plan: &mut FaultPlan, name: &str, value: &str) -> Result<(), String> {
    match name {
        "seed" => plan.seed = number(value)?,
        "refuse" => plan.refuse = probability(value)?,
        "exhaust" => plan.exhaust = probability(value)?,
        _ => match name.split_once('.') {
            None => {
                set_direction(&mut plan.incoming, name, value)?;
                set_direction(&mut plan.outgoing, name, value)?;
            }
            Some(("in", name)) => set_direction(&mut plan.incoming, name, value)?,
            Some(("out", name)) => set_direction(&mut plan.outgoing, name, value)?,
            Some((way, _)) => return Err(format!("{way:?} is neither `in` nor `out`")),
        },
    }
    Ok(())
}

fn set_direction(way: &mut Direction, name: &str, value: &str) -> Result<(), String> {
    let chance = match name {
        "delay" => {
            way.delay = Some(delay(value)?);
            return Ok(());
        }
        "disconnect" => {
            way.disconnect = Some(number(value)?);
            return Ok(());
        }
        "disconnect_messages" => {
            way.disconnect_messages = Some(number(value)?);
            return Ok(());
        }
        "cut" => &mut way.cut,
        "loss" => &mut way.loss,
        "duplicate" => &mut way.duplicate,
        "reorder" => &mut way.reorder,
        "truncate" => &mut way.truncate,
        "flip" => &mut way.flip,
        "insert" => &mut way.insert,
        "stall" => &mut way.stall,
        _ => return Err(format!("there is no fault {name:?}: there are {NAMES}")),
    };
    *chance = probability(value)?;
    Ok(())
}

fn number(value: &str) -> Result<u64, String> {
    value
        .parse()
        .map_err(|_| format!("{value:?} is not a whole number"))
}

fn probability(value: &str) -> Result<f64, String> {
    let number: Option<f64> = value.parse().ok();
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| format!("{value:?} is not a probability, a number from 0 to 1"))
}

fn delay(value: &str) -> Result<Delay, String> {
    let (shortest, longest) = value.split_once("..").unwrap_or((value, value));
    let (shortest, longest) = (duration(shortest)?, duration(longest)?);
    if longest < shortest {
        return Err(format!("{value:?} ends before it begins"));
    }
    Ok(Delay { shortest, longest })
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time such as 50us, 2ms or 1s, of at most an hour");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let nanoseconds: u64 = match &text[at..] {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..at].parse().map_err(|_| wrong())?;
    let time = count.checked_mul(nanoseconds).map(Duration::from_nanos);
    time.filter(|time| *time <= AN_HOUR).ok_or_else(wrong)
}

fn wrong(text: &str, problem: &str) -> FaultPlanError {
    FaultPlanError {
        text: text.to_owned(),
        problem: problem.to_owned(),
    }
}

const NAMES: &str = "seed, refuse, exhaust, and with or without `in.` or `out.` before them \
    delay, cut, loss, duplicate, reorder, truncate, flip, insert, stall, disconnect and \
    disconnect_messages";

const AN_HOUR: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_for_one_transport_or_for_all_others() {
        let plans =
            FaultPlans::parse("seed=7,cut=1,out.delay=1ms..3ms; diop:loss=0.01").expect("plans");
        let all = plans.of("iiop").expect("that of all others");
        assert_eq!(
            (all.seed, all.incoming.cut, all.outgoing.cut),
            (7, 1.0, 1.0)
        );
        assert_eq!(all.incoming.delay, None);
        let between = Delay {
            shortest: Duration::from_millis(1),
            longest: Duration::from_millis(3),
        };
        assert_eq!(all.outgoing.delay, Some(between));
        let datagrams = plans.of("diop").expect("its own");
        assert_eq!((datagrams.seed, datagrams.incoming.loss), (0, 0.01));
        assert_eq!(datagrams.fault_of_messages(), Some("loss"));
        assert_eq!(plans.schemes().collect::<Vec<_>>(), ["diop"]);
        assert_eq!(
            FaultPlans::parse("uiop:stall=1").expect("one").of("iiop"),
            None
        );
    }

    #[test]
    fn wrong_texts_are_refused_by_name() {
        for (text, problem) in [
            ("", "empty"),
            ("uiop:", "no fault"),
            ("colour=1", "colour"),
            ("loss", "name=value"),
            ("loss=2", "probability"),
            ("loss=NaN", "probability"),
            ("delay=2", "time"),
            ("delay=999999999999999999s", "time"),
            ("delay=3ms..1ms", "before it begins"),
            ("up.loss=1", "neither"),
            ("in.seed=1", "seed"),
            ("cut=1,cut=0", "twice"),
            ("cut=1;cut=0", "two plans"),
            ("disconnect=-1", "whole number"),
        ] {
            let error = FaultPlans::parse(text).expect_err(text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
