//! The rendering of errors in value types, components and template modules.

use chronorb_idl::{Options, compile_text};

fn rendered(text: &str) -> String {
    compile_text("market.idl", text, &Options::default())
        .unwrap_err()
        .to_string()
}

macro_rules! looks {
    ($($name:ident: $text:expr;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(rendered($text));
        })*
    };
}

looks! {
    a_second_base_with_state_is_shown_where_it_is_defined:
        "valuetype Point { };\nvaluetype Color { };\nvaluetype Pixel : Point, Color { };\n";
    interfaces_that_cannot_be_supported_together_are_both_shown:
        "interface A { };\ninterface B { };\nvaluetype V supports A { };\n\
        valuetype W : V supports B { };\n";
    truncatable_needs_state:
        "abstract valuetype A { };\nvaluetype B : truncatable A { };\n";
    state_in_an_abstract_value_type:
        "abstract valuetype A {\n  public long size;\n};\n";
    a_boxed_value_type_is_no_box:
        "valuetype V { };\nvaluetype B V;\n";
    a_local_type_shows_the_interface_that_is_not_local:
        "local interface Cache { };\ninterface Store {\n  void use_it(in Cache c1);\n};\n";
    an_import_of_what_is_not_known:
        "import ::Elsewhere;\n";
    a_type_code_has_its_scope:
        "struct S { TypeCode type; };\n";
    a_home_tells_what_a_key_must_be:
        "valuetype K { public long a; };\ncomponent C { };\nhome H manages C primarykey K { };\n";
    a_port_tells_what_it_takes:
        "struct S { long a; };\ncomponent C { provides S p; };\n";
    a_home_says_what_it_manages:
        "component C { };\nhome H { };\n";
    an_error_in_a_template_shows_the_instance:
        "module List<typename T> {\n  typedef T Items[COUNT];\n};\n\nmodule List<long> Longs;\n";
    an_argument_of_another_kind_is_marked:
        "module Ring<typename T, const long N> { typedef T Items[N]; };\n\
        module Ring<long, short> Bad;\n";
    the_wrong_number_of_arguments_shows_the_template:
        "module Ring<typename T, const long N> { typedef T Items[N]; };\nmodule Ring<long> Bad;\n";
}
