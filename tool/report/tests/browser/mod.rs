//! Chromium, where it is there.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The document after loading `file`, and the browser's log. `None` where there is no browser, except in CI.
pub fn browse(directory: &Path, file: &Path) -> Option<(String, String)> {
    let (dom, log) = (directory.join("dom"), directory.join("log"));
    let child = Command::new("timeout")
        .args([
            "--kill-after=5",
            "120",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dom).expect("created"))
        .stderr(fs::File::create(&log).expect("created"))
        .status()
        .expect("timeout(1) runs");
    let log = String::from_utf8_lossy(&fs::read(log).expect("read")).into_owned();
    if child.code() == Some(127) {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "chromium is missing: apt-get install chromium"
        );
        eprintln!("SKIPPED: chromium is missing, so the page was not opened: apt-get install chromium");
        return None;
    }
    assert!(child.success(), "chromium: {child}: {log}");
    Some((fs::read_to_string(dom).expect("read"), log))
}
