//! `[[process]]`: a program that runs while the experiment measures.

use load::document::{DeValue, Field, Section, elements_of, text_of, wrong};

use load::document::DocumentError;

use super::Reader;
use crate::definition::{Process, Processors, Ready, StopSignal, Variable};

/// How long a program may take to get ready, unless its section says otherwise.
const READY_WITHIN: std::time::Duration = std::time::Duration::from_secs(20);
/// How long a program may take to stop.
const STOP_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

impl<'a> Reader<'a> {
    pub(super) fn process(self, mut section: Section<'a>) -> Result<Process, DocumentError> {
        let Some(name) = section.field("name") else {
            return Err(section.missing("name", "what it is called in messages and in ${address.NAME}"));
        };
        let ports = self.texts(&mut section, "ports")?;
        let process = Process {
            name: self.identifier(name)?,
            command: self.needed_command(&mut section)?,
            join: self.texts(&mut section, "join")?,
            before: section
                .array("before")?
                .unwrap_or_default()
                .into_iter()
                .map(|field| self.command(field))
                .collect::<Result<_, _>>()?,
            environment: self.environment(&mut section)?,
            ready: self.ready(&mut section, &ports)?,
            ports,
            ready_within: self.time_or(&mut section, "ready_within", READY_WITHIN)?,
            when: self.when(&mut section)?,
            count: self.scalar_or(&mut section, "count", "1")?,
            processors: self.processors(&mut section)?,
            memory: self.scalar_or(&mut section, "memory", "")?,
            disk_iops: self.scalar_or(&mut section, "disk_iops", "")?,
            disk_mb_per_s: self.scalar_or(&mut section, "disk_mb_per_s", "")?,
            link_mbit: self.scalar_or(&mut section, "link_mbit", "")?,
            stop: match section.field("stop") {
                None => StopSignal::Term,
                Some(field) => self.one_of(
                    field,
                    &[("TERM", StopSignal::Term), ("INT", StopSignal::Int), ("QUIT", StopSignal::Quit)],
                )?,
            },
            stop_within: self.time_or(&mut section, "stop_within", STOP_WITHIN)?,
        };
        section.finish()?;
        Ok(process)
    }

    /// A name that can stand within another: letters, digits, `-` and `_`.
    fn identifier(self, field: Field<'a>) -> Result<String, DocumentError> {
        let text = text_of(self.source, field)?;
        let fits =
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if fits {
            Ok(text.into())
        } else {
            Err(wrong(self.source, field, "a name of letters, digits, `-` and `_`"))
        }
    }

    fn environment(self, section: &mut Section<'a>) -> Result<Vec<Variable>, DocumentError> {
        let Some(field) = section.field("environment") else { return Ok(Vec::new()) };
        let table = Section::under(self.source, "environment".into(), field)?;
        let variable = |entry: Field<'a>| {
            let (name, text) = (entry.key.to_owned(), self.scalar(entry)?);
            Ok(Variable { name, text, line: self.line(entry) })
        };
        table.entries().into_iter().map(variable).collect()
    }

    /// `"systems"`, `"all"`, how many, or a list of their numbers.
    fn processors(self, section: &mut Section<'a>) -> Result<Processors, DocumentError> {
        match section.field("processors") {
            None => Ok(Processors::Some("systems".into())),
            Some(field) if matches!(field.value, DeValue::Array(_)) => {
                let numbers = elements_of(self.source, field)?.into_iter().map(|number| self.scalar(number));
                let numbers: Vec<String> = numbers.collect::<Result<_, _>>()?;
                if numbers.is_empty() {
                    return Err(wrong(
                        self.source,
                        field,
                        "a list of at least one processor, such as [0, 2]",
                    ));
                }
                Ok(Processors::These(numbers))
            }
            Some(field) => self.scalar(field).map(Processors::Some),
        }
    }

    /// `ready = { line = ".." }`, `{ port = ".." }` or `{ http = ".." }`; by default its first port, if it has one.
    fn ready(self, section: &mut Section<'a>, ports: &[String]) -> Result<Ready, DocumentError> {
        let Some(field) = section.field("ready") else {
            return Ok(ports.first().map_or(Ready::Started, |port| Ready::Port(port.clone())));
        };
        let mut table = Section::under(self.source, "ready".into(), field)?;
        let found = (table.text("line")?, table.text("port")?, table.text("http")?);
        table.finish()?;
        match found {
            (Some(line), None, None) if !line.is_empty() => Ok(Ready::Line(line.into())),
            (None, Some(port), None) if ports.iter().any(|known| known == port) => {
                Ok(Ready::Port(port.into()))
            }
            (None, None, Some(url)) => Ok(Ready::Http(url.into())),
            _ => Err(wrong(
                self.source,
                field,
                "one of { line = \"what it prints\" }, { port = \"one of its ports\" } and { http = \"a URL that it answers\" }",
            )),
        }
    }

    /// `when = { index = "central" }`, or a list of what the value may be.
    fn when(self, section: &mut Section<'a>) -> Result<Vec<(String, Vec<String>)>, DocumentError> {
        let Some(field) = section.field("when") else { return Ok(Vec::new()) };
        let table = Section::under(self.source, "when".into(), field)?;
        let allowed = |entry: Field<'a>| {
            let values = match entry.value {
                DeValue::Array(_) => elements_of(self.source, entry)?,
                _ => vec![entry],
            };
            let values = values.into_iter().map(|value| self.scalar(value)).collect::<Result<_, _>>()?;
            Ok((entry.key.to_owned(), values))
        };
        table.entries().into_iter().map(allowed).collect()
    }

    pub(super) fn scalar_or(
        self,
        section: &mut Section<'a>,
        key: &'static str,
        otherwise: &str,
    ) -> Result<String, DocumentError> {
        section.field(key).map_or_else(|| Ok(otherwise.to_owned()), |field| self.scalar(field))
    }

    fn time_or(
        self,
        section: &mut Section<'a>,
        key: &'static str,
        otherwise: std::time::Duration,
    ) -> Result<std::time::Duration, DocumentError> {
        section.field(key).map_or(Ok(otherwise), |field| self.duration(field))
    }
}
