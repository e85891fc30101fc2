//! Service contexts: data that a request or reply carries in addition to its values.

use chronorb_cdr::{Cdr, CdrError, Decoder, Encoder, Endian};

use crate::encapsulation::{self, Reader};
use crate::minor;

/// The context of the Transaction Service.
pub const TRANSACTION_SERVICE: u32 = 0;
/// The code sets of the connection: [`CodeSetContext`](crate::codesets::CodeSetContext).
pub const CODE_SETS: u32 = 1;
/// The listen points of a client that can be called back over its connection:
/// [`encode_listen_points`].
pub const BI_DIR_IIOP: u32 = 5;
/// Invocation policies of CORBA Messaging: [`EndTimes`](crate::EndTimes), and others.
pub const INVOCATION_POLICIES: u32 = 7;
/// The real-time priority of the request: [`encode_priority`].
pub const RT_CORBA_PRIORITY: u32 = 10;
/// The priorities that a connection's requests will have: [`encode_priority_range`].
pub const RT_CORBA_PRIORITY_RANGE: u32 = 11;
/// A message about an exception, for people.
pub const EXCEPTION_DETAIL_MESSAGE: u32 = 14;

/// chronorb's own: the client sends no further request on this connection before it has the reply
/// to the one before, except after a request without a reply. Its content is
/// [`ONE_AT_A_TIME_DATA`].
pub const ONE_AT_A_TIME: u32 = minor::CHRONORB | 1;
/// The content of [`ONE_AT_A_TIME`]: an encapsulation of nothing.
pub const ONE_AT_A_TIME_DATA: [u8; 1] = [Endian::NATIVE.is_little() as u8];

/// A context of chronorb. In a request it offers to send further messages on this connection by
/// GIOPlite; in the reply the server accepts them, and the client may accept them too. Its content
/// is [`GIOP_LITE_DATA`]; any other content, perhaps of the other byte order, has no effect.
pub const GIOP_LITE: u32 = minor::CHRONORB | 2;
/// The content of [`GIOP_LITE`]: an encapsulation of one octet, the version of GIOPlite.
pub const GIOP_LITE_DATA: [u8; 2] = [Endian::NATIVE.is_little() as u8, 1];

/// A context of chronorb: [`SchedulingContext`](crate::SchedulingContext), the deadline and the
/// distributable thread of a request. It travels beside [`RT_CORBA_PRIORITY`], which every ORB
/// understands.
pub const SCHEDULING: u32 = minor::CHRONORB | 3;

/// A context of chronorb: the identifiers of the event channels that the events of a push have
/// passed, as an encapsulated `sequence<unsigned long long>`. A channel that finds its own among
/// them drops the events.
pub const EVENT_CHANNELS: u32 = minor::CHRONORB | 4;

/// One service context.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceContext<'a> {
    /// The kind of the context, for example [`RT_CORBA_PRIORITY`].
    pub id: u32,
    /// The content, an encapsulation.
    pub data: &'a [u8],
}

impl<'a> Cdr<'a> for ServiceContext<'a> {
    const MIN_SIZE: usize = 8;
    const NESTS: bool = false;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_u32(self.id)?;
        e.write_octet_seq(self.data)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            id: d.read_u32()?,
            data: d.read_octet_seq()?,
        })
    }
}

/// The content of the first context of that id.
pub fn find<'a>(contexts: &[ServiceContext<'a>], id: u32) -> Option<&'a [u8]> {
    contexts
        .iter()
        .find(|context| context.id == id)
        .map(|context| context.data)
}

/// The content of the context [`RT_CORBA_PRIORITY`], in the byte order of
/// this machine: the priority that a client propagates with its request, and
/// the server with its reply. RT-CORBA 1.2, “Real-Time CORBA Priority Models”.
///
/// ```text
/// 0            1     2          4
/// | byte order | pad | priority |
/// ```
#[inline]
pub const fn encode_priority(priority: i16) -> [u8; 4] {
    let [first, second] = priority.to_ne_bytes();
    [Endian::NATIVE.is_little() as u8, 0, first, second]
}

