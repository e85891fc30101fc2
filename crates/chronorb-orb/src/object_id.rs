//! Names of objects within a POA.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Names an object within its POA: any octets, chosen by the POA or by the application.
#[derive(Clone)]
pub struct ObjectId(Octets);

/// Ids made by the POA and short ones of the application are stored inline, so that a request
/// allocates nothing for them.
#[derive(Clone)]
enum Octets {
    Short { len: u8, octets: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl ObjectId {
    /// The id with these octets.
    pub fn new(octets: impl AsRef<[u8]>) -> Self {
        let given = octets.as_ref();
        let mut octets = [0; SHORT];
        Self(match octets.get_mut(..given.len()) {
            Some(place) => {
                place.copy_from_slice(given);
                let len = given.len() as u8;
                Octets::Short { len, octets }
            }
            None => Octets::Long(given.into()),
        })
    }

    /// Returns the octets.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Octets::Short { len, octets } => &octets[..usize::from(*len)],
            Octets::Long(octets) => octets,
        }
    }

    /// Whether the id has these octets. Most ids are slots, of eight octets.
    #[inline]
    pub(crate) fn is(&self, name: &[u8]) -> bool {
        match (&self.0, <&[u8; 8]>::try_from(name)) {
            (Octets::Short { len: 8, octets }, Ok(name)) => octets.first_chunk() == Some(name),
            _ => self.as_bytes() == name,
        }
    }
}

impl From<&str> for ObjectId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<&Self> for ObjectId {
    fn from(id: &Self) -> Self {
        id.clone()
    }
}

impl AsRef<[u8]> for ObjectId {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Borrow<[u8]> for ObjectId {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ObjectId {}

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({})", self.as_bytes().escape_ascii())
    }
}

/// With its length and the tag it has the size of three words.
const SHORT: usize = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_length_keep_their_octets() {
        for len in [0, 1, 8, 16, SHORT, SHORT + 1, 1000] {
            let octets: Vec<u8> = (0..len).map(|n| n as u8).collect();
            assert_eq!(ObjectId::new(&octets).as_bytes(), octets);
        }
    }

    #[test]
    fn an_id_is_three_words() {
        assert_eq!(size_of::<ObjectId>(), 24);
    }
}
