//! Schedule files: the values that they may have, and the mistakes that are reported.

use chronorb_schedule::{LockProtocol, MessageLength, PriorityRule, Schedule};

use crate::{mistakes, schedule};

const WHOLE: &str = r#"
    version = 1

    [scheduling]
    priorities = "rate-monotonic"
    locks = "ceiling"
    least = 100
    greatest = 20000

    [[node]]
    name = "mission"
    overhead = "20 us"

    [[node]]
    name = "sensor"

    [[processor]]
    name = "cpu2"
    node = "mission"
    cpu = 2
    blocking = "5 us"

    [[link]]
    name = "bus"
    rate = "100 Mbit"
    blocking = "123 us"
    nodes = ["mission", "sensor"]

    [[lane]]
    name = "fast"
    processor = "cpu2"
    threads = 2

    [[operation]]
    name = "Mission::step"
    wcet = "2 ms"
    period = "20 Hz"
    deadline = "40 ms"
    jitter = "100 us"
    criticality = "very-high"
    importance = 2
    lane = "fast"
    locks = { map = "200 us" }
    calls = [{ operation = "Sensor::read", before = "500 us", request = 100, reply = "80 us" }]

    [[operation]]
    name = "Sensor::read"
    wcet = "300 us"
    node = "sensor"

    [[transaction]]
    name = "log"
    period = "1 s"
    deadline = "500 ms"
    steps = ["Sensor::read", { link = "bus", message = 1000 }]
"#;

#[test]
fn a_whole_file_is_read() {
    let it = schedule(WHOLE);
    assert_eq!(it.rules.priorities, PriorityRule::RateMonotonic);
    assert_eq!(it.rules.locks, LockProtocol::Ceiling);
    let names: Vec<_> = it.processors.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["cpu2", "sensor"]);
    let step = &it.operations[0];
    assert_eq!(
        (step.cost, step.period, step.deadline),
        (2_000_000, Some(50_000_000), Some(40_000_000))
    );
    assert_eq!(
        (step.criticality, step.importance, step.lane),
        (4, 2, Some(0))
    );
    assert_eq!(
        (step.interface.as_str(), step.operation.as_str()),
        ("IDL:Mission:1.0", "step")
    );
    let messages = step.calls[0].messages.expect("it is between nodes");

    assert_eq!(messages.request, MessageLength::Octets(100));
    assert_eq!(messages.reply, Some(MessageLength::Time(80_000)));
    assert_eq!(it.transactions[0].steps.len(), 2);
    assert!(it.notes.is_empty(), "{:?}", it.notes);
    assert_eq!(it, schedule(WHOLE));
    assert_ne!(it.digest, schedule(&format!("{WHOLE}\n# changed")).digest);
}

#[test]
fn all_mistakes_are_told_with_their_lines() {
    let text = r#"
[scheduling]
priorities = "fastest"

[[operation]]
name = "A::a"
wect = "2 ms"
period = "20 Hz"

[[operation]]
name = "A::b"
wcet = "2 millis"
period = 20
lane = "slow"
"#;
    let priorities =
        r#""deadline-monotonic", "rate-monotonic", "optimal", "holistic" or "declared""#;
    let first = format!("test.toml: line 3, column 14: priorities has to be {priorities}");
    let others = r#"test.toml: line 5, column 1: A::a: wcet, the execution time, is missing
test.toml: line 7, column 1: there is no key "wect": did you mean "wcet"?
test.toml: line 12, column 8: wcet has to be a time such as "50 us", "2.5 ms" or "1 s"
test.toml: line 13, column 10: period has to be a period such as "50 ms", or a rate such as "20 Hz"
test.toml: line 14, column 8: there is no lane "slow""#;
    assert_eq!(mistakes(text), format!("{first}\n{others}"));
}

#[test]
fn syntax_errors_have_their_place() {
    let text = "[[operation]]\nname = \"A::a\nwcet = \"1 ms\"\n";
    assert!(
        mistakes(text).starts_with("test.toml: line 2, column "),
        "{}",
        mistakes(text)
    );
}

