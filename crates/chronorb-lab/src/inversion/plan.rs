//! The modes of the experiment, and the plan of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::architecture::Architecture;
use super::trial::InversionSite;
use crate::bench::Placement;
use crate::named::by_name;

/// The rates of the clients, and the work of the servants.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As in the paper: 20 and 10 calls a second, 4,000 by each client, which do nothing but cube.
    Paper,
    /// The same rates for some seconds.
    Short,
    /// Rates and work for which fifty low-priority clients keep the server busy.
    Loaded,
    /// The same on one processor, which client and server share and keep as busy.
    OneCpu,
    /// The low-priority clients call back to back.
    Saturated,
}

/// The settings of a mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModeSettings {
    pub(super) heading: &'static str,
    /// The periods of the clients; none where they depend on the machine.
    pub(super) periods: Option<Periods>,
    /// The processors, where the plan does not name others.
    place: CpuPlacement,
    /// Whether the servants compute before they cube.
    pub(super) works: bool,
    low_clients: &'static [u32],
    seconds: u64,
    /// The number of calls of each client, or 0 for as many as are due.
    calls: u64,
    /// The numbers of clients and the seconds of a short run.
    short: (&'static [u32], u64),
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

    /// Returns the periods of the clients; none where they depend on the machine.
    pub(crate) const fn periods(self) -> Option<Periods> {
        self.settings().periods
    }

    pub(super) const fn settings(self) -> ModeSettings {
        const FEW: &[u32] = &[1, 10, 25, 50];
        const PAPER: ModeSettings = ModeSettings {
            heading: "Paper: the rates and the number of calls of the paper",
            periods: Some(Periods {
                high: Duration::from_millis(50),
                low: Duration::from_millis(100),
            }),
            place: CpuPlacement::Apart,
            works: false,
            low_clients: &[1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50],
            seconds: 400,
            calls: 4_000,
            short: (FEW, 3),
        };
        const LOADED: ModeSettings = ModeSettings {
            heading: "Loaded: rates at which fifty low-priority clients keep the server busy",
            periods: None,
            works: true,
            low_clients: &[1, 5, 10, 20, 30, 40, 50],
            seconds: 10,
            calls: 0,
            ..PAPER
        };
        match self {
            Self::Paper => PAPER,
            Self::Short => ModeSettings {
                heading: "Short: the rates of the paper, for some seconds",
                low_clients: FEW,
                seconds: 4,
                calls: 0,
                ..PAPER
            },
            Self::Loaded => LOADED,
            Self::OneCpu => ModeSettings {
                heading: "One-cpu: client and server on one processor, as busy as in loaded",
                place: CpuPlacement::Together,
                low_clients: FEW,
                short: (&[1, 50], 2),
                ..LOADED
            },
            Self::Saturated => ModeSettings {
                heading: "Saturated: low-priority clients call back to back",
                periods: Some(BACK_TO_BACK),
                low_clients: FEW,
                short: (&[1, 50], 2),
                ..LOADED
            },
        }
    }

    fn series(self, is_short: bool) -> InversionSeries {
        let settings = self.settings();
        let (low_clients, seconds, calls) = if is_short {
            (settings.short.0, settings.short.1, 0)
        } else {
            (settings.low_clients, settings.seconds, settings.calls)
        };
        InversionSeries {
            mode: self,
            low_clients: low_clients.to_vec(),
            length: Duration::from_secs(seconds),
            calls,
        }
    }
}

/// The times from one call of a client to its next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Periods {
    /// The period of the high-priority client.
    pub(crate) high: Duration,
    /// The period of each low-priority client; zero for calls back to back.
    pub(crate) low: Duration,
}

/// The CPUs of client and server.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPlacement {
    /// The client on the first CPU, the server on the last.
    #[default]
    Apart,
    /// Both on the last CPU.
    Together,
    /// The kernel's choice for each thread.
    Free,
}

impl CpuPlacement {
    const ALL: [Self; 3] = [Self::Apart, Self::Together, Self::Free];

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

by_name!(Mode, CpuPlacement);

/// A mode with one number of low-priority clients after the other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct InversionSeries {
    /// The mode.
    pub mode: Mode,
    /// The numbers of low-priority clients, in rising order.
    pub low_clients: Vec<u32>,
    /// The time in which calls are due.
    pub length: Duration,
    /// The number of calls of each client, whatever the length; 0 for as many as are due in it.
    pub calls: u64,
}

/// The architectures and modes of a run, and its settings.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InversionPlan {
    /// The architectures.
    pub architectures: Vec<Architecture>,
    /// The modes, each with numbers of clients and a duration.
    pub series: Vec<InversionSeries>,
    /// The CPUs of client and server; none for those of each mode.
    pub place: Option<CpuPlacement>,
    /// Puts client and server into network namespaces of their own, with a switch between them.
    pub namespaces: bool,
    /// Keeps processors from sleeping.
    pub awake: bool,
    /// The computing time of a call, in the modes that are not the paper's.
    pub work: Duration,
    /// The share of its processor, in per cent, that the requests of fifty low-priority clients
    /// take with the real-time architecture, in the modes `loaded` and `one-cpu`.
    pub utilisation_percent: u32,
    /// The threads of the server for each of its two servants.
    pub threads: u32,
    /// The time for which the server is saturated to measure the cost of a request.
    pub calibration: Duration,
    /// The time from the last connection to the start, in which all threads prepare.
    #[serde(skip, default = "InversionPlan::full_lead")]
    pub lead: Duration,
}

