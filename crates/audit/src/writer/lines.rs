//! The lines that the writer makes, each into the buffer of the batch.

use std::sync::Arc;
use std::time::SystemTime;

use crate::chain::{hash_of, signed_text, unsigned_part};
use crate::facts::{Event, Versions};
use crate::head::{Head, envelope};
use crate::line::{
    DeletedFile, Kind, Line, Nullable, Stamp, Torn, call_begin, call_end, day_of, event_line,
    identify_failed, limited, lock_member, plain, read, rfc3339, write,
};
use crate::queue::{CallLine, LesserLine, Waiting};
use crate::settings::{CHECKPOINT_INTERVAL, CHECKPOINT_LINES};
use crate::writer::{Begun, Writer};

impl Writer {
    /// Adds the lines of a call. Their room is reserved.
    pub(super) fn add_call(&mut self, lane: u64, line: Waiting<CallLine>) -> Option<Begun> {
        let mut begun = None;
        match line.line {
            CallLine::Reserve { room, reply } => {
                if reply.send(Ok(0)).is_err() {
                    self.shared.lock().queue.release(room);
                }
                return None;
            }
            CallLine::Begin {
                facts,
                room,
                end_room,
                reply,
            } => {
                let stamp = self.stamp_with(line.at, &facts.versions);
                let bytes = self.render(&call_begin(&stamp, &facts));
                self.settle(room, bytes.len() as u64 + 1, false);
                self.add(bytes, line.at);
                begun = Some(Begun {
                    lane,
                    facts,
                    seq: self.chain.seq,
                    end_room,
                    reply,
                });
            }
            CallLine::End {
                facts,
                begin,
                end,
                room,
            } => {
                let stamp = self.stamp_with(line.at, &facts.versions);
                let bytes = self.render(&call_end(&stamp, &facts, begin, &end));
                self.settle(room, bytes.len() as u64 + 1, true);
                self.add(bytes, line.at);
            }
        }
        self.add_full_checkpoint();
        begun
    }

    /// Adds the line of an event, if there is room.
    pub(super) fn add_event(&mut self, event: &Waiting<Event>) -> bool {
        if let Event::Reload { versions, .. } = &event.line {
            self.shared.lock().queue.versions = versions.clone();
        }
        let stamp = self.stamp(event.at);
        self.add_control(event.at, &event_line(&stamp, &event.line))
    }

    /// Adds a line that is dropped first, if there is room.
    pub(super) fn add_lesser(&mut self, line: Waiting<LesserLine>) -> bool {
        let stamp = &self.stamp(line.at);
        let text = match &line.line {
            LesserLine::Refused { facts, end } => call_end(stamp, facts, None, end),
            LesserLine::Read(facts) => read(stamp, facts),
            LesserLine::Limited { actor, count } => limited(stamp, actor, *count),
            LesserLine::IdentifyFailed {
                peer,
                reason,
                count,
            } => identify_failed(stamp, peer, reason, *count),
        };
        self.add_control(line.at, &text)
    }

    /// Adds a line that says how many calls and events have no line, if there is room.
    pub(super) fn add_gap(&mut self, missed: u64) -> bool {
        let (at, _) = self.shared.now();
        let stamp = self.stamp(at);
        let line = Line {
            code: Some(Nullable(Some("not_recorded".into()))),
            count: Some(missed),
            ..plain(&stamp, Kind::Gap)
        };
        self.add_control(at, &line)
    }

    /// Adds a line about the torn end of the file.
    pub(super) fn add_torn(&mut self, torn: Torn) -> bool {
        let (at, _) = self.shared.now();
        let stamp = self.stamp(at);
        let line = Line {
            code: Some(Nullable(Some("torn".into()))),
            torn: Some(torn),
            ..plain(&stamp, Kind::Gap)
        };
        self.add_control(at, &line)
    }

    /// Adds the line of a file that will be removed.
    pub(super) fn add_deleted(&mut self, file: DeletedFile) -> bool {
        let (at, _) = self.shared.now();
        let stamp = self.stamp(at);
        let line = Line {
            deleted: Some(file),
            ..plain(&stamp, Kind::Deleted)
        };
        self.add_control(at, &line)
    }

    /// Adds the first line of a broker or of a file.
    pub(super) fn add_start(&mut self, reason: &str) -> bool {
        let (at, _) = self.shared.now();
        let broker = self.settings.broker_version.clone();
        let stamp = self.stamp(at);
        let line = Line {
            code: Some(Nullable(Some(reason.into()))),
            broker: Some(broker.as_str().into()),
            lock: lock_member(&stamp.versions),
            ..plain(&stamp, Kind::Start)
        };
        self.add_control(at, &line)
    }

