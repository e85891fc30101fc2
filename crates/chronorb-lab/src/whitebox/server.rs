//! The server of a case: one object, and the costs of serving it.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use chronorb::prelude::*;
use chronorb::rtcorba::ThreadpoolId;
use chronorb_orb::{OrbConfig, StageProbe};
use chronorb_probe::{Activity, Mark, doing, trace_mark};

use super::case::{ObjectPlace, WhiteboxCase};
use super::counts::ProcessCosts;
use super::ledger;
use super::order::Pass;
use crate::bench;
use crate::error::LabError;
use crate::idl::whitebox::{BenchServant, BenchSkeleton, Costs, Quote};

/// The priority of the lane, and of the client that calls it.
pub(super) const PRIORITY: Priority = Priority::new(20_000).expect("not negative");

/// A failure of any kind.
pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Serves a case until the parent closes standard input.
pub(super) fn serve(case: &WhiteboxCase, pass: Pass) -> Result<(), LabError> {
    let orb = orb(case, pass)?;
    let object = offer(&orb, case.place)?;
    bench::serve(&orb, &[orb.object_to_string(&object)])
}

/// Makes the ORB of a server or a client. All options that matter are fixed, so that the
/// environment has no influence.
pub(super) fn orb(case: &WhiteboxCase, pass: Pass) -> Result<Orb, LabError> {
    let options = OPTIONS.split(' ').chain(case.options.iter().copied());
    let mut options = options.map(str::to_owned).collect();
    let mut config =
        OrbConfig::read(&mut options).map_err(LabError::work("configuring the ORB"))?;
    if pass == Pass::Counts {
        config.stage_probe = Some(StageProbe::new(|_| ledger::note()));
    }
    Orb::with_config(config).map_err(LabError::work("starting the ORB"))
}

/// Activates the object in its place.
pub(super) fn offer(orb: &Orb, place: ObjectPlace) -> Result<Object, LabError> {
    let offer = || {
        let policies = match place {
            ObjectPlace::DefaultPool | ObjectPlace::Collocated => Vec::new(),
            ObjectPlace::Lane => vec![
                Policy::Threadpool(lanes(orb, &[PRIORITY])?),
                Policy::PriorityModel(PriorityModel::ClientPropagated, PRIORITY),
            ],
        };
        activate(orb, "lane", &policies)
    };
    offer().map_err(LabError::work("offering the object"))
}

/// Makes a pool that has a lane with one thread for each priority.
pub(super) fn lanes(orb: &Orb, priorities: &[Priority]) -> Result<ThreadpoolId, SystemException> {
    let lanes = priorities.iter().map(|priority| Lane::new(*priority, 1));
    orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: lanes.collect(),
        ..Default::default()
    })
}

/// Activates an object, by the root POA if there are no policies.
pub(super) fn activate(orb: &Orb, name: &str, policies: &[Policy]) -> Result<Object, Failure> {
    let root = orb.root_poa()?;
    let poa = if policies.is_empty() {
        root.clone()
    } else {
        root.create_poa(name, Some(root.manager()), policies)?
    };
    let object = poa.serve(BenchSkeleton::new(Bench::default()))?;
    root.manager().activate()?;
    Ok(object)
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

const OPTIONS: &str = "whitebox -ORBListenEndpoints iiop://127.0.0.1:0 -ORBRealTime preferred \
     -ORBThreadpoolStrategy leader-followers -ORBCollocation poa -ORBClientConnection exclusive \
     -ORBClientWait block -ORBServerWait block";
