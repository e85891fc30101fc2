//! The conversion of IDL names to those of Rust, and collisions.

use chronorb_build::{
    GenerateError, GenerateOptions, generate, real_time_annotations, second_names,
};
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

/// Checks parts of the generated text, and the beginning of each warning. Returns the text.
#[track_caller]
fn assert_second_names(idl: &str, parts: &[&str], warnings: &[&str]) -> String {
    assert_generates(idl, parts);
    let found = second_names(&model(idl), &GenerateOptions::default()).expect("names");
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), warnings.len(), "{found:#?}");
    for (found, warning) in found.iter().zip(warnings) {
        assert!(found.starts_with(warning), "{found}\n{warning}");
    }
    rust(idl).expect("generated")
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
fn the_second_of_two_members_with_one_rust_name_gets_an_underscore() {
    assert_second_names(
        "struct S {\n  long maxQty;\n  long max_Qty;\n  long MaxQTY_;\n};",
        &[
            "pub max_qty: i32",
            "pub max_qty_: i32",
            "pub max_qty__: i32",
        ],
        &[
            "member `max_Qty` (x.idl:3:8) is `max_qty_` in Rust, because member `maxQty` \
            (x.idl:2:8) has the name `max_qty`\n  hint: another name is given with \
            @rust::name(\"…\") or Builder::rename",
            "member `MaxQTY_` (x.idl:4:8) is `max_qty__` in Rust, because member `maxQty` \
            (x.idl:2:8) has the name `max_qty`\n  hint: another name is given with \
            @rust::name(\"…\") or Builder::rename",
        ],
    );
}

#[test]
fn a_name_that_the_idl_gives_is_not_changed() {
    assert_refused(
        "struct S {\n  long maxQty;\n  @rust::name(\"max_qty\") long most;\n};",
        "member `maxQty` (x.idl:2:8) and member `most` (x.idl:3:31) both become `max_qty` in \
        Rust\n  hint: give one of them another name with @rust::name(\"…\") or Builder::rename",
    );
    assert_refused(
        "interface I { void narrow_it(); @rust::name(\"narrow\") void less(); };",
        "`narrow` of every object reference (x.idl:1:11) and operation `less` (x.idl:1:60) both \
        become `narrow` in Rust\n  hint: give one of them another name with @rust::name(\"…\") or \
        Builder::rename",
    );
}

#[test]
fn attributes_and_operations_make_room_for_each_other() {
    assert_second_names(
        "interface Device { attribute long log_level; void setLogLevel(in long l); };",
        &[
            "pub fn log_level(",
            "pub fn set_log_level(\n",
            "pub fn set_log_level_(\n",
        ],
        &["setting of attribute `log_level` (x.idl:1:35) is `set_log_level_`"],
    );
    assert_second_names(
        "interface Log { void write_records(); };
         interface Own : Log { void writeRecords(); };",
        &["pub fn write_records_("],
        &["operation `writeRecords` (x.idl:2:37) is `write_records_`"],
    );
    // A method takes the names that are derived from it too.
    assert_second_names(
        "interface I { string get(); void get_in(); };",
        &["fn get_in<'s>(", "pub fn get_in_("],
        &["operation `get_in` (x.idl:1:34) is `get_in_`"],
    );
}

#[test]
fn methods_of_two_bases_have_different_names_in_the_handle_that_inherits_both() {
    let text = assert_second_names(
        "interface A { string get_profile(); };
         interface B { string getProfile(); };
         interface C : A, B { void getProfile_(); };
         interface D : C { void h(); };",
        &["pub fn get_profile_(\n", "pub fn get_profile__(\n"],
        &[
            "operation `getProfile` in handles of `C` (x.idl:2:31) is `get_profile_`",
            "operation `getProfile_` (x.idl:3:36) is `get_profile__`",
        ],
    );
    // The base, with its trait, is the same with and without the derived interface.
    let base = text.split("pub trait BServant").nth(1).expect("the trait");
    let base = base.split('}').next().expect("its methods");
    assert!(base.contains("fn get_profile<"), "{base}");
}

