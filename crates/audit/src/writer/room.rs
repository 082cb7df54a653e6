//! The room in the file: what is allocated, and for which lines.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::queue::{CallLine, Place, Waiting};
use crate::writer::Writer;
use crate::writer::names::folder_of;

/// The room that is allocated for lines that belong to no call.
const CONTROL_ROOM: u64 = 256 << 10;
/// The room that is allocated at a time for calls.
const CHUNK: u64 = 1 << 20;
/// The room for calls without which none is taken, so that a disk that is full is not asked again for each call.
const MIN_FREE: u64 = 16 << 10;
/// The free bytes beyond the room that a file system must have if it cannot allocate.
const FREE_MARGIN: u64 = 1 << 20;

/// The reservations that the lines of a batch have used up.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Bytes that are not reserved any more.
    reserved: u64,
    /// The bytes of these reservations that the lines did not use.
    free: u64,
    /// Calls whose end line was made.
    ended: usize,
}

impl CallLine {
    /// Returns the room that it asks for.
    const fn need(&self) -> u64 {
        match self {
            Self::Begin { room, end_room, .. } => *room + *end_room,
            Self::Reserve { room, .. } => *room,
            Self::End { .. } => 0,
        }
    }
}

impl Writer {
    /// Reserves room for the calls that ask for it, and takes out those for which there is none.
    pub(super) fn grant(
        &mut self,
        calls: &mut Vec<(u64, Waiting<CallLine>)>,
    ) -> Vec<oneshot::Sender<Place>> {
        let need: u64 = calls.iter().map(|(_, line)| line.line.need()).sum();
        if self.shared.lock().queue.free_room < need {
            // What could not be allocated shows below.
            self.allocate(need);
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let mut refused = Vec::new();
        let mut kept = Vec::with_capacity(calls.len());
        for (lane, line) in calls.drain(..) {
            let need = line.line.need();
            if need == 0 || state.queue.reserve_now(need) {
                kept.push((lane, line));
                continue;
            }
            if let CallLine::Begin { reply, .. } | CallLine::Reserve { reply, .. } = line.line {
                refused.push(reply);
            }
        }
        *calls = kept;
        refused
    }

    /// Takes a reserved line out of the account: what it did not need is free. [`Self::settle_all`] tells the queue.
    pub(super) fn settle(&mut self, room: u64, length: u64, is_end: bool) {
        self.settled.reserved += room;
        self.settled.free += room.saturating_sub(length);
        self.settled.ended += usize::from(is_end);
        self.control = self.control.saturating_sub(length.saturating_sub(room));
    }

    /// Gives back what the lines of a batch have settled: one lock for all of them, since callers wait for it.
    pub(super) fn settle_all(&mut self) {
        let settled = std::mem::take(&mut self.settled);
        let mut state = self.shared.lock();
        let queue = &mut state.queue;
        queue.reserved = queue.reserved.saturating_sub(settled.reserved);
        queue.free_room += settled.free;
        queue.open = queue.open.saturating_sub(settled.ended);
    }

    /// Takes room for a line that belongs to no call.
    pub(super) fn take_control(&mut self, length: u64) -> bool {
        if self.control < length {
            let mut state = self.shared.lock();
            let more = state.queue.free_room.min(length);
            state.queue.free_room -= more;
            self.control += more;
        }
        if self.control < length {
            self.allocate(length);
        }
        let has_room = self.control >= length;
        if has_room {
            self.control -= length;
        }
        has_room
    }

    /// Makes room for the next calls in advance, so that they do not wait for it. Whether
    /// there is enough.
    pub(super) fn fill_room(&mut self) -> bool {
        if self.shared.lock().queue.free_room < CHUNK / 4 || self.control < CONTROL_ROOM / 2 {
            self.allocate(0);
        }
        self.control >= CONTROL_ROOM / 2 && self.shared.lock().queue.free_room >= MIN_FREE
    }

    /// Allocates room: for calls as many bytes as they need, with a chunk in advance if there is space, and what is missing
    /// of the room of other lines.
    fn allocate(&mut self, need: u64) {
        let control = CONTROL_ROOM.saturating_sub(self.control);
        let sizes = [
            control + need + CHUNK,
            control + need + MIN_FREE,
            control + need,
            control,
            need,
        ];
        for more in sizes {
            if more > 0 && self.try_allocate(self.allocated + more).is_ok() {
                self.allocated += more;
                let control = control.min(more);
                self.control += control;
                self.shared.lock().queue.free_room += more - control;
                return;
            }
        }
    }

    fn try_allocate(&mut self, to: u64) -> io::Result<()> {
        let folder = self.folder();
        let free = || self.disk.free_bytes(&folder);
        allocate_to(&mut *self.file, self.allocated, to, self.written, free)
    }

    /// Returns the folder of the file.
    pub(super) fn folder(&self) -> PathBuf {
        folder_of(&self.settings.file)
    }
}

/// Allocates the bytes of a file up to a place. Where the file system cannot allocate, its free space must hold all bytes that
/// are not written yet, and a margin: another program can use that space up before the lines are written.
pub(super) fn allocate_to(
    file: &mut dyn crate::file::LogFile,
    from: u64,
    to: u64,
    written: u64,
    free: impl FnOnce() -> io::Result<u64>,
) -> io::Result<()> {
    match file.allocate(from, to) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            if free()? < to.saturating_sub(written) + FREE_MARGIN {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(())
        }
        outcome => outcome,
    }
}

/// Returns the room that a new file must have: that for the lines of open calls, and that for other lines.
pub(super) const fn room_of_new_file(reserved: u64) -> u64 {
    reserved + CONTROL_ROOM
}
