use super::*;

fn of(area: &str, kind: Kind, count: usize) -> Counts {
    let kinds = BTreeMap::from([(kind.name().to_owned(), count)]);
    BTreeMap::from([(area.to_owned(), kinds)])
}

#[test]
fn only_a_rise_is_a_complaint() {
    let tracked = of("xtask", Kind::Who, 2);
    assert!(rises(&of("xtask", Kind::Who, 2), &tracked).is_empty());
    assert!(rises(&of("xtask", Kind::Who, 1), &tracked).is_empty());
    assert_eq!(rises(&of("xtask", Kind::Who, 3), &tracked).len(), 1);
    assert_eq!(rises(&of("xtask", Kind::DocStart, 1), &tracked).len(), 1);
    assert_eq!(rises(&of("fuzz", Kind::Who, 1), &tracked).len(), 1);
}

#[test]
fn areas_are_crates_and_folders() {
    assert_eq!(area_of("crates/chronorb-rt/src/lib.rs"), "chronorb-rt");
    assert_eq!(area_of("docs/src/lab.md"), "docs");
    assert_eq!(area_of("README.md"), "root");
}

#[test]
fn a_name_is_defined_once_in_a_crate() {
    let file = |path: &str| File {
        path: path.to_owned(),
        text: "pub struct Place;".to_owned(),
    };
    let files = [
        file("crates/a/src/x.rs"),
        file("crates/a/src/y.rs"),
        file("crates/b/src/x.rs"),
        file("crates/a/tests/it.rs"),
    ];
    let places = offences(&files, "HEAD");
    let places: Vec<_> = places.iter().map(|place| place.path.as_str()).collect();
    assert_eq!(places, ["crates/a/src/y.rs"]);
}

#[test]
fn a_sample_repeats_with_its_seed() {
    let path = "a.rs".to_owned();
    let text = "/// A.\nfn a() {}\n/// B.\nfn b() {}\n/// C.\nfn c() {}\n".to_owned();
    let files = [File { path, text }];
    let drawn = sample(&files, 9, 1);
    assert_eq!(drawn.len(), 3);
    assert_eq!(sample(&files, 2, 1), drawn[..2]);
}

#[test]
fn the_file_is_as_it_is_written() {
    let tracked = baseline().expect("it can be read");
    let text = fs::read_to_string(path()).expect("it can be read");
    assert_eq!(text_of(&tracked.base, &tracked.areas), text);
}
