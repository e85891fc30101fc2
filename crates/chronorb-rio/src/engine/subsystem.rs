//! An interface, and its open classes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use chronorb_rt::{PiMutex, Thread, ThreadBuilder, reserve_for};

use super::class::ClassEngine;
use super::config::{ClassConfig, ClassProcessing, Urgency};
use super::control::{Control, Order};
use super::error::ClassOpenError;
use super::open::{Class, no_descriptor};
use super::ports::{GuardedPorts, Ports, ReservedPort};
use super::reservations::{AdmittedReservations, ReservationGuard};
use super::thread;
use crate::class::{ClassId, MAX_CLASSES};
use crate::driver::{Driver, DriverError, Link};
use crate::neighbours::{KernelNeighbours, Neighbours};
use crate::plan::Reservation;
use crate::status::{ClassCounters, Page};

/// The subsystem of one network interface.
///
/// On drop, it waits until the peers have acknowledged all sent data, at most as long as
/// connections linger.
#[derive(Debug)]
pub(crate) struct Subsystem {
    driver: Arc<dyn Driver>,
    ports: Arc<dyn Ports>,
    neighbours: Arc<dyn Neighbours>,
    taken: Arc<PiMutex<[bool; MAX_CLASSES]>>,
    reservations: Arc<AdmittedReservations>,
    threads: PiMutex<Vec<(Thread<()>, Arc<Control>)>>,
    /// The page with the counters that other processes can read. Created with the first class.
    page: PiMutex<Option<Page>>,
}

impl Subsystem {
    /// Creates the subsystem of a driver's interface.
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        ports: Arc<dyn Ports>,
        neighbours: Arc<dyn Neighbours>,
    ) -> Self {
        Self {
            driver,
            ports,
            neighbours,
            taken: Arc::default(),
            reservations: Arc::default(),
            threads: PiMutex::new(Vec::new()),
            page: PiMutex::new(None),
        }
    }

    /// Creates the subsystem of an interface of this host, with the ports and neighbours of the
    /// calling thread's network namespace.
    ///
    /// # Errors
    /// [`DriverError`] if the namespace cannot be opened.
    pub(crate) fn of_host(driver: Arc<dyn Driver>) -> Result<Self, DriverError> {
        let neighbours = KernelNeighbours::of(driver.link().index)?;
        let ports = GuardedPorts::here()?;
        Ok(Self::new(driver, Arc::new(ports), Arc::new(neighbours)))
    }

    /// Returns the interface.
    pub(crate) fn link(&self) -> &Link {
        self.driver.link()
    }

    /// Opens a class with its thread, if the reservations of all open classes on this interface can
    /// still be kept.
    ///
    /// The check is that of a [plan](crate::plan::admit), as far as classes specify the values:
    /// queues by their connections and buffers; processors by budgets, caps and
    /// [expected](ClassConfig::expected) packets, priorities and CPUs, if the
    /// [cost](ClassConfig::cost) of packets is known. In any case, no unbounded class may precede a
    /// reservation. The rate of the interface, other threads, and classes of other processes are
    /// not considered.
    ///
    /// # Errors
    /// [`ClassOpenError`]; nothing is changed then.
    pub(crate) fn open(&self, config: ClassConfig) -> Result<Arc<Class>, ClassOpenError> {
        check(&config, self.driver.link())?;
        let number = ClassNumber::take(&self.taken).ok_or(ClassOpenError::TooManyClasses)?;
        let (link, reservation) = (self.driver.link(), Reservation::from(&config));
        let guard = self.reservations.admit(link, number.id, reservation)?;
        self.open_admitted(config, number, guard)
    }

    /// Opens a class of a plan that was [admitted](crate::plan::admit) as a whole, without a
    /// further check. Classes without a plan have to fit beside it.
    ///
    /// # Errors
    /// [`ClassOpenError`]; nothing is changed then.
    pub(crate) fn open_planned(
        &self,
        config: ClassConfig,
        reservation: &Reservation,
    ) -> Result<Arc<Class>, ClassOpenError> {
        check(&config, self.driver.link())?;
        let number = ClassNumber::take(&self.taken).ok_or(ClassOpenError::TooManyClasses)?;
        let reservation = Reservation {
            name: config.name.clone(),
            ..reservation.clone()
        };
        let guard = self.reservations.give(number.id, reservation);
        self.open_admitted(config, number, guard)
    }

    fn open_admitted(
        &self,
        config: ClassConfig,
        number: ClassNumber,
        guard: ReservationGuard,
    ) -> Result<Arc<Class>, ClassOpenError> {
        let mut path = self.driver.open(number.id, &[], config.queue)?;
        let ordered = path.transmitter.set_priority(config.packet_priority);
        ordered.map_err(|error| ClassOpenError::Failed {
            what: "giving packets their priority",
            source: error.0,
        })?;
        let engine = ClassEngine::new(&config, self.driver.link(), path).map_err(no_descriptor)?;
        let status = self.status(number.id, &config).map_err(no_descriptor)?;
        let engine = Arc::new(engine.with_publisher(status));
        let control = Arc::new(Control::new().map_err(no_descriptor)?);
        let own: Arc<PiMutex<Vec<ReservedPort>>> = Arc::default();
        let id = number.id;
        let class = Class {
            engine: engine.clone(),
            control: control.clone(),
            id,
            driver: self.driver.clone(),
            ports: self.ports.clone(),
            neighbours: self.neighbours.clone(),
            own: own.clone(),
            outgoing: PiMutex::default(),
            next_outgoing: AtomicUsize::new(0),
            config,
            _reservation: guard,
        };
        let tenancy = ClassResources {
            engine,
            control: control.clone(),
            _own: own,
            _ticket: number,
        };
        let thread = start(&class.config, tenancy)?;
        let mut threads = self.threads.lock();
        threads.retain(|(thread, _)| !thread.is_finished());
        threads.push((thread, control));
        Ok(Arc::new(class))
    }

    /// Returns the published counters of a class.
    fn status(&self, class: ClassId, config: &ClassConfig) -> io::Result<ClassCounters> {
        let mut page = self.page.lock();
        if page.is_none() {
            *page = Some(Page::create(&self.driver.link().name)?);
        }
        let page = page.as_ref().expect("it was made");
        Ok(page.open(class, &config.into()))
    }
}

