//! The attackers: threads of a process, on plain sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use chronorb_rt::{Monotonic, sleep_until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::nice;

use super::attack::{Attack, CONNECTIONS, Conduct};
use super::client::read_reply;
use super::messages;
use super::order::{AttackTraffic, PhaseRun, Target};
use super::plan::HostilePlan;
use crate::bench::allow_files;
use crate::error::LabError;
use crate::process::{self, Parent, Ready};

/// Attacks once. The process ends at once when standard input ends before that.
pub(super) fn attack(target: &Target, plan: &HostilePlan, attack: Attack) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    allow_files(CONNECTIONS as u64 + OTHER_FILES);
    // The time of the victim is measured, so the making of messages must not compete with it.
    step_back()?;
    let conduct = attack.conduct(&target.key, plan);
    process::tell(&Ready {})?;
    let run: PhaseRun = parent.hear()?;
    let window = run.window();
    sleep_until(window.start);
    let site = AttackSite {
        address: target.address,
        end: window.start + window.length,
    };
    let sent = match conduct {
        Conduct::Hold {
            connections,
            opening,
        } => site.hold(connections, &opening),
        Conduct::Call(request) => site.with_threads(|_, stream, sent| {
            site.send(stream, &request, sent)?;
            // An exception is an answer too.
            match read_reply(&mut PatientReader(&site, stream)) {
                Err(error) if error.kind() != ErrorKind::Other => Err(error),
                _ => Ok(()),
            }
        }),
        Conduct::Stream(first, next) => site.with_threads(|_, stream, sent| {
            site.send(stream, &first, sent)?;
            loop {
                site.send(stream, &next, sent)?;
            }
        }),
        Conduct::Malformed => site.with_threads(|random, stream, sent| {
            let message = messages::malformed(&target.key, random);
            site.send(stream, &message, sent)?;
            // The server answers with an error, and closes.
            while PatientReader(&site, stream).read(&mut [0; 256])? > 0 {}
            Err(ErrorKind::UnexpectedEof.into())
        }),
    };
    process::tell(&sent)?;
    Ok(())
}

/// Makes this process the least urgent of the machine.
pub(super) fn step_back() -> Result<(), LabError> {
    nice(LEAST_URGENT).map_err(LabError::work("stepping behind the others"))?;
    Ok(())
}

/// The address that is attacked, and the end of the attack.
pub(super) struct AttackSite {
    pub(super) address: SocketAddr,
    pub(super) end: Monotonic,
}

impl AttackSite {
    pub(super) fn is_over(&self) -> bool {
        Monotonic::now() >= self.end
    }

    pub(super) fn connect(&self, sent: &mut AttackTraffic) -> Option<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, STEP).and_then(|stream| {
            stream.set_write_timeout(Some(STEP))?;
            stream.set_read_timeout(Some(STEP))?;
            Ok(stream)
        });
        match stream {
            Ok(_) => sent.connections += 1,
            Err(_) => sent.refused += 1,
        }
        stream.ok()
    }

    /// Sends all octets, unless the attack is over before.
    pub(super) fn send(
        &self,
        mut stream: &TcpStream,
        octets: &[u8],
        sent: &mut AttackTraffic,
    ) -> io::Result<()> {
        let mut rest = octets;
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    sent.octets += taken as u64;
                    rest = &rest[taken..];
                }
                Err(error) if is_time_out(&error) => {}
                Err(error) => return Err(error),
            }
            if self.is_over() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    /// Has threads act on a connection each again and again, after an error on a new one.
    fn with_threads(
        &self,
        act: impl Fn(&mut fastrand::Rng, &TcpStream, &mut AttackTraffic) -> io::Result<()> + Sync,
    ) -> AttackTraffic {
        let act = &act;
        thread::scope(|scope| {
            let threads = (0..THREADS).map(|seed| {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    let mut sent = AttackTraffic::default();
                    // A thread that gets a processor late connects at least once.
                    loop {
                        match self.connect(&mut sent) {
                            Some(stream) => {
                                while act(&mut random, &stream, &mut sent).is_ok()
                                    && !self.is_over()
                                {}
                            }
                            None => thread::sleep(PAUSE),
                        }
                        if self.is_over() {
                            return sent;
                        }
                    }
                })
            });
            let threads: Vec<_> = threads.collect();
            let sent = threads.into_iter();
            let sent = sent.map(|thread| thread.join().expect("attackers do not panic"));
            sent.fold(AttackTraffic::default(), AttackTraffic::and)
        })
    }

    /// Holds connections, and opens those again that the server closes.
    fn hold(&self, connections: usize, opening: &[u8]) -> AttackTraffic {
        let mut sent = AttackTraffic::default();
        let mut held: Vec<Option<HeldConnection<'_>>> = (0..connections).map(|_| None).collect();
        loop {
            for place in &mut held {
                if place.as_mut().is_some_and(|held| held.go_on(&mut sent)) {
                    continue;
                }
                *place = self.connect(&mut sent).and_then(|stream| {
                    stream.set_nonblocking(true).ok()?;
                    let mut held = HeldConnection {
                        stream,
                        rest: opening,
                    };
                    held.go_on(&mut sent).then_some(held)
                });
                if self.is_over() {
                    return sent;
                }
            }
            sleep_until(self.end.min(Monotonic::now() + PAUSE));
            if self.is_over() {
                return sent;
            }
        }
    }
}

/// A connection that is held, with what is still to be sent on it.
struct HeldConnection<'a> {
    stream: TcpStream,
    rest: &'a [u8],
}

impl HeldConnection<'_> {
    /// Sends as much as the server takes, and reads nothing. Returns whether the server still holds
    /// the connection.
    fn go_on(&mut self, sent: &mut AttackTraffic) -> bool {
        let closed = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut looked_at = [PollFd::new(&self.stream, closed)];
        let at_once = Timespec::default();
        if poll(&mut looked_at, Some(&at_once)).is_err() || !looked_at[0].revents().is_empty() {
            return false;
        }
        if self.rest.is_empty() {
            return true;
        }
        match (&self.stream).write(self.rest) {
            Ok(taken) => {
                sent.octets += taken as u64;
                self.rest = &self.rest[taken..];
                true
            }
            Err(error) => is_time_out(&error),
        }
    }
}

/// Reads as long as the attack lasts.
pub(super) struct PatientReader<'a>(pub(super) &'a AttackSite, pub(super) &'a TcpStream);

impl Read for PatientReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.1.read(buffer) {
                Err(error) if is_time_out(&error) && !self.0.is_over() => {}
                outcome => return outcome,
            }
        }
    }
}

fn is_time_out(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The threads of an attacker, as many as those of the victim.
const THREADS: u64 = 4;
/// The longest step on a socket before the time is checked.
const STEP: Duration = Duration::from_millis(100);
/// The pause of an attacker that was refused, and between two checks of the held connections.
const PAUSE: Duration = Duration::from_millis(10);
const LEAST_URGENT: i32 = 19;
pub(super) const OTHER_FILES: u64 = 32;
