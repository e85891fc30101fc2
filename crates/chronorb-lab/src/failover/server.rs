//! The server that dies, and its backup.

use std::fs::{File, OpenOptions};
use std::io::Write;

use chronorb::config::{OrbConfig, RealTimeMode};
use chronorb::prelude::*;
use chronorb::transport::parse_endpoints;

use super::order::{RecorderReference, ServerOrder};
use crate::bench;
use crate::error::LabError;
use crate::idl::failover::{RecorderServant, RecorderSkeleton};

/// Serves until the parent closes standard input.
pub(super) fn serve(order: &ServerOrder) -> Result<(), LabError> {
    let file = OpenOptions::new().append(true).open(&order.record);
    let recorder = FileRecorder {
        number: order.number,
        file: file.map_err(LabError::work("opening the record"))?,
    };
    let orb = orb()?;
    let reference = offer(&orb, recorder).map_err(LabError::work("offering the object"))?;
    bench::serve(&orb, &RecorderReference { reference })
}

/// An ORB of this machine alone and without priorities.
pub(super) fn orb() -> Result<Orb, LabError> {
    let mut config = OrbConfig::default();
    config.listen_endpoints =
        parse_endpoints("iiop://127.0.0.1:0").map_err(LabError::work("choosing an endpoint"))?;
    config.real_time = RealTimeMode::Off;
    Orb::with_config(config).map_err(LabError::work("starting the ORB"))
}

fn offer(
    orb: &Orb,
    recorder: FileRecorder,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let object = root.serve(RecorderSkeleton::new(recorder))?;
    root.manager().activate()?;
    Ok(orb.object_to_string(&object))
}

/// A servant that appends the numbers of its calls to a file.
#[derive(Debug)]
struct FileRecorder {
    number: u32,
    file: File,
}

impl RecorderServant for FileRecorder {
    fn record(&self, _call: &Call<'_>, number: u64) -> Result<u32, SystemException> {
        // One write is whole, also between those of other threads and before a death.
        let written = (&self.file).write(&number.to_le_bytes());
        match written {
            Ok(8) => Ok(self.number),
            _ => Err(SystemException::maybe(SystemExceptionKind::PersistStore, 0)),
        }
    }
}
