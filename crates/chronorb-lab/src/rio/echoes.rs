//! E10 and E11: echoes, alone and beside bulk traffic.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};

use super::class::{Class, FEW, Processing, of_kernel};
use super::course::Course;
use super::order::{
    Door, EchoOrder, EchoRun, Echoed, SendRun, SenderOrder, Served, ServerOrder, Service,
};
use super::part::Part;
use super::plan::Plan;
use super::site::Site;
use super::way::Way;
use crate::awake::Awake;
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};
use crate::stats::Record;

/// What is tried: a turn of one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) way: Way,
    pub(super) echoes: u32,
    /// From an answer to the next message, about.
    pub(super) pause: Duration,
    pub(super) bulk: Option<Bulk>,
}

/// Traffic beside echoes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bulk {
    /// How long it is alone, before the echoes and after.
    pub(super) aside: Duration,
    /// What the receiver computes for each block, in steps.
    pub(super) steps: u32,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) echoes: Record,
    pub(super) bulk: Option<Flood>,
}

/// What came of traffic beside echoes.
#[derive(Debug)]
pub(super) struct Flood {
    /// Octets in a second while it was alone; nothing where that was too short to be measured.
    pub(super) alone: Option<f64>,
    /// And while there were echoes.
    pub(super) beside: Option<f64>,
    /// Which part of the server's CPU it took while it was alone, where that is known.
    pub(super) busy: Option<f64>,
    /// Seconds since it began, and octets in a second.
    pub(super) points: Vec<(f64, f64)>,
}

impl Trial {
    /// A turn of a part.
    pub(super) fn of(part: Part, way: Way, plan: &Plan, steps: u32) -> Self {
        match part {
            Part::Company => Self {
                way,
                echoes: plan.echoes_in_company,
                pause: plan.pause,
                bulk: Some(Bulk {
                    aside: plan.aside,
                    steps,
                }),
            },
            _ => Self {
                way,
                echoes: plan.echoes,
                pause: Duration::ZERO,
                bulk: None,
            },
        }
    }

    /// Does it, with processes of its own.
    pub(super) fn run(&self, site: &Site, awake: &Awake) -> Result<Turn, LabError> {
        let named = |source| LabError::Trial {
            trial: format!("echoes, {}", self.way.title()),
            source,
        };
        let (mut server, serving) = site
            .serve(ServerOrder {
                lock_memory: site.machine.lock_memory,
                doors: self.doors(site),
            })
            .map_err(named)?;
        let (Some(first), Some(last)) = (serving.doors.first(), serving.doors.last()) else {
            return Err(LabError::work("listening")("the server has no door"));
        };
        // Where both flows have one door, who comes first is the echo.
        let mut echo = site
            .echo(EchoOrder {
                to: *first,
                fifo: site.machine.fifo(ECHO),
                lock_memory: site.machine.lock_memory,
                warm_up: WARM_UP,
            })
            .map_err(named)?;
        let flood = self.bulk.map(|_| {
            site.send(SenderOrder {
                to: *last,
                fifo: None,
                congestion: site.machine.unyielding.clone(),
            })
        });
        let mut flood = flood.transpose().map_err(named)?;
        let everyone: Vec<&Child> = [Some(&echo), flood.as_ref()]
            .into_iter()
            .flatten()
            .collect();
        site.put_in_places(&server, &everyone)?;

        let [_, server_cpu] = site.machine.ends();
        if let Some(flood) = &mut flood {
            begin_flood(flood).map_err(named)?;
        }
        let begun = Monotonic::now() + LEAD;
        let times = self
            .course(begun, &mut echo, || awake.unwanted(server_cpu))
            .map_err(named)?;
        let end = Deadline::after(WIND_DOWN);
        if let Some(flood) = flood {
            flood.stop(end).map_err(named)?;
        }
        echo.stop(end).map_err(named)?;
        let Served { courses } = server.hear(end).map_err(named)?;
        server.finish(end).map_err(named)?;
        let bulk = courses.first().map(|course| times.flood(begun, course));
        Ok(Turn {
            echoes: times.echoes,
            bulk,
        })
    }

