//! The keys of a link that describe its packets, for the real-time I/O subsystem.

use chronorb_sched::Time;
use toml::de::DeValue;

use crate::error::Mistakes;
use crate::table::{Table, WithSpan, text};

/// The interfaces and packets of a link.
pub(crate) struct Wire {
    /// The names of the interfaces by node; a name without a node is that of all nodes.
    pub(crate) interfaces: Vec<(Option<WithSpan<String>>, WithSpan<String>)>,
    pub(crate) mtu: u32,
    pub(crate) packet_cost: Option<Time>,
}

impl Wire {
    /// Takes `interface`, a name or a table of names by node, and the keys that describe packets.
    pub(crate) fn take(table: &Table<'_, '_>, has_rate: bool, mistakes: &mut Mistakes<'_>) -> Self {
        let mtu = table.integer("mtu", LEAST_MTU, MOST_MTU, mistakes);
        if mtu.is_some() && !has_rate {
            mistakes.add(&table.span(), "mtu is of a link with a rate");
        }
        let packet_cost = table.positive_time("packet_cost", mistakes);
        let mut interfaces = Vec::new();
        let given = table.take("interface");
        if given.is_none() && packet_cost.is_some() {
            let problem = "packet_cost is of a link with an interface";
            mistakes.add(&table.span(), problem);
        }
        let problem = "interface has to be a name, or a table of names by node";
        match given {
            None => {}
            Some(value) if matches!(value.get_ref(), DeValue::Table(_)) => {
                let by_node = Table::of(value, mistakes);
                for (node, name) in by_node.iter().flat_map(Table::entries) {
                    let node = WithSpan {
                        value: node.to_owned(),
                        span: name.span(),
                    };
                    let name = text(name, problem, mistakes);
                    interfaces.extend(name.map(|name| (Some(node), name)));
                }
            }
            Some(value) => {
                interfaces.extend(text(value, problem, mistakes).map(|name| (None, name)));
            }
        }
        Self {
            interfaces,
            mtu: mtu
                .and_then(|it| u32::try_from(it).ok())
                .unwrap_or(USUAL_MTU),
            packet_cost,
        }
    }

    pub(crate) const fn has_interface(&self) -> bool {
        !self.interfaces.is_empty()
    }
}

/// Octets of the longest packet of a link that gives none: those of Ethernet.
const USUAL_MTU: u32 = 1_500;
const LEAST_MTU: u64 = 576;
const MOST_MTU: u64 = 65_535;
