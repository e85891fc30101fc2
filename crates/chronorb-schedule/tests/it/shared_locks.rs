//! Locks that operations on several processors of a node take.

use chronorb_schedule::{LockFile, Schedule, ScheduleError, SimulationRun, Time, Work};

use crate::{millis, mistakes, schedule};

const MILLI: Time = 1_000_000;

/// Two processors whose operations take the lock `m`: `H` and `L` on one, `M` on the other. `P`
/// takes none.
fn three_users() -> String {
    let mut text = String::from(
        "[scheduling]\npriorities = \"declared\"\nlocks = \"ceiling\"\n\
         [[processor]]\nname = \"p0\"\ncpu = 0\n[[processor]]\nname = \"p1\"\ncpu = 1\n",
    );
    for (name, processor, cost, period, priority, section) in [
        ("H::h", 0, 2, 20, 4, "locks = { m = \"1 ms\" }"),
        ("P::p", 0, 3, 40, 3, ""),
        ("M::m", 1, 5, 40, 2, "locks = { m = \"3 ms\" }"),
        ("L::l", 0, 4, 40, 1, "locks = { m = \"2 ms\" }"),
    ] {
        text += &format!(
            "[[operation]]\nname = \"{name}\"\nprocessor = \"p{processor}\"\nwcet = \"{cost} ms\"\n\
             period = \"{period} ms\"\npriority = {priority}\n{section}\n"
        );
    }
    text
}

/// By hand:
///
/// * `H` waits for 3 ms (the section of `M`). Sections of `L` delay it twice, at its release and
///   after its wait: 2 + 3 + 2 · 2 = 9.
/// * `P` takes no lock: 3, a section of `L`, and two jobs of `H`, since one can end as late as 9 ms
///   after its release and the next one comes 11 ms later: 3 + 2 + 2 = 7, and 7 + 9 ≤ 20 is one.
/// * `M` waits for 2 ms (`L`) and 1 ms (`H`): 5 + 3 = 8.
/// * `L` waits for 1 ms (`H`) and 3 ms (`M`), and is delayed by `H` and `P`: 4 + 4 + 2 + 3 = 13, in
///   which, with 9 ms before it, `H` comes twice: 15.
#[test]
fn responses_are_those_by_hand_and_no_phase_is_above_them() {
    let it = schedule(&three_users());
    let assignment = it.assign().expect("it is analysed");
    assert!(assignment.analysis.feasible);
    let responses = assignment.analysis.operations.iter();
    let responses: Vec<_> = responses.map(|it| it.response).collect();
    assert_eq!(responses, [9, 7, 8, 15].map(millis));

    let numbers = assignment.numbers(&it);
    let mut longest = [0; 4];
    for phase in 0..20 * 6 * 6 * 6 {
        // `H` in all phases, the others near it. The less urgent one begins first.
        let millis = [phase % 20, phase / 20 % 6, phase / 120 % 6, phase / 720];
        let nanos = [2, 2, 1, 0];
        let first = millis.into_iter().zip(nanos);
        let run = SimulationRun {
            first: first
                .map(|(millis, nanos)| millis * MILLI + nanos)
                .collect(),
            ..SimulationRun::synchronous(&it, 100 * MILLI)
        };
        let outcome = it.simulate(&numbers, &run).expect("it is simulated");
        for (operation, activity) in outcome.activities.iter().enumerate() {
            assert_eq!(activity.works[0].work, Work::Execution { operation });
            longest[operation] = activity.works[0].longest.max(longest[operation]);
        }
    }
    for (longest, response) in longest.iter().zip(&responses) {
        assert!(response.time() >= Some(*longest), "{longest}, {response:?}");
    }
    // At worst `H` waits for the section of `L`, in which `M` comes, and then for that of `M`.
    assert_eq!(longest[0], 7 * MILLI - 1);
}

/// The section is above every lane, so what takes no lock waits for it, and it waits for nothing.
#[test]
fn a_section_is_not_preempted_by_a_more_urgent_operation() {
    let text = three_users().replace("wcet = \"3 ms\"", "wcet = \"30 ms\"");
    let it = schedule(&text.replace("period = \"40 ms\"", "period = \"200 ms\""));
    let analysis = it.assign().expect("it is analysed").analysis;
    // `P` is more urgent than `L` and takes 30 ms, of which `M` waits for none.
    assert_eq!(analysis.operations[2].response, millis(8));
}

