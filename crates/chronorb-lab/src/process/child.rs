//! A child process that exchanges lines of JSON, and is killed when a deadline passes.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chronorb_rt::{Deadline, with_time_sharing};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ProcessError;
use crate::part::CHILD_COMMAND;

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Child {
    name: String,
    process: std::process::Child,
    input: Option<ChildStdin>,
    lines: Receiver<io::Result<String>>,
    errors: Option<JoinHandle<String>>,
}

impl Child {
    /// Runs this very program as a part of an experiment, and waits for its first message.
    pub(crate) fn start<T: DeserializeOwned>(
        name: impl Into<String>,
        part: &str,
        order: &impl Serialize,
    ) -> Result<(Self, T), ProcessError> {
        let mut child = Self::launch(name, part, order)?;
        let first = child.hear(Deadline::after(START_UP))?;
        Ok((child, first))
    }

    /// Runs this very program as a part of an experiment.
    pub(crate) fn launch(
        name: impl Into<String>,
        part: &str,
        order: &impl Serialize,
    ) -> Result<Self, ProcessError> {
        let name = name.into();
        let order = serde_json::to_string(order).expect("orders are plain data");
        match env::current_exe() {
            Ok(program) => Self::run(
                name,
                Command::new(program).args([CHILD_COMMAND, part, &order]),
            ),
            Err(source) => Err(ProcessError::Start {
                child: name,
                source,
            }),
        }
    }

    /// Runs another program.
    pub(crate) fn run(
        name: impl Into<String>,
        command: &mut Command,
    ) -> Result<Self, ProcessError> {
        let name = name.into();
        Self::spawn(name.clone(), command).map_err(|source| ProcessError::Start {
            child: name,
            source,
        })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    fn spawn(name: String, command: &mut Command) -> io::Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (input, output, errors) = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        );
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = output
                .into_iter()
                .flat_map(|output| BufReader::new(output).lines());
            for line in lines {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let errors = thread::spawn(move || errors.map_or_else(String::new, beginning));
        Ok(Self {
            name,
            process,
            input,
            lines,
            errors: Some(errors),
        })
    }

    /// Returns the next message of the child.
    pub(crate) fn hear<T: DeserializeOwned>(
        &mut self,
        deadline: Deadline,
    ) -> Result<T, ProcessError> {
        let wait = deadline.remaining().unwrap_or(Duration::ZERO);
        match self.lines.recv_timeout(wait) {
            Ok(Ok(line)) => self.understand(&line),
            Err(RecvTimeoutError::Timeout) => Err(self.silent()),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(self.ended(deadline)),
        }
    }

