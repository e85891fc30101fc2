//! A switch that keeps each frame for a while.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chronorb_net::LinkSocket;
use chronorb_rt::{Deadline, Monotonic, PiMutex, Scheduling, Thread, ThreadBuilder, Wake};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

/// A thread that forwards from port to port, until this is dropped.
#[derive(Debug)]
pub(super) struct DelayThread {
    thread: Option<Thread<()>>,
    end: Arc<Wake>,
}

impl DelayThread {
    /// Starts it, between two interfaces of the calling thread's network namespace.
    pub(super) fn start(ports: [u32; 2], delay: Duration) -> io::Result<Self> {
        let [a, b] = ports.map(LinkSocket::open);
        let ports = [a?, b?];
        for port in &ports {
            // Packets wait here while the thread does not run. A smaller buffer is no reason not to
            // start.
            let _ = set_socket_recv_buffer_size_force(port, RECEIVE_ROOM);
        }
        let ways = [Way::new(delay), Way::new(delay)];
        let end = Arc::new(Wake::new()?);
        let switch = Switch {
            ports,
            ways,
            end: Arc::clone(&end),
        };
        let thread = switch.start()?;
        Ok(Self {
            thread: Some(thread),
            end,
        })
    }
}

impl Drop for DelayThread {
    fn drop(&mut self) {
        self.end.notify();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// The state of the switch's thread.
struct Switch {
    ports: [LinkSocket; 2],
    /// From each port to the other.
    ways: [Way; 2],
    end: Arc<Wake>,
}

impl Switch {
    /// Starts the thread, before those that it is between, if that is permitted: a switch does not
    /// stop because a host is busy.
    fn start(self) -> io::Result<Thread<()>> {
        // A refused declaration does not return its arguments.
        let switch = Arc::new(PiMutex::new(Some(self)));
        let spawn = |scheduling| {
            let switch = Arc::clone(&switch);
            let run = move || {
                let switch = switch.lock().take();
                switch.into_iter().for_each(Self::run);
            };
            ThreadBuilder::new("switch")
                .scheduling(scheduling)
                .spawn(run)
        };
        let started = spawn(Scheduling::fifo(URGENT)).or_else(|_| spawn(Scheduling::OTHER));
        started.map_err(io::Error::other)
    }

    fn run(mut self) {
        let mut room = vec![0; FRAME];
        loop {
            let mut next: Option<Monotonic> = None;
            for (from, way) in self.ways.iter_mut().enumerate() {
                way.take(&self.ports[from], &mut room);
                let due = way.give(&self.ports[1 - from], Monotonic::now());
                next = next.into_iter().chain(due).min();
            }
            let left = next.map(|due| Deadline::at(due).remaining().unwrap_or_default());
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let [a, b] = &self.ports;
            let mut fds = [
                PollFd::new(a, PollFlags::IN),
                PollFd::new(b, PollFlags::IN),
                PollFd::new(&*self.end, PollFlags::IN),
            ];
            match poll(&mut fds, left.as_ref()) {
                Ok(_) if fds[2].revents().is_empty() => {}
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// The frames that are on their way in one direction.
struct Way {
    delay: Duration,
    frames: VecDeque<(Monotonic, Box<[u8]>)>,
    octets: usize,
}

impl Way {
    fn new(delay: Duration) -> Self {
        Self {
            delay,
            frames: VecDeque::new(),
            octets: 0,
        }
    }

    /// Receives the available frames, as far as there is room.
    fn take(&mut self, port: &LinkSocket, room: &mut [u8]) {
        for _ in 0..AT_ONCE {
            match port.receive(room) {
                Ok(len) => self.push(Monotonic::now(), &room[..len]),
                // Nothing there, the interface down for a moment, or a frame that no cable carries.
                Err(_) => return,
            }
        }
    }

    fn push(&mut self, now: Monotonic, frame: &[u8]) {
        if self.octets + frame.len() <= ROOM {
            self.octets += frame.len();
            self.frames.push_back((now + self.delay, frame.into()));
        }
    }

    /// Sends the frames whose delay is over; returns when the next one is due.
    fn give(&mut self, port: &LinkSocket, now: Monotonic) -> Option<Monotonic> {
        while let Some(frame) = self.pop(now) {
            // Frames that do not fit into the port's queue are lost, as in any switch.
            let _ = port.send(&frame);
        }
        self.frames.front().map(|(due, _)| *due)
    }

    fn pop(&mut self, now: Monotonic) -> Option<Box<[u8]>> {
        self.frames.front().filter(|(due, _)| *due <= now)?;
        let (_, frame) = self.frames.pop_front()?;
        self.octets -= frame.len();
        Some(frame)
    }
}

/// Above the lanes of an application.
const URGENT: u8 = 90;
/// Octets of the longest frame, with a tag.
const FRAME: usize = 65_536 + 64;
/// Octets that are on the way at most: those of a tenth of a second at 5 Gbit/s.
const ROOM: usize = 64 << 20;
const RECEIVE_ROOM: usize = 8 << 20;
/// Frames from one port before it is the turn of the other.
const AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_for_their_time_and_stay_in_order() {
        let at = |ms: u64| Monotonic::from_nanos(ms * 1_000_000);
        let mut way = Way::new(Duration::from_millis(10));
        way.push(at(0), b"first");
        way.push(at(1), b"second");
        assert_eq!(way.pop(at(9)), None);
        assert_eq!(way.pop(at(10)).as_deref(), Some(&b"first"[..]));
        assert_eq!(way.pop(at(10)), None);
        assert_eq!(way.pop(at(20)).as_deref(), Some(&b"second"[..]));
        assert_eq!((way.pop(at(99)), way.octets), (None, 0));
    }

    #[test]
    fn what_there_is_no_room_for_is_lost() {
        let mut way = Way::new(Duration::from_secs(1));
        let frame = vec![0; ROOM / 4];
        for _ in 0..5 {
            way.push(Monotonic::from_nanos(0), &frame);
        }
        assert_eq!(way.frames.len(), 4);
    }
}
