//! The command line of `chronorb ior`.

use std::time::Duration;

use chronorb_orb::OrbConfig;
use clap::{Args, Subcommand, ValueEnum, value_parser};

use crate::client::call_time;

#[derive(Debug, Subcommand)]
pub(crate) enum IorCommand {
    /// Show the content of a reference in words, and warn of what may go wrong with it.
    ///
    /// All profiles and components are shown, those of unknown tags in hexadecimal digits. Only a
    /// corbaname: makes a connection.
    #[command(after_help = DECODE_EXAMPLES)]
    Decode(DecodeArguments),

    /// Make a reference from addresses and an object key, and print it as IOR:.
    #[command(after_help = MAKE_EXAMPLES)]
    Make(MakeArguments),

    /// Ask whether an object exists, and how long that takes.
    ///
    /// Sends a locate request, and then calls _non_existent.
    #[command(after_help = PING_EXAMPLES)]
    Ping(PingArguments),

    /// Ask an object whether it has an interface.
    #[command(after_help = IS_A_EXAMPLES)]
    IsA(IsAArguments),

    /// Ask a server where an object is, and print the reference that it forwards to.
    ///
    /// Follows location forwards by locate requests over IIOP, and prints the last reference. Each
    /// step goes to standard error.
    #[command(after_help = FORWARD_EXAMPLES)]
    Forward(ForwardArguments),
}

/// The reference that a command is about.
#[derive(Args, Debug)]
pub(crate) struct ReferenceArgument {
    /// The reference: IOR:, corbaloc:, corbaname:, file:, the name of a file that holds one, or -
    /// for standard input.
    #[arg(value_name = "REF")]
    pub(super) reference: String,

    /// The longest time of a call, in milliseconds; by default that of -ORBRequestTimeout, or 5000.
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=3_600_000))]
    timeout: Option<u64>,
}

impl ReferenceArgument {
    pub(super) fn timeout(&self, config: &OrbConfig) -> Duration {
        call_time(self.timeout, config)
    }
}

#[derive(Args, Debug)]
pub(crate) struct DecodeArguments {
    #[command(flatten)]
    pub(super) reference: ReferenceArgument,

    /// Look up the host names, and warn of those that do not resolve here.
    #[arg(long)]
    pub(super) resolve: bool,

    /// Print one JSON object instead of the text.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MakeArguments {
    /// The addresses, as in corbaloc: PROTOCOL:VERSION@HOST:PORT. Without a protocol it is IIOP,
    /// without a version 1.2, without a port 2809.
    #[arg(value_name = "ADDRESS", required = true)]
    pub(super) addresses: Vec<String>,

    /// The object key as text.
    #[arg(long, value_name = "TEXT", required_unless_present = "key_hex")]
    pub(super) key: Option<String>,

    /// The object key in hexadecimal digits.
    #[arg(long, value_name = "HEX", conflicts_with = "key", value_parser = octets)]
    pub(super) key_hex: Option<HexOctets>,

    /// The repository identifier of the interface.
    #[arg(long = "type", value_name = "ID", default_value = "")]
    pub(super) type_id: String,

    /// Name the code sets UTF-8, ISO 8859-1 and UTF-16 in profiles of IIOP 1.1 and 1.2.
    #[arg(long)]
    pub(super) code_sets: bool,

    /// The priority model in profiles of IIOP 1.1 and 1.2.
    #[arg(long, value_name = "MODEL", requires = "priority")]
    pub(super) priority_model: Option<PriorityModelName>,

    /// The priority of the server, 0 to 32767.
    #[arg(long, value_name = "N", requires = "priority_model",
          value_parser = value_parser!(i16).range(0..))]
    pub(super) priority: Option<i16>,
}

/// A priority model of Real-Time CORBA.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PriorityModelName {
    ClientPropagated,
    ServerDeclared,
}

/// Octets of the command line.
#[derive(Clone, Debug)]
pub(crate) struct HexOctets(pub(super) Vec<u8>);

fn octets(text: &str) -> Result<HexOctets, String> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    let octets = pairs.map(|pair| match *pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    });
    match octets.collect() {
        Some(octets) => Ok(HexOctets(octets)),
        None => Err("not an even number of hexadecimal digits".to_owned()),
    }
}

#[derive(Args, Debug)]
pub(crate) struct PingArguments {
    #[command(flatten)]
    pub(super) reference: ReferenceArgument,

    /// Call so many times, and print the percentiles of the times.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub(super) repeat: u32,

    /// The time between two calls, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(super) interval: u64,

    /// Try every address on its own: resolve its host name, connect, locate, and ask for the
    /// interface.
    #[arg(long, conflicts_with_all = ["repeat", "interval"])]
    pub(super) explain: bool,

    /// Print one JSON object instead of the text.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct IsAArguments {
    #[command(flatten)]
    pub(super) reference: ReferenceArgument,

    /// The repository identifier of the interface, as IDL:Quoter:1.0.
    #[arg(value_name = "REPOSITORY_ID")]
    pub(super) repository_id: String,
}

#[derive(Args, Debug)]
pub(crate) struct ForwardArguments {
    #[command(flatten)]
    pub(super) reference: ReferenceArgument,
}

const DECODE_EXAMPLES: &str = "\
Examples:
  chronorb ior decode quoter.ior
  chronorb ior decode corbaname::names.example#plant/radar --resolve
  nameclt resolve radar | chronorb ior decode - --json | jq '.profiles[].address'";

const MAKE_EXAMPLES: &str = "\
Examples:
  chronorb ior make iiop:1.2@radar.example:2809 --key Radar --type IDL:Radar:1.0
  chronorb ior make a.example:2809 b.example:2809 --key-hex 5261646172 --code-sets";

const PING_EXAMPLES: &str = "\
Examples:
  chronorb ior ping quoter.ior
  chronorb ior ping corbaloc::127.0.0.1:2809/NameService --repeat 10000
  chronorb ior ping quoter.ior --explain

Exit status: 0 when the object exists, 1 when it cannot be asked, 2 when the command line is wrong,
3 when it does not exist.";

const IS_A_EXAMPLES: &str = "\
Examples:
  chronorb ior is-a quoter.ior IDL:Quoter:1.0

Exit status: 0 when it has the interface, 1 when it cannot be asked, 2 when the command line is
wrong, 3 when it has not.";

const FORWARD_EXAMPLES: &str = "\
Examples:
  chronorb ior forward corbaloc::127.0.0.1:2809/NameService | chronorb ior decode -

Exit status: 0 when the last server has the object, 1 when a server cannot be asked, 2 when the
command line is wrong, 3 when the last server does not have the object.";
