//! Child processes with a time limit.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A child process with its own folder; it is killed on drop.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    name: String,
    folder: TempDir,
}

impl Process {
    /// Starts the program; `arguments` may put files into the folder.
    pub(crate) fn start(
        program: impl Into<PathBuf>,
        arguments: impl FnOnce(&TempDir) -> Vec<String>,
    ) -> Self {
        let program = program.into();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name| File::create(folder.path().join(name)).expect("a file");
        let child = Command::new(&program)
            .args(arguments(&folder))
            .stdin(Stdio::null())
            .stdout(file(OUTPUT))
            .stderr(file(ERRORS))
            .spawn()
            .unwrap_or_else(|e| panic!("{} does not start: {e}", program.display()));
        Self {
            child,
            name: program.display().to_string(),
            folder,
        }
    }

    /// Waits for a file, which the process renames into its folder.
    pub(crate) fn wait_for_file(&mut self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let text = self.poll(name, |this| {
            assert!(this.ended().is_none(), "it has ended: {}", this.output());
            fs::read_to_string(&path).ok()
        });
        text.trim().to_owned()
    }

    /// Makes an empty file in its folder.
    pub(crate) fn put_file(&self, name: &str) {
        File::create(self.folder.path().join(name)).expect("a file");
    }

    /// Polls until there is a result; `what` describes it for people.
    pub(crate) fn poll<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                panic!("{}: no {what} in time: {}", self.name, self.output());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits for the end, and asserts success. Returns standard output.
    pub(crate) fn finish(mut self) -> String {
        let status = self.poll("end", Self::ended);
        assert!(
            status.success(),
            "{}: {status}: {}",
            self.name,
            self.output()
        );
        self.read(OUTPUT)
    }

    /// Returns the exit status if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of this process")
    }

    fn output(&self) -> String {
        // The failed checks of a client are enough.
        let (output, errors) = (self.read(OUTPUT), self.read(ERRORS));
        let lines = output.lines().filter(|line| !line.starts_with("ok "));
        let lines: Vec<&str> = lines.chain(errors.lines()).collect();
        lines.join("\n")
    }

    fn read(&self, name: &str) -> String {
        let octets = fs::read(self.folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&octets).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const OUTPUT: &str = "output";
const ERRORS: &str = "errors";
/// The time limit of any operation, on a slow machine too.
const DEADLINE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(5);
