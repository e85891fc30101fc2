//! The servants of `idl/interop.idl`, which describes each operation.

mod echo;
mod faulty;
mod hub;
mod relations;
mod state;
mod wide;

pub(crate) use echo::EchoObject;
pub(crate) use faulty::FaultyObject;
pub(crate) use hub::HubObject;
pub(crate) use relations::RelationsObject;
pub(crate) use state::{BottomObject, NotesObject, PanelObject};
pub(crate) use wide::{PreciseObject, WidesObject};

/// Defines echoes of arguments by value, as `echo_long: i32`: the rule at the top of the IDL.
macro_rules! echoes {
    ($($operation:ident: $type:ty;)*) => {$(
        fn $operation<'a>(
            &self,
            _: &Call<'a>,
            v: $type,
            io: &mut $type,
        ) -> Result<($type, $type), SystemException> {
            Ok((v, std::mem::replace(io, v)))
        }
    )*};
}

/// Defines echoes of arguments by reference.
macro_rules! echoes_by_reference {
    ($($operation:ident: $type:ty;)*) => {$(
        fn $operation<'a>(
            &self,
            _: &Call<'a>,
            v: &$type,
            io: &mut $type,
        ) -> Result<($type, $type), SystemException> {
            Ok((*v, std::mem::replace(io, *v)))
        }
    )*};
}

use {echoes, echoes_by_reference};
