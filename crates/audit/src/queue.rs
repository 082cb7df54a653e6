//! The queue in front of the writer: lanes by caller, which take turns; events, which have their places; and lines that are
//! dropped first. Its bounds are places of lines and room in the file.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use crate::error::AuditError;
use crate::facts::{Actor, CallEndFacts, CallFacts, Event, ReadFacts, Versions, cut};
use crate::throttle::Throttle;

/// The maximum number of calls with a reserved end line.
const MAX_OPEN: usize = 65_536;
/// The maximum bytes of reserved lines: the bound of the memory that waiting lines use.
const MAX_RESERVED_BYTES: u64 = 256 << 20;
/// The maximum number of events that wait while the disk is full.
const MAX_EVENTS: usize = 16_384;
/// The maximum number of lines that are dropped first.
const MAX_LESSER: usize = 1024;
/// The time for which the lines of one caller are counted.
const CALLER_WINDOW: Duration = Duration::from_secs(1);
/// The time for which failed identifications are counted.
const PEER_WINDOW: Duration = Duration::from_secs(60);
/// The lines of refused calls of one caller in a second, before they are counted.
const REFUSED_LINES: u32 = 10;
/// The lines of listings of one caller in a second, before they are counted.
const READ_LINES: u32 = 100;
/// The maximum number of peers with failed identifications.
const MAX_PEERS: usize = 4096;
/// The maximum characters of the address of a peer.
const MAX_PEER_CHARS: usize = 64;
/// The maximum number of lines of failed identifications in a minute. With it a flood adds less than 1 MiB in 10 minutes.
const MAX_PEER_LINES: u32 = 150;

/// The answer to a request for a place: the number of the begin line, 0 without one.
pub(crate) type Place = Result<u64, AuditError>;

/// A line that waits in the lane of its caller.
#[derive(Debug)]
pub(crate) enum CallLine {
    /// A begin line. `room` is for it, `end_room` for the end line.
    Begin {
        facts: Arc<CallFacts>,
        room: u64,
        end_room: u64,
        reply: oneshot::Sender<Place>,
    },
    /// Room for an end line.
    Reserve {
        room: u64,
        reply: oneshot::Sender<Place>,
    },
    /// An end line, whose room is reserved.
    End {
        facts: Arc<CallFacts>,
        begin: Option<u64>,
        end: CallEndFacts,
        room: u64,
    },
}

impl CallLine {
    /// Whether a caller waits for it.
    const fn is_asked(&self) -> bool {
        match self {
            Self::Begin { .. } | Self::Reserve { .. } => true,
            Self::End { .. } => false,
        }
    }
}

/// A line that waits, and since when.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) line: T,
    pub(crate) at: SystemTime,
    pub(crate) since: Duration,
}

/// A line that is dropped before lines of calls.
#[derive(Debug)]
pub(crate) enum LesserLine {
    /// A refused call.
    Refused {
        facts: Box<CallFacts>,
        end: CallEndFacts,
    },
    /// A listing, a description or a search.
    Read(Box<ReadFacts>),
    /// The refused calls or the listings of a caller that have no line.
    Limited { actor: Arc<Actor>, count: u64 },
    /// Credentials of a peer that were refused.
    IdentifyFailed {
        peer: String,
        reason: &'static str,
        count: u64,
    },
}

/// What the writer is asked besides lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// To open the file again.
    pub(crate) reopen: bool,
    /// To write what waits, `stop` and a checkpoint, and to end.
    pub(crate) close: bool,
    /// To end at once.
    pub(crate) abandon: bool,
}

/// Why no call is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No room.
    Full,
    /// Another error.
    Write(String),
}

impl Trouble {
    pub(crate) fn error(&self) -> AuditError {
        match self {
            Self::Full => AuditError::Full,
            Self::Write(error) => AuditError::Write(error.clone()),
        }
    }
}

