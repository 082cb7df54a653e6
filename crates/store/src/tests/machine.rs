//! Faults of the machine: a full disk, a read-only file system; and the order of syncs and answers, as the kernel sees it.
//!
//! A test runs a second test of this program by itself, behind the fault.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::{
    Bounds, Clock, Created, Dropped, Engine, JobId, JobState, JobStore, MAX_ERROR_BYTES, OpenError,
    SqliteStore, StoreError, StoreSettings,
};
use harness::{Output, Run, has_mount_namespaces, in_mount_namespace, wait_until};

use crate::tests::fake::{failed, new_job, progress, succeeded};

/// The variable with the folder of a test that runs behind a fault. Without it the test does nothing.
const FOLDER: &str = "STORE_TEST_FOLDER";

/// Returns the run of one test of this program.
fn own_test(name: &str, folder: &Path) -> Run {
    let program = std::env::current_exe().unwrap();
    let name = format!("tests::machine::{name}");
    Run::new(&program)
        .args(["--exact", &name, "--nocapture"])
        .env(FOLDER, folder)
}

fn passed(output: &Output) {
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("1 passed"), "{}", output.stdout);
}

/// Returns the path of the store behind a fault.
fn behind() -> Option<PathBuf> {
    let folder = std::env::var_os(FOLDER)?;
    Some(PathBuf::from(folder).join("jobs.db"))
}

async fn try_open(path: &Path) -> Result<JobStore, OpenError> {
    let settings = StoreSettings {
        path: Some(path.to_owned()),
        bounds: Bounds::default(),
        clock: Clock::system(),
    };
    JobStore::open(settings).await.map(|(store, _)| store)
}

/// Fills the file system.
fn fill(path: &Path) {
    let mut file = fs::File::create(path.with_file_name("fill")).unwrap();
    for block in [vec![0_u8; 1 << 20], vec![0; 4_096], vec![0; 1]] {
        while file.write_all(&block).is_ok() {}
    }
}

#[test]
fn full_disk_refuses_new_jobs_and_ends_those_that_exist() {
    if !has_mount_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script =
        format!("mount -t tmpfs -o size=64m none \"${FOLDER}\" || exit 99\nexec \"$0\" \"$@\"");
    for name in [
        "full_disk_behind_the_fault",
        "full_disk_with_expired_jobs_behind_the_fault",
    ] {
        let run = own_test(name, folder.path());
        passed(&in_mount_namespace(run, &script).output());
    }
}

