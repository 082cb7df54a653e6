//! Random operations with kills and power losses: the file holds exactly what was committed, and no job is sent twice.
//!
//! A model is the store in memory, which gets the operations that were committed. A kill leaves the files as they are. A power
//! loss keeps what was synced, and of what was written since then any sectors: the state of the store is then that before the
//! commit in progress or behind it, and never another one. That a commit syncs before it answers is shown in `machine`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{
    Bounds, Engine, EventKind, JobEnd, JobId, JobStart, JobState, ListQuery, MemoryStore, NewEvent,
    Now, SqliteStore, Store,
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::tests::fake::{FakeClock, new_job};

/// The jobs that a run may create.
const SLOTS: usize = 10;
/// The bytes that a disk writes or does not write.
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
enum Op {
    Create {
        slot: usize,
        owner: u8,
        has_key: bool,
        args: u8,
        is_sent: bool,
    },
    Claim(usize),
    Send(usize, bool),
    Append(usize, usize, usize),
    Finish(usize, bool, usize),
    Cancel(usize),
    Requeue(usize),
    Input(usize, bool),
    Pass(u64),
    Jump(bool),
    Expire,
    Commit,
    Rest(u64),
    Kill,
    PowerLoss(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let slot = 0..SLOTS;
    prop_oneof![
        6 => (slot.clone(), 0..3_u8, any::<bool>(), 0..2_u8, 0..4_u8).prop_map(
            |(slot, owner, has_key, args, sent)| Op::Create { slot, owner, has_key, args, is_sent: sent == 0 }
        ),
        5 => slot.clone().prop_map(Op::Claim),
        5 => (slot.clone(), 0..8_u8).prop_map(|(slot, stale)| Op::Send(slot, stale == 0)),
        4 => (slot.clone(), 0..4_usize, 0..200_usize).prop_map(|(slot, number, bytes)| Op::Append(slot, number, bytes)),
        4 => (slot.clone(), any::<bool>(), 0..30_000_usize).prop_map(|(slot, ok, bytes)| Op::Finish(slot, ok, bytes)),
        2 => slot.clone().prop_map(Op::Cancel),
        1 => slot.clone().prop_map(Op::Requeue),
        1 => (slot, any::<bool>()).prop_map(|(slot, is_required)| Op::Input(slot, is_required)),
        1 => (1..4_000_u64).prop_map(Op::Pass),
        1 => any::<bool>().prop_map(Op::Jump),
        1 => Just(Op::Expire),
        6 => Just(Op::Commit),
        1 => any::<u64>().prop_map(Op::Rest),
        1 => Just(Op::Kill),
        3 => any::<u64>().prop_map(Op::PowerLoss),
    ]
}

fn bounds() -> Bounds {
    Bounds {
        result_bytes: 25_000,
        events: 5,
        event_bytes: 400,
        store_bytes: 360_000,
        queued_per_owner: 3,
        unfinished: 6,
    }
}

/// Does an operation, and returns the answer as text.
fn apply(engine: &mut Engine, op: &Op, ids: &[JobId], now: Now) -> String {
    let fence =
        |engine: &mut Engine, id: &JobId| engine.get(id).unwrap().map_or(0, |job| job.fence);
    match op {
        Op::Create {
            slot,
            owner,
            has_key,
            args,
            is_sent,
        } => {
            let owner = ["a", "b"].get(usize::from(*owner)).copied();
            let mut new = new_job(owner);
            new.id = ids[*slot].clone();
            new.key = has_key.then(|| "key".to_owned());
            new.args_sha256[0] = *args;
            if *is_sent {
                new.start = JobStart::Sent;
            }
            format!("{:?}", engine.create(&new, now).unwrap())
        }
        Op::Claim(slot) => format!("{:?}", engine.claim(&ids[*slot], now).unwrap()),
        Op::Send(slot, is_stale) => {
            let fence = fence(engine, &ids[*slot]) + u64::from(*is_stale);
            engine
                .mark_sent(&ids[*slot], fence, now)
                .unwrap()
                .to_string()
        }
        Op::Append(slot, number, bytes) => {
            let fence = fence(engine, &ids[*slot]);
            let event = NewEvent {
                kind: EventKind::Progress,
                body: vec![b'e'; *bytes].into(),
            };
            let events = vec![event; *number];
            let appended = engine.append(&ids[*slot], fence, &events, now).unwrap();
            format!("{appended:?}")
        }
        Op::Finish(slot, is_ok, bytes) => {
            let fence = fence(engine, &ids[*slot]);
            let end = JobEnd {
                state: if *is_ok {
                    JobState::Succeeded
                } else {
                    JobState::Failed
                },
                result: is_ok.then(|| vec![b'r'; *bytes].into()),
                is_error: false,
                error: (!is_ok).then(|| "{}".to_owned()),
            };
            engine
                .finish(&ids[*slot], fence, &end, now)
                .unwrap()
                .to_string()
        }
        Op::Cancel(slot) => format!("{:?}", engine.cancel(&ids[*slot], now).unwrap()),
        Op::Requeue(slot) => {
            let fence = fence(engine, &ids[*slot]);
            engine.requeue(&ids[*slot], fence, now).unwrap().to_string()
        }
        Op::Input(slot, is_required) => {
            let fence = fence(engine, &ids[*slot]);
            engine
                .set_input_required(&ids[*slot], fence, *is_required, now)
                .unwrap()
                .to_string()
        }
        Op::Expire => {
            let mut expired = engine.expire(now).unwrap();
            expired.sort_by(|a, b| a.as_str().cmp(b.as_str()));
            format!("{expired:?}")
        }
        // The start of the next run.
        Op::Kill => {
            let mut recovered = engine.recover(now).unwrap();
            for ids in [
                &mut recovered.lost,
                &mut recovered.requeued,
                &mut recovered.canceled,
            ] {
                ids.sort_by(|a, b| a.as_str().cmp(b.as_str()));
            }
            format!("{recovered:?}")
        }
        Op::Pass(_) | Op::Jump(_) | Op::Commit | Op::Rest(_) | Op::PowerLoss(_) => String::new(),
    }
}

/// Returns everything that readers of a store see.
fn state(engine: &mut Engine, ids: &[JobId]) -> Vec<String> {
    let mut seen = Vec::new();
    for id in ids {
        seen.push(format!(
            "{:?} {:?} {:?} {:?}",
            engine.get(id).unwrap(),
            engine.args(id).unwrap(),
            engine.result(id).unwrap(),
            engine.events(id, 0, 100).unwrap()
        ));
    }
    for owner in [None, Some("a"), Some("b")] {
        seen.push(format!("{:?}", engine.usage(owner).unwrap()));
    }
    seen.push(format!("{:?}", engine.total().unwrap()));
    seen.push(format!("{:?}", engine.queued(2).unwrap()));
    let all = ListQuery {
        all: true,
        limit: 100,
        ..ListQuery::default()
    };
    let page = engine.list(&all).unwrap();
    seen.push(format!("{:?}", page.jobs));
    seen
}

/// The content of the files of a store.
#[derive(Clone)]
struct Image {
    file: Vec<u8>,
    log: Vec<u8>,
}

impl Image {
    fn read(folder: &Path) -> Self {
        Self {
            file: fs::read(folder.join("jobs.db")).unwrap(),
            log: fs::read(folder.join("jobs.db-wal")).unwrap_or_default(),
        }
    }