    /// Returns the next message of the child if it is there.
    pub(crate) fn poll<T: DeserializeOwned>(&self) -> Result<Option<T>, ProcessError> {
        match self.lines.try_recv() {
            Ok(Ok(line)) => self.understand(&line).map(Some),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Returns the messages of the child until it has ended well.
    pub(crate) fn hear_until_end<T: DeserializeOwned>(
        &mut self,
        deadline: Deadline,
    ) -> Result<Vec<T>, ProcessError> {
        let mut messages = Vec::new();
        loop {
            let wait = deadline.remaining().unwrap_or(Duration::ZERO);
            match self.lines.recv_timeout(wait) {
                Ok(Ok(line)) => messages.push(self.understand(&line)?),
                Err(RecvTimeoutError::Timeout) => return Err(self.silent()),
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match self.status(deadline) {
            Some(status) if status.success() => Ok(messages),
            Some(_) => Err(self.ended(deadline)),
            None => Err(self.silent()),
        }
    }

    fn understand<T: DeserializeOwned>(&self, line: &str) -> Result<T, ProcessError> {
        serde_json::from_str(line).map_err(|source| ProcessError::Nonsense {
            partner: self.name.clone(),
            source,
        })
    }

    /// Kills the child. Its messages so far can still be polled, up to one that it did not finish.
    pub(crate) fn kill_now(&mut self) {
        self.kill();
    }

    /// Sends a message to the child.
    pub(crate) fn tell(&mut self, message: &impl Serialize) -> Result<(), ProcessError> {
        let line = serde_json::to_string(message).expect("messages are plain data");
        let sent = self
            .input
            .as_mut()
            .map_or(Ok(()), |input| writeln!(input, "{line}"));
        sent.map_err(|_| self.ended(Deadline::after(GRACE)))
    }

    /// Returns an error if the child has failed already.
    pub(crate) fn check(&mut self) -> Result<(), ProcessError> {
        match self.reap_before(Deadline::after(Duration::ZERO)) {
            Ok(None) => Ok(()),
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(_)) | Err(_) => Err(self.ended(Deadline::after(GRACE))),
        }
    }

    /// Ends the child's input, which tells it to end, and waits until it has ended well.
    pub(crate) fn stop(mut self, deadline: Deadline) -> Result<(), ProcessError> {
        drop(self.input.take());
        self.finish(deadline)
    }

    /// Tells the child that no further order follows, and waits until it has ended well.
    pub(crate) fn dismiss(mut self, deadline: Deadline) -> Result<(), ProcessError> {
        self.tell(&None::<()>)?;
        self.finish(deadline)
    }

    /// Waits until the child has ended well.
    pub(crate) fn finish(mut self, deadline: Deadline) -> Result<(), ProcessError> {
        loop {
            let wait = deadline.remaining().unwrap_or(Duration::ZERO);
            match self.lines.recv_timeout(wait) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(self.silent()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match self.status(deadline) {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(self.ended(deadline)),
            None => Err(self.silent()),
        }
    }

    fn ended(&mut self, deadline: Deadline) -> ProcessError {
        match self.status(deadline) {
            Some(status) => ProcessError::Ended {
                child: self.name.clone(),
                status,
                errors: self.take_errors(),
            },
            None => self.silent(),
        }
    }

    fn silent(&mut self) -> ProcessError {
        self.kill();
        ProcessError::Silent {
            child: self.name.clone(),
            errors: self.take_errors(),
        }
    }

    /// Waits for the exit status; returns nothing if the child still runs at the deadline.
    fn status(&mut self, deadline: Deadline) -> Option<ExitStatus> {
        self.reap_before(deadline).ok().flatten()
    }

    /// Reaps the child if it ends before the deadline, with time sharing.
    #[expect(clippy::disallowed_methods, reason = "it has time sharing")]
    fn reap_before(&mut self, deadline: Deadline) -> io::Result<Option<ExitStatus>> {
        let process = &mut self.process;
        let reap = || {
            loop {
                match process.try_wait()? {
                    None if !deadline.has_passed() => thread::sleep(POLL),
                    status => return Ok(status),
                }
            }
        };
        with_time_sharing(reap).flatten()
    }

    /// Returns the standard error of a child that has ended.
    fn take_errors(&mut self) -> String {
        self.errors
            .take()
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "it has time sharing")]
    fn kill(&mut self) {
        let process = &mut self.process;
        // It fails only if the child was reaped already.
        let _ = process.kill();
        // Where no thread can be started, the end of this process has the child reaped.
        let _ = with_time_sharing(|| process.wait());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs another program to its end, with time sharing.
#[expect(clippy::disallowed_methods, reason = "it has time sharing")]
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    with_time_sharing(|| command.output()).flatten()
}

/// Returns the beginning of a text. Reads the rest, too, so that its writer never blocks.
fn beginning(mut text: impl Read) -> String {
    let mut kept = Vec::new();
    let _ = text.by_ref().take(ERROR_BYTES).read_to_end(&mut kept);
    let _ = io::copy(&mut text, &mut io::sink());
    String::from_utf8_lossy(&kept).trim_end().to_owned()
}

/// The time that a process may take to start and to connect.
const START_UP: Duration = Duration::from_secs(30);
/// The time in which a child must end after its output has ended.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);
const ERROR_BYTES: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use chronorb_rt::{Rights, Scheduling, set_current};

    use super::*;

    fn shell(script: &str) -> Child {
        Child::spawn("shell".to_owned(), Command::new("sh").args(["-c", script])).unwrap()
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn a_child_hears_answers_and_ends_with_its_input() {
        let mut child = shell("read line; echo \"[$line]\"; cat >/dev/null");
        child.check().unwrap();
        child.tell(&7).unwrap();
        assert_eq!(child.hear::<Vec<u32>>(soon()).unwrap(), [7]);
        child.stop(soon()).unwrap();
    }

    #[test]
    fn a_failing_child_is_named_with_its_status_and_its_words() {
        let mut child = shell("echo 'no such object' >&2; exit 3");
        let error = child.hear::<u32>(soon()).unwrap_err().to_string();
        assert!(error.contains("shell"), "{error}");
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("no such object"), "{error}");
    }

    #[test]
    fn a_silent_child_is_killed_at_the_deadline() {
        let mut child = shell("exec sleep 1000");
        let error = child
            .hear::<u32>(Deadline::after(Duration::ZERO))
            .unwrap_err();
        assert!(matches!(error, ProcessError::Silent { .. }), "{error}");
        let passed = Deadline::after(Duration::ZERO);
        assert!(child.reap_before(passed).unwrap().is_some());
    }

    #[test]
    fn a_child_that_goes_on_after_its_input_ended_is_killed() {
        let child = shell("exec sleep 1000");
        let error = child.stop(Deadline::after(Duration::ZERO)).unwrap_err();
        assert!(matches!(error, ProcessError::Silent { .. }), "{error}");
    }

    #[test]
    fn a_child_that_fails_after_its_last_word_has_failed() {
        let mut child = shell("echo 1; exit 4");
        assert_eq!(child.hear::<u32>(soon()).unwrap(), 1);
        let error = child.finish(soon()).unwrap_err().to_string();
        assert!(error.contains("exit status: 4"), "{error}");
    }

    #[test]
    fn a_real_time_thread_reaps_and_keeps_its_priority() {
        let urgent = Scheduling::fifo(1);
        let thread = thread::spawn(move || {
            if let Err(error) = set_current(urgent) {
                assert!(Rights::probe().max_fifo.is_none(), "{error}");
                return;
            }
            shell("exit 0").finish(soon()).unwrap();
            drop(shell("exec sleep 1000"));
            let error = shell("exit 3").hear::<u32>(soon()).unwrap_err();
            assert!(matches!(error, ProcessError::Ended { .. }), "{error}");
            let printed = output(Command::new("echo").arg("7")).unwrap();
            assert_eq!(printed.stdout, b"7\n");
            assert_eq!(chronorb_rt::current().unwrap(), urgent);
        });
        thread.join().unwrap();
    }

    #[test]
    fn nonsense_is_refused() {
        let mut child = shell("echo '<html>'");
        let error = child.hear::<u32>(soon()).unwrap_err();
        assert!(matches!(error, ProcessError::Nonsense { .. }), "{error}");
    }

    #[test]
    fn a_talkative_child_is_neither_held_up_nor_kept_whole() {
        let mut child = shell("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1");
        let error = child.hear::<u32>(soon()).unwrap_err().to_string();
        assert!(error.len() < 20_000);
        assert!(error.contains("exit status: 1"));
    }
}
