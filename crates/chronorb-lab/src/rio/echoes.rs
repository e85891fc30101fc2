//! E10 and E11: echoes, alone and beside bulk traffic.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::class::{PacketClass, Processing, of_kernel};
use super::history::OctetHistory;
use super::order::{AcceptorOrder, RioServer, SendStart, Service, Traffic};
use super::outcome::EchoRow;
use super::path::PacketPath;
use super::plan::{RioPart, RioPlan};
use super::site::RioSite;
use crate::awake::Awake;
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::stats::Record;

/// A turn of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct EchoTrial<'a> {
    pub(super) part: RioPart,
    pub(super) path: PacketPath,
    pub(super) round: u32,
    pub(super) plan: &'a RioPlan,
    /// The computing steps of the receiver for each block of bulk data.
    pub(super) steps: u32,
}

/// The figures of a turn.
#[derive(Debug)]
pub(super) struct EchoTurn {
    pub(super) row: EchoRow,
    pub(super) echoes: Record,
    /// The bulk traffic: seconds since it began, and octets in a second.
    pub(super) points: Option<Vec<(f64, f64)>>,
}

impl EchoTrial<'_> {
    /// Runs the turn, with processes of its own.
    pub(super) fn run(&self, site: &RioSite, awake: &Awake) -> Result<EchoTurn, LabError> {
        let turn = self.try_run(site, awake);
        turn.map_err(|error| error.in_trial(format!("echoes, {}", self.path.title())))
    }

    fn try_run(&self, site: &RioSite, awake: &Awake) -> Result<EchoTurn, LabError> {
        let (plan, machine) = (self.plan, &site.machine);
        let is_beside = self.part == RioPart::Company;
        let (count, pause, aside) = if is_beside {
            (plan.echoes_in_company, plan.pause, plan.aside)
        } else {
            (plan.echoes, Duration::ZERO, Duration::ZERO)
        };
        let mut traffic = vec![(machine.fifo(ECHO), Traffic::Echoes { count, pause })];
        if is_beside {
            let congestion = machine.unyielding.clone();
            traffic.push((None, Traffic::Bulk { congestion }));
        }
        let server = RioServer {
            lock_memory: machine.lock_memory,
            acceptors: self.acceptors(site),
        };
        // If both flows have one acceptor, the first connection is that of the echo.
        let (mut server, senders) = site.start(server, &traffic)?;
        let mut senders = senders.into_iter();
        let mut echo = senders.next().expect("echoes have a sender");
        let mut bulk = senders.next();
        if let Some(bulk) = &mut bulk {
            begin_bulk(bulk)?;
        }

        let begun = Monotonic::now() + LEAD;
        let from = begun + aside;
        let at_ns = from.as_nanos();
        echo.tell(&SendStart { at_ns })?;
        let patience = aside + (pause * 2 + SLOWEST) * count + WIND_DOWN;
        let echoes: Record = echo.hear(Deadline::after(patience))?;
        let to = Monotonic::now();
        let [_, server_cpu] = machine.ends();
        let unwanted = || awake.unwanted(server_cpu);
        let before = unwanted();
        sleep_until(to + aside);
        let idle = unwanted().zip(before).map(|(after, before)| after - before);
        let length = Monotonic::now().since(to).as_secs_f64();
        let busy = idle.map(|idle| 1.0 - idle.as_secs_f64() / length);

        let end = Deadline::after(WIND_DOWN);
        if let Some(bulk) = bulk {
            bulk.stop(end)?;
        }
        echo.stop(end)?;
        let histories: Vec<OctetHistory> = server.hear(end)?;
        server.finish(end)?;
        let history = histories.first();
        let mean = |from, to| Some(history?.rate(from, to)?.mean);
        // The rate until all buffers are full, at the beginning, does not count.
        let before = mean(begun + aside / 2, from);
        let after = mean(to, to + aside);
        let alone: Vec<f64> = [before, after].into_iter().flatten().collect();
        Ok(EchoTurn {
            row: EchoRow {
                part: self.part,
                path: self.path,
                round: self.round,
                latency: echoes.summary(),
                min_us: echoes.min_us(),
                bulk_alone_octets_per_s: (!alone.is_empty())
                    .then(|| alone.iter().sum::<f64>() / alone.len() as f64),
                bulk_beside_octets_per_s: mean(from, to),
                busy_percent: history.and(busy).map(|busy| busy * 100.0),
            },
            echoes,
            points: history.map(|history| history.points(begun, POINT)),
        })
    }

    /// Returns the endpoints of the server.
    fn acceptors(&self, site: &RioSite) -> Vec<AcceptorOrder> {
        let machine = &site.machine;
        let echo = Service {
            fifo: machine.fifo(ECHO),
            sink_steps: None,
        };
        let sink = (self.part == RioPart::Company).then_some(Service {
            fifo: None,
            sink_steps: Some(self.steps),
        });
        let kernel = |service| AcceptorOrder {
            endpoint: of_kernel(site.host().address),
            services: vec![service],
        };
        let rio = |name, port, processing, priority: Option<u8>, services: &[Service]| {
            let fifo = priority.and_then(|priority| machine.fifo(priority));
            let class = PacketClass::of_flow(name, processing, fifo);
            AcceptorOrder {
                endpoint: class.endpoint(&site.host(), port),
                services: services.to_vec(),
            }
        };
        let echo_by = |processing, priority| vec![rio("echo", PORT, processing, priority, &[echo])];
        match self.path {
            PacketPath::Kernel => [echo].into_iter().chain(sink).map(kernel).collect(),
            PacketPath::Arrival => echo_by(Processing::Arrival, Some(ECHO)),
            PacketPath::Scheduled => echo_by(Processing::Demand, Some(ECHO)),
            PacketPath::WrongClass => echo_by(Processing::Demand, None),
            PacketPath::OneClass => {
                let both: Vec<_> = [echo].into_iter().chain(sink).collect();
                let priority = Some(BEFORE_ALL);
                vec![rio("all", PORT, Processing::Demand, priority, &both)]
            }
            PacketPath::Classes => {
                let mut classes = echo_by(Processing::Demand, Some(ECHO));
                let bulk = |sink| rio("bulk", PORT + 1, Processing::Demand, None, &[sink]);
                classes.extend(sink.map(bulk));
                classes
            }
        }
    }
}

/// Starts bulk data, and waits until it flows: on a busy machine that may take longer than echoes
/// do.
fn begin_bulk(sender: &mut Child) -> Result<(), LabError> {
    let at_ns = Monotonic::now().as_nanos();
    sender.tell(&SendStart { at_ns })?;
    let Ready {} = sender.hear(Deadline::after(WIND_DOWN))?;
    Ok(())
}

/// The `SCHED_FIFO` priority of the threads that send echoes, and of those that send them back.
const ECHO: u8 = 50;
/// The priority of processing that goes before all threads.
const BEFORE_ALL: u8 = 80;
/// The port of RIO; nothing else listens on the host.
pub(super) const PORT: u16 = 7_001;
/// The time from the orders to the beginning.
const LEAD: Duration = Duration::from_millis(50);
/// The longest mean time of an echo.
const SLOWEST: Duration = Duration::from_millis(20);
pub(super) const WIND_DOWN: Duration = Duration::from_secs(20);
/// The span of a point of the curve of bulk traffic.
const POINT: Duration = Duration::from_millis(50);
