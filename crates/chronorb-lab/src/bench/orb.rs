//! Servers and clients of chronorb.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chronorb::data::Any;
use chronorb::prelude::*;
use chronorb_orb::{Collocation, OrbConfig, RealTimeMode, Scope, WaitPolicy, parse_endpoints};
use chronorb_rt::Deadline;

use super::drive::Caller;
use super::oneway::{Recorder, SendPace};
use super::order::{ObjectAddresses, Operation, OrbSettings, Waits};
use super::place::{CallScheduling, schedule_orb_threads};
use super::raw::SPIN;
use super::server::LOOPBACK;
use crate::error::LabError;
use crate::idl::peers::{
    Anys, Clock, ClockServant, ClockSkeleton, Data, DataServant, DataSkeleton, Power, PowerServant,
    PowerSkeleton, Reading, Readings, Sample, Strings, Tick, TickState, Ticks,
};
use crate::process::{self, Parent};

/// Serves until the parent closes standard input.
pub(super) fn serve(
    settings: &OrbSettings,
    waits: Waits,
    scheduled: CallScheduling,
) -> Result<(), LabError> {
    let mut config = config(&settings.endpoints, &settings.server)?;
    config.max_connections = settings.max_connections;
    config.server_wait = waiting(waits);
    let orb = Orb::with_config(config).map_err(LabError::work("starting the ORB"))?;
    let recorder = Recorder::default();
    let mut objects = offer(&orb, &recorder).map_err(LabError::work("offering the objects"))?;
    if let Some(group) = &settings.group {
        join(&orb, &recorder, group).map_err(LabError::work(JOINING))?;
        objects.clock.clone_from(group);
    }
    schedule_orb_threads(scheduled)?;
    let stopped = orb.clone();
    let parent = Parent::listen(move || {
        // Without its parent the server cannot report why it did not stop in order.
        let _ = stopped.shutdown(false);
    });
    process::tell(&objects)?;
    recorder.report_to(parent);
    orb.run();
    Ok(())
}

/// Starts an ORB for a client.
pub(super) fn client(waits: Waits, options: &[String]) -> Result<Orb, LabError> {
    let mut config = config(LOOPBACK, options)?;
    config.client_wait = waiting(waits);
    Orb::with_config(config).map_err(LabError::work("starting the ORB"))
}

/// Checks that calls can be made with these settings.
pub(crate) fn try_out(settings: &OrbSettings) -> Result<(), LabError> {
    let server = Orb::with_config(config(&settings.endpoints, &settings.server)?)
        .map_err(LabError::work("starting the ORB"))?;
    let recorder = Recorder::default();
    let called = offer(&server, &recorder)
        .map_err(LabError::work("offering the objects"))
        .and_then(|serving| {
            let client = client(Waits::Block, &settings.client)?;
            let called = match &settings.group {
                None => Calls::of(&client, &serving.power, Operation::Cube).map(drop),
                Some(group) => join(&server, &recorder, group)
                    .map_err(LabError::work(JOINING))
                    .and_then(|()| send_until_heard(&client, group, &recorder)),
            };
            let stopped = stop(&client);
            called.and(stopped)
        });
    let stopped = stop(&server);
    called.and(stopped)
}

/// Sends to a group until a message arrives.
fn send_until_heard(orb: &Orb, group: &str, recorder: &Recorder) -> Result<(), LabError> {
    let mut messages = Calls::of(orb, group, Operation::Oneway(0))?;
    let deadline = Deadline::after(ARRIVAL);
    while recorder.taken().count() == 0 {
        if deadline.has_passed() {
            let why = format!("nothing of what was sent came within {ARRIVAL:?}");
            return Err(LabError::work("calling a group")(why));
        }
        messages.call(0)?;
    }
    Ok(())
}

fn stop(orb: &Orb) -> Result<(), LabError> {
    orb.shutdown(false)
        .map_err(LabError::work("ending the ORB"))
}

/// Returns the common settings: ordinary scheduling, and calls that are always remote.
pub(super) fn config(endpoints: &str, options: &[String]) -> Result<OrbConfig, LabError> {
    let mut config = OrbConfig::default();
    if !options.is_empty() {
        config = OrbConfig::read(&mut options.to_vec())
            .map_err(LabError::work("choosing the settings"))?;
    }
    config.orb_id = "lab".to_owned();
    config.listen_endpoints =
        parse_endpoints(endpoints).map_err(LabError::work("choosing an endpoint"))?;
    config.real_time = RealTimeMode::Off;
    config.collocation = Collocation::Off;
    Ok(config)
}

