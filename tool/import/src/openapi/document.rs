//! A description and the references in it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use serde_json::Value as Json;

/// How many references are followed from one to the next.
const HOPS_MAX: usize = 8;

/// A description.
pub(super) struct Document<'a> {
    root: &'a Json,
    lost: RefCell<BTreeSet<String>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Json) -> Self {
        Document { root, lost: RefCell::default() }
    }

    /// A part at its top.
    pub(super) fn get(&self, name: &str) -> Option<&'a Json> {
        self.root.get(name)
    }

    /// A value, or what its reference stands for. One that leads to another file, to nothing or back to itself is
    /// remembered, and stands for nothing.
    pub(super) fn resolved(&self, value: &'a Json) -> &'a Json {
        let mut found = value;
        for _ in 0..HOPS_MAX {
            let Some(reference) = found.get("$ref").and_then(Json::as_str) else { return found };
            match self.target(reference) {
                Some(target) => found = target,
                None => break,
            }
        }
        if let Some(reference) = value.get("$ref").and_then(Json::as_str) {
            self.lost.borrow_mut().insert(reference.to_owned());
        }
        &Json::Null
    }

    fn target(&self, reference: &str) -> Option<&'a Json> {
        let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }

    /// The references that led to nothing.
    pub(super) fn lost(&self) -> Vec<String> {
        self.lost.borrow().iter().cloned().collect()
    }
}
