//! An imported workload, and the scenario file that it is written as.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::left_out::LeftOut;

/// A workload that was imported. All texts are as a scenario file has them: `${name}` stands for a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// The server.
    pub base: Option<String>,
    /// Values that requests hold.
    pub values: Vec<(String, Value)>,
    /// The requests.
    pub requests: Vec<Request>,
    /// What is not in the scenario.
    pub left_out: Vec<LeftOut>,
}

/// How a value is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Taken from this variable of the environment.
    Env(String),
    /// One of these, at random.
    Items(Vec<String>),
}

/// One kind of request.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Request {
    /// Its name.
    pub name: String,
    /// How often users pick it, compared with others.
    pub weight: u32,
    /// Its method, in capital letters.
    pub method: String,
    /// Its path and query.
    pub path: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Option<Body>,
    /// Name and password for Basic authentication.
    pub basic_auth: Option<(String, String)>,
    /// Statuses that count as success; none for 200 to 399.
    pub expect: BTreeSet<u16>,
}

impl fmt::Debug for Request {
    /// Leaves out headers and body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The body of a request.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Body {
    /// A text.
    Text(String),
    /// What is in this file.
    File(String),
}

impl Imported {
    /// The scenario file. `name` is that of the scenario.
    #[must_use]
    pub fn to_toml(&self, name: &str) -> String {
        let mut out = format!("name = {}\n", quoted(name));
        if let Some(base) = &self.base {
            line(&mut out, "base", &quoted(base));
        }
        if !self.values.is_empty() {
            out.push_str("\n[values]\n");
        }
        for (name, value) in &self.values {
            let made = match value {
                Value::Env(variable) => format!("kind = \"env\", variable = {}", quoted(variable)),
                Value::Items(items) => {
                    let items: Vec<_> = items.iter().map(|item| quoted(item)).collect();
                    format!("kind = \"choice\", items = [{}]", items.join(", "))
                }
            };
            line(&mut out, &key(name), &format!("{{ {made} }}"));
        }
        self.requests.iter().for_each(|request| request.write(&mut out));
        out
    }
}

impl Request {
    fn write(&self, out: &mut String) {
        out.push_str("\n[[request]]\n");
        line(out, "name", &quoted(&self.name));
        if self.weight != 1 {
            line(out, "weight", &self.weight.to_string());
        }
        if self.method != "GET" {
            line(out, "method", &quoted(&self.method));
        }
        line(out, "path", &quoted(&self.path));
        if !self.headers.is_empty() {
            let header = |(name, value): &(String, String)| format!("{} = {}", key(name), quoted(value));
            let headers: Vec<_> = self.headers.iter().map(header).collect();
            line(out, "headers", &format!("{{ {} }}", headers.join(", ")));
        }
        if let Some((name, password)) = &self.basic_auth {
            let auth = format!("{{ name = {}, password = {} }}", quoted(name), quoted(password));
            line(out, "basic_auth", &auth);
        }
        match &self.body {
            Some(Body::Text(text)) => line(out, "body", &quoted(text)),
            Some(Body::File(name)) => line(out, "body", &quoted(&format!("@{name}"))),
            None => {}
        }
        if let Some(expect) = self.expected() {
            line(out, "expect", &expect);
        }
    }

    /// The statuses to expect, where they are not the usual ones.
    fn expected(&self) -> Option<String> {
        let usual = 200..400;
        let others: Vec<_> = self.expect.iter().filter(|status| !usual.contains(*status)).collect();
        if others.is_empty() {
            return None;
        }
        let classes = ["\"2xx\"", "\"3xx\""].into_iter().filter(|_| others.len() < self.expect.len());
        let statuses = classes.map(str::to_owned).chain(others.iter().map(ToString::to_string));
        Some(format!("[{}]", statuses.collect::<Vec<_>>().join(", ")))
    }
}

fn line(out: &mut String, key: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{key} = {value}");
}

/// A key of TOML.
fn key(name: &str) -> String {
    let is_bare = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if is_bare && !name.is_empty() { name.to_owned() } else { quoted(name) }
}

/// A text of TOML: as it is where that is possible.
fn quoted(text: &str) -> String {
    if text.contains(['"', '\\']) && !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a b"), "\"a b\"");
        assert_eq!(quoted("{\"a\":1}"), "'{\"a\":1}'");
        assert_eq!(quoted("it's \"\n\u{1b}"), "\"it's \\\"\\n\\u001B\"");
        assert_eq!((key("Content-Type"), key("a.b")), ("Content-Type".into(), "\"a.b\"".into()));
    }

    #[test]
    fn only_unusual_statuses_are_written() {
        let expected = |statuses: &[u16]| {
            Request { expect: statuses.iter().copied().collect(), ..Request::default() }.expected()
        };
        assert_eq!(expected(&[200, 304]), None);
        assert_eq!(expected(&[404]).as_deref(), Some("[404]"));
        assert_eq!(expected(&[200, 404]).as_deref(), Some("[\"2xx\", \"3xx\", 404]"));
    }
}
