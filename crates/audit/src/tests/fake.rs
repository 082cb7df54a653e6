//! A file system in memory that records the order of its operations, and has a size.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{FileLayer, LogFile};

/// An operation, as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Lines that were appended, by the kinds of them.
    Append(Vec<String>),
    Sync,
    Allocate,
    Rename(String, String),
    Remove(String),
    Replace(String),
    /// A step of the test.
    Step(&'static str),
}

/// The state of a file system.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) operations: Vec<Operation>,
    names: BTreeMap<PathBuf, usize>,
    files: Vec<Content>,
    /// The bytes that the file system has; `None` without a bound.
    pub(super) size: Option<u64>,
    /// Whether `allocate` is unsupported.
    pub(super) cannot_allocate: bool,
    /// The error of each append and sync.
    pub(super) broken: bool,
    /// Whether an append panics: a defect of the writer.
    pub(super) panics: bool,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    allocated: u64,
    is_locked: bool,
}

impl State {
    fn used(&self) -> u64 {
        let files = self.names.values().map(|index| &self.files[*index]);
        files
            .map(|file| file.allocated.max(file.bytes.len() as u64))
            .sum()
    }

    fn check(&self, more: u64) -> io::Result<()> {
        match self.size {
            Some(size) if self.used() + more > size => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

/// A file system in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Fake(Arc<Mutex<State>>);

#[derive(Debug)]
struct FakeFile {
    disk: Fake,
    index: usize,
    has_lock: bool,
}

impl Fake {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn step(&self, name: &'static str) {
        self.lock().operations.push(Operation::Step(name));
    }

    /// Fills the file system: it has no byte more than what is allocated now, and `more`.
    pub(super) fn fill(&self, more: u64) {
        let mut state = self.lock();
        state.size = Some(state.used() + more);
    }

    pub(super) fn names(&self) -> Vec<String> {
        let state = self.lock();
        state.names.keys().map(|path| name(path)).collect()
    }

    pub(super) fn content(&self, path: &str) -> Vec<u8> {
        let state = self.lock();
        state.files[state.names[Path::new(path)]].bytes.clone()
    }

    /// Writes every file into a folder.
    pub(super) fn save(&self, folder: &Path) -> Vec<PathBuf> {
        let logs = self
            .names()
            .into_iter()
            .filter(|name| name.ends_with(".jsonl"));
        logs.map(|name| {
            let path = folder.join(&name);
            std::fs::write(&path, self.content(&name)).unwrap();
            path
        })
        .collect()
    }

    fn file(&self, index: usize) -> Box<dyn LogFile> {
        Box::new(FakeFile {
            disk: self.clone(),
            index,
            has_lock: false,
        })
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

impl FileLayer for Fake {
    fn open(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let mut state = self.lock();
        let index = match state.names.get(path) {
            Some(index) => *index,
            None => {
                state.files.push(Content::default());
                let index = state.files.len() - 1;
                state.names.insert(path.to_owned(), index);
                index
            }
        };
        drop(state);
        Ok(self.file(index))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let index = self.lock().names.get(path).copied();
        let index = index.ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(index))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let index = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), index);
        let renamed = Operation::Rename(name(from), name(to));
        state.operations.push(renamed);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        state.operations.push(Operation::Remove(name(path)));
        Ok(())
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.check(bytes.len() as u64)?;
        state.operations.push(Operation::Replace(name(path)));
        state.files.push(Content {
            bytes: bytes.to_vec(),
            ..Content::default()
        });
        let index = state.files.len() - 1;
        state.names.insert(path.to_owned(), index);
        Ok(())
    }

    fn list(&self, _folder: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn free_bytes(&self, _folder: &Path) -> io::Result<u64> {
        let state = self.lock();
        let used = state.used();
        Ok(state
            .size
            .map_or(u64::MAX / 2, |size| size.saturating_sub(used)))
    }
}

impl LogFile for FakeFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.lock().files[self.index].bytes.len() as u64)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let state = self.disk.lock();
        if state.broken {
            return Err(io::Error::other("broken"));
        }
        let panics = state.panics;
        drop(state);
        assert!(!panics, "a defect");
        let mut state = self.disk.lock();
        let file = &state.files[self.index];
        let end = (file.bytes.len() + bytes.len()) as u64;
        let more = end.saturating_sub(file.allocated.max(file.bytes.len() as u64));
        state.check(more)?;
        state.files[self.index].bytes.extend_from_slice(bytes);
        let kinds = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
            let line = crate::parse(line).ok()?;
            Some(
                serde_json::to_value(line.kind)
                    .unwrap()
                    .as_str()?
                    .to_owned(),
            )
        });
        let kinds = kinds.collect();
        state.operations.push(Operation::Append(kinds));
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.lock();
        if state.broken {
            return Err(io::Error::other("broken"));
        }
        state.operations.push(Operation::Sync);
        Ok(())
    }

    fn allocate(&mut self, from: u64, to: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        if state.cannot_allocate {
            return Err(io::ErrorKind::Unsupported.into());
        }
        state.check(to - from)?;
        state.files[self.index].allocated = to;
        state.operations.push(Operation::Allocate);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        let file = &mut state.files[self.index];
        file.bytes.truncate(usize::try_from(size).unwrap());
        file.allocated = size;
        Ok(())
    }

    fn read_at(&mut self, from: u64, max: usize) -> io::Result<Vec<u8>> {
        let state = self.disk.lock();
        let bytes = &state.files[self.index].bytes;
        let from = bytes.len().min(usize::try_from(from).unwrap());
        Ok(bytes[from..bytes.len().min(from + max)].to_vec())
    }

    fn try_lock(&mut self) -> io::Result<bool> {
        let mut state = self.disk.lock();
        let is_locked = &mut state.files[self.index].is_locked;
        self.has_lock = !std::mem::replace(is_locked, true);
        Ok(self.has_lock)
    }

    fn is_at(&self, path: &Path) -> bool {
        self.disk.lock().names.get(path) == Some(&self.index)
    }
}

impl Drop for FakeFile {
    fn drop(&mut self) {
        if self.has_lock {
            self.disk.lock().files[self.index].is_locked = false;
        }
    }
}
