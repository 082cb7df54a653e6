//! The operations of a store as statements.

use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Params, Row, ToSql, params};
use sha2::{Digest as _, Sha256};

use crate::clock::{from_millis, millis};
use crate::error::Failure;
use crate::id::JobId;
use crate::job::{Job, JobEvent, ListQuery, Page, Usage};
use crate::store::{Body, EndedJob, Store};

use super::schema::CHECKS;
use super::{SqliteStore, open, rows};

/// Returns the hash by which a job is found.
fn hash(id: &JobId) -> [u8; 32] {
    Sha256::digest(id.as_str()).into()
}

/// Returns the number of a body.
const fn kind(body: Body) -> i64 {
    match body {
        Body::Args => 0,
        Body::Result => 1,
    }
}

/// Returns the faults of a file.
pub(super) fn check(connection: &Connection, full: bool) -> rusqlite::Result<Vec<String>> {
    if !full {
        return open::check_pages(connection, "PRAGMA quick_check(1)");
    }
    let mut faults = open::check_pages(connection, "PRAGMA integrity_check")?;
    for (fault, query) in CHECKS {
        let number: u64 = connection.query_row(query, [], |row| row.get(0))?;
        if number > 0 {
            faults.push(format!("{fault}: {number}"));
        }
    }
    Ok(faults)
}

impl SqliteStore {
    /// Runs a statement and reads its rows.
    fn query<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut statement = self.prepare(sql)?;
        let rows = statement.query_map(params, read);
        rows.and_then(Iterator::collect)
            .map_err(|error| self.failure(&error))
    }

    /// Runs a statement and reads its row.
    fn query_one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure> {
        let mut statement = self.prepare(sql)?;
        statement
            .query_row(params, read)
            .optional()
            .map_err(|error| self.failure(&error))
    }

    /// Runs a statement that changes the file. The first one begins the group.
    fn change(&mut self, sql: &str, params: impl Params) -> Result<(), Failure> {
        self.begin()?;
        let mut statement = self.prepare(sql)?;
        statement
            .execute(params)
            .map(|_| ())
            .map_err(|error| self.failure(&error))
    }

    fn begin(&self) -> Result<(), Failure> {
        if self.connection()?.is_autocommit() {
            let mut statement = self.prepare("BEGIN IMMEDIATE")?;
            statement
                .execute([])
                .map_err(|error| self.failure(&error))?;
        }
        Ok(())
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, Failure> {
        self.connection()?
            .prepare_cached(sql)
            .map_err(|error| self.failure(&error))
    }
}

impl Store for SqliteStore {
    fn is_durable(&self) -> bool {
        true
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.check_identity()?;
        if self.connection()?.is_autocommit() {
            return Ok(());
        }
        let committed = self.prepare("COMMIT")?.execute([]);
        committed.map_err(|error| self.failure(&error))?;
        self.has_log = true;
        // A file that was replaced during the commit does not have it.
        self.check_identity()
    }

