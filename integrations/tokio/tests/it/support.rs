//! A server and a client in this process, each with an ORB.

use std::future::Future;
use std::sync::{Arc, Condvar, Mutex};

use chronorb::config::{Collocation, ConnectionStrategy};
use chronorb::prelude::*;
use chronorb_integration_tokio::{Numbers, NumbersServant, NumbersSkeleton};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Runs `test` by each kind of connection on a runtime of one thread and on one of two, and shuts
/// down the ORBs.
pub(crate) fn on_each_runtime<F>(test: impl Fn(Pair) -> F)
where
    F: Future<Output = Pair> + Send + 'static,
{
    for strategy in [
        ConnectionStrategy::Exclusive,
        ConnectionStrategy::Leader,
        ConnectionStrategy::Thread,
    ] {
        let one = Builder::new_current_thread().enable_time().build();
        let two = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build();
        for runtime in [one, two] {
            let runtime = runtime.expect("a runtime");
            let test = test(Pair::new(strategy));
            runtime.block_on(async {
                // As a task, so that it runs on a thread of the runtime.
                let pair = tokio::spawn(test).await.expect("the test passes");
                spawn_blocking(move || pair.shut_down())
                    .await
                    .expect("shut down");
            });
        }
    }
}

/// A server and its client.
pub(crate) struct Pair {
    pub(crate) server: Orb,
    pub(crate) client: Orb,
    pub(crate) numbers: Numbers,
    pub(crate) gate: Arc<Gate>,
    held: watch::Receiver<usize>,
}

impl Pair {
    fn new(strategy: ConnectionStrategy) -> Self {
        let (server, client) = (orb(strategy), orb(strategy));
        let gate = Arc::new(Gate::default());
        let (sender, held) = watch::channel(0);
        let servant = Doubler {
            gate: gate.clone(),
            held: sender,
        };
        let root = server.root_poa().expect("a root POA");
        let object = root.serve(NumbersSkeleton::new(servant)).expect("served");
        root.manager().activate().expect("active");
        let reference = server.object_to_string(&object);
        let object = client.string_to_object(&reference).expect("a reference");
        let numbers = Numbers::unchecked_narrow(&object);
        Self {
            server,
            client,
            numbers,
            gate,
            held,
        }
    }

    /// The number of connections that the server has accepted.
    pub(crate) fn accepted(&self) -> u64 {
        let pools = self.server.snapshot().pools;
        let lanes = pools.iter().flat_map(|pool| &pool.lanes);
        lanes.map(|lane| lane.accepted).sum()
    }

    /// Waits until the server holds so many calls.
    pub(crate) async fn until_held(&self, count: usize) {
        let mut held = self.held.clone();
        let reached = held.wait_for(|held| *held >= count).await;
        reached.expect("the servant lives");
    }

    /// Begins as many calls as the client may have under way, and takes their results.
    pub(crate) async fn assert_that_no_call_is_under_way(&self) {
        let begun: Vec<_> = (0..MAX_PENDING as i32)
            .map(|n| self.numbers.begin_twice(n).expect("there is room"))
            .collect();
        let refusal = self.numbers.begin_twice(0).expect_err("there is no room");
        assert_eq!(refusal.kind, SystemExceptionKind::Transient);
        for (n, call) in begun.into_iter().enumerate() {
            assert_eq!(call.await, Ok(2 * n as i32));
        }
    }

    fn shut_down(self) {
        self.client.shutdown(true).expect("shut down");
        self.server.shutdown(true).expect("shut down");
    }
}

/// The limit of calls under way, the default.
const MAX_PENDING: usize = 256;

fn orb(strategy: ConnectionStrategy) -> Orb {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let mut config = OrbConfig::read(&mut args).expect("the options are correct");
    config.collocation = Collocation::Off;
    config.client_connection = strategy;
    Orb::with_config(config).expect("an ORB")
}

struct Doubler {
    gate: Arc<Gate>,
    /// The number of calls that have come to the gate.
    held: watch::Sender<usize>,
}

impl NumbersServant for Doubler {
    fn twice(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        Ok(2 * n)
    }

    fn held(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        self.held.send_modify(|held| *held += 1);
        self.gate.pass();
        Ok(n)
    }
}

/// A gate that opens once.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.is_open.lock().expect("no holder panics") = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_open = self.is_open.lock().expect("no holder panics");
        let passed = self.opened.wait_while(is_open, |is_open| !*is_open);
        drop(passed.expect("no holder panics"));
    }
}
