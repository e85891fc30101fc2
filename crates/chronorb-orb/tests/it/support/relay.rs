//! A relay between a client and a server, which records the traffic.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use chronorb_giop::framing::{NextMessage, next_message_of};
use chronorb_giop::{IiopProfile, MessageHeader, Protocol, TaggedProfile};
use chronorb_orb::{Object, Orb};
use chronorb_rt::PiMutex;

/// A relay of all connections to one server, until the test program ends.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    connections: Arc<PiMutex<Vec<Arc<PiMutex<Record>>>>>,
}

/// The traffic of one connection.
#[derive(Clone, Default)]
pub(crate) struct Record {
    pub(crate) to_server: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
}

impl Relay {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let connections: Arc<PiMutex<Vec<Arc<PiMutex<Record>>>>> = Arc::default();
        let all = connections.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else {
                    continue;
                };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).expect("TCP has the option");
                }
                let record = Arc::new(PiMutex::new(Record::default()));
                all.lock().push(record.clone());
                let both = |stream: &TcpStream| stream.try_clone().expect("descriptors are left");
                let (from, to) = (both(&client), both(&server));
                let there = record.clone();
                std::thread::spawn(move || {
                    carry(from, to, |octets| there.lock().to_server.extend(octets));
                });
                std::thread::spawn(move || {
                    carry(server, client, |octets| {
                        record.lock().to_client.extend(octets);
                    });
                });
            }
        });
        Self {
            address,
            connections,
        }
    }

    /// Returns a relay to an object's address, and a reference to the object by the relay.
    pub(crate) fn to_object(client: &Orb, object: &Object) -> (Self, Object) {
        let ior = object.ior();
        let mut profile = IiopProfile::decode(&ior.profiles[0].data).expect("our own");
        let relay = Self::to(SocketAddr::new(
            profile.host.parse().expect("an address"),
            profile.port,
        ));
        profile.port = relay.address.port();
        let mut ior = ior.clone();
        ior.profiles = vec![TaggedProfile {
            data: profile.encode().expect("it fits"),
            ..ior.profiles[0].clone()
        }];
        let object = client.ior_to_object(ior).expect("it is not nil");
        (relay, object)
    }

    /// Returns the recorded traffic of each connection.
    pub(crate) fn records(&self) -> Vec<Record> {
        let connections = self.connections.lock();
        let records = connections.iter().map(|record| record.lock().clone());
        records.collect()
    }
}

/// Returns the complete messages of a stream, with their parsed headers.
pub(crate) fn messages(mut octets: &[u8]) -> Vec<(MessageHeader, &[u8])> {
    let mut messages = Vec::new();
    loop {
        match next_message_of::<Protocol>(octets, usize::MAX) {
            Ok(NextMessage::Complete { header, len }) => {
                let (message, rest) = octets.split_at(len);
                messages.push((header, message));
                octets = rest;
            }
            Ok(NextMessage::NeedMore { .. }) => return messages,
            Err(error) => panic!("after {} messages: {error}", messages.len()),
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, mut record: impl FnMut(&[u8])) {
    let mut octets = [0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut octets) {
        // Recorded before the other side can react.
        record(&octets[..n]);
        if to.write_all(&octets[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
