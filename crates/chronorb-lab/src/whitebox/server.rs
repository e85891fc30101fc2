//! The server of a case: its objects, and the costs of serving them.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use chronorb::prelude::*;
use chronorb_orb::{OrbConfig, StageProbe};
use chronorb_probe::{Activity, Mark, doing, keep_activity_times, trace_mark};

use super::case::{ObjectPlace, WhiteboxCase};
use super::counts::ProcessCosts;
use super::ledger;
use super::order::Pass;
use crate::bench::{self, Model, PoolSpec};
use crate::error::LabError;
use crate::idl::whitebox::{BenchServant, BenchSkeleton, Costs, Quote};

/// Serves a case until the parent closes standard input.
pub(super) fn serve(case: &WhiteboxCase, pass: Pass) -> Result<(), LabError> {
    let orb = orb(case, pass)?;
    bench::serve(&orb, &offer(&orb, case.place)?)
}

/// Makes the ORB of a server or a client. All options that matter are fixed, so that the
/// environment has no influence.
pub(super) fn orb(case: &WhiteboxCase, pass: Pass) -> Result<Orb, LabError> {
    let architecture = ["-ORBArchitecture", case.name];
    let by_kind: &[&str] = if case.is_of_ten() {
        &architecture
    } else {
        &ONE_CLIENT
    };
    let options = OPTIONS.iter().chain(by_kind).chain(case.options);
    let mut options = options.map(|option| (*option).to_owned()).collect();
    let mut config =
        OrbConfig::read(&mut options).map_err(LabError::work("configuring the ORB"))?;
    if pass == Pass::Counts && !case.is_of_ten() {
        config.stage_probe = Some(StageProbe::new(|_| ledger::note()));
    }
    let orb = Orb::with_config(config).map_err(LabError::work("starting the ORB"))?;
    if pass == Pass::Times {
        keep_activity_times();
    }
    Ok(orb)
}

/// Activates the objects of a place, the one of high priority first. Returns their references.
pub(super) fn offer(orb: &Orb, place: ObjectPlace) -> Result<Vec<String>, LabError> {
    let [high, low] = [HIGH, LOW].map(Priority::value);
    let both = vec![Model::Declared(high), Model::Declared(low)];
    let (pool, models) = match place {
        ObjectPlace::DefaultPool | ObjectPlace::Collocated => (None, Vec::new()),
        ObjectPlace::Lane => {
            let lane = PoolSpec::lanes([(high, 1)]);
            (Some(lane), vec![Model::Propagated(high)])
        }
        ObjectPlace::TwoLanes => (Some(PoolSpec::lanes([(low, 1), (high, 1)])), both),
        ObjectPlace::SharedPool => {
            let (priority, threads) = (high, 2);
            (Some(PoolSpec::Shared { priority, threads }), both)
        }
    };
    let offer = || {
        let root = orb.root_poa()?;
        let activate = |poa: &Poa| {
            let object = poa.serve(BenchSkeleton::new(Bench::default()))?;
            Ok::<_, Box<dyn Error + Send + Sync>>(orb.object_to_string(&object))
        };
        let objects = match pool {
            None => vec![activate(&root)?],
            Some(pool) => {
                let pool = pool.make(orb)?;
                let objects = models.iter().enumerate().map(|(number, model)| {
                    let policies = [Policy::Threadpool(pool), model.policy()];
                    let name = number.to_string();
                    activate(&root.create_poa(&name, Some(root.manager()), &policies)?)
                });
                objects.collect::<Result<_, _>>()?
            }
        };
        root.manager().activate()?;
        Ok::<_, Box<dyn Error + Send + Sync>>(objects)
    };
    offer().map_err(LabError::work("offering the objects"))
}

/// The servant, which does no more than a call asks for.
#[derive(Debug, Default)]
struct Bench {
    /// The socket on which notices are acknowledged, written to as a file: the ORB has no file, so
    /// the system call is told from its own.
    acknowledgements: OnceLock<File>,
}

impl BenchServant for Bench {
    fn cube(&self, _call: &Call<'_>, value: u8) -> Result<i32, SystemException> {
        drop(doing(Activity::Nothing));
        let _working = doing(Activity::Application);
        Ok(i32::from(value).pow(3))
    }

    fn notice(&self, _call: &Call<'_>, _value: i32) -> Result<(), SystemException> {
        if let Some(mut client) = self.acknowledgements.get() {
            // A client that is gone needs none.
            let _ = client.write_all(&[1]);
        }
        Ok(())
    }

    fn acknowledge_to(&self, _call: &Call<'_>, port: u16) -> Result<(), SystemException> {
        let connect = || {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(File::from(OwnedFd::from(stream)))
        };
        let refused = |_| SystemException::no(SystemExceptionKind::NoResources, 0);
        let _once = self.acknowledgements.set(connect().map_err(refused)?);
        Ok(())
    }

    fn mirror<'a>(&self, _call: &Call<'a>, values: &'a [u8]) -> Result<&'a [u8], SystemException> {
        Ok(values)
    }

    fn requote<'a>(
        &self,
        _call: &Call<'a>,
        given: &Quote<'a>,
    ) -> Result<Quote<'a>, SystemException> {
        Ok(*given)
    }

    fn so_far(&self, _call: &Call<'_>) -> Result<Costs, SystemException> {
        ledger::note();
        Ok(ProcessCosts::so_far(ledger::sum()).into())
    }

    fn mark(&self, _call: &Call<'_>, last: bool) -> Result<(), SystemException> {
        trace_mark(if last { Mark::Last } else { Mark::Next });
        Ok(())
    }
}

/// The priority of one client and its servant.
pub(super) const HIGH: Priority = Priority::new(20_000).expect("not negative");
/// The priority of nine of ten clients, and of their servant.
pub(super) const LOW: Priority = Priority::new(10_000).expect("not negative");
const OPTIONS: [&str; 9] = [
    "whitebox",
    "-ORBListenEndpoints",
    bench::LOOPBACK,
    "-ORBRealTime",
    "preferred",
    "-ORBClientWait",
    "block",
    "-ORBServerWait",
    "block",
];
/// The options of cases with one client, which come before their own.
const ONE_CLIENT: [&str; 6] = [
    "-ORBThreadpoolStrategy",
    "leader-followers",
    "-ORBCollocation",
    "poa",
    "-ORBClientConnection",
    "exclusive",
];
