//! `[[claim]]`: what a publication claims, and what must hold for it.

use analysis::{
    comparison::{Claim, Quantity, Requirement, Trend},
    run::ResourceKind,
};
use load::{
    Problem,
    document::{DeValue, DocumentError, Field, Section, elements_of, number_of, text_of, wrong},
};

use super::Reader;
use crate::definition::USERS_MAX;

/// Kinds of bottleneck that can be published or claimed.
pub(super) const BOTTLENECKS: [(&str, ResourceKind); 16] = [
    ("cpu", ResourceKind::Cpu),
    ("single-thread", ResourceKind::SingleThread),
    ("cpu-quota", ResourceKind::CpuQuota),
    ("disk", ResourceKind::Disk),
    ("network", ResourceKind::Network),
    ("lock", ResourceKind::Lock),
    ("worker-pool", ResourceKind::WorkerPool),
    ("connection-pool", ResourceKind::ConnectionPool),
    ("accept-queue", ResourceKind::AcceptQueue),
    ("file-descriptors", ResourceKind::FileDescriptors),
    ("memory", ResourceKind::Memory),
    ("upstream", ResourceKind::Upstream),
    ("garbage-collection", ResourceKind::GarbageCollection),
    ("rate-limit", ResourceKind::RateLimit),
    ("softirq", ResourceKind::Softirq),
    ("generator", ResourceKind::Generator),
];
const TRENDS: [(&str, Trend); 3] = [("flat", Trend::Flat), ("grows", Trend::Grows), ("falls", Trend::Falls)];
pub(super) const QUANTITIES: [(&str, Quantity); 4] = [
    ("throughput", Quantity::Throughput),
    ("response-time", Quantity::ResponseTime),
    ("cpu-time", Quantity::CpuTime),
    ("received", Quantity::Received),
];
const ONE_REQUIREMENT: &str =
    "what must hold, one of `bottleneck`, `saturates`, `order`, `trend`, `denied` or `proven`";

/// A claim, and its line in the file.
#[derive(Debug)]
pub(super) struct ClaimAt {
    pub(super) claim: Claim,
    pub(super) line: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn claim(self, mut section: Section<'a>) -> Result<ClaimAt, DocumentError> {
        let Some(text) = section.field("text") else {
            return Err(section.missing("text", "what the publication claims"));
        };
        let requirements = [
            self.claimed_bottleneck(&mut section)?,
            section.field("saturates").map(|field| self.saturates(field)).transpose()?,
            section.field("order").map(|field| self.order(field)).transpose()?,
            self.trend(&mut section)?,
            self.flag(&mut section, "denied")?.then_some(Requirement::Denied),
            self.flag(&mut section, "proven")?.then_some(Requirement::Proven),
        ];
        let mut requirements = requirements.into_iter().flatten();
        let (Some(requires), None) = (requirements.next(), requirements.next()) else {
            return Err(section.missing("bottleneck", ONE_REQUIREMENT));
        };
        let claim = Claim {
            text: text_of(self.source, text)?.into(),
            works: self.texts(&mut section, "works")?,
            variants: self.texts(&mut section, "variants")?,
            requires,
            ..Claim::default()
        };
        section.finish()?;
        Ok(ClaimAt { claim, line: self.line(text) })
    }

    fn claimed_bottleneck(self, section: &mut Section<'a>) -> Result<Option<Requirement>, DocumentError> {
        let holder = section.text("holder")?.map(str::to_owned);
        let Some(field) = section.field("bottleneck") else {
            return self.left_out_without(section, &["holder"], "`bottleneck`").map(|()| None);
        };
        let kinds: Vec<ResourceKind> = match field.value {
            DeValue::Array(_) => {
                let each = elements_of(self.source, field)?.into_iter();
                each.map(|kind| self.one_of(kind, &BOTTLENECKS)).collect::<Result<_, _>>()?
            }
            _ => vec![self.one_of(field, &BOTTLENECKS)?],
        };
        let Some((resource, or)) = kinds.split_first() else {
            return Err(wrong(self.source, field, "a kind of bottleneck, or a list of them"));
        };
        Ok(Some(Requirement::Bottleneck { resource: *resource, or: or.to_vec(), holder }))
    }

    fn saturates(self, field: Field<'a>) -> Result<Requirement, DocumentError> {
        let read = |element| number_of(self.source, element, 1..=USERS_MAX);
        let users: Vec<u64> =
            elements_of(self.source, field)?.into_iter().map(read).collect::<Result<_, _>>()?;
        let users: Vec<u32> = users.into_iter().filter_map(|users| u32::try_from(users).ok()).collect();
        match *users.as_slice() {
            [fewest, most] if fewest <= most => Ok(Requirement::Saturates { users: [fewest, most] }),
            _ => Err(wrong(self.source, field, "the fewest and the most users, such as [2, 8]")),
        }
    }

    /// Variants, the fastest first; in a list within the list, those without an order among themselves.
    fn order(self, field: Field<'a>) -> Result<Requirement, DocumentError> {
        let group = |element: Field<'a>| match element.value {
            DeValue::Array(_) => {
                let names = elements_of(self.source, element)?.into_iter();
                names.map(|name| text_of(self.source, name).map(Into::into)).collect()
            }
            _ => text_of(self.source, element).map(|name| vec![name.to_owned()]),
        };
        let variants: Vec<Vec<String>> =
            elements_of(self.source, field)?.into_iter().map(group).collect::<Result<_, _>>()?;
        if variants.len() < 2 {
            return Err(wrong(self.source, field, "a list of two variants or more, the fastest first"));
        }
        Ok(Requirement::Order { variants })
    }

    fn trend(self, section: &mut Section<'a>) -> Result<Option<Requirement>, DocumentError> {
        let of = section.field("of").map(|field| self.one_of(field, &QUANTITIES)).transpose()?;
        let over = section.field("over");
        let over =
            over.map(|field| self.one_of(field, &[("variants", false), ("works", true)])).transpose()?;
        let Some(field) = section.field("trend") else {
            return self.left_out_without(section, &["of", "over"], "`trend`").map(|()| None);
        };
        Ok(Some(Requirement::Trend {
            course: self.one_of(field, &TRENDS)?,
            of: of.unwrap_or(Quantity::Throughput),
            over_works: over.unwrap_or(false),
        }))
    }
}

/// The names of workloads and variants in a claim must be there.
pub(super) fn check(claim: &ClaimAt, works: &[String], variants: &[String]) -> Result<(), Problem> {
    let ordered = match &claim.claim.requires {
        Requirement::Order { variants } => variants.concat(),
        _ => Vec::new(),
    };
    let named = |what: &'static str, names: &[String], known: &[String]| match names
        .iter()
        .find(|name| !known.contains(name))
    {
        Some(name) => Err(Problem::UnknownName { what, name: name.clone(), expected: known.to_vec() }),
        None => Ok(()),
    };
    named("workload", &claim.claim.works, works)?;
    named("variant", &[claim.claim.variants.as_slice(), &ordered].concat(), variants)
}
