//! New files: rotation, the removal of older files, and a file that another program has moved.

use std::io;
use std::path::Path;

use crate::file::FileLayer;
use crate::line::{DeletedFile, day_of, rfc3339};
use crate::settings::Rotation;
use crate::writer::Writer;
use crate::writer::names::{folder_of, new_file_name, rotated_files, rotated_name};
use crate::writer::room::{allocate_to, room_of_new_file};
use crate::writer::tail::{first_line, tail_of};

impl Writer {
    /// Whether the next line belongs to a new file.
    pub(super) fn is_rotation_due(&self) -> bool {
        match self.settings.rotate {
            Rotation::Size(bytes) => self.written >= bytes,
            Rotation::Day => {
                let (at, _) = self.shared.now();
                !self.day.is_empty() && day_of(&rfc3339(at)) != self.day
            }
        }
    }

    /// Begins a new file, if it has room for the lines of open calls. Otherwise the old file grows on.
    pub(super) fn rotate(&mut self) {
        self.add_checkpoint();
        if self.flush().is_err() {
            return;
        }
        let path = self.settings.file.clone();
        let new_name = new_file_name(&path);
        let older = rotated_name(&path, self.first_seq);
        let switched = self.switch(&new_name, "rotated", |disk| {
            disk.rename(&path, &older)?;
            disk.rename(&new_name, &path)
                .inspect_err(|_| drop(disk.rename(&older, &path)))
        });
        match switched {
            Ok(()) => self.remove_older_files(),
            Err(error) => {
                tracing::warn!(%error, "the audit log was not rotated, and grows on");
                // What is left of it is removed at the next start.
                drop(self.disk.remove(&new_name));
            }
        }
    }

    /// Opens the file again, if its name is that of another file now.
    pub(super) fn reopen(&mut self) {
        let path = self.settings.file.clone();
        if self.file.is_at(&path) || self.flush().is_err() {
            return;
        }
        if let Err(error) = self.switch(&path, "reopened", |_| Ok(())) {
            tracing::warn!(%error, "the audit log was not opened again; its lines go to the file that was moved");
        }
    }

    /// Continues in another file. It has room for the end lines of open calls before it is used.
    fn switch(
        &mut self,
        path: &Path,
        reason: &str,
        rename: impl FnOnce(&dyn FileLayer) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut file = self.disk.open(path)?;
        if !file.try_lock()? {
            return Err(io::Error::other("another process writes it"));
        }
        let size = file.size()?;
        // Calls that ask for room from now on wait for the writer.
        let (reserved, free) = {
            let mut state = self.shared.lock();
            let free = std::mem::take(&mut state.queue.free_room);
            (state.queue.reserved, free)
        };
        let allocated = size + room_of_new_file(reserved);
        let free_bytes = || self.disk.free_bytes(&folder_of(path));
        let outcome = allocate_to(&mut *file, size, allocated, size, free_bytes)
            .and_then(|()| rename(&*self.disk));
        if let Err(error) = outcome {
            self.shared.lock().queue.free_room += free;
            return Err(error);
        }
        let mut old = std::mem::replace(&mut self.file, file);
        // Bytes that stay allocated behind the end do no harm.
        drop(old.truncate(self.written));
        self.written = size;
        self.allocated = allocated;
        self.control = allocated - size - reserved;
        self.day.clear();
        self.add_start(reason);
        Ok(())
    }

    /// Removes the older files beyond the number that is kept, after a line and a checkpoint that name them are on the disk.
    fn remove_older_files(&mut self) {
        let Some(keep) = self.settings.keep else {
            return;
        };
        let Ok(mut files) = rotated_files(&*self.disk, &self.settings.file) else {
            return;
        };
        files.truncate(files.len().saturating_sub(keep));
        let mut named = Vec::new();
        for (_, path) in files {
            if let Ok(Some(file)) = self.describe(&path)
                && self.add_deleted(file)
            {
                named.push(path);
            }
        }
        if named.is_empty() {
            return;
        }
        self.add_checkpoint();
        if self.new_head.is_none() || self.flush().is_err() {
            return;
        }
        for path in named {
            if let Err(error) = self.disk.remove(&path) {
                tracing::warn!(%error, file = %path.display(), "an older audit log was not removed");
            }
        }
    }

    fn describe(&self, path: &Path) -> io::Result<Option<DeletedFile>> {
        let first = first_line(&mut *self.disk.read(path)?)?;
        let tail = tail_of(&*self.disk, path)?;
        let name = path.file_name().unwrap_or_default();
        Ok(first.zip(tail).map(|((first, _), tail)| DeletedFile {
            file: name.to_string_lossy().into_owned(),
            first,
            last: tail.chain.seq,
            hash: tail.chain.hash,
        }))
    }
}
