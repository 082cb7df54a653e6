//! Lists that are announced as changed thousands of times, while calls are in progress.

use std::thread;

use harness::Tally;
use harness::figure::{Watch, figure, shown};
use serde_json::json;

use harness::faults::{ECHO, FaultFixture};

#[test]
fn announcements_by_thousands_cause_few_listings() {
    let stage = FaultFixture::new(&json!({}));
    let lists = || stage.chaos.events("a", "list").len();
    let before = lists();
    let used = harness::processor_time(stage.broker.pid());
    let watch = Watch::start();
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                for _ in 0..500 {
                    stage.broker.result("/a/notify", json!({}));
                }
            });
        }
    });
    let took = watch.passed();
    let used = harness::processor_time(stage.broker.pid()) - used;
    let checks = lists() - before;
    assert_eq!(stage.chaos.events("a", "list-changed").len(), 5000);
    // Ten at once, then one every 6 s.
    let allowed = 11 + usize::try_from(took.as_secs() / 6).expect("a few seconds");
    assert!(checks <= allowed, "{checks} checks within {took:?}");
    figure(
        "F-33",
        &format!(
            "5000 announcements within {}: {checks} checks, {used}0 ms of processor time for calls and all",
            shown(took)
        ),
    );
    let tally = Tally::flood(stage.broker.address(), 4, 25, ECHO);
    tally.is_clean();
    assert_eq!(tally.answered(), 100);
    stage.is_as_before();
}
