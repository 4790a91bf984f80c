//! Descriptions of an API: OpenAPI 3, in JSON or YAML.

mod sample;

use serde_json::Value as Json;

use self::sample::{Samples, resolved, text_of};
use crate::draft::{escaped, header, is_token};
use crate::error::ImportError;
use crate::left_out::{LeftOut, Why};
use crate::scenario::{Body, Imported, Request, Value};

/// The methods of operations, as a description names them.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Headers that a description says nothing about as parameters.
const IGNORED: [&str; 3] = ["accept", "authorization", "content-type"];

/// What can be sent of the kinds of bodies.
const JSON: &str = "application/json";

/// Makes a request of each operation.
pub(crate) fn read(document: &Json, base: Option<&str>) -> Result<Imported, ImportError> {
    let version = document.get("openapi").and_then(Json::as_str).unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(ImportError::Version);
    }
    let Some(paths) = document.get("paths").and_then(Json::as_object) else {
        let reason = "the paths of the API belong here".into();
        return Err(ImportError::Field { path: "paths".into(), reason });
    };
    let mut reader = Reader { document, made: Imported::default(), optional: 0 };
    reader.made.base = base.map(str::to_owned).or_else(|| server(document));
    for (path, item) in paths {
        let item = resolved(document, item);
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                reader.operation(path, method, item, operation);
            }
        }
    }
    reader.finish()
}