/// Returns the ORB's way to wait. Spinning lasts through a ping-pong, and ends after it.
pub(crate) const fn waiting(waits: Waits) -> WaitPolicy {
    match waits {
        Waits::Block => WaitPolicy::Block,
        Waits::Spin => WaitPolicy::Spin(SPIN),
    }
}

/// Activates all objects.
pub(super) fn offer(
    orb: &Orb,
    recorder: &Recorder,
) -> Result<ObjectAddresses, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let power = root.serve(PowerSkeleton::new(Cuber))?;
    let data = root.serve(DataSkeleton::new(Mirror))?;
    let clock = root.serve(ClockSkeleton::new(Watcher(recorder.clone())))?;
    root.manager().activate()?;
    Ok(ObjectAddresses {
        power: orb.object_to_string(&power),
        data: orb.object_to_string(&data),
        clock: orb.object_to_string(&clock),
    })
}

/// Makes a group lead to an object that records messages.
fn join(
    orb: &Orb,
    recorder: &Recorder,
    group: &str,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let id = root.activate_object(ClockSkeleton::new(Watcher(recorder.clone())))?;
    let group = orb.string_to_object(group)?;
    root.associate_reference_with_id(&group, &id)?;
    Ok(())
}

/// Activates the objects that cube and echo data, and returns their references, a line each.
pub(crate) fn offer_lines(orb: &Orb) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let ObjectAddresses { power, data, .. } = offer(orb, &Recorder::default())?;
    Ok(format!("{power}\n{data}\n"))
}

#[derive(Debug)]
struct Cuber;

impl PowerServant for Cuber {
    fn cube(&self, _call: &Call<'_>, v: u8) -> Result<i32, SystemException> {
        Ok(i32::from(v).pow(3))
    }
}

#[derive(Debug)]
struct Mirror;

impl DataServant for Mirror {
    fn echo_octets<'a>(&self, _call: &Call<'a>, v: &'a [u8]) -> Result<&'a [u8], SystemException> {
        Ok(v)
    }

    fn echo_doubles<'a>(
        &self,
        _call: &Call<'a>,
        v: &'a [f64],
    ) -> Result<&'a [f64], SystemException> {
        Ok(v)
    }

    fn echo_samples<'a>(
        &self,
        _call: &Call<'a>,
        v: &'a [Sample],
    ) -> Result<&'a [Sample], SystemException> {
        Ok(v)
    }

    fn echo_strings<'a>(
        &self,
        _call: &Call<'a>,
        v: Strings<'a>,
    ) -> Result<Strings<'a>, SystemException> {
        Ok(v)
    }

    fn echo_readings<'a>(
        &self,
        _call: &Call<'a>,
        v: Readings<'a>,
    ) -> Result<Readings<'a>, SystemException> {
        Ok(v)
    }

    fn echo_anys<'a>(&self, _call: &Call<'a>, v: Anys<'a>) -> Result<Anys<'a>, SystemException> {
        Ok(v)
    }

    fn echo_ticks<'a>(&self, _call: &Call<'a>, v: Ticks<'a>) -> Result<Ticks<'a>, SystemException> {
        Ok(v)
    }
}

/// The servant that records oneway messages.
#[derive(Debug)]
struct Watcher(Recorder);

impl ClockServant for Watcher {
    fn send(&self, _call: &Call<'_>, sent_ns: u64) -> Result<(), SystemException> {
        self.0.take(sent_ns);
        Ok(())
    }

    fn carry(&self, _call: &Call<'_>, sent_ns: u64, _load: &[u8]) -> Result<(), SystemException> {
        self.0.take(sent_ns);
        Ok(())
    }

