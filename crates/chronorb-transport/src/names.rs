//! Host names, resolved within a deadline.
//!
//! `getaddrinfo` takes as long as the system's resolver needs, and cannot be interrupted. So a
//! thread of its own calls it, and the caller waits until its deadline. There are at most
//! [`MAX_LOOK_UPS`] such threads; concurrent look-ups of one name share one of them.
//!
//! Names come from peers, and the servers of a zone may be silent. So the names of one zone have
//! [`MAX_OF_ZONE`] of the threads, and names whose last look-up took long have [`MAX_SLOW`]: others
//! are looked up meanwhile. A name that has to wait for a thread is taken from the file of hosts,
//! if it is there.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, ThreadBuilder};

/// The addresses of a host, at no port, the preferred one first. Those that are written as numbers
/// are not looked up.
///
/// # Errors
/// `TimedOut` if the deadline passes first; else the resolver's error.
pub fn addresses_of(host: &str, deadline: Deadline) -> io::Result<Vec<SocketAddr>> {
    match host.parse::<IpAddr>() {
        Ok(address) => Ok(vec![(address, 0).into()]),
        Err(_) => LOOK_UPS.addresses_of(host, look_up, deadline),
    }
}

/// Has connections and endpoints look names up as [`addresses_of`] does. Before that they do so on
/// their own thread, which may take longer than their deadline. ORBs call this before they open
/// endpoints, and with their first connection.
pub fn look_up_aside() {
    // It is set already where another ORB was first.
    let _ = ASIDE.set(addresses_of);
}

static ASIDE: OnceLock<LookUpBefore> = OnceLock::new();

/// A function that looks a name up before a deadline.
type LookUpBefore = fn(&str, Deadline) -> io::Result<Vec<SocketAddr>>;

/// The addresses of a peer's host, at no port, the preferred one first.
///
/// # Errors
/// Those of [`addresses_of`].
pub(crate) fn addresses_of_peer(host: &str, deadline: Deadline) -> io::Result<Vec<SocketAddr>> {
    match ASIDE.get() {
        Some(aside) => aside(host, deadline),
        None => look_up(host),
    }
}

/// The addresses of a host at which an endpoint is bound, as [`addresses_of_peer`] finds them
/// within [`LONGEST_OF_ENDPOINT`].
///
/// # Errors
/// Those of [`addresses_of`].
pub(crate) fn addresses_of_endpoint(host: &str) -> io::Result<Vec<SocketAddr>> {
    addresses_of_peer(host, Deadline::after(LONGEST_OF_ENDPOINT))
}

/// A function that looks a name up.
type Resolve = fn(&str) -> io::Result<Vec<SocketAddr>>;

fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    Ok((host, 0).to_socket_addrs()?.collect())
}

static LOOK_UPS: LookUps = LookUps::new("/etc/hosts");

/// The look-ups that are under way.
struct LookUps {
    present: PiMutex<Vec<Arc<LookUp>>>,
    /// Advances whenever one ends.
    ended: Gate,
    /// The names whose last look-up took long, the latest one last.
    slow: PiMutex<VecDeque<String>>,
    /// The file of hosts.
    hosts: &'static str,
}

/// The result of a look-up. An error can be moved to one waiter only: others get its kind and text.
type LookUpResult = Result<Vec<SocketAddr>, (io::ErrorKind, String)>;

struct LookUp {
    host: String,
    /// Whether the one before it took long.
    was_slow: bool,
    began: Monotonic,
    found: PiMutex<Option<LookUpResult>>,
    /// 1 when it has ended.
    is_over: Gate,
}

impl LookUps {
    const fn new(hosts: &'static str) -> Self {
        Self {
            present: PiMutex::new(Vec::new()),
            ended: Gate::new(0),
            slow: PiMutex::new(VecDeque::new()),
            hosts,
        }
    }

