//! The server: sends small messages back, and takes bulk data in.

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use chronorb_rio::Riop;
use chronorb_rt::{Monotonic, Scheduling, lock_all, set_current};
use chronorb_transport::tcp::Tcp;
use chronorb_transport::{
    Acceptor, Connection, Deadline, IoError, Setup, Transport, parse_endpoints,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::course::Course;
use super::order::{BLOCK, Door, ECHO, Served, ServerOrder, Service, Serving};
use crate::error::LabError;
use crate::process::{self, Parent};
use crate::work;

/// Serves those who come, and tells the parent what came when all have gone. The process ends at once when standard
/// input ends before that.
pub(super) fn serve(order: &ServerOrder) -> Result<(), LabError> {
    let _parent = Parent::or_exit();
    if order.lock_memory {
        lock_all().map_err(LabError::work("locking memory"))?;
    }
    // All doors have the interface in common, which is open as long as this is there.
    let rio = Riop::default();
    let opened = order.doors.iter().map(|door| open(door, &rio));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let doors = opened.iter().map(|acceptor| address(acceptor.as_ref()));
    process::tell(&Serving {
        doors: doors.collect::<Result<_, _>>()?,
    })?;
    let courses: Result<Vec<_>, _> = thread::scope(|scope| {
        let doors = order.doors.iter().zip(&opened);
        let attendants: Vec<_> = doors
            .map(|(door, acceptor)| scope.spawn(|| attend(door, acceptor.as_ref())))
            .collect();
        let joined = attendants.into_iter().map(|attendant| {
            let courses = attendant.join();
            courses.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    });
    process::tell(&Served {
        courses: courses?.concat(),
    })?;
    Ok(())
}

/// Opens a door, with RIO where its scheme says so, else with the kernel's TCP.
fn open(door: &Door, rio: &Riop) -> Result<Box<dyn Acceptor>, LabError> {
    let endpoints = parse_endpoints(&door.endpoint);
    let endpoints = endpoints.map_err(LabError::work("reading an endpoint"))?;
    let endpoint = &endpoints[0];
    let transport: &dyn Transport = match endpoint.scheme == rio.scheme() {
        true => rio,
        false => &Tcp,
    };
    let acceptors = transport.listen(endpoint, Setup::default());
    let mut acceptors = acceptors.map_err(LabError::work("listening"))?;
    Ok(acceptors.remove(0))
}

/// Where it is reached.
fn address(acceptor: &dyn Acceptor) -> Result<SocketAddr, LabError> {
    let published = &acceptor.published()[0];
    let host = published.as_host().and_then(|(host, port)| {
        let host: IpAddr = host.parse().ok()?;
        Some(SocketAddr::new(host, port))
    });
    host.ok_or_else(|| LabError::work("listening")(format!("{published} is no address")))
}

/// Takes in as many connections as there are services, and serves each in a thread of its own. Nobody looks at the
/// door after that, so that packets of a connection wake up none but who waits for them.
fn attend(door: &Door, acceptor: &dyn Acceptor) -> Result<Vec<Course>, LabError> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for service in &door.services {
            let connection = next(acceptor)?;
            threads.push(scope.spawn(move || attend_one(*service, connection.as_ref())));
        }
        let joined = threads.into_iter().map(|thread| {
            let course = thread.join();
            course.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.filter_map(Result::transpose).collect()
    })
}

/// Waits for the next connection.
fn next(acceptor: &dyn Acceptor) -> Result<Box<dyn Connection>, LabError> {
    let doing = "taking a connection in";
    loop {
        if let Some(connection) = acceptor.accept().map_err(LabError::work(doing))? {
            return Ok(connection);
        }
        let descriptor = acceptor.as_fd();
        let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut descriptors, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(LabError::work(doing)(error)),
        }
    }
}

fn attend_one(service: Service, connection: &dyn Connection) -> Result<Option<Course>, LabError> {
    match service {
        Service::Echo { fifo } => {
            hurry(fifo)?;
            echo(connection).map(|()| None)
        }
        Service::Sink { fifo, steps } => {
            hurry(fifo)?;
            sink(connection, steps).map(Some)
        }
    }
}

/// Schedules the calling thread.
pub(super) fn hurry(fifo: Option<u8>) -> Result<(), LabError> {
    let Some(priority) = fifo else { return Ok(()) };
    set_current(Scheduling::fifo(priority)).map_err(LabError::work("setting the priority"))
}

/// Sends back what comes until the peer ends.
fn echo(connection: &dyn Connection) -> Result<(), LabError> {
    let mut room = [0; ECHO];
    loop {
        let octets = match connection.recv(&mut room, Deadline::after(PATIENCE)) {
            Ok(octets) => octets,
            Err(IoError::Ended | IoError::Closed) => return Ok(()),
            Err(error) => return Err(LabError::work("waiting for an echo")(error)),
        };
        connection
            .send_all(&room[..octets], Deadline::after(PATIENCE))
            .map_err(LabError::work("sending an echo back"))?;
    }
}

/// Takes what comes until the peer ends, and computes for each block.
fn sink(connection: &dyn Connection, steps: u32) -> Result<Course, LabError> {
    let mut room = vec![0; BLOCK];
    let mut course = Course::begin(ROOM);
    let mut in_block = 0;
    loop {
        let octets = match connection.recv(&mut room, Deadline::after(PATIENCE)) {
            Ok(octets) => octets,
            Err(IoError::Ended | IoError::Closed) => return Ok(course),
            Err(error) => return Err(LabError::work("waiting for bulk data")(error)),
        };
        course.add(Monotonic::now(), octets);
        in_block += octets;
        while in_block >= BLOCK {
            in_block -= BLOCK;
            if steps > 0 {
                work::cube(7, steps);
            }
        }
    }
}

/// How long nothing may come.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How long a course may be before it takes memory.
const ROOM: Duration = Duration::from_secs(120);
