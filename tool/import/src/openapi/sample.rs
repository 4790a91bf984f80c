//! Made-up values that a schema allows.

use std::cell::Cell;

use serde_json::{Map, Value as Json, json};

use super::budget::Budget;
use super::document::Document;

/// How deep schemas may lie in one another.
const DEPTH_MAX: usize = 16;

/// How many schemas are followed for one value.
const SCHEMAS_MAX: usize = 500;

/// A value as a text without quotation marks, on one line. The items of a list are parted by commas.
pub(super) fn text_of(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A value as JSON, without characters that steer a terminal or end a line.
pub(super) fn json_of(value: &Json) -> String {
    let text = value.to_string();
    if !text.contains(char::is_control) {
        return text;
    }
    let written = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    text.chars().map(written).collect()
}

/// Makes up one value.
pub(super) struct Sample<'a, 'd> {
    document: &'d Document<'a>,
    budget: &'d Budget,
    left: Cell<usize>,
    is_cut: Cell<bool>,
    is_made_up: Cell<bool>,
}

impl<'a, 'd> Sample<'a, 'd> {
    pub(super) fn new(document: &'d Document<'a>, budget: &'d Budget) -> Self {
        let (is_cut, is_made_up) = (Cell::new(false), Cell::new(false));
        Sample { document, budget, left: Cell::new(SCHEMAS_MAX), is_cut, is_made_up }
    }

    /// A value that the schema allows: its example, its default, or one made up. Parts of it are missing if the budget is
    /// spent.
    pub(super) fn of(&self, schema: &'a Json) -> Json {
        self.at(schema, &[]).unwrap_or(Json::Null)
    }

    /// Whether the value ends where its schema holds itself, or goes on for too long.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Whether a part of the value is neither an example nor a default.
    pub(super) fn is_made_up(&self) -> bool {
        self.is_made_up.get()
    }

    /// The value of a schema that stands in those `above`. None where it stands in itself.
    fn at(&self, schema: &'a Json, above: &[&'a Json]) -> Option<Json> {
        let schema = self.document.resolved(schema);
        let left = self.left.get();
        let holds_itself = above.iter().any(|other| std::ptr::eq(*other, schema));
        if self.budget.is_spent() || holds_itself || above.len() > DEPTH_MAX || left == 0 {
            self.is_cut.set(true);
            return None;
        }
        self.left.set(left - 1);
        let given = ["example", "default", "const"].iter().find_map(|key| schema.get(*key));
        let listed = ["examples", "enum"].iter().find_map(|key| schema.get(*key)?.get(0));
        if let Some(given) = given.or(listed) {
            return self.budget.copy(given);
        }
        let above = [above, &[schema][..]].concat();
        let choices = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array());
        // Beside properties they only say which of these go together.
        if let Some(choices) = choices.filter(|_| schema.get("properties").is_none()) {
            return choices.iter().find_map(|choice| self.at(choice, &above));
        }
        Some(match kind_of(schema) {
            "object" => self.object(schema, &above),
            "array" => {
                let item = self.at(schema.get("items").unwrap_or(&Json::Null), &above);
                Json::Array(item.into_iter().collect())
            }
            kind => self.plain(kind, schema)?,
        })
    }

    /// A value that holds no others. None if the budget is spent.
    fn plain(&self, kind: &str, schema: &Json) -> Option<Json> {
        self.is_made_up.set(true);
        let least = schema.get("minimum").filter(|least| least.is_number());
        let made = match kind {
            "integer" => least.cloned().unwrap_or(json!(1)),
            "number" => least.cloned().unwrap_or(json!(1.5)),
            "boolean" => json!(true),
            "null" => Json::Null,
            _ => json!(text(schema)),
        };
        self.budget.copy(&made)
    }

    fn object(&self, schema: &'a Json, above: &[&'a Json]) -> Json {
        let mut fields = Map::new();
        for part in schema.get("allOf").and_then(Json::as_array).into_iter().flatten() {
            if let Some(Json::Object(more)) = self.at(part, above) {
                fields.extend(more);
            }
        }
        for (name, field) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            if self.document.resolved(field).get("readOnly") == Some(&Json::Bool(true)) {
                continue;
            }
            if let Some(value) = self.at(field, above).filter(|_| self.budget.spend(name.len())) {
                fields.insert(name.clone(), value);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of the schema `A`, whether it is cut, and whether it is made up.
    fn made(schemas: Json) -> (Json, bool, bool) {
        let root = json!({"components": {"schemas": schemas}});
        let document = Document::new(&root);
        let budget = Budget::new(1 << 20);
        let sample = Sample::new(&document, &budget);
        let value = sample.of(&root["components"]["schemas"]["A"]);
        (value, sample.is_cut(), sample.is_made_up())
    }

    fn reference(name: &str) -> Json {
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    #[test]
    fn a_schema_that_holds_itself_ends_there() {
        let parts = json!({"type": "array", "items": reference("B")});
        let fields = json!({"id": {"example": 7}, "parent": reference("A"), "parts": parts});
        let schemas = json!({
            "A": {"type": "object", "properties": fields},
            "B": {"type": "object", "properties": {"whole": reference("A"), "id": {"default": "x"}}},
        });
        assert_eq!(made(schemas), (json!({"id": 7, "parts": [{"id": "x"}]}), true, false));
        let either = json!({"A": {"properties": {"next": {"oneOf": [reference("A"), {"type": "null"}]}}}});
        assert_eq!(made(either).0, json!({"next": null}));
        assert_eq!(made(json!({"A": reference("A")})), (json!("text"), false, true));
    }

    #[test]
    fn what_goes_with_properties_does_not_replace_them() {
        let schema = json!({"properties": {"a": {"const": 1}}, "anyOf": [{"required": ["a"]}]});
        assert_eq!(made(json!({"A": schema})), (json!({"a": 1}), false, false));
    }

    /// A hundred schemas, each of which holds the next one ten times.
    #[test]
    fn many_schemas_end_in_time() {
        let holder = |at: usize| {
            let next = reference(&format!("S{}", at + 1));
            let fields: Map<_, _> = (0..10).map(|field| (format!("f{field}"), next.clone())).collect();
            (format!("S{at}"), json!({"type": "object", "properties": fields}))
        };
        let mut schemas: Map<_, _> = (0..100).map(holder).collect();
        schemas.insert("A".into(), reference("S0"));
        assert!(made(Json::Object(schemas)).1);
    }

    /// A long example that one schema holds many times.
    #[test]
    fn copies_of_one_example_end_with_the_budget() {
        let fields: Map<_, _> = (0..100).map(|field| (format!("f{field}"), reference("Long"))).collect();
        let schemas = json!({"A": {"properties": fields}, "Long": {"example": "x".repeat(100_000)}});
        let root = json!({"components": {"schemas": schemas}});
        let (document, budget) = (Document::new(&root), Budget::new(1_000_000));
        let value = Sample::new(&document, &budget).of(&root["components"]["schemas"]["A"]);
        assert!(budget.is_spent());
        assert_eq!(value.as_object().map(Map::len), Some(9));
    }

    #[test]
    fn texts_are_on_one_line() {
        assert_eq!(text_of(&json!("a\nb")), "ab");
        assert_eq!(text_of(&json!(["a", 1])), "a,1");
        assert_eq!(text_of(&json!({"a": 1})), r#"{"a":1}"#);
        let steering = json!(["\n\u{7f}\u{9b}"]);
        assert_eq!(json_of(&steering), r#"["\n\u007f\u009b"]"#);
        assert_eq!(serde_json::from_str::<Json>(&json_of(&steering)).unwrap(), steering);
    }
}
