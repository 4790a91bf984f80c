//! Scenario files: TOML in, a validated [`Scenario`] out.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::capture_section::CaptureLists;
use super::definition::{Body, Request, Scenario, Verify};
use super::error::{Problem, ScenarioError};
use super::section::{Field, Section, SourceText, elements_of, number_of, text_of, wrong};
use super::single::{is_field_value, is_token};
use super::sizes::read_sizes;
use super::statuses::Statuses;
use super::template::{Names, Template, TemplateError, TemplatePart};
use super::value::{Value, read_value};
use crate::url::{Url, shown_path};

/// The form of a name, for error messages.
const NAMES: &str = "a name of letters, digits, `-` and `_`";

impl Scenario {
    /// Parses the text of the TOML file at `path`. Files that it names (`@file`) lie beside it.
    ///
    /// | key | meaning |
    /// |---|---|
    /// | `name` | name of the scenario; by default that of the file |
    /// | `base` | URL of the server, or a list of URLs: user u sends to number u modulo their count; a URL on the command line overrides it |
    /// | `[values]` | named values, used as `${name}` in a path, header, body or `basic_auth` |
    /// | `[[request]]` | one kind of request; each time, a user picks one by weight |
    ///
    /// A request has a `path`, and may have:
    ///
    /// - `name`, `weight` (default 1), `method` (default `GET`), `headers`, `basic_auth = { name, password }`;
    /// - `body`: a text; `@file` to send a file as it is; or `{ size = "1 MB" }` or `{ sizes = ["100 KB", "10 MB"] }` to
    ///   generate bytes that do not compress, of a size drawn for each request;
    /// - `expect`: the statuses that count as success, such as 201, `"2xx"`, or a list (default 200 to 399);
    /// - `verify`: what the body of the response must be, as a length, a text, or `@file`;
    /// - `keep = { name = "booking", from = "json:id" }` or `from = "header:location"`: captures this value from every
    ///   response with a status of 2xx, up to 64 values per user. `${taken:booking}` in another request uses up the
    ///   oldest. A user without a value makes one of the other requests instead.
    ///
    /// `$${` stands for a literal `${`.
    ///
    /// A value has a `kind`. It may have `each = "user"` (drawn once per user instead of once per request), `width`
    /// (least number of digits, with leading zeros) and `check = "verhoeff"` (append a check digit):
    ///
    /// | kind | keys | value |
    /// |---|---|---|
    /// | `user` | `start` (0) | the number of the user |
    /// | `counter` | `start` (0), `step` (1), `per_user` (0), `wrap` (0: never) | `start + user * per_user + (k mod wrap) * step` at a user's k-th draw, from 0 |
    /// | `sequence` | `start` (0), `wrap` (0: never) | `start + k mod wrap` at the k-th draw of all users of one server |
    /// | `random` | `min` (0), `max` | a random whole number, both ends included |
    /// | `random-string` | `length` (16), `alphabet` (`alphanumeric`, `letters`, `digits`, `hex`) | a random string |
    /// | `choice` | `items` | a random item |
    /// | `date` | `min` (0), `max` (`min`) | a random date, this many days from today |
    /// | `cycle` | `items`, `step` (1) | the items in turn: user u starts at item u and advances by `step` |
    /// | `env` | `variable` | the text of this variable of the environment: for secrets, which then are in no file |
    ///
    /// A value that occurs more than once in a request is the same in all places. All randomness comes from the seed of
    /// the plan, with a separate stream for each user.
    ///
    /// # Errors
    /// Names file and line, says what was expected there, and suggests the nearest name for an unknown one.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, ScenarioError> {
        let source = SourceText { path, text };
        let document = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            source.error(offset, Problem::Syntax(error.message().into()))
        })?;
        Reader { source, values: Vec::new(), lists: CaptureLists::default() }.scenario(document.get_ref())
    }
}

/// Reads one file. Values and lists come first because templates name them.
struct Reader<'a> {
    source: SourceText<'a>,
    values: Vec<Value>,
    lists: CaptureLists,
}

