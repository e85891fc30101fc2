//! Published examples with their published numbers.

use chronorb_schedule::{Schedule, SimulationRun};

use crate::schedule;

/// Returns the analysed responses of operations by name, or of transactions, in microseconds.
fn responses(it: &Schedule) -> Vec<(String, Option<u64>)> {
    let analysis = it.assign().expect("it is analysed").analysis;
    let micros = |time: u64| time.div_ceil(1_000);
    if it.transactions.is_empty() {
        let results = it.operations.iter().zip(&analysis.operations);
        let results = results.map(|(it, result)| (it.name.clone(), result.response));
        return results
            .map(|(name, response)| (name, response.time().map(micros)))
            .collect();
    }
    let results = it.transactions.iter().zip(&analysis.transactions);
    let results = results.map(|(it, result)| (it.name.clone(), result.response));
    results
        .map(|(name, response)| (name, response.time().map(micros)))
        .collect()
}

/// Asserts the responses in their order, and that no simulated one is longer.
fn assert_responses(text: &str, published: &[u64]) {
    let it = schedule(text);
    let analysed = responses(&it);
    let times: Vec<_> = analysed.iter().map(|(_, time)| *time).collect();
    let published: Vec<_> = published.iter().copied().map(Some).collect();
    assert_eq!(times, published, "{analysed:?}");
    let numbers = it.assign().expect("it is analysed").numbers(&it);
    let activities = it.operations.iter().filter_map(|it| it.period);
    let periods = activities.chain(it.transactions.iter().map(|it| it.period));
    let window = 4 * periods.max().expect("there is one");
    let synchronous = SimulationRun::synchronous(&it, window);
    let random = (0..10).map(|seed| SimulationRun::random(seed, window));
    for run in [synchronous].into_iter().chain(random) {
        let outcome = it.simulate(&numbers, &run).expect("it is simulated");
        assert!(outcome.counted() > 0);
        assert_eq!(outcome.missed(), 0);
        for (activity, (name, analysed)) in outcome.activities.iter().zip(&analysed) {
            assert_eq!(&activity.name, name);
            let longest = activity.works.iter().map(|it| it.longest).max();
            let longest = longest.map(|time| time.div_ceil(1_000));
            assert!(longest <= *analysed, "{name}: {longest:?} of {analysed:?}");
        }
    }
}

#[test]
fn avionics_platform() {
    assert_responses(
        include_str!("../case-studies/avionics-platform.toml"),
        &[
            51,
            3_504,
            5_906,
            11_512,
            13_064,
            16_217,
            20_821,
            36_637,
            47_798,
            48_949,
            99_150,
            99_550 + 1_000,
            140_641,
            141_692,
            143_694,
            145_446,
            146_497,
            147_548,
        ],
    );
}

/// The published times leave out the space of 12 us after the frame itself. In the last one it
/// counts as blocking.
#[test]
fn can_bus() {
    let before_space = [
        1_028, 1_368, 1_708, 2_008, 2_428, 2_848, 3_228, 3_648, 4_028, 4_448, 4_708, 4_708,
    ];
    let it = schedule(include_str!("../case-studies/can-bus.toml"));
    let analysis = it.assign().expect("it is analysed").analysis;
    assert!(analysis.feasible);
    let frames = analysis.transactions.iter();
    let frames: Vec<_> = frames.map(|it| it.steps[0].time()).collect();
    assert_eq!(
        frames,
        before_space.map(|micros| Some((micros + 12) * 1_000))
    );
    assert!(it.operations.is_empty(), "frames need no receivers");
}

#[test]
fn two_flows() {
    let text = include_str!("../case-studies/two-flows.toml");
    assert_responses(text, &[42_000, 30_000]);
}

/// pyCPA publishes 17 and 39 ms. The second flow has a shorter bound, because a step and those
/// after it are of one job, and cannot delay each other.
#[test]
fn two_processors() {
    let text = include_str!("../case-studies/two-processors.toml");
    assert_responses(text, &[17_000, 30_000]);
}

#[test]
fn text_books() {
    let published = [3, 6, 20, 5, 15, 80, 1, 2, 7, 18].map(|millis| millis * 1_000);
    assert_responses(include_str!("../case-studies/text-books.toml"), &published);
}

/// The sets that are feasible. Of the two published tests of the seventh one, that by scheduling
/// points is right.
#[test]
fn course() {
    let it = schedule(include_str!("../case-studies/course.toml"));
    let analysis = it.assign().expect("it is analysed").analysis;
    let fits = (0..it.processors.len()).map(|processor| {
        let results = it.operations.iter().zip(&analysis.operations);
        let mut own = results.filter(|(it, _)| it.processor == processor);
        own.all(|(_, result)| result.is_on_time())
    });
    let published = [1, 0, 0, 1, 1, 1, 0, 1, 0, 1].map(|it| it == 1);
    assert_eq!(fits.collect::<Vec<_>>(), published);
}