    /// Adds the last line of a broker, and a checkpoint.
    pub(super) fn add_stop(&mut self) {
        let (at, _) = self.shared.now();
        let stamp = self.stamp(at);
        self.add_control(at, &plain(&stamp, Kind::Stop));
        self.add_checkpoint();
    }

    /// Adds a checkpoint, if there is room. It signs the bytes of its line before the signature.
    pub(super) fn add_checkpoint(&mut self) {
        let (at, _) = self.shared.now();
        let key = self.settings.key.clone();
        let stamp = self.stamp(at);
        let mut line = plain(&stamp, Kind::Checkpoint);
        if let Some(key) = &key {
            line.key_id = Some(key.public().id().into());
            line.sig = Some("".into());
            let bytes = self.render(&line);
            let unsigned = unsigned_part(&bytes).unwrap_or(&bytes);
            let text = signed_text(&stamp.stream, stamp.seq, unsigned);
            line.sig = Some(key.sign(text.as_bytes()).into());
        }
        let bytes = self.render(&line);
        if !self.take_control(bytes.len() as u64 + 1) {
            return;
        }
        self.add(bytes, at);
        self.since_checkpoint = 0;
        self.checkpoint_due = None;
        let head = Head {
            stream: self.chain.stream.clone(),
            seq: self.chain.seq,
            hash: self.chain.hash.clone(),
        };
        self.new_head = Some((head, rfc3339(at)));
    }

    /// Adds a checkpoint if enough lines were added since the last one.
    fn add_full_checkpoint(&mut self) {
        if self.since_checkpoint >= CHECKPOINT_LINES {
            self.add_checkpoint();
        }
    }

    /// Adds a line that belongs to no call, if there is room.
    fn add_control(&mut self, at: SystemTime, line: &Line<'_>) -> bool {
        let bytes = self.render(line);
        if !self.take_control(bytes.len() as u64 + 1) {
            return false;
        }
        self.add(bytes, at);
        self.add_full_checkpoint();
        true
    }

    /// Returns the members of the next line that every line has, with the versions in force.
    fn stamp(&self, at: SystemTime) -> Stamp {
        let versions = Arc::clone(&self.shared.lock().queue.versions);
        self.stamp_with(at, &versions)
    }

    /// Returns the members of the next line that every line has. It takes no lock: callers wait for the queue.
    fn stamp_with(&self, at: SystemTime, versions: &Arc<Versions>) -> Stamp {
        Stamp {
            seq: self.chain.seq + 1,
            prev: self.chain.hash.clone(),
            at: rfc3339(at),
            stream: self.chain.stream.clone(),
            versions: Arc::clone(versions),
        }
    }

    /// Returns the bytes of a line.
    fn render(&self, line: &Line<'_>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1024);
        write(line, self.settings.format, &mut bytes);
        bytes
    }

    /// Adds a line to the batch and to the chain.
    fn add(&mut self, bytes: Vec<u8>, at: SystemTime) {
        self.chain.seq += 1;
        self.chain.hash = hash_of(&bytes);
        if self.day.is_empty() {
            self.day = day_of(&rfc3339(at)).to_owned();
            self.first_seq = self.chain.seq;
        }
        if let Some(copy) = &self.settings.copy {
            copy.take(&bytes, at);
        }
        self.unwritten.extend_from_slice(&bytes);
        self.unwritten.push(b'\n');
        self.since_checkpoint += 1;
        if self.checkpoint_due.is_none() {
            let (_, now) = self.shared.now();
            self.checkpoint_due = Some(now + CHECKPOINT_INTERVAL);
        }
    }

    /// Publishes the head of a checkpoint that is on the disk: to the ordinary log, and to a file if it is signed.
    pub(super) fn publish_head(&self, head: &Head, at: &str) {
        let Head { stream, seq, hash } = head;
        tracing::info!(stream, seq, hash, "checkpoint of the audit log");
        let Some(key) = &self.settings.key else {
            return;
        };
        let mut path = self.settings.file.clone().into_os_string();
        path.push(".head.dsse.json");
        let text = envelope(head, at, key);
        if let Err(error) = self.disk.replace(path.as_ref(), text.as_bytes()) {
            tracing::warn!(%error, "the head of the audit log was not written");
        }
    }
}