    fn settle(&self, _call: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The calls of a client of chronorb.
pub(crate) struct Calls {
    object: Callee,
    scope: Scope,
}

/// The object that is called, with the argument.
enum Callee {
    Power(Power),
    Octets(Data, Vec<u8>),
    Doubles(Data, Vec<f64>),
    Structs(Data, Vec<Sample>),
    Strings(Data, Vec<&'static str>),
    Unions(Data, Vec<Reading<'static>>),
    Anys(Data, Vec<Any<'static>>),
    Values(Data, Vec<Arc<dyn Tick>>),
    /// The clock, with the load beside the time stamp.
    Clock(Clock, Vec<u8>, SendPace),
}

impl Calls {
    /// Connects to an object with a reference.
    pub(crate) fn of(orb: &Orb, reference: &str, operation: Operation) -> Result<Self, LabError> {
        Self::paced(orb, reference, operation, Waits::Block)
    }

    /// The same with a way to wait between oneway messages.
    pub(super) fn paced(
        orb: &Orb,
        reference: &str,
        operation: Operation,
        waits: Waits,
    ) -> Result<Self, LabError> {
        let object = orb
            .string_to_object(reference)
            .map_err(LabError::work("finding the object"))?;
        let object = match operation {
            Operation::Cube => Callee::Power(Power::unchecked_narrow(&object)),
            Operation::Octets(octets) => {
                Callee::Octets(data(&object), (0..octets).map(|n| n as u8).collect())
            }
            Operation::Doubles(octets) => {
                Callee::Doubles(data(&object), (0..octets / 8).map(f64::from).collect())
            }
            Operation::Structs(octets) => {
                Callee::Structs(data(&object), (0..octets / SAMPLE).map(sample).collect())
            }
            Operation::Strings(octets) => {
                Callee::Strings(data(&object), (0..octets / STRING).map(text).collect())
            }
            Operation::Unions(octets) => Callee::Unions(
                data(&object),
                (0..octets * 3 / THREE_READINGS).map(reading).collect(),
            ),
            Operation::Anys(octets) => {
                Callee::Anys(data(&object), (0..octets / ANY).map(any).collect())
            }
            Operation::Values(octets) => {
                Callee::Values(data(&object), (0..octets / VALUE).map(tick).collect())
            }
            Operation::Oneway(_) | Operation::Flood => {
                let octets = match operation {
                    Operation::Oneway(octets) => octets as usize,
                    _ => 0,
                };
                let clock = Clock::unchecked_narrow(&object);
                Callee::Clock(clock, vec![0; octets], SendPace::of(operation, waits))
            }
        };
        let mut calls = Self {
            object,
            scope: Scope::new(ARENA),
        };
        calls.check_all()?;
        Ok(calls)
    }

    /// Waits until the server has received all oneway messages.
    pub(super) fn settle(&self) -> Result<(), LabError> {
        match &self.object {
            Callee::Clock(clock, ..) => clock.settle().map_err(LabError::work(CALLING)),
            _ => Ok(()),
        }
    }

    /// Makes one call and checks the whole reply.
    fn check_all(&mut self) -> Result<(), LabError> {
        let scope = &mut self.scope;
        let same = match &self.object {
            Callee::Power(power) => power.cube(255).map(|cube| cube == 16_581_375),
            Callee::Octets(data, v) => data.echo_octets_in(scope, v).map(|echo| echo == v),
            Callee::Doubles(data, v) => data.echo_doubles_in(scope, v).map(|echo| echo == v),
            Callee::Structs(data, v) => data.echo_samples_in(scope, v).map(|echo| echo == v),
            Callee::Strings(data, v) => data.echo_strings_in(scope, v).map(|echo| echo == v),
            Callee::Unions(data, v) => data.echo_readings_in(scope, v).map(|echo| echo == v),
            Callee::Anys(data, v) => data.echo_anys_in(scope, v).map(|echo| echo == v),
            Callee::Values(data, v) => {
                let v: Vec<_> = v.iter().map(Some).collect();
                data.echo_ticks_in(scope, &v).map(|echo| echo == v)
            }
            // Time 0 excludes the message from the figures.
            Callee::Clock(clock, load, _) => tell(clock, 0, load).map(|()| true),
        };
        if same.map_err(LabError::work(CALLING))? {
            Ok(())
        } else {
            let wrong = "what came back is not what was sent";
            Err(LabError::WrongAnswer(wrong.to_owned()))
        }
    }
}

impl Caller for Calls {
    fn warm_up(&mut self, turn: u32) -> Result<(), LabError> {
        if let Callee::Clock(.., pace) = &mut self.object {
            pace.leave_out_next();
        }
        self.call(turn)
    }

    fn call(&mut self, turn: u32) -> Result<(), LabError> {
        let scope = &mut self.scope;
        match &mut self.object {
            Callee::Power(power) => {
                let value = turn as u8;
                let cube = power.cube(value).map_err(LabError::work(CALLING))?;
                if cube == i32::from(value).pow(3) {
                    Ok(())
                } else {
                    Err(LabError::WrongAnswer(format!("{value}³ is not {cube}")))
                }
            }
            Callee::Octets(data, v) => same_ends(v, data.echo_octets_in(scope, v)),
            Callee::Doubles(data, v) => same_ends(v, data.echo_doubles_in(scope, v)),
            Callee::Structs(data, v) => same_ends(v, data.echo_samples_in(scope, v)),
            Callee::Strings(data, v) => same_ends(v, data.echo_strings_in(scope, v)),
            Callee::Unions(data, v) => same_ends(v, data.echo_readings_in(scope, v)),
            Callee::Anys(data, v) => same_ends(v, data.echo_anys_in(scope, v)),
            Callee::Values(data, v) => {
                let v: Vec<_> = v.iter().map(Some).collect();
                same_ends(&v, data.echo_ticks_in(scope, &v))
            }
            Callee::Clock(clock, load, pace) => {
                tell(clock, pace.begin(), load).map_err(LabError::work(CALLING))?;
                pace.keep();
                Ok(())
            }
        }
    }
}

/// Sends a time stamp, with a load if there is one.
fn tell(clock: &Clock, sent_ns: u64, load: &[u8]) -> Result<(), SystemException> {
    if load.is_empty() {
        clock.send(sent_ns)
    } else {
        clock.carry(sent_ns, load)
    }
}

/// Compares length, first and last element, since comparing all would take longer than the call.
fn same_ends<T: PartialEq>(
    sent: &[T],
    echo: Result<&[T], SystemException>,
) -> Result<(), LabError> {
    let echo = echo.map_err(LabError::work(CALLING))?;
    if sent.len() == echo.len() && sent.first() == echo.first() && sent.last() == echo.last() {
        return Ok(());
    }
    let (sent, echo) = (sent.len(), echo.len());
    let wrong = format!("{sent} elements went, and {echo} others came back");
    Err(LabError::WrongAnswer(wrong))
}

fn data(object: &Object) -> Data {
    Data::unchecked_narrow(object)
}

fn sample(n: u32) -> Sample {
    Sample {
        id: n as i32,
        kind: n as i16,
        flags: n as u8,
        value: f64::from(n),
        weight: n as f32,
    }
}

fn text(n: u32) -> &'static str {
    TEXTS[n as usize % TEXTS.len()]
}

fn reading(n: u32) -> Reading<'static> {
    match n % 3 {
        0 => Reading::Count(n.into()),
        1 => Reading::Text(text(n)),
        _ => Reading::Measured {
            discriminator: 2,
            value: sample(n),
        },
    }
}

fn any(n: u32) -> Any<'static> {
    static SAMPLES: LazyLock<[Sample; 64]> =
        LazyLock::new(|| std::array::from_fn(|n| sample(n as u32)));
    Any::of(&SAMPLES[n as usize % SAMPLES.len()])
}

fn tick(n: u32) -> Arc<dyn Tick> {
    let (id, level) = (n as i32, f64::from(n));
    TickState { id, level }.into()
}

const CALLING: &str = "calling the server";
const JOINING: &str = "joining the group";
/// The time that the first message to a group may take.
const ARRIVAL: Duration = Duration::from_secs(5);
/// The octets of a sample on the wire, with the padding up to the next.
const SAMPLE: u32 = 24;
/// The octets of a string on the wire, with its length.
const STRING: u32 = 16;
/// The octets of three unions on the wire, one of each kind.
const THREE_READINGS: u32 = 56;
/// The octets of a struct in an any on the wire, with its type code.
const ANY: u32 = 152;
/// The octets of a value on the wire: its tag, the place of its type, and its state.
const VALUE: u32 = 24;
/// Texts of eleven characters.
const TEXTS: [&str; 4] = ["chronometer", "determinism", "preemptions", "reliability"];
const ARENA: usize = 1 << 20;
