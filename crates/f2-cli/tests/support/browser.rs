//! A real browser: headless Chromium, if it is installed.
//!
//! It is driven over the `DevTools` protocol: JSON messages that end with a zero byte, over the two
//! pipes that `--remote-debugging-pipe` reads and writes as the descriptors 3 and 4.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The Chromium that `F2_BROWSER` names, or the first on the `PATH`.
pub fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("F2_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path);
    places.flat_map(|folder| NAMES.map(|name| folder.join(name))).find(|program| program.is_file())
}

/// The message of a test that is skipped because no browser is found.
pub const NO_BROWSER: &str = "skipped: no Chromium here; name one by F2_BROWSER";

/// Flags for a new profile and no background activity.
pub fn flags(profile: &Path) -> Vec<String> {
    let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
                 --disable-background-networking --disable-component-update --disable-sync";
    let mut flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
    flags.push(format!("--user-data-dir={}", profile.display()));
    flags
}

/// An open page.
pub struct Page {
    child: Child,
    writer: ChildStdin,
    reader: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    /// The errors that the page logged.
    pub complaints: Vec<String>,
    /// Removed with the page.
    profile: TempDir,
}

impl Page {
    /// An empty page.
    pub fn new(browser: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(browser)
            .args(flags(profile.path()))
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (writer, reader) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let reader = BufReader::new(reader);
        let (session, calls, complaints) = (None, 0, Vec::new());
        let mut page = Self { child, writer, reader, session, calls, complaints, profile };
        let target = page.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = page.call("Target.attachToTarget", &attach);
        page.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            page.call(domain, &json!({}));
        }
        page
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.writer.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.reader.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser is gone");
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.listen(&answer);
        }
    }

    fn listen(&mut self, event: &Value) {
        let complaint = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
            _ => false,
        };
        if complaint {
            self.complaints.push(event["params"].to_string());
        }
    }

    pub fn open(&mut self, address: &str) {
        // Otherwise an address that differs only after the # would not be loaded again.
        self.call("Page.navigate", &json!({ "url": "about:blank" }));
        self.call("Page.navigate", &json!({ "url": address }));
        self.wait_for("document.readyState === 'complete'");
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &ask);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    pub fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or(f64::NAN)
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        for _ in 0..6_000 {
            if self.value(expression) == true {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("never: {expression}");
    }

    /// Sets the size of the window, and whether it is that of a phone.
    pub fn resize(&mut self, width: u32, height: u32, phone: bool) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Moves the mouse to the middle of an element, and returns its coordinates.
    pub fn point_at(&mut self, element: &str) -> [Value; 2] {
        let place = format!(
            "(() => {{ const node = {element}; node.scrollIntoView({{ block: 'center' }}); \
             const box = node.getClientRects()[0]; \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let place = self.value(&place);
        let place = [place[0].clone(), place[1].clone()];
        let [x, y] = &place;
        self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
        place
    }

    /// Clicks the middle of an element.
    pub fn click(&mut self, element: &str) {
        let [x, y] = self.point_at(element);
        for kind in ["mousePressed", "mouseReleased"] {
            let button = json!({
                "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", &button);
        }
    }

    /// Types into the focused element.
    pub fn enter(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