/// The URL of the first server, if it is a whole one.
fn server(document: &Json) -> Option<String> {
    let server = document.get("servers")?.get(0)?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    for (name, variable) in server.get("variables").and_then(Json::as_object).into_iter().flatten() {
        let default = variable.get("default").and_then(Json::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    let parsed = url::Url::parse(&url).ok()?;
    matches!(parsed.scheme(), "http" | "https").then(|| parsed.as_str().trim_end_matches('/').to_owned())
}

struct Reader<'a> {
    document: &'a Json,
    made: Imported,
    /// How many parameters were left out because they are optional.
    optional: usize,
}

impl Reader<'_> {
    fn operation(&mut self, path: &str, method: &str, item: &Json, operation: &Json) {
        let method = method.to_ascii_uppercase();
        let mut request =
            Request { name: format!("{method} {path}"), weight: 1, method, ..Request::default() };
        let (mut target, mut query) = (template_of(path), Vec::new());
        for parameter in parameters(self.document, item, operation) {
            let text = |key| parameter.get(key).and_then(Json::as_str).unwrap_or_default();
            let (name, place) = (text("name"), text("in"));
            let required = parameter.get("required") == Some(&Json::Bool(true));
            match place {
                "path" => {
                    let slot = self.invented(name, parameter);
                    target = target.replace(&format!("{{{name}}}"), &slot);
                }
                "query" if required => {
                    query.push(format!("{}={}", encoded(name), self.invented(name, parameter)))
                }
                "header" if IGNORED.iter().any(|ignored| name.eq_ignore_ascii_case(ignored)) => {}
                "header" if required => set_header(&mut request, name, self.invented(name, parameter)),
                _ => self.optional += 1,
            }
        }
        if let Err(why) = self.body(operation, &mut request) {
            self.made.left_out.push(LeftOut::Request { request: request.name, why });
            return;
        }
        self.authorise(operation, &mut request, &mut query);
        let joined = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        request.path = target + &joined;
        self.made.requests.push(request);
    }

    /// The slot of a value that is made up for a parameter.
    fn invented(&mut self, name: &str, parameter: &Json) -> String {
        let samples = Samples::new(self.document);
        let example = parameter.get("example").cloned();
        let sample = example.unwrap_or_else(|| samples.of(parameter.get("schema").unwrap_or(&Json::Null)));
        let text = text_of(&sample);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let value: String = name.chars().map(plain).collect();
        let items = Value::Items(vec![text.clone()]);
        let known = self.made.values.iter().find(|(taken, _)| *taken == value);
        match known {
            Some((_, known)) if *known == items => return format!("${{{value}}}"),
            // The same name for something else: written where it stands.
            Some(_) => return encoded(&text),
            None => {}
        }
        self.made.left_out.push(LeftOut::Invented { value: value.clone() });
        self.made.values.push((value.clone(), items));
        format!("${{{value}}}")
    }

    fn body(&self, operation: &Json, request: &mut Request) -> Result<(), Why> {
        let Some(body) = operation.get("requestBody").map(|body| resolved(self.document, body)) else {
            return Ok(());
        };
        let content = body.get("content").and_then(Json::as_object);
        let is_json = |kind: &str| kind.starts_with(JSON) || kind.ends_with("+json");
        let Some((kind, media)) = content.into_iter().flatten().find(|(kind, _)| is_json(kind)) else {
            let required = body.get("required") == Some(&Json::Bool(true));
            return if required { Err(Why::NotJson) } else { Ok(()) };
        };
        let examples = media.get("examples").and_then(Json::as_object).and_then(|all| all.values().next());
        let example =
            examples.map(|example| resolved(self.document, example)).and_then(|one| one.get("value"));
        let sample = match media.get("example").or(example) {
            Some(example) => example.clone(),
            None => Samples::new(self.document).of(media.get("schema").unwrap_or(&Json::Null)),
        };
        set_header(request, "Content-Type", kind.clone());
        request.body = Some(Body::Text(escaped(&sample.to_string())));
        Ok(())
    }

    /// Gives a request what the first way to authorise it needs, from the environment.
    fn authorise(&mut self, operation: &Json, request: &mut Request, query: &mut Vec<String>) {
        let ways = operation.get("security").or_else(|| self.document.get("security"));
        let Some(way) = ways.and_then(|ways| ways.get(0)).and_then(Json::as_object) else { return };
        for name in way.keys() {
            let Some(scheme) =
                self.document.pointer("/components/securitySchemes").and_then(|all| all.get(name))
            else {
                continue;
            };
            let scheme = resolved(self.document, scheme);
            let text = |key| scheme.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
            let slot = self.secret(name);
            match (text("type").as_str(), text("in").as_str()) {
                ("apiKey", "query") => query.push(format!("{}={slot}", encoded(&text("name")))),
                ("apiKey", "cookie") => {
                    set_header(request, "Cookie", format!("{}={slot}", text("name")));
                }
                ("apiKey", _) => set_header(request, &text("name"), slot),
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
        if !self.made.values.iter().any(|(taken, _)| *taken == value) {
            self.made.left_out.push(LeftOut::Secret { name: name.into(), variable: variable.clone() });
            self.made.values.push((value.clone(), Value::Env(variable)));
        }
        format!("${{{value}}}")
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if self.made.requests.is_empty() {
            return Err(ImportError::Nothing(""));
        }
        if self.made.base.is_none() {
            self.made.left_out.push(LeftOut::NoServer);
        }
        if self.optional > 0 {
            self.made.left_out.push(LeftOut::Optional { parameters: self.optional });
        }
        let changes = self
            .made
            .requests
            .iter()
            .filter(|request| !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS"));
        let changes = changes.count();
        if changes > 0 {
            self.made.left_out.push(LeftOut::Changes { requests: changes });
        }
        Ok(self.made)
    }
}

/// Sets a header that is not there yet, if the name can be one.
fn set_header(request: &mut Request, name: &str, value: String) {
    if is_token(name) && header(&request.headers, name).is_none() {
        request.headers.push((name.into(), value));
    }
}

/// The parameters of an operation, after those of its path that it does not replace.
fn parameters<'a>(document: &'a Json, item: &'a Json, operation: &'a Json) -> Vec<&'a Json> {
    let of = |holder: &'a Json| holder.get("parameters").and_then(Json::as_array).into_iter().flatten();
    let own: Vec<&Json> = of(operation).map(|parameter| resolved(document, parameter)).collect();
    let is_replaced = |common: &&Json| {
        own.iter().any(|own| own.get("name") == common.get("name") && own.get("in") == common.get("in"))
    };
    let common =
        of(item).map(|parameter| resolved(document, parameter)).filter(|common| !is_replaced(common));
    common.chain(own.iter().copied()).collect()
}

/// A path of a description, with everything encoded but what stands for parameters.
fn template_of(path: &str) -> String {
    let path: String = path
        .chars()
        .map(|c| match c {
            '{' | '}' | '/' => c.to_string(),
            c => encoded(&c.to_string()),
        })
        .collect();
    if path.starts_with('/') { path } else { format!("/{path}") }
}

/// A text percent-encoded for a path or a query.
fn encoded(text: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encoding::utf8_percent_encode(text, KEPT).to_string()
}

#[cfg(test)]
mod tests;