    fn write(&self, folder: &Path) {
        for (name, bytes) in [("jobs.db", &self.file), ("jobs.db-wal", &self.log)] {
            fs::write(folder.join(name), bytes).unwrap();
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(folder.join("jobs.db"), mode).unwrap();
    }

    /// Returns what a power loss leaves between two syncs. The log is synced before the file is written.
    fn torn(before: &Self, behind: &Self, random: &mut Random) -> Self {
        if random.next().is_multiple_of(2) || behind.file == before.file {
            return Self {
                file: before.file.clone(),
                log: torn(&before.log, &behind.log, random),
            };
        }
        let log = if behind.log.len() < before.log.len() {
            before
        } else {
            behind
        };
        Self {
            file: torn(&before.file, &behind.file, random),
            log: log.log.clone(),
        }
    }
}

/// Mixes the sectors of a file before and behind writes.
fn torn(before: &[u8], behind: &[u8], random: &mut Random) -> Vec<u8> {
    let shortest = before.len().min(behind.len());
    let longest = before.len().max(behind.len());
    let extra = (longest - shortest) as u64 / SECTOR as u64 + 1;
    let length = shortest + usize::try_from(random.next() % extra).unwrap() * SECTOR;
    let mut mixed = vec![0; length];
    for (place, sector) in mixed.chunks_mut(SECTOR).enumerate() {
        let begin = place * SECTOR;
        let from = if random.next().is_multiple_of(2) {
            before
        } else {
            behind
        };
        if let Some(bytes) = from.get(begin..(begin + sector.len()).min(from.len())) {
            sector[..bytes.len()].copy_from_slice(bytes);
        }
    }
    mixed
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 31)
    }
}

/// A store in a file and its model.
struct Run {
    ids: Vec<JobId>,
    clock: FakeClock,
    folder: TempDir,
    engine: Option<Engine>,
    model: Engine,
    /// The operations that were committed, and those since then.
    committed: Vec<(Op, Now)>,
    pending: Vec<(Op, Now)>,
    /// The jobs whose call may be sent: the mark was answered after its commit.
    sent: HashSet<JobId>,
    marked: Vec<JobId>,
}