impl<'a> Reader<'a> {
    fn scenario(mut self, document: &'a DeTable<'a>) -> Result<Scenario, ScenarioError> {
        let mut top = Section::new(self.source, "the scenario".into(), 0, document);
        let name = top.text("name")?.map_or_else(|| file_name(self.source.path), Into::into);
        let bases = self.bases(&mut top)?;
        if let Some(field) = top.field("values") {
            self.read_values(field)?;
        }
        let requests = match top.array("request")? {
            Some(fields) => {
                fields.iter().try_for_each(|field| self.lists.add(self.source, *field))?;
                fields.into_iter().map(|field| self.request(field)).collect::<Result<Vec<_>, _>>()?
            }
            None => Vec::new(),
        };
        if requests.is_empty() {
            return Err(top.missing("request", "at least one [[request]]"));
        }
        if requests.iter().all(|request| request.takes().next().is_some()) {
            return Err(top.missing("request", "at least one [[request]] that takes no kept value"));
        }
        top.finish()?;
        Ok(Scenario { name, bases, values: self.values, lists: self.lists.into_names(), requests })
    }

    /// Reads `base`: one URL, or a list of URLs.
    fn bases(&self, top: &mut Section<'a>) -> Result<Vec<Url>, ScenarioError> {
        let Some(field) = top.field("base") else { return Ok(Vec::new()) };
        let fields = match field.value {
            DeValue::Array(_) => elements_of(self.source, field)?,
            _ => vec![field],
        };
        let url = |field| {
            let parsed = text_of(self.source, field)?.parse();
            parsed.map_err(|error| wrong(self.source, field, format!("a URL ({error})")))
        };
        fields.into_iter().map(url).collect()
    }

