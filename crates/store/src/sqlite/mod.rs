//! A store in a SQLite file. One process holds it, and one thread uses it.

mod filesystem;
mod open;
mod place;
mod reserve;
mod rows;
mod schema;
mod statements;

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use crate::clock::Clock;
use crate::error::{Failure, OpenError};

use place::{FileIdentity, PlaceLock, beside};
use reserve::Reserve;

/// A store in a file.
#[derive(Debug)]
pub struct SqliteStore {
    /// Closed before the lock is given back.
    connection: Option<Connection>,
    path: PathBuf,
    clock: Clock,
    reserve: Reserve,
    file: FileIdentity,
    log: FileIdentity,
    /// Whether the log may have bytes that were erased from the file.
    has_log: bool,
    /// Given back when the store is closed.
    lock: Option<PlaceLock>,
}

impl SqliteStore {
    /// Opens the store, or makes it. A file that cannot be used is left as it is.
    pub fn open(path: &Path, clock: &Clock) -> Result<Self, OpenError> {
        let path = place::resolve(path)?;
        filesystem::check(&path)?;
        let lock = PlaceLock::take(&path)?;
        open::make(&path)?;
        open::check_header(&path)?;
        let reserve = Reserve::open(&path).map_err(|error| place::open_error(&path, error))?;
        let mut connection = open::connect(&path)?;
        open::check_quickly(&path, &mut connection, clock)?;
        let failed = |error| open::sqlite_error(&path, &error);
        let mut reserve = reserve;
        let now = || clock.now().since;
        match open::write_process(&connection, clock) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                if !reserve.release(now()) {
                    return Err(failed(error));
                }
                open::write_process(&connection, clock).map_err(failed)?;
            }
            written => written.map_err(failed)?,
        }
        reserve.hold(now());
        let identity =
            |path: &Path| FileIdentity::at(path).map_err(|error| place::open_error(path, error));
        let (file, log) = (identity(&path)?, identity(&beside(&path, "-wal"))?);
        Ok(Self {
            connection: Some(connection),
            clock: clock.clone(),
            reserve,
            file,
            log,
            has_log: true,
            path,
            lock: Some(lock),
        })
    }

    /// Returns the faults of a store that no broker uses. It is changed only as SQLite recovers it.
    pub fn check_file(path: &Path, clock: &Clock) -> Result<Vec<String>, OpenError> {
        let path = place::resolve(path)?;
        filesystem::check(&path)?;
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        if !path.exists() {
            return Err(place::open_error(&path, missing()));
        }
        let _lock = PlaceLock::take(&path)?;
        open::check_header(&path)?;
        let mut connection = open::connect(&path)?;
        open::check_quickly(&path, &mut connection, clock)?;
        statements::check(&connection, true).map_err(|error| open::sqlite_error(&path, &error))
    }

    /// Refuses to go on with a file that is no longer at its path: what is written into it would be lost.
    fn check_identity(&self) -> Result<(), Failure> {
        let is_same = |path: &Path, known: FileIdentity| {
            FileIdentity::at(path).is_ok_and(|found| found == known)
        };
        if is_same(&self.path, self.file) && is_same(&beside(&self.path, "-wal"), self.log) {
            return Ok(());
        }
        let text = format!(
            "`{}` was replaced or removed while the broker runs; put the file back and start the broker again",
            self.path.display()
        );
        Err(Failure::Unavailable(text))
    }

    /// Returns the connection, until the store is closed.
    fn connection(&self) -> Result<&Connection, Failure> {
        let closed = || Failure::Unavailable("it is closed".to_owned());
        self.connection.as_ref().ok_or_else(closed)
    }

    /// Returns an error of SQLite as the failure of a group.
    fn failure(&self, error: &rusqlite::Error) -> Failure {
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            return Failure::NoSpace;
        }
        let text = format!(
            "`{}`: {error}; check the disk and the file, then start the broker again",
            self.path.display()
        );
        Failure::Unavailable(text)
    }

    /// Closes the connection. The log of a file that was replaced is left to it.
    fn disconnect(&mut self) {
        let is_same = self.check_identity().is_ok();
        let (Some(connection), lock) = (self.connection.take(), self.lock.take()) else {
            return;
        };
        if !is_same {
            // SQLite would remove the log of the file that is there now.
            let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            if let Err(error) = set {
                tracing::warn!(event = "job_store_close_failed", %error, "the log of the replaced job store may be removed");
            }
        }
        if let Err((_, error)) = connection.close() {
            tracing::warn!(event = "job_store_close_failed", %error, "the job store was not closed cleanly");
        }
        drop(lock);
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.disconnect();
    }
}
