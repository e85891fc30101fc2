//! Visibility of classes with their own threads to other processes while they are open.

use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::driver::Link;
use crate::driver::wire;
use crate::engine::{ClassConfig, ClassProcessing, Subsystem};
use crate::status::{ClassSnapshot, Count, Mode, Snapshot, find};
use crate::tests::support::rig::{FreePorts, KnownNeighbours};

#[test]
fn a_class_is_seen_while_it_is_open_and_its_periods_are_counted() {
    let link = |host: u8| Link {
        name: format!("seen{host}"),
        index: host.into(),
        hardware: [2, 0, 0, 0, 0, host],
        mtu: 1500,
        addresses: vec![([10, 0, 0, host].into(), 24)],
    };
    let (_, left, _right) = wire::join(link(1), link(2), 256);
    let subsystem = Subsystem::new(
        Arc::new(left),
        Arc::new(FreePorts::default()),
        Arc::new(KnownNeighbours([].into())),
    );
    assert_eq!(seen("seen1"), None, "no class is open");
    let class = subsystem.open(ClassConfig {
        name: "steady".to_owned(),
        processing: ClassProcessing::Periodic {
            period: Duration::from_millis(1),
            budget: 3,
        },
        connections: 1,
        ..ClassConfig::default()
    });
    let class = class.expect("a class can be opened");
    let [steady] = &seen("seen1").expect("the class is open")[..] else {
        panic!("one class is open");
    };
    assert_eq!(
        (steady.name.as_str(), steady.mode),
        ("steady", Mode::Periodic)
    );
    assert_eq!(steady.bound, Some((3, Duration::from_millis(1))));
    until(|| {
        let classes = seen("seen1").expect("the class is open");
        classes[0].count(Count::Periods) > 3
    });
    drop(class);
    until(|| seen("seen1").is_some_and(|classes| classes.is_empty()));
    drop(subsystem);
    assert_eq!(seen("seen1"), None, "nothing is left");
}

/// Waits for a condition.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// Returns the open classes in the page of an interface.
fn seen(interface: &str) -> Option<Vec<ClassSnapshot>> {
    let looked = find(Some(process::id())).expect("this process is there");
    let pages = looked.found.iter().flat_map(|found| &found.pages);
    let mut snapshots = pages.filter_map(|page| Snapshot::read(&page.file).ok());
    let found = snapshots.find(|snapshot| snapshot.interface == interface);
    found.map(|snapshot| snapshot.classes)
}
