//! The first object.

use chronorb::prelude::*;

use crate::idl::*;

/// Serves `Hub`: returns these references.
#[derive(Debug)]
pub(crate) struct HubObject {
    pub(crate) echo: Echo,
    pub(crate) wides: Wides,
    pub(crate) precise: Precise,
    pub(crate) faulty: Faulty,
    pub(crate) notes: Notes,
    pub(crate) panel: Panel,
    pub(crate) bottom: Bottom,
    pub(crate) relations: Relations,
    pub(crate) forwarded: Echo,
    pub(crate) deactivated: Echo,
}

macro_rules! getters {
    ($($operation:ident: $member:ident, $interface:ty;)*) => {$(
        fn $operation(&self, _: &Call<'_>) -> Result<Option<$interface>, SystemException> {
            Ok(Some(self.$member.clone().into()))
        }
    )*};
}

impl HubServant for HubObject {
    getters! {
        get_echo: echo, Echo;
        get_wides: wides, Wides;
        get_precise: precise, Precise;
        get_faulty: faulty, Faulty;
        get_notes: notes, Notes;
        get_panel: panel, Panel;
        get_bottom: bottom, Bottom;
        get_relations: relations, Relations;
        get_top: bottom, Top;
        get_forwarded: forwarded, Echo;
        get_deactivated: deactivated, Echo;
    }

    fn orb_name<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        Ok("chronorb")
    }

    fn shutdown(&self, call: &Call<'_>) -> Result<(), SystemException> {
        call.orb().shutdown(false)
    }
}
