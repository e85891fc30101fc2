use super::*;

fn found(offences: &[Offence]) -> Vec<(Kind, usize)> {
    let found = offences.iter();
    found.map(|offence| (offence.kind, offence.line)).collect()
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let text = "\
        //! What this does.\n\
        //! That is a second line.\n\
        \n\
        /// Returns it.\n\
        fn f();\n\
        /// How often.\n\
        /// Which is all.\n\
        #[inline]\n\
        fn g() {} // What else\n\
        //// What is no documentation\n\
        /// Whether it is.\n";
    assert_eq!(
        found(&of_rust(text)),
        [(Kind::DocStart, 1), (Kind::DocStart, 6)]
    );
}

#[test]
fn persons_count_in_comments_and_strings() {
    let text = r##"
        // Nobody waits.
        let a = "whoever";
        let b = r#"a
            "quotation" of who
        "#;
        fn who() {}
        // The standard says "one who waits, or
        // somebody" and `who`.
        /* someone
           whose, whole */
        let c = '"'; // who
        let d: &'static str = "\" it is said";
        /// ```
        /// let who = 1;
        /// ```
    "##;
    let lines = [2, 3, 5, 10, 12];
    assert_eq!(found(&of_rust(text)), lines.map(|line| (Kind::Who, line)));
}

#[test]
fn long_lines_count_without_tables_addresses_and_listings() {
    let long = "é".repeat(MAX_COLUMNS);
    let rust = format!("//{long}\n/// | {long} |\n// https://{long}\n/// ```\n/// {long}\n/// ```");
    assert_eq!(found(&of_rust(&rust)), [(Kind::LongLine, 1)]);
    let raw = format!("let a = r\"{long}\n{long}\n\";\nlet b = \"\n{long}é\";");
    let lines = [1, 5];
    assert_eq!(
        found(&of_rust(&raw)),
        lines.map(|line| (Kind::LongLine, line))
    );
    let markdown = format!("{long}\n{long}é\n| {long}\n```\n{long}é\n```\n<https://{long}>\n");
    assert_eq!(found(&of_markdown(&markdown)), [(Kind::LongLine, 2)]);
}

#[test]
fn markdown_says_who_of_people() {
    let text = "For people who read.\nThe thread who waits.\n> who is quoted\n\"who\" is a word\n";
    assert_eq!(found(&of_markdown(text)), [(Kind::Who, 2)]);
}

#[test]
fn arms_of_truth_values_count() {
    let text = "\
        match a {\n\
            true => 1,\n\
            false if b => 2,\n\
            \"true\" => 3,\n\
            (true, false) => 4,\n\
        }\n\
        let true_ = 5;\n";
    let lines = [2, 3];
    assert_eq!(
        found(&of_rust(text)),
        lines.map(|line| (Kind::MatchBool, line))
    );
}

#[test]
fn participles_count_as_names_of_types() {
    let text = "\
        pub(crate) struct Told;\n\
        enum RequestServed {}\n\
        trait Waiting {\n\
            type Found;\n\
        }\n\
        struct PriorityMapping;\n\
        struct SharedConnection;\n\
        struct Started;\n\
        let a = Told;\n\
        // struct Begun;\n";
    let lines = [1, 2, 4, 8];
    assert_eq!(
        found(&of_rust(text)),
        lines.map(|line| (Kind::Participle, line))
    );
}

#[test]
fn definitions_are_those_that_others_can_name() {
    let text = "\
        pub struct A<T>(T);\n\
        pub(in crate::poa) enum B {}\n\
        struct C;\n\
        #[cfg(feature = \"x\")]\n\
        #[derive(Debug)]\n\
        pub struct D;\n\
        #[derive(Debug)]\n\
        pub(crate) trait E {}\n\
        pub fn f() {}\n\
        // pub struct F;\n";
    let names: Vec<_> = definitions(text)
        .into_iter()
        .map(|it| (it.name, it.line))
        .collect();
    let expected = [("A", 1), ("B", 2), ("E", 8)];
    assert_eq!(names, expected.map(|(name, line)| (name.to_owned(), line)));
}

#[test]
fn samples_show_the_item() {
    let text = "\n/// One.\n/// Two.\n#[inline]\nfn f() {}\n";
    let expected = "/// One.\n/// Two.\nfn f() {}".to_owned();
    assert_eq!(documentation(text), [(2, expected)]);
}
