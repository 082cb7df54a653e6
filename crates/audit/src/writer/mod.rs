//! The thread that makes and writes lines: it takes what waits, allocates room, appends a batch, syncs it, and answers.

mod lines;
pub(crate) mod names;
mod open;
mod rate;
mod room;
mod rotate;
mod tail;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::chain::Chain;
use crate::error::AuditError;
use crate::facts::{CallFacts, Event};
use crate::file::{FileLayer, LogFile};
use crate::head::Head;
use crate::open_call::abandoned;
use crate::queue::{CallLine, LesserLine, Orders, Place, Trouble, Waiting};
use crate::settings::{AuditSettings, CHECKPOINT_INTERVAL, SyncMode};
use crate::shared::{Shared, Sleep, is_short};
use rate::Rate;
use room::Settled;

/// The maximum number of lines of one batch.
const MAX_BATCH: usize = 4096;
/// The time for which lines are collected that no caller waits for.
const LINGER: Duration = Duration::from_millis(20);
/// The time between attempts after an error, and between reports of counted events.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The time between looks at the free space while no line is written.
const SPACE_INTERVAL: Duration = Duration::from_secs(10);

/// The writer.
#[derive(Debug)]
pub(crate) struct Writer {
    disk: Box<dyn FileLayer>,
    settings: AuditSettings,
    shared: Arc<Shared>,
    file: Box<dyn LogFile>,
    /// The chain after the last line that was made.
    chain: Chain,
    /// The number of the first line of the file.
    first_seq: u64,
    /// The day of the first line of the file.
    day: String,
    /// The bytes that were written.
    written: u64,
    /// The bytes that are allocated.
    allocated: u64,
    /// The allocated bytes for lines that belong to no call.
    control: u64,
    /// The bytes of lines that were made and not written yet. A line is never taken back.
    unwritten: Vec<u8>,
    needs_sync: bool,
    /// The lines since the last checkpoint, and when the next one is due.
    since_checkpoint: u64,
    checkpoint_due: Option<Duration>,
    /// The head of a checkpoint that is not on the disk yet, and its time.
    new_head: Option<(Head, String)>,
    /// The time before which a rotation that failed is not tried again.
    rotate_after: Duration,
    rate: Rate,
    /// Whether the file system has space for a short time only.
    is_filling: bool,
    settled: Settled,
}

/// What one step has taken from the queue.
#[derive(Debug)]
struct Work {
    calls: Vec<(u64, Waiting<CallLine>)>,
    events: VecDeque<Waiting<Event>>,
    lesser: VecDeque<Waiting<LesserLine>>,
    missed: u64,
    orders: Orders,
}

/// A begin line that was made.
#[derive(Debug)]
struct Begun {
    lane: u64,
    facts: Arc<CallFacts>,
    seq: u64,
    end_room: u64,
    reply: oneshot::Sender<Place>,
}

impl Writer {
    /// Runs until the log is closed or dropped.
    pub(crate) fn run(&mut self) {
        loop {
            let work = self.next();
            let orders = work.orders;
            if orders.abandon {
                return;
            }
            if orders.reopen {
                self.reopen();
            }
            self.step(work);
            if orders.close && self.stop() {
                return;
            }
        }
    }

    /// Waits for work.
    fn next(&mut self) -> Work {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        loop {
            let now = shared.now();
            state.queue.sweep(now);
            let queue = &state.queue;
            if queue.orders != Orders::default() {
                break;
            }
            if !self.unwritten.is_empty() || queue.trouble.is_some() {
                // Ends have their room also while the disk is full, and wait for the next attempt.
                state = shared.sleep(state, Sleep::UntilOrder, RETRY_INTERVAL);
                break;
            }
            let due = self.checkpoint_due.map(|due| due.saturating_sub(now.1));
            if queue.waiting() > 0 || due == Some(Duration::ZERO) {
                break;
            }
            let mut time = due.unwrap_or(CHECKPOINT_INTERVAL);
            if queue.counts_events() {
                time = time.min(RETRY_INTERVAL);
            } else if queue.space_left_s.is_some() {
                time = time.min(SPACE_INTERVAL);
            }
            state = shared.sleep(state, Sleep::UntilLine, time);
            if state.queue.waiting() == 0 && state.queue.space_left_s.is_some() {
                // A step without lines: the rate falls.
                break;
            }
        }
        if !state.queue.is_urgent() && state.queue.waiting() > 0 {
            state = shared.sleep(state, Sleep::UntilUrgent, LINGER);
        }
        let queue = &mut state.queue;
        let orders = queue.orders;
        queue.orders.reopen = false;
        Work {
            calls: queue.take(MAX_BATCH),
            events: std::mem::take(&mut queue.events),
            lesser: std::mem::take(&mut queue.lesser),
            missed: std::mem::take(&mut queue.missed),
            orders,
        }
    }