impl Run {
    fn new() -> Self {
        let mut run = Self {
            ids: (0..SLOTS).map(|_| JobId::random().unwrap()).collect(),
            clock: FakeClock::new(),
            folder: tempfile::tempdir().unwrap(),
            engine: None,
            model: memory(),
            committed: Vec::new(),
            pending: Vec::new(),
            sent: HashSet::new(),
            marked: Vec::new(),
        };
        run.open();
        run
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }

    fn open(&mut self) -> String {
        let store = SqliteStore::open(&self.path(), &self.clock.clock()).unwrap();
        let store: Box<dyn Store> = Box::new(store);
        let engine = self.engine.insert(Engine::new(store, bounds()));
        apply(engine, &Op::Kill, &self.ids, self.clock.now())
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Pass(seconds) => self.clock.pass(Duration::from_secs(seconds)),
            Op::Jump(is_ahead) => {
                let (wall, day) = (self.clock.now().wall, Duration::from_secs(86_400));
                self.clock
                    .jump(if is_ahead { wall + day } else { wall - day });
            }
            Op::Commit => self.commit(),
            Op::Rest(seed) => self.rest(seed),
            Op::Kill => {
                let image = Image::read(self.folder.path());
                self.pending.clear();
                self.restart(&image, false);
            }
            Op::PowerLoss(seed) => {
                let before = Image::read(self.folder.path());
                self.engine().commit().unwrap();
                let behind = Image::read(self.folder.path());
                let image = Image::torn(&before, &behind, &mut Random(seed));
                self.restart(&image, true);
            }
            op => {
                let now = self.clock.now();
                let ids = self.ids.clone();
                let answer = apply(self.engine(), &op, &ids, now);
                let expected = apply(&mut self.model, &op, &ids, now);
                assert_eq!(answer, expected, "{op:?}");
                if let Op::Send(slot, _) = &op
                    && answer == "true"
                {
                    self.marked.push(ids[*slot].clone());
                }
                self.pending.push((op, now));
            }
        }
        let ids = self.ids.clone();
        let seen = state(self.engine(), &ids);
        assert_eq!(seen, state(&mut self.model, &ids));
    }

    fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().unwrap()
    }

    fn commit(&mut self) {
        self.engine().commit().unwrap();
        self.committed.append(&mut self.pending);
        for id in std::mem::take(&mut self.marked) {
            assert!(self.sent.insert(id), "a job is sent twice");
        }
    }

    /// Writes the log into the file, and loses the power while it does.
    fn rest(&mut self, seed: u64) {
        self.commit();
        let before = Image::read(self.folder.path());
        self.engine().rest();
        let behind = Image::read(self.folder.path());
        assert!(behind.log.is_empty());
        let image = Image::torn(&before, &behind, &mut Random(seed | 1));
        // The log is emptied after the file was synced.
        let log = if image.file == behind.file {
            behind.log
        } else {
            before.log
        };
        let image = Image { log, ..image };
        self.restart(&image, false);
    }

    /// Opens the files that a crash left. `may_have_pending`: the crash was in the middle of a commit.
    fn restart(&mut self, image: &Image, may_have_pending: bool) {
        self.engine = None;
        self.marked.clear();
        self.folder = tempfile::tempdir().unwrap();
        image.write(self.folder.path());
        let now = self.clock.now();
        let ids = self.ids.clone();
        let answer = self.open();
        let seen = state(self.engine(), &ids);
        assert_eq!(self.engine().check(true).unwrap(), Vec::<String>::new());
        let pending = std::mem::take(&mut self.pending);
        let mut expected = Vec::new();
        for has_pending in [false, true] {
            let mut ops = self.committed.clone();
            if has_pending {
                ops.extend(pending.iter().cloned());
            }
            let mut model = memory();
            for (op, now) in &ops {
                apply(&mut model, op, &ids, *now);
            }
            ops.push((Op::Kill, now));
            let recovered = apply(&mut model, &Op::Kill, &ids, now);
            let its = state(&mut model, &ids);
            if answer == recovered && seen == its {
                (self.model, self.committed) = (model, ops);
                return;
            }
            expected.push((recovered, its));
            if !may_have_pending {
                break;
            }
        }
        panic!("after a crash there is {answer} {seen:#?}, not one of {expected:#?}");
    }
}

fn memory() -> Engine {
    Engine::new(Box::new(MemoryStore::new()), bounds())
}

/// Returns the number of runs.
fn cases() -> u32 {
    let set = std::env::var("MCP_BROKER_STORE_CRASHES").ok();
    set.map_or(24, |cases| cases.parse().expect("it is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_crash_loses_a_commit_or_sends_a_job_twice(ops in prop::collection::vec(op(), 1..80)) {
        let mut run = Run::new();
        for op in ops {
            run.step(op);
        }
    }
}
