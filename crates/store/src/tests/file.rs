//! The file: who may open it, which files are refused and left as they are, and what is noticed while it is open.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{
    Bounds, Clock, Created, Engine, JobStore, OpenError, SqliteStore, StoreError, StoreSettings,
};
use tempfile::TempDir;

use crate::tests::fake::{FakeClock, TTL, new_job, succeeded};

/// The folder of a store, and its settings.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }

    fn beside(&self, end: &str) -> PathBuf {
        self.folder.path().join(format!("jobs.db{end}"))
    }

    fn settings(&self) -> StoreSettings {
        StoreSettings {
            path: Some(self.path()),
            bounds: Bounds::default(),
            clock: Clock::system(),
        }
    }

    async fn open(&self) -> JobStore {
        self.try_open().await.unwrap()
    }

    async fn try_open(&self) -> Result<JobStore, OpenError> {
        JobStore::open(self.settings())
            .await
            .map(|(store, _)| store)
    }

    /// Makes a store with an ended job, and closes it.
    async fn filled(&self) {
        let store = self.open().await;
        run(&store).await;
        store.close().await;
    }
}

/// Runs a job to its end.
async fn run(store: &JobStore) {
    let new = new_job(Some("a"));
    store.create(new.clone()).await.unwrap();
    let claim = store.claim(&new.id).await.unwrap().expect("it is queued");
    assert!(store.mark_sent(&new.id, claim.fence).await.unwrap());
    let end = succeeded("result");
    assert!(store.finish(&new.id, claim.fence, end).await.unwrap());
}

/// Overwrites bytes of a file.
fn patch(path: &Path, at: usize, bytes: &[u8]) {
    let mut content = fs::read(path).unwrap();
    content[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).unwrap();
}

#[tokio::test]
async fn second_opener_is_refused_until_the_first_closes() {
    let folder = Folder::new();
    let first = folder.open().await;
    run(&first).await;
    let link = folder.folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    for path in [folder.path(), link] {
        let mut settings = folder.settings();
        settings.path = Some(path);
        let error = JobStore::open(settings).await.unwrap_err();
        let OpenError::InUse { holder, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(*holder, format!("the process {}", std::process::id()));
    }
    let checked = SqliteStore::check_file(&folder.path(), &Clock::system());
    assert!(matches!(checked, Err(OpenError::InUse { .. })));
    run(&first).await;
    first.close().await;
    let second = folder.open().await;
    assert_eq!(second.counts().await.unwrap().finished, 2);
}

#[tokio::test]
async fn other_program_cannot_write_the_file_while_it_is_open() {
    let folder = Folder::new();
    let store = folder.open().await;
    run(&store).await;
    let other = rusqlite::Connection::open(folder.path()).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    assert!(other.execute("DELETE FROM job", []).is_err());
    drop(other);
    run(&store).await;
    assert_eq!(store.counts().await.unwrap().finished, 2);
}

#[tokio::test]
async fn file_that_another_program_holds_is_in_use() {
    let folder = Folder::new();
    folder.filled().await;
    let other = rusqlite::Connection::open(folder.path()).unwrap();
    other
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM event;")
        .unwrap();
    let error = folder.try_open().await.unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(other);
    assert_eq!(folder.open().await.counts().await.unwrap().finished, 1);
}

#[tokio::test]
async fn files_of_a_store_are_read_by_their_user_only() {
    let folder = Folder::new();
    let store = folder.open().await;
    run(&store).await;
    let modes = || {
        let mut modes = Vec::new();
        for entry in fs::read_dir(folder.folder.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            modes.push((name, entry.metadata().unwrap().permissions().mode() & 0o777));
        }
        modes.sort();
        modes
    };
    let names = ["jobs.db", "jobs.db-wal", "jobs.db.lock", "jobs.db.reserve"];
    assert_eq!(modes(), names.map(|name| (name.to_owned(), 0o600)));
    store.close().await;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o666)).unwrap();
    let store = folder.open().await;
    run(&store).await;
    assert_eq!(modes(), names.map(|name| (name.to_owned(), 0o600)));
}

#[tokio::test]
async fn newer_version_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    folder.filled().await;
    patch(&folder.path(), 60, &2_u32.to_be_bytes());
    let before = fs::read(folder.path()).unwrap();
    let error = folder.try_open().await.unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::Newer {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(fs::read(folder.path()).unwrap(), before);
    assert!(!folder.beside("-wal").exists());
}

#[tokio::test]
async fn file_that_is_not_a_store_is_refused_and_left_as_it_is() {
    let text = Folder::new();
    fs::write(text.path(), "{\"jobs\": []}").unwrap();
    let other = Folder::new();
    rusqlite::Connection::open(other.path())
        .unwrap()
        .execute_batch("CREATE TABLE mine (a)")
        .unwrap();
    let cut = Folder::new();
    cut.filled().await;
    fs::write(cut.path(), &fs::read(cut.path()).unwrap()[..40]).unwrap();
    for folder in [text, other, cut] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o600)).unwrap();
        let before = fs::read(folder.path()).unwrap();
        let error = folder.try_open().await.unwrap_err();
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
        assert_eq!(fs::read(folder.path()).unwrap(), before);
    }
    let folder = Folder::new();
    fs::create_dir(folder.path()).unwrap();
    let error = folder.try_open().await.unwrap_err();
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
}

