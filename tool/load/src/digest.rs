//! A digest of what a load sends, by which two runs are seen to send the same.
//!
//! Run files hold it, and people hand those around, so secrets have no part in it: credentials, the values of a query, what
//! came from the environment, and what a name tells of ([`import::is_secret`]): headers, fields in JSON and forms, texts of
//! another kind as a whole, and the items of a scenario's values that are drawn for such. A secret that no name tells of is
//! hashed with the rest; the digest of one load is too short to tell it from others.

mod hidden;

use import::is_secret;
use ring::digest::{Context, SHA256};
use serde_json::{Deserializer, Value as Json};

use self::hidden::{drawn_for_secrets, hide, is_secret_field, tells_secret};
use crate::plan::{Pacing, Plan, Think};
use crate::requests::base_prefix;
use crate::scenario::definition::{Body, Capture, CaptureFrom, Request, Scenario, Verify};
use crate::scenario::template::{Template, TemplatePart};
use crate::scenario::value::{CheckDigit, Each, Origin, Value, ValueKind};
use crate::url::{HIDDEN, shown_path};

/// Bytes of SHA-256 that are kept. One change in four thousand million goes unnoticed. Of all guesses at a secret, one in as
/// many fits the digest: it does not give away a password that is worth the name. Of the guesses that fit, the digest of
/// another load with the same secret again leaves one in as many.
const BYTES: usize = 4;

impl Plan {
    /// A digest of what the load sends and which answers it expects, hexadecimal: of methods, paths, headers, bodies, weights,
    /// values and think time. Where it goes, how fast and with how many users has no part in it, nor have secrets that a name
    /// tells of.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut sent = Sent(Context::new(&SHA256));
        sent.scenario(&self.scenario);
        sent.pacing(self.pacing);
        sent.finish()
    }
}

/// What is hashed so far: each part with its length in front, so that no two loads are the same bytes.
struct Sent(Context);

