//! Drift under rules of access: the same tests again, whose callers have a key.

use harness::access;

#[test]
fn drift_under_rules_of_access_has_the_same_outcome() {
    let chosen = [
        "running::announced_drift_withdraws_the_tool_and_its_end_restores_it",
        "running::tolerant_start_withdraws_only_the_drifted_tool",
        "running::withdrawn_tool_is_restored_after_its_drift_ends",
    ];
    access::again("", &chosen);
}
