//! Made-up values that a schema allows.

use serde_json::{Map, Value as Json, json};

/// How deep schemas are followed: those that hold themselves end here.
const DEPTH_MAX: usize = 8;

/// How many schemas are followed for one value.
const SCHEMAS_MAX: usize = 500;

/// How many references are followed from one to the next.
const HOPS_MAX: usize = 8;

/// Follows a reference within the document. What leads elsewhere is nothing.
pub(super) fn resolved<'a>(document: &'a Json, value: &'a Json) -> &'a Json {
    let mut value = value;
    for _ in 0..HOPS_MAX {
        let Some(reference) = value.get("$ref").and_then(Json::as_str) else { return value };
        let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        value = target.unwrap_or(&Json::Null);
    }
    &Json::Null
}

/// A value as a text without quotation marks, on one line.
pub(super) fn text_of(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Makes up values.
pub(super) struct Samples<'a> {
    document: &'a Json,
    left: std::cell::Cell<usize>,
}

impl<'a> Samples<'a> {
    pub(super) fn new(document: &'a Json) -> Self {
        Samples { document, left: std::cell::Cell::new(SCHEMAS_MAX) }
    }

    /// A value that the schema allows: its example, its default, or one made up.
    pub(super) fn of(&self, schema: &Json) -> Json {
        self.at(schema, 0)
    }

    fn at(&self, schema: &Json, depth: usize) -> Json {
        let left = self.left.get();
        if depth > DEPTH_MAX || left == 0 {
            return Json::Null;
        }
        self.left.set(left - 1);
        let schema = resolved(self.document, schema);
        let given = ["example", "default", "const"].iter().find_map(|key| schema.get(*key));
        let listed = ["examples", "enum"].iter().find_map(|key| schema.get(*key)?.get(0));
        if let Some(given) = given.or(listed) {
            return given.clone();
        }
        if let Some(first) = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.get(0)) {
            return self.at(first, depth + 1);
        }
        match kind_of(schema) {
            "object" => self.object(schema, depth),
            "array" => json!([self.at(schema.get("items").unwrap_or(&Json::Null), depth + 1)]),
            "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            "number" => schema.get("minimum").cloned().unwrap_or(json!(1.5)),
            "boolean" => json!(true),
            "null" => Json::Null,
            _ => json!(text(schema)),
        }
    }

    fn object(&self, schema: &Json, depth: usize) -> Json {
        let mut fields = Map::new();
        for part in schema.get("allOf").and_then(Json::as_array).into_iter().flatten() {
            if let Json::Object(more) = self.at(part, depth + 1) {
                fields.extend(more);
            }
        }
        for (name, field) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let read_only = resolved(self.document, field).get("readOnly") == Some(&Json::Bool(true));
            if !read_only {
                fields.insert(name.clone(), self.at(field, depth + 1));
            }
        }
        Json::Object(fields)
    }
}

/// The type of a schema; of several, the first.
fn kind_of(schema: &Json) -> &str {
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    let is_object = schema.get("properties").is_some() || schema.get("allOf").is_some();
    kind.unwrap_or(if is_object { "object" } else { "string" })
}

fn text(schema: &Json) -> String {
    let known = match schema.get("format").and_then(Json::as_str).unwrap_or_default() {
        "date" => "2030-01-31",
        "date-time" => "2030-01-31T12:00:00Z",
        "email" => "user@example.com",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "uri" | "url" => "http://example.com/",
        "ipv4" => "192.0.2.1",
        _ => "text",
    };
    let least = schema.get("minLength").and_then(Json::as_u64).unwrap_or_default().min(4_096) as usize;
    format!("{known:x<least$}")
}
