//! Invalid bodies of HTTP requests: sizes, JSON, paths, members, arguments.

use std::io::Write as _;
use std::net::TcpStream;

use harness::{Bench, Broker, Chaos, Response, Run, binary, raw, read, refusal, request, send};
use serde_json::{Value, json};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const ROUTES: [&str; 3] = ["/meta_tree", "/meta_desc", "/meta_call"];

/// A broker that answers from its catalog, with its folder.
fn listening() -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    (chaos, broker)
}

fn post(broker: &Broker, route: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    request(broker.address(), "POST", route, headers, body)
}

/// Asserts that it still answers.
fn goes_on(broker: &Broker) {
    assert_eq!(broker.post("/meta_tree", &json!({})).status, 200);
}

/// The head of a `POST /meta_call` without the headers for the length of the body.
fn head(broker: &Broker) -> String {
    format!(
        "POST /meta_call HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n",
        broker.address()
    )
}

#[test]
fn body_announced_over_the_limit_is_refused() {
    let (_chaos, broker) = listening();
    let announced = format!(
        "{}Content-Length: {}\r\n\r\n{{",
        head(&broker),
        (4 << 20) + 1
    );
    let response = raw(broker.address(), announced.as_bytes());
    refusal(&response, 413, "body_too_large");
    assert_eq!(response.header("connection"), Some("close"));
    goes_on(&broker);
}

#[test]
fn body_in_endless_chunks_is_refused() {
    let (_chaos, broker) = listening();
    let begin = format!("{}Transfer-Encoding: chunked\r\n\r\n", head(&broker));
    let mut stream = send(broker.address(), begin.as_bytes());
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let mut writer = stream.try_clone().expect("a handle can be copied");
    let feeder = std::thread::spawn(move || while writer.write_all(chunk.as_bytes()).is_ok() {});
    let response = read(stream.try_clone().expect("a handle can be copied"));
    refusal(&response, 413, "body_too_large");
    assert_eq!(response.header("connection"), Some("close"));
    // The broker reads no more of it: writing fails, and the sender ends.
    feeder.join().expect("the feeder ends");
    goes_on(&broker);
    stream.flush().expect("nothing is held back");
}

#[test]
fn body_with_a_wrong_length_is_refused() {
    let (_chaos, broker) = listening();
    let lie = format!(
        "{}Content-Length: 11\r\n\r\n{{\"path\":\"/\"}}{}",
        head(&broker),
        "x".repeat(64)
    );
    refusal(&raw(broker.address(), lie.as_bytes()), 400, "json_invalid");
    // Less than announced, and then the end: no tool is called, and nothing waits for the rest.
    let less = format!(
        "{}Content-Length: 100\r\n\r\n{{\"path\":\"/a/echo\"",
        head(&broker)
    );
    let stream: TcpStream = send(broker.address(), less.as_bytes());
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("half can be closed");
    goes_on(&broker);
    let twice = format!(
        "{}Content-Length: 2\r\nContent-Length: 12\r\n\r\n{{\"path\":\"/\"}}",
        head(&broker)
    );
    assert_eq!(raw(broker.address(), twice.as_bytes()).status, 400);
}

#[test]
fn body_that_is_not_strict_json_is_refused() {
    let (_chaos, broker) = listening();
    let deep = |levels: usize| {
        format!(
            r#"{{"path":"/a/echo","args":{{"text":{}{}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    for body in [
        "",
        " ",
        "hello",
        r#"{"path":"/"#,
        r#"{"path":"/",}"#,
        r#"{"path":"/"} {}"#,
        "{'path':'/'}",
        r#"{"path":"/a/echo","args":{"n":NaN}}"#,
        r#"{"path":"/a/echo","args":{"n":Infinity}}"#,
        r#"{"path":"/","path":"/a"}"#,
        &deep(200),
        &deep(100_000),
        "\u{feff}",
    ] {
        for route in ROUTES {
            let error = refusal(
                &post(&broker, route, &[JSON], body.as_bytes()),
                400,
                "json_invalid",
            );
            let shown: String = body.chars().take(40).collect();
            let offset = error["details"]["offset"].as_u64();
            assert!(
                offset.is_some_and(|offset| offset <= body.len() as u64),
                "{shown}: {error}"
            );
        }
    }
    for body in ["[]", "null", "7", r#""/""#] {
        for route in ROUTES {
            refusal(
                &post(&broker, route, &[JSON], body.as_bytes()),
                400,
                "json_invalid",
            );
        }
    }
    refusal(
        &post(&broker, "/meta_tree", &[JSON], b"{\"path\":\"\xff\"}"),
        400,
        "json_invalid",
    );
    goes_on(&broker);
}

#[test]
fn body_with_duplicate_keys_in_args_is_refused() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    for args in [
        r#"{"text":"a","text":"b"}"#,
        r#"{"text":"a","t\u0065xt":"b"}"#,
        r#"{"text":{"x":1,"x":2}}"#,
        r#"{"text":[[{"x":1,"x":1}]]}"#,
    ] {
        let body = format!(r#"{{"path":"/a/echo","args":{args}}}"#);
        let error = refusal(
            &post(&broker, "/meta_call", &[JSON], body.as_bytes()),
            400,
            "json_invalid",
        );
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| message.contains("duplicate")),
            "{error}"
        );
    }
    let twice = br#"{"path":"/a/echo","args":{"text":"a"},"args":{"text":"b"}}"#;
    refusal(
        &post(&broker, "/meta_call", &[JSON], twice),
        400,
        "json_invalid",
    );
    assert_eq!(chaos.events("a", "call"), Vec::<Value>::new());
}

