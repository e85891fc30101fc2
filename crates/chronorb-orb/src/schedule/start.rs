//! Makes the thread pools and bands of a schedule, at the start of an ORB.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronorb_schedule::{LockActivity, LockBand, LockCeiling, LockLane};

use super::load::{LoadedSchedule, StartError, priority_of};
use crate::active_schedule::{ActiveSchedule, ActivitySchedule, ObjectPriority, ProcessorPool};
use crate::core::Core;
use crate::failure;
use crate::lanes::{Lane, PoolSpec, ThreadpoolLanes};
use crate::rtcorba::{LaneOrder, Priority, PriorityBand, PriorityBands, TimeConstraint};
use crate::server::ServerPool;

impl ActiveSchedule {
    /// Makes the pools of the node.
    ///
    /// # Errors
    /// [`StartError`], where the ORB cannot have the lanes.
    pub(crate) fn start(core: &Arc<Core>, loaded: LoadedSchedule) -> Result<Self, StartError> {
        let LoadedSchedule {
            path,
            lock,
            node,
            table,
        } = loaded;
        let mut processors: Vec<(&str, Vec<&LockLane>)> = Vec::new();
        for lane in lock.lanes.iter().filter(|lane| lane.node == node) {
            match processors
                .iter_mut()
                .find(|(name, _)| *name == lane.processor)
            {
                Some((_, lanes)) => lanes.push(lane),
                None => processors.push((&lane.processor, vec![lane])),
            }
        }
        let mut pools = Vec::new();
        for (processor, lanes) in processors {
            check_native(core, &path, &lanes)?;
            let created = ServerPool::create(core, &spec_of(&lanes));
            let pool = created.map_err(|source| {
                let cause = failure::last().filter(|last| last.exception() == source);
                StartError::Lanes {
                    lock: path.clone(),
                    processor: processor.to_owned(),
                    cause: cause.map_or_else(|| source.to_string(), |it| it.cause().to_owned()),
                    source,
                }
            })?;
            let mut priorities: Vec<_> = lanes.iter().map(|lane| lane.priority).collect();
            priorities.sort_unstable();
            pools.push(ProcessorPool {
                processor: processor.to_owned(),
                pool,
                bands: bands_of(&lock.bands, &priorities, Priority::MAX),
                declared_bands: bands_of(
                    &lock.bands,
                    &priorities,
                    priority_of(priorities.last().copied().unwrap_or(i16::MAX)),
                ),
                least: priority_of(priorities.first().copied().unwrap_or_default()),
            });
        }
        let ceilings = lock.ceilings.iter().filter(|it| it.node == node);
        let ceilings: Vec<_> = ceilings.collect();
        let lanes = lock.lanes.iter().filter(|lane| lane.node == node);
        check_ceilings(core, &path, &ceilings, &lanes.collect::<Vec<_>>())?;
        let ceilings = ceilings.into_iter();
        let own = lock.operations.iter().filter(|it| it.node == node);
        let objects = own.map(|it| (it.name.as_str(), priority_of(it.priority)));
        let activities = lock.activities.iter().filter(|it| it.node == node);
        let activities = activities.map(|it| (it.name.clone(), ActivitySchedule::of(it)));
        let activities: HashMap<_, _> = activities.collect();
        Ok(Self {
            objects: objects_of(objects),
            has_constraints: activities.values().any(|it| it.constraint.is_some()),
            activities,
            ceilings: ceilings
                .map(|it| (it.name.clone(), priority_of(it.priority)))
                .collect(),
            path,
            digest: lock.input,
            node,
            table,
            pools,
        })
    }
}

impl ActivitySchedule {
    fn of(activity: &LockActivity) -> Self {
        let constraint = activity.urgency.map(|urgency| TimeConstraint {
            deadline: Duration::from_nanos(activity.deadline),
            execution: Duration::from_nanos(urgency.execution),
            criticality: urgency.criticality.into(),
            importance: urgency.importance.into(),
        });
        Self {
            priority: priority_of(activity.priority),
            constraint,
        }
    }
}

/// Returns the parts of a pool: one lane for each priority.
fn spec_of(lanes: &[&LockLane]) -> PoolSpec {
    let mut threads: BTreeMap<i16, u32> = BTreeMap::new();
    for lane in lanes {
        let count = threads.entry(lane.priority).or_default();
        *count = count.saturating_add(lane.threads);
    }
    let order_of = |priority| {
        let mut lanes = lanes.iter().filter(|lane| lane.priority == priority);
        lanes.find_map(|lane| lane.order)
    };
    let lanes_of_pool = threads.into_iter().map(|(priority, threads)| Lane {
        priority: priority_of(priority),
        static_threads: threads.max(1),
        dynamic_threads: 0,
        order: order_of(priority).map(|order| match order {
            chronorb_schedule::LaneOrder::Fifo => LaneOrder::Fifo,
            chronorb_schedule::LaneOrder::Deadline => LaneOrder::Deadline,
            chronorb_schedule::LaneOrder::Laxity => LaneOrder::Laxity,
            chronorb_schedule::LaneOrder::Urgency => LaneOrder::Urgency,
        }),
    });
    PoolSpec {
        pool: ThreadpoolLanes {
            lanes: lanes_of_pool.collect(),
            ..ThreadpoolLanes::default()
        },
        laned: true,
        cpu: lanes.iter().find_map(|lane| lane.cpu),
    }
}

