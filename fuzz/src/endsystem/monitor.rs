//! The lines of a monitor and of its clients.

use std::path::PathBuf;
use std::sync::LazyLock;

use chronorb::monitor::{Client, Report};
use chronorb::prelude::*;

use super::{PATIENCE, exchange, orb};

/// Sends any octets to the monitor of a server, and then asks it; or reads any line as its answer.
pub fn monitor_lines(data: &[u8]) {
    let (_, path) = &*MONITOR;
    match data.split_first() {
        Some((first, rest)) if first % 2 == 1 => {
            if let Ok(report) = Report::read(&String::from_utf8_lossy(rest)) {
                // What was understood can be shown.
                assert!(!format!("{report:?}").is_empty());
            }
        }
        _ => {
            exchange(path, data);
            let client = Client::connect(path, PATIENCE);
            let report = client.expect("it listens").snapshot().expect("it answers");
            assert_eq!(report.pid, std::process::id());
        }
    }
}

static MONITOR: LazyLock<(Orb, PathBuf)> = LazyLock::new(|| {
    let directory = std::env::temp_dir();
    let path = directory.join(format!("chronorb-fuzz-{}.monitor", std::process::id()));
    let text = path.display().to_string();
    let orb = orb(&["-ORBMonitor", &text], |_| {});
    orb.root_poa()
        .expect("it opens")
        .manager()
        .activate()
        .expect("active");
    (orb, path)
});
