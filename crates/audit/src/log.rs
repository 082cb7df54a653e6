//! The log as its callers have it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::error::AuditError;
use crate::facts::{CallEndFacts, CallFacts, Event, ReadFacts, Versions};
use crate::file::{Disk, FileLayer};
use crate::key::AuditKey;
use crate::last_lines;
use crate::line::{begin_room, end_room};
use crate::open_call::{OpenCall, PendingCall};
use crate::queue::{CallLine, Queue, Waiting};
use crate::settings::{AuditSettings, Format};
use crate::shared::{AuditStatus, Shared};
use crate::writer::Writer;

/// An audit log. Cheap to clone. Its lines are made and written on one thread; no function except [`AuditLog::close`]
/// blocks for the disk.
#[derive(Clone, Debug)]
pub struct AuditLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    key: Option<AuditKey>,
    thread: Mutex<Option<JoinHandle<()>>>,
    file: PathBuf,
}

impl AuditLog {
    /// Opens a log, or continues it, and writes the line `start`.
    ///
    /// # Errors
    ///
    /// `Io`, `Locked`, `NotALog`, `Full` and `Write` of [`AuditError`].
    pub fn open(settings: AuditSettings, versions: Arc<Versions>) -> Result<Self, AuditError> {
        Self::open_on(Box::new(Disk), settings, versions)
    }