    /// Writes what was taken, and answers.
    fn step(&mut self, mut work: Work) {
        if self.is_rotation_due() {
            self.rotate();
        }
        let refused = self.grant(&mut work.calls);
        let mut trouble = (!refused.is_empty()).then_some(Trouble::Full);
        let mut begun = Vec::new();
        if work.missed > 0 && !self.add_gap(work.missed) {
            self.shared.lock().queue.missed += work.missed;
        }
        while let Some(event) = work.events.pop_front() {
            if !self.add_event(&event) {
                trouble = Some(Trouble::Full);
                work.events.push_front(event);
                break;
            }
        }
        for (lane, line) in work.calls {
            begun.extend(self.add_call(lane, line));
        }
        self.settle_all();
        for line in work.lesser {
            if !self.add_lesser(line) {
                self.shared.lock().queue.missed += 1;
            }
        }
        let (_, now) = self.shared.now();
        if self.checkpoint_due.is_some_and(|due| now >= due) {
            self.add_checkpoint();
        }
        let failed = self.flush().err();
        let is_written = failed.is_none();
        if let Some(error) = failed {
            trouble = Some(Trouble::Write(error.to_string()));
        }
        if !self.fill_room() {
            trouble = trouble.or(Some(Trouble::Full));
        }
        let outcome = if is_written {
            Ok(())
        } else {
            Err(trouble.clone())
        };
        // Calls that follow an answer must see the state.
        self.publish(trouble, work.events, is_written);
        self.answer(begun, outcome);
        for reply in refused {
            // A caller that has left needs no answer.
            drop(reply.send(Err(AuditError::Full)));
        }
    }

    /// Writes and syncs what was made.
    fn flush(&mut self) -> io::Result<()> {
        while !self.unwritten.is_empty() {
            let count = match self.file.append(&self.unwritten) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            };
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += count as u64;
            self.rate.count(count as u64);
            self.unwritten.drain(..count);
            self.needs_sync = true;
        }
        if self.settings.sync == SyncMode::Batch {
            self.sync()?;
        }
        if let Some((head, at)) = self.new_head.take() {
            self.publish_head(&head, &at);
        }
        Ok(())
    }

    /// Waits until what was written is on the disk.
    fn sync(&mut self) -> io::Result<()> {
        if self.needs_sync {
            self.file.sync()?;
            self.needs_sync = false;
        }
        Ok(())
    }

    /// Answers the callers whose begin lines were made. A call whose line did not reach the disk is refused, and its end
    /// line says that it was not sent.
    fn answer(&self, begun: Vec<Begun>, outcome: Result<(), Option<Trouble>>) {
        for call in begun {
            let place = match &outcome {
                Ok(()) => Ok(call.seq),
                Err(trouble) => Err(trouble.as_ref().unwrap_or(&Trouble::Full).error()),
            };
            let is_refused = place.is_err();
            if call.reply.send(place).is_err() || is_refused {
                let line = CallLine::End {
                    facts: call.facts,
                    begin: Some(call.seq),
                    end: abandoned(false),
                    room: call.end_room,
                };
                let (at, since) = self.shared.now();
                let mut state = self.shared.lock();
                state.queue.push(call.lane, Waiting { line, at, since });
            }
        }
    }

    /// Publishes the state after a step, and puts back the events that found no room.
    fn publish(
        &mut self,
        trouble: Option<Trouble>,
        events: VecDeque<Waiting<Event>>,
        is_written: bool,
    ) {
        let (_, now) = self.shared.now();
        let folder = self.folder();
        let space_left_s = self
            .rate
            .space_left(now, || self.disk.free_bytes(&folder).ok());
        let mut state = self.shared.lock();
        let queue = &mut state.queue;
        for event in events.into_iter().rev() {
            queue.events.push_front(event);
        }
        if is_written {
            queue.seq = self.chain.seq;
            queue.hash.clone_from(&self.chain.hash);
        }
        queue.space_left_s = space_left_s;
        let file = self.settings.file.display();
        let is_filling = space_left_s.is_some_and(is_short);
        if is_filling != self.is_filling {
            self.is_filling = is_filling;
            match is_filling {
                true => tracing::warn!(
                    %file,
                    space_left_s,
                    "at the current rate the file system of the audit log is full within 10 minutes"
                ),
                false => {
                    tracing::info!(%file, "the file system of the audit log has space again")
                }
            }
        }
        if queue.trouble == trouble {
            return;
        }
        match &trouble {
            Some(Trouble::Full) => {
                tracing::error!(%file, "the file system of the audit log is full")
            }
            Some(Trouble::Write(error)) => {
                tracing::error!(%file, error, "the audit log cannot be written")
            }
            None => tracing::info!(%file, "the audit log is written again"),
        }
        queue.trouble = trouble;
    }

    /// Writes the last lines, and gives back the room. Whether the writer ends now: it does not while lines wait that can
    /// be written.
    fn stop(&mut self) -> bool {
        let is_stuck = !self.unwritten.is_empty() || self.shared.lock().queue.trouble.is_some();
        if !is_stuck && self.shared.lock().queue.waiting() > 0 {
            return false;
        }
        self.add_stop();
        let flushed = self
            .flush()
            .and_then(|()| self.sync())
            .and_then(|()| self.file.truncate(self.written));
        let is_lost = flushed.is_err() || self.shared.lock().queue.waiting() > 0;
        if is_lost {
            let file = self.settings.file.display();
            tracing::error!(%file, "the last lines of the audit log were not written");
        }
        let mut state = self.shared.lock();
        state.queue.seq = self.chain.seq;
        state.queue.hash.clone_from(&self.chain.hash);
        true
    }
}
