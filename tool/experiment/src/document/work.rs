//! `[[work]]` and `[[prepare]]`: loads, and what is done before them.

use load::{
    Connections,
    document::{DeValue, Field, Section, elements_of, number_of, text_of, wrong},
};

use load::document::DocumentError;

use super::Reader;
use crate::definition::{Action, Preparation, ScenarioText, Target, USERS_MAX, Users, Workload};

/// The most requests that a user of a preparing load makes.
const REQUESTS_MAX: u64 = 1_000_000;

impl<'a> Reader<'a> {
    pub(super) fn work(self, mut section: Section<'a>) -> Result<Workload, DocumentError> {
        let users = match section.field("users") {
            Some(field) => self.users(field)?,
            None => return Err(section.missing("users", Users::EXPECTED)),
        };
        if section.field("watch_database").is_none() {
            self.left_out_without(&mut section, &["database_password_file"], "`watch_database`")?;
        }
        let work = Workload {
            name: section.text("name")?.unwrap_or_default().into(),
            target: self.target(&mut section)?,
            users,
            connections: match section.field("connections") {
                None => Connections::Kept,
                Some(field) => {
                    let known =
                        [Connections::Kept, Connections::PerRequest].map(|policy| (policy.name(), policy));
                    self.one_of(field, &known)?
                }
            },
            timeout: section.field("timeout").map(|field| self.duration(field)).transpose()?,
            watch_database: section.text("watch_database")?.unwrap_or_default().into(),
            database_password_file: section.text("database_password_file")?.unwrap_or_default().into(),
            overload: self.flag(&mut section, "overload")?,
            values: section.field("values").map(|field| self.values(field)).transpose()?.unwrap_or_default(),
        };
        section.finish()?;
        Ok(work)
    }

    pub(super) fn preparation(self, mut section: Section<'a>) -> Result<Preparation, DocumentError> {
        let once = self.flag(&mut section, "once")?;
        let action = match section.field("command") {
            Some(field) => Action::Command(self.command(field)?),
            None if section.field("url").is_none() => {
                return Err(section.missing("command", "what to run, or `url`, where a load goes"));
            }
            None => Action::Load {
                target: self.target(&mut section)?,
                users: self.scalar_or(&mut section, "users", "1")?,
                requests: section.number("requests", 1..=REQUESTS_MAX, 1)?,
            },
        };
        section.finish()?;
        Ok(Preparation { action, once })
    }

    /// `url`, `each` and `scenario`.
    fn target(self, section: &mut Section<'a>) -> Result<Target, DocumentError> {
        let Some(url) = section.field("url") else {
            return Err(
                section.missing("url", "where the load goes, such as \"http://${address.web}:${port.web}/\"")
            );
        };
        Ok(Target {
            url: text_of(self.source, url)?.into(),
            each: section.text("each")?.unwrap_or_default().into(),
            scenario: self.scenario(section)?,
            line: self.line(url),
        })
    }

    /// A scenario: a file (`get.toml`), or its text.
    fn scenario(self, section: &mut Section<'a>) -> Result<Option<ScenarioText>, DocumentError> {
        let weights = section.field("weights").map(|field| self.weights(field)).transpose()?;
        let Some(field) = section.field("scenario") else {
            return self.left_out_without(section, &["weights"], "a `scenario`").map(|()| None);
        };
        let text = text_of(self.source, field)?;
        let (path, text) = if text.ends_with(".toml") && !text.contains('\n') {
            self.beside(field, text)?
        } else {
            (self.source.path.to_owned(), text.to_owned())
        };
        Ok(Some(ScenarioText { path, text, weights: weights.unwrap_or_default() }))
    }

    fn weights(self, field: Field<'a>) -> Result<Vec<(String, u32)>, DocumentError> {
        let table = Section::under(self.source, "weights".into(), field)?;
        let weight = |entry: Field<'a>| {
            let number = number_of(self.source, entry, 0..=1_000_000)?;
            Ok((entry.key.to_owned(), u32::try_from(number).unwrap_or(u32::MAX)))
        };
        table.entries().into_iter().map(weight).collect()
    }

    /// A number, a range `[1, 256]`, or an ascending list; each number may also be a text with names.
    fn users(self, field: Field<'a>) -> Result<Users, DocumentError> {
        match field.value {
            DeValue::String(_) => text_of(self.source, field).map(|text| Users::Fixed(text.into())),
            DeValue::Integer(_) => {
                number_of(self.source, field, 1..=USERS_MAX).map(|users| Users::Fixed(users.to_string()))
            }
            _ => self.swept(field),
        }
    }

    fn swept(self, field: Field<'a>) -> Result<Users, DocumentError> {
        let read = |element: Field<'a>| match element.value {
            DeValue::String(_) => text_of(self.source, element).map(str::to_owned),
            _ => number_of(self.source, element, 1..=USERS_MAX).map(|users| users.to_string()),
        };
        let users: Vec<String> =
            elements_of(self.source, field)?.into_iter().map(read).collect::<Result<_, _>>()?;
        // Where a number has names in it, their order is checked once those are filled in.
        let numbers: Result<Vec<u32>, _> = users.iter().map(|text| text.parse()).collect();
        let ascends = numbers.map_or(users.len() > 1, |numbers| Users::range(numbers).is_some());
        if ascends { Ok(Users::Swept(users)) } else { Err(wrong(self.source, field, Users::EXPECTED)) }
    }
}
