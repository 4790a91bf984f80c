//! Descriptions of an API: OpenAPI 3, as the tree of values that JSON and YAML have in common.

mod budget;
mod document;
mod parameter;
mod sample;
mod server;

use std::collections::BTreeSet;

use serde_json::Value as Json;

use self::budget::Budget;
use self::document::Document;
use self::parameter::{Parameter, encoded, encoded_path};
use self::sample::{Sample, json_of, text_of};
use crate::COPIED_BYTES_MAX;
use crate::draft::{escaped, header, is_token};
use crate::error::ImportError;
use crate::left_out::{LeftOut, Why};
use crate::scenario::{Body, Imported, Request, Value};
use crate::secrets::{is_secret, secrets_of};

/// The methods of operations, as a description names them.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// What can be sent of the kinds of bodies.
const JSON: &str = "application/json";

/// Makes a request of each operation.
pub(crate) fn read(document: &Json, base: Option<&str>) -> Result<Imported, ImportError> {
    // In YAML, 3.1 without quotation marks is a number.
    let version = document.get("openapi").map(text_of).unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(ImportError::Version);
    }
    let Some(paths) = document.get("paths").and_then(Json::as_object) else {
        let reason = "the paths of the API belong here".into();
        return Err(ImportError::Field { path: "paths".into(), reason });
    };
    let mut reader = Reader::new(document, base)?;
    for (path, item) in paths {
        let item = reader.document.resolved(item);
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                reader.operation(path, method, item, operation);
            }
        }
    }
    reader.finish()
}