#[tokio::test]
async fn damaged_file_is_refused_and_left_as_it_is() {
    let pages = Folder::new();
    pages.filled().await;
    let size = fs::metadata(pages.path()).unwrap().len();
    for page in 1..size / 4_096 {
        let at = usize::try_from(page * 4_096).unwrap();
        patch(&pages.path(), at, &[0xaa; 64]);
    }
    let tables = Folder::new();
    tables.filled().await;
    rusqlite::Connection::open(tables.path())
        .unwrap()
        .execute_batch("DROP TRIGGER job_removed")
        .unwrap();
    let cut = Folder::new();
    cut.filled().await;
    let whole = fs::read(cut.path()).unwrap();
    fs::write(cut.path(), &whole[..whole.len() / 2]).unwrap();
    let index = Folder::new();
    index.filled().await;
    let root: i64 = rusqlite::Connection::open(index.path())
        .unwrap()
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'job_owner'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    // No start reads this index, only the check does.
    let at = usize::try_from(root - 1).unwrap() * 4_096;
    patch(&index.path(), at, &[0xaa; 64]);
    for folder in [pages, tables, cut, index] {
        let before = fs::read(folder.path()).unwrap();
        let error = folder.try_open().await.unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert_eq!(fs::read(folder.path()).unwrap(), before);
    }
}

#[tokio::test]
async fn log_without_its_store_is_not_read_into_a_new_one() {
    let folder = Folder::new();
    fs::write(folder.beside("-wal"), "of another file").unwrap();
    let error = folder.try_open().await.unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(!folder.path().exists());
    let log = fs::read(folder.beside("-wal")).unwrap();
    assert_eq!(log, b"of another file");
}

#[tokio::test]
async fn file_that_its_user_may_not_write_is_refused() {
    let folder = Folder::new();
    folder.filled().await;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o400)).unwrap();
    let error = folder.try_open().await.unwrap_err();
    assert!(matches!(error, OpenError::ReadOnly(_)), "{error}");
    let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
}

#[tokio::test]
async fn folder_that_does_not_exist_is_named() {
    let folder = Folder::new();
    let mut settings = folder.settings();
    settings.path = Some(folder.folder.path().join("missing/jobs.db"));
    let error = JobStore::open(settings).await.unwrap_err();
    assert!(error.to_string().contains("missing/jobs.db"), "{error}");
}

#[tokio::test]
async fn links_in_the_place_of_its_own_files_are_not_followed() {
    for end in [".lock", ".reserve"] {
        let folder = Folder::new();
        let victim = folder.folder.path().join("victim");
        fs::write(&victim, "text of a victim").unwrap();
        std::os::unix::fs::symlink(&victim, folder.beside(end)).unwrap();
        assert!(folder.try_open().await.is_err(), "{end}");
        assert_eq!(fs::read(&victim).unwrap(), b"text of a victim");
    }
}

#[tokio::test]
async fn half_made_file_of_an_earlier_start_is_made_again() {
    let folder = Folder::new();
    fs::write(folder.beside(".new"), "half").unwrap();
    fs::write(folder.path(), "").unwrap();
    let store = folder.open().await;
    run(&store).await;
    assert!(!folder.beside(".new").exists());
}

#[tokio::test]
async fn file_that_is_swapped_makes_the_store_unavailable_and_is_left_alone() {
    let folder = Folder::new();
    let other = Folder::new();
    other.filled().await;
    let store = folder.open().await;
    run(&store).await;
    let mut watch = store
        .subscribe(&new_job(None).id)
        .expect("there is a place");
    fs::rename(other.path(), folder.path()).unwrap();
    fs::write(folder.beside("-wal.other"), "log of the other file").unwrap();
    fs::rename(folder.beside("-wal.other"), folder.beside("-wal")).unwrap();
    let before = fs::read(folder.path()).unwrap();
    let error = store.create(new_job(Some("a"))).await.unwrap_err();
    let StoreError::Unavailable { reason } = &error else {
        panic!("{error}");
    };
    assert!(reason.contains("was replaced or removed"), "{reason}");
    assert!(!watch.changed().await);
    assert_eq!(store.unavailable().as_ref(), Some(reason));
    assert!(store.counts().await.is_err());
    store.close().await;
    assert_eq!(fs::read(folder.path()).unwrap(), before);
    let log = fs::read(folder.beside("-wal")).unwrap();
    assert_eq!(log, b"log of the other file");
}

#[tokio::test]
async fn log_that_is_removed_makes_the_store_unavailable() {
    let folder = Folder::new();
    let store = folder.open().await;
    run(&store).await;
    fs::remove_file(folder.beside("-wal")).unwrap();
    assert!(matches!(
        store.create(new_job(Some("a"))).await,
        Err(StoreError::Unavailable { .. })
    ));
}