    fn addresses_of(
        &'static self,
        host: &str,
        resolve: Resolve,
        deadline: Deadline,
    ) -> io::Result<Vec<SocketAddr>> {
        let look_up = match self.look_up(host, resolve, deadline)? {
            Start::LookUp(look_up) => look_up,
            Start::Found(addresses) => return Ok(addresses),
        };
        loop {
            if let Some(found) = &*look_up.found.lock() {
                let found = found.clone();
                return found.map_err(|(kind, text)| io::Error::new(kind, text));
            }
            if deadline.has_passed() {
                self.note_time(&look_up);
                return Err(io::Error::new(io::ErrorKind::TimedOut, NO_ANSWER));
            }
            look_up.is_over.wait_while(0, deadline);
        }
    }

    /// The look-up of a host that is under way, or a new one as soon as there may be one more.
    /// While there may be none, the addresses of the file of hosts.
    fn look_up(
        &'static self,
        host: &str,
        resolve: Resolve,
        deadline: Deadline,
    ) -> io::Result<Start> {
        let was_slow = self.slow.lock().iter().any(|slow| slow == host);
        let mut has_read_hosts = false;
        loop {
            let seen = self.ended.get();
            {
                let mut present = self.present.lock();
                if let Some(look_up) = present.iter().find(|look_up| look_up.host == host) {
                    return Ok(Start::LookUp(look_up.clone()));
                }
                let number = |counts: &dyn Fn(&LookUp) -> bool| {
                    present.iter().filter(|look_up| counts(look_up)).count()
                };
                if present.len() < MAX_LOOK_UPS
                    && number(&|other| zone_of(&other.host) == zone_of(host)) < MAX_OF_ZONE
                    && (!was_slow || number(&|other| other.was_slow) < MAX_SLOW)
                {
                    let look_up = Arc::new(LookUp {
                        host: host.to_owned(),
                        was_slow,
                        began: Monotonic::now(),
                        found: PiMutex::new(None),
                        is_over: Gate::new(0),
                    });
                    present.push(look_up.clone());
                    drop(present);
                    return self.start(look_up, resolve).map(Start::LookUp);
                }
            }
            if !std::mem::replace(&mut has_read_hosts, true) {
                let addresses = in_file_of_hosts(self.hosts, host);
                if !addresses.is_empty() {
                    return Ok(Start::Found(addresses));
                }
            }
            if deadline.has_passed() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, NOT_BEGUN));
            }
            self.ended.wait_while(seen, deadline);
        }
    }

    /// Remembers whether a look-up has taken long so far.
    fn note_time(&self, look_up: &LookUp) {
        let mut slow = self.slow.lock();
        slow.retain(|slow| *slow != look_up.host);
        if Monotonic::now().since(look_up.began) >= LONG {
            if slow.len() == MAX_REMEMBERED {
                slow.pop_front();
            }
            slow.push_back(look_up.host.clone());
        }
    }

    fn start(&'static self, look_up: Arc<LookUp>, resolve: Resolve) -> io::Result<Arc<LookUp>> {
        let (this, own) = (self, look_up.clone());
        let thread = ThreadBuilder::new("names").stack_size(STACK_SIZE);
        let started = thread.spawn(move || {
            let found = resolve(&own.host).map_err(|error| (error.kind(), error.to_string()));
            this.end(&own, found);
        });
        match started {
            Ok(_) => Ok(look_up),
            Err(error) => {
                let text = error.to_string();
                self.end(&look_up, Err((io::ErrorKind::OutOfMemory, text.clone())));
                Err(io::Error::other(text))
            }
        }
    }

    fn end(&self, look_up: &Arc<LookUp>, found: LookUpResult) {
        let is_other = |other: &Arc<LookUp>| !Arc::ptr_eq(other, look_up);
        self.note_time(look_up);
        self.present.lock().retain(is_other);
        *look_up.found.lock() = Some(found);
        look_up.is_over.set(1);
        self.ended.advance();
    }
}

/// The start of a look-up.
enum Start {
    LookUp(Arc<LookUp>),
    /// The file of hosts has the name.
    Found(Vec<SocketAddr>),
}

