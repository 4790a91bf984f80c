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
