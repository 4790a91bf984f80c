use super::*;
use crate::scenario::error::Problem;
use crate::scenario::value::{Each, ValueKind};

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::from_toml(Path::new("dir/work.toml"), text)
}

/// Line and message of the error that `text` must give.
fn fault(text: &str) -> (usize, String) {
    let error = read(text).unwrap_err();
    assert!(error.to_string().starts_with(&format!("dir/work.toml:{}: ", error.line)), "{error}");
    (error.line, error.problem.to_string())
}

#[test]
fn every_shipped_scenario_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(error) = Scenario::from_toml(&path, &text) {
            panic!("{error}");
        }
        count += 1;
    }
    assert!(count >= 4);
}

#[test]
fn every_key_is_read() {
    let scenario = read(
        r#"
        name = "mix"
        base = "http://h:81/api"
        [values]
        id = { kind = "counter", start = 5, per_user = 10, width = 3 }
        name = { kind = "random-string", length = 4, alphabet = "hex", each = "user" }
        city = { kind = "cycle", items = ["Pune", "Agra"] }
        file = { kind = "sequence", start = 1, wrap = 2000 }
        [[request]]
        name = "book"
        weight = 7
        method = "POST"
        path = "/book/${id}"
        headers = { X-City = "${city}" }
        body = '{"who":"${name}"}'
        expect = [201, "4xx"]
        verify = 12
        [[request]]
        weight = 3
        method = "DELETE"
        path = "/book/${id}"
        basic_auth = { name = "u${name}", password = "p" }
        "#,
    )
    .unwrap();
    assert_eq!((scenario.name(), scenario.base().unwrap().port()), ("mix", 81));
    let city = scenario.values.iter().find(|value| value.name == "city").unwrap();
    assert_eq!(city.kind, ValueKind::Cycle { items: vec!["Pune".into(), "Agra".into()], step: 1 });
    let file = scenario.values.iter().find(|value| value.name == "file").unwrap();
    assert_eq!(file.kind, ValueKind::Sequence { start: 1, wrap: 2000 });
    assert_eq!(scenario.values.iter().find(|value| value.name == "name").unwrap().each, Each::User);
    let [book, cancel] = scenario.requests.as_slice() else { panic!("two requests") };
    assert_eq!((book.weight, cancel.weight), (7, 3));
    assert!(book.expect.contains(201) && book.expect.contains(404) && !book.expect.contains(200));
    assert!(cancel.basic_auth.is_some());
}

