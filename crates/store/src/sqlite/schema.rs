//! The tables of the file.

/// The number in the header of the file by which it is a job store: `mcbj`.
pub(super) const APPLICATION_ID: i32 = 0x6d63_626a;
/// The version of the tables.
pub(super) const VERSION: i32 = 1;

/// The tables of an empty file.
///
/// Bodies are apart from the rows, so that a look at a row reads no body. A job is found by a hash of its id, so that the
/// time of a look-up says nothing about ids. Triggers keep the numbers of each owner: they hold in any group of changes.
pub(super) const TABLES: &str = "
CREATE TABLE process (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    opened INTEGER NOT NULL
) STRICT;
CREATE TABLE job (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id_hash BLOB NOT NULL UNIQUE,
    id TEXT NOT NULL,
    owner TEXT,
    path TEXT NOT NULL,
    tool_digest TEXT NOT NULL,
    catalog_digest TEXT NOT NULL,
    args_sha256 BLOB NOT NULL,
    meta TEXT,
    idem_key TEXT,
    caller TEXT NOT NULL,
    trace TEXT,
    ttl INTEGER NOT NULL,
    created INTEGER NOT NULL,
    upstream TEXT,
    upstream_survives INTEGER NOT NULL,
    state TEXT NOT NULL,
    sent INTEGER NOT NULL,
    cancel_asked INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    ended_since INTEGER,
    updated INTEGER NOT NULL,
    expires INTEGER,
    progress BLOB,
    last_seq INTEGER NOT NULL,
    events INTEGER NOT NULL,
    event_bytes INTEGER NOT NULL,
    dropped_events INTEGER NOT NULL,
    is_error INTEGER NOT NULL,
    error TEXT,
    result_bytes INTEGER,
    dropped TEXT,
    args_bytes INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    running INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    evictable INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX job_key ON job (owner, path, idem_key) WHERE owner IS NOT NULL AND idem_key IS NOT NULL;
CREATE INDEX job_owner ON job (owner, seq);
CREATE INDEX job_queued ON job (owner, seq) WHERE queued = 1;
CREATE INDEX job_running ON job (seq) WHERE running = 1;
CREATE INDEX job_stored ON job (owner, ended, seq) WHERE evictable > 0;
CREATE TABLE body (
    job INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (job, kind)
) STRICT;
CREATE TABLE event (
    job INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (job, seq)
) STRICT;
CREATE TABLE usage (
    owner TEXT PRIMARY KEY,
    queued INTEGER NOT NULL,
    running INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    evictable INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO usage VALUES ('*', 0, 0, 0, 0, 0);
CREATE TRIGGER job_added AFTER INSERT ON job BEGIN
    INSERT OR IGNORE INTO usage VALUES (coalesce('=' || NEW.owner, '-'), 0, 0, 0, 0, 0);
    UPDATE usage SET
        queued = queued + NEW.queued, running = running + NEW.running, finished = finished + NEW.finished,
        bytes = bytes + NEW.bytes, evictable = evictable + NEW.evictable
        WHERE owner IN ('*', coalesce('=' || NEW.owner, '-'));
END;
CREATE TRIGGER job_changed AFTER UPDATE ON job
WHEN NEW.bytes <> OLD.bytes OR NEW.evictable <> OLD.evictable OR NEW.queued <> OLD.queued
    OR NEW.running <> OLD.running OR NEW.finished <> OLD.finished
BEGIN
    UPDATE usage SET
        queued = queued + NEW.queued - OLD.queued, running = running + NEW.running - OLD.running,
        finished = finished + NEW.finished - OLD.finished, bytes = bytes + NEW.bytes - OLD.bytes,
        evictable = evictable + NEW.evictable - OLD.evictable
        WHERE owner IN ('*', coalesce('=' || NEW.owner, '-'));
END;
CREATE TRIGGER job_removed AFTER DELETE ON job BEGIN
    UPDATE usage SET
        queued = queued - OLD.queued, running = running - OLD.running, finished = finished - OLD.finished,
        bytes = bytes - OLD.bytes, evictable = evictable - OLD.evictable
        WHERE owner IN ('*', coalesce('=' || OLD.owner, '-'));
    DELETE FROM usage
        WHERE owner = coalesce('=' || OLD.owner, '-') AND queued + running + finished = 0;
    DELETE FROM body WHERE job = OLD.seq;
    DELETE FROM event WHERE job = OLD.seq;
END;
";

/// Faults that a full check looks for, each as a query for the number of its rows.
pub(super) const CHECKS: [(&str, &str); 4] = [
    (
        "bodies without a job",
        "SELECT count(*) FROM body WHERE job NOT IN (SELECT seq FROM job)",
    ),
    (
        "events without a job",
        "SELECT count(*) FROM event WHERE job NOT IN (SELECT seq FROM job)",
    ),
    (
        "results of another size than their job says",
        "SELECT count(*) FROM job LEFT JOIN body ON body.job = job.seq AND body.kind = 1
         WHERE job.result_bytes IS NOT length(body.bytes)",
    ),
    (
        "owners with other numbers than their jobs give",
        "SELECT count(*) FROM (
            SELECT owner, queued, running, finished, bytes, evictable FROM usage WHERE owner <> '*'
            EXCEPT SELECT coalesce('=' || owner, '-'), sum(queued), sum(running), sum(finished), sum(bytes),
            sum(evictable) FROM job GROUP BY owner
         )",
    ),
];
