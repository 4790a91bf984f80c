//! The page in a real browser, by mouse and by keyboard.

use engine::Model;
use serde_json::json;
use store::Database;

use crate::{
    api,
    browser::Browser,
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
