//! The messages of rtnetlink, made and read: a header, a fixed part by kind, and attributes, which
//! may hold attributes.
//!
//! All numbers are in the machine's order. The input may be arbitrary: no function panics, or reads
//! outside of its message.

use thiserror::Error;

/// A request that is being made.
#[derive(Clone, Debug)]
pub(super) struct Request {
    octets: Vec<u8>,
    is_too_long: bool,
}

impl Request {
    /// A request of this kind (`RTM_…`), with these flags besides `NLM_F_REQUEST`, and its fixed
    /// part.
    pub(super) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST) as u16;
        let mut octets = vec![0; HEADER];
        octets[4..6].copy_from_slice(&kind.to_ne_bytes());
        octets[6..8].copy_from_slice(&flags.to_ne_bytes());
        let mut request = Self {
            octets,
            is_too_long: false,
        };
        request.fixed(fixed);
        request
    }

    /// Adds a fixed part, for example to an attribute that holds a message.
    pub(super) fn fixed(&mut self, part: &[u8]) {
        self.octets.extend(part);
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }

    /// Adds an attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.head(kind, ATTRIBUTE + value.len());
        self.fixed(value);
    }

    /// Adds an attribute that is a number of 32 bits.
    pub(super) fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// Adds an attribute that is a text, with the zero at its end.
    pub(super) fn text(&mut self, kind: u16, value: &str) {
        let mut octets = value.as_bytes().to_vec();
        octets.push(0);
        self.attribute(kind, &octets);
    }

    /// Adds an attribute with the content that `fill` adds.
    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.octets.len();
        self.head(kind, ATTRIBUTE);
        fill(self);
        let len = self.fit(self.octets.len() - start);
        self.octets[start..start + 2].copy_from_slice(&len.to_ne_bytes());
    }

    /// Returns the message to send, with its number; `None` if a part is too long for a message.
    pub(super) fn finish(mut self, sequence: u32) -> Option<Vec<u8>> {
        let len = u32::try_from(self.octets.len()).ok()?;
        self.octets[0..4].copy_from_slice(&len.to_ne_bytes());
        self.octets[8..12].copy_from_slice(&sequence.to_ne_bytes());
        (!self.is_too_long).then_some(self.octets)
    }

    fn head(&mut self, kind: u16, len: usize) {
        let len = self.fit(len);
        self.octets.extend(len.to_ne_bytes());
        self.octets.extend(kind.to_ne_bytes());
    }

    fn fit(&mut self, len: usize) -> u16 {
        u16::try_from(len).unwrap_or_else(|_| {
            self.is_too_long = true;
            u16::MAX
        })
    }
}

/// A message of the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer<'a> {
    /// `RTM_…`, or `NLMSG_…`.
    pub(super) kind: u16,
    /// `NLM_F_…`.
    pub(super) flags: u16,
    /// The number of the request that it answers.
    pub(super) sequence: u32,
    /// The octets after the header.
    pub(super) body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Splits a message into its fixed part of `N` octets and its attributes.
    pub(super) fn split<const N: usize>(
        &self,
    ) -> Result<(&'a [u8; N], Attributes<'a>), MalformedMessage> {
        let fixed = self.body.first_chunk().ok_or(MalformedMessage)?;
        let rest = self.body.get(N.next_multiple_of(4)..).unwrap_or_default();
        Ok((fixed, Attributes(rest)))
    }

    /// Returns the kernel's answer to a request: the error's number, 0 for success, and its text.
    pub(super) fn verdict(&self) -> Result<(i32, Option<&'a str>), MalformedMessage> {
        let error =
            i32::from_ne_bytes(*self.body.first_chunk().ok_or(MalformedMessage)?).saturating_neg();
        let flags = i32::from(self.flags);
        if flags & libc::NLM_F_ACK_TLVS == 0 {
            return Ok((error, None));
        }
        // The request comes back, or its header only.
        let request = self.body.get(4..).ok_or(MalformedMessage)?;
        let length = match flags & libc::NLM_F_CAPPED {
            0 => u32::from_ne_bytes(*request.first_chunk().ok_or(MalformedMessage)?) as usize,
            _ => HEADER,
        };
        let rest = request.get(length.checked_next_multiple_of(4).ok_or(MalformedMessage)?..);
        let text = Attributes(rest.unwrap_or_default()).find(ERROR_TEXT)?;
        Ok((error, text.and_then(Attribute::text)))
    }
}