/// Checks that lanes of different priorities have different native ones: the analysis of the
/// schedule counts on it. Without the right to real-time scheduling all have the same.
fn check_native(core: &Core, path: &Path, lanes: &[&LockLane]) -> Result<(), StartError> {
    if !core.rt.real_time.is_available() {
        return Ok(());
    }
    let mut known: HashMap<_, &LockLane> = HashMap::new();
    for lane in lanes {
        // A priority without a native one is refused when the lane is made.
        let Ok(scheduling) = core.rt.real_time.scheduling(priority_of(lane.priority)) else {
            continue;
        };
        match known.insert(scheduling, lane) {
            Some(other) if other.priority != lane.priority => {
                return Err(StartError::SameNative {
                    lock: path.to_owned(),
                    first: other.name.clone(),
                    second: lane.name.clone(),
                    native: scheduling.to_string(),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that the ceilings of locks are above the lanes that are less urgent, also natively.
fn check_ceilings(
    core: &Core,
    path: &Path,
    ceilings: &[&LockCeiling],
    lanes: &[&LockLane],
) -> Result<(), StartError> {
    if !core.rt.real_time.is_available() {
        return Ok(());
    }
    let native = |priority| core.rt.real_time.scheduling(priority_of(priority)).ok();
    for ceiling in ceilings {
        let Some(scheduling) = native(ceiling.priority) else {
            continue;
        };
        let mut below = lanes.iter().filter(|it| it.priority < ceiling.priority);
        if let Some(lane) = below.find(|it| native(it.priority) == Some(scheduling)) {
            return Err(StartError::LowCeiling {
                lock: path.to_owned(),
                section: ceiling.name.clone(),
                lane: lane.name.clone(),
                native: scheduling.to_string(),
            });
        }
    }
    Ok(())
}

/// Joins each band without a lane to the next one above that has one, because a server has bands
/// with lanes only. `priorities` are those of the lanes, in rising order; `end` is the end of the
/// last band.
fn bands_of(bands: &[LockBand], priorities: &[i16], end: Priority) -> PriorityBands {
    let mut joined: Vec<PriorityBand> = Vec::new();
    let mut low = None;
    for band in bands {
        let from = *low.get_or_insert(band.low);
        let has_lane = |priority: &i16| (band.low..=band.high).contains(priority);
        if priorities.iter().any(has_lane) {
            joined.push(PriorityBand::new(priority_of(from), priority_of(band.high)));
            low = None;
        }
    }
    if let Some(last) = joined.last_mut() {
        last.high = end;
    }
    let all = [PriorityBand::new(Priority::MIN, Priority::MAX)];
    PriorityBands::new(if joined.is_empty() { &all } else { &joined })
        .unwrap_or_else(|error| unreachable!("bands in order: {error}"))
}

/// Returns the priorities by the names of operations, and by those of their interfaces.
fn objects_of<'n>(
    operations: impl Iterator<Item = (&'n str, Priority)>,
) -> HashMap<String, ObjectPriority> {
    let mut objects: HashMap<String, ObjectPriority> = HashMap::new();
    for (name, priority) in operations {
        let one = ObjectPriority::One(priority);
        if let Some((interface, _)) = name.rsplit_once("::") {
            let of_interface = objects.entry(interface.to_owned()).or_insert(one);
            if *of_interface != one {
                *of_interface = ObjectPriority::Several;
            }
        }
        objects.insert(name.to_owned(), one);
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_without_a_lane_join_the_next_one() {
        let text = "version = 1\ninput = \"x\"\n\
                    [[band]]\nlow = 0\nhigh = 10\npriority = 10\n\
                    [[band]]\nlow = 11\nhigh = 20\npriority = 20\n\
                    [[band]]\nlow = 21\nhigh = 32767\npriority = 30\n";
        let lock = chronorb_schedule::LockFile::parse("x", text).expect("a lock file");
        let ranges = |priorities: &[i16]| {
            let bands = bands_of(&lock.bands, priorities, Priority::MAX);
            let bands = bands.as_slice().iter();
            bands
                .map(|band| (band.low.value(), band.high.value()))
                .collect::<Vec<_>>()
        };
        assert_eq!(ranges(&[10, 20, 30]), [(0, 10), (11, 20), (21, i16::MAX)]);
        assert_eq!(ranges(&[20]), [(0, i16::MAX)]);
        assert_eq!(ranges(&[10, 30]), [(0, 10), (11, i16::MAX)]);
        assert_eq!(ranges(&[]), [(0, i16::MAX)]);
        let declared = bands_of(&lock.bands, &[10, 30], priority_of(30));
        let last = declared.as_slice().last().map(|band| band.high.value());
        assert_eq!(last, Some(30));
    }

    #[test]
    fn an_interface_has_the_priority_that_all_its_operations_have() {
        let [low, high] = [1, 2].map(priority_of);
        let all = [("A::x", low), ("A::y", low), ("B::x", low), ("B::y", high)];
        let objects = objects_of(all.into_iter());
        assert_eq!(objects["A"], ObjectPriority::One(low));
        assert_eq!(objects["B"], ObjectPriority::Several);
        assert_eq!(objects["B::y"], ObjectPriority::One(high));
    }
}
