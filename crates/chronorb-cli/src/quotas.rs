//! The options of the commands that serve for their quotas: `--max-RESOURCE` for all clients
//! together, and `--max-RESOURCE-per-client` or `--max-RESOURCE-per-origin` for one of them.

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use chronorb_orb::quota::QuotaLimits;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};

/// The quotas of a service.
pub(crate) trait QuotaTable<const N: usize> {
    /// The word of the options for the peers that share a quota.
    const SHARER: &'static str;
    const QUOTAS: [QuotaOption; N];
}

/// A quota that options set.
pub(crate) struct QuotaOption {
    /// The resource, as options name it.
    resource: &'static str,
    /// The limit of all clients together by default.
    total: u64,
    /// The description of this limit.
    help: &'static str,
    unit: &'static str,
    /// The values of both options.
    range: RangeInclusive<u64>,
    /// The part of the total that one client has by default, in words.
    part: &'static str,
}

/// The limits that the options give, in the order of the table.
#[derive(Debug)]
pub(crate) struct QuotaArguments<T, const N: usize> {
    /// On the heap: the other commands have few arguments.
    limits: Box<[GivenLimits; N]>,
    table: PhantomData<T>,
}

/// The limits that the options for a quota give.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenLimits {
    pub(crate) total: u64,
    /// The share of one client, if it was given.
    pub(crate) share: Option<u64>,
}

impl GivenLimits {
    /// Limits of which one client has half, unless its share was given.
    pub(crate) fn or_half(self) -> QuotaLimits {
        let half = QuotaLimits::shared(self.total, 2);
        QuotaLimits {
            per_origin: self.share.unwrap_or(half.per_origin),
            ..half
        }
    }
}

impl QuotaOption {
    /// A quota of any amount, of which one client has half.
    pub(crate) const fn new(resource: &'static str, total: u64, help: &'static str) -> Self {
        Self {
            resource,
            total,
            help,
            unit: "N",
            range: 0..=u64::MAX,
            part: "half",
        }
    }

    pub(crate) const fn octets(mut self) -> Self {
        self.unit = "OCTETS";
        self
    }

    pub(crate) const fn within(mut self, range: RangeInclusive<u64>) -> Self {
        self.range = range;
        self
    }

    pub(crate) const fn quarter(mut self) -> Self {
        self.part = "a quarter";
        self
    }

    fn option(&self) -> String {
        format!("max-{}", self.resource)
    }

    fn share_option(&self, sharer: &str) -> String {
        format!("max-{}-per-{sharer}", self.resource)
    }

    fn arguments(&self, sharer: &str) -> [Arg; 2] {
        let argument = |option: String| {
            Arg::new(option.clone())
                .long(option)
                .value_name(self.unit)
                .value_parser(value_parser!(u64).range(self.range.clone()))
        };
        let (part, option) = (self.part, self.option());
        let share = format!("The most of these for one {sharer} [default: {part} of --{option}]");
        let total = argument(option).help(self.help);
        [
            total.default_value(self.total.to_string()),
            argument(self.share_option(sharer)).help(share),
        ]
    }

    fn limits(&self, sharer: &str, matches: &ArgMatches) -> GivenLimits {
        let value = |option: &str| matches.get_one(option).copied();
        GivenLimits {
            total: value(&self.option()).unwrap_or(self.total),
            share: value(&self.share_option(sharer)),
        }
    }
}

impl<T, const N: usize> QuotaArguments<T, N> {
    pub(crate) fn limits(&self) -> [GivenLimits; N] {
        *self.limits
    }
}

impl<T: QuotaTable<N>, const N: usize> Args for QuotaArguments<T, N> {
    fn augment_args(command: Command) -> Command {
        let arguments = T::QUOTAS.map(|quota| quota.arguments(T::SHARER));
        command.args(arguments.into_iter().flatten())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: QuotaTable<N>, const N: usize> FromArgMatches for QuotaArguments<T, N> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self {
            limits: Box::new(T::QUOTAS.map(|quota| quota.limits(T::SHARER, matches))),
            table: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug)]
    struct Table;

    impl QuotaTable<2> for Table {
        const SHARER: &'static str = "client";
        const QUOTAS: [QuotaOption; 2] = [
            QuotaOption::new("seats", 7, "The greatest number of seats").within(1..=100),
            QuotaOption::new("octets", 80, "The most octets of all")
                .octets()
                .quarter(),
        ];
    }

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        quotas: QuotaArguments<Table, 2>,
    }

    fn limits(arguments: &[&str]) -> Result<[(u64, Option<u64>, u64); 2], String> {
        let program = ["program"].iter().chain(arguments);
        let program = Program::try_parse_from(program).map_err(|error| error.to_string())?;
        let each = |it: GivenLimits| (it.total, it.share, it.or_half().per_origin);
        Ok(program.quotas.limits().map(each))
    }

    #[test]
    fn a_share_is_half_of_the_total_unless_it_is_given() {
        assert_eq!(limits(&[]), Ok([(7, None, 4), (80, None, 40)]));
        let given = ["--max-seats", "9", "--max-octets", "60"];
        assert_eq!(limits(&given), Ok([(9, None, 5), (60, None, 30)]));
        let given = ["--max-seats-per-client=9", "--max-octets-per-client=0"];
        let expected = [(7, Some(9), 9), (80, Some(0), 0)];
        assert_eq!(limits(&given), Ok(expected));
        let refused = limits(&["--max-seats-per-client", "0"]).unwrap_err();
        assert!(refused.contains("--max-seats-per-client <N>"), "{refused}");
    }

    #[test]
    fn the_help_says_which_part_one_client_has() {
        let error = limits(&["--help"]).unwrap_err();
        let help = error.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in [
            "--max-seats <N> The greatest number of seats [default: 7]",
            "--max-octets-per-client <OCTETS> The most of these for one client [default: a \
             quarter of --max-octets]",
        ] {
            assert!(help.contains(text), "{help}");
        }
    }
}
