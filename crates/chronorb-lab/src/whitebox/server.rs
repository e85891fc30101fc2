//! The server of a case: one object, and what it costs to serve it.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use chronorb::prelude::*;
use chronorb_orb::{OrbConfig, StageProbe};
use chronorb_probe::{Activity, ActivityTimes, Mark, counts_of_this_thread, doing, trace_mark};
use chronorb_rt::counts_of_others;

use super::architectures::Times;
use super::case::{Case, Place};
use super::counts::Counts;
use super::ledger;
use super::order::{Pass, ServerOrder, Serving};
use crate::bench;
use crate::error::LabError;
use crate::idl::whitebox::{self, BenchServant, BenchSkeleton, Quote};

/// The priority of the lane, and of the client that calls it.
pub(super) const PRIORITY: Priority = Priority::new(20_000).expect("not negative");

/// Serves until the parent closes standard input.
pub(super) fn serve(order: &ServerOrder) -> Result<(), LabError> {
    let case = case_named(&order.case)?;
    let orb = orb(case, order.pass)?;
    let object = offer(&orb, case.place).map_err(LabError::work("offering the object"))?;
    let reference = Some(orb.object_to_string(&object));
    bench::serve(&orb, &Serving { reference })
}

pub(super) fn case_named(name: &str) -> Result<&'static Case, LabError> {
    let none = || LabError::work("finding the case")(format!("there is none called {name}"));
    Case::named(name).ok_or_else(none)
}

/// Makes an ORB of the experiment, for a server or a client.
///
/// What the cases are about is fixed, whatever the environment says.
pub(super) fn orb(case: &Case, pass: Pass) -> Result<Orb, LabError> {
    let fixed = [
        "whitebox",
        "-ORBListenEndpoints",
        "iiop://127.0.0.1:0",
        "-ORBRealTime",
        "preferred",
        "-ORBThreadpoolStrategy",
        "leader-followers",
        "-ORBCollocation",
        "poa",
        "-ORBClientConnection",
        "exclusive",
        "-ORBClientWait",
        "block",
        "-ORBServerWait",
        "block",
    ];
    let mut args = fixed
        .iter()
        .chain(case.options)
        .map(|text| (*text).to_owned())
        .collect();
    let mut config = OrbConfig::read(&mut args).map_err(LabError::work("configuring the ORB"))?;
    if pass == Pass::Counted {
        config.stage_probe = Some(StageProbe::new(|_| ledger::note()));
    }
    Orb::with_config(config).map_err(LabError::work("starting the ORB"))
}

/// Activates the object where the case wants it.
pub(super) fn offer(
    orb: &Orb,
    place: Place,
) -> Result<Object, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let poa = match place {
        Place::DefaultPool | Place::Collocated => root.clone(),
        Place::Lane => {
            let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
                lanes: vec![Lane::new(PRIORITY, 1)],
                ..Default::default()
            })?;
            let policies = [
                Policy::Threadpool(pool),
                Policy::PriorityModel(PriorityModel::ClientPropagated, PRIORITY),
            ];
            root.create_poa("lane", Some(root.manager()), &policies)?
        }
    };
    let object = poa.serve(BenchSkeleton::new(Bench::default()))?;
    root.manager().activate()?;
    Ok(object)
}

/// Does what the calls ask for, which is as little as can be.
#[derive(Debug, Default)]
pub(super) struct Bench {
    /// Where notices are acknowledged: a file, so that this is no system call that the ORB makes.
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
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|stream| {
            stream.set_nodelay(true)?;
            Ok(File::from(OwnedFd::from(stream)))
        });
        match connected {
            Ok(file) => {
                let _once = self.acknowledgements.set(file);
                Ok(())
            }
            Err(_) => Err(SystemException::no(SystemExceptionKind::NoResources, 0)),
        }
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

    fn so_far(&self, _call: &Call<'_>) -> Result<whitebox::Counts, SystemException> {
        ledger::note();
        Ok(Counts::of_process(ledger::sum()).to_idl())
    }

    fn times_so_far(&self, _call: &Call<'_>) -> Result<whitebox::Times, SystemException> {
        let threads = counts_of_others() + counts_of_this_thread();
        Ok(Times::from(ActivityTimes::from(threads)).into())
    }

    fn mark(&self, _call: &Call<'_>, last: bool) -> Result<(), SystemException> {
        trace_mark(if last { Mark::Last } else { Mark::Next });
        Ok(())
    }
}
