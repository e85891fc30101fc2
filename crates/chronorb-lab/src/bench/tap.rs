//! The sizes of the ORB's messages, measured by a proxy.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::PiMutex;
use chronorb_transport::multicast::Packet;

use super::drive::Caller;
use super::oneway::Recorder;
use super::orb::{self, Calls};
use super::order::{ObjectAddresses, Operation, OrbSettings, Sizes, Waits};
use super::raw;
use crate::error::LabError;

/// The messages of one call.
#[derive(Clone, Debug)]
pub(crate) struct TapResult {
    pub(crate) sizes: Sizes,
    /// The end of the request, at most [`KEPT`] octets; the whole of a short one.
    pub(crate) request: Vec<u8>,
}

/// Makes calls of these operations in steady state, and measures their messages.
pub(crate) fn tap(operations: &[Operation]) -> Result<Vec<TapResult>, LabError> {
    tap_with(operations, &[])
}

/// Makes calls between ORBs with these options, and measures their messages.
pub(crate) fn tap_with(
    operations: &[Operation],
    options: &[String],
) -> Result<Vec<TapResult>, LabError> {
    let mut attempts = ATTEMPTS;
    let (tap, server, serving) = loop {
        attempts -= 1;
        match offer_behind_tap(options) {
            Ok(offered) => break offered,
            // Another process has the port at the other address.
            Err(_) if attempts > 0 => {}
            Err(error) => return Err(error),
        }
    };
    let client = orb::client(Waits::Block, options)?;
    let heard = operations
        .iter()
        .map(|operation| {
            let mut calls = Calls::of(&client, serving.of(*operation), *operation)?;
            calls.call(1)?;
            // A oneway message has been counted when a later call has its reply.
            let listen = |calls: &mut Calls, makes_call: bool| {
                let before = tap.heard();
                if makes_call {
                    calls.call(2)?;
                }
                calls.settle()?;
                let after = tap.heard();
                Ok::<_, LabError>((after.0 - before.0, after.1 - before.1))
            };
            listen(&mut calls, false)?;
            let (other, call) = (listen(&mut calls, false)?, listen(&mut calls, true)?);
            Ok(TapResult {
                sizes: Sizes {
                    request: (call.0 - other.0) as usize,
                    reply: (call.1 - other.1) as usize,
                },
                request: tap.requests.last.lock().clone(),
            })
        })
        .collect();
    for orb in [client, server] {
        orb.shutdown(false)
            .map_err(LabError::work("ending the ORB"))?;
    }
    heard
}

/// Sends messages of these operations to the group of the settings, and receives them there.
/// Returns their octets with the headers of their packets, and the number of packets.
pub(crate) fn tap_group(
    operations: &[Operation],
    settings: &OrbSettings,
) -> Result<Vec<(Sizes, u32)>, LabError> {
    let group = settings.group.as_deref().unwrap_or_default();
    let (_, address) = group.rsplit_once('/').unwrap_or_default();
    let address = address
        .parse()
        .map_err(LabError::work("finding the group"))?;
    let socket = raw::receiver_at(address).map_err(LabError::work(LISTENING))?;
    let client = orb::client(Waits::Block, &settings.client)?;
    let heard = operations.iter().map(|operation| {
        // Connecting sends the first message.
        let _calls = Calls::of(&client, group, *operation)?;
        whole_message(&socket).map_err(LabError::work(LISTENING))
    });
    let heard = heard.collect();
    client
        .shutdown(false)
        .map_err(LabError::work("ending the ORB"))?;
    heard
}

/// Receives one whole message.
fn whole_message(socket: &UdpSocket) -> io::Result<(Sizes, u32)> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut datagram = vec![0; 1 << 16];
    let (mut octets, mut packets) = (0, 0);
    loop {
        let len = socket.recv(&mut datagram)?;
        let packet = Packet::parse(&datagram[..len]).map_err(io::Error::other)?;
        octets += len;
        packets += 1;
        if packet.total == Some(packets) {
            let sizes = Sizes {
                request: octets,
                reply: 0,
            };
            return Ok((sizes, packets));
        }
    }
}

/// Starts a server behind a tap.
fn offer_behind_tap(options: &[String]) -> Result<(Tap, Orb, ObjectAddresses), LabError> {
    let tap = Tap::open().map_err(LabError::work(LISTENING))?;
    let endpoint = format!("iiop://{BEHIND}:{}/hostname_in_ior={BEFORE}", tap.port);
    let config = orb::config(&endpoint, options)?;
    let server = Orb::with_config(config).map_err(LabError::work("starting the ORB"))?;
    let recorder = Recorder::default();
    let serving = orb::offer(&server, &recorder).map_err(LabError::work("offering the objects"))?;
    Ok((tap, server, serving))
}

/// A proxy between clients and a server that counts octets.
struct Tap {
    port: u16,
    requests: Arc<TapCounter>,
    replies: Arc<TapCounter>,
}

/// The octets in one direction.
#[derive(Default)]
struct TapCounter {
    octets: AtomicU64,
    last: PiMutex<Vec<u8>>,
}

