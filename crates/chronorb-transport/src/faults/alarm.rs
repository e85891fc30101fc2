//! A descriptor that is readable where another one is ready, and at times of its own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use chronorb_rt::{Monotonic, PiMutex};
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// An epoll set of a connection's descriptor and a timer. It is readable when either of them is,
/// and each of their events is an edge of it. So it can replace the connection's descriptor in
/// another set.
#[derive(Debug)]
pub(super) struct Alarm {
    set: OwnedFd,
    timer: OwnedFd,
    state: PiMutex<State>,
}

/// The kind of waiter to wake.
#[derive(Clone, Copy, Debug)]
pub(super) enum For {
    HeldInput,
    HeldOutput,
}

#[derive(Debug, Default)]
struct State {
    due: [Option<Monotonic>; 2],
    is_armed: bool,
    wants_room: bool,
}

impl Alarm {
    pub(super) fn new(watched: impl AsFd) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&set, watched, data, INPUT)?;
        epoll::add(&set, &timer, data, epoll::EventFlags::IN)?;
        Ok(Self {
            set,
            timer,
            state: PiMutex::new(State::default()),
        })
    }

    /// Requests an edge when it is `due`, at once if that is past; `None` cancels the request.
    pub(super) fn ring(&self, wanted: For, due: Option<Monotonic>) {
        let mut state = self.state.lock();
        state.due[wanted as usize] = due;
        let next = state.due.iter().flatten().min().copied();
        if next.is_none() && !state.is_armed {
            return;
        }
        state.is_armed = next.is_some();
        // A time of 0 would take the timer back.
        let nanoseconds = next.map_or(0, |next| next.as_nanos().max(1));
        let time = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (nanoseconds / 1_000_000_000) as i64,
                tv_nsec: (nanoseconds % 1_000_000_000) as _,
            },
        };
        // It is refused only where the descriptor is no timer.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &time);
    }

    /// Makes an edge at once.
    pub(super) fn ring_now(&self, wanted: For) {
        self.ring(wanted, Some(Monotonic::from_nanos(1)));
    }

    /// Requests an edge when the watched descriptor has room to send; at once if it has room
    /// already.
    pub(super) fn watch_room(&self, watched: impl AsFd) {
        self.set_wants_room(watched.as_fd(), true);
        // The set reports no edge of a descriptor that was ready before, while another edge is
        // pending.
        let mut looked = [PollFd::new(&watched, PollFlags::OUT)];
        if poll(&mut looked, Some(&Timespec::default())) == Ok(1) {
            self.ring_now(For::HeldOutput);
        }
    }

    /// Cancels the request of edges for room to send.
    pub(super) fn forget_room(&self, watched: impl AsFd) {
        self.set_wants_room(watched.as_fd(), false);
    }

    fn set_wants_room(&self, watched: BorrowedFd<'_>, wanted: bool) {
        let mut state = self.state.lock();
        if state.wants_room != wanted {
            state.wants_room = wanted;
            let flags = if wanted {
                INPUT | epoll::EventFlags::OUT
            } else {
                INPUT
            };
            // It is in the set as long as the alarm is there.
            let _ = epoll::modify(&self.set, watched, epoll::EventData::new_u64(0), flags);
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

const INPUT: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::{Interest, Reactor};

    #[test]
    fn each_octet_each_time_and_room_are_edges_of_the_set() -> io::Result<()> {
        let (mut near, far) = UnixStream::pair()?;
        let alarm = Alarm::new(&far)?;
        let reactor = Reactor::new()?;
        reactor.add(&alarm, 7, Interest::Read)?;
        let told = || {
            reactor
                .wait(Some(Duration::ZERO))
                .map(|event| event.is_some())
        };
        assert!(!told()?);
        for _ in 0..2 {
            // There is no reader; writing causes an edge all the same.
            near.write_all(b"x")?;
            assert!(told()? && !told()?);
        }
        for _ in 0..2 {
            alarm.ring_now(For::HeldInput);
            assert!(reactor.wait(None)?.is_some());
        }
        alarm.ring(For::HeldInput, None);
        alarm.ring(
            For::HeldOutput,
            Some(Monotonic::now() + Duration::from_millis(1)),
        );
        assert!(reactor.wait(None)?.is_some());
        alarm.watch_room(&far);
        assert!(reactor.wait(None)?.is_some());
        Ok(())
    }
}
