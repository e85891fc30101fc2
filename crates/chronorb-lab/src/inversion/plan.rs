//! What is run, and how much of it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::architecture::Architecture;
use super::trial::Site;
use crate::bench::Placement;

/// How often clients call, and what the server does for them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As in the paper: 20 and 10 calls a second, 4,000 by each client, which do nothing but cube.
    Paper,
    /// The same for some seconds.
    Short,
    /// Rates and work for which fifty low-priority clients keep the server busy.
    Loaded,
    /// The same where client and server share one processor, and so busy is that.
    OneCpu,
    /// The low-priority clients call back to back.
    Saturated,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Paper,
        Self::Short,
        Self::Loaded,
        Self::OneCpu,
        Self::Saturated,
    ];

    /// Its name on the command line and in figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Short => "short",
            Self::Loaded => "loaded",
            Self::OneCpu => "one-cpu",
            Self::Saturated => "saturated",
        }
    }

    /// From one call to the next; nothing where that depends on the machine.
    pub(crate) const fn periods(self) -> Option<Periods> {
        match self {
            Self::Paper | Self::Short => Some(Periods {
                high: Duration::from_millis(50),
                low: Duration::from_millis(100),
            }),
            Self::Loaded | Self::OneCpu => None,
            Self::Saturated => Some(Periods {
                high: Duration::from_millis(5),
                low: Duration::ZERO,
            }),
        }
    }

    /// On which CPUs client and server run, where nothing else is asked for.
    pub(super) const fn place(self) -> Place {
        match self {
            Self::OneCpu => Place::Together,
            Self::Paper | Self::Short | Self::Loaded | Self::Saturated => Place::Apart,
        }
    }

    /// Whether the servants work before they cube.
    pub(super) const fn works(self) -> bool {
        matches!(self, Self::Loaded | Self::OneCpu | Self::Saturated)
    }

    fn series(self) -> Series {
        let (low_clients, seconds, calls) = match self {
            Self::Paper => (
                (0..=10).map(|step| (step * 5).max(1)).collect(),
                400,
                PAPER_CALLS,
            ),
            Self::Short => (vec![1, 10, 25, 50], 4, 0),
            Self::Loaded => (vec![1, 5, 10, 20, 30, 40, 50], 10, 0),
            Self::OneCpu => (vec![1, 10, 25, 50], 10, 0),
            Self::Saturated => (vec![1, 10, 25, 50], 10, 0),
        };
        Series {
            mode: self,
            low_clients,
            length: Duration::from_secs(seconds),
            calls,
        }
    }

    /// Less of it.
    fn short_series(self) -> Series {
        let (low_clients, seconds) = match self {
            Self::OneCpu | Self::Saturated => (vec![1, 50], 2),
            Self::Paper | Self::Short | Self::Loaded => (vec![1, 10, 25, 50], 3),
        };
        Series {
            low_clients,
            length: Duration::from_secs(seconds),
            calls: 0,
            ..self.series()
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|mode| mode.name() == text);
        named.ok_or_else(|| format!("there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// How far apart the calls of a client are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Periods {
    /// Of the high-priority client.
    pub(crate) high: Duration,
    /// Of each low-priority client; zero for calls back to back.
    pub(crate) low: Duration,
}

/// On which CPUs client and server run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The client on the first CPU, the server on the last.
    #[default]
    Apart,
    /// Both on the last.
    Together,
    /// Wherever the kernel puts their threads.
    Free,
}

impl Place {
    const ALL: [Self; 3] = [Self::Apart, Self::Together, Self::Free];

    const fn name(self) -> &'static str {
        match self {
            Self::Apart => "apart",
            Self::Together => "together",
            Self::Free => "free",
        }
    }

    pub(crate) const fn placement(self) -> Placement {
        match self {
            Self::Apart => Placement::AcrossCpus,
            Self::Together => Placement::SameCpu,
            Self::Free => Placement::Unpinned,
        }
    }

    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Apart => {
                "The client had the first processor, and the server the last one for itself."
            }
            Self::Together => "Client and server shared one processor.",
            Self::Free => "Client and server ran on whichever processors the kernel chose.",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|place| place.name() == text);
        named.ok_or_else(|| format!("there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// A mode with one number of low-priority clients after the other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Series {
    /// The mode.
    pub mode: Mode,
    /// How many low-priority clients, in rising order.
    pub low_clients: Vec<u32>,
    /// How long calls are due.
    pub length: Duration,
    /// How many calls each client makes, whatever the length; 0 for as many as are due in it.
    pub calls: u64,
}

/// What is run, and how much of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// Which architectures.
    pub architectures: Vec<Architecture>,
    /// Which modes, with how many clients, and for how long.
    pub series: Vec<Series>,
    /// On which CPUs; nothing for those of each mode.
    pub place: Option<Place>,
    /// Whether client and server are in network namespaces of their own, with a switch between them.
    pub namespaces: bool,
    /// Whether processors are kept from sleeping.
    pub awake: bool,
    /// What a servant computes for each call, in the modes that are not the paper's.
    pub work: Duration,
    /// How many hundredths of its processor the requests of fifty low-priority clients shall take with the real-time
    /// architecture, in the modes `loaded` and `one-cpu`.
    pub utilisation_percent: u32,
    /// The threads of the server for each of its two servants.
    pub threads: u32,
    /// How long the server is saturated to find out what a request takes.
    pub calibration: Duration,
}

impl Plan {
    /// Some modes; of each as much as shows the same in little time, where that is wanted.
    #[must_use]
    pub fn of(modes: &[Mode], short: bool) -> Self {
        let series = modes.iter().map(|mode| match short {
            true => mode.short_series(),
            false => mode.series(),
        });
        Self {
            architectures: Architecture::ALL.to_vec(),
            series: series.collect(),
            place: None,
            namespaces: false,
            awake: true,
            work: DEFAULT_WORK,
            utilisation_percent: DEFAULT_UTILISATION,
            threads: 1,
            calibration: Duration::from_secs(1),
        }
    }

