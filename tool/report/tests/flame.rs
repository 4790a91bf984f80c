//! A flame graph in a real browser, with real keys and touches.
//!
//! Needs `chromium` on the PATH. Without it the test says so and passes, except in CI.

use std::fs;

use report::html;
use serde_json::{Value, json};

#[allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "shared with the tests of the tool")]
#[path = "../../nstar/tests/common/browser.rs"]
mod browser;
mod samples;

use browser::Browser;

/// What the line below the first drawing says.
const TOLD: &str = "document.querySelector('.flame + .part').textContent";

#[test]
fn functions_are_found_and_named_by_keyboard_and_by_touch() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("report.html");
    fs::write(&file, html(&samples::profiles::profiled()).expect("renders")).expect("written");
    let Some(mut page) = Browser::open(&format!("file://{}", file.display())) else { return };
    search(&mut page);
    go_through(&mut page);
    touch(&mut page);
    assert_eq!(page.value("performance.getEntriesByType('resource').length"), json!(0));
    assert_eq!(page.value("document.title"), json!("http://127.0.0.1:8080/report.pdf – nstar"));
    assert_eq!(page.errors, [""; 0]);
}

/// The parts that are marked, as their names begin.
fn found(page: &mut Browser) -> Value {
    let titles = "[...document.querySelectorAll('g.found > title')]";
    page.value(&format!("{titles}.map((title) => title.textContent.split(' ')[0])"))
}

/// Tab leads to the search; what is typed is marked, by more than a colour; Enter goes from one to the next.
fn search(page: &mut Browser) {
    let mut tab = || {
        page.press("Tab");
        page.value("document.activeElement.matches('.search input')") == json!(true)
    };
    assert!((0..100).any(|_| tab()), "Tab never leads to the search");
    page.write("deFLATE");
    page.wait("document.querySelector('.search output').textContent === '3 found'");
    assert_eq!(found(page), json!(["deflate", "deflate_slow", "deflate"]));
    for (part, width) in [("g.found rect", "3px"), (".flame g:not(.found) rect", "0.75px")] {
        let drawn = format!("getComputedStyle(document.querySelector('{part}')).strokeWidth");
        assert_eq!(page.value(&drawn), json!(width));
    }
    for name in ["deflate (", "deflate_slow (", "deflate (", "deflate (", "deflate_slow ("] {
        page.press("Enter");
        page.wait(&format!("{TOLD}.startsWith('{name}')"));
    }
    // Shares are no part of a name.
    for nothing in ["no such function", "itself"] {
        page.value("document.activeElement.select()");
        page.write(nothing);
        page.wait("document.querySelector('.search output').textContent === '0 found'");
        assert_eq!(found(page), json!([]));
    }
}

/// From `deflate_slow`, which was chosen last: up to its caller, down again and further, and aside.
fn go_through(page: &mut Browser) {
    page.press("Tab");
    page.wait("document.activeElement === document.querySelector('.flame')");
    for (key, name) in [
        ("ArrowUp", "deflate ("),
        ("ArrowDown", "deflate_slow ("),
        ("ArrowDown", "longest_match ("),
        // It calls nothing.
        ("ArrowDown", "longest_match ("),
        ("ArrowUp", "deflate_slow ("),
        ("ArrowRight", "libz.so.1.3.1+0x5000 ("),
        ("ArrowLeft", "deflate_slow ("),
    ] {
        page.press(key);
        page.wait(&format!("{TOLD}.startsWith('{name}')"));
    }
    assert_eq!(page.value("document.querySelectorAll('.flame g.chosen').length"), json!(1));
}

/// A phone, which shows no tooltip, tells a part that is touched.
fn touch(page: &mut Browser) {
    page.fits_a_phone();
    page.click(".flame g:nth-of-type(2) rect");
    page.wait(&format!("{TOLD}.startsWith('ngx_worker_process_cycle (nginx): ')"));
}
