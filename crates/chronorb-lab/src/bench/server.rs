//! Servers: an ORB, its thread pools, and an object on each.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use chronorb::prelude::*;
use chronorb::rtcorba::{RequestBuffering, Threadpool, ThreadpoolId};
use chronorb_orb::{OrbConfig, Stage, StageProbe};
use serde::{Deserialize, Serialize};

use super::work::{PowerWorker, SinkWorker, Worker};
use crate::error::LabError;
use crate::idl::lab::{BurstSkeleton, WorkSkeleton};
use crate::idl::peers::{ClockSkeleton, PowerSkeleton};
use crate::process::{self, Parent};

/// A server: the options of its ORB, its thread pools and its objects.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ServerSpec {
    /// The options of the ORB; the default endpoint is on the loopback.
    pub(crate) options: Vec<String>,
    /// The thread pools.
    pub(crate) pools: Vec<PoolSpec>,
    /// The objects.
    pub(crate) objects: Vec<ObjectSpec>,
    /// The file into which threads write the name of each [traced stage](TRACED) that they begin.
    pub(crate) trace_marker: Option<PathBuf>,
}

/// A thread pool.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum PoolSpec {
    /// A pool with lanes.
    Lanes {
        /// The priorities and numbers of threads of the lanes.
        lanes: Vec<(i16, u32)>,
        /// Permits lanes to borrow threads of lower ones.
        allow_borrowing: bool,
        /// The number of requests that are buffered, if any are.
        buffered: Option<u32>,
    },
    /// A pool without lanes.
    Shared {
        /// The default priority.
        priority: i16,
        /// The number of threads.
        threads: u32,
    },
}

/// An object.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ObjectSpec {
    /// The name of its reference, and of its POA.
    pub(crate) name: String,
    /// The pool that serves it, with its priority model; without it, the root POA serves it.
    pub(crate) pool: Option<(usize, Model)>,
    /// The servant.
    pub(crate) servant: ServantSpec,
}

/// A priority model, with its priority.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Model {
    /// The priority of the client.
    Propagated(i16),
    /// The priority of the server.
    Declared(i16),
}

/// A servant.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum ServantSpec {
    /// The servant that works as much as each call asks for.
    Work,
    /// The same servant with the interface `Burst`.
    Burst,
    /// The servant that computes for so many steps in each call.
    Power {
        /// The steps.
        steps: u32,
    },
    /// The servant that takes messages without an answer, and computes for so many steps for each.
    Sink {
        /// The steps.
        steps: u32,
    },
}

/// The references of a server's objects, by their names.
pub(crate) type ObjectReferences = BTreeMap<String, String>;

/// An error of any type, as it ends the process.
type Failure = Box<dyn Error + Send + Sync>;

/// Runs the server of an order.
pub(crate) fn server_main(order: &str) -> Result<(), LabError> {
    let spec: ServerSpec = process::order(order)?;
    let orb = match &spec.trace_marker {
        None => orb(&spec.options),
        Some(marker) => traced_orb(&spec.options, marker),
    }?;
    let serving = spec.offer(&orb)?;
    serve(&orb, &serving)
}

/// Starts an ORB with these options; the default endpoint is on the loopback.
pub(crate) fn orb(options: &[impl AsRef<str>]) -> Result<Orb, LabError> {
    Orb::init(&mut orb_arguments(options)).map_err(LabError::work("starting the ORB"))
}

/// Starts an ORB whose threads write the names of traced stages into a file.
fn traced_orb(options: &[String], marker: &Path) -> Result<Orb, LabError> {
    let start = || {
        let marker = File::options().write(true).open(marker)?;
        let mut config = OrbConfig::read(&mut orb_arguments(options))?;
        config.stage_probe = Some(StageProbe::new(move |stage| {
            if let Some((_, name)) = TRACED.iter().find(|(traced, _)| *traced == stage) {
                // A mark that is lost leaves one call out.
                let _ = (&marker).write(name.as_bytes());
            }
        }));
        Ok::<_, Failure>(Orb::with_config(config)?)
    };
    start().map_err(LabError::work("starting the ORB"))
}

/// Returns the command line of an ORB with these options.
pub(crate) fn orb_arguments(options: &[impl AsRef<str>]) -> Vec<String> {
    let mut args = vec!["lab".to_owned()];
    args.extend(options.iter().map(|option| option.as_ref().to_owned()));
    if !args.iter().any(|option| option == LISTEN) {
        args.extend([LISTEN, LOOPBACK].map(str::to_owned));
    }
    args
}

/// Reports the objects to the parent, and serves until the parent ends the input.
pub(crate) fn serve(orb: &Orb, serving: &impl Serialize) -> Result<(), LabError> {
    let stopped = orb.clone();
    let _parent = Parent::listen(move || {
        // Without its parent the server cannot report why it did not stop in order.
        let _ = stopped.shutdown(false);
    });
    process::tell(serving)?;
    orb.run();
    Ok(())
}

