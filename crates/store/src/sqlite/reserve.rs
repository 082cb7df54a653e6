//! The room on the disk that is reserved for the ends of jobs: a file next to the store whose blocks are allocated.
//!
//! A store that grows inside its file would keep free pages for ends, but the log in front of the file needs room first.
//! So the room is a separate file that is emptied when the disk is full: the next writes find the room in the file system,
//! wherever they need it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::place::{beside, create_options};

/// The reserved bytes: the ends of 1 000 jobs with their errors, and the log of the writes that store them.
const RESERVED_BYTES: u64 = 16 << 20;
/// The time between two attempts to reserve the room again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The reserved room.
#[derive(Debug)]
pub(super) struct Reserve {
    file: File,
    is_full: bool,
    tried: Option<Duration>,
}

impl Reserve {
    /// Opens the file. It may have the room of the last run.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = create_options();
        let file = options
            .create(true)
            .truncate(false)
            .open(beside(path, ".reserve"))?;
        let is_full = file.metadata()?.len() == RESERVED_BYTES;
        Ok(Self {
            file,
            is_full,
            tried: None,
        })
    }

    /// Whether the room is reserved. Tries to reserve it at most once a second.
    pub(super) fn hold(&mut self, now: Duration) -> bool {
        let may_try = self.tried.is_none_or(|tried| now >= tried + RETRY_DELAY);
        if !self.is_full && may_try {
            self.tried = Some(now);
            self.is_full = self.allocate().is_ok();
            if !self.is_full {
                // Half of the room would only take it from others.
                self.empty();
            }
        }
        self.is_full
    }

    /// Gives the room free. Returns whether there was some.
    pub(super) fn release(&mut self, now: Duration) -> bool {
        self.tried = Some(now);
        let had_room = self.is_full;
        self.is_full = false;
        self.empty() && had_room
    }

    fn empty(&self) -> bool {
        self.file.set_len(0).is_ok()
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};

        let flags = FallocateFlags::empty();
        match retry_on_intr(|| fallocate(&self.file, flags, 0, RESERVED_BYTES)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.write_zeros(),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&self) -> io::Result<()> {
        self.write_zeros()
    }

    /// Allocates the blocks by writing them.
    fn write_zeros(&self) -> io::Result<()> {
        use std::os::unix::fs::FileExt as _;

        let zeros = vec![0_u8; 1 << 20];
        for place in (0..RESERVED_BYTES).step_by(zeros.len()) {
            self.file.write_all_at(&zeros, place)?;
        }
        Ok(())
    }
}
