//! The list of the containers of this process that may exist: in memory that is shared with the guard, and in a file for
//! the next start.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::{self, Record, rewrite};
use super::{Container, Target};

/// Ends each text of the list. No path, argument or variable can contain it. Two of them end the list.
const END: u8 = 0;

/// The containers of this process that may exist.
static LIST: Mutex<List> = Mutex::new(List {
    containers: Vec::new(),
    shared: None,
    record: None,
});

pub(super) struct List {
    pub(super) containers: Vec<Container>,
    /// The memory that is shared with the guard.
    shared: Option<File>,
    /// The file for the next start, while there are containers.
    record: Option<Record>,
}

/// Adds a container.
pub(super) fn enter(container: Container) {
    let mut list = lock();
    list.containers.push(container);
    list.share();
}

/// Removes a container.
pub(super) fn leave(container: &Container) {
    let mut list = lock();
    list.containers.retain(|one| one != container);
    list.share();
}

/// Shares the list with the guard.
#[cfg(target_os = "linux")]
pub(crate) fn share_with_guard(memory: File) {
    lock().shared = Some(memory);
}

/// Takes the containers of processes that have ended into the list, each as `adopt` returns it. Those for which `adopt`
/// returns `None` stay in the file of their process.
pub(super) fn take_abandoned(adopt: impl Fn(&Container) -> Option<Container>) -> Vec<Container> {
    let mut list = lock();
    let mut taken = Vec::new();
    record::visit_abandoned(|bytes| {
        let mut rest = Vec::new();
        for container in parse(bytes) {
            match adopt(&container) {
                Some(container) => taken.push(container),
                None => rest.push(container),
            }
        }
        let new = taken.iter().filter(|one| !list.containers.contains(one));
        let new: Vec<_> = new.cloned().collect();
        if !new.is_empty() {
            list.containers.extend(new);
            // Before the file of the other process loses them.
            list.share();
        }
        render(&rest)
    });
    taken
}

/// Returns the list, unless a thread holds it.
#[cfg(target_os = "linux")]
pub(super) fn try_lock() -> Option<MutexGuard<'static, List>> {
    LIST.try_lock().ok()
}

fn lock() -> MutexGuard<'static, List> {
    // The list is valid after a panic.
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

impl List {
    /// Returns the path of the file for the next start.
    pub(super) fn record_path(&self) -> Option<&Path> {
        self.record.as_ref().map(Record::path)
    }

    /// Writes the list for the guard and for the next start.
    fn share(&mut self) {
        if let Err(error) = self.write_record() {
            tracing::warn!(%error, "if broker and guard are killed at the same time, the containers of servers are left");
        }
        let path = self.record_path().map_or_else(PathBuf::new, Path::to_owned);
        let Some(shared) = &mut self.shared else {
            return;
        };
        // The guard reads the list after this process has ended.
        let mut bytes = path.into_os_string().into_vec();
        bytes.push(END);
        bytes.extend(render(&self.containers));
        if let Err(error) = rewrite(shared, &bytes) {
            tracing::warn!(%error, "the guard does not learn of the containers of servers");
        }
    }

    fn write_record(&mut self) -> io::Result<()> {
        if self.containers.is_empty() {
            self.record = None;
            return Ok(());
        }
        let record = match &mut self.record {
            Some(record) => record,
            none => none.insert(Record::create()?),
        };
        let recorded = self.containers.iter().filter_map(Container::recorded);
        record.write(&render(&recorded.collect::<Vec<_>>()))
    }
}

/// Writes containers as they are read by [`parse`]; no bytes for none.
fn render(containers: &[Container]) -> Vec<u8> {
    let mut bytes = Vec::new();
    containers.iter().for_each(|one| one.write(&mut bytes));
    if !bytes.is_empty() {
        bytes.push(END);
    }
    bytes
}

/// Reads the path of the file and the containers that a process shared with its guard.
#[cfg(target_os = "linux")]
pub(super) fn parse_shared(bytes: &[u8]) -> (PathBuf, Vec<Container>) {
    let end = bytes.iter().position(|byte| *byte == END);
    let (path, rest) = bytes.split_at(end.unwrap_or_default());
    let path = OsString::from_vec(path.to_vec()).into();
    (path, parse(rest.get(1..).unwrap_or_default()))
}

