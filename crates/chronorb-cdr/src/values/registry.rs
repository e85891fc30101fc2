//! The value factories of the process. A factory makes a value from its encoded state.
//!
//! Factories are only added, so lookups need no lock.

use std::sync::{Arc, OnceLock};

use crate::{CdrError, Decoder, Value};

/// The error of registering a second factory for a type. Factories stay as long as the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a factory for values of {repository_id} is registered already")]
pub struct DuplicateRegistration {
    /// The type.
    pub repository_id: &'static str,
}

/// Registers the function that makes values of this type from their state in a message
/// (`ORB::register_value_factory`). Generated code has a typed form of it for each value type.
///
/// # Errors
/// [`DuplicateRegistration`]
pub fn register_value_factory<F>(
    repository_id: &'static str,
    read: F,
) -> Result<(), DuplicateRegistration>
where
    F: for<'a> Fn(&mut Decoder<'a>) -> Result<Arc<dyn Value>, CdrError> + Send + Sync + 'static,
{
    let factory = Factory {
        repository_id,
        read: Box::new(read),
        next: OnceLock::new(),
    };
    let mut new = Box::new(factory);
    let mut place = &FACTORIES[bucket(repository_id)];
    loop {
        if let Some(factory) = place.get() {
            if factory.repository_id == repository_id {
                return Err(DuplicateRegistration { repository_id });
            }
            place = &factory.next;
            continue;
        }
        match place.set(new) {
            Ok(()) => return Ok(()),
            Err(refused) => new = refused,
        }
    }
}

/// Returns the factory of this type, if one is registered.
pub(super) fn find(repository_id: &str) -> Option<&'static Read> {
    let mut place = &FACTORIES[bucket(repository_id)];
    while let Some(factory) = place.get() {
        if factory.repository_id == repository_id {
            return Some(&*factory.read);
        }
        place = &factory.next;
    }
    None
}

/// A function that reads the state of a value type and makes a value from it.
pub(super) type Read =
    dyn for<'a> Fn(&mut Decoder<'a>) -> Result<Arc<dyn Value>, CdrError> + Send + Sync;

struct Factory {
    repository_id: &'static str,
    read: Box<Read>,
    next: OnceLock<Box<Self>>,
}

static FACTORIES: [OnceLock<Box<Factory>>; BUCKETS] = [const { OnceLock::new() }; BUCKETS];

const BUCKETS: usize = 64;

/// Hashes an identifier with FNV-1a. A peer gains nothing from collisions, because it registers
/// nothing.
fn bucket(repository_id: &str) -> usize {
    let hash = repository_id.bytes().fold(0x811c_9dc5_u32, |hash, octet| {
        (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
    });
    hash as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factory_is_found_by_its_identifier_and_cannot_be_replaced() {
        const ID: &str = "IDL:registry/Test:1.0";
        assert!(find(ID).is_none());
        assert_eq!(
            register_value_factory(ID, |_| Err(CdrError::EndOfData)),
            Ok(())
        );
        assert_eq!(
            register_value_factory(ID, |_| Err(CdrError::TooDeep)),
            Err(DuplicateRegistration { repository_id: ID })
        );
        let arena = crate::Arena::new(0);
        let mut d = Decoder::new(&mut [], 0, crate::Endian::Big, &arena);
        let read = find(ID).expect("registered");
        assert_eq!(read(&mut d).err(), Some(CdrError::EndOfData));
    }

    #[test]
    fn more_factories_than_buckets_are_all_found() {
        let ids: Vec<&'static str> = (0..3 * BUCKETS)
            .map(|n| &*format!("IDL:registry/{n}:1.0").leak())
            .collect();
        for id in &ids {
            register_value_factory(id, |_| Err(CdrError::EndOfData)).expect("new");
        }
        assert!(ids.iter().all(|id| find(id).is_some()));
    }
}
