//! A disc without a file system: it loses, tears and reorders what is not synced, and fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use chronorb_naming::store::{Files, StoreFile};
use fastrand::Rng;

/// The content of a disc and of the kernel's memory above it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    files: Vec<Content>,
    names: Names,
    durable_names: Names,
    unsynced_names: Vec<NameChange>,
}

type Names = BTreeMap<String, usize>;

#[derive(Clone, Debug, Default)]
struct Content {
    cached: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Write>,
}

#[derive(Clone, Debug)]
enum Write {
    Data(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }
}

fn write(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    let end = at + data.len();
    content.resize(content.len().max(end), 0);
    content[at..end].copy_from_slice(data);
}

impl Content {
    /// Lets a part of what is not synced reach the disc.
    fn lose(&mut self, random: &mut Rng) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Write::Truncate(length) if random.bool() => self.durable.truncate(length),
                Write::Truncate(_) => {}
                Write::Data(at, data) => match random.u8(..4) {
                    0 => {}
                    1 => write(&mut self.durable, at, &data),
                    // The beginning alone.
                    2 => write(&mut self.durable, at, &data[..random.usize(..=data.len())]),
                    // A piece; around it are zeros or what was there.
                    _ => {
                        let from = random.usize(..=data.len());
                        let to = random.usize(from..=data.len());
                        let length = random.choice([to, data.len()]).unwrap_or(to);
                        let end = self.durable.len().max(at + length);
                        self.durable.resize(end, 0);
                        write(&mut self.durable, at + from, &data[from..to]);
                    }
                },
            }
        }
    }
}

impl Image {
    /// The image after a loss of power: any part of what is not synced is there.
    pub(crate) fn after_power_loss(&self, random: &mut Rng) -> Self {
        let mut image = self.clone();
        image.lose_names(random);
        image.names = image.durable_names.clone();
        for file in &mut image.files {
            file.lose(random);
            file.cached = file.durable.clone();
        }
        image
    }

    fn lose_names(&mut self, random: &mut Rng) {
        for change in std::mem::take(&mut self.unsynced_names) {
            if random.bool() {
                change.apply(&mut self.durable_names);
            }
        }
    }

    /// An image with one synced file.
    pub(crate) fn with_file(name: &str, content: &[u8]) -> Self {
        let names = BTreeMap::from([(name.to_owned(), 0)]);
        Self {
            files: vec![Content {
                cached: content.to_owned(),
                durable: content.to_owned(),
                unsynced: Vec::new(),
            }],
            durable_names: names.clone(),
            names,
            unsynced_names: Vec::new(),
        }
    }

    /// The content of a file.
    pub(crate) fn file(&self, name: &str) -> Option<&[u8]> {
        Some(&self.files[*self.names.get(name)?].cached)
    }
}

/// A moment at which the machine may stop.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) image: Image,
    /// The groups that were answered before.
    pub(crate) answered: usize,
}

struct State {
    image: Image,
    answered: usize,
    /// The moment before each operation.
    moments: Vec<Moment>,
    operations: u64,
    /// The operations that fail.
    failing: std::ops::Range<u64>,
    random: Rng,
}

/// A handle of a disc.
#[derive(Clone)]
pub(crate) struct Disc(Rc<RefCell<State>>);

/// A file of a disc.
pub(crate) struct DiscFile(Disc, usize);

impl Disc {
    pub(crate) fn new(image: Image, seed: u64) -> Self {
        Self(Rc::new(RefCell::new(State {
            image,
            answered: 0,
            moments: Vec::new(),
            operations: 0,
            failing: 0..0,
            random: Rng::with_seed(seed),
        })))
    }

    /// Lets operations fail, counted from now.
    pub(crate) fn fail(&self, operations: std::ops::Range<u64>) {
        let mut state = self.0.borrow_mut();
        state.operations = 0;
        state.failing = operations;
    }

    pub(crate) fn set_answered(&self, answered: usize) {
        self.0.borrow_mut().answered = answered;
    }

