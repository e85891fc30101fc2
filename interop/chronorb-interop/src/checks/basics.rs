//! Basic types and constants.

use chronorb::SystemException;
use chronorb::data::Char;

use super::Subject;
use crate::idl::{Color, Echo};
use crate::{Failure, Report};

pub(super) fn check(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let echo = &subject.echo;

    report.check("nothing", || {
        echo.nothing()?;
        Ok(true)
    });
    check_constants(echo, report)?;

    report.echo("echo_boolean true", true, false, |v, io| {
        echo.echo_boolean(*v, io)
    });
    report.echo("echo_boolean false", false, true, |v, io| {
        echo.echo_boolean(*v, io)
    });
    report.echo("echo_octet ends", 0, 255, |v, io| echo.echo_octet(*v, io));
    report.echo("echo_char ASCII", Char(b'a'), Char(b'~'), |v, io| {
        echo.echo_char(*v, io)
    });
    report.echo("echo_char NUL", Char(0), Char(b'z'), |v, io| {
        echo.echo_char(*v, io)
    });
    check_integers(echo, report);
    check_floats(echo, report);
    check_doubles(echo, report);
    let color = |v: &Color, io: &mut Color| echo.echo_color(*v, io);
    report.echo("echo_color ends", Color::Red, Color::Violet, color);
    report.echo("echo_color middle", Color::Green, Color::Blue, color);
    Ok(())
}

fn check_constants(echo: &Echo, report: &mut Report) -> Result<(), Failure> {
    let values = echo.constant_values()?;
    for (right, name) in [
        (values.max_name == 16, "MAX_NAME"),
        (values.max_few == 8, "MAX_FEW"),
        (values.enabled_value, "ENABLED"),
        (values.mark_value == 0x2a, "MARK"),
        (values.letter_value == Char(b'Q'), "LETTER"),
        (values.depth_value == -35, "DEPTH"),
        (values.ports_value == 65535, "PORTS"),
        (values.lowest_value == -2_147_483_647, "LOWEST"),
        (values.flags_value == 0x8000_0011, "FLAGS"),
        (values.farthest_value == i64::MAX, "FARTHEST"),
        (values.everything_value == u64::MAX, "EVERYTHING"),
        (values.quarter_value == 0.25, "QUARTER"),
        (values.root_value == 750.0, "ROOT"),
        (
            values.greeting_value == "hello, world\t\"quoted\"",
            "GREETING",
        ),
        (values.favourite_value == Color::Blue, "FAVOURITE"),
    ] {
        report.ok(right, name, "");
    }
    Ok(())
}

/// Checks the two ends of each type's range, and zero.
fn check_integers(echo: &Echo, report: &mut Report) {
    macro_rules! check {
        ($($operation:ident: $type:ty;)*) => {$(
            let name = stringify!($operation);
            for (what, v, w) in [
                ("ends", <$type>::MIN, <$type>::MAX),
                ("high and zero", <$type>::MAX, 0),
                ("small", 1, 100),
            ] {
                report.echo(&format!("{name} {what}"), v, w, |v, io| echo.$operation(*v, io));
            }
        )*};
    }
    check! {
        echo_short: i16;
        echo_ushort: u16;
        echo_long: i32;
        echo_ulong: u32;
        echo_longlong: i64;
        echo_ulonglong: u64;
    }
}

/// Checks floating-point values by their bits, so that NaN equals itself and 0 differs from -0.
fn check_floats(echo: &Echo, report: &mut Report) {
    let call = |v: &u32, io: &mut u32| -> Result<(u32, u32), SystemException> {
        let mut real = f32::from_bits(*io);
        let (result, o) = echo.echo_float(f32::from_bits(*v), &mut real)?;
        *io = real.to_bits();
        Ok((result.to_bits(), o.to_bits()))
    };
    for (what, v, w) in [
        ("ends", f32::MIN, f32::MAX),
        ("high and zero", f32::MAX, 0.0),
        ("infinities", f32::INFINITY, f32::NEG_INFINITY),
        ("NaN", f32::NAN, -f32::NAN),
        ("zeros", 0.0, -0.0),
        ("subnormal", f32::from_bits(1), -f32::from_bits(1)),
        ("fractions", 1.0 / 3.0, -std::f32::consts::PI),
    ] {
        report.echo(
            &format!("echo_float {what}"),
            v.to_bits(),
            w.to_bits(),
            call,
        );
    }
}

fn check_doubles(echo: &Echo, report: &mut Report) {
    let call = |v: &u64, io: &mut u64| -> Result<(u64, u64), SystemException> {
        let mut real = f64::from_bits(*io);
        let (result, o) = echo.echo_double(f64::from_bits(*v), &mut real)?;
        *io = real.to_bits();
        Ok((result.to_bits(), o.to_bits()))
    };
    for (what, v, w) in [
        ("ends", f64::MIN, f64::MAX),
        ("high and zero", f64::MAX, 0.0),
        ("infinities", f64::INFINITY, f64::NEG_INFINITY),
        ("NaN", f64::NAN, -f64::NAN),
        ("zeros", 0.0, -0.0),
        ("subnormal", f64::from_bits(1), -f64::from_bits(1)),
        ("fractions", 1.0 / 3.0, -std::f64::consts::PI),
    ] {
        report.echo(
            &format!("echo_double {what}"),
            v.to_bits(),
            w.to_bits(),
            call,
        );
    }
}