    /// Lets echoes be sent, and returns what they took, and when.
    fn course(
        &self,
        begun: Monotonic,
        echo: &mut Child,
        unwanted: impl Fn() -> Option<Duration>,
    ) -> Result<Times, ProcessError> {
        let aside = self.bulk.map_or(Duration::ZERO, |bulk| bulk.aside);
        let from = begun + aside;
        echo.tell(&EchoRun {
            at_ns: from.as_nanos(),
            echoes: self.echoes,
            pause: self.pause,
        })?;
        let patience = aside + (self.pause * 2 + SLOWEST) * self.echoes + WIND_DOWN;
        let Echoed { record } = echo.hear(Deadline::after(patience))?;
        let to = Monotonic::now();
        let before = unwanted();
        chronorb_rt::sleep_until(to + aside);
        let left = unwanted().zip(before).map(|(after, before)| after - before);
        let all = Monotonic::now().since(to);
        Ok(Times {
            echoes: record,
            from,
            to,
            end: to + aside,
            busy: left.map(|left| 1.0 - left.as_secs_f64() / all.as_secs_f64()),
        })
    }

    /// Where the server listens.
    fn doors(&self, site: &Site) -> Vec<Door> {
        let machine = &site.machine;
        let echo = Service::Echo {
            fifo: machine.fifo(ECHO),
        };
        let sink = self.bulk.map(|bulk| Service::Sink {
            fifo: None,
            steps: bulk.steps,
        });
        let kernel = |service| Door {
            endpoint: of_kernel(site.host()),
            services: vec![service],
        };
        let rio = |name, port, (processing, fifo), services| {
            let class = Class {
                name,
                processing,
                fifo,
                connections: FEW,
                buffer: None,
            };
            Door {
                endpoint: class.endpoint(&site.place(), port),
                services,
            }
        };
        let scheduled = (Processing::Demand, machine.fifo(ECHO));
        let ordinary = (Processing::Demand, None);
        let before_all = (Processing::Demand, machine.fifo(BEFORE_ALL));
        let arrival = (Processing::Arrival, machine.fifo(ECHO));
        match self.way {
            Way::Kernel => [echo].into_iter().chain(sink).map(kernel).collect(),
            Way::Arrival => vec![rio("echo", PORT, arrival, vec![echo])],
            Way::Scheduled => vec![rio("echo", PORT, scheduled, vec![echo])],
            Way::WrongClass => vec![rio("echo", PORT, ordinary, vec![echo])],
            Way::OneClass => {
                let both = [echo].into_iter().chain(sink).collect();
                vec![rio("all", PORT, before_all, both)]
            }
            Way::Classes => {
                let bulk = sink.map(|sink| rio("bulk", PORT + 1, ordinary, vec![sink]));
                let echo = rio("echo", PORT, scheduled, vec![echo]);
                [echo].into_iter().chain(bulk).collect()
            }
        }
    }
}

/// Lets bulk data be sent, and waits until it flows: on a busy machine that may take longer than echoes do.
fn begin_flood(flood: &mut Child) -> Result<(), ProcessError> {
    flood.tell(&SendRun {
        at_ns: Monotonic::now().as_nanos(),
    })?;
    let Ready {} = flood.hear(Deadline::after(WIND_DOWN))?;
    Ok(())
}

/// When what was.
#[derive(Debug)]
struct Times {
    echoes: Record,
    /// From when to when there were echoes.
    from: Monotonic,
    to: Monotonic,
    end: Monotonic,
    /// Which part of the server's CPU was in use after them.
    busy: Option<f64>,
}

impl Times {
    fn flood(&self, begun: Monotonic, course: &Course) -> Flood {
        let mean = |from, to| course.rate(from, to).map(|rate| rate.mean);
        // What is quick at the beginning, until all buffers are full, is not counted.
        let before = mean(begun + (self.from.since(begun)) / 2, self.from);
        let after = mean(self.to, self.end);
        let alone: Vec<f64> = [before, after].into_iter().flatten().collect();
        Flood {
            alone: (!alone.is_empty()).then(|| alone.iter().sum::<f64>() / alone.len() as f64),
            beside: mean(self.from, self.to),
            busy: self.busy,
            points: course.points(begun, POINT),
        }
    }
}

/// The `SCHED_FIFO` priority of who sends echoes and who sends them back.
const ECHO: u8 = 50;
/// That of processing which goes before everybody.
const BEFORE_ALL: u8 = 80;
/// Where RIO listens; there is nobody else on the host.
pub(super) const PORT: u16 = 7_001;
const WARM_UP: u32 = 50;
/// From the telling of all to the beginning.
const LEAD: Duration = Duration::from_millis(50);
/// How long an echo may take on average.
const SLOWEST: Duration = Duration::from_millis(20);
pub(super) const WIND_DOWN: Duration = Duration::from_secs(20);
/// How much time a point of the plot of bulk traffic stands for.
const POINT: Duration = Duration::from_millis(50);
