use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::LazyLock;

use chronorb::Orb;
use chronorb_naming::idl::cos_naming::{NameComponentBuf, NamingContextExt};
use chronorb_naming::store::{Files, Store, StoreFile};
use chronorb_naming::{
    Change, Limits, NameServer, NamingService, Tree, export_text, import_omninames, import_text,
};
use chronorb_rt::Monotonic;

use crate::bounds::within;
use crate::endsystem::orb;

/// The name of the log of a store.
const LOG: &str = "names.log";

/// Opens a store whose log is `data`, or a log whose records are made of it. A store that could be
/// opened takes another change, and is found again as it was.
pub fn naming_store(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    // A log of records is reached by chance only if the checksums are made.
    let log = match mode % 2 {
        0 => data.to_vec(),
        _ => sealed(data),
    };
    let files = Memory::default();
    let content = MemoryFile(Rc::new(RefCell::new(log)));
    files.0.borrow_mut().insert(LOG.to_owned(), content);
    let Some((mut store, before)) = open(&files) else {
        return;
    };
    let change = Change::CreateContext { context: u64::MAX };
    let is_new = !before.contains(&change);
    if is_new {
        store.append(&[change]).expect("memory does not fail");
    }
    let mut state = before.clone().into_iter();
    let (_, after) = open(&files).expect("what was opened is opened again");
    assert_eq!(after.len(), before.len() + usize::from(is_new));
    store
        .write_snapshot(&mut state)
        .expect("memory does not fail");
    let (_, after) = open(&files).expect("a snapshot is opened");
    assert_eq!(after, before);
}

/// Reads `data` as names in text form, and as a data file of omniNames. What could be read is
/// written and read once more.
pub fn naming_text(data: &[u8]) {
    let text = str::from_utf8(data).ok();
    if let Some(text) = text {
        check_texts(text);
    }
    let read = || {
        let of_text = text.and_then(|text| import_text(text, Limits::default(), 1).ok());
        [of_text, import_omninames(data, Limits::default(), 1).ok()]
    };
    let trees = within("importing", data.len(), read);
    for tree in trees.into_iter().flatten() {
        let (text, summary) = export(&tree);
        let again = import_text(&text, Limits::default(), 1).expect("what was written");
        let (text, of_again) = export(&again);
        assert_eq!(of_again.bindings, summary.bindings);
        assert_eq!((of_again.omitted, of_again.orphans), (0, 0));
        let once_more = import_text(&text, Limits::default(), 1).expect("what was written");
        assert_eq!(export(&once_more).0, text);
    }
}

/// Has a name server read a text as a client sends it, and write it again.
fn check_texts(text: &str) {
    static SERVED: LazyLock<ServedNames> = LazyLock::new(ServedNames::new);
    let root = &SERVED.root;
    // The first call of a thread prepares it.
    let _ = root.to_name("a");
    let resolved = || root.resolve_str(text).is_ok();
    assert!(
        !within("resolving", text.len(), resolved),
        "nothing is bound"
    );
    let Ok(name) = within("reading a name", text.len(), || root.to_name(text)) else {
        return;
    };
    let name: Vec<_> = name.iter().map(NameComponentBuf::as_view).collect();
    let written = within("writing a name", text.len(), || root.to_string(&name));
    let written = written.expect("what was read");
    let again = root.to_name(&written).expect("what was written");
    let again: Vec<_> = again.iter().map(NameComponentBuf::as_view).collect();
    assert_eq!(again, name, "a name changed on its way");
}

/// A name server that is called on the thread of its caller.
struct ServedNames {
    root: NamingContextExt,
    _orb: Orb,
    _service: NamingService,
}

impl ServedNames {
    fn new() -> Self {
        let orb = orb(&[], |_| {});
        let poa = orb.root_poa().expect("it opens");
        let service = NameServer::new().serve_in(&poa).expect("it is served");
        poa.manager().activate().expect("it begins");
        Self {
            root: NamingContextExt::unchecked_narrow(service.root()),
            _orb: orb,
            _service: service,
        }
    }
}

fn export(tree: &Tree) -> (String, chronorb_naming::ExportSummary) {
    let mut text = Vec::new();
    let summary = export_text(tree, &mut text).expect("memory does not fail");
    (String::from_utf8(text).expect("names are UTF-8"), summary)
}

fn open(files: &Memory) -> Option<(Store<Memory>, Vec<Change>)> {
    let mut tree = Tree::new(1);
    let now = Monotonic::from_nanos(1);
    let store = Store::open(files.clone(), |change| tree.apply(&change, now));
    let state = tree.changes().collect();
    store.ok().map(|store| (store, state))
}

/// A log with a snapshot that is empty, and a record of each part of `data` that begins with its
/// length.
fn sealed(mut data: &[u8]) -> Vec<u8> {
    let mut log = b"CHRNAMES\x01\0\0\0".to_vec();
    let identity = [7; 32];
    log.extend(crc32c(0, &identity).to_le_bytes());
    log.extend(identity);
    let seal = crc32c(0, &log);
    let mut record = |body: &[u8], sequence: u64| {
        let mut head = (body.len() as u32).to_le_bytes().to_vec();
        head.extend(crc32c(seal, body).to_le_bytes());
        head.extend(sequence.to_le_bytes());
        head.extend(crc32c(seal, &head).to_le_bytes());
        log.extend(head);
        log.extend(body);
    };
    record(&[], 0);
    let mut sequence = 1;
    while let Some((length, rest)) = data.split_first() {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        record(body, sequence);
        sequence += 1;
        data = rest;
    }
    log
}

fn crc32c(seed: u32, data: &[u8]) -> u32 {
    let mut crc = !seed;
    for octet in data {
        crc ^= u32::from(*octet);
        for _ in 0..8 {
            crc = (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78);
        }
    }
    !crc
}

/// Files in memory, which never fail.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<HashMap<String, MemoryFile>>>);

#[derive(Clone, Default)]
struct MemoryFile(Rc<RefCell<Vec<u8>>>);

impl Files for Memory {
    type File = MemoryFile;

    fn open(&mut self, name: &str) -> io::Result<Option<MemoryFile>> {
        Ok(self.0.borrow().get(name).cloned())
    }

    fn create(&mut self, name: &str) -> io::Result<MemoryFile> {
        let file = MemoryFile::default();
        self.0.borrow_mut().insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.borrow_mut();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let removed = self.0.borrow_mut().remove(name);
        removed
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StoreFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.borrow().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.0.borrow();
        let rest = content.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut content = self.0.borrow_mut();
        let end = offset as usize + data.len();
        let length = content.len().max(end);
        content.resize(length, 0);
        content[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().truncate(length as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
