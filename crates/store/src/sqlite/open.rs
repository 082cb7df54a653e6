//! Opens the file of a store: refuses what is not a store of this version, and makes a new one completely or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};

use crate::clock::{Clock, millis};
use crate::error::OpenError;

use super::place::{beside, create_options, open_error, secure, sync_folder};
use super::schema::{APPLICATION_ID, TABLES, VERSION};

/// The bytes of the header of a SQLite file.
const HEADER_BYTES: usize = 100;
/// The first bytes of each SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The place of the version in the header, and of the number of the program.
const VERSION_AT: usize = 60;
const APPLICATION_AT: usize = 68;
/// The time for the check at the opening. A large file is checked as far as this time allows.
const CHECK_TIMEOUT: Duration = Duration::from_millis(800);
/// The steps of SQLite between two looks at the clock.
const STEPS_PER_LOOK: i32 = 1_000;
/// The statements that are kept prepared: all that the store has.
const KEPT_STATEMENTS: usize = 64;

/// Makes the file, if there is none.
pub(super) fn make(path: &Path) -> Result<(), OpenError> {
    let failed = |error| open_error(path, error);
    if path.try_exists().map_err(failed)? && fs::metadata(path).map_err(failed)?.len() > 0 {
        return secure(path);
    }
    let log = beside(path, "-wal");
    if fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 0) {
        // SQLite would read the log of another file into the new one.
        return Err(OpenError::Damaged {
            path: path.to_owned(),
            found: format!("there is `{}` without its store", log.display()),
        });
    }
    if path.exists() {
        secure(path)?;
    }
    let new = beside(path, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut options = create_options();
    drop(options.create_new(true).open(&new).map_err(failed)?);
    let made = fill(&new).map_err(|error| sqlite_error(path, &error));
    if let Err(error) = made {
        // The half file says nothing.
        let _left = fs::remove_file(&new);
        return Err(error);
    }
    File::open(&new)
        .and_then(|file| file.sync_all())
        .map_err(failed)?;
    fs::rename(&new, path).map_err(failed)?;
    sync_folder(path).map_err(failed)
}

/// Writes the tables into an empty file.
fn fill(path: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open_with_flags(path, flags())?;
    connection.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; BEGIN; {TABLES} COMMIT;"
    ))?;
    connection.close().map_err(|(_, error)| error)
}

/// Refuses a file that is not a store of this version, without a change of it.
pub(super) fn check_header(path: &Path) -> Result<(), OpenError> {
    let mut header = Vec::new();
    let not_a_store = |found: &str| OpenError::NotAStore {
        path: path.to_owned(),
        found: found.to_owned(),
    };
    File::open(path)
        .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut header))
        .map_err(|error| open_error(path, error))?;
    let number = |at: usize| {
        let bytes = header.get(at..at + 4)?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    };
    if !header.starts_with(MAGIC) {
        return Err(not_a_store("it is not a SQLite file"));
    }
    let (Some(program), Some(version)) = (number(APPLICATION_AT), number(VERSION_AT)) else {
        return Err(not_a_store("it is cut off"));
    };
    if program != APPLICATION_ID {
        return Err(not_a_store("it is a SQLite file of another program"));
    }
    if version > VERSION {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version.into(),
            known: VERSION.into(),
        });
    }
    if version != VERSION {
        return Err(not_a_store("its version was never used"));
    }
    Ok(())
}

/// Connects to the file, alone.
pub(super) fn connect(path: &Path) -> Result<Connection, OpenError> {
    let failed = |error| sqlite_error(path, &error);
    let connection = Connection::open_with_flags(path, flags()).map_err(failed)?;
    if connection.is_readonly("main").map_err(failed)? {
        return Err(OpenError::ReadOnly(path.to_owned()));
    }
    // With the exclusive mode there is no memory that processes share.
    connection
        .execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA fullfsync = ON;
             PRAGMA checkpoint_fullfsync = ON;
             PRAGMA secure_delete = ON;
             PRAGMA temp_store = MEMORY;
             PRAGMA cell_size_check = ON;
             PRAGMA trusted_schema = OFF;
             PRAGMA journal_size_limit = 16777216;",
        )
        .map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    Ok(connection)
}

/// Checks the tables, and the pages as far as the time allows.
pub(super) fn check_quickly(
    path: &Path,
    connection: &mut Connection,
    clock: &Clock,
) -> Result<(), OpenError> {
    let failed = |error| sqlite_error(path, &error);
    let damaged = |found: String| OpenError::Damaged {
        path: path.to_owned(),
        found,
    };
    let expected = {
        let memory = Connection::open_in_memory().map_err(failed)?;
        memory.execute_batch(TABLES).map_err(failed)?;
        tables(&memory).map_err(failed)?
    };
    if tables(connection).map_err(failed)? != expected {
        return Err(damaged(
            "its tables are not those of its version".to_owned(),
        ));
    }
    let (its_clock, begun) = (clock.clone(), clock.now().since);
    let is_late = move || its_clock.now().since >= begun + CHECK_TIMEOUT;
    connection
        .progress_handler(STEPS_PER_LOOK, Some(is_late))
        .map_err(failed)?;
    let found = check_pages(connection, "PRAGMA quick_check(1)");
    connection
        .progress_handler(0, None::<fn() -> bool>)
        .map_err(failed)?;
    match found {
        Ok(faults) => match faults.into_iter().next() {
            None => Ok(()),
            Some(fault) => Err(damaged(fault)),
        },
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Returns the faults that a check of SQLite finds.
pub(super) fn check_pages(connection: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(check)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut faults = Vec::new();
    for line in lines {
        let line = line?;
        if line != "ok" {
            faults.push(line);
        }
    }
    Ok(faults)
}

/// Returns the definitions of the tables.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT coalesce(sql, name) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name",
    )?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

/// Writes which process uses the store, and in which boot of the machine. The clock that never jumps goes on within one boot
/// only, so its times of another boot are removed.
pub(super) fn write_process(connection: &Connection, clock: &Clock) -> rusqlite::Result<()> {
    let boot = clock.boot().unwrap_or_default();
    let opened = i64::try_from(millis(clock.now().wall)).unwrap_or(i64::MAX);
    let group = connection.unchecked_transaction()?;
    let last: Option<String> = group
        .query_row("SELECT boot_id FROM process", [], |row| row.get(0))
        .optional()?;
    if boot.is_empty() || last.is_none_or(|last| last != boot) {
        group.execute(
            "UPDATE job SET ended_since = NULL WHERE ended_since IS NOT NULL",
            [],
        )?;
    }
    group.execute(
        "INSERT OR REPLACE INTO process VALUES (1, ?1, ?2, ?3)",
        (boot, std::process::id(), opened),
    )?;
    group.commit()
}

/// Returns an error of SQLite as the reason why a store is not opened.
pub(super) fn sqlite_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse {
            path,
            holder: "another program".to_owned(),
        },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            OpenError::ReadOnly(path)
        }
        Some(ErrorCode::DiskFull) => OpenError::NoSpace(path),
        Some(ErrorCode::SystemIoFailure) => OpenError::Io {
            path,
            error: io::Error::other(error.to_string()),
        },
        _ => OpenError::Damaged {
            path,
            found: error.to_string(),
        },
    }
}

/// Returns the flags of a connection: to an existing file, used by one thread.
fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE
}
