//! Hostile clients with tasks: ids of others, odd numbers, many requests, cursors of nothing.

use std::io::{BufReader, Read as _};

use harness::wait_until;
use serde_json::{Value, json};

use crate::front::{Front, Session, id};
use crate::owners::identities;
use crate::stage::{KEYS, executed, serve};
use crate::tasks_modern::tasks_bench;

#[test]
fn task_of_another_caller_is_as_unknown_as_any() {
    let bench = tasks_bench(&identities());
    let broker = serve(&bench);
    let one = Front::of(&broker).with_key(KEYS[0].1);
    // The second key is an operator, who sees the state of every job, and owns its own.
    let two = Front::of(&broker).with_key(KEYS[1].1);
    let own = id(&one.make("long", &json!({"n": 1})));
    let session = two.session();
    for task in [
        own.as_str(),
        "j_ih7biy73zwzlwqrsg52zn2gnjq",
        "",
        "../x",
        "j_%00",
        &"x".repeat(5000),
    ] {
        let about = json!({"taskId": task, "inputResponses": {}});
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let name = match task.len() {
                0..100 => task,
                _ => "long",
            };
            let reply = two.named("/mcp/direct", (method, name), &about);
            let code = reply.json()["error"]["code"].clone();
            let expected = if name == task {
                json!(-32602)
            } else {
                json!(-32020)
            };
            assert_eq!(code, expected, "{method} {name}");
        }
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            assert_eq!(
                session.error(method, &about)["code"],
                -32602,
                "{method} {task}"
            );
        }
    }
    assert_eq!(one.get(&own)["status"], "working", "it was not cancelled");
    let listed = |session: &Session<'_>| -> Vec<Value> {
        let page = session.result("tasks/list", &json!({}));
        let tasks = page["tasks"].as_array().expect("a list");
        tasks.iter().map(|task| task["taskId"].clone()).collect()
    };
    assert!(listed(&session).is_empty(), "an operator lists its own");
    assert_eq!(listed(&one.session()), [json!(own)]);
    for cursor in [
        "",
        "x",
        "-1",
        "9999999999999999999999",
        "j_1",
        "1 OR 1=1",
        "\u{0}",
    ] {
        let error = session.error("tasks/list", &json!({"cursor": cursor}));
        assert_eq!(error["code"], -32602, "{cursor}");
    }
    assert_eq!(
        session.error("tasks/list", &json!({"cursor": [1]}))["code"],
        -32602
    );
}

#[test]
fn caller_without_a_credential_lists_no_tasks() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let session = Front::of(&broker).session();
    let task = session.make("quick", &json!({}), &json!({}));
    assert_eq!(
        session.result("tasks/list", &json!({})),
        json!({"tasks": []})
    );
    session.wait(&id(&task), "completed");
}

#[test]
fn pages_of_tasks_follow_each_other() {
    let bench = tasks_bench(&identities());
    let broker = serve(&bench);
    let session = Front::of(&broker).with_key(KEYS[0].1).session();
    for n in 0..103 {
        let task = session.make("quick", &json!({"n": n}), &json!({}));
        session.wait(&id(&task), "completed");
    }
    let first = session.result("tasks/list", &json!({}));
    assert_eq!(first["tasks"].as_array().map(Vec::len), Some(100));
    let second = session.result("tasks/list", &json!({"cursor": first["nextCursor"]}));
    assert_eq!(second["tasks"].as_array().map(Vec::len), Some(3));
    assert!(second.get("nextCursor").is_none());
}

#[test]
fn time_of_a_task_is_within_the_bounds_or_refused() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let session = Front::of(&broker).session();
    for (ttl, most) in [
        (json!(1), 2_000),
        (json!(1e300), 604_900_000),
        (json!(60000.5), 61_100),
    ] {
        let task = session.make("quick", &json!({}), &json!({"ttl": ttl}));
        assert!(task["ttl"].as_u64() <= Some(most), "{ttl}: {task}");
    }
    for task in [
        json!({"ttl": 0}),
        json!({"ttl": -5}),
        json!({"ttl": "60"}),
        json!(true),
        json!([]),
    ] {
        let params = json!({"name": "a-quick", "arguments": {"n": 9}, "task": task});
        assert_eq!(
            session.error("tools/call", &params)["code"],
            -32602,
            "{task}"
        );
    }
    assert!(
        executed(&bench, "quick").is_empty(),
        "a refused call is not sent"
    );
}

#[test]
fn subscription_has_a_bounded_number_of_tasks() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let front = Front::of(&broker);
    let ids: Vec<_> = (0..10_000).map(|n| format!("j_{n}")).collect();
    for tasks in [json!(ids), json!("j_1"), json!([1]), json!({"a": 1})] {
        let mut text = String::new();
        let mut reader = BufReader::new(front.listen(&json!({"taskIds": tasks})));
        reader.read_to_string(&mut text).expect("a reply");
        assert!(text.contains("-32602"), "{text}");
    }
}

#[test]
fn requests_of_a_caller_that_wait_for_results_are_bounded() {
    const MOST: usize = 32;
    let bench = tasks_bench(&identities());
    let broker = serve(&bench);
    let one = Front::of(&broker).with_key(KEYS[0].1).session();
    let two = Front::of(&broker).with_key(KEYS[1].1).session();
    let about = json!({"taskId": id(&one.make("long", &json!({"n": 1}), &json!({})))});
    let mut open: Vec<_> = (0..MOST)
        .map(|n| one.send(n, "tasks/result", &about))
        .collect();
    // The requests are read one after the other by separate connections.
    let mut refused = Value::Null;
    wait_until("a further request is refused", || {
        let stream = one.send(1_000 + open.len(), "tasks/result", &about);
        stream
            .set_read_timeout(Some(std::time::Duration::from_millis(500)))
            .expect("a timeout can be set");
        let mut text = String::new();
        match BufReader::new(&stream).read_to_string(&mut text) {
            Ok(_) => {
                let body = text.rsplit("\r\n").next().unwrap_or_default();
                refused = serde_json::from_str(body).unwrap_or_default();
                true
            }
            Err(_) => {
                open.push(stream);
                false
            }
        }
    });
    assert_eq!(refused["error"]["data"]["code"], "overloaded", "{refused}");
    assert!(open.len() <= MOST + 1, "{} requests wait", open.len());
    // Another caller has its own places.
    let other = id(&two.make("slow", &json!({"n": 2}), &json!({})));
    two.result("tasks/result", &json!({"taskId": other}));
    one.result("tasks/cancel", &about);
}
