//! What a process has used, as the kernel counts it.

use std::fs;
use std::io;

/// What all threads of a process have used so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Used {
    /// How long they ran, in ns.
    pub(super) cpu_ns: u64,
    /// How often one of them gave up its processor, or lost it.
    pub(super) switches: u64,
}

impl Used {
    /// What a process has used, as long as no thread of it ends meanwhile.
    pub(super) fn by(process: u32) -> io::Result<Self> {
        let mut used = Self::default();
        for entry in fs::read_dir(format!("/proc/{process}/task"))? {
            let thread = entry?.path();
            used.cpu_ns += run_ns(&fs::read_to_string(thread.join("schedstat"))?);
            used.switches += switches(&fs::read_to_string(thread.join("status"))?);
        }
        Ok(used)
    }

    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// The first number of `schedstat`: how long a thread ran.
fn run_ns(schedstat: &str) -> u64 {
    let first = schedstat.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Both kinds of context switches in `status`.
fn switches(status: &str) -> u64 {
    let lines = status
        .lines()
        .filter_map(|line| line.split_once("ctxt_switches:"));
    lines
        .filter_map(|(_, number)| number.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_the_kernel_says_is_understood() {
        assert_eq!(run_ns("36592019 1203 77\n"), 36_592_019);
        assert_eq!(run_ns(""), 0);
        let status =
            "Threads:\t3\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(switches(status), 695);
    }

    #[test]
    fn a_process_has_used_what_it_worked() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; read line";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        child.stdout.take().unwrap().read_exact(&mut line).unwrap();
        let used = Used::by(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(used.cpu_ns > 0, "{used:?}");
        assert!(Used::by(child.id()).is_err(), "it is gone");
    }
}