    pub(crate) fn image(&self) -> Image {
        self.0.borrow().image.clone()
    }

    pub(crate) fn operations(&self) -> u64 {
        self.0.borrow().operations
    }

    /// The moments before each operation and the present one.
    pub(crate) fn moments(&self) -> Vec<Moment> {
        let mut state = self.0.borrow_mut();
        let mut moments = std::mem::take(&mut state.moments);
        moments.push(Moment {
            image: state.image.clone(),
            answered: state.answered,
        });
        moments
    }

    /// Begins an operation; true if it fails.
    fn begin(&self) -> bool {
        let mut state = self.0.borrow_mut();
        let moment = Moment {
            image: state.image.clone(),
            answered: state.answered,
        };
        state.moments.push(moment);
        let fails = state.failing.contains(&state.operations);
        state.operations += 1;
        fails
    }

    fn name(&self, change: NameChange) {
        let image = &mut self.0.borrow_mut().image;
        change.apply(&mut image.names);
        image.unsynced_names.push(change);
    }
}

fn failure() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

impl Files for Disc {
    type File = DiscFile;

    fn open(&mut self, name: &str) -> io::Result<Option<DiscFile>> {
        let file = self.0.borrow().image.names.get(name).copied();
        Ok(file.map(|file| DiscFile(self.clone(), file)))
    }

    fn create(&mut self, name: &str) -> io::Result<DiscFile> {
        if self.begin() {
            return Err(failure());
        }
        let known = self.0.borrow().image.names.get(name).copied();
        if let Some(file) = known {
            let file = DiscFile(self.clone(), file);
            file.change(Write::Truncate(0));
            return Ok(file);
        }
        let mut state = self.0.borrow_mut();
        let file = state.image.files.len();
        state.image.files.push(Content::default());
        drop(state);
        self.name(NameChange::Create(name.to_owned(), file));
        Ok(DiscFile(self.clone(), file))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        if self.begin() {
            return Err(failure());
        }
        self.name(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        if self.begin() {
            return Err(failure());
        }
        if !self.0.borrow().image.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.name(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        let fails = self.begin();
        let State { image, random, .. } = &mut *self.0.borrow_mut();
        if fails {
            image.lose_names(random);
            return Err(failure());
        }
        for change in std::mem::take(&mut image.unsynced_names) {
            change.apply(&mut image.durable_names);
        }
        Ok(())
    }
}

impl DiscFile {
    fn change(&self, change: Write) {
        let content = &mut self.0.0.borrow_mut().image.files[self.1];
        match &change {
            Write::Data(at, data) => write(&mut content.cached, *at, data),
            Write::Truncate(length) => content.cached.truncate(*length),
        }
        content.unsynced.push(change);
    }
}

impl StoreFile for DiscFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.0.borrow().image.files[self.1].cached.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.0.0.borrow_mut();
        let content = &state.image.files[self.1].cached;
        let rest = content.get(offset as usize..).unwrap_or_default();
        // A read may return less than there is.
        let most = rest.len().min(buffer.len());
        let rest = rest[..most].to_vec();
        let count = if most > 1 {
            state.random.usize(1..=most)
        } else {
            most
        };
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        if self.0.begin() {
            let part = self.0.0.borrow_mut().random.usize(..=data.len());
            self.change(Write::Data(offset as usize, data[..part].to_vec()));
            return Err(failure());
        }
        self.change(Write::Data(offset as usize, data.to_vec()));
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        if self.0.begin() {
            return Err(failure());
        }
        self.change(Write::Truncate(length as usize));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let fails = self.0.begin();
        let State { image, random, .. } = &mut *self.0.0.borrow_mut();
        let content = &mut image.files[self.1];
        if fails {
            // The kernel drops what it could not write, and the next call succeeds.
            content.lose(random);
            return Err(failure());
        }
        for change in std::mem::take(&mut content.unsynced) {
            match change {
                Write::Data(at, data) => write(&mut content.durable, at, &data),
                Write::Truncate(length) => content.durable.truncate(length),
            }
        }
        Ok(())
    }
}