#[test]
fn a_type_with_the_name_of_another_ones_twin_gets_an_underscore() {
    assert_second_names(
        "struct Quote { string s; };\nstruct QuoteBuf { string n; };",
        &[
            "pub struct Quote<",
            "pub struct QuoteBuf ",
            "pub struct QuoteBuf_<",
            "QuoteBuf_Buf",
        ],
        &["struct `QuoteBuf` (x.idl:2:8) is `QuoteBuf_`"],
    );
    assert_second_names(
        "struct td_oa { long a; }; typedef long tdOa; const long x_y = 1; const long xY = 2;",
        &[
            "pub struct TdOa ",
            "pub type TdOa_ ",
            "X_Y: i32",
            "X_Y_: i32",
        ],
        &["typedef `tdOa`", "constant `xY`"],
    );
    assert_second_names(
        "module foo_bar { typedef long a; }; interface FooBar { struct Inner { long x; }; \
         void f(in Inner i); };",
        &["pub mod foo_bar {", "pub mod foo_bar_ {"],
        &["interface `FooBar`"],
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
fn an_operation_with_the_name_of_a_method_of_every_reference_gets_an_underscore() {
    assert_second_names(
        "interface I { void narrow(); };",
        &["pub fn narrow_("],
        &["operation `narrow` (x.idl:1:20) is `narrow_`"],
    );
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
    assert_second_names(
        "valuetype Point { public long x; }; struct PointState { long n; };",
        &["pub struct PointState ", "pub struct PointState_ "],
        &["struct `PointState` (x.idl:1:44) is `PointState_`"],
    );
    assert_second_names(
        "valuetype Point { public long onX; public long on_x; factory unmarshal(); void f_a(); \
         void fA(); };",
        &["on_x_: i32", "fn unmarshal_(", "fn f_a_("],
        &["member `on_x`", "operation `fA`", "factory `unmarshal`"],
    );
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
    assert_second_names(
        "union U switch (long) { case 1: long onTime; case 2: long on_time; };",
        &["OnTime(i32)", "OnTime_(i32)"],
        &["member `on_time` (x.idl:1:59) is `OnTime_`"],
    );
    assert_generates(
        "union U switch (long) { case 1: @rust::name(\"Early\") long onTime; case 2: long on_time; \
        };",
        &["Early(i32)", "OnTime(i32)"],
    );
}

#[test]
fn bits_collide_with_each_other_and_with_what_is_generated() {
    assert_second_names(
        "bitmask B { onTime, on_time };",
        &["const ON_TIME: ", "const ON_TIME_: "],
        &["flag `on_time` (x.idl:1:21) is `ON_TIME_`"],
    );
    assert_second_names(
        "bitset B { bitfield<2> bits; };",
        &["fn bits_(", "fn with_bits("],
        &["field `bits` (x.idl:1:24) is `bits_` in Rust, because what is generated as `bits`"],
    );
    assert_second_names(
        "bitset B { bitfield<2> x; bitfield<2> with_x; bitfield<2> x_; };",
        &["fn with_x(", "fn with_x_(", "fn x___("],
        &["field `with_x` (x.idl:1:39) is `with_x_`", "field `x_`"],
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

#[test]
fn parameters_make_room_for_each_other() {
    assert_second_names(
        "interface I { void f(in long maxQty, in long max_qty); };",
        &["max_qty: i32,", "max_qty_: i32,"],
        &["parameter `max_qty`"],
    );
}

#[test]
fn enumerators_make_room_for_each_other() {
    assert_second_names(
        "enum E { on_time, onTime }; const E usual = onTime;",
        &["OnTime,", "OnTime_,", "E::OnTime_"],
        &["enumerator `onTime`"],
    );
}
