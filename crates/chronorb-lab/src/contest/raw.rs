//! Raw TCP: as many octets as the ORB's messages have, and nothing else.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use chronorb_rt::Monotonic;
use rustix::net::{RecvFlags, recv};

use super::drive::Caller;
use super::error::ContestError;
use super::order::{Exchange, Operation, RawCalling, RawServing, Serving, Waits};
use crate::process::{self, Parent};

/// Serves every connection with a thread, until the parent closes standard input.
pub(super) fn serve(exchange: Exchange, how: RawServing) -> Result<(), ContestError> {
    let waits = match how {
        RawServing::Threads(waits) => waits,
        RawServing::Epoll { .. } => Waits::Block,
    };
    let listener = listen()?;
    for stream in listener.incoming() {
        let stream = stream.map_err(ContestError::work("accepting a connection"))?;
        thread::spawn(move || answer_all(stream, exchange, waits));
    }
    Ok(())
}

/// Listens on a free port, says so, and ends the process with the parent.
pub(super) fn listen() -> Result<TcpListener, ContestError> {
    let listen = || {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?.to_string();
        Ok((listener, address))
    };
    let (listener, address) = listen().map_err(ContestError::work::<io::Error>("listening"))?;
    // What is under way then interests nobody.
    let _parent = Parent::listen(|| std::process::exit(0));
    process::tell(&Serving {
        power: address.clone(),
        data: address,
    })?;
    Ok(listener)
}

/// A request becomes a reply in the same memory. Returns where that is.
pub(super) fn answer(
    frame: &mut [u8],
    Exchange { operation, sizes }: Exchange,
) -> std::ops::Range<usize> {
    match operation {
        Operation::Cube => {
            let value = i32::from(frame[sizes.request - 1]);
            let end = sizes.reply.max(CUBE_OCTETS);
            frame[end - CUBE_OCTETS..end].copy_from_slice(&value.pow(3).to_le_bytes());
            0..sizes.reply
        }
        // What was sent is sent back, without the part that only requests have.
        Operation::Octets(_) | Operation::Doubles(_) | Operation::Structs(_) => {
            let end = sizes.request.max(sizes.reply);
            frame[end - 1] = frame[sizes.request - 1];
            end - sizes.reply..end
        }
    }
}

/// The memory for a request and a reply.
pub(super) fn frame(exchange: Exchange) -> Vec<u8> {
    vec![0; exchange.sizes.request.max(exchange.sizes.reply)]
}

fn answer_all(mut stream: TcpStream, exchange: Exchange, waits: Waits) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut frame = frame(exchange);
    loop {
        receive(&mut stream, waits, &mut frame[..exchange.sizes.request])?;
        let reply = answer(&mut frame, exchange);
        stream.write_all(&frame[reply])?;
    }
}

/// Fills the buffer.
fn receive(stream: &mut TcpStream, waits: Waits, buffer: &mut [u8]) -> io::Result<()> {
    match waits {
        Waits::Block => stream.read_exact(buffer),
        Waits::Spin => {
            let filled = receive_spinning(stream, buffer)?;
            stream.read_exact(&mut buffer[filled..])
        }
    }
}

/// Looks again and again, for so long. Returns how much came.
fn receive_spinning(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    let mut looks = 0_u32;
    let mut since = None;
    while filled < buffer.len() {
        match recv(stream, &mut buffer[filled..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((octets, _)) => filled += octets,
            Err(rustix::io::Errno::AGAIN) => {
                looks = looks.wrapping_add(1);
                // The clock costs more than a look, so it is asked now and then only.
                if looks.is_multiple_of(LOOKS)
                    && Monotonic::now().since(*since.get_or_insert_with(Monotonic::now)) > SPIN
                {
                    return Ok(filled);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

/// A client's calls.
pub(super) struct Calls {
    stream: TcpStream,
    waits: Waits,
    exchange: Exchange,
    frame: Vec<u8>,
}

impl Calls {
    pub(super) fn connect(calling: &RawCalling) -> Result<Self, ContestError> {
        let connect = || {
            let stream = TcpStream::connect(&calling.address)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let mut calls = Self {
            stream: connect().map_err(ContestError::work::<io::Error>("connecting"))?,
            waits: calling.waits,
            exchange: calling.exchange,
            frame: frame(calling.exchange),
        };
        calls.call(1)?;
        Ok(calls)
    }

    fn exchange(&mut self) -> io::Result<()> {
        let sizes = self.exchange.sizes;
        self.stream.write_all(&self.frame[..sizes.request])?;
        receive(&mut self.stream, self.waits, &mut self.frame[..sizes.reply])
    }
}

impl Caller for Calls {
    fn call(&mut self, turn: u32) -> Result<(), ContestError> {
        let Exchange { operation, sizes } = self.exchange;
        let value = turn as u8;
        self.frame[sizes.request - 1] = value;
        self.exchange()
            .map_err(ContestError::work("calling the raw server"))?;
        let expected = match operation {
            Operation::Cube => i32::from(value).pow(3),
            Operation::Octets(_) | Operation::Doubles(_) | Operation::Structs(_) => {
                return match self.frame[sizes.reply - 1] {
                    last if last == value => Ok(()),
                    last => Err(ContestError::WrongAnswer(format!("{value} became {last}"))),
                };
            }
        };
        let cube = &self.frame[sizes.reply - CUBE_OCTETS..sizes.reply];
        match cube == expected.to_le_bytes() {
            true => Ok(()),
            false => Err(ContestError::WrongAnswer(format!(
                "{value}³ is not {cube:?}"
            ))),
        }
    }
}

/// How long who spins looks again before it sleeps: longer than anything takes in a ping-pong.
pub(crate) const SPIN: Duration = Duration::from_millis(20);
const LOOKS: u32 = 64;
const CUBE_OCTETS: usize = 4;

#[cfg(test)]
mod tests {
    use super::super::order::Sizes;
    use super::*;

    fn exchange(operation: Operation, request: usize, reply: usize) -> Exchange {
        Exchange {
            operation,
            sizes: Sizes { request, reply },
        }
    }

    fn serve_one(exchange: Exchange, waits: Waits) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            answer_all(stream, exchange, waits)
        });
        address
    }

    #[test]
    fn cubes_and_data_come_back_whoever_waits_how() {
        for waits in [Waits::Block, Waits::Spin] {
            for exchange in [
                exchange(Operation::Cube, 60, 28),
                exchange(Operation::Octets(1 << 20), (1 << 20) + 64, (1 << 20) + 28),
                exchange(Operation::Octets(100), 128, 140),
            ] {
                let mut calls = Calls::connect(&RawCalling {
                    address: serve_one(exchange, waits),
                    waits,
                    exchange,
                })
                .unwrap();
                for turn in 0..300 {
                    calls.call(turn).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_server_that_is_gone_is_an_error() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let closer = thread::spawn(move || drop(listener.accept()));
        let connected = Calls::connect(&RawCalling {
            address,
            waits: Waits::Block,
            exchange: exchange(Operation::Cube, 60, 28),
        });
        closer.join().unwrap();
        assert!(matches!(connected, Err(ContestError::Work { .. })));
    }
}
