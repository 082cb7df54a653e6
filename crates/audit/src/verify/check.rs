//! The state of a verification, and what each line does to it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};

use crate::chain::{Chain, hash_of, no_hash, signed_text, unsigned_part};
use crate::line::{DeletedFile, Kind, Line, Torn, parse};
use crate::settings::CHECKPOINT_LINES;
use crate::verify::VerifyOptions;
use crate::verify::read::Lines;
use crate::verify::report::{Anchor, Finding, FindingKind, FoundBy, LeftOpen, Report};

/// The maximum number of calls whose end is awaited.
const MAX_OPEN: usize = 100_000;

/// A verification.
#[derive(Debug)]
pub(super) struct Check<'a> {
    options: &'a VerifyOptions,
    report: Report,
    /// The last line.
    last: Option<Chain>,
    /// The numbers and the hash before the first line, if it is not the first of its stream.
    before_first: Option<(u64, String)>,
    /// Calls without an end line so far.
    open: BTreeMap<u64, LeftOpen>,
    has_untracked: bool,
    since_checkpoint: u64,
    /// Bytes that are not a line, until a `gap` names them.
    torn: Option<TornBytes>,
    head_was_reached: bool,
    place: String,
}

/// Bytes that are not a line.
struct TornBytes {
    bytes: u64,
    hash: Context,
    /// Whether a line feed follows. It counts if another part follows.
    has_line_feed: bool,
    place: String,
}

impl std::fmt::Debug for TornBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} torn bytes", self.bytes)
    }
}

impl<'a> Check<'a> {
    pub(super) fn new(options: &'a VerifyOptions) -> Self {
        Self {
            options,
            report: Report::default(),
            last: None,
            before_first: None,
            open: BTreeMap::new(),
            has_untracked: false,
            since_checkpoint: 0,
            torn: None,
            head_was_reached: false,
            place: String::new(),
        }
    }

    /// Compares the lines of a file.
    pub(super) fn file(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let mut lines = Lines::open(path)?;
        let mut number = 0_u64;
        while let Some(raw) = lines.next()? {
            number += 1;
            self.place = format!("{name}:{number}");
            match parse(raw.bytes) {
                Ok(line) if raw.has_line_feed => self.line(&line, raw.bytes),
                _ => self.not_a_line(raw.bytes, raw.has_line_feed),
            }
        }
        Ok(())
    }

    fn not_a_line(&mut self, bytes: &[u8], has_line_feed: bool) {
        let torn = self.torn.get_or_insert_with(|| TornBytes {
            bytes: 0,
            hash: Context::new(&SHA256),
            has_line_feed: false,
            place: self.place.clone(),
        });
        if torn.has_line_feed {
            torn.bytes += 1;
            torn.hash.update(b"\n");
        }
        torn.bytes += bytes.len() as u64;
        torn.hash.update(bytes);
        torn.has_line_feed = has_line_feed;
    }

    fn line(&mut self, line: &Line<'_>, bytes: &[u8]) {
        self.report.lines += 1;
        self.torn_before(line);
        let hash = hash_of(bytes);
        self.link(line);
        let chain = Chain {
            stream: line.stream.to_string(),
            seq: line.seq,
            hash,
        };
        self.head(&chain);
        self.last = Some(chain);
        self.since_checkpoint += 1;
        match line.kind {
            Kind::Checkpoint => self.checkpoint(line, bytes),
            Kind::CallBegin => self.begin(line),
            Kind::CallEnd => self.end(line),
            Kind::Start => self.start(line),
            Kind::Gap => self.gap(line),
            Kind::Deleted => self.deleted(line.deleted.as_ref()),
            Kind::Stop
            | Kind::IdentifyFailed
            | Kind::Read
            | Kind::Limited
            | Kind::JobClaimed
            | Kind::JobEnded
            | Kind::Withdrawn
            | Kind::Restored
            | Kind::SourceDown
            | Kind::SourceUp
            | Kind::Drift
            | Kind::Reload
            | Kind::KeysChanged => {}
        }
        if self.options.key.is_some() && self.since_checkpoint == CHECKPOINT_LINES + 1 {
            let text = format!(
                "more than {CHECKPOINT_LINES} lines up to line {} have no checkpoint",
                line.seq
            );
            self.find(FindingKind::Missing, FoundBy::Checkpoint, line.seq, text);
        }
    }

