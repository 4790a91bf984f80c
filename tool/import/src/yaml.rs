//! YAML as the tree of values that JSON has.
//!
//! Read as YAML 1.2 has it, and as OpenAPI asks: a key such as `200` is a text, and so are `no`, `on` and `007`. Anchors,
//! aliases and merge keys (`<<`) are put in place. The text, the number of its values, how deep they lie, and what aliases
//! stand for have limits.

use serde_json::Value as Json;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, Options, UserMessageFormatter};

use crate::error::ImportError;

/// The longest text that is read, in MiB. The longest descriptions of well-known APIs have 10.
const MIB_MAX: usize = 32;

/// The most values in a description, once its aliases are put in place. The longest of well-known APIs have half a million.
const VALUES_MAX: usize = 2_000_000;

/// The most MiB of all texts in it, likewise.
const TEXTS_MIB_MAX: usize = 64;

/// The most that all aliases together may stand for: the beginnings and ends of lists and mappings, and the values in them.
const ALIASED_MAX: usize = 200_000;

/// How deep values may lie in one another.
const DEPTH_MAX: usize = 64;

/// Reads the only document of a text.
pub(crate) fn parse(text: &str) -> Result<Json, ImportError> {
    if text.len() > MIB_MAX << 20 {
        return Err(ImportError::Long(MIB_MAX));
    }
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| fault(&error))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: VALUES_MAX,
            // Lists and mappings end, and aliases are events too.
            max_events: 3 * VALUES_MAX,
            max_total_scalar_bytes: TEXTS_MIB_MAX << 20,
            max_depth: DEPTH_MAX,
            // One anchor may well be used a hundred times: what that comes to is limited above.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED_MAX },
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        // A piece of the text might show a secret.
        with_snippet: false,
    }
}

fn fault(error: &Error) -> ImportError {
    let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
    ImportError::Yaml { line, column, reason: reason(error).replace(char::is_control, " ") }
}

/// What is wrong, and what to do about it.
fn reason(error: &Error) -> String {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => reason(error),
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_ref().map_or_else(|| "a key".to_owned(), |key| format!("the key `{key}`"));
            format!("{key} is there twice; remove one of them")
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("more than {DEPTH_MAX} levels lie in one another; put inner ones under `components`")
        }
        Error::Budget { .. } => format!(
            "with its aliases (`*`) put in place, this has more than {VALUES_MAX} values or {TEXTS_MIB_MAX} MiB of \
             text; keep only the operations that matter"
        ),
        Error::AliasReplayLimitExceeded { .. } => {
            format!("the aliases (`*`) stand for more than {ALIASED_MAX} values; use `$ref` in place of them")
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias (`*`) lies within what it stands for; use `$ref` in place of it".to_owned()
        }
        Error::UnknownAnchor { .. } => {
            "an alias (`*`) stands for nothing: put the anchor (`&`) of its name before it".to_owned()
        }
        Error::MultipleDocuments { .. } => "a second document begins; give each a file of its own".to_owned(),
        other => format!("not YAML: {}", UserMessageFormatter.format_message(other)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Where a fault is, and what it is.
    fn told(text: &str) -> (u64, u64, String) {
        match parse(text) {
            Err(ImportError::Yaml { line, column, reason }) => (line, column, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_those_of_yaml_1_2() {
        let text = "200: yes\n'on': no\nyes: true\na: [007, 1_000, 0x10, 1.5, ~, 2030-01-31]\n\
            b: |\n  two\n  lines\n";
        let expected = json!({
            "200": "yes", "on": "no", "yes": true, "a": ["007", "1_000", 16, 1.5, null, "2030-01-31"],
            "b": "two\nlines\n",
        });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn aliases_and_merge_keys_are_put_in_place() {
        let text = "base: &base {a: 1, b: 2}\nown:\n  <<: *base\n  b: 3\nsame: *base\n";
        let base = json!({"a": 1, "b": 2});
        let expected = json!({"base": base, "own": {"a": 1, "b": 3}, "same": base});
        assert_eq!(parse(text).unwrap(), expected);
    }

    /// One anchor for hundreds of responses, as descriptions have it.
    #[test]
    fn an_anchor_may_be_used_often() {
        let uses: String = (0..500).map(|at| format!("k{at}: *error\n")).collect();
        let read = parse(&format!("error: &error {{description: no}}\n{uses}")).unwrap();
        assert_eq!(read["k499"], json!({"description": "no"}));
    }

    #[test]
    fn faults_are_told_with_their_place_and_what_to_do() {
        let (line, column, reason) = told("openapi: 3.0.0\npaths: {}\npaths: {}\n");
        assert_eq!((line, column), (3, 1));
        assert!(reason.contains("`paths` is there twice"), "{reason}");
        let (line, _, reason) = told("openapi: 3.0.0\npaths:\n  /a: {get: [}\n");
        assert!(line == 3 && reason.starts_with("not YAML: "), "{line}: {reason}");
        let (line, _, reason) = told("openapi: 3.0.0\nall: *gone\n");
        assert!(line == 2 && reason.contains("stands for nothing"), "{line}: {reason}");
        assert!(told("a: 1\n---\nb: 2\n").2.contains("a second document"));
        assert!(told("a: &a\n  b: *a\n").2.contains("use `$ref`"));
    }

    #[test]
    fn what_would_grow_without_limit_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", ")));
        }
        assert!(told(&bomb).2.contains("more than 200000 values"));
        let text = "x".repeat(1 << 20);
        let aliases = vec!["*a"; 100].join(", ");
        assert!(told(&format!("a: &a {text}\nb: [{aliases}]\n")).2.contains("MiB of text"));
        let deep = format!("a: {}{}\n", "[".repeat(100), "]".repeat(100));
        assert!(told(&deep).2.contains("more than 64 levels"));
        assert_eq!(parse(&" ".repeat((MIB_MAX << 20) + 1)), Err(ImportError::Long(MIB_MAX)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "[-a-c0-2 \n:*&<\\[\\]{}'\"|>!%,?#]{0,60}") {
            if let Err(fault) = parse(&text) {
                prop_assert!(matches!(fault, ImportError::Yaml { line: 1.., column: 1.., .. }), "{fault}");
            }
        }

        /// What JSON can say, YAML reads as the same.
        #[test]
        fn json_is_yaml(number in any::<i64>(), real in -1e9..1e9_f64, text in "[ -~é]{0,20}") {
            let value = json!({"a": [number, real, text, null, true], "{x}": {}});
            prop_assert_eq!(parse(&value.to_string()).unwrap(), value);
        }
    }
}