impl ServerSpec {
    /// Returns a server with one pool and one object, which is called "object".
    pub(crate) fn of_work(options: Vec<String>, pool: PoolSpec, model: Model) -> Self {
        Self {
            options,
            pools: vec![pool],
            objects: vec![ObjectSpec {
                name: OBJECT.to_owned(),
                pool: Some((0, model)),
                servant: ServantSpec::Work,
            }],
            trace_marker: None,
        }
    }

    /// Makes the pools and activates the objects.
    pub(crate) fn offer(&self, orb: &Orb) -> Result<ObjectReferences, LabError> {
        let offer = || {
            let root = orb.root_poa()?;
            let pools = self.pools.iter().map(|pool| pool.make(orb));
            let pools = pools.collect::<Result<Vec<_>, _>>()?;
            let objects = self.objects.iter().map(|object| {
                let poa = match object.pool {
                    None => root.clone(),
                    Some((pool, model)) => {
                        let policies = [Policy::Threadpool(pools[pool]), model.policy()];
                        root.create_poa(&object.name, Some(root.manager()), &policies)?
                    }
                };
                let reference = match object.servant {
                    ServantSpec::Work => poa.serve(WorkSkeleton::new(Worker)),
                    ServantSpec::Burst => poa.serve(BurstSkeleton::new(Worker)),
                    ServantSpec::Power { steps } => {
                        poa.serve(PowerSkeleton::new(PowerWorker { steps }))
                    }
                    ServantSpec::Sink { steps } => {
                        poa.serve(ClockSkeleton::new(SinkWorker { steps }))
                    }
                }?;
                Ok((object.name.clone(), orb.object_to_string(&reference)))
            });
            let serving = objects.collect::<Result<_, Failure>>()?;
            root.manager().activate()?;
            Ok::<_, Failure>(serving)
        };
        offer().map_err(LabError::work("offering the objects"))
    }
}

impl PoolSpec {
    /// Returns a pool with these lanes, which neither borrow nor buffer.
    pub(crate) fn lanes(lanes: impl Into<Vec<(i16, u32)>>) -> Self {
        Self::Lanes {
            lanes: lanes.into(),
            allow_borrowing: false,
            buffered: None,
        }
    }

    /// Makes the pool.
    pub(crate) fn make(&self, orb: &Orb) -> Result<ThreadpoolId, SystemException> {
        match self {
            Self::Shared {
                priority: value,
                threads,
            } => {
                let pool = Threadpool::new(priority(*value), *threads);
                orb.rt().create_threadpool(&pool)
            }
            Self::Lanes {
                lanes,
                allow_borrowing,
                buffered,
            } => orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
                lanes: lanes
                    .iter()
                    .map(|(value, threads)| Lane::new(priority(*value), *threads))
                    .collect(),
                allow_borrowing: *allow_borrowing,
                request_buffering: buffered.map(|max_requests| RequestBuffering {
                    max_requests,
                    max_octets: 0,
                }),
                ..Default::default()
            }),
        }
    }
}

impl Model {
    /// Returns the policy.
    pub(crate) fn policy(self) -> Policy {
        match self {
            Self::Propagated(value) => {
                Policy::PriorityModel(PriorityModel::ClientPropagated, priority(value))
            }
            Self::Declared(value) => {
                Policy::PriorityModel(PriorityModel::ServerDeclared, priority(value))
            }
        }
    }
}

/// Returns the priority of a specification.
pub(crate) fn priority(value: i16) -> Priority {
    Priority::new(value).expect("the priorities of experiments are not negative")
}

/// Returns options of an ORB as a specification holds them.
pub(crate) fn options(of: &[&str]) -> Vec<String> {
    of.iter().map(|option| (*option).to_owned()).collect()
}

/// Returns options of an ORB that uses real-time priorities if it may.
pub(crate) fn real_time_options(lock_memory: bool) -> Vec<String> {
    let lock_memory = if lock_memory { "yes" } else { "no" };
    options(&["-ORBRealTime", "preferred", "-ORBLockMemory", lock_memory])
}

/// The part of a process that is a server.
pub(crate) const SERVER: &str = "server";
/// The name of the only object of a server.
pub(crate) const OBJECT: &str = "object";
/// The stages at which a traced server writes a mark, and the texts of the marks.
pub(crate) const TRACED: [(Stage, &str); 2] =
    [(Stage::Dispatch, "dispatch"), (Stage::Write, "write")];
/// The endpoint of servers that no other machine calls.
pub(crate) const LOOPBACK: &str = "iiop://127.0.0.1:0";
const LISTEN: &str = "-ORBListenEndpoints";