impl Tap {
    /// Listens at the address of the server's references: the same port at another address.
    fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((BEFORE, 0))?;
        let tap = Self {
            port: listener.local_addr()?.port(),
            requests: Arc::default(),
            replies: Arc::default(),
        };
        let (port, requests, replies) = (
            tap.port,
            Arc::clone(&tap.requests),
            Arc::clone(&tap.replies),
        );
        thread::spawn(move || {
            for client in listener.incoming() {
                let (requests, replies) = (Arc::clone(&requests), Arc::clone(&replies));
                join(
                    client?,
                    TcpStream::connect((BEHIND, port))?,
                    requests,
                    replies,
                )?;
            }
            Ok::<_, io::Error>(())
        });
        Ok(tap)
    }

    fn heard(&self) -> (u64, u64) {
        let octets = |heard: &TapCounter| heard.octets.load(Ordering::SeqCst);
        (octets(&self.requests), octets(&self.replies))
    }
}

fn join(
    client: TcpStream,
    server: TcpStream,
    requests: Arc<TapCounter>,
    replies: Arc<TapCounter>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let back = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || forward(client, server, &requests));
    thread::spawn(move || forward(back.0, back.1, &replies));
    Ok(())
}

/// Copies octets, and counts them first, so that a caller with a reply finds it counted.
fn forward(mut from: TcpStream, mut to: TcpStream, heard: &TapCounter) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(octets @ 1..) = from.read(&mut buffer) {
        heard.octets.fetch_add(octets as u64, Ordering::SeqCst);
        let kept = &buffer[octets.saturating_sub(KEPT)..octets];
        kept.clone_into(&mut heard.last.lock());
        if to.write_all(&buffer[..octets]).is_err() {
            break;
        }
    }
    // The other direction ends, too.
    let _ = to.shutdown(Shutdown::Both);
}

/// The address in references.
const BEFORE: &str = "127.0.0.2";
/// The address of the server.
const BEHIND: &str = "127.0.0.1";
const ATTEMPTS: u32 = 4;
const LISTENING: &str = "listening to the ORB's messages";
/// The time that a message may be under way.
const PATIENCE: Duration = Duration::from_secs(5);
const KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_to_a_group_are_cut_into_packets_which_raw_datagrams_equal() {
        let group = std::net::Ipv4Addr::new(239, 255, 67, 83);
        let free = UdpSocket::bind((group, 0)).unwrap().local_addr().unwrap();
        let mut settings = OrbSettings::of(super::super::server::LOOPBACK.to_owned());
        settings.client = ["-ORBMulticast", "interface=lo&ttl=0"]
            .map(str::to_owned)
            .to_vec();
        settings.group = Some(format!("corbaloc:miop:1.0@1.0-TapResult-1/{free}"));
        let operations = [
            Operation::Oneway(0),
            Operation::Oneway(1 << 16),
            Operation::Flood,
        ];
        let heard = tap_group(&operations, &settings).unwrap();
        let [small, large, flood] = &heard[..] else {
            panic!("one for each: {heard:?}");
        };
        assert_eq!((small.1, small.0.request), (1, flood.0.request));
        let data = large.0.request - small.0.request - (1 << 16);
        assert!(large.1 > 1 && data < 40 * large.1 as usize, "{heard:?}");
        for (sizes, packets) in &heard {
            assert_eq!(sizes.request.div_ceil(raw::DATAGRAM), *packets as usize);
        }
    }

    #[test]
    fn messages_are_as_long_as_what_they_carry_and_their_headers() {
        let operations = [
            Operation::Cube,
            Operation::Octets(1 << 16),
            Operation::Doubles(1 << 16),
            Operation::Structs(1 << 16),
            Operation::Strings(1 << 16),
            Operation::Unions(1 << 16),
            Operation::Anys(1 << 16),
            Operation::Values(1 << 16),
            Operation::Oneway(0),
        ];
        let heard = tap(&operations).unwrap();
        let [cube, data @ .., oneway] = &heard[..] else {
            panic!("one for each: {heard:?}");
        };
        assert_eq!(
            cube.sizes.reply,
            12 + 12 + 4,
            "GIOP header, reply header, long"
        );
        assert!((40..200).contains(&cube.sizes.request), "{cube:?}");
        assert_eq!(cube.request.len(), cube.sizes.request);
        assert_eq!(&cube.request[..4], b"GIOP");
        assert_eq!(cube.request.last(), Some(&2));
        assert_eq!(oneway.sizes.reply, 0);
        let longer = oneway.sizes.request - cube.sizes.request;
        assert!((1..16).contains(&longer), "{oneway:?}");
        for (data, operation) in data.iter().zip(&operations[1..]) {
            let is_even = !matches!(operation, Operation::Unions(_) | Operation::Anys(_));
            let least = if is_even { 65_500 } else { 64_000 };
            for octets in [data.sizes.request, data.sizes.reply] {
                assert!(
                    (least..66_000).contains(&octets),
                    "{operation:?} {:?}",
                    data.sizes
                );
            }
        }
    }
}
