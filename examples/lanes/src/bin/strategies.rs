//! The cost of a call with each thread-pool strategy, beside a raw socket: `taskset -c 0 cargo run
//! --release -p lanes-example --bin strategies`.
//!
//! One thread calls `ping` of a server in the same process by the loopback interface, with ordinary
//! scheduling. The three take turns, so that disturbances of the machine affect all of them.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use chronorb::config::ThreadpoolStrategy;
use chronorb::prelude::*;
use chronorb::transport::parse_endpoints;
use quoter_example::{Book, Quoter, QuoterSkeleton};

fn main() -> Result<(), Box<dyn Error>> {
    let leader_followers = Server::new(ThreadpoolStrategy::LeaderFollowers)?;
    let half_sync = Server::new(ThreadpoolStrategy::HalfSyncHalfAsync)?;
    let client = Orb::with_config(OrbConfig::default())?;
    let mut raw = raw_socket()?;
    let first = leader_followers.quoter(&client)?;
    let second = half_sync.quoter(&client)?;
    let mut calls: [(&str, Vec<Duration>); 3] = ["raw socket", "Leader/Followers", "Half-Sync"]
        .map(|name| (name, Vec::with_capacity(ROUNDS * CALLS)));
    for round in 0..=ROUNDS {
        for (which, (_, times)) in calls.iter_mut().enumerate() {
            for n in 0..CALLS {
                let begun = Instant::now();
                match which {
                    0 => exchange(&mut raw)?,
                    1 => first.ping(n as i32).map(drop)?,
                    _ => second.ping(n as i32).map(drop)?,
                }
                // The first round warms up.
                if round > 0 {
                    times.push(begun.elapsed());
                }
            }
        }
    }
    println!("{:<20} {:>10} {:>10}", "", "median µs", "p99 µs");
    for (name, times) in &mut calls {
        times.sort_unstable();
        let at = |share: f64| times[(times.len() as f64 * share) as usize].as_nanos() as f64 / 1e3;
        println!("{name:<20} {:>10.1} {:>10.1}", at(0.5), at(0.99));
    }
    for orb in [client, leader_followers.orb, half_sync.orb] {
        orb.shutdown(true)?;
    }
    Ok(())
}

/// An ORB with one object on a pool of one lane with one thread.
struct Server {
    orb: Orb,
    reference: String,
}

impl Server {
    fn new(strategy: ThreadpoolStrategy) -> Result<Self, Box<dyn Error>> {
        let mut config = OrbConfig::default();
        config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
        config.threadpool_strategy = strategy;
        let orb = Orb::with_config(config)?;
        let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
            lanes: vec![Lane::new(Priority::MIN, 1)],
            ..Default::default()
        })?;
        let root = orb.root_poa()?;
        let poa = root.create_poa(
            "quotes",
            Some(root.manager()),
            &[
                Policy::Threadpool(pool),
                Policy::PriorityModel(PriorityModel::ServerDeclared, Priority::MIN),
            ],
        )?;
        root.manager().activate()?;
        let object = poa.serve(QuoterSkeleton::new(Book::acme()))?;
        let reference = orb.object_to_string(&object);
        Ok(Self { orb, reference })
    }

    fn quoter(&self, client: &Orb) -> Result<Quoter, Box<dyn Error>> {
        let object = client.string_to_object(&self.reference)?;
        Ok(Quoter::narrow(&object)?.ok_or("the object is no Quoter")?)
    }
}

/// Returns a connection to a thread that echoes its input.
fn raw_socket() -> Result<TcpStream, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    stream.set_nodelay(true)?;
    let (mut there, _) = listener.accept()?;
    there.set_nodelay(true)?;
    std::thread::spawn(move || {
        let mut octets = [0; OCTETS];
        while there.read_exact(&mut octets).is_ok() && there.write_all(&octets).is_ok() {}
    });
    Ok(stream)
}

fn exchange(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut octets = [0; OCTETS];
    stream.write_all(&octets)?;
    stream.read_exact(&mut octets)
}

const ROUNDS: usize = 20;
const CALLS: usize = 2_000;
/// About the length of a `ping` request.
const OCTETS: usize = 96;
