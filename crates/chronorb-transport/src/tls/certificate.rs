//! The names in a certificate.
//!
//! rustls has verified a peer's certificate before it is read here, so a malformed one is rare. It
//! has no names then, and no rule that asks for one is satisfied.

use std::fmt::Write;
use std::net::IpAddr;

/// The names that a certificate (X.509) gives its owner.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateNames {
    /// The subject in the form of RFC 4514: the last attribute first, `CN=radar,O=Example`. Types
    /// without a short name are numbers in dotted form.
    pub subject: String,
    /// The alternative names, each after its kind: `dns:radar.example`, `ip:10.0.0.1`,
    /// `uri:spiffe://example/radar`, `email:radar@example`. Other kinds are left out, and host
    /// names are in lower case.
    pub alternative: Vec<String>,
}

impl CertificateNames {
    /// Reads the names of a certificate in DER form; `None` where it is malformed.
    #[must_use]
    pub fn read(certificate: &[u8]) -> Option<Self> {
        let mut certificate = Der(certificate).take(SEQUENCE)?;
        let mut tbs = certificate.take(SEQUENCE)?;
        // Version, serial number, algorithm, issuer and validity precede the subject (RFC 5280,
        // section 4.1), the key follows it.
        tbs.take_if(VERSION);
        for tag in [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE] {
            tbs.take(tag)?;
        }
        let subject = subject(tbs.take(SEQUENCE)?)?;
        tbs.take(SEQUENCE)?;
        let mut alternative = Vec::new();
        while let Some((tag, contents)) = tbs.next() {
            if tag == EXTENSIONS {
                alternative = alternative_names(Der(contents).take(SEQUENCE)?)?;
            }
        }
        Some(Self {
            subject,
            alternative,
        })
    }
}

/// Values in DER, one after another.
#[derive(Clone, Copy)]
struct Der<'d>(&'d [u8]);

impl<'d> Der<'d> {
    /// The next value: its tag and its contents; `None` at the end, and where it is malformed.
    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (&[tag, short], rest) = self.0.split_first_chunk()?;
        if tag & LONG_TAG == LONG_TAG {
            return None;
        }
        let (len, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            // One to four octets of length follow. A certificate is never longer.
            0x81..=0x84 => {
                let (long, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
                let append = |len, octet: &u8| len << 8 | usize::from(*octet);
                (long.iter().fold(0, append), rest)
            }
            _ => return None,
        };
        let (contents, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((tag, contents))
    }

    /// The contents of the next value, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<Self> {
        let (found, contents) = self.next()?;
        (found == tag).then_some(Self(contents))
    }

    /// The contents of the next value if it has this tag.
    fn take_if(&mut self, tag: u8) -> Option<Self> {
        let mut after = *self;
        let taken = after.take(tag)?;
        *self = after;
        Some(taken)
    }
}

/// The text of a distinguished name: the last part first.
fn subject(mut name: Der<'_>) -> Option<String> {
    let mut parts = Vec::new();
    while !name.0.is_empty() {
        let mut part = name.take(SET)?;
        let mut text = String::new();
        while !part.0.is_empty() {
            let mut attribute = part.take(SEQUENCE)?;
            let kind = attribute.take(OBJECT_IDENTIFIER)?;
            if !text.is_empty() {
                text.push('+');
            }
            write_attribute(&mut text, kind.0, attribute)?;
        }
        parts.push(text);
    }
    parts.reverse();
    Some(parts.join(","))
}

/// Appends one attribute, whose value follows.
fn write_attribute(text: &mut String, kind: &[u8], mut value: Der<'_>) -> Option<()> {
    let encoded = value.0;
    let (tag, contents) = value.next()?;
    // The text of an identifier without an end would be that of another one.
    let is_whole = kind.last().is_some_and(|octet| octet & 0x80 == 0);
    if !is_whole || !value.0.is_empty() {
        return None;
    }
    let short = SHORT_NAMES.iter().find(|(id, _)| *id == kind);
    let readable = short.and_then(|(_, name)| Some((*name, string(tag, contents)?)));
    match readable {
        Some((name, value)) => {
            text.push_str(name);
            text.push('=');
            write_escaped(text, &value);
        }
        // RFC 4514, section 2.4: the octets of the encoding in hexadecimal.
        None => {
            match short {
                Some((_, name)) => text.push_str(name),
                None => write_dotted(text, kind),
            }
            text.push_str("=#");
            for octet in encoded {
                let _ = write!(text, "{octet:02x}");
            }
        }
    }
    Some(())
}

