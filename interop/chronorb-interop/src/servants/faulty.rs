//! Exceptions.

use chronorb::prelude::*;

use crate::idl::shapes::Point;
use crate::idl::*;

/// Serves `Faulty`.
#[derive(Debug)]
pub(crate) struct FaultyObject;

impl FaultyServant for FaultyObject {
    fn raise_user<'a>(&self, _: &Call<'a>, code: i32) -> Result<i32, RaiseUserError<'a>> {
        match code {
            1 => Err(Plain.into()),
            2 => Err(Refused {
                code: -2,
                reason: "refused",
            }
            .into()),
            3 => Err(Detailed {
                shade: Color::Violet,
                r#where: Point { x: 1.5, y: -2.5 },
                trace: &[3, 2, 1],
                cause: Entry {
                    key: "cause",
                    value: 3,
                },
            }
            .into()),
            _ => Ok(code),
        }
    }

    fn raise_system<'a>(
        &self,
        _: &Call<'a>,
        name: &'a str,
        code: u32,
        completed: i32,
    ) -> Result<(), SystemException> {
        let kind = SystemExceptionKind::ALL
            .iter()
            .find(|kind| kind.name() == name);
        let completed = match completed {
            0 => Some(CompletionStatus::Yes),
            1 => Some(CompletionStatus::No),
            2 => Some(CompletionStatus::Maybe),
            _ => None,
        };
        Err(match (kind, completed) {
            (Some(&kind), Some(completed)) => SystemException::new(kind, code, completed),
            _ => SystemException::no(SystemExceptionKind::BadParam, 0),
        })
    }

    fn echo_even<'a>(
        &self,
        _: &Call<'a>,
        v: i32,
        io: &mut i32,
    ) -> Result<(i32, i32), EchoEvenError<'a>> {
        if v % 2 != 0 {
            let reason = "odd";
            return Err(Refused { code: v, reason }.into());
        }
        Ok((v, std::mem::replace(io, v)))
    }
}