struct Reader<'a> {
    document: Document<'a>,
    /// The path that those of the description lie below, unless the server's URL has it.
    prefix: String,
    made: Imported,
    /// What bodies may still be copied.
    bodies: Budget,
    /// What values of parameters may still be copied.
    values: Budget,
    /// What else may still be copied: paths, names of parameters and schemes, kinds of bodies, and that of the server.
    others: Budget,
    /// How many requests were left out because of that.
    dropped: usize,
    /// How many parameters were left out because they are optional.
    optional: usize,
    /// How many bodies are made up.
    made_up: usize,
    /// How many operations name servers of their own.
    own_servers: usize,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Json, base: Option<&str>) -> Result<Self, ImportError> {
        let document = Document::new(root);
        let place = server::place(document.get("servers"), base)?;
        let (base, prefix) = match place.origin {
            Some(origin) => (Some(origin + &place.prefix), String::new()),
            None => (None, place.prefix),
        };
        let made = Imported { base, left_out: place.left_out, ..Imported::default() };
        // Operations may share an example or a name, so their number and its length multiply.
        let [bodies, values, others] = [(); 3].map(|()| Budget::new(COPIED_BYTES_MAX));
        Ok(Reader {
            document,
            prefix,
            made,
            bodies,
            values,
            others,
            dropped: 0,
            optional: 0,
            made_up: 0,
            own_servers: 0,
        })
    }

    fn operation(&mut self, path: &str, method: &str, item: &'a Json, operation: &'a Json) {
        // In its path, and in its name.
        if !self.others.spend(self.prefix.len() + 2 * path.len()) {
            self.dropped += 1;
            return;
        }
        let method = method.to_ascii_uppercase();
        let mut request =
            Request { name: format!("{method} {path}"), weight: 1, method, ..Request::default() };
        if let Err(why) = self.body(operation, &mut request) {
            self.made.left_out.push(LeftOut::Request { request: request.name, why });
            return;
        }
        let parameters = self.parameters(item, operation);
        request.path = self.path(path, &parameters);
        let mut query = Vec::new();
        for parameter in &parameters {
            self.parameter(parameter, &mut request, &mut query);
        }
        self.authorise(operation, &mut request, &mut query);
        if !query.is_empty() {
            request.path = format!("{}?{}", request.path, query.join("&"));
        }
        if self.others.is_spent() {
            self.dropped += 1;
            return;
        }
        let has_own_server = [item, operation].iter().any(|holder| holder.get("servers").is_some());
        self.own_servers += usize::from(has_own_server);
        self.made.requests.push(request);
    }

    /// The parameters of an operation, after those of its path that it does not replace.
    fn parameters(&self, item: &'a Json, operation: &'a Json) -> Vec<Parameter<'a>> {
        let of = |holder: &'a Json| {
            let all = holder.get("parameters").and_then(Json::as_array).into_iter().flatten();
            all.map(|described| Parameter::new(self.document.resolved(described))).collect::<Vec<_>>()
        };
        let own = of(operation);
        let mut all = of(item);
        all.retain(|common| !own.iter().any(|own| own.name == common.name && own.place == common.place));
        all.extend(own);
        all
    }

    /// A path of the description, with slots for what changes in it, described or not.
    fn path(&mut self, template: &str, parameters: &[Parameter<'a>]) -> String {
        let mut path = escaped(&self.prefix);
        if !template.starts_with('/') {
            path.push('/');
        }
        let mut rest = template;
        while let Some((before, (name, after))) = next_slot(rest) {
            path.push_str(&encoded_path(before));
            let is_it = |parameter: &&Parameter<'a>| parameter.place == "path" && parameter.name == name;
            let filled = match parameters.iter().find(is_it) {
                Some(parameter) => self.filled(parameter),
                None => self.filled(&Parameter::in_path(name)),
            };
            path.push_str(&filled);
            rest = after;
        }
        path + &encoded_path(rest)
    }

    /// Gives a request a parameter that is not in its path.
    fn parameter(&mut self, parameter: &Parameter<'a>, request: &mut Request, query: &mut Vec<String>) {
        let name = parameter.name;
        if name.is_empty() || parameter.place == "path" || parameter.is_ignored() {
            return;
        }
        if !parameter.is_required() || !["query", "header", "cookie"].contains(&parameter.place) {
            self.optional += 1;
            return;
        }
        // Once there, and once in its slot.
        if !self.others.spend(2 * name.len()) {
            return;
        }
        let filled = self.filled(parameter);
        match parameter.place {
            "query" => query.push(format!("{}={filled}", encoded(name))),
            "header" => set_header(request, name, filled),
            _ => add_cookie(request, name, &filled),
        }
    }

    /// What stands for a parameter: a variable where the name says that it is a secret, and otherwise a value, or its first
    /// example if there are secrets in them.
    fn filled(&mut self, parameter: &Parameter<'_>) -> String {
        let name = parameter.name;
        if is_secret(name) {
            return self.secret(name);
        }
        let samples = parameter.samples(&self.document, &self.values);
        let found: Vec<_> = samples.iter().flat_map(secrets_of).collect();
        let has_texts = found.iter().any(|(_, value)| value.is_string());
        let numbers: BTreeSet<&str> =
            found.iter().filter(|(_, value)| value.is_number()).map(|(name, _)| *name).collect();
        for field in numbers {
            self.tell(LeftOut::SecretInParameter { parameter: name.to_owned(), name: field.to_owned() });
        }
        if !has_texts {
            return self.slot(name, parameter.texts(&samples));
        }
        // Slots cannot stand in a value.
        if samples.len() > 1 {
            self.tell(LeftOut::Examples { parameter: name.to_owned(), others: samples.len() - 1 });
        }
        let first = samples.into_iter().next().unwrap_or_default();
        let first = self.without_secrets(first, None, |reader| &reader.others);
        parameter.in_place(json_of(&first))
    }

    /// What stands for one of these texts.
    fn slot(&mut self, name: &str, texts: Vec<String>) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let plain: String = name.chars().map(plain).collect();
        let plain = if plain.is_empty() { "value".to_owned() } else { plain };
        let items = Value::Items(texts);
        let values = &self.made.values;
        let is_free = |value: &String| values.iter().all(|(taken, known)| taken != value || *known == items);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let value = std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain.clone());
        let slot = format!("${{{value}}}");
        if !self.made.values.iter().any(|(taken, _)| *taken == value) {
            self.made.left_out.push(LeftOut::Invented { value: value.clone() });
            self.made.values.push((value, items));
        }
        slot
    }

    fn body(&mut self, operation: &'a Json, request: &mut Request) -> Result<(), Why> {
        let Some(body) = operation.get("requestBody").map(|body| self.document.resolved(body)) else {
            return Ok(());
        };
        let content = body.get("content").and_then(Json::as_object);
        let is_json = |kind: &str| {
            (kind.starts_with(JSON) || kind.ends_with("+json")) && !kind.contains(char::is_control)
        };
        let json = content.into_iter().flatten().find(|(kind, _)| is_json(kind));
        let made = json.ok_or(Why::NotJson).and_then(|(kind, media)| {
            let text = self.text(media, &request.name).ok_or(Why::TooLong)?;
            Ok((kind, text))
        });
        match made {
            Ok((kind, text)) => {
                // Beyond the budget the request is left out.
                if self.others.spend(kind.len()) {
                    set_header(request, "Content-Type", escaped(kind));
                }
                request.body = Some(Body::Text(text));
            }
            Err(why) if body.get("required") == Some(&Json::Bool(true)) => return Err(why),
            Err(why) => self.made.left_out.push(LeftOut::Body { request: request.name.clone(), why }),
        }
        Ok(())
    }

    /// A body for `media`: its example, or one made up. None once bodies are too long together.
    fn text(&mut self, media: &'a Json, request: &str) -> Option<String> {
        let body = match parameter::examples(&self.document, media).first() {
            Some(example) => self.bodies.copy(example)?,
            None => self.sample(media, request)?,
        };
        let found = secrets_of(&body);
        let numbers: BTreeSet<&str> =
            found.iter().filter(|(_, value)| value.is_number()).map(|(name, _)| *name).collect();
        let kept = |name: &str| LeftOut::SecretInBody { request: request.to_owned(), name: name.to_owned() };
        let kept: Vec<_> = numbers.into_iter().map(kept).collect();
        let body = self.without_secrets(body, None, |reader| &reader.bodies);
        if self.bodies.is_spent() {
            return None;
        }
        self.made.left_out.extend(kept);
        Some(body.to_string())
    }

    /// A body that the schema of `media` allows. None once bodies are too long together.
    fn sample(&mut self, media: &'a Json, request: &str) -> Option<Json> {
        let sample = Sample::new(&self.document, &self.bodies);
        let body = sample.of(media.get("schema").unwrap_or(&Json::Null));
        let (is_cut, is_made_up) = (sample.is_cut(), sample.is_made_up());
        if self.bodies.is_spent() {
            return None;
        }
        self.made_up += usize::from(is_made_up);
        if is_cut {
            self.made.left_out.push(LeftOut::Cut { request: request.to_owned() });
        }
        Some(body)
    }

    /// JSON in which variables stand for texts that are secrets, and nothing else stands for a value. `holder` is the name
    /// of a secret that it lies below. The length of each name counts against the budget; beyond it, texts are missing.
    fn without_secrets(&mut self, json: Json, holder: Option<&str>, budget: fn(&Self) -> &Budget) -> Json {
        match (json, holder) {
            (Json::Object(fields), _) => {
                let field = |(name, value): (String, Json)| {
                    let holder = if is_secret(&name) { Some(name.as_str()) } else { holder };
                    let value = self.without_secrets(value, holder, budget);
                    (escaped(&name), value)
                };
                Json::Object(fields.into_iter().map(field).collect())
            }
            (Json::Array(items), _) => {
                let item = |item: Json| self.without_secrets(item, holder, budget);
                Json::Array(items.into_iter().map(item).collect())
            }
            // One name may be that of many texts.
            (Json::String(_), Some(name)) if budget(self).spend(name.len()) => {
                Json::String(self.secret(name))
            }
            (Json::String(_), Some(_)) => Json::Null,
            (Json::String(text), None) => Json::String(escaped(&text)),
            (other, _) => other,
        }
    }

    /// Gives a request what the first way to authorise it needs, from the environment.
    fn authorise(&mut self, operation: &Json, request: &mut Request, query: &mut Vec<String>) {
        let ways = operation.get("security").or_else(|| self.document.get("security"));
        let Some(way) = ways.and_then(|ways| ways.get(0)).and_then(Json::as_object) else { return };
        let schemes = self.document.get("components").and_then(|parts| parts.get("securitySchemes"));
        for name in way.keys() {
            let Some(scheme) = schemes.and_then(|all| all.get(name)) else { continue };
            let scheme = self.document.resolved(scheme);
            let text = |key| scheme.get(key).and_then(Json::as_str).unwrap_or_default();
            // Basic authentication has two variables.
            if !self.others.spend(2 * name.len() + text("name").len()) {
                return;
            }
            let slot = self.secret(name);
            match (text("type"), text("in")) {
                ("apiKey", "query") => query.push(format!("{}={slot}", encoded(text("name")))),
                ("apiKey", "cookie") => add_cookie(request, text("name"), &slot),
                ("apiKey", _) => set_header(request, text("name"), slot),
                ("http", _) if text("scheme").eq_ignore_ascii_case("basic") => {
                    request.basic_auth = Some((self.secret(&format!("{name}_user")), slot));
                }
                _ => set_header(request, "Authorization", format!("Bearer {slot}")),
            }
        }
    }

    fn secret(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let value = format!("auth_{}", name.chars().map(plain).collect::<String>());
        let variable = value.to_ascii_uppercase();
        let slot = format!("${{{value}}}");
        if !self.made.values.iter().any(|(taken, _)| *taken == value) {
            self.made.left_out.push(LeftOut::Secret { name: name.into(), variable: variable.clone() });
            self.made.values.push((value, Value::Env(variable)));
        }
        slot
    }

    /// Lists what is left out, once.
    fn tell(&mut self, what: LeftOut) {
        if !self.made.left_out.contains(&what) {
            self.made.left_out.push(what);
        }
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if self.made.requests.is_empty() {
            return Err(ImportError::Nothing(""));
        }
        let is_change = |request: &&Request| !["GET", "HEAD", "OPTIONS"].contains(&request.method.as_str());
        let changes = self.made.requests.iter().filter(is_change).count();
        let counted = [
            (self.dropped, LeftOut::Copies { requests: self.dropped }),
            (self.own_servers, LeftOut::OwnServers { requests: self.own_servers }),
            (self.optional, LeftOut::Optional { parameters: self.optional }),
            (self.made_up, LeftOut::MadeUp { requests: self.made_up }),
            (changes, LeftOut::Changes { requests: changes }),
        ];
        if self.made.base.is_none() {
            self.made.left_out.push(LeftOut::NoServer);
        }
        let lost = self.document.lost();
        if !lost.is_empty() {
            self.made.left_out.push(LeftOut::References { to: lost });
        }
        self.made.left_out.extend(counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what));
        Ok(self.made)
    }
}

/// What comes before the next slot of a path, its name, and what comes after it.
fn next_slot(template: &str) -> Option<(&str, (&str, &str))> {
    let (before, rest) = template.split_once('{')?;
    Some((before, rest.split_once('}')?))
}

/// Sets a header that is not there yet, if the name can be one.
fn set_header(request: &mut Request, name: &str, value: String) {
    if is_token(name) && header(&request.headers, name).is_none() {
        request.headers.push((name.into(), value));
    }
}

/// Adds a cookie to those that a request has, if the name can be one.
fn add_cookie(request: &mut Request, name: &str, value: &str) {
    if !is_token(name) {
        return;
    }
    let cookie = format!("{name}={value}");
    match request.headers.iter_mut().find(|(known, _)| known == "Cookie") {
        Some((_, all)) if all.split("; ").any(|known| known == cookie) => {}
        Some((_, all)) => *all = format!("{all}; {cookie}"),
        None => request.headers.push(("Cookie".into(), cookie)),
    }
}

#[cfg(test)]
mod tests;