#[test]
fn a_lock_of_several_processors_by_inheritance_is_refused_with_its_place() {
    let text = three_users().replace("locks = \"ceiling\"", "locks = \"inheritance\"");
    let found = mistakes(&text);
    let expected = "test.toml: line 24, column 1: M::m takes the lock m on the processor p1, and \
                    it is also taken on p0: only with locks = \"ceiling\" can a lock of several \
                    processors be analysed";
    assert_eq!(found, expected);
    // The rule of a schedule can be changed after it was read.
    let mut it = schedule(&three_users());
    it.rules.locks = chronorb_schedule::LockProtocol::Inheritance;
    assert!(matches!(
        it.assign(),
        Err(ScheduleError::SharedLock { lock, .. }) if lock == "m"
    ));
}

#[test]
fn a_processor_without_a_cpu_has_no_locks_with_ceilings() {
    let found = mistakes(&three_users().replace("cpu = 1\n", ""));
    assert!(found.contains("the processor p1 has no cpu"), "{found}");
}

/// Otherwise several threads could execute its jobs in another order.
#[test]
fn an_operation_that_waits_for_a_lock_ends_within_its_period() {
    let text = three_users().replace(
        "name = \"H::h\"",
        "name = \"H::h\"\ndeadline = \"60 ms\"\njitter = \"15 ms\"",
    );
    let it = schedule(&text);
    let assignment = it.assign().expect("it is analysed");
    assert!(!assignment.analysis.feasible);
    assert_eq!(assignment.analysis.operations[0].response.time(), None);
}

/// Two lanes on one processor, which wait for a lock of another processor.
#[test]
fn a_waiting_operation_keeps_its_thread() {
    let it = schedule(&three_users());
    let assignment = it.assign().expect("it is analysed");
    let threads = |name: &str| {
        let operation = it.operation(name).expect("it is declared");
        let mut lanes = assignment.lanes.iter();
        let lane = lanes.find(|lane| lane.operations.contains(&operation));
        lane.expect("it has one").threads
    };
    assert_eq!((threads("H::h"), threads("P::p")), (2, 1));
}

fn lock_file(it: &Schedule) -> LockFile {
    let text = it.assign().expect("it fits").lock_file(it).to_string();
    LockFile::parse("test.rt.lock", &text).expect("it is one")
}

fn ceilings(lock: &LockFile) -> Vec<(&str, &str, i16)> {
    let all = lock.ceilings.iter();
    all.map(|it| (it.name.as_str(), it.node.as_str(), it.priority))
        .collect()
}

#[test]
fn the_lock_file_has_the_ceilings() {
    let local = three_users().replace(
        "[[operation]]\nname = \"P::p\"",
        "[[operation]]\nname = \"Q::q\"\nprocessor = \"p0\"\nwcet = \"1 ms\"\nperiod = \"1 s\"\n\
         priority = 3\nlocks = { own = \"1 us\" }\n[[operation]]\nname = \"P::p\"",
    );
    // The declared priorities 1 to 4 are one native priority.
    let mut it = schedule(&local);
    assert_eq!(
        ceilings(&lock_file(&it)),
        [("m", "local", 336), ("own", "local", 3)]
    );
    it.rules.locks = chronorb_schedule::LockProtocol::Inheritance;
    it.operations.retain(|it| it.name != "M::m");
    assert_eq!(ceilings(&lock_file(&it)), []);
}

/// Assigned priorities leave one native priority below the greatest to sections.
#[test]
fn sections_execute_above_all_lanes() {
    let assigned = three_users().replace(
        "priorities = \"declared\"",
        "priorities = \"deadline-monotonic\"\ngreatest = 16383",
    );
    let it = schedule(&assigned);
    let lock = lock_file(&it);
    let greatest = lock.lanes.iter().map(|lane| lane.priority).max();
    let native = |corba: i16| (i64::from(corba) - 1) * 98 / 32_767;
    let ceiling = lock.ceilings[0].priority;
    assert_eq!(native(ceiling), native(16_383));
    assert_eq!(
        native(greatest.expect("there are lanes")) + 1,
        native(ceiling)
    );
    assert!(ceiling <= 16_383);

    let highest = three_users().replace("priority = 4", "priority = 32767");
    let error = schedule(&highest).assign().expect_err("nothing is above");
    assert_eq!(
        error.to_string(),
        "sections of the lock m execute above all lanes, and no native priority is above 32767: \
         declare lesser ones"
    );
}

/// Sessions change the waits of all others.
#[test]
fn no_session_is_admitted() {
    let it = schedule(&three_users());
    let error = chronorb_schedule::Sessions::new(it).expect_err("it has waits");
    assert!(
        error.to_string().contains("changes with each session"),
        "{error}"
    );
}
