//! Service contexts: data that a request or reply carries in addition to its values.

use chronorb_cdr::{Cdr, CdrError, Decoder, Encoder, Endian};

use crate::encapsulation::Reader;
use crate::minor;

/// The context of the Transaction Service.
pub const TRANSACTION_SERVICE: u32 = 0;
/// The code sets of the connection: [`CodeSetContext`](crate::codesets::CodeSetContext).
pub const CODE_SETS: u32 = 1;
/// The listen points of a client that can be called back over its connection.
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
/// the server with its reply. RT-CORBA 1.2, clause 5.9.
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
/// that has no endpoint for each. RT-CORBA 1.2, clause 5.13.
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
