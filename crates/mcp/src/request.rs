//! Writes the lines that we send. Each is built once, complete with its newline.

use bytes::Bytes;
use memchr::memchr2;

use broker_model::mcp::{
    LEGACY_LATEST, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_PROTOCOL_VERSION, MODERN,
};

/// Who we say we are.
const CLIENT_INFO: &str = concat!(
    r#"{"name":"mcp-broker","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// The `_meta` member of every modern request, with its comma; capabilities are always empty, since
/// some servers list by them.
pub(crate) fn modern_meta() -> String {
    format!(
        r#""_meta":{{"{META_PROTOCOL_VERSION}":"{MODERN}","{META_CLIENT_CAPABILITIES}":{{}},"{META_CLIENT_INFO}":{CLIENT_INFO}}}"#
    )
}

/// A `tools/call`. `args` is one JSON object; `meta` is empty or [`modern_meta`].
pub(crate) fn call(id: u64, tool: &str, args: &[u8], meta: &str) -> Bytes {
    let mut line = Vec::with_capacity(args.len() + tool.len() + meta.len() + 112);
    head(&mut line, id, "tools/call");
    line.extend_from_slice(meta.as_bytes());
    line.extend_from_slice(if meta.is_empty() {
        br#""name":"#
    } else {
        br#","name":"#
    });
    push_string(&mut line, tool);
    line.extend_from_slice(br#","arguments":"#);
    push_one_line(&mut line, args);
    line.extend_from_slice(b"}}\n");
    Bytes::from(line)
}

/// `server/discover`, the modern probe.
pub(crate) fn discover(id: u64) -> Bytes {
    request(id, "server/discover", &modern_meta())
}

/// `initialize`, the legacy opening.
pub(crate) fn initialize(id: u64) -> Bytes {
    let params = format!(
        r#""protocolVersion":"{LEGACY_LATEST}","capabilities":{{}},"clientInfo":{CLIENT_INFO}"#
    );
    request(id, "initialize", &params)
}

/// `tools/list`, one page.
pub(crate) fn list(id: u64, cursor: Option<&str>, meta: &str) -> Bytes {
    let mut params = meta.to_owned().into_bytes();
    if let Some(cursor) = cursor {
        params.extend_from_slice(if meta.is_empty() {
            br#""cursor":"#
        } else {
            br#","cursor":"#
        });
        push_string(&mut params, cursor);
    }
    let mut line = Vec::with_capacity(params.len() + 64);
    head(&mut line, id, "tools/list");
    line.extend_from_slice(&params);
    line.extend_from_slice(b"}}\n");
    Bytes::from(line)
}

/// `subscriptions/listen` for changes of the tool list.
pub(crate) fn listen(id: u64, meta: &str) -> Bytes {
    let params = format!(r#"{meta},"notifications":{{"toolsListChanged":true}}"#);
    request(id, "subscriptions/listen", &params)
}

/// `notifications/initialized`.
pub(crate) fn initialized() -> Bytes {
    Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
}

/// `notifications/cancelled` for a request of ours.
pub(crate) fn cancelled(id: u64) -> Bytes {
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":\"the caller no longer waits\"}}}}\n"
    );
    Bytes::from(line)
}

/// The answer to a request of the server: nothing for a ping, an error for anything else. `id` is
/// raw JSON from the server, on one line since it came on one.
pub(crate) fn answer(id: &[u8], method: &str) -> Bytes {
    let mut line = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    line.extend_from_slice(id);
    line.extend_from_slice(if method == "ping" {
        br#","result":{}}"#
    } else {
        br#","error":{"code":-32601,"message":"method not found"}}"#
    });
    line.push(b'\n');
    Bytes::from(line)
}

fn request(id: u64, method: &str, params: &str) -> Bytes {
    let mut line = Vec::with_capacity(params.len() + 96);
    head(&mut line, id, method);
    line.extend_from_slice(params.as_bytes());
    line.extend_from_slice(b"}}\n");
    Bytes::from(line)
}

fn head(line: &mut Vec<u8>, id: u64, method: &str) {
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    push_number(line, id);
    line.extend_from_slice(br#","method":""#);
    line.extend_from_slice(method.as_bytes());
    line.extend_from_slice(br#"","params":{"#);
}

fn push_number(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

fn push_string(line: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(line, text).expect("writing a string to memory cannot fail");
}

/// Raw JSON in one line: a newline in it can only stand between tokens, where a blank means the same.
fn push_one_line(line: &mut Vec<u8>, mut json: &[u8]) {
    while let Some(at) = memchr2(b'\n', b'\r', json) {
        line.extend_from_slice(&json[..at]);
        line.push(b' ');
        json = &json[at + 1..];
    }
    line.extend_from_slice(json);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(line: &Bytes) -> Value {
        let (end, body) = line.split_last().unwrap();
        assert_eq!(*end, b'\n');
        assert!(!body.contains(&b'\n') && !body.contains(&b'\r'));
        serde_json::from_slice(body).unwrap()
    }

    #[test]
    fn a_call_is_one_line_and_keeps_its_arguments() {
        let args = b"{\r\n \"a\\n\": \"x\\ny\",\n\"n\": 1.0}";
        let line = call(1_234_567_890, "say \"hi\"\n", args, "");
        assert_eq!(
            read(&line),
            json!({"jsonrpc": "2.0", "id": 1_234_567_890, "method": "tools/call",
                "params": {"name": "say \"hi\"\n", "arguments": {"a\n": "x\ny", "n": 1.0}}})
        );
        assert!(
            line.windows(3).any(|w| w == b"1.0"),
            "numbers stay as written"
        );
    }

    #[test]
    fn every_modern_request_describes_itself() {
        let meta = modern_meta();
        let lines = [
            call(0, "t", b"{}", &meta),
            discover(1),
            list(2, None, &meta),
            list(3, Some(""), &meta),
            listen(4, &meta),
        ];
        for (id, line) in lines.iter().enumerate() {
            let message = read(line);
            assert_eq!(message["id"], id);
            let meta = &message["params"]["_meta"];
            assert_eq!(meta[META_PROTOCOL_VERSION], MODERN);
            assert_eq!(meta[META_CLIENT_CAPABILITIES], json!({}));
            assert_eq!(meta[META_CLIENT_INFO]["name"], "mcp-broker");
        }
        assert_eq!(read(&lines[3])["params"]["cursor"], "");
    }

    #[test]
    fn legacy_lines() {
        assert_eq!(
            read(&initialize(7))["params"]["protocolVersion"],
            LEGACY_LATEST
        );
        assert_eq!(read(&initialize(7))["params"]["capabilities"], json!({}));
        assert_eq!(read(&list(8, None, ""))["params"], json!({}));
        assert_eq!(
            read(&list(8, Some("é"), ""))["params"],
            json!({"cursor": "é"})
        );
        assert_eq!(read(&cancelled(9))["params"]["requestId"], 9);
        assert_eq!(
            read(&answer(b"\"x\"", "ping")),
            json!({"jsonrpc": "2.0", "id": "x", "result": {}})
        );
        assert_eq!(read(&answer(b"1", "roots/list"))["error"]["code"], -32601);
        assert_eq!(read(&initialized())["method"], "notifications/initialized");
    }
}
