//! `[[published]]`: figures of others, to be shown beside what is measured.

use std::ops::RangeInclusive;

use analysis::comparison::{Published, PublishedFigure, PublishedPoint};
use load::document::{
    DeValue, DocumentError, Field, Problem, Section, elements_of, number_of, text_of, wrong,
};

use super::{
    Reader,
    claim::{BOTTLENECKS, QUANTITIES},
};
use crate::definition::{USERS_MAX, Variant, Workload};

/// The names that a publication may use.
struct Known {
    works: Vec<String>,
    variants: Vec<String>,
}

impl<'a> Reader<'a> {
    /// All publications of an experiment with these workloads and variants.
    pub(super) fn all_published(
        self,
        top: &mut Section<'a>,
        works: &[Workload],
        variants: &[Variant],
    ) -> Result<Vec<Published>, DocumentError> {
        let known = Known {
            works: works.iter().map(|work| work.name.clone()).collect(),
            variants: variants.iter().map(|variant| variant.name.clone()).collect(),
        };
        let fields = top.array("published")?.unwrap_or_default();
        let section = |field| Section::under(self.source, "[[published]]".into(), field);
        fields.into_iter().map(|field| self.published(section(field)?, &known)).collect()
    }

    fn published(self, mut section: Section<'a>, known: &Known) -> Result<Published, DocumentError> {
        let published = Published {
            title: needed(&mut section, "title", "what was measured")?,
            hardware: needed(&mut section, "hardware", "on what it was measured")?,
            unit: needed(&mut section, "unit", "the quantity of the figures, with its unit")?,
            year: self.whole(section.field("year"), 1..=9_999)?,
            work: self.known(section.field("work"), "workload", &known.works)?,
            variant: self.known(section.field("variant"), "variant", &known.variants)?,
            bottleneck: section
                .field("bottleneck")
                .map(|field| self.one_of(field, &BOTTLENECKS))
                .transpose()?,
            users_at_saturation: self.whole(section.field("users_at_saturation"), 1..=USERS_MAX)?,
            of: section.field("of").map(|field| self.one_of(field, &QUANTITIES)).transpose()?,
            smaller_is_better: self.flag(&mut section, "smaller_is_better")?,
            figures: self.each(section.field("figures"), |section| self.figure(section))?,
            points: self.each(section.field("points"), |section| self.point(section))?,
            ..Published::default()
        };
        section.finish()?;
        Ok(published)
    }

    /// A figure, which may be of a variant that is not measured here: publications have more of them.
    fn figure(self, mut section: Section<'a>) -> Result<PublishedFigure, DocumentError> {
        let variant = needed(&mut section, "variant", "the variant that it is of")?;
        let value = self.real(&mut section, "value")?;
        section.finish()?;
        Ok(PublishedFigure { variant, value })
    }

    fn point(self, mut section: Section<'a>) -> Result<PublishedPoint, DocumentError> {
        let users = self.whole(section.field("users"), 1..=USERS_MAX)?;
        let users = users.ok_or_else(|| section.missing("users", "how many users there were"))?;
        let (per_s, ms) = (self.real(&mut section, "per_s")?, self.real(&mut section, "ms")?);
        section.finish()?;
        Ok(PublishedPoint { users, per_s, ms })
    }

    /// The tables of a list, if it is there.
    fn each<T>(
        self,
        field: Option<Field<'a>>,
        read: impl Fn(Section<'a>) -> Result<T, DocumentError>,
    ) -> Result<Vec<T>, DocumentError> {
        let fields = field.map(|field| elements_of(self.source, field)).transpose()?.unwrap_or_default();
        let section = |field: Field<'a>| Section::under(self.source, format!("`{}`", field.key), field);
        fields.into_iter().map(|field| read(section(field)?)).collect()
    }

    /// A name that must be one of these, if it is there.
    fn known(
        self,
        field: Option<Field<'a>>,
        what: &'static str,
        known: &[String],
    ) -> Result<Option<String>, DocumentError> {
        let Some(field) = field else { return Ok(None) };
        let name = text_of(self.source, field)?.to_owned();
        if known.contains(&name) {
            return Ok(Some(name));
        }
        let problem = Problem::UnknownName { what, name, expected: known.to_vec() };
        Err(self.source.error(field.offset, problem))
    }

    fn whole(
        self,
        field: Option<Field<'a>>,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u32>, DocumentError> {
        let number = field.map(|field| number_of(self.source, field, range)).transpose()?;
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    }

    /// A number, whole or not, that must be there.
    fn real(self, section: &mut Section<'a>, key: &'static str) -> Result<f64, DocumentError> {
        let Some(field) = section.field(key) else { return Err(section.missing(key, "a number")) };
        let number = match field.value {
            DeValue::Integer(number) => number.to_string().parse().ok(),
            DeValue::Float(number) => number.to_string().parse().ok(),
            _ => None,
        };
        number.filter(|number: &f64| number.is_finite()).ok_or_else(|| wrong(self.source, field, "a number"))
    }
}

/// A text that must be there, and what it means.
fn needed(
    section: &mut Section<'_>,
    key: &'static str,
    expected: &'static str,
) -> Result<String, DocumentError> {
    section.text(key)?.map(str::to_owned).ok_or_else(|| section.missing(key, expected))
}
