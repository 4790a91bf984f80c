//! Manifests against the schemas of the API of Kubernetes.

use serde_json::Value;

/// The schemas, from the OpenAPI specification of Kubernetes 1.31 by way of `kubernetes-validate` (its strict form: nothing that the
/// API does not know), without descriptions.
const SCHEMAS: &str = include_str!("definitions.json");

/// The manifests in a text, each of which the API takes.
pub(crate) fn valid_manifests(text: &str) -> Vec<Value> {
    let manifests: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    for manifest in &manifests {
        let kind = manifest["kind"].as_str().expect("a kind");
        let mut schema: Value = serde_json::from_str(SCHEMAS).expect("JSON");
        schema["$ref"] = format!("#/$defs/{kind}").into();
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let wrong: Vec<_> = validator
            .iter_errors(manifest)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{kind}: {wrong:?}");
    }
    manifests
}
