//! Anys as omniORB 4.2 writes them: a line for each sample of `anys.idl` (`interop`), in both byte
//! orders, printed by `interop/omniorb/main_anys.cc`.

use chronorb_cdr::{
    Any, AnyBuf, Arena, Cdr, CdrError, Char, Decoder, Encoder, Endian, Fixed, Frame, LongDouble,
    TypeCode, WideStr,
};

const BIG: &str = include_str!("../data/omniorb_anys_big.txt");
const LITTLE: &str = include_str!("../data/omniorb_anys_little.txt");

/// The types of the samples, in order.
const TYPES: [&str; 31] = [
    "null",
    "boolean",
    "octet",
    "short",
    "unsigned long",
    "long long",
    "float",
    "double",
    "char",
    "wchar",
    "string",
    "wstring",
    "enum Color { RED, GREEN, BLUE }",
    "struct Point { double x; long y; string name; }",
    "typedef sequence<Point> Points",
    "typedef sequence<long> Longs",
    "typedef sequence<octet> Octets",
    "typedef short[2][3] Grid",
    "union Choice switch (Color) { case RED: long number; case GREEN: string text; \
     case BLUE: string text; }",
    "union Choice switch (Color) { case RED: long number; case GREEN: string text; \
     case BLUE: string text; }",
    "union Letter switch (char) { case 'a': short few; default: Points many; }",
    "union Perhaps switch (boolean) { case TRUE: double value; }",
    "struct Node { long number; Nodes children; }",
    "fixed<9, 2>",
    "struct Holder { octet before; any inner; TypeCode kind; Price cost; wstring wide; }",
    "any",
    "TypeCode",
    "interface Mirror",
    "interface Mirror",
    "exception Refused { string reason; long code; }",
    "string<8>",
];

fn octets(line: &str) -> Vec<u8> {
    let digits = line.as_bytes().chunks(2);
    let octets = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16));
    octets.map(Result::unwrap).collect()
}

/// Calls `check` with each sample in each byte order, and with its number.
fn each_sample(check: impl Fn(usize, Endian, &Any<'_>)) {
    for (text, endian) in [(BIG, Endian::Big), (LITTLE, Endian::Little)] {
        assert_eq!(text.lines().count(), TYPES.len());
        for (number, line) in text.lines().enumerate() {
            let mut octets = octets(line);
            let arena = Arena::new(1 << 16);
            let mut d = Decoder::new(&mut octets, 0, endian, &arena);
            let any = Any::decode(&mut d).unwrap_or_else(|e| panic!("sample {number}: {e}"));
            assert!(d.is_empty(), "sample {number} has no more octets");
            check(number, endian, &any);
        }
    }
}

/// The sample as it was printed in the other byte order.
fn in_big_endian(number: usize) -> AnyBuf {
    let mut octets = octets(BIG.lines().nth(number).unwrap());
    let arena = Arena::new(1 << 16);
    let any = Any::decode(&mut Decoder::new(&mut octets, 0, Endian::Big, &arena));
    any.unwrap().to_owned()
}

#[test]
fn all_types_are_read() {
    each_sample(|number, _, any| assert_eq!(any.type_code().to_string(), TYPES[number]));
}

#[test]
fn a_value_is_the_same_in_both_byte_orders_and_on_the_way_through() {
    each_sample(|number, _, any| {
        let own = any.to_owned();
        assert_eq!(own, in_big_endian(number), "sample {number}");
        for endian in [Endian::Big, Endian::Little] {
            let mut frame = Frame::new(1024, 1 << 16);
            let mut e = Encoder::new(&mut frame, endian);
            e.write_u8(0).unwrap();
            any.encode(&mut e).unwrap();
            let arena = Arena::new(1 << 16);
            let mut d = Decoder::new(frame.as_mut_slice(), 0, endian, &arena);
            d.read_u8().unwrap();
            assert_eq!(
                Any::decode(&mut d).unwrap().to_owned(),
                own,
                "sample {number}"
            );
        }
    });
}

#[test]
fn values_are_extracted() {
    fn is<'a, T>(any: &Any<'a>, value: T) -> Result<bool, CdrError>
    where
        T: Cdr<'a> + chronorb_cdr::Typed + PartialEq,
    {
        any.extract::<T>().map(|found| found == value)
    }
    each_sample(|number, _, any| {
        let same = match number {
            1 => is(any, true),
            2 => is(any, 200_u8),
            3 => is(any, -5_i16),
            4 => is(any, 4_000_000_000_u32),
            5 => is(any, -5_000_000_000_000_i64),
            6 => is(any, 0.5_f32),
            7 => is(any, -1e300_f64),
            8 => is(any, Char(b'x')),
            9 => is(any, 'Δ'),
            10 => is(any, "café"),
            11 => is(any, WideStr("Grüße Δ")),
            15 => is(any, [-1, -2, -3].as_slice()),
            16 => is(any, [250_u8, 251, 252, 253, 254].as_slice()),
            17 => is(any, [[1_i16, 2, 3], [4, 5, 6]]),
            23 => is(any, Fixed::<9, 2>::from_unscaled(-123_456_789).unwrap()),
            _ => any
                .extract::<LongDouble>()
                .map_or_else(|error| Ok(error == CdrError::WrongType), |_| Ok(false)),
        };
        assert_eq!(same, Ok(true), "sample {number}");
    });
}

#[test]
fn an_exception_has_its_repository_id_before_its_members() {
    each_sample(|number, _, any| {
        if number == 29 {
            let type_code = *any.type_code();
            let members = any.extract_with(&type_code, |d| Ok((d.read_str()?, d.read_i32()?)));
            assert_eq!(members, Ok(("closed", 12)));
        }
    });
}

#[test]
fn what_is_within_anys_is_found() {
    each_sample(|number, _, any| match number {
        25 => {
            let point = any
                .extract::<Any<'_>>()
                .unwrap()
                .extract::<Any<'_>>()
                .unwrap();
            assert_eq!(point.type_code().to_string(), TYPES[13]);
        }
        26 => {
            let letter = any.extract::<TypeCode<'_>>().unwrap();
            assert_eq!(letter.to_string(), TYPES[20]);
        }
        _ => {}
    });
}
