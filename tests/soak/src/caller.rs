//! One of the callers: makes calls over one connection, one after the other, and checks each answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::account::{Account, CallOutcome};
use crate::clock::now;
use crate::http::{Connection, Part, Response};
use crate::plan::{Call, CallKind, Leaves};

/// The state that all callers share.
pub(crate) struct Work<'a> {
    pub(crate) address: &'a str,
    pub(crate) seed: u64,
    /// The number of the first call that must wait.
    pub(crate) limit: AtomicU64,
    pub(crate) next: AtomicU64,
    pub(crate) account: Account,
}

impl Work<'_> {
    /// Lets callers make the calls up to `limit`. No caller may be running.
    pub(crate) fn begin_until(&self, limit: u64) {
        // Each caller of the previous part has taken a number that it did not use.
        let previous = self.limit.swap(limit, Ordering::Relaxed);
        self.next.store(previous, Ordering::Relaxed);
    }
}

/// The observations of one caller.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) duplicated: u64,
    pub(crate) crossed: u64,
    /// Answers with the right nonce and another text.
    pub(crate) spoilt: u64,
    /// Answers that a call of its kind must not get, by their kind.
    pub(crate) wrong: BTreeMap<String, u64>,
    /// Answers by code; `ok` for a result.
    pub(crate) codes: BTreeMap<String, u64>,
    /// Calls to untouched sources that were awaited, and those that got the right answer.
    pub(crate) untouched: u64,
    pub(crate) untouched_served: u64,
    /// Microseconds of each answered echo.
    pub(crate) micros: Vec<u32>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.duplicated += other.duplicated;
        self.crossed += other.crossed;
        self.spoilt += other.spoilt;
        self.untouched += other.untouched;
        self.untouched_served += other.untouched_served;
        self.micros.extend(other.micros);
        for (mine, theirs) in [
            (&mut self.wrong, other.wrong),
            (&mut self.codes, other.codes),
        ] {
            for (name, count) in theirs {
                *mine.entry(name).or_default() += count;
            }
        }
    }

    fn wrong(&mut self, what: String) {
        *self.wrong.entry(what).or_default() += 1;
    }
}

/// Makes calls up to the limit.
pub(crate) fn run(work: &Work<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut connection = None;
    loop {
        let number = work.next.fetch_add(1, Ordering::Relaxed);
        if number >= work.limit.load(Ordering::Relaxed) {
            break;
        }
        let call = Call::new(work.seed, number);
        let fresh = connection.is_none();
        let open = match connection.take() {
            Some(open) => Ok(open),
            None => Connection::open(work.address),
        };
        match open.and_then(|open| one(work, &mut tally, &call, open)) {
            Ok(kept) => connection = kept,
            // The account counts it as lost.
            Err(error) => tally.wrong(format!("no answer: {error} (new connection: {fresh})")),
        }
    }
    if connection.is_some_and(Connection::has_more_afterwards) {
        tally.duplicated += 1;
    }
    tally
}

/// Makes one call; returns the connection if it can be used again.
fn one(
    work: &Work<'_>,
    tally: &mut Tally,
    call: &Call,
    mut connection: Connection,
) -> std::io::Result<Option<Connection>> {
    let body = call.body();
    match call.leaves {
        Some(Leaves::HalfWay) => {
            work.account.settle(call.number, CallOutcome::LeftHalfWay);
            connection.send(&body, Part::NotTheEnd)?;
            return Ok(None);
        }
        Some(Leaves::After(millis)) => {
            work.account.settle(call.number, CallOutcome::Left);
            connection.send(&body, Part::Whole)?;
            thread::sleep(Duration::from_millis(millis));
            return Ok(None);
        }
        None => {}
    }
    let begun = now();
    connection.send(&body, Part::Whole)?;
    let response = connection.receive()?;
    let taken = begun.elapsed();
    let (outcome, served) = evaluate(tally, call, &response);
    work.account.settle(call.number, outcome);
    if outcome == CallOutcome::Answered {
        tally
            .micros
            .push(u32::try_from(taken.as_micros()).unwrap_or(u32::MAX));
    }
    if call.is_untouched() {
        tally.untouched += 1;
        tally.untouched_served += u64::from(served);
    }
    if connection.has_more() {
        tally.duplicated += 1;
        return Ok(None);
    }
    Ok(Some(connection))
}

/// The outcome, and whether a healthy source would give this answer.
fn evaluate(tally: &mut Tally, call: &Call, response: &Response) -> (CallOutcome, bool) {
    let Ok(body) = serde_json::from_slice::<Value>(&response.body) else {
        tally.wrong("a body that is not JSON".to_owned());
        return (CallOutcome::MayHaveRun, false);
    };
    if response.status == 200 {
        *tally.codes.entry("ok".to_owned()).or_default() += 1;
        return (CallOutcome::Answered, check_echo(tally, call, &body));
    }
    let error = &body["error"];
    let code = error["code"].as_str().unwrap_or_default();
    *tally.codes.entry(code.to_owned()).or_default() += 1;
    let served = match call.kind {
        CallKind::Echo(_) => false,
        CallKind::Hang => code == "call_timeout",
        CallKind::Oversize => code == "output_too_large",
    };
    let source_is_down = matches!(
        code,
        "source_exited" | "source_unavailable" | "overloaded" | "call_timeout"
    );
    if !served && !source_is_down {
        tally.wrong(format!("{} {code} for {:?}", response.status, call.kind));
    }
    let may_have_run = match error["maybe_executed"].as_bool() {
        Some(may) => may,
        None => !matches!(code, "source_unavailable" | "overloaded"),
    };
    let outcome = match may_have_run {
        true => CallOutcome::MayHaveRun,
        false => CallOutcome::NotRun,
    };
    (outcome, served)
}

/// Whether a result belongs to this call.
fn check_echo(tally: &mut Tally, call: &Call, body: &Value) -> bool {
    if !matches!(call.kind, CallKind::Echo(_)) {
        tally.wrong(format!("a result for {:?}", call.kind));
        return false;
    }
    let text = body["result"]["content"][0]["text"].as_str();
    let echoed: Value = serde_json::from_str(text.unwrap_or_default()).unwrap_or(Value::Null);
    let nonce = call.number.to_string();
    if body["path"] != call.path() || echoed["nonce"] != nonce.as_str() {
        tally.crossed += 1;
        return false;
    }
    if echoed["text"] != call.text() {
        tally.spoilt += 1;
        return false;
    }
    true
}
