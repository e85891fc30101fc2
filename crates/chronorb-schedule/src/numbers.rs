//! The numbers of an assignment, for the simulator.

use crate::assign::Assignment;
use crate::schedule::{LaneOrder, Schedule};
use crate::simulate::{LaneNumbers, Numbers};

impl Assignment {
    /// Returns the priorities, lanes and threads of the assignment, for [`Schedule::simulate`]. A
    /// lane without an order serves requests in the order of arrival, and an activity has
    /// its declared threads.
    ///
    /// # Panics
    /// If the assignment is of another schedule.
    pub fn numbers(&self, schedule: &Schedule) -> Numbers {
        let mut lane_of = vec![0; schedule.operations.len()];
        let lanes = self.lanes.iter().enumerate().map(|(number, lane)| {
            for operation in &lane.operations {
                lane_of[*operation] = number;
            }
            let declared = lane
                .operations
                .iter()
                .find_map(|it| schedule.operations[*it].lane);
            let order = declared.and_then(|lane| schedule.lanes[lane].order);
            LaneNumbers {
                threads: lane.threads,
                order: order.unwrap_or(LaneOrder::Fifo),
            }
        });
        let lanes = lanes.collect();
        Numbers {
            priorities: self.band_ranks(),
            lane_of,
            threads: schedule.operations.iter().map(|it| it.threads).collect(),
            lanes,
        }
    }
}
