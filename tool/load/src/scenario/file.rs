//! Scenario files: TOML in, a validated [`Scenario`] out.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::{Problem, ScenarioError};
use super::keep::{self, Lists};
use super::section::{Field, Section, Source, elements_of, number_of, text_of, wrong};
use super::single::{is_field_value, is_token};
use super::statuses::Statuses;
use super::template::{Names, Part, Template, TemplateError};
use super::value::Value;
use super::values::{read_sizes, read_value};
use super::{Body, Request, Scenario, Verify};
use crate::url::Url;

const NAMES: &str = "a name of letters, digits, `-` and `_`";

impl Scenario {
    /// Reads a scenario from the text of the TOML file at `path`. Files it names (`@file`) are looked for
    /// beside it.
    ///
    /// | key | meaning |
    /// |---|---|
    /// | `name` | what to call it; default the file's name |
    /// | `base` | URL of the server, or a list: user u sends to number u modulo their number; the command line may say another |
    /// | `[values]` | named values; `${name}` in a path, header, body or `basic_auth` stands for one |
    /// | `[[request]]` | one kind of request; each user picks one each time, by weight |
    ///
    /// A request has `path`, and may have `name`, `weight` (1), `method` (`GET`), `headers`, `body` (text or
    /// `@file`, a file being sent as it stands; or `{ size = "1 MB" }`, `{ sizes = ["100 KB", "10 MB"] }`: so many
    /// bytes that do not compress, of a size drawn for each request), `basic_auth = { name, password }`, `expect` (statuses: 201,
    /// `"2xx"`, or a list; default 200 to 399) and `verify` (what the body must be: a length, a text, or
    /// `@file`). `$${` stands for `${`.
    ///
    /// With `keep = { name = "booking", from = "json:id" }` (or `"header:location"`) the user keeps that of every answer
    /// of 2xx, at most 64 values; `${taken:booking}` in another request uses up the oldest. A user that has none makes
    /// another of the requests instead.
    ///
    /// A value has a `kind`, and may have `each = "user"` (drawn once per user, not per request) and `width`
    /// (zeros in front of a number) and `check = "verhoeff"` (a check digit behind it):
    ///
    /// | kind | keys | value |
    /// |---|---|---|
    /// | `user` | `start` (0) | number of the user |
    /// | `counter` | `start` (0), `step` (1), `per_user` (0), `wrap` (0: never) | `start + user * per_user + (k mod wrap) * step` at a user's k-th draw |
    /// | `random` | `min` (0), `max` | a whole number, both ends possible |
    /// | `random-string` | `length` (16), `alphabet` (`alphanumeric`, `letters`, `digits`, `hex`) | so many characters |
    /// | `cycle` | `items`, `step` (1) | the items in turn, user u beginning at item u and going `step` items on |
    ///
    /// A value that occurs more than once in a request is the same in all places. All that is random comes
    /// from the plan's seed, with a stream of its own for each user.
    ///
    /// # Errors
    /// File, line, what was expected there, and the nearest name where one is unknown.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, ScenarioError> {
        let source = Source { path, text };
        let document = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            source.error(offset, Problem::Syntax(error.message().into()))
        })?;
        Reader { source, values: Vec::new(), lists: Lists::default() }.scenario(document.get_ref())
    }
}

/// Reads one file; the values come first, for templates name them.
struct Reader<'a> {
    source: Source<'a>,
    values: Vec<Value>,
    lists: Lists,
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
            return Err(top.missing("request", "one [[request]] at least that takes no kept value"));
        }
        top.finish()?;
        Ok(Scenario { name, bases, values: self.values, lists: self.lists, requests })
    }

    /// One URL, or a list of them.
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
            None => return Err(section.missing("path", "what is requested, beginning with `/`")),
        };
        let request = Request {
            name: name.map_or_else(|| format!("{method} {text}"), Into::into),
            weight,
            method,
            path,
            headers: self.headers(&mut section)?,
            body: self.body(&mut section)?,
            basic_auth: self.basic_auth(&mut section)?,
            expect: self.expect(&mut section)?,
            verify: self.verify(&mut section)?,
            keep: self.lists.keep(self.source, &mut section)?,
        };
        section.finish()?;
        Ok(request)
    }

    fn method(&self, section: &mut Section<'a>) -> Result<String, ScenarioError> {
        let Some(field) = section.field("method") else { return Ok("GET".into()) };
        let text = text_of(self.source, field)?;
        let usual = text.bytes().all(|b| b.is_ascii_uppercase());
        if usual && is_token(text) {
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
        let begins_with_path = match template.pieces.first() {
            Some(Part::Taken(list)) => self.lists.holds_paths(*list),
            _ => text.starts_with('/'),
        };
        if begins_with_path && sendable {
            return Ok(template);
        }
        Err(wrong(
            self.source,
            field,
            "a path that begins with `/`, or with a value kept from `header:location`; blanks and the like percent-encoded \
             (`%20`)",
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

    /// A body in the file, or beside it as `@file`, sent as it stands; or one that is generated.
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
        let name = auth.field("name").ok_or_else(|| auth.missing("name", "whom to authenticate as"))?;
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

    /// What the body must be: a length, or the contents of `@file`.
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
                TemplateError::UnknownList(name) => keep::unknown(name, &self.lists),
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
