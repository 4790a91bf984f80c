//! Texts with places to fill in: `${port.web}`. `$${` stands for a literal `${`.

use std::collections::BTreeMap;

/// How often a value may name another that names another: further means that they name each other.
const DEPTH_MAX: u32 = 8;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text, put where the name stands.
    Text(String),
    /// Several words. Only a word of a command that is nothing but the name takes them: each becomes a word.
    List(Vec<String>),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

/// Names and what they stand for.
pub type Values = BTreeMap<String, Value>;

/// A text that cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A name that nothing defines.
    #[error("unknown name `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A `${` that is never closed.
    #[error("`${{` without a `}}`; write `$${{` for a literal `${{`")]
    Unclosed,
    /// Several words where one text is wanted.
    #[error("`${{{name}}}` stands for several words; give it as a word of its own in a command")]
    Several {
        /// The name.
        name: String,
    },
    /// Values that name each other.
    #[error("`${{{name}}}` stands for itself")]
    Circular {
        /// The name.
        name: String,
    },
}

/// What to do with a name that nothing defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undefined {
    Refuse,
    /// Leave it as it stands: it is for whoever reads the text next.
    Leave,
}

/// Fills in a text.
///
/// # Errors
/// A name that `values` does not define.
pub fn fill(text: &str, values: &Values) -> Result<String, TemplateError> {
    filled(text, values, Undefined::Refuse, 0)
}

/// Fills in a text whose other names are for whoever reads it next, such as a scenario with values of its own.
///
/// # Errors
/// What is wrong with the text or with a value.
pub fn fill_known(text: &str, values: &Values) -> Result<String, TemplateError> {
    filled(text, values, Undefined::Leave, 0)
}

/// Fills in the words of a command.
///
/// # Errors
/// A name that `values` does not define.
pub fn fill_words(words: &[String], values: &Values) -> Result<Vec<String>, TemplateError> {
    filled_words(words, values, 0)
}

fn filled_words(words: &[String], values: &Values, depth: u32) -> Result<Vec<String>, TemplateError> {
    let mut all = Vec::new();
    for word in words {
        match only_name(word).and_then(|name| Some((name, values.get(name)?))) {
            Some((name, Value::List(_))) if depth == DEPTH_MAX => {
                return Err(TemplateError::Circular { name: name.into() });
            }
            Some((_, Value::List(list))) => all.extend(filled_words(list, values, depth + 1)?),
            _ => all.push(fill(word, values)?),
        }
    }
    Ok(all)
}

/// The name, if the word is nothing but one.
fn only_name(word: &str) -> Option<&str> {
    let name = word.strip_prefix("${")?.strip_suffix('}')?;
    (!name.contains(['$', '{', '}'])).then_some(name)
}

fn filled(text: &str, values: &Values, undefined: Undefined, depth: u32) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece? {
            Piece::Text(plain) => out.push_str(plain),
            Piece::Escape if undefined == Undefined::Leave => out.push_str("$${"),
            Piece::Escape => out.push_str("${"),
            Piece::Name(name) => match values.get(name) {
                Some(_) if depth == DEPTH_MAX => return Err(TemplateError::Circular { name: name.into() }),
                Some(Value::Text(value)) => {
                    out.push_str(&filled(value, values, Undefined::Refuse, depth + 1)?)
                }
                Some(Value::List(_)) => return Err(TemplateError::Several { name: name.into() }),
                None if undefined == Undefined::Leave => {
                    out.push_str("${");
                    out.push_str(name);
                    out.push('}');
                }
                None => return Err(TemplateError::Unknown { name: name.into() }),
            },
        }
    }
    Ok(out)
}

/// The names that a file holds, each with its line, from 1.
pub fn named_lines(text: &str) -> Vec<(String, usize)> {
    let numbered = text.lines().zip(1..);
    numbered.flat_map(|(line, number)| names(line).map(move |name| (name.to_owned(), number))).collect()
}

/// The names that a text holds; none of one that cannot be read.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| match piece {
        Ok(Piece::Name(name)) => Some(name),
        _ => None,
    })
}

enum Piece<'a> {
    Text(&'a str),
    /// `$${`
    Escape,
    Name(&'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = Result<Piece<'_>, TemplateError>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(after) = rest.strip_prefix("$${") {
            rest = after;
            return Some(Ok(Piece::Escape));
        }
        if let Some(after) = rest.strip_prefix("${") {
            let Some((name, after)) = after.split_once('}') else {
                rest = "";
                return Some(Err(TemplateError::Unclosed));
            };
            rest = after;
            return Some(Ok(Piece::Name(name)));
        }
        // The first character may be a `$` that begins nothing.
        let end = rest
            .char_indices()
            .skip(1)
            .map(|(at, _)| at)
            .find(|at| is_special(&rest[*at..]))
            .unwrap_or(rest.len());
        let (plain, after) = rest.split_at(end);
        rest = after;
        Some(Ok(Piece::Text(plain)))
    })
}

fn is_special(rest: &str) -> bool {
    rest.starts_with("${") || rest.starts_with("$${")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> Values {
        let list = Value::List(vec!["--workers".into(), "${workers}".into()]);
        let texts = [("workers", "4"), ("root", "/data/${workers}"), ("a", "${b}"), ("b", "${a}")];
        let texts = texts.map(|(name, text)| (name.to_owned(), Value::from(text)));
        texts.into_iter().chain([("flags".to_owned(), list)]).collect()
    }

    #[test]
    fn names_are_filled_in_also_within_values() {
        assert_eq!(fill("--root=${root} $HOME $${x}", &values()).as_deref(), Ok("--root=/data/4 $HOME ${x}"));
    }

    #[test]
    fn a_list_becomes_words_of_a_command() {
        let words = ["serve", "${flags}", "-n${workers}"].map(str::to_owned);
        let filled = fill_words(&words, &values()).expect("words");
        assert_eq!(filled, ["serve", "--workers", "4", "-n4"]);
        assert!(matches!(fill("x${flags}", &values()), Err(TemplateError::Several { .. })));
    }

    #[test]
    fn what_cannot_be_filled_in_is_told() {
        assert_eq!(fill("${wrkers}", &values()), Err(TemplateError::Unknown { name: "wrkers".into() }));
        assert_eq!(fill("${workers", &values()), Err(TemplateError::Unclosed));
        assert!(matches!(fill("${a}", &values()), Err(TemplateError::Circular { .. })));
        let itself = [("a".to_owned(), Value::List(vec!["${a}".into()]))].into_iter().collect();
        assert!(matches!(fill_words(&["${a}".into()], &itself), Err(TemplateError::Circular { .. })));
    }

    #[test]
    fn names_of_a_scenario_are_left_to_it() {
        let text = "path = \"/${file}?w=${workers}\" # $${";
        assert_eq!(fill_known(text, &values()).as_deref(), Ok("path = \"/${file}?w=4\" # $${"));
    }

    proptest! {
        /// Nothing panics, and a text without `${` stays as it is.
        #[test]
        fn any_text_is_read(text in "[a-z${}é ]{0,40}") {
            let found = fill_known(&text, &Values::new());
            if !text.contains("${") {
                prop_assert_eq!(found, Ok(text));
            }
        }
    }
}