    fn rollback(&mut self) {
        if let Some(connection) = &self.connection
            && !connection.is_autocommit()
            && let Err(error) = connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(event = "job_store_rollback_failed", %error, "the job store has not taken a group back");
        }
    }

    fn reserve_room(&mut self) -> bool {
        self.reserve.hold(self.clock.now().since)
    }

    fn release_room(&mut self) -> bool {
        self.reserve.release(self.clock.now().since)
    }

    fn rest(&mut self) {
        if !self.has_log || self.check_identity().is_err() {
            return;
        }
        let truncated = self.connection().map(|connection| {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.get::<_, i64>(0)
            })
        });
        match truncated {
            Ok(Ok(_)) => self.has_log = false,
            // The log stays, and the next rest tries again.
            Ok(Err(error)) => {
                tracing::debug!(event = "job_store_checkpoint_failed", %error, "the log of the job store stays");
            }
            Err(_) => {}
        }
    }

    fn load(&mut self, id: &JobId) -> Result<Option<Job>, Failure> {
        let job = self.query_one(rows::LOAD, [&hash(id)[..]], rows::job)?;
        Ok(job.filter(|job| job.id == *id))
    }

    fn find_key(&mut self, owner: &str, path: &str, key: &str) -> Result<Option<Job>, Failure> {
        self.query_one(rows::FIND_KEY, [owner, path, key], rows::job)
    }

    fn insert(&mut self, job: &Job) -> Result<(), Failure> {
        self.begin()?;
        let mut statement = self.prepare(rows::INSERT)?;
        let inserted = rows::with_fixed(job, |fixed| {
            rows::with_changing(job, &hash(&job.id), |changing| {
                let all: Vec<(&str, &dyn ToSql)> = [fixed, changing].concat();
                statement.execute(&all[..])
            })
        });
        inserted.map(|_| ()).map_err(|error| self.failure(&error))
    }

    fn update(&mut self, job: &Job) -> Result<(), Failure> {
        self.begin()?;
        let mut statement = self.prepare(rows::UPDATE)?;
        rows::with_changing(job, &hash(&job.id), |changing| statement.execute(changing))
            .map(|_| ())
            .map_err(|error| self.failure(&error))
    }

    fn remove(&mut self, id: &JobId) -> Result<(), Failure> {
        self.change("DELETE FROM job WHERE id_hash = ?1", [&hash(id)[..]])
    }

    fn put_body(&mut self, id: &JobId, body: Body, bytes: &Bytes) -> Result<(), Failure> {
        self.change(
            "INSERT OR REPLACE INTO body SELECT seq, ?2, ?3 FROM job WHERE id_hash = ?1",
            params![&hash(id)[..], kind(body), &bytes[..]],
        )
    }

    fn body(&mut self, id: &JobId, body: Body) -> Result<Option<Bytes>, Failure> {
        let bytes: Option<Vec<u8>> = self.query_one(
            "SELECT body.bytes FROM job JOIN body ON body.job = job.seq WHERE job.id_hash = ?1 AND body.kind = ?2",
            params![&hash(id)[..], kind(body)],
            |row| row.get(0),
        )?;
        Ok(bytes.map(Bytes::from))
    }

    fn remove_body(&mut self, id: &JobId, body: Body) -> Result<(), Failure> {
        self.change(
            "DELETE FROM body WHERE job = (SELECT seq FROM job WHERE id_hash = ?1) AND kind = ?2",
            params![&hash(id)[..], kind(body)],
        )
    }

    fn push_event(&mut self, id: &JobId, event: &JobEvent) -> Result<(), Failure> {
        self.change(
            "INSERT INTO event SELECT seq, ?2, ?3, ?4, ?5 FROM job WHERE id_hash = ?1",
            params![
                &hash(id)[..],
                rows::number(event.seq),
                rows::number(millis(event.at)),
                event.kind.as_str(),
                &event.body[..]
            ],
        )
    }

    fn events(&mut self, id: &JobId, after: u64, limit: usize) -> Result<Vec<JobEvent>, Failure> {
        self.query(
            "SELECT event.seq, event.at, event.kind, event.body FROM event
             WHERE event.job = (SELECT seq FROM job WHERE id_hash = ?1) AND event.seq > ?2 ORDER BY event.seq LIMIT ?3",
            params![
                &hash(id)[..],
                rows::number(after),
                rows::number(limit as u64)
            ],
            rows::event,
        )
    }

    fn remove_events(&mut self, id: &JobId) -> Result<(), Failure> {
        self.change(
            "DELETE FROM event WHERE job = (SELECT seq FROM job WHERE id_hash = ?1)",
            [&hash(id)[..]],
        )
    }

    fn list(&mut self, query: &ListQuery) -> Result<Page, Failure> {
        let before = match query.cursor.as_deref().map(str::parse::<i64>) {
            None => i64::MAX,
            Some(Ok(place)) => place,
            Some(Err(_)) => return Ok(Page::default()),
        };
        let state = query.state.map(crate::job::JobState::as_str);
        // One more says whether there is a next page.
        let limit = rows::number(query.limit as u64).saturating_add(1);
        let read = |row: &Row<'_>| Ok((rows::job(row)?, rows::place(row)?));
        let mut found = if query.all {
            self.query(rows::LIST_ALL, params![before, state, limit], read)?
        } else {
            let params = params![before, state, limit, query.owner];
            self.query(rows::LIST_OWNER, params, read)?
        };
        let has_more = found.len() > query.limit;
        found.truncate(query.limit);
        let last = found.last().map(|(_, place)| place.to_string());
        Ok(Page {
            jobs: found.into_iter().map(|(job, _)| job).collect(),
            next: last.filter(|_| has_more),
        })
    }

    fn queued(&mut self, per_owner: usize) -> Result<Vec<Job>, Failure> {
        let per_owner = rows::number(per_owner as u64);
        self.query(rows::QUEUED, [per_owner], rows::job)
    }

    fn oldest_stored(&mut self, owner: Option<&str>) -> Result<Option<Job>, Failure> {
        self.query_one(rows::OLDEST_STORED, [owner], rows::job)
    }

    fn usage(&mut self, owner: Option<&str>) -> Result<Usage, Failure> {
        let usage = self.query_one(
            "SELECT queued, running, finished, bytes, evictable FROM usage WHERE owner = coalesce('=' || ?1, '-')",
            [owner],
            rows::usage,
        )?;
        Ok(usage.unwrap_or_default())
    }

    fn total(&mut self) -> Result<Usage, Failure> {
        let usage = self.query_one(
            "SELECT queued, running, finished, bytes, evictable FROM usage WHERE owner = '*'",
            [],
            rows::usage,
        )?;
        Ok(usage.unwrap_or_default())
    }

    fn claimed(&mut self) -> Result<Vec<Job>, Failure> {
        self.query(rows::CLAIMED, [], rows::job)
    }

    fn each_ended(&mut self, call: &mut dyn FnMut(EndedJob)) -> Result<(), Failure> {
        let read = |row: &Row<'_>| {
            let ended_since: Option<u64> = row.get(3)?;
            call(EndedJob {
                id: rows::id(row, 0)?,
                ttl: std::time::Duration::from_millis(row.get(1)?),
                expires: from_millis(row.get(2)?),
                ended_since: ended_since.map(std::time::Duration::from_millis),
            });
            Ok(())
        };
        let sql = "SELECT id, ttl, expires, ended_since FROM job WHERE expires IS NOT NULL";
        self.query(sql, [], read).map(|_| ())
    }

    fn check(&mut self, full: bool) -> Result<Vec<String>, Failure> {
        check(self.connection()?, full).map_err(|error| self.failure(&error))
    }

    fn close(&mut self) {
        self.disconnect();
    }
}
