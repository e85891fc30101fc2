//! The attacker of a service: one client on plain sockets, whose octets are counted.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use chronorb_rt::Monotonic;

use super::super::attacker::{AttackSite, OTHER_FILES, PatientReader, step_back};
use super::super::messages::{self, HEADER, MessageOctets};
use super::super::order::{AttackTraffic, Target};
use super::super::victim::{IIOP, address_and_key};
use super::attack::ServiceAttack;
use super::row::ServicePlan;
use crate::bench::allow_files;
use crate::error::LabError;
use crate::process::{self, Begin, Parent, Ready};

/// Attacks once, and holds what it has taken until the parent has heard of it. The process ends at
/// once when standard input ends before that.
pub(in super::super) fn attack(
    target: &Target,
    plan: &ServicePlan,
    attack: ServiceAttack,
    amount: u32,
) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    allow_files(MOST_FILES + OTHER_FILES);
    step_back()?;
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    let site = AttackSite {
        address: target.address,
        end: Monotonic::now() + plan.longest,
    };
    let mut sent = AttackTraffic::default();
    let connected = site.connect(&mut sent);
    let stream = connected.ok_or_else(|| LabError::work("attacking")("no connection"))?;
    let mut assailant = Assailant {
        site: &site,
        root: &target.key,
        stream,
        sent,
        answered: Arc::default(),
        amount,
        divisor: plan.divisor,
        held: Vec::new(),
    };
    // A server that closes the connection, and the end of the attack, are no failures of this
    // process.
    let _ = attack.act()(&mut assailant);
    thread::sleep(plan.hold);
    let mut sent = assailant.sent;
    sent.octets += assailant.answered.load(Ordering::Relaxed);
    parent.conclude(&sent)?;
    Ok(())
}

/// A client that takes all it can.
pub(super) struct Assailant<'a> {
    pub(super) site: &'a AttackSite,
    /// The key of the service's object.
    pub(super) root: &'a [u8],
    stream: TcpStream,
    sent: AttackTraffic,
    /// The octets of the answers of its own objects.
    pub(super) answered: Arc<AtomicU64>,
    amount: u32,
    divisor: u32,
    /// Other connections, which are held.
    held: Vec<TcpStream>,
}

impl Assailant<'_> {
    /// Returns a number of the attack that grows with its amount.
    pub(super) fn count(&self, full: usize) -> usize {
        self.size(full) * self.amount as usize
    }

    /// Returns a number of the attack that is the same for each amount.
    pub(super) fn size(&self, full: usize) -> usize {
        (full / self.divisor as usize).max(1)
    }

    /// Calls an operation, and waits for the reply.
    pub(super) fn call(
        &mut self,
        key: &[u8],
        operation: &str,
        arguments: impl FnOnce(&mut MessageOctets),
    ) -> io::Result<ReplyOctets> {
        self.send(&messages::request(key, operation, arguments))?;
        self.hear()
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.site.send(&self.stream, message, &mut self.sent)
    }

    /// Waits for a reply.
    pub(super) fn hear(&self) -> io::Result<ReplyOctets> {
        ReplyOctets::read(&mut PatientReader(self.site, &self.stream))
    }

    /// Sends a message on a new connection, from which nothing is read.
    pub(super) fn send_unread(&mut self, message: &[u8]) -> io::Result<()> {
        let stream = self.site.connect(&mut self.sent);
        let stream = stream.ok_or(ErrorKind::ConnectionRefused)?;
        self.site.send(&stream, message, &mut self.sent)?;
        self.held.push(stream);
        Ok(())
    }
}

/// A reply, and the position to which it is read.
pub(super) struct ReplyOctets {
    octets: Vec<u8>,
    at: usize,
}

impl ReplyOctets {
    /// Reads a reply with all its fragments, of which only the first is kept.
    fn read(stream: &mut impl Read) -> io::Result<Self> {
        let mut first = Vec::new();
        loop {
            let mut octets = vec![0; HEADER];
            stream.read_exact(&mut octets)?;
            let size = u32::from_le_bytes([octets[8], octets[9], octets[10], octets[11]]);
            octets.resize(HEADER + size as usize, 0);
            stream.read_exact(&mut octets[HEADER..])?;
            let is_last = octets[6] & MORE_FRAGMENTS == 0;
            if !matches!(octets[7], REPLY | FRAGMENT) {
                return Err(io::Error::other("it is no reply"));
            }
            if first.is_empty() {
                first = octets;
            }
            if is_last {
                break;
            }
        }
        Ok(Self {
            octets: first,
            at: HEADER,
        })
    }

    /// Skips the header of a reply without an exception.
    fn results(mut self) -> io::Result<Self> {
        let _id = self.u32()?;
        if self.u32()? != 0 {
            return Err(io::Error::other("it is an exception"));
        }
        for _ in 0..self.u32()? {
            self.u32()?;
            self.octets()?;
        }
        self.at = self.at.next_multiple_of(8);
        Ok(self)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.at = self.at.next_multiple_of(4);
        let octets = self.octets.get(self.at..);
        let octets = octets.and_then(|octets| octets.first_chunk());
        let octets = octets.ok_or(ErrorKind::UnexpectedEof)?;
        self.at += 4;
        Ok(u32::from_le_bytes(*octets))
    }

    fn octets(&mut self) -> io::Result<&[u8]> {
        let len = self.u32()? as usize;
        let start = self.at;
        self.at += len;
        let octets = self.octets.get(start..self.at);
        octets.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// Returns the result, a number.
    pub(super) fn number(self) -> io::Result<u32> {
        self.results()?.u32()
    }

    /// Returns the key of the object whose reference is the result.
    pub(super) fn key(self) -> io::Result<Vec<u8>> {
        let mut results = self.results()?;
        // The identifier of its type.
        results.octets()?;
        for _ in 0..results.u32()? {
            let tag = results.u32()?;
            let profile = results.octets()?;
            if tag == IIOP {
                let read = address_and_key(profile).map_err(io::Error::other)?;
                return Ok(read.1);
            }
        }
        Err(io::Error::other("there is no profile of IIOP"))
    }
}

const REPLY: u8 = 1;
const FRAGMENT: u8 = 7;
const MORE_FRAGMENTS: u8 = 2;
const MOST_FILES: u64 = 1_000;