#[test]
fn body_with_an_invalid_or_unknown_path_is_refused() {
    let (_chaos, broker) = listening();
    for path in [
        json!("a"),
        json!("/a/"),
        json!("//a"),
        json!("/a//echo"),
        json!("/a/.."),
        json!("/./a"),
        json!("/a%2fecho"),
        json!("/a/%65cho"),
        json!("/a\\echo"),
        json!("/a/echo\u{0}"),
        json!("/\u{202e}"),
        json!("/a/echo "),
        json!("/".to_owned() + &"x".repeat(129)),
        json!("/x".repeat(300)),
        json!(7),
        json!(["/a"]),
    ] {
        refusal(
            &broker.post("/meta_tree", &json!({"path": path})),
            400,
            "path_invalid",
        );
        refusal(
            &broker.post("/meta_desc", &json!({"path": path})),
            400,
            "path_invalid",
        );
        refusal(
            &broker.post("/meta_call", &json!({"path": path})),
            400,
            "path_invalid",
        );
    }
    refusal(
        &broker.post("/meta_call", &json!({"args": {}})),
        400,
        "path_invalid",
    );
    for (wanted, nearest) in [
        ("/a/eco", "/a/echo"),
        ("/b/structred", "/b/structured"),
        ("/A", "/a"),
        ("/a/ECHO", "/a/echo"),
    ] {
        for route in ROUTES {
            let error = refusal(
                &broker.post(route, &json!({"path": wanted})),
                404,
                "path_not_found",
            );
            let names = error["did_you_mean"]
                .as_array()
                .expect("there are names alike");
            assert_eq!(names[0], nearest, "{wanted}");
            assert!(names.len() <= 3, "{error}");
        }
    }
    let error = refusal(
        &broker.call("/qqqqqqqqqqqq", json!({})),
        404,
        "path_not_found",
    );
    assert_eq!(error.get("did_you_mean"), None);
    let hint = error["hint"].as_str().unwrap_or_default();
    assert!(!hint.contains("did_you_mean"), "{error}");
    assert_eq!(error["details"]["node"], "/");
}

#[test]
fn path_that_is_incomplete_gets_its_candidates() {
    let (_chaos, broker) = listening();
    for (wanted, code, status, nearest) in [
        ("a/echo", "path_invalid", 400, "/a/echo"),
        ("/a/echo/", "path_invalid", 400, "/a/echo"),
        ("/a/ec", "path_not_found", 404, "/a/echo"),
        ("/echo", "path_not_found", 404, "/a/echo"),
        ("a_echo", "path_invalid", 400, "/a/echo"),
        ("/b/struct", "path_not_found", 404, "/b/structured"),
        ("b/struct", "path_invalid", 400, "/b/structured"),
    ] {
        for route in ROUTES {
            let response = broker.post(route, &json!({"path": wanted}));
            let error = refusal(&response, status, code);
            assert_eq!(error["did_you_mean"][0], nearest, "{wanted}: {error}");
        }
    }
}

