//! `any`, decimal types, maps, bits, and structs with bases in the model.

use chronorb_idl::model::{BitField, ConstValue, DefKind, Model, Type};

use crate::lookup::{constant, find, kind, model};

/// Returns the types of the members of a struct.
fn members(model: &Model, name: &str) -> Vec<Type> {
    match kind(model, name) {
        DefKind::Struct { members, .. } => members.iter().map(|m| m.ty.clone()).collect(),
        other => panic!("{name} is {other:?}"),
    }
}

fn fixed(unscaled: i128, digits: u8, scale: u8) -> ConstValue {
    ConstValue::Fixed {
        unscaled,
        digits,
        scale,
    }
}

#[test]
fn types_with_keywords_of_their_own_are_themselves() {
    let model = model(
        r"
        struct S {
          any a; CORBA::TypeCode b; int8 c; uint8 d; fixed<9, 2> e;
          int16 f; uint16 g; int32 h; uint32 i; int64 j; uint64 k;
        };
        ",
    );
    let price = Type::Fixed {
        digits: 9,
        scale: 2,
    };
    let wanted = [
        Type::Any,
        Type::TypeCode,
        Type::Int8,
        Type::UInt8,
        price,
        Type::Short,
        Type::UShort,
        Type::Long,
        Type::ULong,
        Type::LongLong,
        Type::ULongLong,
    ];
    assert_eq!(members(&model, "S"), wanted);
}

#[test]
fn a_map_has_a_key_a_value_and_a_bound() {
    let model = model("struct S { map<string<4>, map<long, any>, 7> m; };");
    let inner = Type::Map {
        key: Box::new(Type::Long),
        value: Box::new(Type::Any),
        bound: None,
    };
    let outer = Type::Map {
        key: Box::new(Type::String { bound: Some(4) }),
        value: Box::new(inner),
        bound: Some(7),
    };
    assert_eq!(members(&model, "S"), [outer]);
}

#[test]
fn a_constant_of_a_decimal_type_has_its_scale() {
    let model = model(
        r"
        typedef fixed<9, 3> Money;
        const Money PRICE = 12.50d;
        const fixed SAME = PRICE;
        const fixed SUM = PRICE * 2d - 0.01d;
        const fixed THIRD = -1d / 3d;
        const fixed SMALL = 0.05d;
        const fixed NONE = 0d;
        ",
    );
    assert_eq!(constant(&model, "PRICE"), fixed(12_500, 5, 3));
    assert_eq!(constant(&model, "SAME"), fixed(125, 3, 1));
    assert_eq!(constant(&model, "SUM"), fixed(2499, 4, 2));
    let third = -3_333_333_333_333_333_333_333_333_333_333;
    assert_eq!(constant(&model, "THIRD"), fixed(third, 31, 31));
    assert_eq!(constant(&model, "SMALL"), fixed(5, 2, 2));
    assert_eq!(constant(&model, "NONE"), fixed(0, 1, 0));
    let of_type = |name: &str| match kind(&model, name) {
        DefKind::Const { ty, .. } => ty.clone(),
        other => panic!("{other:?}"),
    };
    let (digits, scale) = (9, 3);
    assert_eq!(of_type("PRICE"), Type::Fixed { digits, scale });
    let (digits, scale) = (4, 2);
    assert_eq!(of_type("SUM"), Type::Fixed { digits, scale });
}

#[test]
fn what_is_recursive_refers_to_what_comes_later() {
    let model = model(
        r"
        struct Node { sequence<Node> below; };
        struct Later;
        typedef sequence<Later> Laters;
        struct Later { Laters all; };
        ",
    );
    let (node, _) = find(&model, "Node");
    let element = Box::new(Type::Named(node));
    let below = Type::Sequence {
        element,
        bound: None,
    };
    assert_eq!(members(&model, "Node"), [below]);
    assert!(find(&model, "Laters").0 < find(&model, "Later").0);
}

