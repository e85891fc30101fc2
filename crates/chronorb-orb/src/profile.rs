//! What a reference says about the way to its object.

use chronorb_cdr::{CharSet, TextForm};
use chronorb_giop::codesets::{CodeSetComponentInfo, CodeSetContext, text_form};
use chronorb_giop::{
    Component, IiopProfile, Ior, PriorityModelValue, SystemException, TAG_INTERNET_IOP, Version,
};
use chronorb_transport::Address;

use crate::poa::PriorityModel;
use crate::rtcorba::{Priority, PriorityBands, Protocols};

/// The first usable profile of a reference, read once.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// The greatest version that both sides speak there.
    pub(crate) version: Version,
    pub(crate) key: Box<[u8]>,
    /// Where any request may go, in order of preference.
    pub(crate) addresses: Vec<Address>,
    /// Where requests of one priority go; of any, where none is said.
    pub(crate) lanes: Vec<(Option<Priority>, Address)>,
    pub(crate) priority_model: Option<(PriorityModel, Priority)>,
    pub(crate) bands: Option<PriorityBands>,
    /// Protocols that the server wants its clients to use.
    pub(crate) protocols: Option<Protocols>,
    pub(crate) code_sets: Option<CodeSetComponentInfo>,
    /// Which profile of the reference it is, for requests that name the target by it.
    pub(crate) index: usize,
}

impl Profile {
    /// Reads the first IIOP profile that can be read, and adds the addresses of further ones
    /// with the same key. `max_version` is the greatest version to speak.
    pub(crate) fn of(ior: &Ior, max_version: Version) -> Option<Self> {
        let mut profiles = ior
            .profiles
            .iter()
            .enumerate()
            .filter(|(_, profile)| profile.tag == TAG_INTERNET_IOP)
            .filter_map(|(index, profile)| {
                let iiop = IiopProfile::decode(&profile.data).ok()?;
                (iiop.version.major == 1).then(|| Self::of_iiop(&iiop, index, max_version))
            });
        let mut first = profiles.next()?;
        for other in profiles.filter(|other| other.key == first.key) {
            first.addresses.extend(other.addresses);
        }
        Some(first)
    }

    /// How text travels, and the service context that tells the server.
    ///
    /// # Errors
    /// `CODESET_INCOMPATIBLE` (OMG minor 1) where there is no common code set.
    pub(crate) fn text(&self) -> Result<(TextForm, Option<[u8; 12]>), SystemException> {
        let server = self
            .code_sets
            .as_ref()
            .filter(|_| self.version > Version::V1_0);
        let Some(server) = server else {
            return Ok((self.version.text(CharSet::Latin1), None));
        };
        let text = text_form(Some(server), self.version)?;
        Ok((text, Some(CodeSetContext::of(text).encode())))
    }

    fn of_iiop(iiop: &IiopProfile, index: usize, max_version: Version) -> Self {
        let mut this = Self {
            version: iiop.version.min(max_version),
            key: iiop.object_key.clone().into_boxed_slice(),
            addresses: vec![Address::host(iiop.host.clone(), iiop.port)],
            lanes: Vec::new(),
            priority_model: None,
            bands: None,
            protocols: None,
            code_sets: None,
            index,
        };
        for component in &iiop.components {
            // A component that cannot be read is as good as one that is not there.
            match component.typed() {
                Ok(Component::AlternateIiopAddress { host, port }) => {
                    this.addresses.push(Address::host(host, port));
                }
                Ok(Component::CodeSets(info)) => this.code_sets = Some(info),
                Ok(Component::TaoEndpoints(endpoints)) => {
                    this.lanes.extend(endpoints.into_iter().map(|e| {
                        let address = Address::host(e.host, e.port);
                        // TAO says -1 for any.
                        (Priority::new(e.priority), address)
                    }));
                }
                Ok(Component::Policies(policies)) => {
                    this.priority_model = policies.priority_model().and_then(priority_model);
                    let bands = policies.priority_bands();
                    this.bands = bands.and_then(|bands| PriorityBands::from_values(&bands));
                    let protocols = policies.client_protocols();
                    this.protocols = protocols.and_then(|list| Protocols::from_values(&list));
                }
                _ => {}
            }
        }
        this
    }
}

fn priority_model(value: PriorityModelValue) -> Option<(PriorityModel, Priority)> {
    let model = match value.model {
        0 => PriorityModel::ClientPropagated,
        1 => PriorityModel::ServerDeclared,
        _ => return None,
    };
    Some((model, Priority::new(value.server_priority)?))
}
