//! A raw server for many clients: threads that wait on epoll sets.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rustix::event::epoll;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::order::Exchange;
use super::raw;
use crate::error::LabError;

/// Serves with several threads, each with an epoll set and its share of the connections, until the
/// parent closes standard input.
pub(super) fn serve(exchange: Exchange, threads: u32) -> Result<(), LabError> {
    let listener = raw::listen()?;
    let mut shares: Vec<Share> = (0..threads.max(1))
        .map(|_| Share::start(exchange))
        .collect::<io::Result<_>>()
        .map_err(LabError::work("making an epoll set"))?;
    let mut turn = 0;
    for stream in listener.incoming() {
        let taken = stream.and_then(|stream| shares[turn].take(stream));
        taken.map_err(LabError::work("accepting a connection"))?;
        turn = (turn + 1) % shares.len();
    }
    Ok(())
}

/// The connections of a thread, as the accepting thread sees them.
struct Share {
    set: Arc<OwnedFd>,
    newcomers: Sender<Arc<TcpStream>>,
    taken: u64,
}

impl Share {
    fn start(exchange: Exchange) -> io::Result<Self> {
        let set = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let (newcomers, incoming) = mpsc::channel();
        let waited = Arc::clone(&set);
        thread::spawn(move || serve_share(&waited, exchange, &incoming));
        Ok(Self {
            set,
            newcomers,
            taken: 0,
        })
    }

    fn take(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let stream = Arc::new(stream);
        // The thread has the stream before its first event, and lives as long as the process.
        let _ = self.newcomers.send(Arc::clone(&stream));
        let number = epoll::EventData::new_u64(self.taken);
        epoll::add(&*self.set, &*stream, number, epoll::EventFlags::IN)?;
        self.taken += 1;
        Ok(())
    }
}

/// One connection, with the beginning of its next request.
struct EpollConnection {
    stream: Arc<TcpStream>,
    frame: Vec<u8>,
    filled: usize,
}

fn serve_share(set: &OwnedFd, exchange: Exchange, incoming: &Receiver<Arc<TcpStream>>) {
    let mut connections: Vec<Option<EpollConnection>> = Vec::new();
    let mut events = Vec::with_capacity(EVENTS);
    loop {
        events.clear();
        // The only possible error is an interruption by a signal.
        let _ = epoll::wait(set, rustix::buffer::spare_capacity(&mut events), None);
        for event in &events {
            let number = event.data.u64() as usize;
            if number >= connections.len() {
                connections.extend(incoming.try_iter().map(|stream| {
                    Some(EpollConnection {
                        stream,
                        frame: raw::frame(exchange),
                        filled: 0,
                    })
                }));
            }
            let Some(slot) = connections.get_mut(number) else {
                continue;
            };
            let goes_on = slot
                .as_mut()
                .is_some_and(|connection| connection.serve(exchange).is_ok());
            if !goes_on {
                *slot = None;
            }
        }
    }
}

impl EpollConnection {
    /// Receives the available octets, and answers a complete request.
    fn serve(&mut self, exchange: Exchange) -> io::Result<()> {
        let request = &mut self.frame[self.filled..exchange.sizes.request];
        match recv(&*self.stream, request, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((octets, _)) => self.filled += octets,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if self.filled < exchange.sizes.request {
            return Ok(());
        }
        self.filled = 0;
        let mut reply = raw::answer(&mut self.frame, exchange);
        while !reply.is_empty() {
            let part = &self.frame[reply.clone()];
            reply.start += send(&*self.stream, part, SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }
}

const EVENTS: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::super::drive::Caller;
    use super::super::order::{Medium, Operation, Sizes, Waits};
    use super::*;

    #[test]
    fn a_share_serves_all_its_connections_and_outlives_each() {
        let exchange = Exchange {
            operation: Operation::Cube,
            sizes: Sizes {
                request: 60,
                reply: 28,
            },
            apart: false,
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let mut share = Share::start(exchange).unwrap();
            for stream in listener.incoming() {
                share.take(stream.unwrap()).unwrap();
            }
        });
        let connect =
            || raw::RawCalls::connect(&Medium::Tcp, &address, Waits::Block, exchange).unwrap();
        let mut clients = [connect(), connect(), connect()];
        for turn in 0..100 {
            for client in &mut clients {
                client.call(turn).unwrap();
            }
            clients[turn as usize % 3] = connect();
        }
    }
}