#[test]
fn each_mistake_is_told() {
    let operation = "[[operation]]\nname = \"A::a\"\nwcet = \"1 ms\"\n";
    for (text, expected) in [
        (
            "version = 2".to_owned(),
            "version has to be a whole number from 1 to 1",
        ),
        ("includes = \"x\"".to_owned(), "did you mean \"include\"?"),
        (
            "include = \"x.rt.toml\"".to_owned(),
            "x.rt.toml cannot be read: there is none",
        ),
        ("operation = 5".to_owned(), "this has to be a table"),
        (format!("{operation}period = \"0 ms\""), "period is zero"),
        (operation.to_owned(), "A::a never arrives: give it a period"),
        (
            format!("{operation}period = \"1 s\"\n{operation}period = \"1 s\""),
            "another operation A::a",
        ),
        (
            format!("{operation}period = \"1 s\"\ncriticality = 5"),
            "criticality has to be a whole number from 0 to 4",
        ),
        (
            format!("{operation}period = \"1 s\"\ncriticality = \"huge\""),
            "criticality has to be \"very-low\"",
        ),
        (
            format!("{operation}period = \"1 s\"\nlocks = {{ R = \"2 ms\" }}"),
            "holds its locks for longer",
        ),
        (
            format!("{operation}period = \"1 s\"\ncalls = [\"A::b\"]"),
            "there is no operation \"A::b\": did you mean \"A::a\"?",
        ),
        (
            format!("{operation}period = \"1 s\"\npriority = 40000"),
            "from 0 to 32767",
        ),
        (
            format!("{operation}period = \"1 s\"\nprocessor = \"x\""),
            "there is no processor \"x\"",
        ),
        (
            "[[operation]]\nname = \"a\"\nwcet = \"1 ms\"".to_owned(),
            "name has to be Interface::operation",
        ),
        (
            "[[operation]]\nwcet = \"1 ms\"".to_owned(),
            "name is missing",
        ),
        (
            format!("[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n{operation}period = \"1 s\""),
            "there are several",
        ),
        (
            "[scheduling]\nleast = 9\ngreatest = 8".to_owned(),
            "the least priority, 9, is above the greatest one, 8",
        ),
        (
            format!("[scheduling]\npriorities = \"declared\"\n{operation}period = \"1 s\""),
            "neither A::a nor its lane has one",
        ),
        (
            "[[transaction]]\nname = \"t\"\nperiod = \"1 s\"".to_owned(),
            "steps is missing",
        ),
        (
            "[[transaction]]\nname = \"t\"\nsteps = [{ link = \"n\", message = 5 }]".to_owned(),
            "there is no link \"n\"",
        ),
        (
            "[[link]]\nname = \"n\"\ninterface = \"eth0\"".to_owned(),
            "the link n has an interface, and no rate",
        ),
        (
            "[[link]]\nname = \"n\"\nmtu = 9000".to_owned(),
            "mtu is of a link with a rate",
        ),
        (
            "[[link]]\nname = \"n\"\nrate = \"1 Gbit\"\npacket_cost = \"1 us\"".to_owned(),
            "packet_cost is of a link with an interface",
        ),
        (
            "[[link]]\nname = \"n\"\nduplex = \"both\"".to_owned(),
            "duplex",
        ),
        (
            "[[link]]\nname = \"n\"\nrate = \"1 Gbit\"\ninterface = { b = \"eth0\" }".to_owned(),
            "there is no node \"b\": there are local",
        ),
        (
            "[[link]]\nname = \"m\"\nrate = \"1 Gbit\"\ninterface = \"eth0\"\n\
             [[link]]\nname = \"n\"\nrate = \"1 Gbit\"\ninterface = \"eth1\""
                .to_owned(),
            "the node local has an interface of the link m already",
        ),
        (
            "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
             [[link]]\nname = \"n\"\nrate = \"1 Gbit\"\nnodes = [\"a\"]\n\
             interface = { b = \"eth0\" }"
                .to_owned(),
            "the link n does not connect b",
        ),
    ] {
        let told = mistakes(&text);
        assert!(told.contains(expected), "{text}\n{told}");
    }
}

#[test]
fn annotations_of_the_compiler_complete_operations() {
    let included = r#"
[[operation]]
interface = "IDL:acme.org/Nav/Filter:1.2"
operation = "update"
priority = 20
wcet = "40us"
deadline = "5 ms"
max_size = 128

[[operation]]
interface = "IDL:acme.org/Nav/Filter:1.2"
operation = "reset"
max_size = 16
"#;
    let text = r#"
include = "nav.rt.toml"
[[operation]]
name = "Filter::update"
period = "100 Hz"
deadline = "4 ms"
"#;
    let read = |text: &str| {
        Schedule::parse("nav.toml", text, &mut |name| match name {
            "nav.rt.toml" => Ok(included.to_owned()),
            _ => Err("there is none".to_owned()),
        })
    };
    let it = read(text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(it.operations.len(), 1);
    let update = &it.operations[0];
    assert_eq!(update.interface, "IDL:acme.org/Nav/Filter:1.2");
    assert_eq!((update.cost, update.deadline), (40_000, Some(4_000_000)));
    assert_eq!((update.priority, update.max_size), (Some(20), Some(128)));
    assert_eq!(it.rules.priorities, PriorityRule::Declared);
    assert_eq!(it.notes, ["Nav::Filter::reset is left out: it has no wcet"]);

    let wrong = included.replace("\"40us\"", "40");
    let errors = Schedule::parse("nav.toml", text, &mut |_| Ok(wrong.clone()));
    let errors = errors.expect_err("the cost has no unit").to_string();
    assert!(
        errors.contains("nav.rt.toml: line 6, column 8: wcet has to be a time"),
        "{errors}"
    );
}

#[test]
fn least_times_are_at_most_the_longest_ones() {
    let text = r#"
[[operation]]
name = "A::run"
wcet = "5 ms"
least = "5.1 ms"
period = "100 ms"
calls = [{ operation = "A::push", before = "1 ms", least = "1.1 ms" }]
[[operation]]
name = "A::push"
wcet = "1 ms"
least = "1 ms"
calls = [{ operation = "A::write", least = "1 us" }]
[[operation]]
name = "A::write"
wcet = "1 ms"
"#;
    let told = mistakes(text);
    for problem in [
        "line 5, column 9: A::run: least, 5.1 ms, is above its wcet, 5 ms",
        "line 7, column 60: least, 1.1 ms, is above before, 1 ms",
        "line 12, column 44: least of a call is the least of its before, which is missing",
    ] {
        assert!(told.contains(problem), "{problem}\n{told}");
    }
    let mended = text.replace("5.1", "4").replace("1.1", "1");
    let it = schedule(&mended.replace(", least = \"1 us\"", ""));
    assert_eq!(it.operations[0].least, 4_000_000);
    assert_eq!(it.operations[0].calls[0].least, 1_000_000);
}