impl InversionPlan {
    /// Some modes, in full or in little time.
    #[must_use]
    pub fn of(modes: &[Mode], short: bool) -> Self {
        Self {
            architectures: Architecture::ALL.to_vec(),
            series: modes.iter().map(|mode| mode.series(short)).collect(),
            place: None,
            namespaces: false,
            awake: true,
            work: DEFAULT_WORK,
            utilisation_percent: DEFAULT_UTILISATION,
            threads: 1,
            calibration: Duration::from_secs(1),
            lead: Self::full_lead(),
        }
    }

    /// Returns a time in which threads prepare on a busy machine too.
    const fn full_lead() -> Duration {
        Duration::from_millis(500)
    }

    /// All modes but those at the rates of the paper, in some twenty minutes.
    #[must_use]
    pub fn full() -> Self {
        Self::of(&MODES, false)
    }

    /// The same modes in some minutes.
    #[must_use]
    pub fn short() -> Self {
        Self::of(&MODES, true)
    }

    /// The approximate duration of the run.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length_of(self.architectures.len())
    }

    /// Returns the approximate duration with so many systems that take turns.
    pub(crate) fn length_of(&self, systems: usize) -> Duration {
        let series = self.series.iter().map(|series| {
            let trials = series.low_clients.len() * systems;
            let calibrations = usize::from(series.mode.periods().is_none());
            let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
            (series.length + AROUND) * count(trials)
                + (self.calibration + AROUND) * count(calibrations)
        });
        series.sum()
    }

    /// Returns the architectures that a site can run.
    pub(super) fn taking_part(&self, site: &InversionSite) -> Vec<Architecture> {
        let all = self.architectures.iter().copied();
        all.filter(|of| !of.is_of_omniorb() || site.omniorb.is_some())
            .collect()
    }

    /// The command line of the run.
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
        words.extend(self.namespaces.then(|| "--namespaces".to_owned()));
        words.extend((!self.awake).then(|| "--let-sleep".to_owned()));
        words.push(format!("--work {}", self.work.as_micros()));
        words.push(format!("--utilisation {}", self.utilisation_percent));
        words.join(" ")
    }

    /// Returns the CPUs of client and server in a mode.
    pub(super) fn place_in(&self, mode: Mode) -> CpuPlacement {
        self.place.unwrap_or_else(|| mode.settings().place)
    }

    /// Returns the periods at which fifty low-priority clients keep a processor as busy as planned,
    /// if one request takes so much of its time.
    ///
    /// As in the paper the high-priority client calls nearly twice as often as the others. The
    /// periods are no multiples of each other, so it meets the others at any point of their work.
    pub(super) fn loaded_periods(&self, request: Duration) -> Periods {
        let share = f64::from(self.utilisation_percent.max(1)) / 100.0;
        let low = request.mul_f64(f64::from(MOST_CLIENTS) / share);
        Periods {
            high: low.div_f64(OUT_OF_STEP),
            low,
        }
    }
}

impl Default for InversionPlan {
    fn default() -> Self {
        Self::full()
    }
}

/// The periods of low-priority clients that call back to back.
pub(super) const BACK_TO_BACK: Periods = Periods {
    high: Duration::from_millis(5),
    low: Duration::ZERO,
};
/// The clients that keep the server busy in the loaded mode and during calibration.
pub(super) const MOST_CLIENTS: u32 = 50;
const MODES: [Mode; 3] = [Mode::Loaded, Mode::OneCpu, Mode::Saturated];
/// Several times the other costs of a request, so that the server has more to do than the client.
const DEFAULT_WORK: Duration = Duration::from_micros(100);
/// Conventional architectures take more than the real-time one, and still leave some time.
const DEFAULT_UTILISATION: u32 = 65;
/// The approximate time to start and to end the processes of a trial.
const AROUND: Duration = Duration::from_millis(1_200);
/// The calls of the high-priority client for each call of a low-priority one.
const OUT_OF_STEP: f64 = 1.93;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_by_their_names_in_figures() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("one-cpu".parse(), Ok(Mode::OneCpu));
        assert_eq!(CpuPlacement::Apart.to_string(), "apart");
        let error = "some".parse::<CpuPlacement>().unwrap_err();
        assert_eq!(error, "there are apart, together, free");
    }

    #[test]
    fn a_full_plan_has_as_many_calls_as_figures_need_and_a_short_one_is_short() {
        let request = DEFAULT_WORK.mul_f64(1.2);
        for series in InversionPlan::full().series {
            let periods = series.mode.periods();
            let periods = periods.unwrap_or_else(|| InversionPlan::full().loaded_periods(request));
            let calls = series.length.as_nanos() / periods.high.as_nanos();
            assert!(calls >= 2_000, "{calls}");
        }
        assert!(InversionPlan::short().length() <= Duration::from_secs(240));
        let paper = InversionPlan::of(&[Mode::Paper], false);
        assert!(paper.length() > Duration::from_secs(4 * 3600));
    }

    #[test]
    fn the_rate_of_the_loaded_mode_keeps_the_server_busy_and_no_step() {
        let periods = InversionPlan::full().loaded_periods(Duration::from_micros(30));
        let share = 30e-6 * 50.0 / periods.low.as_secs_f64();
        assert!((0.64..=0.66).contains(&share), "{share}");
        let ratio = periods.low.as_secs_f64() / periods.high.as_secs_f64();
        assert!((1.9..1.95).contains(&ratio), "{ratio}");
    }
}
