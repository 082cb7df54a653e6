//! The routes of jobs: making, watching, reading and cancelling one.

use harness::mcp_http::without_chunks;
use harness::{contains, wait_until};
use serde_json::json;

use crate::stage::{Caller, bench, executed, serve};

#[test]
fn job_is_made_watched_and_read() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let made = caller.call("steps", json!({"args": {"n": 1}, "mode": "async"}));
    assert_eq!(made.status, 202, "{}", made.text());
    let made = made.json();
    let id = made["job_id"].as_str().expect("an id");
    assert!(id.starts_with("j_") && id.len() == 28, "{id}");
    for (member, path) in [
        ("poll", format!("/jobs/{id}")),
        ("ws", format!("/ws/jobs/{id}")),
        ("download", format!("/jobs/{id}/download")),
        ("manifest", format!("/jobs/{id}/manifest")),
        ("events", format!("/jobs/{id}/events")),
    ] {
        assert_eq!(made[member], path);
    }
    assert_eq!(
        (&made["status"], &made["durable"]),
        (&json!("accepted"), &json!(false))
    );

    // The stream ends after the last event of the job.
    let events = caller.get(&format!("/jobs/{id}/events"));
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    let text = without_chunks(&events.body);
    contains(
        &text,
        &[
            "event: status\ndata: {\"status\":\"queued\"}",
            "event: status\ndata: {\"status\":\"running\"}",
            "event: progress\ndata: {\"progress\":1,\"total\":3}",
            "event: progress\ndata: {\"progress\":3,\"total\":3}",
        ],
    );
    assert!(
        text.ends_with("event: status\ndata: {\"status\":\"succeeded\"}\n\n"),
        "{text}"
    );
    // It goes on behind the event that the client has.
    let last = text.matches("id: ").count();
    let rest = caller.send(
        "GET",
        &format!("/jobs/{id}/events"),
        &[("Last-Event-ID", &(last - 1).to_string())],
        "",
    );
    let rest = without_chunks(&rest.body);
    assert_eq!(rest.matches("id: ").count(), 1, "{rest}");
    contains(&rest, &[&format!("id: {last}\n"), "succeeded"]);

    let job = caller.job(id);
    assert_eq!(
        (&job["status"], &job["is_error"]),
        (&json!("succeeded"), &json!(false))
    );
    assert_eq!(job["progress"], json!({"progress": 3, "total": 3}));
    let result = caller.get(&format!("/jobs/{id}/download")).json();
    let text = result["content"][0]["text"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(text.contains("\"n\":1"), "{text}");
    let manifest = caller.get(&format!("/v1/jobs/{id}/manifest")).json();
    let part = &manifest["artifacts"][0];
    assert_eq!(
        (&part["part"], &part["media_type"]),
        (&json!(0), &json!("text/plain"))
    );
    assert_eq!(part["size"], text.len());
    assert_eq!(
        caller.get(&format!("/v1/jobs/{id}/download?part=0")).text(),
        text
    );
    let absent = caller.get(&format!("/jobs/{id}/download?part=9"));
    assert_eq!(
        (absent.status, absent.code()),
        (400, "field_invalid".to_owned())
    );
    assert_eq!(executed(&bench, "steps"), [1]);
}

#[test]
fn call_that_cannot_be_sent_makes_no_job() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    for (tool, members, status, code) in [
        (
            "quick",
            json!({"args": {"n": "x"}, "mode": "async"}),
            422,
            "args_invalid",
        ),
        (
            "absent",
            json!({"args": {}, "mode": "async"}),
            404,
            "path_not_found",
        ),
        (
            "quick",
            json!({"args": {}, "mode": "later"}),
            400,
            "field_invalid",
        ),
        (
            "quick",
            json!({"args": {}, "mode": "async", "ttl_s": 0}),
            400,
            "field_invalid",
        ),
    ] {
        let refused = caller.call(tool, members);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (status, code),
            "{}",
            refused.text()
        );
    }
    assert_eq!(executed(&bench, "quick"), [0_i64; 0]);
    for id in ["j_aaaaaaaaaaaaaaaaaaaaaaaaaa", "x", "j_", "j_AAAA"] {
        for route in ["", "/events", "/download", "/manifest"] {
            let unknown = caller.get(&format!("/jobs/{id}{route}"));
            assert_eq!(
                (unknown.status, unknown.code().as_str()),
                (404, "job_not_found"),
                "{id}{route}"
            );
        }
    }
}

#[test]
fn jobs_that_are_off_are_refused_by_name() {
    let bench = bench(&json!(null), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let refused = caller.call("quick", json!({"mode": "async"}));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (422, "not_durable")
    );
    assert_eq!(caller.call("quick", json!({"mode": "auto"})).status, 200);
    let route = caller.get("/jobs");
    assert_eq!(
        (route.status, route.code().as_str()),
        (404, "route_not_found")
    );
    contains(&route.text(), &["jobs are off: the config has no `jobs`"]);
}

#[test]
fn job_is_cancelled_before_and_after_it_is_sent() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let running: Vec<_> = (0..4)
        .map(|n| caller.make("long", json!({"n": n})))
        .collect();
    for id in &running {
        caller.wait(id, &["running"]);
    }
    // The places of the caller are taken, so that this one waits.
    let waiting = caller.make("long", json!({"n": 9}));
    let cancelled = caller.send("DELETE", &format!("/jobs/{waiting}"), &[], "");
    assert_eq!(
        (cancelled.status, &cancelled.json()["status"]),
        (200, &json!("canceled"))
    );
    assert_eq!(cancelled.json()["maybe_executed"], false);
    wait_until("the server has the calls", || {
        executed(&bench, "long").len() == 4
    });
    assert_eq!(
        caller
            .send("DELETE", &format!("/jobs/{}", running[0]), &[], "")
            .status,
        200
    );
    let job = caller.wait(&running[0], &["canceled"]);
    assert_eq!(job["maybe_executed"], true);
    wait_until("the server knows", || {
        !bench.journal("a", "cancelled").is_empty() || !bench.journal("a", "cancel").is_empty()
    });
    let again = caller.send("DELETE", &format!("/jobs/{}", running[0]), &[], "");
    assert_eq!((again.status, again.code().as_str()), (409, "job_finished"));
    let mut sent = executed(&bench, "long");
    sent.sort_unstable();
    assert_eq!(sent, [0, 1, 2, 3]);
}

#[test]
fn ticks_of_simple_clients_end_with_the_job() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let id = caller.make("slow", json!({"n": 1}));
    let ticks = caller.get(&format!(
        "/v1/mcp/progress/{id}?interval_ms=100&max_ms=20000"
    ));
    let text = without_chunks(&ticks.body);
    let last = text.trim_end().rsplit("data: ").next().expect("a tick");
    let tick: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(
        tick,
        json!({"job_id": id, "status": "succeeded", "exit_code": 0, "output_file": format!("/v1/jobs/{id}/download")})
    );
    let running = caller.make("long", json!({"n": 1}));
    caller.wait(&running, &["running"]);
    let ticks = caller.get(&format!(
        "/v1/mcp/progress/{running}?interval_ms=50&max_ms=200"
    ));
    let text = without_chunks(&ticks.body);
    assert!(
        text.matches("\"status\":\"running\"").count() >= 2,
        "{text}"
    );
}