/// The removal of a job needs room before it makes room.
#[tokio::test]
async fn full_disk_with_expired_jobs_behind_the_fault() {
    let Some(path) = behind() else {
        return;
    };
    let store = try_open(&path).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..20 {
        let mut new = new_job(Some("a"));
        new.ttl = std::time::Duration::from_secs(3);
        store.create(new.clone()).await.unwrap();
        let claim = store.claim(&new.id).await.unwrap().expect("it is queued");
        let end = succeeded(vec![b'r'; 100_000]);
        assert!(store.finish(&new.id, claim.fence, end).await.unwrap());
        ids.push(new.id);
    }
    let log = path.with_file_name("jobs.db-wal");
    wait_until("the log is empty", || {
        fs::metadata(&log).unwrap().len() == 0
    });
    fill(&path);
    for id in &ids {
        let begun = tokio::time::Instant::now();
        while store.get(id).await.unwrap().is_some() {
            assert!(begun.elapsed().as_secs() < 30, "the job is removed");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    assert_eq!(store.unavailable(), None);
    assert!(store.check(true).await.unwrap().is_empty());
}

#[tokio::test]
async fn full_disk_behind_the_fault() {
    let Some(path) = behind() else {
        return;
    };
    let store = try_open(&path).await.unwrap();
    let mut claims = Vec::new();
    for number in 0..100 {
        let new = new_job(Some(&format!("owner {number}")));
        store.create(new.clone()).await.unwrap();
        claims.push(store.claim(&new.id).await.unwrap().expect("it is queued"));
    }
    let queued = new_job(Some("a"));
    store.create(queued.clone()).await.unwrap();
    fill(&path);
    // The file may have free pages for some jobs.
    let mut refused = None;
    let mut taken = Vec::new();
    while refused.is_none() {
        let mut new = new_job(Some("b"));
        new.args = vec![b' '; 1 << 20].into();
        match store.create(new.clone()).await {
            Ok(_) => taken.push(new.id),
            Err(error) => refused = Some(error),
        }
    }
    assert_eq!(refused, Some(StoreError::NoSpace));
    assert!(taken.len() < 10, "{}", taken.len());
    end_all(&store, &claims).await;
    assert_eq!(
        store.create(new_job(Some("b"))).await.unwrap_err(),
        StoreError::NoSpace
    );
    assert_eq!(store.unavailable(), None);
    store.close().await;
    // Also a start with a full disk loses no job.
    let store = try_open(&path).await.unwrap();
    let job = store.get(&queued.id).await.unwrap().expect("it is kept");
    assert_eq!(job.state, JobState::Queued);
    for claim in &claims {
        let job = store.get(&claim.job.id).await.unwrap().expect("it is kept");
        assert!(job.state.is_finished());
    }
    fs::remove_file(path.with_file_name("fill")).unwrap();
    let begun = tokio::time::Instant::now();
    loop {
        match store.create(new_job(Some("b"))).await {
            Ok(Created::New(_)) => break,
            Err(StoreError::NoSpace) => {
                // The room is reserved again at most once a second.
                assert!(begun.elapsed() < std::time::Duration::from_secs(30));
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(store.check(true).await.unwrap().is_empty());
}

/// Sends and ends claimed jobs on a full disk: those with a short end, one with a result that has no room.
async fn end_all(store: &JobStore, claims: &[crate::Claim]) {
    let error = format!("\"{}\"", "e".repeat(MAX_ERROR_BYTES - 2));
    for (number, claim) in claims.iter().enumerate() {
        let id: &JobId = &claim.job.id;
        assert!(store.mark_sent(id, claim.fence).await.unwrap());
        // Events may have no room; the job goes on.
        let _dropped = store.append(id, claim.fence, vec![progress("1")]).await;
        let end = if number == 50 {
            succeeded(vec![b'x'; 16 << 20])
        } else {
            failed(&error)
        };
        let state = end.state;
        assert!(store.finish(id, claim.fence, end).await.unwrap());
        let job = store.get(id).await.unwrap().expect("it is kept");
        assert_eq!(job.state, state);
        if number == 50 {
            assert_eq!(job.dropped, Some(Dropped::NoRoom));
        } else {
            assert_eq!(job.error.as_ref(), Some(&error));
        }
    }
}

#[test]
fn read_only_file_system_is_refused() {
    if !has_mount_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs none \"${FOLDER}\" && mount -o remount,ro \"${FOLDER}\" || exit 99\nexec \"$0\" \"$@\""
    );
    let run = own_test("read_only_file_system_behind_the_fault", folder.path());
    passed(&in_mount_namespace(run, &script).output());
}

#[tokio::test]
async fn read_only_file_system_behind_the_fault() {
    let Some(path) = behind() else {
        return;
    };
    let error = try_open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::ReadOnly(_)), "{error}");
}

/// Each answer is behind a sync of everything that was written for it, as the kernel got the calls.
#[test]
fn every_answer_comes_after_the_sync_of_its_writes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let options = [
        "-f",
        "-y",
        "-s",
        "32",
        "-e",
        "trace=write,pwrite64,pwritev,fsync,fdatasync",
        "-o",
        trace.to_str().unwrap(),
    ];
    if !has_strace() {
        return;
    }
    let run = own_test("answers_with_marks", folder.path());
    passed(&run.through("strace", &options).output());
    let trace = fs::read_to_string(trace).unwrap();
    let (mut unsynced, mut marks, mut syncs) = (0, Vec::new(), 0);
    let mut syncing = None;
    for line in trace.lines() {
        let thread = line.split(' ').next();
        let is_log = line.contains("jobs.db-wal>");
        let is_resumed = line.contains("sync resumed>") && syncing == thread;
        let is_synced = is_log && line.contains("sync(") && !line.contains("<unfinished");
        if is_log && line.contains("write") {
            unsynced += 1;
        } else if is_synced || is_resumed {
            (unsynced, syncs, syncing) = (0, syncs + 1, None);
        } else if is_log && line.contains("sync(") {
            syncing = thread;
        } else if line.contains("/marks>") && line.contains("write(") {
            assert_eq!(unsynced, 0, "an answer came before the sync: {line}");
            marks.push(syncs);
        }
    }
    assert_eq!(marks.len(), 7, "{trace}");
    assert!(marks.windows(2).all(|pair| pair[0] < pair[1]), "{marks:?}");
    // Requests that wait together share a sync.
    let shared = marks[6] - marks[5];
    assert!(shared < 30, "60 creations have {shared} syncs");
}

/// Whether there is `strace`, and the kernel lets it trace. With `MCP_BROKER_STRACE=1` it must be so.
fn has_strace() -> bool {
    let found = Run::new(Path::new("sh")).args(["-c", "strace -o /dev/null true"]);
    let has_it = found.output().code == Some(0);
    let is_needed = std::env::var("MCP_BROKER_STRACE").is_ok_and(|value| value == "1");
    assert!(has_it || !is_needed, "install strace");
    has_it
}

#[tokio::test]
async fn answers_with_marks() {
    let Some(path) = behind() else {
        return;
    };
    let store = try_open(&path).await.unwrap();
    let mut marks = fs::File::create(path.with_file_name("marks")).unwrap();
    let mut mark = |text: &str| marks.write_all(text.as_bytes()).unwrap();
    mark("opened");
    let new = new_job(Some("a"));
    store.create(new.clone()).await.unwrap();
    mark("created");
    let claim = store.claim(&new.id).await.unwrap().expect("it is queued");
    mark("claimed");
    assert!(store.mark_sent(&new.id, claim.fence).await.unwrap());
    mark("sent");
    let end = succeeded("r");
    assert!(store.finish(&new.id, claim.fence, end).await.unwrap());
    mark("finished");
    let other = new_job(Some("a"));
    store.create(other.clone()).await.unwrap();
    store.cancel(&other.id).await.unwrap();
    mark("canceled");
    let mut creations = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let store = store.clone();
        creations.spawn(async move { store.create(new_job(Some("b"))).await });
    }
    while let Some(created) = creations.join_next().await {
        created.unwrap().unwrap();
    }
    mark("created 60");
}

