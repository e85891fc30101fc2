//! Clients that call through an ORB.

use std::sync::mpsc;

use chronorb_orb::{Object, Orb, SystemException};

use super::{BALLAST, corba};
use crate::support::{PATIENCE, call};

type Job = Box<dyn FnOnce() + Send>;

/// Threads that call through an ORB, each on its own permanent connections.
pub(crate) struct Callers {
    orb: Orb,
    /// Idle threads, by their priority.
    idle: Vec<(Option<i16>, mpsc::Sender<Job>)>,
}

/// A call under way.
pub(crate) struct ActiveCall {
    pub(crate) number: u32,
    priority: Option<i16>,
    client: mpsc::Sender<Job>,
    answer: mpsc::Receiver<Result<(), SystemException>>,
}

impl Callers {
    pub(crate) fn new(orb: &Orb) -> Self {
        Self {
            orb: orb.clone(),
            idle: Vec::new(),
        }
    }

    /// Calls from a thread of this priority.
    pub(crate) fn run(
        &mut self,
        priority: Option<i16>,
        number: u32,
        call: impl FnOnce() -> Result<(), SystemException> + Send + 'static,
    ) -> ActiveCall {
        let idle = self.idle.iter().position(|(of, _)| *of == priority);
        let client = match idle {
            Some(idle) => self.idle.swap_remove(idle).1,
            None => self.start(priority),
        };
        let (sender, answer) = mpsc::channel();
        let job: Job = Box::new(move || {
            let _ = sender.send(call());
        });
        client.send(job).expect("it waits for it");
        ActiveCall {
            number,
            priority,
            client,
            answer,
        }
    }

    /// Calls a held servant.
    pub(crate) fn hold(
        &mut self,
        priority: Option<i16>,
        object: &Object,
        number: u32,
    ) -> ActiveCall {
        self.hold_with(priority, object, number, BALLAST)
    }

    /// Like [`hold`](Self::hold), with this many octets of payload.
    pub(crate) fn hold_with(
        &mut self,
        priority: Option<i16>,
        object: &Object,
        number: u32,
        octets: usize,
    ) -> ActiveCall {
        let object = object.clone();
        let call = move || hold(&object, "hold", number, octets);
        self.run(priority, number, call)
    }

    /// Calls a held servant that panics afterwards.
    pub(crate) fn hold_and_panic(
        &mut self,
        priority: Option<i16>,
        object: &Object,
        number: u32,
    ) -> ActiveCall {
        let object = object.clone();
        let call = move || hold(&object, "hold_and_panic", number, BALLAST);
        self.run(priority, number, call)
    }

    /// Returns the result of a request.
    pub(crate) fn answer(&mut self, calling: ActiveCall) -> Result<(), SystemException> {
        let answer = calling.answer.recv_timeout(2 * PATIENCE);
        let answer = answer.unwrap_or_else(|_| panic!("request {} hangs", calling.number));
        self.idle.push((calling.priority, calling.client));
        answer
    }

    fn start(&self, priority: Option<i16>) -> mpsc::Sender<Job> {
        let (sender, jobs) = mpsc::channel::<Job>();
        let orb = self.orb.clone();
        std::thread::spawn(move || {
            if let Some(priority) = priority {
                let current = orb.rt_current();
                current
                    .set_priority(corba(priority))
                    .expect("it has a native priority");
            }
            jobs.into_iter().for_each(|job| job());
        });
        sender
    }
}

fn hold(
    object: &Object,
    operation: &'static str,
    number: u32,
    octets: usize,
) -> Result<(), SystemException> {
    let ballast = vec![0_u8; octets];
    let write = |e: &mut chronorb_cdr::Encoder<'_>| {
        e.write_u32(number)?;
        e.write_octet_seq(&ballast)
    };
    call(object, operation, &write, |d| d.read_u32()).map(|back| assert_eq!(back, number))
}
