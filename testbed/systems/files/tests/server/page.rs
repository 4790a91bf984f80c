//! The page in a real browser, by mouse and by keyboard.

use std::{
    fs,
    path::{Path, PathBuf},
};

use engine::Model;
use serde_json::json;
use test_support::browser::Browser;

use crate::{cutting::Cutting, uploads::Place};

/// The name of a file that would take over the page if text were ever treated as markup.
const HOSTILE: &str = "<img src=x onerror=document.title='taken over'>.txt";
const PASSWORD: &str = "a long enough one";
const CHANGED: &str = "another long one";

#[test]
fn a_person_logs_in_uploads_downloads_and_deletes_in_a_browser() {
    let place = Place::new(Model::Epoll, |options| options.uploads.quota_bytes = Some(10_000_000));
    let url = format!("http://{}/", place.to());
    let Some(mut page) = Browser::open(&url) else { return };
    let local = LocalFiles::new();

    create_account(&mut page);
    upload_several(&mut page, &place, &local);
    replace_only_after_asking(&mut page, &place, &local);
    exceed_the_quota(&mut page, &local);
    download(&mut page, &place, local.0.path());
    create_a_folder_and_delete_by_keyboard(&mut page, &place, &local);
    page.fits_a_phone();
    change_the_password(&mut page);
    log_out_and_in(&mut page);

    assert_eq!(page.value("document.cookie"), json!(""), "no script reads the session");
    assert_eq!(page.value("document.title"), json!("Files"));
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}

/// Creates an account by keyboard. A password that is too short is explained.
fn create_account(page: &mut Browser) {
    page.wait("document.activeElement === login.elements.name");
    page.write("eve");
    page.press("Tab");
    page.write("short");
    page.click("#create");
    page.wait("said.className === 'bad' && said.textContent.includes('password')");
    page.value("login.elements.password.value = ''");
    page.click("[name=password]");
    page.write(PASSWORD);
    page.click("#create");
    page.wait("find('#crumbs strong').textContent === 'eve' && !find('#nothing').hidden");
    page.wait("find('#kept').textContent === 'You use 0 bytes of 10.0 MB'");
}

/// Uploads several files with the button, then one by dropping it.
fn upload_several(page: &mut Browser, place: &Place, local: &LocalFiles) {
    let files =
        [local.write("first.txt", b"the first"), local.write(HOSTILE, b"hostile"), local.write("empty", b"")];
    choose(page, &files.each_ref().map(PathBuf::as_path));
    page.wait("document.querySelectorAll('#uploads [data-state=good]').length === 3");
    page.wait("find('#kept').textContent === 'You use 16 bytes of 10.0 MB'");
    drop_on(page, &local.write("dropped.txt", b"dropped"));
    page.wait(&listed("dropped.txt"));
    assert_eq!(fs::read(place.path("users/eve/dropped.txt")).unwrap(), b"dropped");
    assert_eq!(fs::read(place.path("users/eve").join(HOSTILE)).unwrap(), b"hostile");
}

fn replace_only_after_asking(page: &mut Browser, place: &Place, local: &LocalFiles) {
    let stored = || fs::read_to_string(place.path("users/eve/first.txt")).unwrap();
    let second = local.write("first.txt", b"the second");
    choose(page, &[&second]);
    page.wait("find('#ask').open && find('#question').textContent.includes('Replace it?')");
    page.press("Enter");
    page.wait("!find('#ask').open && find('#uploads').innerText.includes('Kept the existing file')");
    assert_eq!(stored(), "the first");
    choose(page, &[&second]);
    page.wait("find('#ask').open");
    page.click("#yes");
    page.wait("document.querySelectorAll('#uploads [data-state=good]').length === 5");
    assert_eq!(stored(), "the second");
}

/// A file that exceeds the quota is refused before it is sent.
fn exceed_the_quota(page: &mut Browser, local: &LocalFiles) {
    choose(page, &[&local.write("large", &vec![b'x'; 11_000_000])]);
    page.wait("find('#uploads [data-state=bad]').innerText.includes('exceed your quota')");
}

fn create_a_folder_and_delete_by_keyboard(page: &mut Browser, place: &Place, local: &LocalFiles) {
    page.click("#folder");
    page.wait("document.activeElement.id === 'answer'");
    page.write("a & b");
    page.press("Enter");
    page.wait("find('#crumbs strong').textContent === 'a & b'");
    choose(page, &[&local.write("inner.txt", b"inner")]);
    page.wait(&listed("inner.txt"));
    page.value(&format!("{}.focus()", button("inner.txt")));
    page.press("Enter");
    page.wait("find('#ask').open");
    page.press("Tab");
    page.press("Enter");
    page.wait("said.textContent === 'Deleted: inner.txt' && !find('#nothing').hidden");
    assert!(!place.path("users/eve/a & b/inner.txt").exists());
    page.click("#crumbs a[href='#/users/eve/']");
    page.wait(&listed("a & b/"));
}