#[tokio::test]
async fn erased_arguments_and_results_are_in_no_file_after_a_rest() {
    let folder = Folder::new();
    let store = folder.open().await;
    let new = new_job(Some("a"));
    store.create(new.clone()).await.unwrap();
    let holds = |text: &str| {
        let files = [folder.path(), folder.beside("-wal")].map(|file| fs::read(file).unwrap());
        files.iter().any(|bytes| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        })
    };
    assert!(holds("argument-text"));
    let claim = store.claim(&new.id).await.unwrap().expect("it is queued");
    assert!(store.mark_sent(&new.id, claim.fence).await.unwrap());
    let begun = tokio::time::Instant::now();
    while holds("argument-text") {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is erased");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let end = succeeded("text of the result");
    assert!(store.finish(&new.id, claim.fence, end).await.unwrap());
    assert!(holds("text of the result"));
}

#[tokio::test]
async fn jobs_of_the_last_run_are_there_after_a_restart() {
    let folder = Folder::new();
    let store = folder.open().await;
    let new = new_job(Some("a"));
    assert!(store.is_durable());
    let Created::New(job) = store.create(new.clone()).await.unwrap() else {
        panic!("the job is new");
    };
    store.close().await;
    assert!(matches!(
        store.create(new_job(None)).await,
        Err(StoreError::Unavailable { .. })
    ));
    let (store, recovered) = JobStore::open(folder.settings()).await.unwrap();
    assert_eq!(recovered.queued, 1);
    assert_eq!(store.get(&new.id).await.unwrap(), Some(*job));
    assert_eq!(store.args(&new.id).await.unwrap(), Some(new.args));
    assert!(store.check(true).await.unwrap().is_empty());
    store.close().await;
    let faults = SqliteStore::check_file(&folder.path(), &Clock::system()).unwrap();
    assert!(faults.is_empty());
}

#[tokio::test]
async fn full_check_names_what_the_rows_do_not_agree_on() {
    let folder = Folder::new();
    folder.filled().await;
    rusqlite::Connection::open(folder.path())
        .unwrap()
        .execute_batch(
            "INSERT INTO event VALUES (99, 1, 0, 'status', x''); UPDATE usage SET bytes = 7 WHERE owner = '=a';
             DELETE FROM body",
        )
        .unwrap();
    let faults = SqliteStore::check_file(&folder.path(), &Clock::system()).unwrap();
    assert_eq!(
        faults,
        [
            "events without a job: 1",
            "results of another size than their job says: 1",
            "owners with other numbers than their jobs give: 1",
        ]
    );
}

/// After another start of the machine only the stored time says what is left of it.
#[test]
fn after_a_start_of_the_machine_a_result_has_at_most_its_time_again() {
    let folder = Folder::new();
    let clock = FakeClock::new();
    let open = |clock: Clock| {
        let store = SqliteStore::open(&folder.path(), &clock).unwrap();
        let mut engine = Engine::new(Box::new(store), Bounds::default());
        engine.recover(clock.now()).unwrap();
        engine
    };
    let mut engine = open(clock.clock());
    let new = new_job(Some("a"));
    let now = clock.now();
    engine.create(&new, now).unwrap().unwrap();
    let fence = engine
        .claim(&new.id, now)
        .unwrap()
        .expect("it is queued")
        .fence;
    engine.finish(&new.id, fence, &succeeded("r"), now).unwrap();
    engine.commit().unwrap();
    drop(engine);
    clock.pass(TTL / 2);
    let day = Duration::from_secs(86_400);
    clock.jump(clock.now().wall - day);
    let mut engine = open(clock.after_boot());
    let job = engine.get(&new.id).unwrap().expect("it is kept");
    assert_eq!(job.ended_since, None);
    assert_eq!(job.expires, Some(clock.now().wall + TTL));
    clock.pass(TTL - Duration::from_secs(1));
    assert!(engine.expire(clock.now()).unwrap().is_empty());
    clock.pass(Duration::from_secs(1));
    assert_eq!(engine.expire(clock.now()).unwrap(), [new.id]);
}

#[tokio::test]
async fn log_of_another_file_is_not_removed_at_the_end() {
    let folder = Folder::new();
    let store = folder.open().await;
    run(&store).await;
    fs::write(folder.beside("-wal.other"), "log of another file").unwrap();
    fs::rename(folder.beside("-wal.other"), folder.beside("-wal")).unwrap();
    store.close().await;
    let log = fs::read(folder.beside("-wal")).unwrap();
    assert_eq!(log, b"log of another file");
}

#[tokio::test]
async fn thread_removes_expired_jobs_by_itself() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut new = new_job(Some("a"));
    new.ttl = Duration::from_millis(50);
    let id = new.id.clone();
    store.create(new).await.unwrap();
    let mut watch = store.subscribe(&id).expect("there is a place");
    let claim = store.claim(&id).await.unwrap().expect("it is queued");
    assert!(
        store
            .finish(&id, claim.fence, succeeded("r"))
            .await
            .unwrap()
    );
    // The claim, the end, and then the removal without another request.
    for _ in 0..3 {
        assert!(watch.changed().await);
        if store.get(&id).await.unwrap().is_none() {
            return;
        }
    }
    panic!("the job is kept");
}
