//! The model of correct files.

use std::fs;

use chronorb_idl::model::{
    ConstValue, DefId, DefKind, Definition, Interface, Model, ParamMode, Type,
};
use chronorb_idl::{Options, compile, compile_text};

fn model(text: &str) -> Model {
    match compile_text("test.idl", text, &Options::default()) {
        Ok(compilation) => compilation.model,
        Err(failure) => panic!("{failure}"),
    }
}

fn find<'a>(model: &'a Model, name: &str) -> (DefId, &'a Definition) {
    model
        .iter()
        .find(|(_, definition)| definition.scoped_name.join("::") == name)
        .unwrap_or_else(|| panic!("there is no {name}"))
}

fn id(model: &Model, name: &str) -> String {
    find(model, name).1.repository_id.clone()
}

fn interface<'a>(model: &'a Model, name: &str) -> &'a Interface {
    match &find(model, name).1.kind {
        DefKind::Interface(interface) => interface,
        other => panic!("{name} is {other:?}"),
    }
}

fn constant(text: &str) -> ConstValue {
    let model = model(text);
    match &model.definitions.last().unwrap().kind {
        DefKind::Const { value, .. } => value.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn repository_ids_are_made_of_prefix_scopes_and_version() {
    let model = model(
        r#"
        module M { typedef long A; };
        #pragma prefix "example.org"
        module N {
          interface I { exception X { }; };
          struct S { long a; };
        #pragma version S 2.4
        #pragma ID I "DCE:d62207a2:3"
        };
        "#,
    );
    assert_eq!(id(&model, "M"), "");
    assert_eq!(id(&model, "M::A"), "IDL:M/A:1.0");
    assert_eq!(id(&model, "N::S"), "IDL:example.org/N/S:2.4");
    assert_eq!(id(&model, "N::I"), "DCE:d62207a2:3");
    assert_eq!(id(&model, "N::I::X"), "IDL:example.org/N/I/X:1.0");
}

#[test]
fn a_prefix_pragma_in_a_module_replaces_the_names_around_it_until_its_end() {
    let model = model(
        r#"
        #pragma prefix "P1"
        module M2 {
          module M3 {
        #pragma prefix "P2"
            typedef long T3;
            interface I { typedef long T4; };
          };
          typedef long T5;
        };
        module M2 { module M3 { typedef long T6; }; };
        "#,
    );
    assert_eq!(id(&model, "M2::M3::T3"), "IDL:P2/T3:1.0");
    assert_eq!(id(&model, "M2::M3::I::T4"), "IDL:P2/I/T4:1.0");
    assert_eq!(id(&model, "M2::T5"), "IDL:P1/M2/T5:1.0");
    assert_eq!(id(&model, "M2::M3::T6"), "IDL:P1/M2/M3/T6:1.0");
}

#[test]
fn an_included_file_has_its_own_prefix_and_leaves_none_behind() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("main.idl");
    fs::write(
        dir.path().join("inner.idl"),
        "struct Bare { long a; };\n#pragma prefix \"inner.org\"\nstruct Inner { long a; };\n",
    )
    .unwrap();
    fs::write(
        &main,
        "#pragma prefix \"main.org\"\n#include \"inner.idl\"\nstruct Outer { Inner i; };\n",
    )
    .unwrap();
    let model = compile(&main, &Options::default()).unwrap().model;
    assert_eq!(id(&model, "Bare"), "IDL:Bare:1.0");
    assert_eq!(id(&model, "Inner"), "IDL:inner.org/Inner:1.0");
    assert_eq!(id(&model, "Outer"), "IDL:main.org/Outer:1.0");
    assert_eq!(model.files, [main, dir.path().join("inner.idl")]);
    assert!(!find(&model, "Inner").1.in_main_file);
    assert!(find(&model, "Outer").1.in_main_file);
    assert_eq!(find(&model, "Inner").1.location.file, 1);
}

#[test]
fn typeprefix_holds_for_all_of_its_scope() {
    let model = model(
        r#"
        module M { typedef long Before; interface I { typedef long Deep; }; };
        typeprefix M "example.org";
        typeid M::I "IDL:other/I:1.0";
        module M { typedef long After; };
        typedef long Outside;
        "#,
    );
    assert_eq!(id(&model, "M::Before"), "IDL:example.org/M/Before:1.0");
    assert_eq!(id(&model, "M::After"), "IDL:example.org/M/After:1.0");
    assert_eq!(id(&model, "M::I::Deep"), "IDL:example.org/M/I/Deep:1.0");
    assert_eq!(id(&model, "M::I"), "IDL:other/I:1.0");
    assert_eq!(id(&model, "Outside"), "IDL:Outside:1.0");
}

#[test]
fn constants_have_the_value_of_their_expression() {
    let integer =
        |expression: &str, ty: &str| match constant(&format!("const {ty} C = {expression};")) {
            ConstValue::Integer(value) => value,
            other => panic!("{other:?}"),
        };
    assert_eq!(integer("1 + 2 * 3", "long"), 7);
    assert_eq!(integer("(1 + 2) * 3", "long"), 9);
    assert_eq!(integer("10 - 4 - 3", "long"), 3);
    assert_eq!(integer("-7 / 2", "long"), -3);
    assert_eq!(integer("-7 % 2", "long"), -1);
    assert_eq!(integer("1 << 4 | 3 ^ 1 & 5", "long"), 18);
    assert_eq!(integer("0x10 + 010", "short"), 24);
    assert_eq!(integer("~0", "unsigned long"), 0xffff_ffff);
    assert_eq!(integer("~5", "long"), -6);
    assert_eq!(integer("~1", "octet"), 254);
    assert_eq!(integer("1 << 63", "unsigned long long"), 1 << 63);
    assert_eq!(integer("-0x8000", "short"), -32768);
    assert_eq!(
        constant("const double D = 1 / 4.0;"),
        ConstValue::Float(0.25)
    );
    assert_eq!(
        constant("const boolean B = TRUE;"),
        ConstValue::Boolean(true)
    );
    assert_eq!(constant(r"const char C = '\xe9';"), ConstValue::Char(0xe9));
    assert_eq!(
        constant(r"const wchar C = L'\u20ac';"),
        ConstValue::WChar('€')
    );
    assert_eq!(
        constant("const string S = \"a\\tb\" \"\\101\\x42\";"),
        ConstValue::String("a\tbAB".to_owned())
    );
    assert_eq!(
        constant("const wstring S = L\"\\u20ac\" L\"x\";"),
        ConstValue::WString("€x".to_owned())
    );
}

#[test]
fn constants_of_enums_name_their_enumerator() {
    let model = model("enum E { A, B, C }; typedef E F; const F K = C; const E L = K;");
    let (e, _) = find(&model, "E");
    for name in ["K", "L"] {
        let DefKind::Const { ty, value } = &find(&model, name).1.kind else {
            panic!("{name} is no constant");
        };
        assert_eq!(*ty, Type::Named(e));
        assert_eq!(*value, ConstValue::Enumerator(e, 2));
    }
}

#[test]
fn types_keep_their_aliases_bounds_and_dimensions() {
    let model = model(
        "typedef sequence<string<4>, 8> Names; typedef Names Table[2][3]; struct S { Table t[5]; \
        };",
    );
    let (names, definition) = find(&model, "Names");
    let string = Type::String { bound: Some(4) };
    let sequence = Type::Sequence {
        element: Box::new(string),
        bound: Some(8),
    };
    assert!(matches!(&definition.kind, DefKind::Typedef { ty } if *ty == sequence));
    let (table, definition) = find(&model, "Table");
    let array = Type::Array {
        element: Box::new(Type::Named(names)),
        dimensions: vec![2, 3],
    };
    assert!(matches!(&definition.kind, DefKind::Typedef { ty } if *ty == array));
    let DefKind::Struct { members, .. } = &find(&model, "S").1.kind else {
        panic!("S is no struct");
    };
    let array = Type::Array {
        element: Box::new(Type::Named(table)),
        dimensions: vec![5],
    };
    assert_eq!(members[0].ty, array);
}

#[test]
fn every_definition_comes_after_what_it_uses() {
    let model = model(
        "interface D; struct T { D d1; struct N { long a; } n1; };
         interface B { struct S { D d1; T t1; }; exception X { S s1; }; void f() raises (X); };
         interface D : B { S g(); };",
    );
    let order: Vec<&str> = model.definitions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(order, ["N", "T", "S", "X", "B", "D"]);
    let (b, _) = find(&model, "B");
    let (s, definition) = find(&model, "B::S");
    assert_eq!(definition.parent, Some(b));
    assert_eq!(interface(&model, "B").nested[0], s);
    let d = interface(&model, "D");
    assert_eq!(d.bases, [b]);
    assert_eq!(d.operations[0].result, Some(Type::Named(s)));
    assert!(!d.forward_only);
}

#[test]
fn a_diamond_has_each_base_once_and_before_what_is_derived_from_it() {
    let model =
        model("interface A { }; interface B : A { }; interface C : A { }; interface D : C, B { };");
    let names = |ids: &[DefId]| -> Vec<String> {
        ids.iter().map(|id| model.get(*id).name.clone()).collect()
    };
    let d = interface(&model, "D");
    assert_eq!(names(&d.bases), ["C", "B"]);
    assert_eq!(names(&d.all_bases), ["A", "C", "B"]);
}

#[test]
fn operations_and_attributes_keep_their_order_modes_and_exceptions() {
    let model = model(
        "exception X { }; exception Y { };
         interface I {
           oneway void go(in long a);
           long f(in string s, out octet o, inout Object r) raises (Y, X);
           readonly attribute long a, b;
           attribute long c getraises (X) setraises (Y, X);
         };",
    );
    let (x, _) = find(&model, "X");
    let (y, _) = find(&model, "Y");
    let i = interface(&model, "I");
    assert!(i.operations[0].oneway && i.operations[0].result.is_none());
    let f = &i.operations[1];
    let modes: Vec<ParamMode> = f.params.iter().map(|param| param.mode).collect();
    assert_eq!(modes, [ParamMode::In, ParamMode::Out, ParamMode::InOut]);
    assert_eq!(f.raises, [y, x]);
    let names: Vec<&str> = i.attributes.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(i.attributes[0].readonly && !i.attributes[2].readonly);
    assert_eq!(i.attributes[2].get_raises, [x]);
    assert_eq!(i.attributes[2].set_raises, [y, x]);
}

#[test]
fn reopened_modules_are_one_definition() {
    let model =
        model("module M { typedef long A; }; typedef long B; module M { typedef long C; };");
    let names = |ids: &[DefId]| -> Vec<String> {
        ids.iter().map(|id| model.get(*id).name.clone()).collect()
    };
    assert_eq!(names(&model.roots), ["M", "B"]);
    let DefKind::Module { members } = &find(&model, "M").1.kind else {
        panic!("M is no module");
    };
    assert_eq!(names(members), ["A", "C"]);
}

#[test]
fn escaped_identifiers_lose_their_escape() {
    let model = model("struct _struct { long _in; };");
    let definition = &model.definitions[0];
    assert_eq!(definition.name, "struct");
    assert_eq!(definition.repository_id, "IDL:struct:1.0");
}

#[test]
fn annotations_are_recorded_with_their_values() {
    let model = model(
        "const short HIGH = 20;
         @rt::priority(HIGH) @extensibility(APPENDABLE)
         interface I { @range(min = 1, max = 2.5) @ami void f(@unit(\"m\") in long a); };",
    );
    let interface_annotations = &find(&model, "I").1.annotations;
    assert_eq!(interface_annotations[0].name, "rt::priority");
    let value = ("value".to_owned(), ConstValue::Integer(20));
    assert_eq!(interface_annotations[0].params, [value]);
    let value = (
        "value".to_owned(),
        ConstValue::String("APPENDABLE".to_owned()),
    );
    assert_eq!(interface_annotations[1].params, [value]);
    let f = &interface(&model, "I").operations[0];
    let range = [
        ("min".to_owned(), ConstValue::Integer(1)),
        ("max".to_owned(), ConstValue::Float(2.5)),
    ];
    assert_eq!(f.annotations[0].params, range);
    assert!(f.annotations[1].params.is_empty());
    assert_eq!(f.params[0].annotations[0].name, "unit");
}

#[test]
fn documentation_comments_belong_to_what_follows_them() {
    let model = model(
        "/** A quoter.\n *\n *  More.\n */\n@ami\ninterface Quoter {\n  /// The price.\n  /// In \
        dollars.\n  double price(); ///< not this\n  long plain();\n  /** Fast. */ attribute long \
        speed;\n};\n/* no documentation */ struct S {\n  /// In metres.\n  long a;\n};\n",
    );
    assert_eq!(
        find(&model, "Quoter").1.doc.as_deref(),
        Some("A quoter.\n\n More.")
    );
    let quoter = interface(&model, "Quoter");
    let price = quoter.operations[0].doc.as_deref();
    assert_eq!(price, Some("The price.\nIn dollars."));
    assert_eq!(quoter.operations[1].doc, None);
    assert_eq!(quoter.attributes[0].doc.as_deref(), Some("Fast."));
    let (_, s) = find(&model, "S");
    assert_eq!(s.doc, None);
    let DefKind::Struct { members, .. } = &s.kind else {
        panic!("S is no struct");
    };
    assert_eq!(members[0].doc.as_deref(), Some("In metres."));
}

#[test]
fn locations_count_lines_and_characters_from_1() {
    let model = model("/* ä */ struct S { long a; };\n  enum E { X };");
    let (_, s) = find(&model, "S");
    assert_eq!((s.location.line, s.location.column), (1, 16));
    let (_, e) = find(&model, "E");
    assert_eq!((e.location.line, e.location.column), (2, 8));
}

#[test]
fn macros_of_the_options_are_defined() {
    let options = Options {
        defines: vec![("SIZE".to_owned(), "2 + 3".to_owned())],
        ..Options::default()
    };
    let text = "#if SIZE == 5\nconst long C = SIZE;\n#endif\n";
    let model = compile_text("test.idl", text, &options).unwrap().model;
    let DefKind::Const { value, .. } = &model.definitions[0].kind else {
        panic!("C is no constant");
    };
    assert_eq!(*value, ConstValue::Integer(5));
}

#[test]
fn line_markers_say_what_the_main_file_defines() {
    let model = model(
        "# 1 \"main.idl\"\n# 1 \"other.idl\" 1\nstruct Other { long a; };\n# 2 \"main.idl\" 2\n\
        struct Main { Other o; };\n",
    );
    assert!(!find(&model, "Other").1.in_main_file);
    assert!(find(&model, "Main").1.in_main_file);
}

/// TAO's `.pidl` files and the `orb.idl` of CORBA declare it so.
#[test]
fn type_code_stays_a_type_where_corba_declares_it_as_an_interface() {
    let text = "module CORBA { interface TypeCode; \n#pragma version TypeCode 2.3\n\
                struct S { TypeCode type; }; }; struct T { CORBA::TypeCode type; };";
    let compilation = compile_text("test.idl", text, &Options::default()).unwrap();
    assert!(
        compilation.warnings.is_empty(),
        "{:?}",
        compilation.warnings
    );
    for name in ["CORBA::S", "T"] {
        let DefKind::Struct { members, .. } = &find(&compilation.model, name).1.kind else {
            panic!("{name} is a struct");
        };
        assert_eq!(members[0].ty, Type::TypeCode, "{name}");
    }
    // Elsewhere the name is free.
    let other = "module M { interface TypeCode { }; struct S { TypeCode type; }; };";
    let compilation = compile_text("test.idl", other, &Options::default()).unwrap();
    assert!(!interface(&compilation.model, "M::TypeCode").forward_only);
}

#[test]
fn an_interface_may_stay_declared_only() {
    let compilation = compile_text(
        "test.idl",
        "interface I; struct S { I i1; };",
        &Options::default(),
    )
    .unwrap();
    assert!(interface(&compilation.model, "I").forward_only);
    let codes: Vec<&str> = compilation.warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["W0003"]);
}
