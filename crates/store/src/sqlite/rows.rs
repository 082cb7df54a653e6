//! A job as a row, and the statements on rows.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{Row, ToSql, named_params};

use crate::bounds::usage_of;
use crate::clock::{from_millis, millis};
use crate::id::JobId;
use crate::job::{Dropped, EventKind, Job, JobEvent, JobState, Usage};

/// The columns of a job, in the order in which [`job`] reads them.
macro_rules! columns {
    () => {
        "job.id, job.owner, job.path, job.tool_digest, job.catalog_digest, job.args_sha256, job.meta, job.idem_key, \
         job.caller, job.trace, job.ttl, job.created, job.upstream, job.upstream_survives, job.state, job.sent, \
         job.cancel_asked, job.fence, job.started, job.ended, job.updated, job.expires, job.progress, job.last_seq, \
         job.events, job.event_bytes, job.dropped_events, job.is_error, job.error, job.result_bytes, job.dropped, \
         job.args_bytes, job.seq, job.ended_since"
    };
}

pub(super) const LOAD: &str = concat!("SELECT ", columns!(), " FROM job WHERE id_hash = ?1");
pub(super) const FIND_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM job WHERE owner = ?1 AND path = ?2 AND idem_key = ?3"
);
pub(super) const CLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM job WHERE running = 1 ORDER BY seq"
);
pub(super) const OLDEST_STORED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM job WHERE owner IS ?1 AND evictable > 0 ORDER BY ended, seq LIMIT 1"
);
pub(super) const QUEUED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM (SELECT seq AS place, row_number() OVER (PARTITION BY owner ORDER BY seq) AS number
        FROM job WHERE queued = 1) JOIN job ON job.seq = place
      WHERE number <= ?1 ORDER BY job.seq"
);
pub(super) const LIST_ALL: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM job WHERE seq < ?1 AND (?2 IS NULL OR state = ?2) ORDER BY seq DESC LIMIT ?3"
);
pub(super) const LIST_OWNER: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM job WHERE owner = ?4 AND seq < ?1 AND (?2 IS NULL OR state = ?2) ORDER BY seq DESC LIMIT ?3"
);
pub(super) const INSERT: &str = "
INSERT INTO job (id_hash, id, owner, path, tool_digest, catalog_digest, args_sha256, meta, idem_key, caller, trace, ttl,
    created, upstream, upstream_survives, state, sent, cancel_asked, fence, started, ended, ended_since, updated, expires, progress,
    last_seq, events, event_bytes, dropped_events, is_error, error, result_bytes, dropped, args_bytes, queued, running,
    finished, bytes, evictable)
VALUES (:id_hash, :id, :owner, :path, :tool_digest, :catalog_digest, :args_sha256, :meta, :idem_key, :caller, :trace,
    :ttl, :created, :upstream, :upstream_survives, :state, :sent, :cancel_asked, :fence, :started, :ended, :ended_since, :updated,
    :expires, :progress, :last_seq, :events, :event_bytes, :dropped_events, :is_error, :error, :result_bytes, :dropped,
    :args_bytes, :queued, :running, :finished, :bytes, :evictable)";
pub(super) const UPDATE: &str = "
UPDATE job SET upstream = :upstream, upstream_survives = :upstream_survives, state = :state, sent = :sent,
    cancel_asked = :cancel_asked, fence = :fence, started = :started, ended = :ended, ended_since = :ended_since, updated = :updated,
    expires = :expires, progress = :progress, last_seq = :last_seq, events = :events, event_bytes = :event_bytes,
    dropped_events = :dropped_events, is_error = :is_error, error = :error, result_bytes = :result_bytes,
    dropped = :dropped, args_bytes = :args_bytes, queued = :queued, running = :running, finished = :finished,
    bytes = :bytes, evictable = :evictable
WHERE id_hash = :id_hash";

