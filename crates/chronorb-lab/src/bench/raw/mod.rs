//! Raw channels, which move as many octets as the ORB's messages have.

mod channel;
mod multicast;
mod tls;

use std::io;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use super::drive::Caller;
use super::oneway::{self, Recorder, SendPace};
use super::order::{Exchange, Medium, ObjectAddresses, Operation, Waits};
use crate::error::LabError;
use crate::process::{self, Parent};
use channel::{Channel, Listener};

#[cfg(test)]
pub(super) use multicast::DATAGRAM;
pub(super) use multicast::receiver_at;

/// Serves each channel with a thread, until the parent closes standard input.
pub(super) fn serve(medium: &Medium, exchange: Exchange, waits: Waits) -> Result<(), LabError> {
    let opened = Listener::open(medium);
    let (mut listener, address) = opened.map_err(LabError::work("listening"))?;
    let recorder = announce(address)?;
    loop {
        let channel = listener.accept(waits);
        let channel = channel.map_err(LabError::work("accepting a connection"))?;
        let recorder = recorder.clone();
        thread::spawn(move || answer_all(channel, exchange, &recorder));
    }
}

/// Listens on a free port, reports it to the parent, and ends the process with the parent.
pub(super) fn listen() -> Result<TcpListener, LabError> {
    let (listener, address) =
        channel::listen().map_err(LabError::work::<io::Error>("listening"))?;
    announce(address)?;
    Ok(listener)
}

/// Reports the address to the parent, and ends the process with the parent.
fn announce(address: String) -> Result<Recorder, LabError> {
    // Requests under way at that time are lost, without a receiver for their replies.
    let parent = Parent::listen(|| std::process::exit(0));
    process::tell(&ObjectAddresses {
        power: address.clone(),
        data: address.clone(),
        clock: address,
    })?;
    let recorder = Recorder::default();
    recorder.report_to(parent);
    Ok(recorder)
}

/// Makes the reply in the memory of the request. Returns its range.
pub(super) fn answer(
    frame: &mut [u8],
    Exchange {
        operation, sizes, ..
    }: Exchange,
) -> std::ops::Range<usize> {
    match operation {
        Operation::Cube => {
            let value = i32::from(frame[sizes.request - 1]);
            let end = sizes.reply.max(CUBE_OCTETS);
            frame[end - CUBE_OCTETS..end].copy_from_slice(&value.pow(3).to_le_bytes());
            0..sizes.reply
        }
        // The data goes back without the additional octets of a request.
        _ => {
            let end = sizes.request.max(sizes.reply);
            frame[end - 1] = frame[sizes.request - 1];
            end - sizes.reply..end
        }
    }
}

/// Returns memory for a request and its reply.
pub(super) fn frame(exchange: Exchange) -> Vec<u8> {
    vec![0; exchange.sizes.request.max(exchange.sizes.reply)]
}

fn answer_all(mut channel: Channel, exchange: Exchange, recorder: &Recorder) -> io::Result<()> {
    let mut frame = frame(exchange);
    let request = exchange.sizes.request;
    loop {
        channel.receive(&mut frame[..request])?;
        if is_oneway(exchange.operation) {
            recorder.take(oneway::stamp_of(&frame[..request]));
        } else {
            let reply = answer(&mut frame, exchange);
            channel.send(&frame[reply])?;
        }
    }
}

/// The calls of a raw client.
pub(super) struct RawCalls {
    channel: Channel,
    exchange: Exchange,
    frame: Vec<u8>,
    /// The memory of replies, if it is apart.
    reply: Option<Vec<u8>>,
    pace: SendPace,
}

impl RawCalls {
    pub(super) fn connect(
        medium: &Medium,
        address: &str,
        waits: Waits,
        exchange: Exchange,
    ) -> Result<Self, LabError> {
        let channel = Channel::connect(medium, address, waits);
        let mut calls = Self {
            channel: channel.map_err(LabError::work("connecting"))?,
            exchange,
            frame: frame(exchange),
            reply: exchange.apart.then(|| frame(exchange)),
            pace: SendPace::of(exchange.operation, waits),
        };
        calls.warm_up(1)?;
        Ok(calls)
    }

    fn exchange(&mut self, turn: u32) -> io::Result<()> {
        let sizes = self.exchange.sizes;
        self.channel.send(&self.frame[..sizes.request])?;
        if turn == 0 {
            self.channel.rouse();
        }
        let reply = self.reply.as_mut().unwrap_or(&mut self.frame);
        self.channel.receive(&mut reply[..sizes.reply])
    }

    fn send_stamp(&mut self, turn: u32) -> io::Result<()> {
        let request = &mut self.frame[..self.exchange.sizes.request];
        oneway::put_stamp(request, self.pace.begin());
        self.channel.send(request)?;
        if turn == 0 {
            self.channel.rouse();
        }
        self.pace.keep();
        Ok(())
    }
}

