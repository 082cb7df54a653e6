//! Faults under rules of access: the same tests again, whose callers have a key.

use harness::access;

#[test]
fn faults_under_rules_of_access_have_the_same_outcome() {
    let chosen = [
        "callers::garbage_and_incomplete_bodies_affect_no_other_caller",
        "callers_chaos::chaos_client_in_any_mode_affects_no_other_caller",
        "exits::answer_cut_off_by_an_exit_fails_its_call",
        "exits::server_death_fails_each_call_with_code_and_signal",
        "http_sources::headers::headers_of_callers_reach_no_server",
        "limits::call_beyond_limit_and_queue_is_refused_at_once",
        "retry::call_is_retried_only_where_config_and_tool_allow_it",
        "timeouts::call_timeout_applies_though_the_server_does_not_read",
    ];
    access::again("", &chosen);
}
