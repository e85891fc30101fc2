//! Characters and strings in the forms of the three versions of GIOP.

use chronorb_cdr::{
    Arena, CdrError, Char, CharSet, Decoder, Encoder, Endian, Frame, TextForm, WideForm,
};

const LATIN1: TextForm = form(CharSet::Latin1, WideForm::Utf16);
const UTF8: TextForm = form(CharSet::Utf8, WideForm::Utf16);
const GIOP_1_0: TextForm = form(CharSet::Latin1, WideForm::Illegal);
const GIOP_1_1: TextForm = form(CharSet::Latin1, WideForm::Ucs2);

const fn form(narrow: CharSet, wide: WideForm) -> TextForm {
    TextForm { narrow, wide }
}

fn written(
    text: TextForm,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<Vec<u8>, CdrError> {
    let mut frame = Frame::new(64, 1024);
    write(&mut Encoder::new(&mut frame, Endian::Big).with_text(text))?;
    Ok(frame.as_slice().to_vec())
}

fn read<T: ToOwned + ?Sized>(
    text: TextForm,
    bytes: &[u8],
    read: impl for<'a> FnOnce(&mut Decoder<'a>) -> Result<&'a T, CdrError>,
) -> Result<T::Owned, CdrError> {
    let mut bytes = bytes.to_vec();
    let arena = Arena::new(256);
    let mut d = Decoder::new(&mut bytes, 0, Endian::Big, &arena).with_text(text);
    read(&mut d).map(T::to_owned)
}

fn read_str(text: TextForm, bytes: &[u8]) -> Result<String, CdrError> {
    read(text, bytes, |d| d.read_str())
}

fn read_wstr(text: TextForm, bytes: &[u8]) -> Result<String, CdrError> {
    read(text, bytes, |d| d.read_wstr())
}

#[test]
fn a_string_has_one_octet_for_each_character_in_latin_1() {
    let octets = [0, 0, 0, 3, 0xe9, 0xe8, 0];
    assert_eq!(written(LATIN1, |e| e.write_str("éè")).unwrap(), octets);
    assert_eq!(read_str(LATIN1, &octets).unwrap(), "éè");
    let fails = written(LATIN1, |e| e.write_str("漢"));
    assert_eq!(fails, Err(CdrError::UnmappableChar));
}

#[test]
fn a_string_is_as_in_rust_in_utf_8() {
    let octets = [0, 0, 0, 3, 0xc3, 0xa9, 0];
    assert_eq!(written(UTF8, |e| e.write_str("é")).unwrap(), octets);
    assert_eq!(read_str(UTF8, &octets).unwrap(), "é");
    let broken = [0, 0, 0, 2, 0xc3, 0];
    assert_eq!(read_str(UTF8, &broken), Err(CdrError::InvalidUtf8));
}

#[test]
fn a_char_is_one_octet_in_every_code_set() {
    assert_eq!(
        written(LATIN1, |e| e.write_char(Char(0xe9))).unwrap(),
        [0xe9]
    );
    for fails in [
        written(UTF8, |e| e.write_char(Char(0xe9))),
        written(UTF8, |e| e.write_seq(&[Char(0xe9)])),
    ] {
        assert_eq!(fails, Err(CdrError::UnmappableChar));
    }
    let mut bytes = [0xe9, 0, 0, 0, 0, 0, 0, 1, 0xe9];
    let arena = Arena::new(0);
    let mut d = Decoder::new(&mut bytes, 0, Endian::Big, &arena).with_text(UTF8);
    assert_eq!(d.read_char(), Err(CdrError::UnmappableChar));
    assert_eq!(d.read_seq::<Char>(), Err(CdrError::UnmappableChar));
    assert_eq!(Char::try_from('é').unwrap().to_string(), "é");
    assert!(Char::try_from('漢').is_err());
}

#[test]
fn an_empty_string_may_come_without_its_nul() {
    assert_eq!(read_str(LATIN1, &[0, 0, 0, 0]).unwrap(), "");
    assert_eq!(read_str(LATIN1, &[0, 0, 0, 1, 0]).unwrap(), "");
    assert_eq!(
        written(LATIN1, |e| e.write_str("")).unwrap(),
        [0, 0, 0, 1, 0]
    );
}

#[test]
fn a_nul_is_at_the_end_of_a_string_and_nowhere_else() {
    let within = written(LATIN1, |e| e.write_str("a\0b"));
    assert_eq!(within, Err(CdrError::EmbeddedNul));
    let within = written(LATIN1, |e| e.write_wstr("a\0b"));
    assert_eq!(within, Err(CdrError::EmbeddedNul));
    let within = read_str(LATIN1, &[0, 0, 0, 3, b'a', 0, 0]);
    assert_eq!(within, Err(CdrError::EmbeddedNul));
    let missing = read_str(LATIN1, &[0, 0, 0, 1, b'a']);
    assert_eq!(missing, Err(CdrError::UnterminatedString));
    let within = read_wstr(LATIN1, &[0, 0, 0, 4, 0, b'a', 0, 0]);
    assert_eq!(within, Err(CdrError::EmbeddedNul));
}