    fn read_values(&mut self, field: Field<'a>) -> Result<(), ScenarioError> {
        let section = Section::under(self.source, "[values]".into(), field)?;
        for entry in section.entries() {
            if !entry.key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
                return Err(wrong(self.source, entry, NAMES));
            }
            let section = Section::under(self.source, format!("[values.{}]", entry.key), entry)?;
            self.values.push(read_value(entry.key, section)?);
        }
        Ok(())
    }

    fn request(&self, field: Field<'a>) -> Result<Request, ScenarioError> {
        let mut section = Section::under(self.source, "[[request]]".into(), field)?;
        let name = section.text("name")?;
        let weight = section.number("weight", 1..=1_000_000, 1)? as u32;
        let method = self.method(&mut section)?;
        let (text, path) = match section.field("path") {
            Some(field) => (text_of(self.source, field)?, self.path(field)?),
            None => return Err(section.missing("path", "the request target, which starts with `/`")),
        };
        let request = Request {
            name: name.map_or_else(|| format!("{method} {}", shown_path(text)), Into::into),
            weight,
            method,
            path,
            headers: self.headers(&mut section)?,
            body: self.body(&mut section)?,
            basic_auth: self.basic_auth(&mut section)?,
            expect: self.expect(&mut section)?,
            verify: self.verify(&mut section)?,
            capture: self.lists.capture(self.source, &mut section)?,
        };
        section.finish()?;
        Ok(request)
    }

    fn method(&self, section: &mut Section<'a>) -> Result<String, ScenarioError> {
        let Some(field) = section.field("method") else { return Ok("GET".into()) };
        let text = text_of(self.source, field)?;
        let is_upper_case = text.bytes().all(|b| b.is_ascii_uppercase());
        if is_upper_case && is_token(text) {
            Ok(text.into())
        } else {
            Err(wrong(self.source, field, "a method such as `GET`"))
        }
    }

    fn path(&self, field: Field<'a>) -> Result<Template, ScenarioError> {
        let template = self.template(field)?;
        let text = text_of(self.source, field)?;
        let sendable =
            template.literals().all(|bytes| bytes.iter().all(|b| b.is_ascii_graphic() && *b != b'#'));
        let starts_with_path = match template.pieces.first() {
            Some(TemplatePart::Taken(list)) => self.lists.holds_paths(*list),
            _ => text.starts_with('/'),
        };
        if starts_with_path && sendable {
            return Ok(template);
        }
        Err(wrong(
            self.source,
            field,
            "a path that starts with `/`, or with a value kept from `header:location`, and in which spaces and the like \
             are percent-encoded (`%20`)",
        ))
    }

    fn headers(&self, section: &mut Section<'a>) -> Result<Vec<(String, Template)>, ScenarioError> {
        let Some(field) = section.field("headers") else { return Ok(Vec::new()) };
        let headers = Section::under(self.source, "headers".into(), field)?;
        headers.entries().into_iter().map(|entry| self.header(entry)).collect()
    }

    fn header(&self, entry: Field<'a>) -> Result<(String, Template), ScenarioError> {
        let value = self.template(entry)?;
        if !is_token(entry.key) || !value.literals().all(is_field_value) {
            return Err(wrong(self.source, entry, "a header name, with a value free of control characters"));
        }
        Ok((entry.key.into(), value))
    }

    /// Reads `body`: a text, a file, or the description of a generated body.
    fn body(&self, section: &mut Section<'a>) -> Result<Body, ScenarioError> {
        let Some(field) = section.field("body") else { return Ok(Body::Text(Template::default())) };
        if matches!(field.value, DeValue::Table(_)) {
            return Ok(Body::Generated(read_sizes(self.source, field)?));
        }
        match text_of(self.source, field)?.strip_prefix('@') {
            Some(name) => Ok(Body::Text(Template::literal(self.beside(field, name)?))),
            None => self.template(field).map(Body::Text),
        }
    }

    fn basic_auth(&self, section: &mut Section<'a>) -> Result<Option<(Template, Template)>, ScenarioError> {
        let Some(field) = section.field("basic_auth") else { return Ok(None) };
        let mut auth = Section::under(self.source, "basic_auth".into(), field)?;
        let name = auth.field("name").ok_or_else(|| auth.missing("name", "the user to authenticate as"))?;
        let password = auth.field("password").ok_or_else(|| auth.missing("password", "the password"))?;
        auth.finish()?;
        Ok(Some((self.template(name)?, self.template(password)?)))
    }

    fn expect(&self, section: &mut Section<'a>) -> Result<Statuses, ScenarioError> {
        let Some(field) = section.field("expect") else { return Ok(Statuses::default()) };
        let fields = match field.value {
            DeValue::Array(_) => elements_of(self.source, field)?,
            _ => vec![field],
        };
        let mut statuses = Statuses::none();
        for field in fields {
            match field.value {
                DeValue::String(class) => statuses.insert_class(self.class(field, class)?),
                _ => statuses.insert(number_of(self.source, field, 100..=599)? as u16),
            }
        }
        Ok(statuses)
    }

    fn class(&self, field: Field<'a>, text: &str) -> Result<u16, ScenarioError> {
        let digit = text.strip_suffix("xx").and_then(|digit| digit.parse().ok());
        let class = digit.filter(|class| (1..=5).contains(class));
        class.ok_or_else(|| wrong(self.source, field, "statuses such as 200, or classes such as \"2xx\""))
    }

    /// Reads `verify`: a length, a text, or the contents of a file.
    fn verify(&self, section: &mut Section<'a>) -> Result<Verify, ScenarioError> {
        let Some(field) = section.field("verify") else { return Ok(Verify::Nothing) };
        match field.value {
            DeValue::Integer(_) => Ok(Verify::Length(number_of(self.source, field, 0..=u64::MAX)?)),
            DeValue::String(text) => match text.strip_prefix('@') {
                Some(name) => Ok(Verify::Bytes(Arc::from(self.beside(field, name)?))),
                None => Ok(Verify::Bytes(Arc::from(text.as_bytes()))),
            },
            _ => Err(wrong(self.source, field, "a length in bytes, the body itself, or \"@file\"")),
        }
    }

    /// Reads the file `name`, which lies beside the scenario.
    fn beside(&self, field: Field<'a>, name: &str) -> Result<Vec<u8>, ScenarioError> {
        let path = self.source.path.parent().unwrap_or(Path::new("")).join(name);
        std::fs::read(&path).map_err(|error| {
            let problem = Problem::Unreadable { key: field.key.into(), path, reason: error.to_string() };
            self.source.error(field.offset, problem)
        })
    }

    fn template(&self, field: Field<'a>) -> Result<Template, ScenarioError> {
        let text = text_of(self.source, field)?;
        let names: Vec<&str> = self.values.iter().map(|value| value.name.as_str()).collect();
        let slots = Names { values: &names, lists: self.lists.names() };
        Template::parse(text.as_bytes(), slots).map_err(|error| {
            let problem = match error {
                TemplateError::UnknownList(name) => self.lists.unknown(name),
                TemplateError::Unclosed => Problem::UnclosedSlot { key: field.key.into() },
                TemplateError::Unknown(name) => {
                    let expected = names.into_iter().map(Into::into).collect();
                    Problem::UnknownName { what: "value", name, expected }
                }
            };
            self.source.error(field.offset, problem)
        })
    }
}

fn file_name(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
