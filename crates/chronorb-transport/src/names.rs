//! Host names, resolved within a deadline.
//!
//! `getaddrinfo` takes as long as the system's resolver needs, and cannot be interrupted. So a
//! thread of its own calls it, and the caller waits until its deadline. There are at most
//! [`MAX_LOOK_UPS`] such threads; concurrent look-ups of one name share one of them.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use chronorb_rt::{Deadline, Gate, PiMutex, ThreadBuilder};

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

/// A function that looks a name up.
type Resolve = fn(&str) -> io::Result<Vec<SocketAddr>>;

fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    Ok((host, 0).to_socket_addrs()?.collect())
}

static LOOK_UPS: LookUps = LookUps::new();

/// The look-ups that are under way.
struct LookUps {
    present: PiMutex<Vec<Arc<LookUp>>>,
    /// Advances whenever one ends.
    ended: Gate,
}

/// The result of a look-up. An error can be moved to one waiter only: others get its kind and text.
type LookUpResult = Result<Vec<SocketAddr>, (io::ErrorKind, String)>;

struct LookUp {
    host: String,
    found: PiMutex<Option<LookUpResult>>,
    /// 1 when it has ended.
    is_over: Gate,
}

impl LookUps {
    const fn new() -> Self {
        Self {
            present: PiMutex::new(Vec::new()),
            ended: Gate::new(0),
        }
    }

    fn addresses_of(
        &'static self,
        host: &str,
        resolve: Resolve,
        deadline: Deadline,
    ) -> io::Result<Vec<SocketAddr>> {
        let look_up = self.look_up(host, resolve, deadline)?;
        loop {
            if let Some(found) = &*look_up.found.lock() {
                let found = found.clone();
                return found.map_err(|(kind, text)| io::Error::new(kind, text));
            }
            if deadline.has_passed() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            look_up.is_over.wait_while(0, deadline);
        }
    }

    /// The look-up of a host that is under way, or a new one as soon as there may be one more.
    fn look_up(
        &'static self,
        host: &str,
        resolve: Resolve,
        deadline: Deadline,
    ) -> io::Result<Arc<LookUp>> {
        loop {
            let seen = self.ended.get();
            {
                let mut present = self.present.lock();
                if let Some(look_up) = present.iter().find(|look_up| look_up.host == host) {
                    return Ok(look_up.clone());
                }
                if present.len() < MAX_LOOK_UPS {
                    let look_up = Arc::new(LookUp {
                        host: host.to_owned(),
                        found: PiMutex::new(None),
                        is_over: Gate::new(0),
                    });
                    present.push(look_up.clone());
                    drop(present);
                    return self.start(look_up, resolve);
                }
            }
            if deadline.has_passed() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.ended.wait_while(seen, deadline);
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
        self.present.lock().retain(is_other);
        *look_up.found.lock() = Some(found);
        look_up.is_over.set(1);
        self.ended.advance();
    }
}

/// Names that are looked up at a time.
const MAX_LOOK_UPS: usize = 16;
/// The stack that resolvers and their modules need, in bytes.
const STACK_SIZE: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

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
        static LOOK_UPS: LookUps = LookUps::new();
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
        static LOOK_UPS: LookUps = LookUps::new();
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
}