/// Kills of a process at any moment: each change that it got an answer for is there, and no job is sent twice.
#[test]
fn killed_process_leaves_every_answered_change() {
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("answers");
    let lines = || {
        let text = fs::read_to_string(&answers).unwrap_or_default();
        // The last line may be cut.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines = text[..whole].lines().map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    for kill in 1..=8_usize {
        let mut child = own_test("changes_until_the_kill", folder.path()).spawn_with_input();
        let wanted = lines().len() + 13 * kill;
        wait_until("the child has answers", || lines().len() >= wanted);
        assert_eq!(child.try_wait().unwrap(), None, "the child goes on");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let store = SqliteStore::open(&folder.path().join("jobs.db"), &Clock::system()).unwrap();
    let mut engine = Engine::new(Box::new(store), Bounds::default());
    let recovered = engine.recover(Clock::system().now()).unwrap();
    assert!(recovered.requeued.len() + recovered.lost.len() <= 1);
    let (mut sent, mut ended) = (std::collections::HashSet::new(), 0);
    for line in lines() {
        let (answer, id) = line.split_once(' ').expect("an answer and an id");
        let id = JobId::parse(id).expect("it is an id");
        let job = engine.get(&id).unwrap().expect("an answered job is there");
        match answer {
            "created" => {}
            "sent" => {
                assert!(job.sent, "{job:?}");
                assert!(sent.insert(id), "a job is sent twice");
            }
            "ended" => {
                assert_eq!(job.state, JobState::Succeeded);
                ended += 1;
            }
            other => panic!("{other}"),
        }
        let is_sent_and_over = !job.sent || job.state.is_finished();
        assert!(is_sent_and_over, "no sent job is left open: {job:?}");
    }
    assert!(ended > 50, "{ended}");
    assert_eq!(engine.check(true).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn changes_until_the_kill() {
    let Some(path) = behind() else {
        return;
    };
    let store = try_open(&path).await.unwrap();
    let mut options = fs::OpenOptions::new();
    let mut answers = options
        .create(true)
        .append(true)
        .open(path.with_file_name("answers"))
        .unwrap();
    let mut answer = |answer: &str, id: &JobId| {
        let line = format!("{answer} {id}\n");
        answers.write_all(line.as_bytes()).unwrap();
    };
    loop {
        let new = new_job(Some("a"));
        store.create(new.clone()).await.unwrap();
        answer("created", &new.id);
        // The oldest may be one that the last run had claimed and not sent.
        let queue = store.queued(1).await.unwrap();
        let id = queue[0].jobs[0].id.clone();
        let claim = store.claim(&id).await.unwrap().expect("it is queued");
        assert!(store.mark_sent(&id, claim.fence).await.unwrap());
        answer("sent", &id);
        let events = vec![progress("1"), progress("2")];
        store.append(&id, claim.fence, events).await.unwrap();
        let end = succeeded("r");
        assert!(store.finish(&id, claim.fence, end).await.unwrap());
        answer("ended", &id);
    }
}