/// The messages of one datagram.
#[derive(Clone, Debug)]
pub(super) struct Answers<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Answers<'a> {
    type Item = Result<Answer<'a>, MalformedMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let answer = self.take();
        if answer.is_err() {
            self.0 = &[];
        }
        Some(answer)
    }
}

impl<'a> Answers<'a> {
    fn take(&mut self) -> Result<Answer<'a>, MalformedMessage> {
        let length = u32::from_ne_bytes(*self.0.first_chunk().ok_or(MalformedMessage)?) as usize;
        let (message, rest) = part(self.0, length, HEADER)?;
        self.0 = rest;
        let (header, body) = message.split_at(HEADER);
        Ok(Answer {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            flags: u16::from_ne_bytes([header[6], header[7]]),
            sequence: u32::from_ne_bytes([header[8], header[9], header[10], header[11]]),
            body,
        })
    }
}

/// An attribute of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Attribute<'a> {
    /// The kind, without the flags in it.
    pub(super) kind: u16,
    /// The value.
    pub(super) value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// Returns the value as a text, up to the zero.
    pub(super) fn text(self) -> Option<&'a str> {
        let end = self.value.iter().position(|octet| *octet == 0);
        str::from_utf8(&self.value[..end.unwrap_or(self.value.len())]).ok()
    }

    /// Returns the value as a number of 32 bits.
    pub(super) fn number(self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.value.try_into().ok()?))
    }

    /// The attributes that it holds.
    pub(super) fn nested(self) -> Attributes<'a> {
        Attributes(self.value)
    }
}

/// The attributes of a message, or of another attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Attributes<'a> {
    /// The first of this kind.
    pub(super) fn find(self, kind: u16) -> Result<Option<Attribute<'a>>, MalformedMessage> {
        for attribute in self {
            let attribute = attribute?;
            if attribute.kind == kind {
                return Ok(Some(attribute));
            }
        }
        Ok(None)
    }

    fn take(&mut self) -> Result<Attribute<'a>, MalformedMessage> {
        let head: [u8; ATTRIBUTE] = *self.0.first_chunk().ok_or(MalformedMessage)?;
        let length = u16::from_ne_bytes([head[0], head[1]]);
        let (attribute, rest) = part(self.0, length.into(), ATTRIBUTE)?;
        self.0 = rest;
        Ok(Attribute {
            kind: u16::from_ne_bytes([head[2], head[3]]) & libc::NLA_TYPE_MASK as u16,
            value: &attribute[ATTRIBUTE..],
        })
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, MalformedMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let attribute = self.take();
        if attribute.is_err() {
            self.0 = &[];
        }
        Some(attribute)
    }
}

/// The error of octets that are not a message of rtnetlink.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("a message that is none of rtnetlink's")]
pub(super) struct MalformedMessage;

/// Returns the first `length` octets, at least `least`, and the octets after their padding.
fn part(octets: &[u8], length: usize, least: usize) -> Result<(&[u8], &[u8]), MalformedMessage> {
    let part = octets.get(..length).ok_or(MalformedMessage)?;
    let after = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
    if length >= least {
        Ok((part, after))
    } else {
        Err(MalformedMessage)
    }
}

