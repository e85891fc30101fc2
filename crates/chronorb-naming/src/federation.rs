//! Operations on contexts of other servers, in the middle of a name.

use std::sync::Arc;

use chronorb::{Call, Object};

use crate::change::Target;
use crate::failure::{Failure, RemoteError};
use crate::idl::cos_naming::naming_context::{NotFound, NotFoundReason};
use crate::idl::cos_naming::{Name, NamingContext};
use crate::state::ServerState;

/// Continues an operation with the rest of the name at a context of another server.
///
/// The caller gets the exceptions of the operation as they are. A system exception and an excess
/// of concurrent calls, of this client or of all, become `CannotProceed`: the caller may continue
/// there by itself.
pub(crate) fn proceed<'a, T, E: RemoteError>(
    shared: &Arc<ServerState>,
    call: &Call<'a>,
    reference: Arc<[u8]>,
    rest: Name<'a>,
    operation: impl FnOnce(&Object, Name<'a>) -> Result<T, E>,
) -> Result<T, Failure<'a>> {
    let Some(object) = shared.object(&Target::Reference(reference))? else {
        let why = NotFoundReason::NotContext;
        let rest_of_name = rest;
        return Err(Failure::NotFound(NotFound { why, rest_of_name }));
    };
    let context = NamingContext::unchecked_narrow(&object);
    let Ok(_claimed) = shared.federated.charge(call.origin(), 1) else {
        return Err(Failure::at(call, &context, rest));
    };
    let object = object.with_timeout(shared.limits.federation_timeout);
    operation(&object, rest).map_err(|error| {
        let passed_on = error.pass_on(call);
        passed_on.unwrap_or_else(|_| Failure::at(call, &context, rest))
    })
}
