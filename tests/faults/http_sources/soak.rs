//! Many calls to servers of both eras that reset, ask for pauses, end sessions and move: no call is lost, gets the
//! answer of another one, or is executed twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::faults::scaled;
use harness::figure::{Watch, figure, shown};
use harness::{
    ChaosServer, HttpSources, HttpStage, Tally, http_script, wait_within, whole_machine,
};
use serde_json::{Value, json};

/// The time after which a source that went down counts as healthy again.
const HEALTHY_TIME: Duration = Duration::from_secs(31);
/// Maximum time of a round, which is longer than any delay before a restart.
const ROUND_TIMEOUT: Duration = Duration::from_secs(150);

/// The faults of a server, one after the other.
const ROUNDS: [&str; 9] = [
    "reset", "pause", "end", "cut", "status", "move", "close", "redirect", "end",
];

/// A server under rounds of faults.
struct Victim<'a> {
    stage: &'a HttpStage,
    name: &'static str,
    era: &'static str,
    ended_sessions: u64,
    server: Option<ChaosServer>,
    address: String,
}

impl Victim<'_> {
    fn executed(&self) -> usize {
        self.stage.chaos().count(self.name, "call")
    }

    fn rules(&self, faults: &[(u64, Value)]) -> Value {
        let rule =
            |(nth, fault): &(u64, Value)| json!({"on": {"tool": "echo"}, "nth": nth, "do": fault});
        let rules: Vec<_> = faults.iter().map(rule).collect();
        http_script(
            self.era,
            &json!({"rules": rules, "end_sessions": self.ended_sessions}),
        )
    }

    fn play(&mut self, round: &str) {
        let busy = |status: u16| json!({"status": status, "headers": {"Retry-After": "1"}});
        let events = json!({"priming": true, "retry_ms": 100});
        let faults = match round {
            "reset" => vec![(5, json!("reset"))],
            "close" => vec![(5, json!("close"))],
            "pause" => vec![(5, busy(503)), (40, busy(429))],
            "cut" => vec![(5, json!({"reply": "sse", "events": events, "cut": "event"}))],
            "status" => vec![
                (3, json!({"status": 500, "execute": true, "body": ""})),
                (9, json!({"status": 404})),
            ],
            "redirect" => vec![(
                3,
                json!({"status": 307, "headers": {"Location": "/mcp?again"}}),
            )],
            _ => Vec::new(),
        };
        self.ended_sessions += u64::from(round == "end");
        self.stage.chaos().script(self.name, &self.rules(&faults));
        if round == "move" {
            drop(self.server.take());
            let moved = ChaosServer::start_at(self.stage.chaos(), self.name, &self.address);
            self.server = Some(moved);
        }
    }

    /// Plays all rounds, with this many executed calls in each; again until `calls` were executed.
    fn run(mut self, each: usize, calls: usize) -> ChaosServer {
        loop {
            for round in ROUNDS {
                let before = self.executed();
                self.play(round);
                let name = self.name;
                wait_within(
                    ROUND_TIMEOUT,
                    &format!("calls of `{name}` after {round}"),
                    || self.executed() >= before + each,
                );
            }
            if self.executed() >= calls {
                return self.server.take().expect("it runs");
            }
            let healed = Watch::start();
            wait_within(ROUND_TIMEOUT, "the source counts as healthy", || {
                healed.passed() >= HEALTHY_TIME
            });
        }
    }
}

#[test]
fn calls_of_servers_over_http_under_faults_are_neither_lost_crossed_nor_repeated() {
    let _machine = whole_machine();
    let calls = scaled("MCP_BROKER_HTTP_CALLS", 2000);
    let (legacy, modern) = (
        http_script("legacy", &json!({})),
        http_script("modern", &json!({})),
    );
    let sources = HttpSources::with(&legacy, |_| {});
    sources.chaos.script("b", &modern);
    let mut stage = sources.serve(&legacy, &[]);
    let watch = Watch::start();
    let done = AtomicBool::new(false);
    let unused = || ChaosServer::start(stage.chaos(), "unused");
    let spare = [unused(), unused()];
    let [a, b] = spare;
    let servers = [
        std::mem::replace(&mut stage.sources.a, a),
        std::mem::replace(&mut stage.sources.b, b),
    ];
    let tallies = thread::scope(|scope| {
        let stage = &stage;
        let sources = [("a", "legacy"), ("b", "modern")];
        let victims: Vec<_> = sources
            .into_iter()
            .zip(servers)
            .map(|((name, era), server)| {
                let victim = Victim {
                    stage,
                    name,
                    era,
                    ended_sessions: 0,
                    address: server.address.clone(),
                    server: Some(server),
                };
                scope.spawn(move || victim.run(calls / 2 / ROUNDS.len(), calls / 2))
            })
            .collect();
        let callers = sources.map(|(name, _)| {
            let done = &done;
            scope.spawn(move || {
                let path = format!("/{name}/echo");
                let is_done = || done.load(Ordering::Relaxed);
                Tally::flood_until(stage.broker.address(), 4, &path, &is_done)
            })
        });
        let servers: Vec<_> = victims
            .into_iter()
            .map(|victim| victim.join().expect("the rounds are played"))
            .collect();
        done.store(true, Ordering::Relaxed);
        let tallies = callers.map(|caller| caller.join().expect("callers do not panic"));
        drop(servers);
        tallies
    });
    let mut text = Vec::new();
    for (name, tally) in ["a", "b"].into_iter().zip(&tallies) {
        tally.is_clean();
        tally.agrees_with(stage.chaos(), name);
        assert!(tally.answered() >= calls * 2 / 5, "{}", tally.answered());
        text.push(format!(
            "{} of {} calls answered",
            tally.answered(),
            stage.chaos().count(name, "call")
        ));
    }
    let log = stage.broker.stderr();
    assert!(!log.contains("panic"), "{log}");
    figure(
        "F-25-soak",
        &format!(
            "legacy: {}, modern: {} within {}; 0 lost, 0 crossed, 0 executed twice",
            text[0],
            text[1],
            shown(watch.passed())
        ),
    );
}
