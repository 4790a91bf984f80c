//! Text with slots: `/files/f${file}`, where `file` names a value of the scenario.

use serde::{Deserialize, Serialize};

/// Text split into literals and slots.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<TemplatePart>,
}

/// One part of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TemplatePart {
    /// Sent as it is.
    Literal(Vec<u8>),
    /// Replaced by the value with this index, drawn once per request.
    Slot(usize),
    /// Replaced by a captured value, taken once per request from the list with this index.
    Taken(usize),
}

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// `${` without a `}`.
    Unclosed,
    /// A slot that names none of the values of the scenario.
    Unknown(String),
    /// A slot that takes from a list that no request captures into.
    UnknownList(String),
}

/// The names that slots may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// Values, as `${name}`.
    pub(crate) values: &'a [&'a str],
    /// Lists of captured values, as `${taken:name}`.
    pub(crate) lists: &'a [String],
}

/// The prefix of a slot that takes a captured value.
const TAKEN: &str = "taken:";

impl Template {
    /// Makes a template without slots.
    pub(crate) fn literal(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Template { pieces: if bytes.is_empty() { Vec::new() } else { vec![TemplatePart::Literal(bytes)] } }
    }

    /// Parses `bytes`. `$${` stands for a literal `${`, and any other `$` for itself.
    pub(crate) fn parse(bytes: &[u8], names: Names<'_>) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            if let Some(escaped) = rest.strip_prefix(b"$${") {
                literal.extend_from_slice(b"${");
                rest = escaped;
            } else if let Some(slot) = rest.strip_prefix(b"${") {
                let (part, after) = parse_slot(slot, names)?;
                push_literal(&mut pieces, &mut literal);
                pieces.push(part);
                rest = after;
            } else {
                literal.push(first);
                rest = after;
            }
        }
        push_literal(&mut pieces, &mut literal);
        Ok(Template { pieces })
    }

    /// Returns the literal parts.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &[u8]> + '_ {
        self.pieces.iter().filter_map(|part| match part {
            TemplatePart::Literal(bytes) => Some(bytes.as_slice()),
            TemplatePart::Slot(_) | TemplatePart::Taken(_) => None,
        })
    }

    /// Returns the indices of the values that the template draws.
    pub(crate) fn draws(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces
            .iter()
            .filter_map(|part| if let TemplatePart::Slot(value) = part { Some(*value) } else { None })
    }

    /// Returns the indices of the lists that the template takes from.
    pub(crate) fn takes(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces
            .iter()
            .filter_map(|part| if let TemplatePart::Taken(list) = part { Some(*list) } else { None })
    }
}

fn parse_slot<'a>(text: &'a [u8], names: Names<'_>) -> Result<(TemplatePart, &'a [u8]), TemplateError> {
    let end = text.iter().position(|b| *b == b'}').ok_or(TemplateError::Unclosed)?;
    let (name, rest) = text.split_at(end);
    let name = String::from_utf8_lossy(name).into_owned();
    let part = match name.strip_prefix(TAKEN) {
        Some(list) => {
            let index = names.lists.iter().position(|known| known == list);
            TemplatePart::Taken(index.ok_or_else(|| TemplateError::UnknownList(list.into()))?)
        }
        None => {
            let index = names.values.iter().position(|value| *value == name);
            TemplatePart::Slot(index.ok_or(TemplateError::Unknown(name))?)
        }
    };
    Ok((part, rest.get(1..).unwrap_or_default()))
}

fn push_literal(pieces: &mut Vec<TemplatePart>, literal: &mut Vec<u8>) {
    if !literal.is_empty() {
        pieces.push(TemplatePart::Literal(std::mem::take(literal)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lit(text: &str) -> TemplatePart {
        TemplatePart::Literal(text.as_bytes().to_vec())
    }

    #[test]
    fn slots_literals_and_escapes() {
        let lists = ["b".to_owned()];
        let names = Names { values: &["a", "b"], lists: &lists };
        let parse = |text: &str| Template::parse(text.as_bytes(), names).map(|t| t.pieces);
        assert_eq!(parse("/x/${taken:b}"), Ok(vec![lit("/x/"), TemplatePart::Taken(0)]));
        assert_eq!(parse("${taken:a}"), Err(TemplateError::UnknownList("a".into())));
        assert_eq!(
            parse("x${a}y${b}"),
            Ok(vec![lit("x"), TemplatePart::Slot(0), lit("y"), TemplatePart::Slot(1)])
        );
        assert_eq!(parse(r#"{"n":"${a}"}"#), Ok(vec![lit(r#"{"n":""#), TemplatePart::Slot(0), lit(r#""}"#)]));
        assert_eq!(parse("$5 $${a} $"), Ok(vec![lit("$5 ${a} $")]));
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("${a"), Err(TemplateError::Unclosed));
        assert_eq!(parse("${c}"), Err(TemplateError::Unknown("c".into())));
    }

    proptest! {
        #[test]
        fn text_without_a_slot_comes_back_unchanged(text in "[^$]{0,60}") {
            let template = Template::parse(text.as_bytes(), Names { values: &[], lists: &[] }).unwrap();
            prop_assert_eq!(template, Template::literal(text));
        }

        #[test]
        fn any_text_parses_or_fails_without_panic(text in "[${}a-c]{0,20}") {
            let _ = Template::parse(text.as_bytes(), Names { values: &["a"], lists: &[] });
        }
    }
}