impl Drop for Subsystem {
    fn drop(&mut self) {
        let threads = std::mem::take(self.threads.get_mut());
        for (_, control) in &threads {
            control.order(Order::Hurry);
        }
        for (thread, _) in threads {
            // A thread that has panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// The resources of a class at the interface, held while its thread runs. They are released in this
/// order.
struct ClassResources {
    engine: Arc<ClassEngine>,
    control: Arc<Control>,
    /// From here on the kernel answers for these ports again.
    _own: Arc<PiMutex<Vec<ReservedPort>>>,
    _ticket: ClassNumber,
}

/// The number of a class, released on drop.
struct ClassNumber {
    id: ClassId,
    taken: Arc<PiMutex<[bool; MAX_CLASSES]>>,
}

impl ClassNumber {
    fn take(taken: &Arc<PiMutex<[bool; MAX_CLASSES]>>) -> Option<Self> {
        let mut all = taken.lock();
        let free = all.iter().position(|is_taken| !is_taken)?;
        all[free] = true;
        Some(Self {
            id: ClassId::new(free)?,
            taken: taken.clone(),
        })
    }
}

impl Drop for ClassNumber {
    fn drop(&mut self) {
        self.taken.lock()[self.id.index()] = false;
    }
}

fn start(config: &ClassConfig, tenancy: ClassResources) -> Result<Thread<()>, ClassOpenError> {
    let mut builder = ThreadBuilder::new(format!("rio-{}", config.name));
    if let Urgency::Native(scheduling) = config.urgency {
        builder = builder.scheduling(scheduling);
    }
    if let Some(cpu) = config.cpu {
        builder = builder.affinity(&[cpu]);
    }
    let processing = config.processing;
    let control = tenancy.control.clone();
    let tasks = thread::tasks(&tenancy.engine, &control).map_err(no_descriptor)?;
    let thread = builder.spawn(move || {
        thread::work(&tenancy.engine, &tenancy.control, &tasks, processing);
        drop(tenancy);
    })?;
    if let Urgency::Deadline(reservation) = config.urgency
        && let Err(error) = reserve_for(thread.tid(), reservation)
    {
        control.order(Order::Hurry);
        let _ = thread.join();
        return Err(error.into());
    }
    Ok(thread)
}

/// Checks that a class can be opened with this configuration.
fn check(config: &ClassConfig, link: &Link) -> Result<(), ClassOpenError> {
    let value = |what, value: u128, possible, is_possible| {
        if is_possible {
            Ok(())
        } else {
            Err(ClassOpenError::Value {
                class: config.name.clone(),
                what,
                value,
                possible,
            })
        }
    };
    let connections = config.connections;
    let buffer = config.buffer;
    value(
        "number of connections",
        connections as u128,
        "1 to 65536",
        (1..=1 << 16).contains(&connections),
    )?;
    value(
        "buffer",
        buffer as u128,
        "2048 to 16777216 octets",
        (2048..=16 << 20).contains(&buffer),
    )?;
    value(
        "backlog",
        config.backlog as u128,
        "1 or more",
        config.backlog > 0,
    )?;
    let dscp = config.dscp.unwrap_or(0);
    value(
        "dscp",
        dscp.into(),
        "0 to 63",
        dscp <= crate::class::MAX_DSCP,
    )?;
    let priority = config.vlan_priority.unwrap_or(0);
    let most = crate::class::MAX_VLAN_PRIORITY;
    value("vlan priority", priority.into(), "0 to 7", priority <= most)?;
    let (budget, period) = match config.processing {
        ClassProcessing::Periodic { period, budget } => (budget, Some(period)),
        ClassProcessing::OnDemand {
            cap: Some((cap, period)),
        } => (cap, Some(period)),
        ClassProcessing::OnArrival | ClassProcessing::OnDemand { cap: None } => (1, None),
    };
    value("budget", budget as u128, "1 packet or more", budget > 0)?;
    if let Some(period) = period {
        let is_possible = (100_000..=10_000_000_000).contains(&period.as_nanos());
        let possible = "100000 ns (0.1 ms) to 10 s";
        value("period", period.as_nanos(), possible, is_possible)?;
    }
    if let ClassProcessing::Periodic { .. } = config.processing {
        let frames = buffer.div_ceil(link.mtu.saturating_sub(HEADERS).max(1));
        if frames * connections > config.queue {
            return Err(ClassOpenError::ShortQueue {
                queue: config.queue,
                connections,
                frames,
            });
        }
    }
    Ok(())
}

/// The length of the headers of IPv6 and TCP with all options, in octets.
const HEADERS: usize = 60;