impl Sent {
    fn part(&mut self, bytes: impl AsRef<[u8]>) {
        self.number(bytes.as_ref().len() as u64);
        self.0.update(bytes.as_ref());
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn finish(self) -> String {
        let hash = self.0.finish();
        hash.as_ref().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
    }

    fn scenario(&mut self, scenario: &Scenario) {
        let logs_in = scenario.bases().iter().any(|base| base.credentials().is_some());
        self.part(scenario.base().map_or("", base_prefix));
        // Weights count by their ratios.
        let unit = scenario.requests.iter().map(|request| request.weight).fold(0, common_divisor).max(1);
        self.number(scenario.requests.len() as u64);
        for request in &scenario.requests {
            self.number((request.weight / unit).into());
            self.request(request, logs_in);
        }
        self.number(scenario.values.len() as u64);
        let secrets = drawn_for_secrets(&scenario.requests);
        for (index, value) in scenario.values.iter().enumerate() {
            self.value(value, secrets.contains(&index));
        }
    }

    /// A request, of which `logs_in` says whether the URL has credentials for it.
    fn request(&mut self, request: &Request, logs_in: bool) {
        self.part(&request.method);
        self.part(shown_path(&written(&request.path)));
        self.number(request.headers.len() as u64);
        request.headers.iter().for_each(|(name, value)| self.header(name, value));
        self.number((logs_in || request.basic_auth.is_some()).into());
        match &request.body {
            Body::Text(text) => {
                self.number(0);
                self.content(&filled(text));
                self.part(slots(text));
            }
            Body::Generated(sizes) => {
                self.number(1);
                self.number(sizes.all().len() as u64);
                sizes.all().iter().for_each(|size| self.number(*size));
            }
        }
        self.expected(request);
    }

    fn header(&mut self, name: &str, value: &Template) {
        let (name, text) = (name.to_ascii_lowercase(), written(value));
        self.part(&name);
        if is_secret(&name) || tells_secret(text.as_bytes()) {
            self.part(HIDDEN);
        } else if name == "referer" || text.contains("://") {
            self.part(shown_path(&text));
        } else {
            self.part(text);
        }
    }

    /// Which answers count, and what is kept of them.
    fn expected(&mut self, request: &Request) {
        let statuses: Vec<u8> = (100..600).map(|status| request.expect.contains(status).into()).collect();
        self.part(statuses);
        match &request.verify {
            Verify::Nothing => self.number(0),
            Verify::Length(length) => {
                self.number(1);
                self.number(*length);
            }
            Verify::Bytes(bytes) => {
                self.number(2);
                self.content(bytes);
            }
        }
        match &request.capture {
            None => self.number(0),
            Some(Capture { list, from }) => {
                let (kind, place) = match from {
                    CaptureFrom::Json(path) => (1, path.join(".")),
                    CaptureFrom::Location => (2, String::new()),
                    CaptureFrom::Header(name) => (3, name.to_ascii_lowercase()),
                };
                self.numbers(&[kind, *list as u64]);
                self.part(place);
            }
        }
    }

    /// A body without what names in it say is a secret: JSON, lines of it among that, or a form. Of others all is left out if
    /// anything in them does.
    fn content(&mut self, bytes: &[u8]) {
        let documents = Deserializer::from_slice(bytes).into_iter::<Json>().collect::<Result<Vec<_>, _>>();
        match documents {
            Ok(mut documents) => {
                documents.iter_mut().for_each(hide);
                self.number(0);
                self.part(Json::Array(documents).to_string());
            }
            Err(_) => {
                // A secret in a text of another kind may hold `&`.
                let fields: Vec<&[u8]> = match is_form(bytes) {
                    true => bytes.split(|byte| *byte == b'&').collect(),
                    false => vec![bytes],
                };
                self.number(fields.len() as u64);
                for field in fields {
                    self.part(if is_secret_field(field) { HIDDEN.as_bytes() } else { field });
                }
            }
        }
    }

    fn value(&mut self, value: &Value, is_for_secret: bool) {
        let is_hidden = is_for_secret || value.origin == Origin::Elsewhere || is_secret(&value.name);
        match &value.kind {
            ValueKind::User { start } => self.numbers(&[0, *start]),
            ValueKind::Counter { start, step, per_user, wrap } => {
                self.numbers(&[1, *start, *step, *per_user, *wrap]);
            }
            ValueKind::Sequence { start, wrap } => self.numbers(&[2, *start, *wrap]),
            ValueKind::Random { min, max } => self.numbers(&[3, *min, *max]),
            ValueKind::RandomString { length, alphabet } => {
                self.numbers(&[4, *length as u64]);
                self.part(alphabet);
            }
            ValueKind::Choice { items } => {
                self.number(5);
                self.items(items, is_hidden);
            }
            ValueKind::Cycle { items, step } => {
                self.numbers(&[6, if is_hidden { 0 } else { *step }]);
                self.items(items, is_hidden);
            }
        }
        let check = matches!(value.check, CheckDigit::Verhoeff);
        self.numbers(&[(value.each == Each::User).into(), value.width as u64, check.into()]);
    }

    fn items(&mut self, items: &[String], is_hidden: bool) {
        if is_hidden {
            return self.part(HIDDEN);
        }
        self.number(items.len() as u64);
        for item in items {
            self.part(if tells_secret(item.as_bytes()) { HIDDEN } else { item.as_str() });
        }
    }

    fn numbers(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|number| self.number(*number));
    }

    fn pacing(&mut self, pacing: Pacing) {
        let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match pacing {
            Pacing::Open { .. } => self.number(0),
            Pacing::Closed { think: Think::None } => self.number(1),
            Pacing::Closed { think: Think::Constant(time) } => self.numbers(&[2, nanoseconds(time)]),
            Pacing::Closed { think: Think::Exponential(mean) } => self.numbers(&[3, nanoseconds(mean)]),
        }
    }
}

/// The greatest common divisor (Euclid); of 0 and another number that number.
fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Whether a text is a form: one line that begins with `name=`. What follows, which may be a secret, does not decide it.
fn is_form(text: &[u8]) -> bool {
    let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.[]%+".contains(byte);
    name.len() < text.len() && name.iter().all(is_of_name) && !text.iter().any(u8::is_ascii_control)
}

