//! Reading access rules.

use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

use super::{Action, Condition, TransportRule, bits};

/// A text that is no access rule.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("at character {position}: {problem}")]
pub struct RuleError {
    /// The character at which the wrong part begins, counted from 1.
    pub position: usize,
    /// The error, and the expected form.
    pub problem: String,
}

impl FromStr for TransportRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = words(text)?;
        let action = match words.len() {
            0 => return Err(error(1, format!("there is nothing; expected {CONDITIONS}"))),
            1 => {
                let end = text.chars().count() + 1;
                return Err(error(
                    end,
                    format!("the actions are missing; expected {ACTIONS}"),
                ));
            }
            _ => words.pop(),
        };
        let conditions = words.iter().map(condition).collect::<Result<_, _>>()?;
        Ok(Self {
            conditions,
            action: action.as_ref().map_or(Ok(Action::Refuse), self::action)?,
            text: text.trim().to_owned(),
        })
    }
}

/// A word of a rule without its quotes, and the character at which it begins.
struct Word {
    position: usize,
    text: String,
}

/// Splits a rule at blanks that are not in quotes. A backslash and the character after it belong
/// together, as in subjects (RFC 4514).
fn words(text: &str) -> Result<Vec<Word>, RuleError> {
    let mut words: Vec<Word> = Vec::new();
    let mut in_word = false;
    let mut quote = None;
    let mut is_escaped = false;
    for (index, character) in text.chars().enumerate() {
        if quote.is_none() && !is_escaped && character.is_whitespace() {
            in_word = false;
            continue;
        }
        if !in_word {
            in_word = true;
            words.push(Word {
                position: index + 1,
                text: String::new(),
            });
        }
        if character == '"' && !is_escaped {
            quote = match quote {
                None => Some(index + 1),
                Some(_) => None,
            };
        } else if let Some(word) = words.last_mut() {
            word.text.push(character);
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    match quote {
        Some(position) => Err(error(position, "this quote has no end".to_owned())),
        None => Ok(words),
    }
}

fn condition(word: &Word) -> Result<Condition, RuleError> {
    let refused = |what: &str, expected: &str| {
        let at = word.position;
        error(
            at,
            format!("{:?} is no {what}; expected {expected}", word.text),
        )
    };
    if let Some((kind, value)) = word.text.split_once('=') {
        let number = || value.parse::<u32>().ok();
        return match kind {
            "subject" if !value.is_empty() => Ok(Condition::Subject(value.to_owned())),
            "san" => alternative_name(value)
                .ok_or_else(|| refused("alternative name", "san= with dns:, ip:, uri: or email:")),
            "uid" if value == "self" => {
                let own = rustix::process::geteuid();
                Ok(Condition::User(own.as_raw()))
            }
            "uid" => number()
                .map(Condition::User)
                .ok_or_else(|| refused("user", "uid= with a number, or uid=self")),
            "gid" => number()
                .map(Condition::Group)
                .ok_or_else(|| refused("group", "gid= with a number")),
            _ => Err(refused("condition", CONDITIONS)),
        };
    }
    match word.text.as_str() {
        "*" => Ok(Condition::Everybody),
        "localhost" => Ok(Condition::Localhost),
        text => network(text).ok_or_else(|| refused("condition", CONDITIONS)),
    }
}

/// A network: an address with the length of a prefix, or with a mask of the same family; or one
/// address.
fn network(text: &str) -> Option<Condition> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits_of_family = if address.is_ipv4() { 32 } else { 128 };
    let mask = match mask {
        None => u128::MAX,
        Some(mask) => match mask.parse::<u32>() {
            // IPv4 is mapped into IPv6, whose bits before it have to be equal.
            Ok(length) if length <= bits_of_family => {
                u128::MAX.checked_shl(bits_of_family - length).unwrap_or(0)
            }
            Ok(_) => return None,
            Err(_) => {
                let mask: IpAddr = mask.parse().ok()?;
                if mask.is_ipv4() != address.is_ipv4() {
                    return None;
                }
                let before = if mask.is_ipv4() { u128::MAX << 32 } else { 0 };
                bits(mask) | before
            }
        },
    };
    Some(Condition::Network {
        address: bits(address) & mask,
        mask,
    })
}

/// Parses an alternative name, in the form in which names of certificates are shown. Without a kind
/// it is a host.
fn alternative_name(text: &str) -> Option<Condition> {
    let (kind, value) = text.split_once(':').unwrap_or(("dns", text));
    let name = match kind {
        _ if value.is_empty() => return None,
        "dns" => format!("dns:{}", value.to_ascii_lowercase()),
        "ip" => format!("ip:{}", value.parse::<IpAddr>().ok()?),
        "uri" | "email" => format!("{kind}:{value}"),
        _ => return None,
    };
    Some(Condition::AlternativeName(name))
}

fn action(word: &Word) -> Result<Action, RuleError> {
    let mut schemes: Vec<String> = Vec::new();
    let mut position = word.position;
    for name in word.text.split(',') {
        let wrong = |what: String| error(position, format!("{what}; expected {ACTIONS}"));
        let permitted: &[&str] = match name {
            "none" | "any" if word.text != name => {
                return Err(wrong(format!("{name:?} does not go with other actions")));
            }
            "none" => return Ok(Action::Refuse),
            "any" => return Ok(Action::PermitAll),
            "tcp" => &["iiop", "riop"],
            "unix" => &["uiop", "shmiop"],
            "ssl" => &["ssliop"],
            _ if is_scheme(name) => &[name],
            _ => return Err(wrong(format!("{name:?} is no action"))),
        };
        schemes.extend(permitted.iter().map(|scheme| (*scheme).to_owned()));
        position += name.chars().count() + 1;
    }
    Ok(Action::Permit(schemes))
}

/// Whether a text may be a scheme (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
}

fn error(position: usize, problem: String) -> RuleError {
    RuleError { position, problem }
}

const CONDITIONS: &str = "a condition: *, localhost, an address such as 10.0.0.0/8 or fd00::/8, \
                          subject=, san=, uid= or gid=";
const ACTIONS: &str = "actions with commas between them: tcp, unix, ssl or other protocols; or \
    any, or none";
