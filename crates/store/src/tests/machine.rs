//! Faults of the machine: a full disk, a read-only file system; and the order of syncs and answers, as the kernel sees it.
//!
//! A test runs a second test of this program by itself, behind the fault.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::{
    Bounds, Clock, Created, Dropped, JobId, JobState, JobStore, MAX_ERROR_BYTES, OpenError,
    StoreError, StoreSettings,
};
use harness::{Output, Run, has_mount_namespaces, in_mount_namespace};

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
    let run = own_test("full_disk_behind_the_fault", folder.path());
    passed(&in_mount_namespace(run, &script).output());
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

/// Whether there is `strace`. With `MCP_BROKER_STRACE=1` it must be there.
fn has_strace() -> bool {
    let found = Run::new(Path::new("sh")).args(["-c", "command -v strace"]);
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
