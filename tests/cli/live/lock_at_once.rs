//! Two runs of `lock` at once: none loses what the other wrote, and a reader sees a whole lock.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use std::{env, fs};

use broker_model::lock::Lock;
use harness::{Bench, contains};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::bench::{names, tool};

/// Maximum time until a source of the first run waits.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A run of `lock` whose source `a`, with this tool, waits until [`Run::end`].
struct Run<'b> {
    bench: &'b Bench,
    child: Child,
}

impl<'b> Run<'b> {
    fn begin(bench: &'b Bench, name: &str, args: &[&str]) -> Self {
        for file in ["waits", "go"] {
            drop(fs::remove_file(bench.path(file)));
        }
        let shell = "touch waits; until [ -e go ]; do sleep 0.02; done";
        bench.script("a", &json!({"tools": [tool(name)], "start_shell": shell}));
        let all: Vec<_> = ["lock", "--once"].iter().chain(args).copied().collect();
        let mut command = bench.verb_command(&all, &[]);
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let child = command.spawn().expect("broker-gen starts");
        let begun = Instant::now();
        while !bench.path("waits").exists() {
            assert!(begun.elapsed() < START_TIMEOUT, "the source did not start");
            thread::sleep(Duration::from_millis(10));
        }
        Self { bench, child }
    }

    /// Lets the source list; the exit code and standard error of the run.
    fn end(self) -> (Option<i32>, String) {
        self.bench.write("go", "");
        let output = self.child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    }
}

/// The names of the exposed tools of each source.
fn tools(bench: &Bench) -> Vec<String> {
    let lock = bench.lock_json();
    let sources = lock["sources"].as_array().expect("a list").iter();
    let of = |source: &Value| names(&source["exposed"], "upstream_name").join(",");
    sources.map(of).collect()
}

/// A lock of two sources with one tool each.
fn locked() -> Bench {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.one_tool("a", tool("a1"));
    bench.one_tool("b", tool("b1"));
    bench.lock();
    bench
}

#[test]
fn lock_takes_over_what_another_run_wrote_meanwhile() {
    for args in [&["--source", "/a"][..], &[]] {
        let bench = locked();
        let first = Run::begin(&bench, "a2", args);
        bench.one_tool("b", tool("b2"));
        let second = bench.verb(&["lock", "--source", "/b"]);
        assert_eq!(second.code, Some(0), "{}", second.stderr);
        let (code, said) = first.end();
        assert_eq!(code, Some(0), "{said}");
        contains(&said, &["another run wrote it meanwhile"]);
        assert_eq!(tools(&bench), ["a2", "b2"], "{args:?}");
        let text = bench.lock_text();
        bench.one_tool("a", tool("a2"));
        bench.lock();
        assert_eq!(bench.lock_text(), text, "it is the lock of one run");
    }
}

#[test]
fn first_locks_of_two_runs_become_one() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.one_tool("b", tool("b1"));
    let first = Run::begin(&bench, "a1", &["--source", "/a"]);
    let second = bench.verb(&["lock", "--source", "/b"]);
    // The other source is not locked yet.
    assert_eq!(second.code, Some(8), "{}", second.stderr);
    let (code, said) = first.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(tools(&bench), ["a1", "b1"]);
    bench.fine(&["verify", "--offline", "--config", "c.json"]);
}

#[test]
fn lock_of_a_source_that_another_run_changed_is_refused_by_name() {
    let bench = locked();
    let first = Run::begin(&bench, "a2", &["--source", "/a"]);
    bench.one_tool("a", tool("a3"));
    let second = bench.verb(&["lock", "--source", "/a"]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    // The waiting server reads its script again.
    bench.one_tool("a", tool("a2"));
    let (code, said) = first.end();
    assert_eq!(code, Some(5), "{said}");
    let parts = [
        "merge_conflict",
        "`/a`",
        "run it again",
        "the lock was not written",
    ];
    contains(&said, &parts);
    assert_eq!(tools(&bench), ["a3", "b1"]);
}

#[test]
fn lock_over_a_file_that_was_damaged_meanwhile_is_refused() {
    let bench = locked();
    let first = Run::begin(&bench, "a2", &["--source", "/a"]);
    bench.write("c.lock.json", "{\"lock_version\"");
    let (code, said) = first.end();
    assert_eq!(code, Some(5), "{said}");
    contains(&said, &["lock_corrupt", "was changed while this run"]);
    assert_eq!(bench.lock_text(), "{\"lock_version\"");
}

/// `MCP_BROKER_LOCK_SECONDS` for another time.
#[test]
fn lock_over_a_file_that_cannot_be_read_any_more_is_refused() {
    let bench = locked();
    let path = bench.path("c.lock.json");
    let text = bench.read("c.lock.json");
    for (bytes, said) in [
        (None, "is gone"),
        (Some([0xff, 0xfe]), "cannot be read now"),
    ] {
        bench.write("c.lock.json", &text);
        let run = Run::begin(&bench, "new_a", &["--source", "/a"]);
        match bytes {
            None => fs::remove_file(&path).expect("it is there"),
            Some(bytes) => fs::write(&path, bytes).expect("it is written"),
        }
        let now = fs::read(&path).ok();
        let (code, stderr) = run.end();
        assert_eq!(code, Some(5), "{stderr}");
        contains(
            &stderr,
            &[
                "lock_corrupt",
                "was changed while this run launched the sources",
                said,
            ],
        );
        assert_eq!(fs::read(&path).ok(), now, "it is left as it is");
    }
}

#[test]
fn locks_at_once_lose_no_source_and_a_reader_sees_whole_ones() {
    let seconds = env::var("MCP_BROKER_LOCK_SECONDS");
    let seconds = seconds.map_or(2, |text| text.parse().expect("a number"));
    let bench = locked();
    let end = Instant::now() + Duration::from_secs(seconds);
    let writes = |source: &str| {
        let mut last = 1;
        // At least two rounds, however slow the machine is.
        while Instant::now() < end || last < 3 {
            last += 1;
            let name = format!("{source}{last}");
            bench.one_tool(source, tool(&name));
            let path = format!("/{source}");
            let output = bench.verb(&["lock", "--once", "--source", &path]);
            assert_eq!(output.code, Some(0), "{}", output.stderr);
            let lock = Lock::parse("c.lock.json", &bench.lock_text()).expect("a whole lock");
            let locked = lock.source(&path).expect("the source");
            assert_eq!(locked.exposed[0].upstream_name, name, "an update was lost");
        }
        last
    };
    let is_over = AtomicBool::new(false);
    let (one, other, reads) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !is_over.load(Ordering::Relaxed) {
                let text = bench.lock_text();
                Lock::parse("c.lock.json", &text).unwrap_or_else(|problems| {
                    panic!("the reader saw {problems:?} in:\n{text}");
                });
                reads += 1;
            }
            reads
        });
        let other = scope.spawn(|| writes("b"));
        let one = writes("a");
        let other = other.join().expect("no failure");
        is_over.store(true, Ordering::Relaxed);
        (one, other, reader.join().expect("no failure"))
    });
    assert_eq!(tools(&bench), [format!("a{one}"), format!("b{other}")]);
    assert!(reads > 0);
    let left = fs::read_dir(bench.path("")).expect("a folder");
    let left = left.map(|entry| entry.expect("an entry").file_name());
    let is_draft = |name: &std::ffi::OsString| name.to_string_lossy().starts_with('.');
    assert_eq!(left.filter(is_draft).count(), 0, "no draft is left");
}