/// Reads the content of the context [`RT_CORBA_PRIORITY`].
///
/// # Errors
/// [`CdrError::EndOfData`]
#[inline]
pub fn decode_priority(data: &[u8]) -> Result<i16, CdrError> {
    Reader::new(data)?.read_i16()
}

/// The content of the context [`RT_CORBA_PRIORITY_RANGE`], in the byte order of this machine: the
/// least and the greatest priority of a band. A client that binds a band may send it to a server
/// that has no endpoint for each. RT-CORBA 1.2, “Priority Banded Connections”.
///
/// ```text
/// 0            1     2     4      6
/// | byte order | pad | low | high |
/// ```
pub const fn encode_priority_range(low: i16, high: i16) -> [u8; 6] {
    let [l0, l1] = low.to_ne_bytes();
    let [h0, h1] = high.to_ne_bytes();
    [Endian::NATIVE.is_little() as u8, 0, l0, l1, h0, h1]
}

/// Reads the content of the context [`RT_CORBA_PRIORITY_RANGE`]: the least and the greatest
/// priority, without checking them.
///
/// # Errors
/// [`CdrError::EndOfData`]
pub fn decode_priority_range(data: &[u8]) -> Result<(i16, i16), CdrError> {
    let mut r = Reader::new(data)?;
    Ok((r.read_i16()?, r.read_i16()?))
}

/// An address at which a client listens, in the context [`BI_DIR_IIOP`] (CORBA 3.3 part 2, 9.8.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenPoint {
    /// The host, spelled as in references to the client's objects.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Returns the content of the context [`BI_DIR_IIOP`], in the byte order of this machine: the
/// addresses whose requests may come to the client on the connection that it opened.
///
/// # Errors
/// A host that has characters beyond ISO 8859-1.
pub fn encode_listen_points<'p>(
    points: impl ExactSizeIterator<Item = (&'p str, u16)>,
) -> Result<Vec<u8>, CdrError> {
    encapsulation::build(|e| {
        e.write_u32(points.len() as u32)?;
        for (host, port) in points {
            e.write_str(host)?;
            e.write_u16(port)?;
        }
        Ok(())
    })
}

/// Reads the content of the context [`BI_DIR_IIOP`].
///
/// # Errors
/// Malformed octets.
pub fn decode_listen_points(data: &[u8]) -> Result<Vec<ListenPoint>, CdrError> {
    Reader::new(data)?.read_seq(|r| {
        Ok(ListenPoint {
            host: r.read_string()?,
            port: r.read_u16()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One listen point, 10.0.0.1:2809, as a client of the other byte order sends it.
    const ONE: &[u8] = &[
        0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, b'1', b'0', b'.', b'0', b'.', b'0', b'.', b'1', 0, 0,
        0x0a, 0xf9,
    ];

    #[test]
    fn listen_points_have_the_layout_of_the_standard() {
        let points = decode_listen_points(ONE).expect("well formed");
        let host = "10.0.0.1".to_owned();
        assert_eq!(points, [ListenPoint { host, port: 2809 }]);
    }

    #[test]
    fn listen_points_are_read_as_they_were_written() {
        let points = [("10.0.0.1", 2809), ("fe80::1", 1), ("", 65535)];
        let written = encode_listen_points(points.into_iter()).expect("it fits");
        let read = decode_listen_points(&written).expect("well formed");
        let read: Vec<_> = read.iter().map(|p| (p.host.as_str(), p.port)).collect();
        assert_eq!(read, points);
    }

    #[test]
    fn no_more_listen_points_are_read_than_there_are_octets() {
        for len in 0..ONE.len() {
            assert!(decode_listen_points(&ONE[..len]).is_err(), "{len} octets");
        }
        let mut many = ONE.to_vec();
        many[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(decode_listen_points(&many).is_err());
    }
}