    /// Compares a line with the one before.
    fn link(&mut self, line: &Line<'_>) {
        let seq = line.seq;
        let Some(last) = self.last.take() else {
            self.report.stream = line.stream.to_string();
            self.report.first_seq = seq;
            if seq > 1 {
                self.before_first = Some((seq - 1, line.prev.to_string()));
            } else if line.prev != no_hash() {
                let text = format!("line {seq} is the first and names a line before");
                self.find(FindingKind::Changed, FoundBy::Chain, seq, text);
            }
            return;
        };
        let follows = line.prev == last.hash;
        let (kind, text) = if line.stream != last.stream {
            let text = format!("line {seq} of another stream follows line {}", last.seq);
            (FindingKind::Joined, text)
        } else if seq == last.seq + 1 {
            if follows {
                return;
            }
            let text = format!("line {} is not the one that line {seq} follows", last.seq);
            (FindingKind::Changed, text)
        } else if follows {
            let text = format!(
                "line {seq} has the wrong number, it follows line {}",
                last.seq
            );
            (FindingKind::Changed, text)
        } else if seq > last.seq {
            let text = format!("line {seq} follows line {}", last.seq);
            (FindingKind::Missing, text)
        } else {
            let text = format!("line {seq} comes after line {}", last.seq);
            (FindingKind::Reordered, text)
        };
        self.find(kind, FoundBy::Chain, seq, text);
    }

    fn head(&mut self, line: &Chain) {
        let Some(head) = &self.options.head else {
            return;
        };
        if head.seq != line.seq {
            return;
        }
        let is_same_stream = head.stream.is_empty() || head.stream == line.stream;
        if is_same_stream && head.hash == line.hash {
            self.head_was_reached = true;
            self.anchor(line.seq, FoundBy::Head);
        } else if !self.head_was_reached {
            let text = format!("line {} is not the line of the head", line.seq);
            self.head_was_reached = true;
            self.find(FindingKind::Changed, FoundBy::Head, line.seq, text);
        }
    }

    fn checkpoint(&mut self, line: &Line<'_>, bytes: &[u8]) {
        self.since_checkpoint = 0;
        let Some(key) = self.options.key else {
            return;
        };
        let seq = line.seq;
        let text = match (&line.sig, unsigned_part(bytes)) {
            (Some(sig), Some(unsigned)) => {
                let signed = signed_text(&line.stream, seq, unsigned);
                if key.verifies(signed.as_bytes(), sig) {
                    self.anchor(seq, FoundBy::Checkpoint);
                    return;
                }
                format!(
                    "the checkpoint in line {seq} has no signature of the key: this line, or one before, was changed"
                )
            }
            _ => format!("the checkpoint in line {seq} is not signed"),
        };
        self.find(FindingKind::Changed, FoundBy::Checkpoint, seq, text);
    }

    fn begin(&mut self, line: &Line<'_>) {
        if self.open.len() >= MAX_OPEN {
            self.has_untracked = true;
            return;
        }
        let call = LeftOpen {
            seq: line.seq,
            at: line.at.to_string(),
            subject: line
                .actor
                .as_ref()
                .map_or_else(String::new, |actor| actor.subject.clone()),
            path: line
                .target
                .as_ref()
                .map_or_else(String::new, |target| target.path.as_ref().to_owned()),
        };
        self.open.insert(line.seq, call);
    }

    fn end(&mut self, line: &Line<'_>) {
        let Some(begin) = line.begin else {
            return;
        };
        let is_known = self.open.remove(&begin).is_some();
        if !is_known && begin >= self.report.first_seq && !self.has_untracked {
            let seq = line.seq;
            let text =
                format!("line {seq} ends the call of line {begin}, which does not begin one");
            self.find(FindingKind::Missing, FoundBy::Chain, seq, text);
        }
    }

