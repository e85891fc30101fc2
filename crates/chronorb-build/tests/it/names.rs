//! The conversion of IDL names to those of Rust, and collisions.

use chronorb_build::{GenerateError, GenerateOptions, generate, real_time_annotations};
use chronorb_idl::model::Model;

fn model(idl: &str) -> Model {
    chronorb_idl::compile_text("x.idl", idl, &chronorb_idl::Options::default())
        .unwrap_or_else(|failure| panic!("{failure}"))
        .model
}

fn rust(idl: &str) -> Result<String, GenerateError> {
    generate(&model(idl), &GenerateOptions::default())
}

#[track_caller]
fn assert_generates(idl: &str, parts: &[&str]) {
    let text = rust(idl).unwrap_or_else(|error| panic!("{error}"));
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

#[track_caller]
fn assert_refused(idl: &str, message: &str) {
    let error = rust(idl).expect_err("a collision");
    assert_eq!(error.to_string(), message);
}

#[test]
fn names_take_the_case_of_rust_and_stay_as_they_are_on_the_wire() {
    assert_generates(
        "module MarketData { struct price_level { long maxQty; }; interface quote_source { void \
        getQuote(); }; };",
        &[
            "pub mod market_data",
            "pub struct PriceLevel",
            "pub max_qty: i32",
            "pub struct QuoteSource",
            "fn get_quote(",
            "\"getQuote\"",
            "IDL:MarketData/price_level:1.0",
        ],
    );
}

#[test]
fn keywords_become_raw_identifiers() {
    assert_generates(
        "interface I { void match(in long type, in long self); };",
        &["fn r#match(", "r#type: i32", "self_: i32"],
    );
}

#[test]
fn parameters_may_have_the_names_that_generated_code_uses() {
    assert_generates(
        "interface I { string f(in string scope, in string call, in string d, in string e); };",
        &["scope_: &'s mut", "call_: &", "d_: &mut", "e_: &mut"],
    );
}

#[test]
fn an_annotation_gives_another_name() {
    assert_generates(
        r#"
        @rust::name("Venue") struct Market { @rust::name("title") string name; };
        interface I { @rust::name("fetch") void get(); };
        "#,
        &[
            "pub struct Venue<'a>",
            "pub struct VenueBuf",
            "pub title: &'a str",
            "fn fetch(",
        ],
    );
}

#[test]
fn two_members_with_one_rust_name_are_refused_with_both_places() {
    assert_refused(
        "struct S {\n  long maxQty;\n  long max_Qty;\n};",
        "member `maxQty` (x.idl:2:8) and member `max_Qty` (x.idl:3:8) both become `max_qty` in \
        Rust\n  hint: give one of them another name with @rust::name(\"…\") or Builder::rename",
    );
}

#[test]
fn a_type_with_the_name_of_another_ones_twin_is_refused() {
    assert_refused(
        "struct Quote { string s; };\nstruct QuoteBuf { long n; };",
        "struct `Quote` (x.idl:1:8) and struct `QuoteBuf` (x.idl:2:8) both become `QuoteBuf` in \
        Rust\n  hint: give one of them another name with @rust::name(\"…\") or Builder::rename",
    );
}

#[test]
fn a_fixed_type_leaves_the_name_of_the_twin_free() {
    assert_generates(
        "struct Quote { long n; }; struct QuoteBuf { long n; };",
        &["pub struct Quote ", "pub struct QuoteBuf "],
    );
}

#[test]
fn an_operation_with_the_name_of_a_method_of_every_reference_is_refused() {
    let error = rust("interface I { void narrow(); };").expect_err("a collision");
    assert!(matches!(error, GenerateError::Collision { rust_name, .. } if rust_name == "narrow"));
}

#[test]
fn a_name_that_is_no_identifier_is_refused() {
    let error = rust("@rust::name(\"fn\") struct S { long n; };").expect_err("a keyword");
    assert!(matches!(error, GenerateError::InvalidName { name, .. } if name == "fn"));
}

#[test]
fn error_enums_get_out_of_the_way_of_exceptions_and_of_each_other() {
    assert_generates(
        "
        exception ParseError {};
        interface Parser { void parse() raises (ParseError); };
        interface Reader { void read() raises (ParseError); };
        interface Writer { void read() raises (ParseError); };
        ",
        &[
            "pub enum ParserParseError",
            "pub enum ReadError",
            "pub enum WriterReadError",
        ],
    );
}

#[test]
fn exceptions_of_one_name_are_told_apart_by_their_module() {
    assert_generates(
        "
        module a { exception Failed {}; };
        module b { exception Failed {}; exception System {}; };
        interface I { void f() raises (a::Failed, b::Failed, b::System); };
        ",
        &[
            "Failed(a::Failed)",
            "BFailed(b::Failed)",
            "BSystem(b::System)",
        ],
    );
}

#[test]
fn exceptions_with_local_members_are_refused() {
    let idl = "local interface L { void f(); }; exception E { L listener; };";
    let error = rust(idl).expect_err("refused").to_string();
    let what = "exceptions that hold local interfaces or native types are not compiled";
    assert!(error.contains(what), "{error}");
}

#[test]
fn what_is_generated_for_a_value_type_takes_names() {
    let idl = "valuetype Point { public long x; }; struct PointState { long n; };";
    let error = rust(idl).expect_err("refused").to_string();
    assert!(error.contains("both become `PointState`"), "{error}");
    let idl = "valuetype Point { public long x; factory unmarshal(); };";
    let error = rust(idl).expect_err("refused").to_string();
    assert!(error.contains("`unmarshal` of every factory"), "{error}");
}

#[test]
fn comments_of_the_idl_can_be_left_out() {
    let model = model("/// Told once.\nstruct S { long n; };");
    let with = generate(&model, &GenerateOptions::default()).expect("generated");
    assert!(with.contains("/// Told once."));

    let mut options = GenerateOptions::default();
    options.disable_comments = true;
    let without = generate(&model, &options).expect("generated");
    assert!(without.contains("/// IDL struct `S`.") && !without.contains("Told once"));
}

#[test]
fn real_time_annotations_are_listed_by_operation() {
    let model = model(
        r#"
        interface Quoter {
            @rt::priority(20) @rt::wcet("40us") long get(in long n);
            void plain();
            @rt::deadline("1ms") readonly attribute long level;
        };
        "#,
    );
    assert_eq!(
        real_time_annotations(&model).expect("annotations"),
        r#"[[operation]]
interface = "IDL:Quoter:1.0"
operation = "get"
priority = 20
wcet = "40us"

[[operation]]
interface = "IDL:Quoter:1.0"
operation = "_get_level"
deadline = "1ms"
"#
    );
}

#[test]
fn without_real_time_annotations_there_is_no_list() {
    assert_eq!(
        real_time_annotations(&model("interface I { void f(); };")),
        None
    );
}

#[test]
fn without_allocation_value_types_are_refused() {
    let model = model("valuetype Point { public long x; };");
    let mut options = GenerateOptions::default();
    options.no_alloc = true;
    let error = generate(&model, &options).expect_err("it allocates");
    let text = error.to_string();
    assert!(text.contains("valuetype `Point`"), "{text}");
}

#[test]
fn without_allocation_operations_that_carry_references_are_refused() {
    let model = model("interface A { void take(in Object s); };");
    let mut options = GenerateOptions::default();
    options.no_alloc = true;
    let error = generate(&model, &options).expect_err("it allocates");
    let text = error.to_string();
    assert!(
        text.contains("`take`") && text.contains("no_alloc"),
        "{text}"
    );
}

#[test]
fn members_of_a_union_are_variants_and_collide_as_those() {
    assert_generates(
        "union U switch (long) { case 1: long Other; case 2: long other2; };",
        &["Other(i32)", "Other2(i32)", "Other3(i32)"],
    );
    assert_refused(
        "union U switch (long) { case 1: long onTime; case 2: long on_time; };",
        "member `onTime` (x.idl:1:38) and member `on_time` (x.idl:1:59) both become `OnTime` in \
        Rust\n  hint: give one of them another name with @rust::name(\"…\") or Builder::rename",
    );
    assert_generates(
        "union U switch (long) { case 1: @rust::name(\"Early\") long onTime; case 2: long on_time; \
        };",
        &["Early(i32)", "OnTime(i32)"],
    );
}

#[test]
fn bits_collide_with_each_other_and_with_what_is_generated() {
    assert_refused(
        "bitmask B { onTime, on_time };",
        "flag `onTime` (x.idl:1:13) and flag `on_time` (x.idl:1:21) both become `ON_TIME` in \
        Rust\n  hint: give one of them another name with @rust::name(\"…\") or Builder::rename",
    );
    assert_refused(
        "bitset B { bitfield<2> bits; };",
        "what is generated as `bits` (x.idl:1:24) and field `bits` (x.idl:1:24) both become `bits` \
        in Rust\n  hint: give one of them another name with @rust::name(\"…\") or Builder::rename",
    );
    assert_refused(
        "bitset B { bitfield<2> x; bitfield<2> with_x; };",
        "field `x` (x.idl:1:24) and field `with_x` (x.idl:1:39) both become `with_x` in Rust\n  \
         hint: give one of them another name with @rust::name(\"…\") or Builder::rename",
    );
}

#[test]
fn enumerators_can_be_renamed() {
    assert_generates(
        "enum E { onTime, @rust::name(\"Late\") on_time }; const E usual = on_time;",
        &["OnTime,", "Late,", "E::Late"],
    );
}

#[test]
fn annotations_that_are_not_rust_are_refused() {
    assert_refused(
        "@rust::derive(\"not a trait\") struct S { long n; };",
        "`not a trait`, in the @rust::derive of struct `S` (x.idl:1:37), is not Rust that can \
        stand there",
    );
    assert_refused(
        "@verbatim(language = \"rust\", text = \"fn (\") struct S { long n; };",
        "`fn (`, in the @verbatim of struct `S` (x.idl:1:52), is not Rust that can stand there",
    );
    assert_generates(
        "@verbatim(language = \"c++\", text = \"class\") struct S { long n; };",
        &["pub struct S"],
    );
}

#[test]
fn of_built_in_files_only_what_is_used_is_generated() {
    let text = rust("eventtype Alarm { public string text; };").expect("generated");
    assert!(
        text.contains("pub trait EventBase"),
        "the base of all events"
    );
    assert!(
        !text.contains("CCMHome"),
        "homes have nothing to do with it"
    );
}
