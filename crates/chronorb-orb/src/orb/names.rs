//! The names of `corbaname:`, by the one operation of the naming service that this takes.

use std::fmt;

use chronorb_giop::url::NameComponent;
use chronorb_giop::{SystemException, SystemExceptionKind, minor};

use crate::call::{Operation, Reply, reply_error, unknown_user_exception};
use crate::core::Object;
use crate::failure::because;
use crate::scope::Scope;

/// Calls `CosNaming::NamingContext::resolve`.
///
/// # Errors
/// `BAD_PARAM` (OMG minor 10) where the context does not lead to an object; the cause names the
/// component and the server. `INV_OBJREF` where the name is bound to nil. Those of a call.
pub(super) fn resolve(context: &Object, name: &[NameComponent]) -> Result<Object, SystemException> {
    Scope::with(|scope| {
        let reply = context.invoke(scope, &Operation::twoway("resolve"), &|e| {
            e.write_len(name.len())?;
            name.iter().try_for_each(|component| {
                e.write_str(&component.id)?;
                e.write_str(&component.kind)
            })
        })?;
        let (exception, mut members) = match reply {
            Reply::Normal(mut d) => {
                let object = Object::decode_reference(&mut d).map_err(reply_error)?;
                return object.ok_or_else(|| {
                    let nil = SystemException::no(SystemExceptionKind::InvObjref, 0);
                    let cause = format_args!("the name is bound to a nil reference");
                    because(nil, format_args!("{}{cause}", At(context)))
                });
            }
            Reply::UserException(id, members) => (id, members),
        };
        // The rest of the name begins with the component that failed.
        let (problem, rest) = match exception {
            NOT_FOUND => {
                let reason = members.read_u32().map_err(reply_error)?;
                let problem = match reason {
                    MISSING_NODE => "is not bound",
                    NOT_CONTEXT => "is bound to an object that is no context",
                    _ => "is bound to a context, and not to an object",
                };
                (problem, members.read_len(LEAST_COMPONENT))
            }
            CANNOT_PROCEED => {
                Object::decode_reference(&mut members).map_err(reply_error)?;
                let rest = members.read_len(LEAST_COMPONENT);
                ("cannot be resolved by this server", rest)
            }
            INVALID_NAME => {
                let context = At(context);
                let cause = format_args!("{context}the server refuses the name as invalid");
                return Err(failed(minor::BAD_SCHEME_SPECIFIC, cause));
            }
            _ => return Err(unknown_user_exception()),
        };
        let at = name.len().saturating_sub(rest.map_err(reply_error)?);
        let component = name.get(at).or_else(|| name.last());
        let NameComponent { id, kind } = component.cloned().unwrap_or_default();
        let (number, all, context) = (at + 1, name.len(), At(context));
        let of = format_args!("component {number} of {all}");
        let cause = format_args!("{context}{of}, id {id:?} kind {kind:?}, {problem}");
        Err(failed(minor::STRING_TO_OBJECT, cause))
    })
}

fn failed(minor: u32, cause: fmt::Arguments<'_>) -> SystemException {
    because(
        SystemException::no(SystemExceptionKind::BadParam, minor),
        cause,
    )
}

/// The naming service of an error, by its first address.
struct At<'o>(&'o Object);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.profile().and_then(|profile| profile.ways.first()) {
            Some(way) => write!(f, "the naming service at {way}: "),
            None => Ok(()),
        }
    }
}

const NOT_FOUND: &str = "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0";
const CANNOT_PROCEED: &str = "IDL:omg.org/CosNaming/NamingContext/CannotProceed:1.0";
const INVALID_NAME: &str = "IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0";
/// Values of `NotFoundReason`; the third is `not_object`.
const MISSING_NODE: u32 = 0;
const NOT_CONTEXT: u32 = 1;
/// The octets of the shortest component: two empty strings.
const LEAST_COMPONENT: usize = 10;
