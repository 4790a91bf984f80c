//! The page in a real browser, by mouse and by keyboard.

use std::net::SocketAddr;

use engine::Model;
use serde_json::{Value, json};
use store::Database;

use test_support::browser::Browser;

use crate::{
    api,
    support::{booking_body, day, get, options, post, serve, test_number},
};

/// The name of a room that would take over the page if text were ever treated as markup.
const HOSTILE: &str = "<img src=x onerror=document.title='taken over'>a";

#[test]
fn a_room_is_booked_refused_and_cancelled_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("booking.db"));
    let server = serve(Model::Epoll, options(&database, folder.path()));
    let to = server.local_addr();
    api::add_room(folder.path(), to, &json!({"name": HOSTILE}));
    let Some(mut page) = Browser::open(&format!("http://{to}/")) else { return };
    let today = page.value("iso(new Date())").as_str().map_or_else(|| day(0), str::to_owned);

    page.wait("find('tbody button')");
    book_by_mouse(&mut page, to, &today);
    others_bookings_appear_and_are_refused(&mut page, to, &today);
    a_wrong_digit_is_reported_at_its_field(&mut page);
    choose_by_keyboard(&mut page);
    cancel(&mut page, to, &today);

    page.fits_a_phone();
    assert_eq!(page.value("[...document.querySelectorAll('tbody th')].at(-1).textContent"), json!(HOSTILE));
    assert_eq!(page.value("document.title"), json!("Book a room"));
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}

/// Clicks a free day, types a name and a number, and presses Enter.
fn book_by_mouse(page: &mut Browser, to: SocketAddr, today: &str) {
    page.wait(&state("2", today, "free"));
    assert_eq!(page.value("getComputedStyle(find('[data-field=slot]')).display"), json!("none"));
    page.click(&cell("2", today));
    page.wait("document.activeElement.name === 'name'");
    page.write("Asha Rao");
    page.press("Tab");
    page.write(&test_number(5));
    page.press("Enter");
    page.wait(&state("2", today, "mine"));
    page.wait("said.className === 'good' && said.textContent.startsWith('Booked: Room 2')");
    assert_eq!(booked(to, today), json!([{"date": today}]));
}

/// Bookings of others appear without a reload. Booking the same day is refused with the next free one.
fn others_bookings_appear_and_are_refused(page: &mut Browser, to: SocketAddr, today: &str) {
    assert_eq!(post(to, &booking_body(Some(1), today, 6), "").unwrap().status, 201);
    page.wait(&state("1", today, "taken"));
    page.click(&cell("1", today));
    page.click("[name=aadhaar]");
    page.write(&test_number(5));
    page.click("button.main");
    page.wait(&format!("said.textContent === 'Taken. It is free on {}.'", next_day(today)));
}

fn a_wrong_digit_is_reported_at_its_field(page: &mut Browser) {
    let mut wrong = test_number(5);
    let last = wrong.pop().unwrap();
    wrong.push(if last == '0' { '1' } else { '0' });
    page.value("form.elements.aadhaar.value = ''");
    page.click("[name=aadhaar]");
    page.write(&wrong);
    page.press("Enter");
    page.wait("find('[data-field=aadhaar]').classList.contains('wrong') && said.textContent.includes('check digit')");
    page.wait("document.activeElement.name === 'aadhaar'");
}

/// Moves between days with the arrow keys and chooses one.
fn choose_by_keyboard(page: &mut Browser) {
    page.value("find('tbody button[tabindex=\"0\"]').focus()");
    for key in ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"] {
        let before = page.value("document.activeElement.ariaLabel");
        page.press(key);
        page.wait("document.activeElement.matches('tbody button[tabindex=\"0\"]')");
        let after = page.value("document.activeElement.ariaLabel");
        // On the last day of a month ArrowRight stays, and ArrowLeft goes to the day before.
        assert!(before != after || key == "ArrowRight", "{key} stays at {before}");
    }
    page.press("Enter");
    page.wait("document.activeElement.name === 'name' && form.elements.date.value !== ''");
}

