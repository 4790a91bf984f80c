//! The page in a real browser, by mouse and by keyboard.

use engine::Model;
use serde_json::json;
use store::Database;
use test_support::browser::Browser;

use crate::{
    api,
    support::{day, get, options, post, serve, test_number, wish},
};

/// A room of this name shows whether text is ever taken for markup.
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

    // By mouse: a free day, a name, a number, and the Enter key.
    page.wait(&state("2", &today, "free"));
    assert_eq!(page.value("getComputedStyle(find('[data-field=slot]')).display"), json!("none"));
    page.click(&cell("2", &today));
    page.wait("document.activeElement.name === 'name'");
    page.write("Asha Rao");
    page.press("Tab");
    page.write(&test_number(5));
    page.press("Enter");
    page.wait(&state("2", &today, "mine"));
    page.wait("said.className === 'good' && said.textContent.startsWith('Booked: Room 2')");
    assert_eq!(
        get(to, &format!("/rooms/2?from={today}&to={today}")).json()["booked"],
        json!([{"date": today}])
    );

    // What others book shows by itself; to want it as well is refused, with when it is free.
    assert_eq!(post(to, &wish(Some(1), &today, 6), "").unwrap().status, 201);
    page.wait(&state("1", &today, "taken"));
    page.click(&cell("1", &today));
    page.click("[name=aadhaar]");
    page.write(&test_number(5));
    page.click("button.main");
    page.wait(&format!("said.textContent === 'Taken. It is free on {}.'", next_day(&today)));

    // A wrong digit is told where it is.
    let mut wrong = test_number(5);
    let last = wrong.pop().unwrap();
    wrong.push(if last == '0' { '1' } else { '0' });
    page.value("form.elements.aadhaar.value = ''");
    page.click("[name=aadhaar]");
    page.write(&wrong);
    page.press("Enter");
    page.wait("find('[data-field=aadhaar]').classList.contains('wrong') && said.textContent.includes('check digit')");
    page.wait("document.activeElement.name === 'aadhaar'");

    // By keyboard: from one day to another, and one is chosen.
    page.value("find('tbody button[tabindex=\"0\"]').focus()");
    for key in ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"] {
        let before = page.value("document.activeElement.ariaLabel");
        page.press(key);
        page.wait("document.activeElement.matches('tbody button[tabindex=\"0\"]')");
        let after = page.value("document.activeElement.ariaLabel");
        // From the last day of a month there is no further, and back is a day earlier.
        assert!(before != after || key == "ArrowRight", "{key} stays at {before}");
    }
    page.press("Enter");
    page.wait("document.activeElement.name === 'name' && form.elements.date.value !== ''");

    page.click("#mine button");
    page.wait(&state("2", &today, "free"));
    assert_eq!(get(to, &format!("/rooms/2?from={today}&to={today}")).json()["booked"], json!([]));
    page.wait("!find('#none').hidden");

    page.fits_a_phone();
    assert_eq!(page.value("[...document.querySelectorAll('tbody th')].at(-1).textContent"), json!(HOSTILE));
    assert_eq!(page.value("document.title"), json!("Book a room"));
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}

/// On a phone seven days are seen at once: they begin with today, and days past are not offered.
#[test]
fn a_phone_opens_on_today_and_days_past_are_told_from_taken_ones() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("booking.db"));
    let server = serve(Model::Epoll, options(&database, folder.path()));
    let to = server.local_addr();
    let Some(mut page) = Browser::open(&format!("http://{to}/")) else { return };
    page.fits_a_phone();
    let today = in_mid_month(&mut page);
    page.go(&format!("http://{to}/?"));
    page.wait("find('tbody button')");
    assert_eq!(post(to, &wish(Some(2), &today, 6), "").unwrap().status, 201);
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

    // Tab comes to a day that may be booked; from today there is no way left, and a click on a day past chooses nothing.
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

/// The first day that is seen beside the names of the rooms.
const LEFTMOST: &str = "[...document.querySelectorAll('tbody tr:first-child button')].find((button) => \
    button.getBoundingClientRect().left >= find('tbody th').getBoundingClientRect().right - 1).dataset.day";

/// Has the browser's day be the 15th of the next month, which the server takes as well; days past are always to be seen
/// then, and always enough to come.
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