#[test]
fn a_struct_with_a_base_has_its_own_members_only() {
    let model = model("struct A { long a1; }; struct B : A { long b1; }; struct C : B { };");
    let base = |name: &str| match kind(&model, name) {
        DefKind::Struct { base, members, .. } => (*base, members.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!(base("A"), (None, 1));
    assert_eq!(base("B"), (Some(find(&model, "A").0), 1));
    assert_eq!(base("C"), (Some(find(&model, "B").0), 0));
}

#[test]
fn flags_follow_each_other_from_a_position_on() {
    let model = model(
        r"
        @bit_bound(16) bitmask Access { READ, @position(8) WRITE, EXECUTE };
        bitmask Plain { ONE };
        const unsigned long BOTH = Access::READ | Access::EXECUTE;
        ",
    );
    let DefKind::Bitmask { flags, bit_bound } = kind(&model, "Access") else {
        panic!("no bit mask");
    };
    assert_eq!(*bit_bound, 16);
    let positions: Vec<_> = flags.iter().map(|f| (&*f.name, f.position)).collect();
    assert_eq!(positions, [("READ", 0), ("WRITE", 8), ("EXECUTE", 9)]);
    let DefKind::Bitmask { bit_bound, .. } = kind(&model, "Plain") else {
        panic!("no bit mask");
    };
    assert_eq!(*bit_bound, 32);
    assert_eq!(
        constant(&model, "BOTH"),
        ConstValue::Integer(0b10_0000_0001)
    );
}

#[test]
fn fields_of_a_bit_set_stand_behind_those_of_its_base() {
    let model = model(
        r"
        bitset Base { bitfield<3> level; bitfield<5>; bitfield<1> flag; };
        bitset Derived : Base { bitfield<20, long> number; bitfield<9> rest; };
        ",
    );
    let fields = |name: &str| -> Vec<BitField> {
        match kind(&model, name) {
            DefKind::Bitset { fields, .. } => fields.clone(),
            other => panic!("{other:?}"),
        }
    };
    let shape = |field: &BitField| {
        let name = field.name.clone().unwrap_or_default();
        (name, field.position, field.bits, field.ty.clone())
    };
    let base: Vec<_> = fields("Base").iter().map(shape).collect();
    assert_eq!(
        base,
        [
            ("level".to_owned(), 0, 3, Type::Octet),
            (String::new(), 3, 5, Type::Octet),
            ("flag".to_owned(), 8, 1, Type::Boolean),
        ]
    );
    let derived: Vec<_> = fields("Derived").iter().map(shape).collect();
    assert_eq!(
        derived,
        [
            ("number".to_owned(), 9, 20, Type::Long),
            ("rest".to_owned(), 29, 9, Type::UShort),
        ]
    );
}

#[test]
fn the_names_of_a_context_stay_as_they_are() {
    let model = model(r#"interface I { void f() context ("PATH", "sys.*"); };"#);
    let DefKind::Interface(interface) = kind(&model, "I") else {
        panic!("no interface");
    };
    assert_eq!(interface.operations[0].context, ["PATH", "sys.*"]);
}

#[test]
fn native_types_are_named() {
    let model = model("native Cookie; local interface I { void f(in Cookie c); };");
    assert!(matches!(kind(&model, "Cookie"), DefKind::Native));
    assert_eq!(find(&model, "Cookie").1.repository_id, "IDL:Cookie:1.0");
}

#[test]
fn integers_are_complemented_in_the_type_of_their_constant() {
    let model = model(
        r"
        const octet A = ~0x0f;
        const unsigned long B = ~1;
        const short C = ~1;
        const uint8 D = 0xff & ~3;
        const unsigned long long E = ~0;
        const int8 F = -128;
        const long long G = -9223372036854775808;
        ",
    );
    let values = ["A", "B", "C", "D", "E", "F", "G"].map(|name| constant(&model, name));
    let wanted = [
        0xf0,
        0xffff_fffe,
        -2,
        0xfc,
        i128::from(u64::MAX),
        -128,
        i128::from(i64::MIN),
    ];
    assert_eq!(values, wanted.map(ConstValue::Integer));
}
