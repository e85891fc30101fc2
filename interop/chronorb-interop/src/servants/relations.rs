//! References as values, and calls through them.

use chronorb::prelude::*;

use super::{echoes, echoes_by_reference};
use crate::idl::*;
use crate::values::nil_text;

/// Serves `Relations`.
#[derive(Debug)]
pub(crate) struct RelationsObject;

impl RelationsServant for RelationsObject {
    echoes! {
        echo_echoes: Echoes<'a>;
        echo_objects: Objects<'a>;
    }

    echoes_by_reference! {
        echo_link: Link<'a>;
        echo_pair: EchoPair<'a>;
    }

    fn echo_echo(
        &self,
        _: &Call<'_>,
        v: Option<&Echo>,
        io: &mut Option<Echo>,
    ) -> Result<(Option<Echo>, Option<Echo>), SystemException> {
        Ok((v.cloned(), std::mem::replace(io, v.cloned())))
    }

    fn echo_object(
        &self,
        _: &Call<'_>,
        v: Option<&Object>,
        io: &mut Option<Object>,
    ) -> Result<(Option<Object>, Option<Object>), SystemException> {
        Ok((v.cloned(), std::mem::replace(io, v.cloned())))
    }

    fn none(&self, _: &Call<'_>) -> Result<Option<Echo>, SystemException> {
        Ok(None)
    }

    fn absent(&self, _: &Call<'_>, v: Option<&Object>) -> Result<bool, SystemException> {
        Ok(v.is_none())
    }

    fn to_text<'a>(&self, call: &Call<'a>, v: Option<&Object>) -> Result<&'a str, SystemException> {
        call.str(&match v {
            Some(object) => call.orb().object_to_string(object),
            None => nil_text(),
        })
    }

    fn from_text<'a>(
        &self,
        call: &Call<'a>,
        text: &'a str,
    ) -> Result<Option<Object>, SystemException> {
        match call.orb().string_to_object(text) {
            Ok(object) => Ok(Some(object)),
            Err(_) if text == nil_text() => Ok(None),
            Err(exception) => Err(exception),
        }
    }

    fn call(&self, _: &Call<'_>, target: Option<&Echo>, v: i32) -> Result<i32, SystemException> {
        let (result, _) = target.ok_or(NIL)?.echo_long(v, &mut 0)?;
        Ok(result)
    }

    fn call_octets<'a>(
        &self,
        _: &Call<'a>,
        target: Option<&Echo>,
        v: Octets<'a>,
    ) -> Result<u32, SystemException> {
        let (result, _) = target.ok_or(NIL)?.echo_octets(v, &mut OctetsBuf::new())?;
        Ok(result.len() as u32)
    }

    fn ask_is_a<'a>(
        &self,
        _: &Call<'a>,
        target: Option<&Object>,
        id: &'a str,
    ) -> Result<bool, SystemException> {
        target.ok_or(NIL)?.is_a(id)
    }
}

const NIL: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);