#[test]
fn path_of_an_unknown_tool_gets_the_entries_of_its_node() {
    let (_chaos, broker) = listening();
    let listed = broker.post("/meta_tree", &json!({"path": "/a"})).json();
    let mut entries: Vec<_> = listed["children"]
        .as_array()
        .expect("entries")
        .iter()
        .collect();
    let more = entries.len().saturating_sub(20);
    entries.truncate(20);
    let entries: Vec<_> = entries.iter().map(|entry| entry["path"].clone()).collect();
    for path in ["/a/zzzzzz", "/a/zzzzzz/yyyyyy", "a/zzzzzz"] {
        let error = broker.call(path, json!({})).json()["error"].clone();
        assert_eq!(error["details"]["node"], "/a", "{error}");
        assert_eq!(error["details"]["children"], json!(entries), "{error}");
        assert_eq!(error["details"]["more"].as_u64().unwrap_or(0), more as u64);
        let hint = error["hint"].as_str().expect("there is a hint");
        assert!(hint.contains("details.children"), "{hint}");
    }
    // A request with several paths lists a node once.
    let body = json!({"paths": ["/a/zzzzzz", "/a/yyyyyy"]});
    let described = broker.post("/meta_desc", &body).json();
    let of = |at: usize| described["entries"][at]["error"]["details"]["node"].clone();
    assert_eq!((of(0), of(1)), (json!("/a"), Value::Null));
}

#[test]
fn args_under_another_name_are_explained() {
    let (_chaos, broker) = listening();
    for name in ["arguments", "params", "input"] {
        let response = broker.post("/meta_call", &json!({"path": "/a/echo", name: {}}));
        let error = refusal(&response, 400, "field_unknown");
        let message = error["message"].as_str().expect("there is a message");
        assert!(message.contains("it is called `args`"), "{message}");
        assert_eq!(error["did_you_mean"], json!(["args"]));
    }
}

#[test]
fn argument_outside_of_args_gets_the_body_that_has_it() {
    let (_chaos, broker) = listening();
    let response = broker.post("/meta_call", &json!({"path": "/a/echo", "text": "x"}));
    let error = refusal(&response, 400, "field_unknown");
    let message = error["message"].as_str().expect("there is a message");
    assert!(message.contains("belong in `args`"), "{message}");
    let hint = error["hint"].as_str().expect("there is a hint");
    assert!(
        hint.contains(r#"{"args":{"text":"…"},"path":"/a/echo"}"#),
        "{hint}"
    );
    // With arguments where they belong it is a mistake of another kind.
    let body = json!({"path": "/a/echo", "args": {"text": "x"}, "txt": "x"});
    let error = refusal(&broker.post("/meta_call", &body), 400, "field_unknown");
    assert!(
        !error["hint"].as_str().expect("a hint").contains("Send the"),
        "{error}"
    );
}

#[test]
fn path_with_other_separators_gets_the_right_one_first() {
    let bench = Bench::new();
    let names = ["my-files", "my", "files", "my_file"];
    bench.configure(names.map(|name| (name, json!({}))));
    for name in names {
        bench.one_tool(
            name,
            json!({"name": "get_it", "inputSchema": {"type": "object"}}),
        );
    }
    bench.lock();
    let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let broker = Broker::start_ready(run.args(["serve", "0", "--config", "c.json"]));
    for wrong in ["/my_files/get_it", "/my_files/get-it", "/My-Files/Get_It"] {
        let response = broker.post("/meta_call", &json!({ "path": wrong }));
        let error = refusal(&response, 404, "path_not_found");
        assert_eq!(error["did_you_mean"][0], "/my-files/get_it", "{error}");
    }
}

#[test]
fn args_as_text_are_those_of_the_object_in_it() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let long = "x".repeat(100_000);
    for text in ["x", "\u{e9}\"\\\n", &long] {
        let args = json!({ "text": text });
        let reply = broker.call("/a/echo", json!(format!("\n {args}\t")));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let echoed = reply.json()["result"]["content"][0]["text"].clone();
        let echoed: Value = serde_json::from_str(echoed.as_str().expect("a text")).expect("JSON");
        assert_eq!(echoed["text"], *text);
        // What is validated is what is sent.
        let wrong = json!({ "text": [text] }).to_string();
        refusal(&broker.call("/a/echo", json!(wrong)), 422, "args_invalid");
        let broken = format!("{args} {{}}");
        refusal(&broker.call("/a/echo", json!(broken)), 400, "json_invalid");
    }
}

