//! A small reader of markup, strict enough for pages that quote every attribute or use plain words.
#![allow(dead_code, unreachable_pub)]

/// One tag; of a closing one the name begins with `/`.
#[derive(Debug)]
pub struct Tag {
    pub name: String,
    pub attributes: Vec<(String, String)>,
}

impl Tag {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// Every tag of the page, in order. The contents of `style` and `script` are skipped.
pub fn tags(page: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let (inside, after) = split_tag(rest);
        let tag = read(inside);
        rest = after;
        for raw in ["style", "script"] {
            if tag.name == raw {
                let end = rest.find(&format!("</{raw}")).expect("raw text ends");
                rest = &rest[end..];
            }
        }
        tags.push(tag);
    }
    tags
}

/// Splits behind the `>` that ends a tag, not one inside quotes.
fn split_tag(text: &str) -> (&str, &str) {
    let mut quoted = false;
    for (index, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return (&text[..index], &text[index + 1..]),
            _ => {}
        }
    }
    panic!("a tag without end: {}", &text[..text.len().min(80)]);
}

fn read(inside: &str) -> Tag {
    let (name, mut rest) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
    let mut attributes = Vec::new();
    while let Some((name, after)) = rest.trim_start().split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(after) => after.split_once('"').expect("a quoted value ends"),
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        attributes.push((name.to_owned(), value.to_owned()));
        rest = after;
    }
    Tag { name: name.to_lowercase(), attributes }
}