    /// All modes but those at the rates of the paper, in some twenty minutes.
    #[must_use]
    pub fn full() -> Self {
        Self::of(&MODES, false)
    }

    /// The same in some minutes.
    #[must_use]
    pub fn short() -> Self {
        Self::of(&MODES, true)
    }

    /// How long it takes, about.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length_of(&self.architectures)
    }

    /// How long it takes with these architectures, or others who have their turns, about.
    pub(crate) fn length_of<T>(&self, takers: &[T]) -> Duration {
        let takers = u32::try_from(takers.len()).unwrap_or(u32::MAX);
        let series = self.series.iter().map(|series| {
            let points = u32::try_from(series.low_clients.len()).unwrap_or(u32::MAX);
            (series.length + AROUND) * points * takers
        });
        let calibrations = self.series.iter();
        let calibrations = calibrations.filter(|series| series.mode.periods().is_none());
        let each = self.calibration + AROUND;
        series.sum::<Duration>() + each * u32::try_from(calibrations.count()).unwrap_or(u32::MAX)
    }

    /// The architectures that can be had at a site.
    pub(super) fn taking_part(&self, site: &Site) -> Vec<Architecture> {
        let takes_part = |of: &Architecture| !of.is_of_omniorb() || site.omniorb.is_some();
        self.architectures
            .iter()
            .copied()
            .filter(takes_part)
            .collect()
    }

    /// The command line that runs it.
    #[must_use]
    pub fn command(&self) -> String {
        let mut words = vec!["chronorb lab inversion".to_owned()];
        if self.architectures != Architecture::ALL {
            let names = self.architectures.iter();
            words.extend(names.map(|of| format!("--architecture {of}")));
        }
        words.extend(self.series.iter().map(|of| format!("--mode {}", of.mode)));
        if let Some(series) = self.series.first() {
            let clients: Vec<_> = series.low_clients.iter().map(u32::to_string).collect();
            words.push(format!("--clients {}", clients.join(",")));
            if series.calls == 0 {
                words.push(format!("--seconds {}", series.length.as_secs()));
            }
        }
        words.extend(self.place.map(|place| format!("--place {place}")));
        if self.namespaces {
            words.push("--namespaces".to_owned());
        }
        if !self.awake {
            words.push("--let-sleep".to_owned());
        }
        words.push(format!("--work {}", self.work.as_micros()));
        words.push(format!("--utilisation {}", self.utilisation_percent));
        words.join(" ")
    }

    /// On which CPUs client and server run in a mode.
    pub(super) fn place_in(&self, mode: Mode) -> Place {
        self.place.unwrap_or_else(|| mode.place())
    }

    /// The periods at which so many low-priority clients together keep a processor busy as wanted, where one request
    /// takes so much of its time. As in the paper the high-priority client calls twice as often as another one, nearly:
    /// they do not keep step, so that it finds the others at any point of what they do.
    pub(super) fn loaded_periods(&self, request: Duration) -> Periods {
        let share = f64::from(self.utilisation_percent.max(1)) / 100.0;
        let low = request.mul_f64(f64::from(MOST_CLIENTS) / share);
        Periods {
            high: low.div_f64(OUT_OF_STEP),
            low,
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::full()
    }
}

/// The clients that keep the server busy in the loaded mode, and when a rate is found.
pub(super) const MOST_CLIENTS: u32 = 50;
const MODES: [Mode; 3] = [Mode::Loaded, Mode::OneCpu, Mode::Saturated];
/// Several times what a request takes beside, so that the server has more to do than the client.
const DEFAULT_WORK: Duration = Duration::from_micros(100);
/// What conventional architectures take beyond that of the real-time one is to leave something of a processor.
const DEFAULT_UTILISATION: u32 = 65;
const PAPER_CALLS: u64 = 4_000;
/// What starting and ending the processes of a trial takes, about.
const AROUND: Duration = Duration::from_millis(1_200);
/// How often the high-priority client calls while a low-priority one does once.
const OUT_OF_STEP: f64 = 1.93;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_figures() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        for place in Place::ALL {
            assert_eq!(place.name().parse(), Ok(place));
            assert_eq!(serde_json::to_value(place).unwrap(), place.name());
        }
    }

    #[test]
    fn a_full_plan_has_as_many_calls_as_figures_need_and_a_short_one_is_short() {
        let request = DEFAULT_WORK.mul_f64(1.2);
        for series in Plan::full().series {
            let periods = series.mode.periods();
            let periods = periods.unwrap_or_else(|| Plan::full().loaded_periods(request));
            let calls = series.length.as_nanos() / periods.high.as_nanos();
            assert!(calls >= 2_000, "{calls}");
        }
        assert!(Plan::short().length() <= Duration::from_secs(240));
        let paper = Plan::of(&[Mode::Paper], false);
        assert_eq!(
            paper.series[0].low_clients,
            [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
        );
        assert!(paper.length() > Duration::from_secs(4 * 3600));
    }

    #[test]
    fn the_rate_of_the_loaded_mode_keeps_the_server_busy_and_no_step() {
        let periods = Plan::full().loaded_periods(Duration::from_micros(30));
        let share = 30e-6 * 50.0 / periods.low.as_secs_f64();
        assert!((0.64..=0.66).contains(&share), "{share}");
        let ratio = periods.low.as_secs_f64() / periods.high.as_secs_f64();
        assert!((1.9..1.95).contains(&ratio), "{ratio}");
    }
}