fn cancel(page: &mut Browser, to: SocketAddr, today: &str) {
    page.click("#mine button");
    page.wait(&state("2", today, "free"));
    assert_eq!(booked(to, today), json!([]));
    page.wait("!find('#none').hidden");
}

/// When room 2 is booked today.
fn booked(to: SocketAddr, today: &str) -> Value {
    get(to, &format!("/rooms/2?from={today}&to={today}")).json()["booked"].clone()
}

/// A phone shows seven days at once. They start with today, and past days cannot be chosen.
#[test]
fn a_phone_opens_on_today_and_past_days_differ_from_taken_ones() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("booking.db"));
    let server = serve(Model::Epoll, options(&database, folder.path()));
    let to = server.local_addr();
    let Some(mut page) = Browser::open(&format!("http://{to}/")) else { return };
    page.fits_a_phone();
    let today = in_mid_month(&mut page);
    page.go(&format!("http://{to}/?"));
    page.wait("find('tbody button')");
    assert_eq!(post(to, &booking_body(Some(2), &today, 6), "").unwrap().status, 201);
    page.wait(&state("2", &today, "taken"));

    page.wait(&format!("{LEFTMOST} === '{today}'"));
    assert_eq!(page.value("find('thead th[aria-current]').textContent"), json!("15"));
    page.wait(
        "find('thead th').getBoundingClientRect().left === find('tbody th').getBoundingClientRect().left",
    );
    let yesterday = today.replace("-15", "-14");
    page.wait(&state("2", &yesterday, "past"));
    let painted = |cell: String| format!("getComputedStyle(find({})).background", json!(cell));
    let past = page.value(&painted(cell("2", &yesterday)));
    assert_ne!(past, page.value(&painted(cell("2", &today))));
    for state in ["free", "some", "taken", "mine", "past"] {
        page.wait(&format!("find('#legend [data-state={state}]').parentElement.textContent.length > 2"));
    }
    assert_eq!(past, page.value("getComputedStyle(find('#legend [data-state=past]')).background"));

    // Tab leads to a day that can be booked, ArrowLeft does not leave today, and a click on a past day chooses nothing.
    page.click("#later");
    page.wait("find('tbody button[data-state=free]').dataset.day.endsWith('-01')");
    page.wait(&format!("{LEFTMOST}.endsWith('-01')"));
    page.click("#earlier");
    page.wait(&format!("{LEFTMOST} === '{today}'"));
    page.value("find('#later').focus()");
    page.press("Tab");
    page.wait(&format!("document.activeElement.dataset.day === '{today}'"));
    page.press("ArrowLeft");
    assert_eq!(page.value("document.activeElement.dataset.day"), json!(today));
    page.click(&cell("2", &yesterday));
    assert_eq!(page.value("form.elements.date.value"), json!(today));
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}

/// The first visible day beside the names of the rooms.
const LEFTMOST: &str = "[...document.querySelectorAll('tbody tr:first-child button')].find((button) => \
    button.getBoundingClientRect().left >= find('tbody th').getBoundingClientRect().right - 1).dataset.day";

/// Sets the browser's clock to the 15th of the next month, which the server accepts too. The month then always has both
/// past days and enough days to come.
fn in_mid_month(page: &mut Browser) -> String {
    let now = jiff::Zoned::now().date();
    let today = now.first_of_month().saturating_add(jiff::Span::new().months(1).days(14)).to_string();
    let source = format!(
        "const Real = Date;
         Date = class extends Real {{ constructor(...of) {{ super(...(of.length ? of : ['{today}T12:00'])); }} }};"
    );
    page.ask("Page.addScriptToEvaluateOnNewDocument", json!({"source": source}));
    today
}

fn cell(room: &str, day: &str) -> String {
    format!("tbody button[data-room=\"{room}\"][data-day=\"{day}\"]")
}

fn state(room: &str, day: &str, state: &str) -> String {
    format!("find({}).dataset.state === '{state}'", json!(cell(room, day)))
}

fn next_day(day: &str) -> String {
    let day: jiff::civil::Date = day.parse().unwrap();
    day.tomorrow().unwrap().to_string()
}
