//! Members of groups, and groups on the loopback interface.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use chronorb_cdr::Decoder;
use chronorb_orb::codegen::v1::bad_operation;
use chronorb_orb::transport::multicast::MulticastOptions;
use chronorb_orb::{
    Call, Object, Operation, Orb, OrbConfig, ReplyWriter, Skeleton, SystemException,
};

use super::{PATIENCE, orb_with};

/// A message that a member received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Heard {
    pub(crate) member: &'static str,
    pub(crate) text: String,
    pub(crate) octets: Vec<u8>,
    /// The priority of the request.
    pub(crate) priority: Option<i16>,
    pub(crate) thread: String,
}

/// A member that passes on its messages.
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) tell: Sender<Heard>,
}

pub(crate) const MEMBER_ID: &str = "IDL:Test/Member:1.0";

impl Skeleton for Member {
    fn repository_id(&self) -> &'static str {
        MEMBER_ID
    }

    fn is_a(&self, id: &str) -> bool {
        id == MEMBER_ID
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"tell" => {
                let heard = Heard {
                    member: self.name,
                    text: d.read_str()?.to_owned(),
                    octets: d.read_octet_seq()?.to_vec(),
                    priority: call.priority().map(|priority| priority.value()),
                    thread: std::thread::current().name().unwrap_or_default().to_owned(),
                };
                // A test that has ended does not receive any more.
                let _ = self.tell.send(heard);
                Ok(())
            }
            b"ask" => {
                reply.normal()?;
                Ok(())
            }
            _ => Err(bad_operation()),
        }
    }
}

/// The messages of all members of a test.
pub(crate) struct Ears {
    pub(crate) tell: Sender<Heard>,
    heard: Receiver<Heard>,
}

impl Ears {
    pub(crate) fn new() -> Self {
        let (tell, heard) = channel();
        Self { tell, heard }
    }

    pub(crate) fn member(&self, name: &'static str) -> Member {
        let tell = self.tell.clone();
        Member { name, tell }
    }

    /// Returns the next message of any member.
    pub(crate) fn next(&self) -> Heard {
        let heard = self.heard.recv_timeout(PATIENCE);
        heard.expect("a message is heard")
    }

    /// Returns the members and texts of the next `count` messages, sorted.
    pub(crate) fn texts(&self, count: usize) -> Vec<(&'static str, String)> {
        let heard = (0..count).map(|_| self.next());
        let mut texts: Vec<_> = heard.map(|heard| (heard.member, heard.text)).collect();
        texts.sort();
        texts
    }

    /// Asserts that no further message arrives.
    pub(crate) fn assert_silence(&self) {
        assert!(self.heard.try_recv().is_err());
    }
}

/// Returns an ORB whose groups are on the loopback.
pub(crate) fn group_orb() -> Orb {
    group_orb_with(|_| {})
}

pub(crate) fn group_orb_with(configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        let options = MulticastOptions::parse("interface=lo&ttl=0");
        config.multicast = options.expect("right options");
        configure(config);
    })
}

/// Returns the URL of a group that only this test uses.
pub(crate) fn group_url() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    let port = 30_000 + number;
    format!("corbaloc:miop:1.0@1.0-Test-{number}/239.79.{high}.{low}:{port}")
}

/// Returns the same group from another ORB's point of view.
pub(crate) fn group(orb: &Orb, url: &str) -> Object {
    orb.string_to_object(url).expect("it is a group")
}

/// Sends a text to all members of a group.
pub(crate) fn tell(group: &Object, text: &str) -> Result<(), SystemException> {
    tell_octets(group, text, b"")
}

pub(crate) fn tell_octets(
    group: &Object,
    text: &str,
    octets: &[u8],
) -> Result<(), SystemException> {
    group.invoke_oneway(&Operation::oneway("tell"), &|e| {
        e.write_str(text)?;
        e.write_octet_seq(octets)
    })
}