    /// Opens a log on another file system.
    ///
    /// # Errors
    ///
    /// As for [`AuditLog::open`].
    pub fn open_on(
        disk: Box<dyn FileLayer>,
        settings: AuditSettings,
        versions: Arc<Versions>,
    ) -> Result<Self, AuditError> {
        let queue = Queue::new(settings.queue_lines, versions);
        let clock = settings.clock.clone();
        let shared = Arc::new(Shared::new(queue, clock, settings.format));
        let key = settings.key.clone();
        let file = settings.file.clone();
        let mut writer = Writer::open(disk, settings, Arc::clone(&shared))?;
        let ended = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                let _end = EndOfThread(ended);
                writer.run();
            })
            .map_err(|error| AuditError::Write(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            shared,
            key,
            thread: Mutex::new(Some(thread)),
            file,
        })))
    }

    /// Writes the begin line of a call. When it returns, the line is on the disk, and the end line has its room there.
    ///
    /// # Errors
    ///
    /// `Full`, `Write`, `Busy` and `Closed` of [`AuditError`]: the call must not be sent.
    pub async fn begin(&self, facts: impl Into<Arc<CallFacts>>) -> Result<OpenCall, AuditError> {
        let shared = &self.0.shared;
        let mut facts = facts.into();
        bound(&mut facts);
        let room = end_room(&facts, shared.format);
        let (sender, reply) = oneshot::channel();
        let line = CallLine::Begin {
            facts: Arc::clone(&facts),
            room: begin_room(&facts, shared.format),
            end_room: room,
            reply: sender,
        };
        self.ask(facts, line, reply, room, true)?.wait().await
    }

    /// Makes room for the end line of a call that needs no begin line. It waits only if the file has no allocated room.
    ///
    /// # Errors
    ///
    /// As for [`AuditLog::begin`].
    pub async fn admit(&self, facts: impl Into<Arc<CallFacts>>) -> Result<OpenCall, AuditError> {
        let mut facts = facts.into();
        if let Some(open) = self.admit_now(&mut facts)? {
            return Ok(open);
        }
        let room = end_room(&facts, self.0.shared.format);
        let (sender, reply) = oneshot::channel();
        let line = CallLine::Reserve {
            room,
            reply: sender,
        };
        self.ask(facts, line, reply, room, false)?.wait().await
    }

    /// Does what [`AuditLog::admit`] does if that waits for nothing, else returns `None`.
    ///
    /// # Errors
    ///
    /// As for [`AuditLog::begin`].
    pub fn admit_now(&self, facts: &mut Arc<CallFacts>) -> Result<Option<OpenCall>, AuditError> {
        let shared = &self.0.shared;
        bound(facts);
        let room = end_room(facts, shared.format);
        let lane = shared.lane(&facts.actor);
        let mut state = shared.lock();
        state.queue.check(lane)?;
        let has_room = state.queue.reserve_now(room);
        drop(state);
        let (shared, facts) = (Arc::clone(shared), Arc::clone(facts));
        Ok(has_room.then(|| OpenCall::new(shared, facts, None, room, lane)))
    }

    fn ask(
        &self,
        facts: Arc<CallFacts>,
        line: CallLine,
        reply: oneshot::Receiver<Result<u64, AuditError>>,
        room: u64,
        has_begin: bool,
    ) -> Result<PendingCall, AuditError> {
        let shared = &self.0.shared;
        let lane = shared.lane(&facts.actor);
        let (at, since) = shared.now();
        let mut state = shared.lock();
        state.queue.check(lane)?;
        state.queue.push(lane, Waiting { line, at, since });
        shared.wake(state, true);
        Ok(PendingCall {
            shared: Arc::clone(shared),
            facts,
            reply,
            has_begin,
            room,
            lane,
        })
    }

    /// Hands over the end of a call. It never waits and never fails: the line has its place and its room.
    pub fn end(&self, call: OpenCall, end: CallEndFacts) {
        call.finish(end);
    }

    /// Notes a call that was denied or refused, and not sent. Beyond 10 in a second for a caller, one line a second has
    /// the count.
    pub fn refused(&self, facts: &CallFacts, end: CallEndFacts) {
        let shared = &self.0.shared;
        let lane = shared.lane(&facts.actor);
        let now = shared.now();
        let mut state = shared.lock();
        let copy = || {
            let mut copy = Box::new(facts.clone());
            copy.bound();
            copy
        };
        state.queue.push_refused(lane, copy, &facts.actor, end, now);
        shared.wake(state, false);
    }

    /// Notes a listing, a description or a search. Beyond 100 in a second for a caller, one line a second has the count.
    pub fn read(&self, facts: ReadFacts) {
        let shared = &self.0.shared;
        let facts = Box::new(facts.bounded());
        let lane = shared.lane(&facts.actor);
        let now = shared.now();
        let mut state = shared.lock();
        state.queue.push_read(lane, facts, now);
        shared.wake(state, false);
    }

    /// Notes that a peer's credentials were refused. A peer has one line a minute, with a count.
    pub fn identify_failed(&self, peer: &str, reason: &'static str) {
        let shared = &self.0.shared;
        let now = shared.now();
        let mut state = shared.lock();
        state.queue.push_identify_failed(peer, reason, now);
        shared.wake(state, false);
    }

    /// Notes an event.
    pub fn event(&self, event: Event) {
        let shared = &self.0.shared;
        let (at, since) = shared.now();
        let line = event.bounded();
        let mut state = shared.lock();
        state.queue.push_event(Waiting { line, at, since });
        shared.wake(state, true);
    }

    /// Notes a call that was sent although the log did not take it. The next line that is written is a `gap` with the
    /// count.
    pub fn missed(&self) {
        self.0.shared.lock().queue.missed += 1;
    }

    /// Sets the digests of later lines that belong to no call.
    pub fn set_versions(&self, versions: Arc<Versions>) {
        self.0.shared.lock().queue.versions = versions;
    }

    /// Returns the keyed hash of the JSON text of arguments, if there is a key.
    pub fn hmac(&self, bytes: &[u8]) -> Option<String> {
        self.0.key.as_ref().map(|key| key.hmac(bytes))
    }

    /// Returns the state.
    pub fn status(&self) -> AuditStatus {
        let (_, now) = self.0.shared.now();
        let state = self.0.shared.lock();
        let queue = &state.queue;
        let oldest = queue.oldest().map(|since| now.saturating_sub(since));
        AuditStatus {
            seq: queue.seq,
            hash: queue.hash.clone(),
            lag_lines: queue.waiting(),
            oldest_ms: oldest.map_or(0, |age| age.as_millis().try_into().unwrap_or(u64::MAX)),
            is_available: queue.trouble.is_none() && !queue.orders.close && !queue.orders.abandon,
            space_left_s: queue.space_left_s,
            missed: queue.missed,
        }
    }

    /// Returns the last lines that are on the disk, oldest first: at most 256 KiB of the file that is written now. It
    /// blocks.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or its lines have the form of OCSF.
    pub fn last_lines(&self) -> std::io::Result<Vec<String>> {
        match self.0.shared.format {
            Format::Native => last_lines::read(&self.0.file),
            Format::Ocsf(_) => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }

    /// Opens the file again, after another program has moved it.
    pub fn reopen(&self) {
        let mut state = self.0.shared.lock();
        state.queue.orders.reopen = true;
        self.0.shared.wake(state, true);
    }

    /// Writes what waits, the line `stop` and a checkpoint, and waits for the thread. It blocks.
    pub fn close(&self) {
        let mut state = self.0.shared.lock();
        state.queue.orders.close = true;
        self.0.shared.wake(state, true);
        self.0.join();
    }
}

/// Bounds the texts of facts.
fn bound(facts: &mut Arc<CallFacts>) {
    Arc::make_mut(facts).bound();
}

/// Refuses the calls that wait when the thread ends, also after a panic: their answers would not come.
struct EndOfThread(Arc<Shared>);

impl Drop for EndOfThread {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.queue.orders.abandon = true;
        let lines = state.queue.take(usize::MAX);
        drop(state);
        drop(lines);
    }
}

impl Inner {
    fn join(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the audit log has ended with a panic");
        }
    }
}

impl Drop for Inner {
    /// Ends the thread without `stop`, as if the process was killed after the last write.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.queue.orders.abandon = true;
        self.shared.wake(state, true);
        self.join();
    }
}
