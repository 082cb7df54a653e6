//! A headless Chromium with one page, driven by the DevTools protocol.

use std::fs;
use std::path::Path;

use data_encoding::BASE64;
use harness::websocket::WebSocketClient;
use harness::{Daemon, Run, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Counts what a page must not do, and the time until the first rows.
const OBSERVER: &str = r"
window.violations = [];
addEventListener('securitypolicyviolation', (event) => violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
window.firstRows = null;
new MutationObserver(() => {
  if (window.firstRows === null && document.querySelector('.row')) window.firstRows = performance.now();
}).observe(document, { childList: true, subtree: true });
";

/// A page in a browser. Dropping it ends the browser.
pub(crate) struct Page {
    socket: WebSocketClient,
    session: Option<String>,
    next_id: u64,
    events: Vec<Value>,
    _browser: Daemon,
    _folder: TempDir,
}

impl Page {
    /// Starts a browser, and opens a page at an address.
    pub(crate) fn open(url: &str) -> Self {
        let mut page = Self::blank();
        page.go(url);
        page
    }

    /// Starts a browser with an empty page of 1280 to 800 points.
    pub(crate) fn blank() -> Self {
        let program = ["/usr/bin/chromium", "/usr/local/bin/chromium"].map(Path::new);
        let program = program.into_iter().find(|program| program.exists());
        let program = program.expect("chromium is not installed; run tests/web/install");
        let folder = TempDir::new().expect("a temporary folder");
        let profile = format!("--user-data-dir={}", folder.path().display());
        let run = Run::new(program).env("HOME", folder.path()).args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--force-device-scale-factor=1",
            "--hide-scrollbars",
            "--window-size=1280,800",
            "--remote-debugging-port=0",
            &profile,
            "about:blank",
        ]);
        let browser = Daemon::start(run);
        let port_file = folder.path().join("DevToolsActivePort");
        let mut place = String::new();
        wait_until("the browser listens", || {
            place = fs::read_to_string(&port_file).unwrap_or_default();
            place.lines().count() == 2
        });
        let (port, target) = place.trim().split_once('\n').expect("two lines");
        let mut page = Self {
            socket: WebSocketClient::connect(&format!("127.0.0.1:{port}"), target),
            session: None,
            next_id: 0,
            events: Vec::new(),
            _browser: browser,
            _folder: folder,
        };
        let target = page.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attached = page.ask(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Network", "Log", "Runtime"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page.before_scripts(OBSERVER);
        page
    }

    /// Runs a script in each document from now on, before the scripts of the document.
    pub(crate) fn before_scripts(&mut self, source: &str) {
        self.ask(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": source}),
        );
    }

    /// Goes to an address, and waits until the document is there.
    pub(crate) fn go(&mut self, url: &str) {
        let gone = self.ask("Page.navigate", json!({"url": url}));
        assert!(gone.get("errorText").is_none(), "{gone}");
        self.wait_for("document.readyState === 'complete'");
    }

    /// Sends a command; returns its result.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut command = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.socket.send(&command.to_string());
        loop {
            let message = self.socket.next_message();
            if message["id"] != id {
                self.events.push(message);
                continue;
            }
            assert!(message.get("error").is_none(), "{method}: {message}");
            return message["result"].clone();
        }
    }

    /// Returns the value of an expression.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", params);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let condition = format!("Boolean({expression})");
        wait_until(expression, || self.value(&condition) == true);
    }

    /// Returns the text that a reader sees in an element.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!(
            "document.querySelector({selector:?})?.innerText ?? ''"
        ));
        text.as_str().expect("a text").to_owned()
    }

    /// Waits until an element has a text.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, selector: &str, text: &str) {
        let has = format!("document.querySelector({selector:?})?.innerText.includes({text:?})");
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.wait_for(&has)));
        if found.is_err() {
            panic!("`{text}` is not in `{selector}`: {}", self.text("body"));
        }
    }

    /// Goes to a view by its name in the address.
    pub(crate) fn view(&mut self, hash: &str) {
        self.value(&format!("location.hash = {hash:?}"));
    }

    /// Clicks an element.
    pub(crate) fn click(&mut self, selector: &str) {
        self.value(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "End" => (35, ""),
            "Home" => (36, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            other => panic!("no key {other}"),
        };
        let mut event = json!({"key": key, "code": key, "windowsVirtualKeyCode": code});
        event["type"] = json!("keyDown");
        if !text.is_empty() {
            event["text"] = json!(text);
        }
        self.ask("Input.dispatchKeyEvent", event.clone());
        event["type"] = json!("keyUp");
        self.ask("Input.dispatchKeyEvent", event);
    }

    /// Types a text into the element that has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.ask("Input.insertText", json!({"text": text}));
    }

    /// Enters a credential as a person does.
    pub(crate) fn enter_key(&mut self, key: &str) {
        self.value("document.getElementById('key').focus()");
        self.type_text(key);
        self.press("Enter");
    }

    /// Chooses the colour scheme.
    pub(crate) fn scheme(&mut self, name: &str) {
        let feature = json!([{"name": "prefers-color-scheme", "value": name}]);
        self.ask("Emulation.setEmulatedMedia", json!({"features": feature}));
    }

    /// Begins to count the processor time of the page's main thread, from the next document on.
    pub(crate) fn count_processor_time(&mut self) {
        self.ask("Performance.disable", json!({}));
        self.ask("Performance.enable", json!({"timeDomain": "threadTicks"}));
    }

    /// Returns the milliseconds of processor time of the page's main thread since then.
    pub(crate) fn processor_ms(&mut self) -> f64 {
        let metrics = self.ask("Performance.getMetrics", json!({}));
        let metrics = metrics["metrics"].as_array().cloned().unwrap_or_default();
        let mut metrics = metrics.iter();
        let found = metrics.find(|metric| metric["name"] == "TaskDuration");
        let seconds = found.and_then(|metric| metric["value"].as_f64());
        1000.0 * seconds.expect("the time is counted")
    }

    /// Returns a picture of the window as PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let picture = self.ask("Page.captureScreenshot", json!({"format": "png"}));
        let text = picture["data"].as_str().expect("a picture");
        BASE64.decode(text.as_bytes()).expect("it is base64")
    }

    /// Returns the addresses of all requests of the page so far.
    pub(crate) fn requests(&mut self) -> Vec<String> {
        // Events that came before the answer are read.
        self.value("1");
        let events = self.events.iter();
        let requests = events.filter(|event| event["method"] == "Network.requestWillBeSent");
        let urls = requests.filter_map(|event| event["params"]["request"]["url"].as_str());
        urls.map(str::to_owned).collect()
    }

    /// Asserts that every request went to this origin, that the page broke no rule of its policy, and that no script failed.
    #[track_caller]
    pub(crate) fn assert_clean(&mut self, origin: &str) {
        let violations = self.value("window.violations");
        assert_eq!(violations, json!([]), "violations of the policy");
        for url in self.requests() {
            assert!(
                url.starts_with(origin) || url.starts_with("data:"),
                "a request to {url}"
            );
        }
        for event in &self.events {
            let entry = &event["params"]["entry"];
            let is_policy = event["method"] == "Log.entryAdded" && entry["source"] == "security";
            let is_failure = event["method"] == "Runtime.exceptionThrown";
            assert!(!is_policy && !is_failure, "{event}");
        }
    }
}