/// Calls the function with the values of the columns that [`UPDATE`] sets.
pub(super) fn with_changing<T>(
    job: &Job,
    id_hash: &[u8],
    call: impl FnOnce(&[(&str, &dyn ToSql)]) -> T,
) -> T {
    let usage = usage_of(job);
    let time = |time: Option<std::time::SystemTime>| time.map(|time| number(millis(time)));
    call(named_params! {
        ":id_hash": id_hash,
        ":upstream": job.upstream,
        ":upstream_survives": job.upstream_survives,
        ":state": job.state.as_str(),
        ":sent": job.sent,
        ":cancel_asked": job.cancel_asked,
        ":fence": number(job.fence),
        ":started": time(job.started),
        ":ended": time(job.ended),
        ":ended_since": job.ended_since.map(whole),
        ":updated": number(millis(job.updated)),
        ":expires": time(job.expires),
        ":progress": job.progress.as_deref(),
        ":last_seq": number(job.last_seq),
        ":events": number(job.events),
        ":event_bytes": number(job.event_bytes),
        ":dropped_events": number(job.dropped_events),
        ":is_error": job.is_error,
        ":error": job.error,
        ":result_bytes": job.result_bytes.map(number),
        ":dropped": job.dropped.map(Dropped::as_str),
        ":args_bytes": number(job.args_bytes),
        ":queued": number(usage.queued),
        ":running": number(usage.running),
        ":finished": number(usage.finished),
        ":bytes": number(usage.bytes),
        ":evictable": number(usage.evictable),
    })
}

/// Calls the function with the values of the columns that only [`INSERT`] sets.
pub(super) fn with_fixed<T>(job: &Job, call: impl FnOnce(&[(&str, &dyn ToSql)]) -> T) -> T {
    call(named_params! {
        ":id": job.id.as_str(),
        ":owner": job.owner,
        ":path": job.path,
        ":tool_digest": job.tool_digest,
        ":catalog_digest": job.catalog_digest,
        ":args_sha256": &job.args_sha256[..],
        ":meta": job.meta,
        ":idem_key": job.key,
        ":caller": job.caller,
        ":trace": job.trace,
        ":ttl": whole(job.ttl),
        ":created": number(millis(job.created)),
    })
}

/// Returns a time as whole milliseconds.
fn whole(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a number as SQLite has them.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads the job of a row.
pub(super) fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    let time = |column: usize| {
        let millis: Option<u64> = row.get(column)?;
        Ok::<_, rusqlite::Error>(millis.map(from_millis))
    };
    let progress: Option<Vec<u8>> = row.get(22)?;
    let ended_since: Option<u64> = row.get(33)?;
    Ok(Job {
        id: id(row, 0)?,
        owner: row.get(1)?,
        path: row.get(2)?,
        tool_digest: row.get(3)?,
        catalog_digest: row.get(4)?,
        args_sha256: row.get(5)?,
        meta: row.get(6)?,
        key: row.get(7)?,
        caller: row.get(8)?,
        trace: row.get(9)?,
        ttl: Duration::from_millis(row.get(10)?),
        created: from_millis(row.get(11)?),
        upstream: row.get(12)?,
        upstream_survives: row.get(13)?,
        state: named(row, 14, JobState::parse)?,
        sent: row.get(15)?,
        cancel_asked: row.get(16)?,
        fence: row.get(17)?,
        started: time(18)?,
        ended: time(19)?,
        ended_since: ended_since.map(Duration::from_millis),
        updated: from_millis(row.get(20)?),
        expires: time(21)?,
        progress: progress.map(Bytes::from),
        last_seq: row.get(23)?,
        events: row.get(24)?,
        event_bytes: row.get(25)?,
        dropped_events: row.get(26)?,
        is_error: row.get(27)?,
        error: row.get(28)?,
        result_bytes: row.get(29)?,
        dropped: match row.get_ref(30)? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some(named(row, 30, Dropped::parse)?),
        },
        args_bytes: row.get(31)?,
    })
}

/// Reads the place of a row in the order of creation, behind the columns of a job.
pub(super) fn place(row: &Row<'_>) -> rusqlite::Result<i64> {
    row.get(32)
}

/// Reads an event of a row.
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<JobEvent> {
    let body: Vec<u8> = row.get(3)?;
    Ok(JobEvent {
        seq: row.get(0)?,
        at: from_millis(row.get(1)?),
        kind: named(row, 2, EventKind::parse)?,
        body: body.into(),
    })
}

/// Reads the numbers of an owner.
pub(super) fn usage(row: &Row<'_>) -> rusqlite::Result<Usage> {
    Ok(Usage {
        queued: row.get(0)?,
        running: row.get(1)?,
        finished: row.get(2)?,
        bytes: row.get(3)?,
        evictable: row.get(4)?,
    })
}

/// Reads an id.
pub(super) fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<JobId> {
    named(row, column, JobId::parse)
}

/// Reads a text that has only some values.
fn named<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| {
        let error = format!("`{text}` is not a value of this column");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
