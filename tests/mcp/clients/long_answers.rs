//! Answers of more bytes than the official clients read: the call fails, and the connection and the calls of other
//! servers go on.

use super::*;

/// The bytes of a line at which the TypeScript SDK ends its connection.
const SDK_BYTES: usize = 10 << 20;

/// The results of a client over stdio that calls a tool with an image of so many bytes, and others before and after.
fn with_image_of(bytes: usize) -> [Value; 4] {
    let bench = Bench::new();
    bench.configure([("a", json!({})), ("b", json!({}))]);
    bench.lock();
    let image = json!({"type": "image", "data": "A".repeat(bytes), "mimeType": "image/png"});
    let result = json!({"result": {"content": [image]}});
    bench.script("a", &json!({"on_call": {"structured": result}}));
    let config = bench.read("c.json");
    let mut config: Value = serde_json::from_str(&config).expect("it is JSON");
    config["limits"] = json!({"result_chars": 10_000_000});
    bench.write("c.json", &config.to_string());
    let call = |path: &str, args: Value| json!({"name": "meta_call", "arguments": {"path": path, "args": args}});
    let text = json!({"text": "x"});
    let steps = [
        call("/a/echo", text.clone()),
        call("/a/structured", json!({"n": 1})),
        call("/a/echo", text.clone()),
        call("/b/echo", text),
    ];
    let steps = json!(steps).to_string();
    let generator = binary("broker-gen");
    // The sources name their program without a folder.
    let beside = generator.parent().expect("it is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Run::new("node".as_ref())
        .env("PATH", format!("{beside}:{path}"))
        .args([official_clients().join("typescript_v1.mjs")])
        .args(["legacy", "--steps", &steps])
        .args([&generator])
        .args(["serve", "stdio", "--config"])
        .args([bench.path("c.json")])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let seen: Value = serde_json::from_str(&output.stdout).expect("one JSON object");
    let calls = seen["calls"].as_array().cloned().unwrap_or_default();
    calls.try_into().expect("four results")
}

#[test]
fn answer_beyond_the_buffer_of_the_sdk_fails_its_call_only() {
    let [before, image, same, other] = with_image_of(SDK_BYTES + (2 << 20));
    for answered in [&before, &same, &other] {
        assert!(
            !answered["isError"].as_bool().unwrap_or_default(),
            "{answered}"
        );
        assert!(answered["content"][0]["text"].is_string(), "{answered}");
    }
    assert_eq!(image["isError"], true, "{image}");
    let text = image["content"][0]["text"].as_str().expect("a text");
    let error: Value = serde_json::from_str(text).expect("an error object");
    assert_eq!(error["code"], "output_too_large", "{error}");
    assert_eq!(error["maybe_executed"], true, "{error}");
    assert!(text.contains("max_output_chars"), "{text}");
}

#[test]
fn answer_that_fits_the_buffer_of_the_sdk_arrives() {
    let bytes = 9 << 20;
    let [_, image, same, other] = with_image_of(bytes);
    assert_eq!(
        image["content"][0]["data"].as_str().map(str::len),
        Some(bytes)
    );
    for answered in [&same, &other] {
        assert!(answered["content"][0]["text"].is_string(), "{answered}");
    }
}