/// The queue. A lock protects it.
#[derive(Debug)]
pub(crate) struct Queue {
    max_lines: usize,
    lanes: HashMap<u64, VecDeque<Waiting<CallLine>>>,
    turns: VecDeque<u64>,
    /// The lines in lanes.
    lines: usize,
    /// Those of them that a caller waits for.
    asked: usize,
    pub(crate) events: VecDeque<Waiting<Event>>,
    pub(crate) lesser: VecDeque<Waiting<LesserLine>>,
    /// Calls with a reserved end line that has not been written.
    pub(crate) open: usize,
    /// The bytes that are reserved for these lines, and for lines that are being written.
    pub(crate) reserved: u64,
    /// The bytes that are allocated in the file and not reserved.
    pub(crate) free_room: u64,
    pub(crate) orders: Orders,
    pub(crate) trouble: Option<Trouble>,
    /// Calls and events without a line.
    pub(crate) missed: u64,
    refused: Throttle<u64, Arc<Actor>>,
    reads: Throttle<u64, Arc<Actor>>,
    peers: Throttle<String, (String, &'static str)>,
    /// The lines of failed identifications in this minute.
    peer_lines: (Duration, u32),
    pub(crate) versions: Arc<Versions>,
    /// The last written line.
    pub(crate) seq: u64,
    pub(crate) hash: String,
    pub(crate) space_left_s: Option<u64>,
}

impl Queue {
    pub(crate) fn new(max_lines: usize, versions: Arc<Versions>) -> Self {
        Self {
            max_lines,
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            lines: 0,
            asked: 0,
            events: VecDeque::new(),
            lesser: VecDeque::new(),
            open: 0,
            reserved: 0,
            free_room: 0,
            orders: Orders::default(),
            trouble: None,
            missed: 0,
            refused: Throttle::new(CALLER_WINDOW, REFUSED_LINES, MAX_PEERS),
            reads: Throttle::new(CALLER_WINDOW, READ_LINES, MAX_PEERS),
            peers: Throttle::new(PEER_WINDOW, 1, MAX_PEERS),
            peer_lines: (Duration::ZERO, 0),
            versions,
            seq: 0,
            hash: String::new(),
            space_left_s: None,
        }
    }

    /// Refuses a call that the log cannot take now.
    pub(crate) fn check(&self, lane: u64) -> Result<(), AuditError> {
        if self.orders.close || self.orders.abandon {
            return Err(AuditError::Closed);
        }
        if let Some(trouble) = &self.trouble {
            return Err(trouble.error());
        }
        let own = self.lanes.get(&lane).map_or(0, VecDeque::len);
        let is_full = self.lines >= self.max_lines || own >= self.max_lines / 2;
        let has_no_place = self.open >= MAX_OPEN || self.reserved >= MAX_RESERVED_BYTES;
        if is_full || has_no_place {
            return Err(AuditError::Busy);
        }
        Ok(())
    }

    /// Takes room for an end line, if there is enough without an allocation.
    pub(crate) fn reserve_now(&mut self, room: u64) -> bool {
        if self.free_room < room {
            return false;
        }
        self.free_room -= room;
        self.reserved += room;
        self.open += 1;
        true
    }

    /// Gives back the place of an end line.
    pub(crate) fn release(&mut self, room: u64) {
        self.reserved = self.reserved.saturating_sub(room);
        self.free_room += room;
        self.open = self.open.saturating_sub(1);
    }

    /// Adds a line to a lane.
    pub(crate) fn push(&mut self, lane: u64, line: Waiting<CallLine>) {
        self.asked += usize::from(line.line.is_asked());
        let queue = self.lanes.entry(lane).or_default();
        if queue.is_empty() {
            self.turns.push_back(lane);
        }
        queue.push_back(line);
        self.lines += 1;
    }

    /// Takes up to `max` lines of lanes. Lanes take turns, a line each.
    pub(crate) fn take(&mut self, max: usize) -> Vec<(u64, Waiting<CallLine>)> {
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(lane) = self.turns.pop_front()
        {
            let Some(queue) = self.lanes.get_mut(&lane) else {
                continue;
            };
            if let Some(line) = queue.pop_front() {
                self.lines -= 1;
                self.asked -= usize::from(line.line.is_asked());
                taken.push((lane, line));
            }
            if queue.is_empty() {
                self.lanes.remove(&lane);
            } else {
                self.turns.push_back(lane);
            }
        }
        taken
    }