    /// Calls that an earlier broker left open have no end line later.
    fn start(&mut self, line: &Line<'_>) {
        let code = line.code.as_ref().and_then(|code| code.0.as_deref());
        if code == Some("opened") {
            self.list_open();
        }
    }

    fn list_open(&mut self) {
        for call in std::mem::take(&mut self.open).into_values() {
            self.report.add_open(call);
        }
    }

    fn gap(&mut self, line: &Line<'_>) {
        if let Some(count) = line.count {
            let note = format!(
                "line {}: {count} calls or events before it have no line",
                line.seq
            );
            self.report.note(note);
        }
    }

    /// Compares bytes that are not a line with what the next line says about them.
    fn torn_before(&mut self, line: &Line<'_>) {
        let Some(torn) = self.torn.take() else {
            return;
        };
        let found = Torn {
            bytes: torn.bytes,
            hash: HEXLOWER.encode(torn.hash.finish().as_ref()),
        };
        if line.torn.as_ref() == Some(&found) {
            let note = format!(
                "line {}: a write of {} bytes before it broke off",
                line.seq, found.bytes
            );
            self.report.note(note);
            return;
        }
        let text = format!(
            "{} bytes before line {} are not a line",
            found.bytes, line.seq
        );
        self.place = torn.place;
        self.find(FindingKind::Changed, FoundBy::Chain, line.seq, text);
    }

    fn deleted(&mut self, file: Option<&DeletedFile>) {
        let Some(file) = file else {
            return;
        };
        let before = (file.last, file.hash.clone());
        if self.before_first.as_ref() == Some(&before) {
            self.before_first = None;
            let note = format!(
                "the lines up to {} were removed with older files, the last of which was `{}`",
                file.last, file.file
            );
            self.report.note(note);
        }
    }

    fn anchor(&mut self, seq: u64, by: FoundBy) {
        if self.report.anchor.is_none_or(|anchor| anchor.seq < seq) {
            self.report.anchor = Some(Anchor { seq, by });
        }
    }

    fn find(&mut self, kind: FindingKind, by: FoundBy, seq: u64, text: String) {
        self.report.add(Finding {
            kind,
            by,
            seq,
            place: self.place.clone(),
            text,
        });
    }

    /// Returns the report.
    pub(super) fn finish(mut self, files: usize) -> Report {
        self.report.files = files;
        if let Some(last) = self.last.take() {
            self.report.last_seq = last.seq;
            self.report.last_hash = last.hash;
        }
        let last = self.report.last_seq;
        if let Some(torn) = self.torn.take() {
            self.place = torn.place;
            let text = format!("{} bytes behind line {last} are not a line", torn.bytes);
            self.find(FindingKind::Cut, FoundBy::Chain, last, text);
        }
        if let Some((seq, _)) = self.before_first.take() {
            let text = format!(
                "the lines up to {seq} are in no file, and no line says that they were removed"
            );
            self.find(FindingKind::Missing, FoundBy::Chain, seq, text);
        }
        if let Some(head) = &self.options.head
            && !self.head_was_reached
        {
            let (kind, text) = if head.seq > last {
                let text = format!(
                    "the lines from {} to {}, the head, are missing",
                    last + 1,
                    head.seq
                );
                (FindingKind::Cut, text)
            } else {
                let text = format!("line {}, the head, is in no file", head.seq);
                (FindingKind::Missing, text)
            };
            self.find(kind, FoundBy::Head, head.seq, text);
        }
        self.list_open();
        let anchored = self.report.anchor.map_or(0, |anchor| anchor.seq);
        self.report.unprotected_lines = match self.report.anchor {
            Some(_) => last.saturating_sub(anchored),
            None => self.report.lines,
        };
        let (has_key, has_head) = (self.options.key.is_some(), self.options.head.is_some());
        self.report.limit(has_key, has_head);
        self.report
    }
}