/// A template as text, with the numbers of what its slots take.
fn written(template: &Template) -> String {
    let piece = |part: &TemplatePart| match part {
        TemplatePart::Literal(bytes) => String::from_utf8_lossy(bytes).replace("${", "$${"),
        TemplatePart::Slot(value) => format!("${{{value}}}"),
        TemplatePart::Taken(list) => format!("${{taken:{list}}}"),
    };
    template.pieces.iter().map(piece).collect()
}

/// A template with a digit in every slot, which makes valid JSON of a body that is one: in a text as well as in place of a
/// number.
fn filled(template: &Template) -> Vec<u8> {
    let piece = |part: &TemplatePart| match part {
        TemplatePart::Literal(bytes) => bytes.clone(),
        TemplatePart::Slot(_) | TemplatePart::Taken(_) => b"1".to_vec(),
    };
    template.pieces.iter().flat_map(piece).collect()
}

/// The slots of a template alone.
fn slots(template: &Template) -> String {
    let is_slot = |part: &&TemplatePart| !matches!(part, TemplatePart::Literal(_));
    let slots = template.pieces.iter().filter(is_slot).cloned().collect();
    written(&Template { pieces: slots })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::scenario::single::RequestTemplate;

    /// The digest of the load that a scenario file describes.
    fn of(text: &str) -> String {
        let scenario = Scenario::from_toml(Path::new("shop.toml"), text).expect("a scenario");
        Plan::new(scenario).digest()
    }

    /// The digest of one request.
    fn of_one(url: &str, template: RequestTemplate) -> String {
        let scenario = Scenario::single(&url.parse().expect("a URL"), template).expect("a request");
        Plan::new(scenario).digest()
    }

    fn with_body(body: &str) -> String {
        of_one("http://h/", RequestTemplate { body: body.into(), ..RequestTemplate::default() })
    }

    fn with_header(header: &str) -> String {
        of_one("http://h/", RequestTemplate { headers: vec![header.into()], ..RequestTemplate::default() })
    }

    const SHOP: &str = r#"
        base = "http://h"
        [values]
        file = { kind = "counter", step = 2, per_user = 100, wrap = 50 }
        size = { kind = "choice", items = ["s", "m"] }
        [[request]]
        name = "buy"
        method = "POST"
        weight = 2
        path = "/buy/${file}?size=${size}"
        headers = { X-Turn = "${file}", Accept = "text/html" }
        body = '{"what":"${size}","count":${file}}'
        expect = 201
        keep = { name = "orders", from = "json:order.id" }
        [[request]]
        path = "/orders/${taken:orders}"
        verify = 12
        weight = 4
        [[request]]
        path = "/"
        body = { sizes = ["1 KB", "1 MB"] }
        weight = 6
    "#;

    #[test]
    fn every_part_of_what_is_sent_and_expected_changes_the_digest() {
        let changes = [
            ("\"POST\"", "\"PUT\""),
            ("/buy/", "/sell/"),
            ("?size=", "?width="),
            ("?size=${size}", "?size=${file}"),
            ("X-Turn", "X-Round"),
            ("text/html", "text/plain"),
            ("\"what\"", "\"which\""),
            ("\"count\":${file}", "\"count\":${size}"),
            ("expect = 201", "expect = 202"),
            ("json:order.id", "json:order.number"),
            ("json:order.id", "header:order.id"),
            ("/orders/${", "/order/${"),
            ("verify = 12", "verify = 13"),
            ("\"1 MB\"", "\"2 MB\""),
            ("weight = 4", "weight = 5"),
            ("step = 2", "step = 3"),
            ("[\"s\", \"m\"]", "[\"s\", \"l\"]"),
            ("items = [\"s\", \"m\"] }", "items = [\"s\", \"m\"], each = \"user\" }"),
        ];
        for (old, new) in changes {
            let changed = SHOP.replacen(old, new, 1);
            assert_ne!(changed, SHOP, "{old} is not there");
            assert_ne!(of(&changed), of(SHOP), "{old} became {new}");
        }
    }

    #[test]
    fn think_time_changes_the_digest_and_where_and_how_fast_does_not() {
        let plan = Plan::new(Scenario::from_toml(Path::new("shop.toml"), SHOP).expect("a scenario"));
        let thinking = |think| Plan { pacing: Pacing::Closed { think }, ..plan.clone() }.digest();
        let second = Duration::from_secs(1);
        let all = [plan.digest(), thinking(Think::Constant(second)), thinking(Think::Exponential(second))];
        assert!(all[0] != all[1] && all[1] != all[2] && all[2] != all[0], "{all:?}");
        let elsewhere = Plan {
            scenario: plan.scenario.clone().with_base("http://other:8080".parse().expect("a URL")),
            threads: 7,
            seed: 8,
            ..plan.clone()
        };
        assert_eq!(elsewhere.digest(), plan.digest());
        let below = plan.scenario.clone().with_base("http://h/v2/".parse().expect("a URL"));
        assert_ne!(Plan::new(below).digest(), plan.digest(), "its path is sent");
    }

    #[test]
    fn names_and_the_size_of_weights_change_nothing() {
        let same = SHOP.replacen("\"buy\"", "\"sell\"", 1).replace("weight = 2", "weight = 1");
        let same = same.replace("weight = 4", "weight = 2").replace("weight = 6", "weight = 3");
        assert_eq!(of(&same), of(SHOP));
        assert_eq!(with_header("ACCEPT: a"), with_header("accept: a"));
    }

    #[test]
    fn credentials_tokens_and_cookies_have_no_part_in_it() {
        for name in ["Authorization", "Cookie", "X-Api-Key", "Proxy-Authorization", "X-CSRF-Token"] {
            assert_eq!(with_header(&format!("{name}: abc")), with_header(&format!("{name}: xyz")), "{name}");
        }
        assert_ne!(with_header("Cookie: a"), with_header("X-Other: a"), "their names have");
        for value in ["http://h/?t=abc", "http://ann:abc@h/", "Bearer abc", "Basic abc", "a, token=abc"] {
            let other = value.replace("abc", "xyz");
            for name in ["Referer", "X-Other"] {
                let (one, other) = (format!("{name}: {value}"), format!("{name}: {other}"));
                assert_eq!(with_header(&one), with_header(&other), "{one}");
            }
        }
        let url = |url: &str| of_one(url, RequestTemplate::default());
        assert_eq!(url("http://h/a?token=abc"), url("http://h/a?token=xyz"));
        assert_eq!(url("http://h/a?abc"), url("http://h/a?xyz"));
        let origin = |base: &str| of(&SHOP.replacen("http://h", base, 1));
        assert_eq!(origin("http://ann:abc@h"), origin("http://bob:xyz@h"));
        assert_ne!(origin("http://ann:abc@h"), origin("http://h"), "whether somebody logs in has");
        let basic = |password: &str| {
            of(&format!("{SHOP}\nbasic_auth = {{ name = \"ann\", password = \"{password}\" }}"))
        };
        assert_eq!(basic("abc"), basic("xyz"));
    }

    #[test]
    fn secrets_in_bodies_have_no_part_in_it_where_names_tell_them() {
        for (one, other) in [
            (r#"{"name":"ann","password":"abc"}"#, r#"{"name":"ann","password":"xyz"}"#),
            (r#"{"session":{"id":"abc","at":1}}"#, r#"{"session":{"id":"xyz","at":2}}"#),
            (r#"{"tokens":["abc"]}"#, r#"{ "tokens": ["xyz"] }"#),
            ("{\"a\":1}\n{\"pin\":1234}\n", "{\"a\":1}\n{\"pin\":99}\n"),
            (r#"{"a":{"password":"abc"},"a":1}"#, r#"{"a":{"password":"xyz"},"a":1}"#),
            ("name=ann&password=abc", "name=ann&password=xyz"),
            ("pass%77ord=abc&a=b", "pass%77ord=xyz&a=b"),
            ("api+key=abc", "api+key=xyz"),
            ("a=b&password=abc", "a=b&password=x\"<z>"),
            (r#"{"sessions":{"abc":1}}"#, r#"{"sessions":{"xyz":1}}"#),
            (r#"[{"name":"password","value":"abc"}]"#, r#"[{"name":"password","value":"xyz"}]"#),
            (r#"{"query":"{ login(pin: 12) }"}"#, r#"{"query":"{ login(pin: 99) }"}"#),
            (r#"{"hook":"http://ann:abc@h/"}"#, r#"{"hook":"http://ann:xyz@h/"}"#),
            (r#"{"password":"abc",}"#, r#"{"password":"xyz",}"#),
            ("<password>a&amp;b&amp;c</password>", "<password>x&amp;y&amp;z</password>"),
            ("--x\r\nc: d; name=\"pin\"\r\n\r\nabc\r\n", "--x\r\nc: d; name=\"pin\"\r\n\r\nxyz\r\n"),
        ] {
            assert_eq!(with_body(one), with_body(other), "{one}");
        }
        for (one, other) in [
            (r#"{"name":"ann","password":"abc"}"#, r#"{"name":"bob","password":"abc"}"#),
            ("name=ann&password=abc", "name=bob&password=abc"),
            ("a=b", "a=bc"),
            ("<a>abc</a>", "<a>xyz</a>"),
            ("c: d; name=\"a\"\r\n\r\nabc\r\n", "c: d; name=\"a\"\r\n\r\nxyz\r\n"),
            ("plain", "planes"),
            ("[1]", "[1.5]"),
        ] {
            assert_ne!(with_body(one), with_body(other), "{one}");
        }
    }

    #[test]
    fn values_of_the_environment_the_calendar_and_secret_names_have_no_part_in_it() {
        let with = |value: &str| {
            let request = "[[request]]\npath = \"/\"\nheaders = { X-Key = \"${key}\" }\n";
            of(&format!("base = \"http://h\"\n[values]\nkey = {value}\n{request}"))
        };
        // Cargo sets both for tests.
        let env = |name: &str| with(&format!("{{ kind = \"env\", variable = \"{name}\" }}"));
        assert_eq!(env("CARGO_PKG_NAME"), env("CARGO_MANIFEST_DIR"));
        let date = |min: u32| with(&format!("{{ kind = \"date\", min = {min}, max = {min} }}"));
        assert_eq!(date(1), date(2), "another day is no other load");
        let items = |text: &str| with(&format!("{{ kind = \"cycle\", items = [\"{text}\"] }}"));
        assert_ne!(items("abc"), items("xyz"));
        let secret = |text: &str| {
            let value = format!("{{ kind = \"choice\", items = [\"{text}\"] }}");
            of(&format!("base = \"http://h\"\n[values]\ntoken = {value}\n[[request]]\npath = \"/\"\n"))
        };
        assert_eq!(secret("abc"), secret("xyz"));
        let scenario = Scenario::from_toml(Path::new("shop.toml"), SHOP).expect("a scenario");
        let prepared =
            |item: &str| Plan::new(scenario.clone().with_items("size", &[item.to_owned()], 1)).digest();
        assert_eq!(prepared("abc"), prepared("xyz"), "a program gave them");
    }

    #[test]
    fn items_that_are_drawn_for_a_secret_have_no_part_in_it() {
        let with = |text: &str, request: &str| {
            let value = format!("word = {{ kind = \"cycle\", items = [\"{text}\"] }}");
            of(&format!("base = \"http://h\"\n[values]\n{value}\n[[request]]\n{request}\n"))
        };
        for request in [
            "path = '/?token=${word}'",
            "path = '/'\nheaders = { Authorization = 'Bearer ${word}' }",
            "path = '/'\nheaders = { X-Other = 'Bearer ${word}' }",
            "path = '/'\nbasic_auth = { name = 'ann', password = '${word}' }",
            "path = '/'\nbody = '{\"password\":\"${word}\"}'",
        ] {
            assert_eq!(with("abc", request), with("xyz", request), "{request}");
        }
        let harmless = "path = '/?size=${word}'";
        assert_ne!(with("abc", harmless), with("xyz", harmless));
    }

    /// Files of other versions hold digests: what is hashed, and how, stays as it is.
    #[test]
    fn the_digest_of_a_load_stays_the_same_from_version_to_version() {
        let simple = of_one("http://h/a", RequestTemplate::default());
        assert_eq!(simple, "5b3e777b");
    }
}