/// Reads the containers of a list. The last one of a list that was cut is left out.
fn parse(bytes: &[u8]) -> Vec<Container> {
    let texts: Vec<&[u8]> = bytes.split(|byte| *byte == END).collect();
    // The text after the last end is empty, or was cut.
    let whole = texts.len().saturating_sub(1);
    let mut texts = texts[..whole].iter().copied();
    std::iter::from_fn(|| Container::read(&mut texts)).collect()
}

impl Container {
    /// Returns it as it is written into a file: without variables, which may be secrets. `None` for a file that the config
    /// names: another process may have written the id of its container there.
    fn recorded(&self) -> Option<Self> {
        let is_ours = !matches!(self.target, Target::IdFile { is_ours: false, .. });
        is_ours.then(|| Self {
            env: Vec::new(),
            ..self.clone()
        })
    }

    fn read<'b>(texts: &mut impl Iterator<Item = &'b [u8]>) -> Option<Self> {
        let mut next = || Some(OsString::from_vec(texts.next()?.to_vec()));
        let program = next().filter(|program| !program.is_empty())?.into();
        let folder = next()?.into();
        let (kind, target) = (next()?, next()?);
        let target = match kind.to_str()? {
            "name" => Target::Name(target.into_string().ok()?),
            kind => Target::IdFile {
                file: target.into(),
                is_ours: kind == "own file",
            },
        };
        let args: usize = next()?.to_str()?.parse().ok()?;
        let args = (0..args).map(|_| next()).collect::<Option<_>>()?;
        let variables: usize = next()?.to_str()?.parse().ok()?;
        let mut env = Vec::new();
        for _ in 0..variables {
            env.push((next()?, next()?));
        }
        Some(Self {
            program,
            args,
            folder,
            env,
            target,
        })
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let mut text = |text: &OsStr| {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(END);
        };
        text(self.program.as_os_str());
        text(self.folder.as_os_str());
        let (kind, target) = match &self.target {
            Target::Name(name) => ("name", OsStr::new(name)),
            Target::IdFile {
                file,
                is_ours: false,
            } => ("file", file.as_os_str()),
            Target::IdFile {
                file,
                is_ours: true,
            } => ("own file", file.as_os_str()),
        };
        text(OsStr::new(kind));
        text(target);
        text(OsStr::new(&self.args.len().to_string()));
        self.args.iter().for_each(|arg| text(arg));
        text(OsStr::new(&self.env.len().to_string()));
        for (name, value) in &self.env {
            text(name);
            text(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(target: Target) -> Container {
        Container {
            program: "/bin/docker".into(),
            args: ["rm", "-f"].map(OsString::from).to_vec(),
            folder: "/x".into(),
            env: vec![("A".into(), "b\nc".into())],
            target,
        }
    }

    fn both() -> [Container; 2] {
        let file = Target::IdFile {
            file: "/t/id".into(),
            is_ours: true,
        };
        [file, Target::Name("mcp-broker-0-7".to_owned())].map(container)
    }

    #[test]
    fn list_of_containers_is_read_as_written_and_cut_anywhere() {
        let both = both();
        let bytes = render(&both);
        assert_eq!(parse(&bytes), both);
        for end in 0..bytes.len() {
            let read = parse(&bytes[..end]);
            assert!(read.len() < 2 || read == both, "{end}");
        }
        assert!(parse(b"").is_empty());
    }

    #[test]
    fn list_that_was_not_cut_off_yet_is_the_new_one() {
        let both = both();
        let mut bytes = render(&both[1..]);
        bytes.extend(render(&both));
        assert_eq!(parse(&bytes), both[1..]);
    }

    #[test]
    fn record_has_no_variable_and_no_file_of_the_config() {
        let [own, _] = both();
        assert!(own.recorded().expect("recorded").env.is_empty());
        let theirs = container(Target::IdFile {
            file: "/x/id".into(),
            is_ours: false,
        });
        assert_eq!(theirs.recorded(), None);
    }
}