/// A string of a distinguished name; `None` for kinds that are not read.
fn string(tag: u8, contents: &[u8]) -> Option<String> {
    match tag {
        UTF8_STRING | PRINTABLE_STRING | IA5_STRING => String::from_utf8(contents.to_vec()).ok(),
        BMP_STRING => {
            let (units, rest) = contents.as_chunks();
            let units: Vec<_> = units.iter().copied().map(u16::from_be_bytes).collect();
            let text = String::from_utf16(&units).ok()?;
            rest.is_empty().then_some(text)
        }
        _ => None,
    }
}

/// Appends a value with the escapes of RFC 4514, section 2.4, so that no value looks like another
/// attribute.
fn write_escaped(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        let is_special = matches!(character, '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=')
            || (at == 0 && matches!(character, ' ' | '#'))
            || (at == last && character == ' ');
        match character {
            _ if is_special => text.extend(['\\', character]),
            '\0'..' ' | '\x7f' => {
                let _ = write!(text, "\\{:02x}", character as u32);
            }
            _ => text.push(character),
        }
    }
}

/// Appends an object identifier in dotted form.
fn write_dotted(text: &mut String, id: &[u8]) {
    let mut arc: u64 = 0;
    let mut is_first = true;
    for octet in id {
        arc = arc << 7 | u64::from(octet & 0x7f);
        if octet & 0x80 != 0 {
            continue;
        }
        if is_first {
            let top = (arc / 40).min(2);
            let _ = write!(text, "{top}.{}", arc - 40 * top);
        } else {
            let _ = write!(text, ".{arc}");
        }
        (arc, is_first) = (0, false);
    }
}

/// The names in the extension `subjectAltName`; none where there is no such extension. Two of them
/// are malformed.
fn alternative_names(mut extensions: Der<'_>) -> Option<Vec<String>> {
    let mut found: Option<Vec<String>> = None;
    while !extensions.0.is_empty() {
        let mut extension = extensions.take(SEQUENCE)?;
        if extension.take(OBJECT_IDENTIFIER)?.0 != SUBJECT_ALT_NAME {
            continue;
        }
        extension.take_if(BOOLEAN);
        let mut names = extension.take(OCTET_STRING)?.take(SEQUENCE)?;
        if found.is_some() {
            return None;
        }
        let found = found.insert(Vec::new());
        while !names.0.is_empty() {
            let (tag, contents) = names.next()?;
            if tag & CLASS != OF_NAMES {
                return None;
            }
            found.extend(alternative_name(tag, contents));
        }
    }
    Some(found.unwrap_or_default())
}

/// Parses one alternative name; `None` for a kind that is not reported.
fn alternative_name(tag: u8, contents: &[u8]) -> Option<String> {
    let text = || std::str::from_utf8(contents).ok();
    match tag {
        EMAIL => Some(format!("email:{}", text()?)),
        DNS => Some(format!("dns:{}", text()?.to_ascii_lowercase())),
        URI => Some(format!("uri:{}", text()?)),
        IP => {
            let v4 = <[u8; 4]>::try_from(contents).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(contents).map(IpAddr::from);
            Some(format!("ip:{}", v4.or_else(|_| v6()).ok()?))
        }
        _ => None,
    }
}

