//! A browser, driven by the Chrome DevTools Protocol through a pipe: with real key strokes and clicks.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long to wait for a condition in a page, milliseconds. Only a condition that never holds takes this long.
const PATIENCE_MS: u32 = 60_000;

/// A running Chromium with one page; killed when dropped.
pub struct Browser {
    child: Child,
    commands: File,
    messages: BufReader<File>,
    session: Value,
    sent: u64,
    /// Errors from the page's console, refused requests excepted.
    pub errors: Vec<String>,
    _folder: TempDir,
}

impl Browser {
    /// Opens a page. Without Chromium it prints that the test is skipped and returns `None`; in CI it panics.
    pub fn open(url: &str) -> Option<Self> {
        let found =
            Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success());
        if !found {
            assert!(std::env::var_os("CI").is_none(), "chromium is missing: run scripts/setup-tests");
            eprintln!("SKIPPED: chromium is missing, so the page was not opened: run scripts/setup-tests");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (commands, messages) = (folder.path().join("commands"), folder.path().join("messages"));
        assert!(Command::new("mkfifo").args([&commands, &messages]).status().unwrap().success());
        // The protocol's pipe is descriptors 3 and 4.
        let script = r#"exec timeout --kill-after=5 300 chromium --headless --no-sandbox --disable-gpu \
            --no-first-run --disable-background-networking --disable-component-update --disable-sync \
            --disable-dev-shm-usage --remote-debugging-pipe --user-data-dir="$1/profile" about:blank \
            3<"$1/commands" 4>"$1/messages""#;
        let child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let commands = OpenOptions::new().write(true).open(commands).unwrap();
        let messages = BufReader::new(File::open(messages).unwrap());
        let mut browser = Self {
            child,
            commands,
            messages,
            session: Value::Null,
            sent: 0,
            errors: Vec::new(),
            _folder: folder,
        };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attach = json!({"targetId": target, "flatten": true});
        browser.session = browser.ask("Target.attachToTarget", attach)["sessionId"].clone();
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            browser.ask(domain, json!({}));
        }
        browser.go(url);
        Some(browser)
    }

    /// Navigates to another page and waits until it has loaded.
    pub fn go(&mut self, url: &str) {
        self.ask("Page.navigate", json!({"url": url}));
        self.arrive(url);
    }

    /// Waits until this page has loaded. Until then an expression may run in the previous page, or in none.
    pub fn arrive(&mut self, url: &str) {
        let (there, place) = (json!(format!("complete {url}")), "document.readyState + ' ' + location.href");
        while self.exchange("Runtime.evaluate", json!({"expression": place}))["result"]["result"]["value"]
            != there
        {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a command and waits for its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.exchange(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a command and waits for its response, which may be an error.
    fn exchange(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut command = json!({"id": self.sent, "method": method, "params": params});
        if !self.session.is_null() {
            command["sessionId"] = self.session.clone();
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let message = self.next_message();
            if message["id"] == json!(self.sent) {
                return message;
            }
        }
    }

    fn next_message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.messages.read_until(0, &mut bytes).unwrap();
        bytes.pop();
        let message: Value = serde_json::from_slice(&bytes).expect("the browser is there");
        let entry = &message["params"]["entry"];
        let logged = message["method"] == "Log.entryAdded"
            && entry["level"] == "error"
            && entry["source"] != "network";
        if logged || message["method"] == "Runtime.exceptionThrown" {
            self.errors.push(message.to_string());
        }
        message
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let waiting = format!(
            "new Promise((done) => {{ const end = performance.now() + {PATIENCE_MS}; const look = () => {{
               let holds = false; try {{ holds = {expression} }} catch {{}}
               if (holds) done(true); else if (performance.now() > end) done(false); else setTimeout(look, 20);
             }}; look(); }})"
        );
        if self.value(&waiting) != json!(true) {
            let body = self.value("document.body.innerText");
            panic!("never: {expression}; the page says: {body}; errors: {:?}", self.errors);
        }
    }

    /// Clicks the middle of an element, as a person would who waits until the page has stopped scrolling.
    pub fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(async () => {{ const element = document.querySelector({}); element.scrollIntoView({{block: 'center', inline: 'center'}});
               const middle = () => {{ const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }};
               for (let last = ''; last !== String(middle());) {{ last = String(middle()); await new Promise((resolve) => setTimeout(resolve, 100)); }}
               return middle(); }})()",
            json!(selector)
        ));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let event =
                json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Emulates a phone's screen and fails if the page is wider than that.
    pub fn fits_a_phone(&mut self) {
        let phone = json!({"width": 360, "height": 700, "deviceScaleFactor": 2, "mobile": true});
        self.ask("Emulation.setDeviceMetricsOverride", phone);
        // Content that does not fit makes the page wider than the screen.
        self.wait("innerWidth === 360");
        let root = "document.documentElement";
        assert_eq!(self.value(&format!("{root}.scrollWidth")), self.value(&format!("{root}.clientWidth")));
    }

    /// Types into the focused element.
    pub fn write(&mut self, text: &str) {
        self.ask("Input.insertText", json!({"text": text}));
    }

    /// Presses a key, such as `Tab` or `ArrowRight`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            _ => (40, ""),
        };
        for kind in ["keyDown", "keyUp"] {
            let event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.ask("Input.dispatchKeyEvent", event);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closing the browser ends its helper processes too; `timeout` kills what is left.
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.wait();
    }
}
