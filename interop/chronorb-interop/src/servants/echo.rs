//! The echo of basic types, strings, structs, sequences and arrays.

use chronorb::data::Char;
use chronorb::prelude::*;

use super::{echoes, echoes_by_reference};
use crate::idl::shapes::{Path, Point, Segment, Triangle};
use crate::idl::*;

/// Serves `Echo`.
#[derive(Debug)]
pub(crate) struct EchoObject;

impl BasicsServant for EchoObject {
    echoes! {
        echo_boolean: bool;
        echo_octet: u8;
        echo_char: Char;
        echo_short: i16;
        echo_ushort: u16;
        echo_long: i32;
        echo_ulong: u32;
        echo_longlong: i64;
        echo_ulonglong: u64;
        echo_float: f32;
        echo_double: f64;
        echo_color: Color;
    }

    fn nothing(&self, _: &Call<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    fn constant_values<'a>(&self, _: &Call<'a>) -> Result<ConstantValues<'a>, SystemException> {
        Ok(ConstantValues {
            max_name: MAX_NAME,
            max_few: MAX_FEW,
            enabled_value: ENABLED,
            mark_value: MARK,
            letter_value: LETTER,
            depth_value: DEPTH,
            ports_value: PORTS,
            lowest_value: LOWEST,
            flags_value: FLAGS,
            farthest_value: FARTHEST,
            everything_value: EVERYTHING,
            quarter_value: QUARTER,
            root_value: ROOT,
            greeting_value: GREETING,
            favourite_value: FAVOURITE,
        })
    }
}

impl TextsServant for EchoObject {
    echoes! {
        echo_string: &'a str;
        echo_name: Name<'a>;
        echo_nickname: Nickname<'a>;
        echo_words: Words<'a>;
        echo_names: Names<'a>;
    }
}

impl StructsServant for EchoObject {
    echoes_by_reference! {
        echo_point: Point;
        echo_segment: Segment;
        echo_mixed: Mixed;
        echo_keywords: Keywords<'a>;
        echo_entry: Entry<'a>;
        echo_document: Document<'a>;
    }
}

impl SequencesServant for EchoObject {
    echoes! {
        echo_booleans: Booleans<'a>;
        echo_octets: Octets<'a>;
        echo_chars: Chars<'a>;
        echo_shorts: Shorts<'a>;
        echo_ushorts: UShorts<'a>;
        echo_longs: Longs<'a>;
        echo_ulongs: ULongs<'a>;
        echo_longlongs: LongLongs<'a>;
        echo_ulonglongs: ULongLongs<'a>;
        echo_floats: Floats<'a>;
        echo_doubles: Doubles<'a>;
        echo_colors: Colors<'a>;
        echo_few_longs: FewLongs<'a>;
        echo_long_lists: LongLists<'a>;
        echo_word_lists: WordLists<'a>;
        echo_path: Path<'a>;
        echo_entries: Entries<'a>;
        echo_matrices: Matrices<'a>;
        echo_documents: Documents<'a>;
    }

    fn fill<'a>(&self, call: &Call<'a>, count: u32) -> Result<Octets<'a>, SystemException> {
        call.fill(count as usize, |i| (i % 251) as u8)
    }

    fn sum<'a>(&self, _: &Call<'a>, v: Octets<'a>) -> Result<u32, SystemException> {
        Ok(v.iter()
            .fold(0, |sum, &octet| sum.wrapping_add(u32::from(octet))))
    }
}

impl ArraysServant for EchoObject {
    echoes_by_reference! {
        echo_digest: Digest;
        echo_matrix: Matrix;
        echo_labels: Labels<'a>;
        echo_cube: Cube;
        echo_rows: Rows<'a>;
        echo_triangle: Triangle;
    }
}

impl EchoServant for EchoObject {
    fn statistics<'a>(&self, _: &Call<'a>, v: Longs<'a>) -> Result<StatisticsOut, SystemException> {
        Ok(StatisticsOut {
            result: v.iter().fold(0, |sum, &n| sum.wrapping_add(i64::from(n))),
            low: v.iter().copied().min().unwrap_or_default(),
            high: v.iter().copied().max().unwrap_or_default(),
            count: v.len() as u32,
        })
    }
}