#[test]
fn absent_members_of_the_meta_tools_may_be_null_or_empty() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let plain = broker.post("/meta_tree", &json!({}));
    for absent in [Value::Null, json!(""), json!([])] {
        let tree = json!({"path": absent, "depth": absent, "query": absent, "limit": absent});
        assert_eq!(broker.post("/meta_tree", &tree).text(), plain.text());
        let described = broker.post("/meta_desc", &json!({"path": "/a/echo"}));
        let body = json!({"path": "/a/echo", "paths": absent});
        assert_eq!(broker.post("/meta_desc", &body).text(), described.text());
        let body = json!({"path": "/a/echo", "args": {"text": "x"}, "meta": absent});
        assert_eq!(broker.post("/meta_call", &body).status, 200, "{body}");
    }
    let unused = broker.post("/meta_tree", &json!({"query": "echo", "depth": 1}));
    let searched = broker.post("/meta_tree", &json!({"query": "echo"})).json();
    assert_eq!(unused.json()["children"], searched["children"]);
    assert!(
        unused.json()["warnings"][0]
            .as_str()
            .is_some_and(|text| text.contains("`depth`"))
    );
    let both = broker.post(
        "/meta_desc",
        &json!({"path": "/a", "paths": ["/a/echo", "/a"]}),
    );
    let paths: Vec<_> = (0..3)
        .map(|at| both.json()["entries"][at]["path"].clone())
        .collect();
    assert_eq!(paths, [json!("/a"), json!("/a/echo"), Value::Null]);
    assert!(
        both.json()["warnings"][0]
            .as_str()
            .is_some_and(|text| text.contains("both"))
    );
}

#[test]
fn body_for_the_wrong_kind_of_entry_is_refused_with_a_hint() {
    let (_chaos, broker) = listening();
    let tree = refusal(
        &broker.post("/meta_tree", &json!({"path": "/a/echo"})),
        400,
        "path_is_tool",
    );
    let hint = tree["hint"].as_str().expect("there is a hint");
    assert!(
        hint.contains("meta_desc") && hint.contains("meta_call") && hint.contains("/a/echo"),
        "{hint}"
    );
    for node in ["/", "/a"] {
        let call = refusal(&broker.call(node, json!({})), 400, "path_is_node");
        let hint = call["hint"].as_str().expect("there is a hint");
        assert!(hint.contains("meta_tree") && hint.contains(node), "{hint}");
    }
}

#[test]
fn body_with_invalid_arguments_is_refused_before_the_server() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let details = |path: &str, args: Value| {
        let error = refusal(&broker.call(path, args), 422, "args_invalid");
        assert_eq!(error["path"], path);
        error["details"].clone()
    };
    let missing = details("/a/echo", json!({}));
    assert_eq!(missing["errors"][0]["keyword"], "required", "{missing}");
    assert_eq!(missing["args_schema"]["required"], json!(["text"]));
    let absent = refusal(
        &broker.post("/meta_call", &json!({"path": "/a/echo"})),
        422,
        "args_invalid",
    );
    assert_eq!(
        absent["details"], missing,
        "absent arguments are empty ones"
    );
    let both = details("/b/add", json!({"a": "one", "b": true}));
    let errors = both["errors"].as_array().expect("errors are a list");
    assert_eq!(errors.len(), 2, "{both}");
    for (error, pointer, got) in [(&errors[0], "/a", "string"), (&errors[1], "/b", "boolean")] {
        assert_eq!(
            (&error["pointer"], &error["keyword"], &error["expected"]),
            (&json!(pointer), &json!("type"), &json!("number"))
        );
        assert!(
            error["got"].as_str().is_some_and(|text| text.contains(got)),
            "{error}"
        );
    }
    let many: serde_json::Map<String, Value> = (0..40)
        .map(|n| (format!("api_key{n}"), json!("canary-value")))
        .collect();
    let bounded = details("/a/echo", Value::Object(many));
    assert!(
        bounded["errors"]
            .as_array()
            .is_some_and(|errors| (1..=20).contains(&errors.len())),
        "{bounded}"
    );
    assert!(!bounded.to_string().contains("canary-value"), "{bounded}");
    assert_eq!(
        chaos.events("a", "call").len() + chaos.events("b", "call").len(),
        0
    );
}

#[test]
fn body_with_an_unknown_member_is_refused_with_a_suggestion() {
    let (_chaos, broker) = listening();
    for (route, member, meant) in [
        ("/meta_call", "argz", "args"),
        ("/meta_tree", "depht", "depth"),
        ("/meta_desc", "pathz", "paths"),
    ] {
        let error = refusal(
            &broker.post(route, &json!({"path": "/", member: 1})),
            400,
            "field_unknown",
        );
        let names = error["did_you_mean"]
            .as_array()
            .expect("there are names alike");
        assert!(names.contains(&json!(meant)), "{error}");
    }
}
