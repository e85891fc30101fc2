//! How clients reach the server.

use std::str::FromStr;

use chronorb_orb::{Endpoint, parse_endpoints};
use thiserror::Error;

/// A transport that the ORB has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Transport {
    /// GIOP over TCP.
    #[default]
    Iiop,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Iiop];

    /// As endpoints begin.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Iiop => "iiop",
        }
    }

    /// A free endpoint that this machine alone can reach.
    pub(super) fn endpoints(self) -> Vec<Endpoint> {
        let text = match self {
            Self::Iiop => "iiop://127.0.0.1:0",
        };
        parse_endpoints(text).expect("it is an endpoint")
    }
}

impl FromStr for Transport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|transport| transport.scheme() == text)
            .ok_or_else(|| UnknownTransport {
                name: text.to_owned(),
            })
    }
}

/// There is no such transport.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("there is no transport {name:?}; those that there are: {}", Transport::ALL.map(Transport::scheme).join(", "))]
pub struct UnknownTransport {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transport_has_an_endpoint_of_its_scheme() {
        for transport in Transport::ALL {
            assert_eq!(transport.scheme().parse(), Ok(transport));
            assert_eq!(transport.endpoints().len(), 1);
        }
    }

    #[test]
    fn an_unknown_transport_is_told_which_there_are() {
        let error = "carrier-pigeon".parse::<Transport>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no transport \"carrier-pigeon\"; those that there are: iiop"
        );
    }
}