impl Caller for RawCalls {
    fn warm_up(&mut self, turn: u32) -> Result<(), LabError> {
        self.pace.leave_out_next();
        self.call(turn)
    }

    fn call(&mut self, turn: u32) -> Result<(), LabError> {
        let Exchange {
            operation, sizes, ..
        } = self.exchange;
        if is_oneway(operation) {
            let sent = self.send_stamp(turn);
            return sent.map_err(LabError::work(CALLING));
        }
        let value = turn as u8;
        self.frame[sizes.request - 1] = value;
        self.exchange(turn).map_err(LabError::work(CALLING))?;
        let reply = self.reply.as_ref().unwrap_or(&self.frame);
        if operation != Operation::Cube {
            return match reply[sizes.reply - 1] {
                last if last == value => Ok(()),
                last => Err(LabError::WrongAnswer(format!("{value} became {last}"))),
            };
        }
        let expected = i32::from(value).pow(3).to_le_bytes();
        let cube = &reply[sizes.reply - CUBE_OCTETS..sizes.reply];
        if cube == expected {
            Ok(())
        } else {
            Err(LabError::WrongAnswer(format!("{value}³ is not {cube:?}")))
        }
    }
}

const fn is_oneway(operation: Operation) -> bool {
    matches!(operation, Operation::Oneway(_) | Operation::Flood)
}

/// The time that a thread spins before it sleeps; longer than any step of a ping-pong.
pub(crate) const SPIN: Duration = Duration::from_millis(20);
const CUBE_OCTETS: usize = 4;
const CALLING: &str = "calling the raw server";

#[cfg(test)]
mod tests {
    use super::super::certificates::Certificates;
    use super::super::order::Sizes;
    use super::*;

    fn exchange(operation: Operation, request: usize, reply: usize) -> Exchange {
        Exchange {
            operation,
            sizes: Sizes { request, reply },
            apart: false,
        }
    }

    /// Starts a server of one channel. Returns its address and its record of oneway messages.
    fn serve_one(medium: &Medium, exchange: Exchange, waits: Waits) -> (String, Recorder) {
        let (mut listener, address) = Listener::open(medium).unwrap();
        let recorder = Recorder::default();
        let recording = recorder.clone();
        thread::spawn(move || answer_all(listener.accept(waits).unwrap(), exchange, &recording));
        (address, recorder)
    }

    #[test]
    fn cubes_and_data_come_back_by_every_medium_whoever_waits_how() {
        let certificates = Certificates::make().expect("openssl is there");
        for medium in [
            Medium::Tcp,
            Medium::Unix,
            Medium::Udp,
            Medium::Memory,
            Medium::Tls(certificates.directory().to_owned()),
        ] {
            for waits in [Waits::Block, Waits::Spin] {
                let largest = if medium == Medium::Udp {
                    60_000
                } else {
                    1 << 20
                };
                for exchange in [
                    exchange(Operation::Cube, 60, 28),
                    exchange(
                        Operation::Octets(largest),
                        largest as usize + 64,
                        largest as usize,
                    ),
                    exchange(Operation::Octets(100), 128, 140),
                ] {
                    let (address, _) = serve_one(&medium, exchange, waits);
                    let calls = RawCalls::connect(&medium, &address, waits, exchange);
                    let mut calls = calls.unwrap();
                    for turn in 0..50 {
                        calls.call(turn).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn the_time_of_what_has_no_answer_is_taken_where_it_arrives() {
        for medium in [Medium::Tcp, Medium::Memory, Medium::Multicast] {
            for waits in [Waits::Block, Waits::Spin] {
                let octets = if medium == Medium::Multicast {
                    5_000
                } else {
                    80
                };
                let exchange = exchange(Operation::Oneway(0), octets, 0);
                let (address, recorder) = serve_one(&medium, exchange, waits);
                let calls = RawCalls::connect(&medium, &address, waits, exchange);
                let mut calls = calls.unwrap();
                for turn in 0..20 {
                    calls.call(turn).unwrap();
                    assert!(arrival(&recorder) > 0, "{medium:?}");
                }
            }
        }
    }

    /// Returns the time under way of the next message.
    fn arrival(recorder: &Recorder) -> u64 {
        loop {
            if let Some(latency) = recorder.taken().latencies_ns.pop() {
                return latency;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn a_server_that_is_gone_is_an_error() {
        let (listener, address) = channel::listen().unwrap();
        let closer = thread::spawn(move || drop(listener.accept()));
        let exchange = exchange(Operation::Cube, 60, 28);
        let connected = RawCalls::connect(&Medium::Tcp, &address, Waits::Block, exchange);
        closer.join().unwrap();
        assert!(matches!(connected, Err(LabError::Work { .. })));
    }
}