/// Changes the password, after a wrong one was refused.
fn change_the_password(page: &mut Browser) {
    for (old, then) in
        [("wrong password", "find('#refused').textContent"), (PASSWORD, "!find('#changing').open")]
    {
        page.value("find('#changing').close()");
        page.click("#change");
        page.wait("document.activeElement.name === 'old'");
        page.write(old);
        page.press("Tab");
        page.write(CHANGED);
        page.press("Enter");
        page.wait(then);
    }
    page.wait("said.textContent === 'Your password has been changed.' && !find('#files').hidden");
}

/// Logs out, and in again by keyboard after a wrong password.
fn log_out_and_in(page: &mut Browser) {
    page.click("#out");
    page.wait("!login.hidden && find('#files').hidden");
    for (password, then) in [(PASSWORD, "said.className === 'bad'"), (CHANGED, "!find('#files').hidden")] {
        page.value("login.elements.name.value = login.elements.password.value = ''");
        page.click("[name=name]");
        page.write("eve");
        page.press("Tab");
        page.write(password);
        page.press("Enter");
        page.wait(then);
    }
}

#[test]
fn an_upload_resumes_after_a_lost_connection() {
    let place = Place::new(Model::Epoll, |_| ());
    let cutting = Cutting::before(place.to());
    let Some(mut page) = Browser::open(&format!("http://{}/", cutting.address)) else { return };
    log_in(&mut page);
    let files = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..4_000_000_u32).map(|n| (n % 251) as u8).collect();
    let path = files.path().join("large.bin");
    fs::write(&path, &bytes).unwrap();
    page.value(
        "window.offsets = []; const set = XMLHttpRequest.prototype.setRequestHeader;
         XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
           if (name === 'Upload-Offset') offsets.push(Number(value)); return set.call(this, name, value); }; 0",
    );
    choose(&mut page, &[&path]);
    page.wait("find('#uploads [data-state=good]')");
    assert!(fs::read(place.path("users/ann/large.bin")).unwrap() == bytes);
    assert_eq!(page.value("offsets.length === 2 && offsets[0] === 0 && offsets[1] > 0"), json!(true));
}

#[test]
fn a_script_in_an_uploaded_file_is_not_run() {
    let place = Place::new(Model::Epoll, |_| ());
    let script = "<title>before</title><script>document.title = 'taken over'</script>";
    let svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>document.documentElement.setAttribute('id', 'taken')</script></svg>";
    for (name, text) in [("evil.html", script), ("evil.svg", svg)] {
        assert_eq!(place.put(&format!("users/ann/{name}"), "", text).status, 201);
        let read = place.get(&format!("users/ann/{name}"));
        assert_eq!(read.field("content-security-policy"), Some("sandbox"));
    }
    let Some(mut page) = Browser::open(&format!("http://{}/", place.to())) else { return };
    log_in(&mut page);
    for (name, untouched) in
        [("evil.html", "document.title === 'before'"), ("evil.svg", "!document.documentElement.id")]
    {
        let url = format!("http://{}/files/users/ann/{name}", place.to());
        page.go(&url);
        assert_eq!(page.value(untouched), json!(true), "{name}");
    }
}

fn log_in(page: &mut Browser) {
    page.wait("document.activeElement === login.elements.name");
    page.write("ann");
    page.press("Tab");
    page.write(crate::support::PASSWORD);
    page.press("Enter");
    page.wait("!find('#files').hidden && listing");
}

/// Files on the computer of the browser.
struct LocalFiles(tempfile::TempDir);

impl LocalFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Clicks the button that opens the browser's file dialog, and chooses these files instead.
fn choose(page: &mut Browser, files: &[&Path]) {
    page.ask("Page.setInterceptFileChooserDialog", json!({"enabled": true}));
    page.click("#choose");
    let input = page.ask("Runtime.evaluate", json!({"expression": "find('#pick')"}));
    page.ask("DOM.setFileInputFiles", json!({"objectId": input["result"]["objectId"], "files": files}));
}

fn drop_on(page: &mut Browser, file: &Path) {
    let place = page.value(
        "(() => { const box = find('#drop').getBoundingClientRect(); return [box.x + 20, box.y + 20]; })()",
    );
    let data = json!({"items": [], "files": [file], "dragOperationsMask": 1});
    for kind in ["dragEnter", "dragOver", "drop"] {
        page.ask(
            "Input.dispatchDragEvent",
            json!({"type": kind, "x": place[0], "y": place[1], "data": data}),
        );
    }
}

fn download(page: &mut Browser, place: &Place, folder: &Path) {
    let into = folder.join("downloads");
    page.ask("Page.setDownloadBehavior", json!({"behavior": "allow", "downloadPath": into}));
    page.click("a[download='first.txt']");
    let expected = fs::read(place.path("users/eve/first.txt")).unwrap();
    // Asking the page keeps it active during the download.
    while fs::read(into.join("first.txt")).ok().as_ref() != Some(&expected) {
        page.value("new Promise((done) => setTimeout(done, 10))");
    }
}

fn button(name: &str) -> String {
    format!("find('button[aria-label=\"Delete {name}\"]')")
}

fn listed(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('#list td:first-child a')].some((link) => link.textContent === {})",
        json!(name)
    )
}