/// The last two labels of a name, whose servers answer for it as a rule.
fn zone_of(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at + 1);
    dots.nth(1).map_or(host, |start| &host[start..])
}

/// The addresses of a host in a file of the form of hosts(5).
fn in_file_of_hosts(file: &str, host: &str) -> Vec<SocketAddr> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let address_in = |line: &str| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let address = words.next()?.parse::<IpAddr>().ok()?;
        let is_named = words.any(|name| name.eq_ignore_ascii_case(host));
        is_named.then(|| SocketAddr::new(address, 0))
    };
    text.lines().filter_map(address_in).collect()
}

const NO_ANSWER: &str = "no server of names answered in time";
const NOT_BEGUN: &str = "the look-up was not begun in time, because too many others are under way";
/// The longest look-up of the name of an endpoint: one server of names may be silent.
const LONGEST_OF_ENDPOINT: Duration = Duration::from_secs(10);
/// Names that are looked up at a time.
const MAX_LOOK_UPS: usize = 16;
/// Of these, the names of one zone.
const MAX_OF_ZONE: usize = 4;
/// Of these, the names whose last look-up took [long](LONG).
const MAX_SLOW: usize = 8;
/// The time of a look-up after which other names go before the next one of the name.
const LONG: Duration = Duration::from_secs(1);
/// The most names of slow look-ups that are remembered.
const MAX_REMEMBERED: usize = 256;
/// The stack that resolvers and their modules need, in bytes.
const STACK_SIZE: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn numbers_need_no_look_up_and_no_time() {
        let no_time = Deadline::after(Duration::ZERO);
        for text in ["127.0.0.1", "::1"] {
            let found = addresses_of(text, no_time).expect("it is a number");
            assert_eq!(
                found,
                [(text.parse::<IpAddr>().expect("it is one"), 0).into()]
            );
        }
    }

    #[test]
    fn a_wait_ends_with_its_deadline_and_the_next_one_joins_the_same_look_up() {
        static LOOK_UPS: LookUps = LookUps::new("/nonexistent");
        static GO_ON: Gate = Gate::new(0);
        static CALLED: AtomicUsize = AtomicUsize::new(0);
        let resolve: Resolve = |_| {
            CALLED.fetch_add(1, Ordering::SeqCst);
            GO_ON.wait_while(0, Deadline::after(PATIENCE));
            Ok(vec![(Ipv4Addr::LOCALHOST, 0).into()])
        };
        for _ in 0..2 {
            let late = LOOK_UPS.addresses_of("slow", resolve, Deadline::after(SOON));
            assert_eq!(late.map_err(|e| e.kind()), Err(io::ErrorKind::TimedOut));
            assert_eq!(LOOK_UPS.present.lock().len(), 1);
            assert!(CALLED.load(Ordering::SeqCst) <= 1);
        }
        GO_ON.set(1);
        let found = LOOK_UPS.addresses_of("slow", resolve, Deadline::after(PATIENCE));
        assert_eq!(found.ok(), Some(vec![(Ipv4Addr::LOCALHOST, 0).into()]));
    }

    #[test]
    fn there_are_only_so_many_look_ups_and_one_more_waits_for_its_turn() {
        static LOOK_UPS: LookUps = LookUps::new("/nonexistent");
        static GO_ON: Gate = Gate::new(0);
        let resolve: Resolve = |_| {
            GO_ON.wait_while(0, Deadline::after(PATIENCE));
            Err(io::ErrorKind::NotFound.into())
        };
        for i in 0..=MAX_LOOK_UPS {
            let host = i.to_string();
            let late = LOOK_UPS.addresses_of(&host, resolve, Deadline::after(SOON));
            assert_eq!(late.map_err(|e| e.kind()), Err(io::ErrorKind::TimedOut));
        }
        assert_eq!(LOOK_UPS.present.lock().len(), MAX_LOOK_UPS);
        GO_ON.set(1);
        let found = LOOK_UPS.addresses_of("one more", resolve, Deadline::after(PATIENCE));
        assert_eq!(found.map_err(|e| e.kind()), Err(io::ErrorKind::NotFound));
    }

    /// Waits for nothing until a test ends it.
    fn hang(go_on: &'static Gate) {
        go_on.wait_while(0, Deadline::after(PATIENCE));
    }

    #[test]
    fn names_of_a_silent_zone_keep_no_other_name_waiting() {
        static LOOK_UPS: LookUps = LookUps::new("/nonexistent");
        static GO_ON: Gate = Gate::new(0);
        let resolve: Resolve = |host| {
            if host.ends_with("dead.example") {
                hang(&GO_ON);
            }
            Ok(vec![(Ipv4Addr::LOCALHOST, 0).into()])
        };
        for i in 0..MAX_LOOK_UPS {
            let host = format!("host{i}.dead.example");
            let late = LOOK_UPS.addresses_of(&host, resolve, Deadline::after(SOON));
            let late = late.expect_err("its servers are silent");
            let cause = if i < MAX_OF_ZONE {
                NO_ANSWER
            } else {
                NOT_BEGUN
            };
            assert_eq!(late.to_string(), cause);
        }
        for host in ["radar.alive.example", "localhost", "example"] {
            let found = LOOK_UPS.addresses_of(host, resolve, Deadline::after(PATIENCE));
            assert_eq!(found.ok(), Some(vec![(Ipv4Addr::LOCALHOST, 0).into()]));
        }
        GO_ON.set(1);
    }

    #[test]
    fn names_that_took_long_before_leave_threads_to_others() {
        static LOOK_UPS: LookUps = LookUps::new("/nonexistent");
        static GO_ON: Gate = Gate::new(0);
        let resolve: Resolve = |host| {
            if host.starts_with("slow") {
                hang(&GO_ON);
            }
            Ok(vec![(Ipv4Addr::LOCALHOST, 0).into()])
        };
        let slow: Vec<_> = (0..MAX_LOOK_UPS).map(|i| format!("slow{i}")).collect();
        LOOK_UPS.slow.lock().extend(slow.iter().cloned());
        for (i, host) in slow.iter().enumerate() {
            let late = LOOK_UPS.addresses_of(host, resolve, Deadline::after(SOON));
            let late = late.expect_err("it hangs");
            let cause = if i < MAX_SLOW { NO_ANSWER } else { NOT_BEGUN };
            assert_eq!(late.to_string(), cause);
        }
        let found = LOOK_UPS.addresses_of("fast", resolve, Deadline::after(PATIENCE));
        assert_eq!(found.ok(), Some(vec![(Ipv4Addr::LOCALHOST, 0).into()]));
        GO_ON.set(1);
    }

    #[test]
    fn a_name_of_the_file_of_hosts_waits_for_no_thread() {
        const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hosts.txt");
        static LOOK_UPS: LookUps = LookUps::new(HOSTS);
        static GO_ON: Gate = Gate::new(0);
        let resolve: Resolve = |_| {
            hang(&GO_ON);
            Err(io::ErrorKind::NotFound.into())
        };
        for i in 0..MAX_LOOK_UPS {
            let late = LOOK_UPS.addresses_of(&i.to_string(), resolve, Deadline::after(SOON));
            assert_eq!(late.map_err(|e| e.kind()), Err(io::ErrorKind::TimedOut));
        }
        let found = LOOK_UPS.addresses_of("Radar", resolve, Deadline::after(PATIENCE));
        let expected = ["192.0.2.7", "2001:db8::7"];
        let expected = expected.map(|text| SocketAddr::new(text.parse().expect("it is one"), 0));
        assert_eq!(found.ok(), Some(expected.to_vec()));
        GO_ON.set(1);
    }

    #[test]
    fn the_zone_of_a_name_is_its_last_two_labels() {
        for (host, zone) in [
            ("a.b.example", "b.example"),
            ("b.example.", "b.example"),
            ("host", "host"),
            ("", ""),
        ] {
            assert_eq!(zone_of(host), zone);
        }
    }
}
