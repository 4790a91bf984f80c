//! Text with patch slots: `/files/f${file}`, where `file` names a value of the scenario.

/// Text parsed into literals and slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Part>,
}

/// One part of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Sent as it stands.
    Literal(Vec<u8>),
    /// Replaced by the value of this index, drawn once per request.
    Slot(usize),
    /// Replaced by a value taken from the list of this index, one per request.
    Taken(usize),
}

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// `${` without a `}`.
    Unclosed,
    /// A slot that names no value of the scenario.
    Unknown(String),
    /// A slot that takes from a list that no request keeps anything in.
    UnknownList(String),
}

/// What slots may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// Values, as `${name}`.
    pub(crate) values: &'a [&'a str],
    /// Lists of kept values, as `${taken:name}`.
    pub(crate) lists: &'a [String],
}

/// What a slot that takes a kept value begins with.
const TAKEN: &str = "taken:";

impl Template {
    /// A template without slots.
    pub(crate) fn literal(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Template { pieces: if bytes.is_empty() { Vec::new() } else { vec![Part::Literal(bytes)] } }
    }

    /// Parses `bytes`; `$${` stands for a literal `${`, and any other `$` for itself.
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

    /// The literal parts.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &[u8]> + '_ {
        self.pieces.iter().filter_map(|part| match part {
            Part::Literal(bytes) => Some(bytes.as_slice()),
            Part::Slot(_) | Part::Taken(_) => None,
        })
    }

    /// The lists it takes from.
    pub(crate) fn takes(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.iter().filter_map(|part| if let Part::Taken(list) = part { Some(*list) } else { None })
    }
}

fn parse_slot<'a>(text: &'a [u8], names: Names<'_>) -> Result<(Part, &'a [u8]), TemplateError> {
    let end = text.iter().position(|b| *b == b'}').ok_or(TemplateError::Unclosed)?;
    let (name, rest) = text.split_at(end);
    let name = String::from_utf8_lossy(name).into_owned();
    let part = match name.strip_prefix(TAKEN) {
        Some(list) => {
            let index = names.lists.iter().position(|known| known == list);
            Part::Taken(index.ok_or_else(|| TemplateError::UnknownList(list.into()))?)
        }
        None => {
            let index = names.values.iter().position(|value| *value == name);
            Part::Slot(index.ok_or(TemplateError::Unknown(name))?)
        }
    };
    Ok((part, rest.get(1..).unwrap_or_default()))
}

fn push_literal(pieces: &mut Vec<Part>, literal: &mut Vec<u8>) {
    if !literal.is_empty() {
        pieces.push(Part::Literal(std::mem::take(literal)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lit(text: &str) -> Part {
        Part::Literal(text.as_bytes().to_vec())
    }

    #[test]
    fn slots_literals_and_escapes() {
        let lists = ["b".to_owned()];
        let names = Names { values: &["a", "b"], lists: &lists };
        let parse = |text: &str| Template::parse(text.as_bytes(), names).map(|t| t.pieces);
        assert_eq!(parse("/x/${taken:b}"), Ok(vec![lit("/x/"), Part::Taken(0)]));
        assert_eq!(parse("${taken:a}"), Err(TemplateError::UnknownList("a".into())));
        assert_eq!(parse("x${a}y${b}"), Ok(vec![lit("x"), Part::Slot(0), lit("y"), Part::Slot(1)]));
        assert_eq!(parse(r#"{"n":"${a}"}"#), Ok(vec![lit(r#"{"n":""#), Part::Slot(0), lit(r#""}"#)]));
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