#[test]
fn one_server_or_several() {
    let ports = |base: &str| -> Vec<u16> {
        let text = format!("base = {base}\n[[request]]\npath = \"/\"");
        read(&text).unwrap().bases().iter().map(|url| url.port()).collect()
    };
    assert_eq!(ports(r#""http://h:81""#), [81]);
    assert_eq!(ports(r#"["http://h:81", "http://h:82"]"#), [81, 82]);
    let (line, text) = fault("name = \"x\"\nbase = [\n\"http://h\",\n\"h:82\"]\n[[request]]\npath = \"/\"");
    assert_eq!(line, 4, "{text}");
}

#[test]
fn the_default_name_is_that_of_the_file() {
    assert_eq!(read("[[request]]\npath = \"/\"").unwrap().name(), "work");
}

#[test]
fn an_unknown_key_is_reported_with_its_line_and_the_nearest_one() {
    let (line, text) = fault("name = \"x\"\n[[request]]\npath = \"/\"\nweigth = 2\n");
    assert_eq!(line, 4);
    assert!(text.contains("`weigth`") && text.contains("did you mean `weight`?"), "{text}");
    let (line, text) = fault("nmae = \"x\"\n[[request]]\npath = \"/\"\n");
    assert!(line == 1 && text.contains("did you mean `name`?"), "{text}");
    let (_, text) = fault("zzzzzz = 1\n[[request]]\npath = \"/\"\n");
    assert!(!text.contains("did you mean") && text.contains("`request`"), "{text}");
}

#[test]
fn a_slot_in_a_file_without_values_is_reported() {
    let (line, text) = fault("[[request]]\npath = '/${n}'\n");
    assert_eq!((line, text.as_str()), (2, "unknown value `n`; the file defines none"));
}

#[test]
fn unknown_names_tell_the_nearest_one() {
    let (line, text) = fault("[values]\na = { kind = \"countr\" }\n[[request]]\npath = \"/\"\n");
    assert!(line == 2 && text.contains("did you mean `counter`?"), "{text}");
    let (line, text) = fault("[values]\nfile = { kind = \"user\" }\n[[request]]\n\npath = \"/${fiel}\"\n");
    assert!(line == 5 && text.contains("unknown value `fiel`, did you mean `file`?"), "{text}");
}

#[test]
fn wrong_values_are_reported_with_what_was_expected() {
    let cases = [
        ("[[request]]\npath = 7\n", 2, "`path` must be a text"),
        ("[[request]]\npath = \"x\"\n", 2, "starts with `/`"),
        ("[[request]]\npath = \"/a b\"\n", 2, "percent-encoded"),
        ("[[request]]\npath = \"/\"\nweight = 0\n", 3, "from 1 to 1000000"),
        ("[[request]]\npath = \"/\"\nmethod = \"get\"\n", 3, "such as `GET`"),
        ("[[request]]\npath = \"/\"\nexpect = \"9xx\"\n", 3, "\"2xx\""),
        ("[[request]]\npath = \"/\"\nexpect = 999\n", 3, "from 100 to 599"),
        ("[[request]]\npath = \"/${x\"\n", 2, "without a `}`"),
        ("[[request]]\npath = \"/\"\nheaders = { A = \"b\\nc\" }\n", 3, "control characters"),
        ("[[request]]\npath = \"/\"\nbasic_auth = { name = \"x\" }\n", 3, "needs `password`"),
        ("[[request]]\npath = \"/\"\nbody = \"@none-such\"\n", 3, "cannot be read"),
        ("[[request]]\npath = \"/\"\nbody = { size = \"much\" }\n", 3, "a size such as"),
        ("[[request]]\npath = \"/\"\nbody = { size = -1 }\n", 3, "a whole number from 0"),
        ("[[request]]\npath = \"/\"\nbody = { size = 1.5 }\n", 3, "a size such as"),
        ("[[request]]\npath = \"/\"\nbody = { sizes = [] }\n", 3, "at least one size"),
        ("[[request]]\npath = \"/\"\nbody = { sizes = [\"1 MB\", \"2 TiB\"] }\n", 3, "at most 1 TiB"),
        ("[[request]]\npath = \"/\"\nbody = { size = 1, sizes = [2] }\n", 3, "left out"),
        ("[[request]]\npath = \"/\"\nbody = { }\n", 3, "needs `size`"),
        ("[[request]]\npath = \"/\"\nbody = { size = 1, from = 2 }\n", 3, "unknown key `from`"),
        ("[[request]]\npath = \"/\"\nbody = 7\n", 3, "must be a text"),
        ("base = \"ftp://h\"\n[[request]]\npath = \"/\"\n", 1, "http://"),
        (
            "[values]\nr = { kind = \"random\", min = 5, max = 4 }\n[[request]]\npath = \"/\"\n",
            2,
            "5 or more",
        ),
        ("[values]\nc = { kind = \"cycle\", items = [] }\n[[request]]\npath = \"/\"\n", 2, "at least one"),
        ("name = \"x\"\n", 1, "at least one [[request]]"),
        ("name = \n", 1, "not TOML"),
        (
            "[[request]]\npath = \"/${taken:b}\"\n",
            2,
            "unknown list of kept values `b`; the file defines none",
        ),
        ("[[request]]\npath = \"/\"\nkeep = { name = \"b\" }\n", 3, "needs `from`"),
        ("[[request]]\npath = \"/\"\nkeep = { name = \"b\", from = \"jsn:id\" }\n", 3, "`json:FIELD`"),
        ("[[request]]\npath = \"/\"\nkeep = { name = \"b\", from = \"json:a..b\" }\n", 3, "`json:FIELD`"),
        ("[[request]]\npath = \"/\"\nkeep = { name = \"a b\", from = \"json:id\" }\n", 3, "letters, digits"),
        (
            "[[request]]\npath = \"/${taken:b}\"\nkeep = { name = \"b\", from = \"json:id\" }\n",
            1,
            "that takes no kept value",
        ),
        (
            "[[request]]\npath = \"/\"\nkeep = { name = \"b\", from = \"json:id\" }\n[[request]]\npath = \"${taken:b}\"\n",
            5,
            "kept from `header:location`",
        ),
        ("[values]\nu = { kind = \"user\", check = \"luhn\" }\n[[request]]\npath = \"/\"\n", 2, "`verhoeff`"),
    ];
    for (text, line, part) in cases {
        let (at, message) = fault(text);
        assert!(at == line && message.contains(part), "{text}: line {at}: {message}");
    }
}

#[test]
fn bodies_from_files_are_taken_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("body.bin"), b"${no slot}\0").unwrap();
    let text = "[[request]]\npath = \"/\"\nbody = \"@body.bin\"\nverify = \"@body.bin\"\n";
    let scenario = Scenario::from_toml(&folder.path().join("s.toml"), text).unwrap();
    let Body::Text(body) = &scenario.requests[0].body else { panic!("generated") };
    assert_eq!(*body, Template::literal(*b"${no slot}\0"));
    assert!(matches!(&scenario.requests[0].verify, Verify::Bytes(bytes) if **bytes == *b"${no slot}\0"));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "[\\[\\]a-z={}\"\n$ 0-9.@/]{0,120}") {
        let problem: Option<Problem> = read(&text).err().map(|error| error.problem);
        proptest::prop_assert!(problem.is_none_or(|problem| !problem.to_string().is_empty()));
    }
}

#[test]
fn dates_are_relative_to_today() {
    let text = "base = \"http://127.0.0.1:1\"\n[values]\nday = { kind = \"date\", min = 1, max = 3 }\n\
                [[request]]\npath = \"/${day}\"\n";
    let scenario = Scenario::from_toml(Path::new("dates.toml"), text).unwrap();
    let today = jiff::Zoned::now().date();
    let Some(ValueKind::Choice { items }) = scenario.values.first().map(|value| &value.kind) else {
        panic!("{:?}", scenario.values)
    };
    let days: Vec<jiff::civil::Date> = items.iter().map(|item| item.parse().unwrap()).collect();
    // Midnight may pass in between.
    assert!(days[0] == today.tomorrow().unwrap() || days[0] == today, "{days:?}");
    assert!(
        days.len() == 3 && days.windows(2).all(|pair| pair[0].tomorrow().unwrap() == pair[1]),
        "{days:?}"
    );
}

#[test]
fn weights_are_given_by_name() {
    let scenario = read("[[request]]\nname = \"a\"\npath = \"/\"\n[[request]]\npath = \"/b\"\n").unwrap();
    let weights = |name: &str, weight| std::collections::BTreeMap::from([(name.to_owned(), weight)]);
    let changed = scenario.clone().with_weights(&weights("a", 9)).unwrap();
    assert_eq!((changed.requests[0].weight, changed.requests[1].weight), (9, 1));
    assert_eq!(scenario.clone().with_weights(&weights("GET /b", 2)).unwrap().requests[1].weight, 2);
    let wrong = scenario.clone().with_weights(&weights("c", 9)).unwrap_err().to_string();
    assert!(wrong.contains("unknown request `c`") && wrong.contains("`GET /b`"), "{wrong}");
    assert!(scenario.with_weights(&weights("a", 0)).unwrap_err().to_string().contains("at least 1"));
}

#[test]
fn a_secret_comes_from_the_environment_and_is_not_shown() {
    let of = |variable: &str| {
        format!(
            "[values]\nkey = {{ kind = \"env\", variable = \"{variable}\" }}\n[[request]]\npath = \"/\"\n\
             headers = {{ X-Key = \"${{key}}\" }}\n"
        )
    };
    // Cargo sets it for tests.
    let (variable, text) = ("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"));
    let scenario = read(&of(variable)).unwrap();
    assert_eq!(scenario.items("key").unwrap(), [text]);
    assert!(!format!("{scenario:?}").contains(text));
    assert_eq!(fault(&of("NO_SUCH_VARIABLE")).0, 2);
    assert!(fault(&of("NO_SUCH_VARIABLE")).1.contains("export NO_SUCH_VARIABLE=.."));
    assert!(fault(&of("")).1.contains("variable"));
}