    /// Adds an event. Only a full disk makes events wait; those beyond the bound are counted.
    pub(crate) fn push_event(&mut self, event: Waiting<Event>) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        } else {
            self.missed += 1;
        }
    }

    /// Adds a refused call, or counts it.
    pub(crate) fn push_refused(
        &mut self,
        lane: u64,
        facts: impl FnOnce() -> Box<CallFacts>,
        actor: &Arc<Actor>,
        end: CallEndFacts,
        (at, since): (SystemTime, Duration),
    ) {
        if !self.refused.take(lane, since, || Arc::clone(actor)) {
            return;
        }
        let line = LesserLine::Refused {
            facts: facts(),
            end,
        };
        self.push_lesser(Waiting { line, at, since });
    }

    /// Adds a listing, or counts it.
    pub(crate) fn push_read(
        &mut self,
        lane: u64,
        facts: Box<ReadFacts>,
        (at, since): (SystemTime, Duration),
    ) {
        if self.reads.take(lane, since, || Arc::clone(&facts.actor)) {
            let line = LesserLine::Read(facts);
            self.push_lesser(Waiting { line, at, since });
        }
    }

    /// Adds a failed identification, or counts it.
    pub(crate) fn push_identify_failed(
        &mut self,
        peer: &str,
        reason: &'static str,
        (at, since): (SystemTime, Duration),
    ) {
        let mut peer = peer.to_owned();
        cut(&mut peer, MAX_PEER_CHARS);
        let value = || (peer.clone(), reason);
        if !self.peers.take(peer.clone(), since, value) {
            return;
        }
        if !self.take_peer_line(since) {
            self.peers.count_rest();
            return;
        }
        let line = LesserLine::IdentifyFailed {
            peer,
            reason,
            count: 1,
        };
        self.push_lesser(Waiting { line, at, since });
    }

    /// Whether another line of a failed identification may be written in this minute.
    fn take_peer_line(&mut self, since: Duration) -> bool {
        let (begun, lines) = &mut self.peer_lines;
        if since >= *begun + PEER_WINDOW {
            (*begun, *lines) = (since, 0);
        }
        *lines += 1;
        *lines <= MAX_PEER_LINES
    }

    /// Adds the lines for counted events whose window has ended.
    pub(crate) fn sweep(&mut self, (at, since): (SystemTime, Duration)) {
        let mut lines = Vec::new();
        let mut rest = 0;
        for counted in [&mut self.refused, &mut self.reads] {
            rest += counted.sweep(since, |actor, count| {
                lines.push(LesserLine::Limited {
                    actor: Arc::clone(actor),
                    count,
                });
            });
        }
        if rest > 0 {
            let actor = Arc::new(Actor {
                subject: "*".to_owned(),
                kind: "*".into(),
                ..Actor::default()
            });
            lines.push(LesserLine::Limited { actor, count: rest });
        }
        let mut counts = Vec::new();
        let mut others = self.peers.sweep(since, |(peer, reason), count| {
            counts.push((peer.clone(), *reason, count));
        });
        for (peer, reason, count) in counts {
            if self.take_peer_line(since) {
                lines.push(LesserLine::IdentifyFailed {
                    peer,
                    reason,
                    count,
                });
            } else {
                others += count;
            }
        }
        if others > 0 {
            lines.push(LesserLine::IdentifyFailed {
                peer: "*".to_owned(),
                reason: "other_peers",
                count: others,
            });
        }
        for line in lines {
            self.push_lesser(Waiting { line, at, since });
        }
    }

    /// Whether counted events wait for the end of their window.
    pub(crate) fn counts_events(&self) -> bool {
        !(self.refused.is_idle() && self.reads.is_idle() && self.peers.is_idle())
    }

    fn push_lesser(&mut self, line: Waiting<LesserLine>) {
        let has_room = self.lesser.len() < MAX_LESSER && self.lines < self.max_lines / 2;
        if has_room && self.trouble.is_none() {
            self.lesser.push_back(line);
        } else {
            self.missed += 1;
        }
    }

    /// Whether a caller or an event waits for the next write.
    pub(crate) fn is_urgent(&self) -> bool {
        self.asked > 0
            || !self.events.is_empty()
            || self.orders != Orders::default()
            || self.lines >= self.max_lines / 32
    }

    /// Returns the number of lines that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lines + self.events.len() + self.lesser.len()
    }

    /// Returns the time since which the oldest line waits.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let calls = self.lanes.values().filter_map(VecDeque::front);
        let events = self.events.front().map(|line| line.since);
        let lesser = self.lesser.front().map(|line| line.since);
        calls
            .map(|line| line.since)
            .chain(events)
            .chain(lesser)
            .min()
    }
}
