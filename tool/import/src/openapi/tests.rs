use proptest::prelude::*;
use serde_json::json;

use super::*;

fn api() -> Json {
    json!({
        "openapi": "3.1.0",
        "servers": [{"url": "https://{host}/v1/", "variables": {"host": {"default": "api.example"}}}],
        "security": [{"token": []}],
        "paths": {
            "/books/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 7}}],
                "get": {"parameters": [
                    {"name": "page", "in": "query", "schema": {}},
                    {"name": "q", "in": "query", "required": true, "example": "a b", "schema": {}}
                ]},
                "delete": {"security": []}
            },
            "/books": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Book"}}}}}},
            "/cover": {"put": {"requestBody": {"required": true, "content": {"image/png": {}}}}}
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Book": {"type": "object", "properties": {
                "id": {"readOnly": true, "type": "integer"}, "title": {"type": "string", "minLength": 6},
                "tags": {"type": "array", "items": {"enum": ["new"]}}, "sequel": {"$ref": "#/components/schemas/Book"}
            }}}
        }
    })
}

#[test]
fn each_operation_is_a_request() {
    let imported = read(&api(), None).unwrap();
    assert_eq!(imported.base.as_deref(), Some("https://api.example/v1"));
    let named = |name: &str| imported.requests.iter().find(|request| request.name == name).unwrap();
    assert_eq!(named("GET /books/{id}").path, "/books/${id}?q=${q}");
    assert_eq!(named("GET /books/{id}").headers, [("Authorization".into(), "Bearer ${auth_token}".into())]);
    assert!(named("DELETE /books/{id}").headers.is_empty());
    assert!(imported.values.contains(&("id".into(), Value::Items(vec!["7".into()]))));
    let Some(Body::Text(body)) = &named("POST /books").body else { panic!("no body") };
    assert!(
        body.contains(r#""title":"textxx""#)
            && body.contains(r#""tags":["new"]"#)
            && !body.contains("\"id\"")
    );
    assert!(
        imported.left_out.contains(&LeftOut::Request { request: "PUT /cover".into(), why: Why::NotJson })
    );
    assert!(imported.left_out.contains(&LeftOut::Changes { requests: 2 }));
    assert!(imported.left_out.contains(&LeftOut::Optional { parameters: 1 }));
}

/// A description with one operation.
fn with_operation(operation: Json) -> Json {
    json!({"openapi": "3.0.3", "paths": {"/a": {"post": operation}}})
}

fn told(imported: &Imported, what: &LeftOut) -> bool {
    imported.left_out.contains(what)
}

fn body_of(imported: &Imported) -> &str {
    match &imported.requests[0].body {
        Some(Body::Text(body)) => body,
        _ => panic!("no body"),
    }
}

#[test]
fn parameters_have_their_examples_and_stand_in_their_places() {
    let operation = json!({"parameters": [
        {"name": "page", "in": "query", "required": true, "examples": {
            "first": {"value": 1}, "later": {"value": 20}, "elsewhere": {"externalValue": "http://h/x"}
        }},
        {"name": "tag", "in": "query", "required": true, "example": ["a", "b"]},
        {"name": "ids", "in": "query", "required": true, "explode": false, "example": [1, 2]},
        {"name": "filter", "in": "query", "required": true, "content": {"application/json": {"example": {"a": 1}}}},
        {"name": "X-Api-Key", "in": "header", "required": true, "example": "s3cret"},
        {"name": "X-Kind", "in": "header", "required": true, "schema": {"enum": ["one"]}},
        {"name": "lang", "in": "cookie", "required": true, "schema": {"default": "de"}},
        {"name": "theme", "in": "cookie"}
    ]});
    let imported = read(&with_operation(operation), None).unwrap();
    let request = &imported.requests[0];
    assert_eq!(request.path, "/a?page=${page}&tag=${tag}&ids=${ids}&filter=${filter}");
    let headers = [("X-Api-Key", "${auth_x_api_key}"), ("X-Kind", "${X-Kind}"), ("Cookie", "lang=${lang}")];
    assert_eq!(request.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let items = |name: &str, texts: &[&str]| {
        let items = Value::Items(texts.iter().map(|&text| text.to_owned()).collect());
        assert!(imported.values.contains(&(name.to_owned(), items)), "{name}: {:?}", imported.values);
    };
    items("page", &["1", "20"]);
    items("tag", &["a", "b"]);
    items("ids", &["1,2"]);
    items("filter", &[r#"{"a":1}"#]);
    items("X-Kind", &["one"]);
    assert!(told(&imported, &LeftOut::Optional { parameters: 1 }));
    assert!(!imported.to_toml("x").contains("s3cret"));
}

#[test]
fn a_path_has_slots_for_what_is_not_described_and_for_the_same_name_twice() {
    let id = |kind: &str| json!({"parameters": [{"name": "id", "in": "path", "schema": {"type": kind}}], "get": {}});
    let api = json!({"openapi": "3.1.0", "servers": [{"url": "/v1"}], "paths": {
        "/a/{id}": id("integer"), "/b/{id}": id("boolean"), "/c/{id}": id("integer"), "/d é/{what}": {"get": {}},
    }});
    let imported = read(&api, None).unwrap();
    let paths: Vec<_> = imported.requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/a/${id}", "/v1/b/${id_2}", "/v1/c/${id}", "/v1/d%20%C3%A9/${what}"]);
    assert_eq!(imported.base, None);
    assert!(told(&imported, &LeftOut::NoServer));
    let based = read(&api, Some("http://h:1/")).unwrap();
    assert_eq!((based.base.as_deref(), based.requests[0].path.as_str()), (Some("http://h:1/v1"), "/a/${id}"));
}

#[test]
fn a_body_is_its_example_or_made_up_from_its_schema() {
    let with_media = |media: Json| {
        let content = json!({"application/json": media});
        read(&with_operation(json!({"requestBody": {"content": content}})), None).unwrap()
    };
    let schema = json!({"properties": {"n": {"type": "integer"}}});
    let example = with_media(json!({"example": {"n": 2, "password": "s3cret"}, "schema": schema}));
    assert_eq!(body_of(&example), r#"{"n":2,"password":"${auth_password}"}"#);
    let several = json!({"a": {"externalValue": "x"}, "b": {"value": [3]}});
    assert_eq!(body_of(&with_media(json!({"examples": several, "schema": schema}))), "[3]");
    let made_up = with_media(json!({"schema": schema}));
    assert_eq!(body_of(&made_up), r#"{"n":1}"#);
    assert!(told(&made_up, &LeftOut::MadeUp { requests: 1 }));
    assert!(!told(&example, &LeftOut::MadeUp { requests: 1 }));
    assert_eq!(body_of(&with_media(json!({"example": "${n}"}))), r#""$${n}""#);
    let optional = with_operation(json!({"requestBody": {"content": {"text/plain": {}}}}));
    let left_out = LeftOut::Body { request: "POST /a".into(), why: Why::NotJson };
    assert!(told(&read(&optional, None).unwrap(), &left_out));
}

#[test]
fn secrets_below_a_name_are_replaced_and_numbers_are_told() {
    let tokens = json!(["s3cret", ["s3cret"], 6]);
    let example = json!({"pin": 1234, "session": {"id": "s3cret", "n": 5}, "tokens": tokens, "a": 7});
    let content = json!({"application/json": {"example": example}});
    let imported = read(&with_operation(json!({"requestBody": {"content": content}})), None).unwrap();
    let expected = json!({
        "pin": 1234, "session": {"id": "${auth_session}", "n": 5},
        "tokens": ["${auth_tokens}", ["${auth_tokens}"], 6], "a": 7,
    });
    assert_eq!(serde_json::from_str::<Json>(body_of(&imported)).unwrap(), expected);
    let is_kept = |what: &&LeftOut| matches!(what, LeftOut::SecretInBody { .. });
    let kept: Vec<_> = imported.left_out.iter().filter(is_kept).cloned().collect();
    let in_body = |name: &str| LeftOut::SecretInBody { request: "POST /a".into(), name: name.into() };
    assert_eq!(kept, ["pin", "session", "tokens"].map(in_body));
}

/// An example of a parameter kept what lies under the names of secrets.
#[test]
fn secrets_in_examples_of_parameters_are_not_kept() {
    let example = json!({"user": {"token": "s3cret"}});
    let one = json!({"application/json": {"example": example}});
    let examples = json!({"a": {"value": example}, "b": {"value": 1}});
    let operation = json!({"parameters": [
        {"name": "filter", "in": "query", "required": true, "content": one},
        {"name": "X-Filter", "in": "header", "required": true, "content": {"application/json": {"examples": examples}}},
        {"name": "of", "in": "query", "required": true, "schema": {"example": [{"session": ["s3cret"]}]}},
        {"name": "with", "in": "query", "required": true, "schema": {"example": {"pin": 12}}},
    ]});
    let imported = read(&with_operation(operation), None).unwrap();
    assert!(!imported.to_toml("x").contains("s3cret"), "{}", imported.to_toml("x"));
    let request = &imported.requests[0];
    let filter = "filter=%7B%22user%22%3A%7B%22token%22%3A%22${auth_token}%22%7D%7D";
    let of = "of=%5B%7B%22session%22%3A%5B%22${auth_session}%22%5D%7D%5D";
    assert_eq!(request.path, format!("/a?{filter}&{of}&with=${{with}}"));
    assert_eq!(request.headers, [("X-Filter".into(), r#"{"user":{"token":"${auth_token}"}}"#.into())]);
    for what in [
        LeftOut::Secret { name: "token".into(), variable: "AUTH_TOKEN".into() },
        LeftOut::Examples { parameter: "X-Filter".into(), others: 1 },
        LeftOut::SecretInParameter { parameter: "with".into(), name: "pin".into() },
    ] {
        assert!(told(&imported, &what), "{what:?}: {:?}", imported.left_out);
    }
}

/// The scenario was then one that nothing reads.
#[test]
fn characters_that_a_scenario_cannot_hold_are_written_otherwise_or_left_out() {
    let parameter =
        json!({"name": "q", "in": "query", "required": true, "content": {"a/b": {"example": "\u{7f}"}}});
    let of = |kind: &str| {
        let body = json!({"content": {kind: {"example": 1}}});
        read(&with_operation(json!({"parameters": [parameter], "requestBody": body})), None).unwrap()
    };
    let imported = of("application/json; a=${b}");
    assert_eq!(imported.requests[0].headers, [("Content-Type".into(), "application/json; a=$${b}".into())]);
    assert!(imported.values.contains(&("q".into(), Value::Items(vec![r#""\u007f""#.into()]))));
    let body = LeftOut::Body { request: "POST /a".into(), why: Why::NotJson };
    assert!(told(&of("application/json\n"), &body));
}

/// A long kind of body that operations share by reference.
#[test]
fn what_operations_share_is_not_copied_for_each_of_them() {
    let kind = format!("application/json; x={}", "x".repeat(1 << 20));
    let body = json!({"$ref": "#/components/requestBodies/Long"});
    let path = |at: usize| (format!("/{at:02}"), json!({"post": {"requestBody": body}}));
    let paths: serde_json::Map<_, _> = (0..20).map(path).collect();
    let long = json!({"content": {kind: {"example": 1}}});
    let api = json!({"openapi": "3.0.0", "paths": paths, "components": {"requestBodies": {"Long": long}}});
    let imported = read(&api, None).unwrap();
    assert_eq!(imported.requests.len(), 15);
    assert!(told(&imported, &LeftOut::Copies { requests: 5 }));
}

/// An example of 5 MiB that a hundred operations share: three bodies fit.
#[test]
fn a_long_example_is_not_copied_for_every_operation() {
    let reference = json!({"$ref": "#/components/examples/Long"});
    let operation = |required: bool| {
        let content = json!({"application/json": {"examples": {"long": reference}}});
        json!({"post": {"requestBody": {"required": required, "content": content}}})
    };
    let paths: serde_json::Map<_, _> =
        (0..100).map(|at| (format!("/{at:03}"), operation(at % 2 == 0))).collect();
    let long = json!({"value": "x".repeat(5 << 20)});
    let api = json!({"openapi": "3.0.0", "paths": paths, "components": {"examples": {"Long": long}}});
    let imported = read(&api, None).unwrap();
    let with_body = imported.requests.iter().filter(|request| request.body.is_some()).count();
    assert_eq!((with_body, imported.requests.len()), (3, 3 + 49));
    let (needed, optional) = ("POST /004".to_owned(), "POST /003".to_owned());
    assert!(told(&imported, &LeftOut::Request { request: needed, why: Why::TooLong }));
    assert!(told(&imported, &LeftOut::Body { request: optional, why: Why::TooLong }));
}

/// A long name of many short texts.
#[test]
fn the_name_of_a_secret_is_not_repeated_without_limit() {
    let name = format!("token{}", "x".repeat(1 << 20));
    let mut example = serde_json::Map::new();
    example.insert(name, json!(vec!["s"; 1_000]));
    let body = json!({"required": true, "content": {"application/json": {"example": example}}});
    let mut api = with_operation(json!({"requestBody": body}));
    api["paths"]["/b"] = json!({"get": {}});
    let imported = read(&api, None).unwrap();
    assert_eq!(imported.requests.len(), 1);
    assert!(told(&imported, &LeftOut::Request { request: "POST /a".into(), why: Why::TooLong }));
}

#[test]
fn references_that_lead_nowhere_or_round_in_a_circle_are_told() {
    let media = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}});
    let mut api = with_operation(json!({
        "parameters": [
            {"$ref": "common.yaml#/Page"}, {"$ref": "#/components/parameters/Gone"},
            {"$ref": "#/components/parameters/Round"}, {"$ref": "#/paths/~1b~1%7Bid%7D/parameters/0"},
        ],
        "requestBody": {"content": media},
    }));
    api["paths"]["/b/{id}"] = json!({"parameters": [
        {"name": "q", "in": "query", "required": true, "schema": {"const": "x"}},
    ]});
    api["components"] = json!({
        "parameters": {"Round": {"$ref": "#/components/parameters/Round"}},
        "schemas": {"Node": {"properties": {
            "name": {"const": "n"}, "next": {"$ref": "#/components/schemas/Node"},
        }}},
    });
    let imported = read(&api, None).unwrap();
    assert_eq!(imported.requests[0].path, "/a?q=${q}");
    assert_eq!(body_of(&imported), r#"{"name":"n"}"#);
    assert!(told(&imported, &LeftOut::Cut { request: "POST /a".into() }));
    let to = ["#/components/parameters/Gone", "#/components/parameters/Round", "common.yaml#/Page"];
    assert!(told(&imported, &LeftOut::References { to: to.map(str::to_owned).into() }));
}

#[test]
fn servers_that_are_not_taken_are_told() {
    let mut api = with_operation(json!({"servers": [{"url": "https://own.example"}]}));
    api["servers"] = json!([{"url": "https://a.example/v1"}, {"url": "https://b.example"}]);
    let imported = read(&api, None).unwrap();
    assert_eq!(imported.base.as_deref(), Some("https://a.example/v1"));
    assert!(told(&imported, &LeftOut::Servers { others: 1 }));
    assert!(told(&imported, &LeftOut::OwnServers { requests: 1 }));
    let based = read(&api, Some("http://h/v2")).unwrap();
    assert_eq!(based.base.as_deref(), Some("http://h/v2"));
    assert!(!told(&based, &LeftOut::Servers { others: 1 }));
}

/// The same description as people write it in YAML, and as programs write it in JSON.
#[cfg(feature = "yaml")]
#[test]
fn yaml_and_json_give_the_same_scenario() {
    let imported = |text: &str| crate::read(text, None).unwrap();
    let (yaml, json) = (imported(include_str!("shop.yaml")), imported(include_str!("shop.json")));
    assert_eq!(yaml, json);
    assert_eq!(yaml.base.as_deref(), Some("https://shop.example/v1"));
    let named = |name: &str| yaml.requests.iter().find(|request| request.name == name).unwrap();
    assert_eq!(named("GET /items/{id}").path, "/items/${id}?lang=${lang}");
    let Some(Body::Text(order)) = &named("POST /orders").body else { panic!("no body") };
    let part = json!({"id": 1, "name": "text"});
    let items = json!([{"id": 1, "name": "text", "parts": part}]);
    let expected = json!({"item": 7, "paid": true, "note": "no", "tax": "007", "items": items});
    assert_eq!(serde_json::from_str::<Json>(order).unwrap(), expected);
}

#[cfg(feature = "yaml")]
#[test]
fn texts_that_describe_no_api_are_told_from_those_with_mistakes() {
    let fault = |text: &str| crate::read(text, None).unwrap_err();
    assert_eq!(fault("hello"), ImportError::Unknown);
    assert_eq!(fault("info:\n  openapi: 3.0.0\n"), ImportError::Unknown);
    assert_eq!(fault("# an old one\nswagger: '2.0'\n"), ImportError::Version);
    assert_eq!(fault("openapi: 3.1\npaths: {}\n"), ImportError::Nothing(""));
    let twice = fault("\n\nopenapi: 3.1.0\ninfo: {}\ninfo: {}\n");
    assert!(matches!(twice, ImportError::Yaml { line: 5, column: 1, .. }), "{twice}");
}

#[test]
fn other_versions_and_empty_ones_are_refused() {
    assert_eq!(read(&json!({"swagger": "2.0"}), None).unwrap_err(), ImportError::Version);
    assert!(matches!(read(&json!({"openapi": "3.0.0"}), None).unwrap_err(), ImportError::Field { .. }));
    let empty = json!({"openapi": "3.0.0", "paths": {}});
    assert_eq!(read(&empty, None).unwrap_err(), ImportError::Nothing(""));
}

proptest! {
    /// Whatever stands in place of a part is read or refused.
    #[test]
    fn a_part_that_is_something_else_is_no_panic(part in 0usize..12, odd in "\\PC{0,8}") {
        let parts = [
            "/servers", "/servers/0/url", "/security", "/security/0", "/paths/~1books~1{id}", "/paths/~1books~1{id}/get",
            "/paths/~1books~1{id}/parameters", "/paths/~1books~1{id}/parameters/0/name", "/paths/~1books/post/requestBody",
            "/components/schemas/Book", "/components/schemas/Book/properties/title/minLength", "/components/securitySchemes/token",
        ];
        for other in [json!(odd), json!(null), json!([odd]), json!({"$ref": "#/components/schemas/Book"}), json!(-1)] {
            let mut api = api();
            *api.pointer_mut(parts[part]).unwrap() = other;
            if let Ok(imported) = read(&api, None) {
                let _ = imported.to_toml("x");
            }
        }
    }
}
