//! The table of connections by flow. A lookup takes constant time.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

/// The endpoints of a connection, as this side sees them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Flow {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// Connections by their endpoints, in a hash table of fixed capacity.
///
/// The hash has a secret key, so that peers cannot choose colliding ports.
#[derive(Debug)]
pub(super) struct FlowTable {
    cells: Box<[Option<(Flow, u32)>]>,
    hasher: RandomState,
}

impl FlowTable {
    /// Creates a table with room for this many connections.
    pub(super) fn new(connections: usize) -> Self {
        let cells = (2 * connections).next_power_of_two().max(4);
        Self {
            cells: std::iter::repeat_n(None, cells).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns the slot of a connection.
    pub(super) fn get(&self, flow: &Flow) -> Option<usize> {
        let (_, slot) = self.cells[self.find(flow).ok()?]?;
        Some(slot as usize)
    }

    /// Adds a connection that is not in the table. There is room, since there are twice as many
    /// cells as slots.
    pub(super) fn insert(&mut self, flow: Flow, slot: usize) {
        if let Err(free) = self.find(&flow) {
            self.cells[free] = Some((flow, slot as u32));
        }
    }

    /// Removes a connection, and moves up entries that were displaced by it.
    pub(super) fn remove(&mut self, flow: &Flow) {
        let Ok(mut hole) = self.find(flow) else {
            return;
        };
        self.cells[hole] = None;
        let mask = self.cells.len() - 1;
        let mut at = (hole + 1) & mask;
        while let Some((other, _)) = &self.cells[at] {
            let distance = at.wrapping_sub(self.first(other)) & mask;
            if distance >= at.wrapping_sub(hole) & mask {
                self.cells.swap(hole, at);
                hole = at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the cell of the flow, or the free cell where it would be added.
    fn find(&self, flow: &Flow) -> Result<usize, usize> {
        let mask = self.cells.len() - 1;
        let mut at = self.first(flow);
        loop {
            match &self.cells[at] {
                None => return Err(at),
                Some((there, _)) if there == flow => return Ok(at),
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    fn first(&self, flow: &Flow) -> usize {
        let ports = u32::from(flow.local.port()) << 16 | u32::from(flow.remote.port());
        let key = (bits(flow.local.ip()), bits(flow.remote.ip()), ports);
        self.hasher.hash_one(key) as usize & (self.cells.len() - 1)
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_macros, reason = "tests may allocate")]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn flow(port: u16) -> Flow {
        Flow {
            local: ([10, 0, 0, 1], 2809).into(),
            remote: ([10, 0, 0, 2], port).into(),
        }
    }

    proptest! {
        #[test]
        fn what_was_put_in_is_found_until_it_is_taken_out(
            steps in prop::collection::vec((any::<bool>(), 0..20_u16), 0..200),
        ) {
            let mut table = FlowTable::new(20);
            let mut model = HashMap::new();
            for (slot, (insert, port)) in steps.into_iter().enumerate() {
                if insert {
                    model.entry(port).or_insert_with(|| {
                        table.insert(flow(port), slot);
                        slot
                    });
                } else {
                    table.remove(&flow(port));
                    model.remove(&port);
                }
                for port in 0..20 {
                    prop_assert_eq!(table.get(&flow(port)), model.get(&port).copied());
                }
            }
        }
    }
}
