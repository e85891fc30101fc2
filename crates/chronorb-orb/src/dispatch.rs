//! The call of a servant's skeleton: the operations that every object has, and those of its
//! interface.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Decoder, Encoder};
use chronorb_giop::{Ior, SystemException, SystemExceptionKind, minor};

use crate::call::{Call, ReplyWriter, Skeleton, reply_error};
use crate::core::Core;
use crate::object::OBJECT_ID;
use crate::observe::Stage;
use crate::upcall::Body;

/// An upcall that calls a servant by its skeleton.
pub(crate) struct Dispatch<'a, 'r, 'f> {
    /// The ORB, if the request did not come from this process.
    pub(crate) core: Option<&'r Core>,
    /// Sends the answer to a client that waits for the server but not for the servant.
    pub(crate) answer_early: Option<AnswerEarly<'r>>,
    /// The arguments, taken when the servant is called.
    pub(crate) arguments: Option<Decoder<'a>>,
    pub(crate) reply: &'r mut ReplyWriter<'f>,
}

type AnswerEarly<'r> = &'r dyn Fn(&[u8]) -> Result<(), SystemException>;

impl<'a, 'r, 'f> Dispatch<'a, 'r, 'f> {
    /// Returns the dispatch of a call within the process.
    pub(crate) fn of_caller(arguments: Decoder<'a>, reply: &'r mut ReplyWriter<'f>) -> Self {
        Self {
            core: None,
            answer_early: None,
            arguments: Some(arguments),
            reply,
        }
    }
}

impl Body for Dispatch<'_, '_, '_> {
    type Output = Result<(), SystemException>;

    fn run<'c>(&mut self, servant: &'c dyn Skeleton, call: &Call<'c>) -> Self::Output
    where
        Self: 'c,
    {
        let taken: Option<Decoder<'c>> = self.arguments.take();
        let mut arguments = taken.ok_or(SystemException::no(SystemExceptionKind::Internal, 0))?;
        if let Some(core) = self.core {
            core.at(Stage::Upcall);
        }
        let reply = &mut *self.reply;
        if let Some(result) = implicit(servant, call.operation(), &mut arguments, reply) {
            return result;
        }
        if let Some(answer) = self.answer_early {
            // From here on no forward or refusal is possible, and the servant's reply is discarded.
            reply.normal()?;
            answer(reply.take_sent())?;
        }
        let dispatched = servant.dispatch(call, call.operation(), &mut arguments, reply);
        if let Some(core) = self.core {
            core.at(Stage::Conclude);
        }
        dispatched?;
        if !reply.is_begun() {
            reply.normal()?;
        }
        Ok(())
    }
}

/// Operations that every object has (CORBA 3.3 part 2, 9.4.2.2); their names begin with `_`, like
/// those of attributes.
fn implicit(
    servant: &dyn Skeleton,
    operation: &[u8],
    body: &mut Decoder<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Option<Result<(), SystemException>> {
    if operation.first() != Some(&b'_') {
        return None;
    }
    let mut answer = |write: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>| {
        write(reply.normal()?).map_err(reply_error)
    };
    match operation {
        b"_is_a" => Some(
            body.read_str()
                .map_err(SystemException::from)
                .and_then(|id| {
                    let is = id == OBJECT_ID || servant.is_a(id);
                    answer(&|e| e.write_bool(is))
                }),
        ),
        _ if NON_EXISTENT.contains(&operation) => Some(answer(&|e| e.write_bool(false))),
        b"_repository_id" => {
            let id = servant.repository_id();
            Some(answer(&|e| e.write_str(id)))
        }
        // A client announces the band of a connection (RT-CORBA 1.2, priority-banded connections).
        // Here the endpoint of a connection decides which lane serves it, whatever its band.
        b"_bind_priority_band" => Some(answer(&|_| Ok(()))),
        // The object is not a CORBA component.
        b"_component" => Some(answer(&|e| Ior::nil().encode(e))),
        // There is no interface repository.
        b"_interface" | b"_get_interface" => Some(Err(SystemException::no(
            SystemExceptionKind::IntfRepos,
            minor::NO_INTERFACE_REPOSITORY,
        ))),
        _ => None,
    }
}

/// The operation that asks whether an object is gone, under its names in all versions of GIOP.
pub(crate) const NON_EXISTENT: [&[u8]; 2] = [b"_non_existent", b"_not_existent"];