/// The bits of a tag that continues in further octets. Names have none.
const LONG_TAG: u8 = 0x1f;
/// The bits of a tag with its class, and the class of alternative names (context-specific).
const CLASS: u8 = 0xc0;
const OF_NAMES: u8 = 0x80;
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const BMP_STRING: u8 = 0x1e;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Tags of the certificate's own fields, and of alternative names.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const EMAIL: u8 = 0x81;
const DNS: u8 = 0x82;
const URI: u8 = 0x86;
const IP: u8 = 0x87;
/// 2.5.29.17.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// The attribute types of RFC 4514, section 3.
const SHORT_NAMES: &[(&[u8], &str)] = &[
    (&[0x55, 0x04, 0x03], "CN"),
    (&[0x55, 0x04, 0x06], "C"),
    (&[0x55, 0x04, 0x07], "L"),
    (&[0x55, 0x04, 0x08], "ST"),
    (&[0x55, 0x04, 0x09], "STREET"),
    (&[0x55, 0x04, 0x0a], "O"),
    (&[0x55, 0x04, 0x0b], "OU"),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01],
        "UID",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19],
        "DC",
    ),
];

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use rcgen::{CertificateParams, CustomExtension, DnType, DnValue, KeyPair, SanType};
    use x509_parser::asn1_rs::{Class, Tag, ToDer};
    use x509_parser::extensions::GeneralName;
    use x509_parser::x509::AttributeTypeAndValue;

    use super::*;

    fn names(change: impl FnOnce(&mut CertificateParams)) -> Option<CertificateNames> {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        CertificateNames::read(certificate.der())
    }

    fn subject(attributes: &[(DnType, &str)]) -> String {
        let read = names(|params| {
            for (kind, value) in attributes {
                params.distinguished_name.push(kind.clone(), *value);
            }
        });
        read.expect("it is well-formed").subject
    }

    #[test]
    fn subjects_are_in_the_form_of_the_rfc_and_no_value_looks_like_another_attribute() {
        let of_name = |name| subject(&[(DnType::CommonName, name)]);
        let ordinary = [
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "Example"),
            (DnType::CommonName, "radar"),
        ];
        assert_eq!(subject(&ordinary), "CN=radar,O=Example,C=DE");
        assert_eq!(of_name("radar,O=Example"), r"CN=radar\,O\=Example");
        assert_eq!(of_name(" #a+\"<>;\\ "), r#"CN=\ #a\+\"\<\>\;\\\ "#);
        assert_eq!(of_name("#a"), r"CN=\#a");
        assert_eq!(of_name("a\nb"), r"CN=a\0ab");
        assert_eq!(of_name("Müller"), "CN=Müller");
        assert_eq!(subject(&[]), "");
        // An e-mail address has no short name.
        let email = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        assert_eq!(subject(&[(email, "a")]), "1.2.840.113549.1.9.1=#0c0161");
        let wide = names(|params| {
            let value = rcgen::string::BmpString::try_from("radar").expect("it fits");
            let value = DnValue::BmpString(value);
            params.distinguished_name.push(DnType::CommonName, value);
        });
        assert_eq!(wide.expect("it is well-formed").subject, "CN=radar");
    }

    #[test]
    fn alternative_names_tell_their_kinds() {
        let read = names(|params| {
            let ia5 = |text: &str| text.try_into().expect("it is ASCII");
            params.subject_alt_names = vec![
                SanType::DnsName(ia5("Radar.example")),
                SanType::IpAddress([10, 0, 0, 1].into()),
                SanType::IpAddress(std::net::Ipv6Addr::LOCALHOST.into()),
                SanType::URI(ia5("spiffe://example/Radar")),
                SanType::Rfc822Name(ia5("radar@example")),
            ];
            let other = CustomExtension::from_oid_content(&[1, 2, 3], vec![5, 0]);
            params.custom_extensions.push(other);
        });
        assert_eq!(
            read.expect("it is well-formed").alternative,
            [
                "dns:radar.example",
                "ip:10.0.0.1",
                "ip:::1",
                "uri:spiffe://example/Radar",
                "email:radar@example",
            ]
        );
        let none = names(|_| {}).expect("it is well-formed");
        assert_eq!(none, CertificateNames::default());
    }

    /// The names as another parser reads them; `None` where it refuses the certificate.
    fn by_another_parser(certificate: &[u8]) -> Option<CertificateNames> {
        let (rest, read) = x509_parser::parse_x509_certificate(certificate).ok()?;
        let alternative = read.subject_alternative_name().ok()?;
        let alternative = alternative.map_or(&[][..], |names| &names.value.general_names);
        let parts = read.subject().iter_rdn().map(|part| {
            let attributes = part.iter().map(attribute);
            attributes.collect::<Option<Vec<_>>>()
        });
        let parts: Option<Vec<_>> = parts.collect();
        let parts = parts?.into_iter().rev().map(|part| part.join("+"));
        let names = CertificateNames {
            subject: parts.collect::<Vec<_>>().join(","),
            alternative: alternative
                .iter()
                .filter_map(other_alternative_name)
                .collect(),
        };
        rest.is_empty().then_some(names)
    }

    fn attribute(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
        let (kind, value) = (attribute.attr_type().as_bytes(), attribute.attr_value());
        let mut text = String::new();
        let short = SHORT_NAMES.iter().find(|(id, _)| *id == kind);
        match short {
            Some((_, short)) => text.push_str(short),
            None => write_dotted(&mut text, kind),
        }
        text.push('=');
        // Strings in parts (constructed) are shown as they are encoded.
        let is_plain = short.is_some() && !value.header.is_constructed();
        let string = match value.tag() {
            _ if !is_plain || value.class() != Class::Universal => None,
            Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => {
                std::str::from_utf8(value.data).ok().map(str::to_owned)
            }
            Tag::BmpString => value.clone().bmpstring().ok().map(|text| text.string()),
            _ => None,
        };
        match string {
            Some(string) => write_escaped(&mut text, &string),
            None => {
                text.push('#');
                for octet in value.to_der_vec().ok()? {
                    let _ = write!(text, "{octet:02x}");
                }
            }
        }
        Some(text)
    }

    fn other_alternative_name(name: &GeneralName<'_>) -> Option<String> {
        match name {
            GeneralName::RFC822Name(name) => Some(format!("email:{name}")),
            GeneralName::DNSName(name) => Some(format!("dns:{}", name.to_ascii_lowercase())),
            GeneralName::URI(name) => Some(format!("uri:{name}")),
            GeneralName::IPAddress(octets) => {
                let v4 = <[u8; 4]>::try_from(*octets).map(IpAddr::from);
                let address = v4.or_else(|_| <[u8; 16]>::try_from(*octets).map(IpAddr::from));
                address.ok().map(|address| format!("ip:{address}"))
            }
            _ => None,
        }
    }

    fn samples() -> Vec<Vec<u8>> {
        let key = KeyPair::generate().expect("a key");
        let ia5 = |text: &str| text.try_into().expect("it is ASCII");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        let mut samples = vec![params.self_signed(&key).expect("a certificate")];
        params.distinguished_name.push(DnType::CountryName, "DE");
        params.distinguished_name.push(DnType::CommonName, "rad,ar");
        let bmp = rcgen::string::BmpString::try_from("radar").expect("it fits");
        params
            .distinguished_name
            .push(DnType::OrganizationName, DnValue::BmpString(bmp));
        let email = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        params.distinguished_name.push(email, "a");
        params.subject_alt_names = vec![
            SanType::DnsName(ia5("Radar.example")),
            SanType::IpAddress([10, 0, 0, 1].into()),
            SanType::URI(ia5("spiffe://example/Radar")),
            SanType::Rfc822Name(ia5("radar@example")),
        ];
        samples.push(params.self_signed(&key).expect("a certificate"));
        samples.iter().map(|it| it.der().to_vec()).collect()
    }

    /// The positions of the names in a certificate, its subject and its alternative names.
    fn positions_of_names(certificate: &[u8]) -> Vec<Range<usize>> {
        let (_, read) = x509_parser::parse_x509_certificate(certificate).expect("it is correct");
        let alternative = read.extensions().iter();
        let alternative = alternative.filter(|it| it.oid.as_bytes() == SUBJECT_ALT_NAME);
        let names = std::iter::once(read.subject().as_raw()).chain(alternative.map(|it| it.value));
        let start = certificate.as_ptr().addr();
        names
            .map(|it| it.as_ptr().addr() - start..it.as_ptr().addr() - start + it.len())
            .collect()
    }

    /// Whether the TLS library reads it: else it is never asked for names.
    fn is_read_by_tls(certificate: &[u8]) -> bool {
        let certificate = rustls::pki_types::CertificateDer::from(certificate);
        rustls::server::ParsedCertificate::try_from(&certificate).is_ok()
    }

    /// Ours may refuse what the other one reads, and leaves out names that are made of parts. What
    /// both read is equal. What the other one refuses, ours reads only if its names are unharmed:
    /// the TLS library has checked the rest.
    #[test]
    fn another_parser_finds_the_same_names_in_mutated_certificates() {
        let mut read_by_both = 0;
        for whole in samples() {
            let names = CertificateNames::read(&whole);
            assert!(names.is_some());
            assert_eq!(names, by_another_parser(&whole));
            let places = positions_of_names(&whole);
            for at in 0..whole.len() {
                for change in (0..8).map(|bit| 1 << bit).chain([0x7f, 0xff]) {
                    let mut mutated = whole.clone();
                    mutated[at] ^= change;
                    if !is_read_by_tls(&mutated) {
                        continue;
                    }
                    let ours = CertificateNames::read(&mutated);
                    let other = by_another_parser(&mutated);
                    let is_in_names = places.iter().any(|place| place.contains(&at));
                    let what = format!("octet {at} ^ {change:#x}: {ours:?}, {other:?}");
                    match (ours, other) {
                        (None, _) => {}
                        (Some(ours), Some(other)) => {
                            assert_eq!(ours.subject, other.subject, "{what}");
                            let has = |name| other.alternative.contains(name);
                            assert!(ours.alternative.iter().all(has), "{what}");
                            read_by_both += 1;
                        }
                        (Some(_), None) => assert!(!is_in_names, "{what}"),
                    }
                }
            }
        }
        assert!(read_by_both > 5_000, "{read_by_both}");
    }

    #[test]
    fn no_prefix_and_no_mutation_of_a_certificate_panics() {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["radar.example".to_owned()]).expect("a name");
        let whole = params.self_signed(&key).expect("a certificate");
        let whole = whole.der().to_vec();
        for len in 0..whole.len() {
            assert_eq!(CertificateNames::read(&whole[..len]), None);
        }
        for at in 0..whole.len() {
            for octet in [0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut mutated = whole.clone();
                mutated[at] = octet;
                let _ = CertificateNames::read(&mutated);
            }
        }
    }
}