/// Octets of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Octets of `struct nlattr`.
const ATTRIBUTE: usize = 4;
/// `NLMSGERR_ATTR_MSG` of `<linux/netlink.h>`.
const ERROR_TEXT: u16 = 1;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn request() -> Vec<u8> {
        let mut request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &[7; 16]);
        request.text(3, "rio0");
        request.nest(18, |kind| {
            kind.text(1, "veth");
            kind.nest(2, |data| data.number(1, 0x0102_0304));
        });
        request.finish(9).expect("it is short")
    }

    #[test]
    fn what_is_made_is_read_back() {
        let octets = request();
        let answer = Answers(&octets).next().expect("one").expect("well formed");
        assert_eq!(answer.kind, libc::RTM_NEWLINK);
        assert_eq!(answer.sequence, 9);
        let (fixed, attributes) = answer.split::<16>().expect("it has a fixed part");
        assert_eq!(fixed, &[7; 16]);
        let name = attributes.find(3).unwrap().and_then(Attribute::text);
        assert_eq!(name, Some("rio0"));
        let kind = attributes.find(18).unwrap().expect("it is there").nested();
        let data = kind.find(2).unwrap().expect("it is there").nested();
        let number = data.find(1).unwrap().and_then(Attribute::number);
        assert_eq!(number, Some(0x0102_0304));
        assert_eq!(attributes.find(99), Ok(None));
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_request_is_made_as_the_kernel_wants_it() {
        let mut request = Request::new(18, libc::NLM_F_ACK, &[0; 16]);
        request.text(3, "ab");
        let octets = request.finish(1).expect("it is short");
        #[rustfmt::skip]
        assert_eq!(octets, [
            40, 0, 0, 0, 18, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            7, 0, 3, 0, b'a', b'b', 0, 0,
        ]);
    }

    #[test]
    fn an_attribute_that_is_too_long_is_no_request() {
        let mut request = Request::new(libc::RTM_NEWLINK, 0, &[]);
        request.text(3, &"x".repeat(1 << 16));
        assert_eq!(request.finish(1), None);
    }

    #[test]
    fn a_refusal_has_the_kernels_words() {
        let flags = libc::NLM_F_ACK_TLVS | libc::NLM_F_CAPPED;
        let mut body = (-libc::EINVAL).to_ne_bytes().to_vec();
        body.extend([0; HEADER]);
        let mut text = Request::new(0, 0, &[]);
        text.text(ERROR_TEXT, "Unknown qdisc");
        body.extend(&text.finish(0).unwrap()[HEADER..]);
        let answer = Answer {
            kind: libc::NLMSG_ERROR as u16,
            flags: flags as u16,
            sequence: 1,
            body: &body,
        };
        assert_eq!(answer.verdict(), Ok((libc::EINVAL, Some("Unknown qdisc"))));
        let wordless = Answer { flags: 0, ..answer };
        assert_eq!(wordless.verdict(), Ok((libc::EINVAL, None)));
        let cut = Answer {
            body: &body[..3],
            ..answer
        };
        assert_eq!(cut.verdict(), Err(MalformedMessage));
    }

    #[test]
    fn a_message_that_is_cut_anywhere_is_malformed_or_has_less_in_it() {
        let octets = request();
        for len in 1..octets.len() {
            assert_eq!(
                Answers(&octets[..len]).next(),
                Some(Err(MalformedMessage)),
                "{len}"
            );
        }
    }

    fn read_all(octets: &[u8]) {
        fn walk(attributes: Attributes<'_>, depth: u8) {
            for attribute in attributes.flatten() {
                let _ = (attribute.text(), attribute.number());
                if depth < 4 {
                    walk(attribute.nested(), depth + 1);
                }
            }
        }
        for answer in Answers(octets).flatten() {
            let _ = answer.verdict();
            if let Ok((_, attributes)) = answer.split::<20>() {
                walk(attributes, 0);
            }
        }
    }

    proptest! {
        #[test]
        fn anything_can_be_read(octets in vec(any::<u8>(), 0..300)) {
            read_all(&octets);
        }

        #[test]
        fn a_damaged_message_can_be_read(at in 0..60_usize, to in any::<u8>()) {
            let mut octets = request();
            let at = at % octets.len();
            octets[at] = to;
            read_all(&octets);
        }

        #[test]
        fn any_value_is_read_back(kind in 0..0x3fff_u16, value in vec(any::<u8>(), 0..100)) {
            let mut request = Request::new(1, 0, &[]);
            request.attribute(kind, &value);
            let octets = request.finish(0).unwrap();
            let read = Attributes(&octets[HEADER..]).find(kind).unwrap().unwrap();
            prop_assert_eq!(read.value, &value[..]);
        }
    }
}