#[test]
fn bounds_hold_both_ways() {
    let long = written(LATIN1, |e| e.write_str_bounded("abcd", 3));
    assert_eq!(long, Err(CdrError::BoundExceeded));
    let long = written(LATIN1, |e| e.write_wstr_bounded("abcd", 3));
    assert_eq!(long, Err(CdrError::BoundExceeded));
    let long = written(LATIN1, |e| e.write_seq_bounded(&[1u8; 4], 3));
    assert_eq!(long, Err(CdrError::BoundExceeded));

    let string = written(LATIN1, |e| e.write_str_bounded("abc", 3)).unwrap();
    assert_eq!(
        read(LATIN1, &string, |d| d.read_str_bounded(3)).unwrap(),
        "abc"
    );
    let long = read(LATIN1, &string, |d| d.read_str_bounded(2));
    assert_eq!(long, Err(CdrError::BoundExceeded));
    let wide = written(LATIN1, |e| e.write_wstr("abc")).unwrap();
    let long = read(LATIN1, &wide, |d| d.read_wstr_bounded(2));
    assert_eq!(long, Err(CdrError::BoundExceeded));
    let octets = written(LATIN1, |e| e.write_octet_seq(&[1, 2, 3])).unwrap();
    let long = read(LATIN1, &octets, |d| d.read_seq_bounded::<u8>(2));
    assert_eq!(long, Err(CdrError::BoundExceeded));
}

#[test]
fn a_wide_string_of_giop_1_2_counts_octets_and_is_big_endian() {
    let octets = [0, 0, 0, 4, 0x6f, 0x22, 0x5b, 0x57];
    assert_eq!(written(UTF8, |e| e.write_wstr("漢字")).unwrap(), octets);
    assert_eq!(read_wstr(UTF8, &octets).unwrap(), "漢字");
    let marked_little = [0, 0, 0, 6, 0xff, 0xfe, 0x22, 0x6f, 0x57, 0x5b];
    assert_eq!(read_wstr(UTF8, &marked_little).unwrap(), "漢字");
    let marked_big = [0, 0, 0, 4, 0xfe, 0xff, 0x6f, 0x22];
    assert_eq!(read_wstr(UTF8, &marked_big).unwrap(), "漢");
    let pair = [0, 0, 0, 4, 0xd8, 0x3d, 0xde, 0x00];
    assert_eq!(read_wstr(UTF8, &pair).unwrap(), "😀");
    let half_pair = [0, 0, 0, 2, 0xd8, 0x3d];
    assert_eq!(read_wstr(UTF8, &half_pair), Err(CdrError::UnmappableChar));
    let odd = [0, 0, 0, 3, 0, b'a', 0];
    assert_eq!(read_wstr(UTF8, &odd), Err(CdrError::InvalidWideChar));
}

#[test]
fn text_that_begins_like_a_byte_order_mark_has_one_before_it() {
    let octets = [0, 0, 0, 6, 0xfe, 0xff, 0xfe, 0xff, 0, b'a'];
    let text = "\u{feff}a";
    assert_eq!(written(UTF8, |e| e.write_wstr(text)).unwrap(), octets);
    assert_eq!(read_wstr(UTF8, &octets).unwrap(), text);
    let mut octets = [4, 0xfe, 0xff, 0xff, 0xfe];
    let reversed = '\u{fffe}';
    assert_eq!(written(UTF8, |e| e.write_wchar(reversed)).unwrap(), octets);
    let arena = Arena::new(0);
    let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena).with_text(UTF8);
    assert_eq!(d.read_wchar(), Ok(reversed));
}

#[test]
fn a_wide_string_of_giop_1_1_counts_units_with_their_nul() {
    let octets = [0, 0, 0, 2, 0x6f, 0x22, 0, 0];
    assert_eq!(written(GIOP_1_1, |e| e.write_wstr("漢")).unwrap(), octets);
    assert_eq!(read_wstr(GIOP_1_1, &octets).unwrap(), "漢");
    assert_eq!(
        written(GIOP_1_1, |e| e.write_wchar('漢')).unwrap(),
        [0x6f, 0x22]
    );
    let missing = [0, 0, 0, 1, 0x6f, 0x22];
    assert_eq!(
        read_wstr(GIOP_1_1, &missing),
        Err(CdrError::UnterminatedString)
    );
}

#[test]
fn giop_1_0_has_no_wide_characters() {
    let write = CdrError::WideNotAllowedWrite;
    assert_eq!(written(GIOP_1_0, |e| e.write_wchar('a')), Err(write));
    assert_eq!(written(GIOP_1_0, |e| e.write_wstr("a")), Err(write));
    let octets = [0, 0, 0, 2, 0, b'a'];
    assert_eq!(
        read_wstr(GIOP_1_0, &octets),
        Err(CdrError::WideNotAllowedRead)
    );
}

#[test]
fn a_wide_character_is_one_of_the_basic_plane() {
    let octets = [2, 0x6f, 0x22];
    assert_eq!(written(UTF8, |e| e.write_wchar('漢')).unwrap(), octets);
    let beyond = written(UTF8, |e| e.write_wchar('😀'));
    assert_eq!(beyond, Err(CdrError::UnmappableChar));
    let invalid = CdrError::InvalidWideChar;
    for (octets, error) in [
        (&[0][..], invalid),
        (&[1, 7], invalid),
        (&[4, 0, b'a', 0, b'b'], invalid),
        (&[2, 0xd8, 0], CdrError::UnmappableChar),
    ] {
        let mut bytes = octets.to_vec();
        let arena = Arena::new(0);
        let mut d = Decoder::new(&mut bytes, 0, Endian::Big, &arena);
        assert_eq!(d.read_wchar(), Err(error));
    }
}
