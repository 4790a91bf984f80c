//! Experiment files: TOML in, a checked [`Experiment`] out.

mod check;
mod claim;
mod process;
mod published;
mod work;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use analysis::comparison::{Claim, ROUNDS_MIN};
use load::document::{
    DeTable, DeValue, DocumentError, Field, Problem, Section, SourceText, elements_of, text_of, wrong,
};

use claim::ClaimAt;

use crate::{
    definition::{Command, Confirm, Data, Elsewhere, Experiment, PageCache, Proving, TextFile, Variant},
    names::slug,
    resolve::is_inner,
    template::{self, Value, Values},
};

/// How long a comparison may take unless its file says otherwise.
const COMPARISON_TIME: Duration = Duration::from_secs(300);
/// The longest time that anything may be given.
const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);
/// The most variants that axes may make together: a typo must not run for days.
const VARIANTS_MAX: usize = 1_000;

/// What a single [[variant]], or none, must be instead.
const ONE_VARIANT: &str = "one of two sections or more: a variant alone is compared with nothing";

/// What the file as a whole is called in messages.
const WHOLE: &str = "the experiment";
/// Its keys that are no sections.
const KEYS: [&str; 10] = [
    "title",
    "time",
    "rounds",
    "baseline",
    "page_cache",
    "confirm",
    "generators",
    "observe",
    "varied",
    "room",
];

/// What varies, and the variants that this makes.
struct Factors {
    axis: String,
    combines: bool,
    variants: Vec<Variant>,
}

/// Finds the files that an experiment names.
pub trait Library {
    /// The text of the file at this path.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &Path) -> std::io::Result<String>;
}

/// Files on the disk.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

impl Library for Disk {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        fs::read_to_string(path)
    }
}

/// Reads and checks the text of an experiment. Files that it names lie beside `path`.
///
/// # Errors
/// Names file and line, says what was expected there, and suggests the nearest name for an unknown one.
pub fn read(path: &Path, text: &str, library: &dyn Library) -> Result<Experiment, DocumentError> {
    read_with(path, text, library, &[])
}

/// The same, with values in place of those that the experiment gives these names.
///
/// # Errors
/// The same; and a name that is no value of the experiment, or that it varies.
pub fn read_with(
    path: &Path,
    text: &str,
    library: &dyn Library,
    set: &[(String, String)],
) -> Result<Experiment, DocumentError> {
    let source = SourceText { path, text };
    let document = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        source.error(offset, Problem::Syntax(error.message().into()))
    })?;
    let mut experiment = Reader { source, library }.experiment(document.get_ref()).map_err(misplaced)?;
    for (name, value) in set {
        check::check_settable(&experiment, name)?;
        experiment.values.insert(name.clone(), Value::Text(value.clone()));
    }
    check::check(&experiment)?;
    Ok(experiment)
}

/// What is typed below the sections belongs to the last of them, whatever it was meant for.
fn misplaced(error: DocumentError) -> DocumentError {
    match error.problem {
        Problem::UnknownKey { key, section, .. } if section != WHOLE && KEYS.contains(&key.as_str()) => {
            DocumentError { problem: Problem::Misplaced { key, section }, ..error }
        }
        _ => error,
    }
}

/// Reads one file.
#[derive(Clone, Copy)]
struct Reader<'a> {
    source: SourceText<'a>,
    library: &'a dyn Library,
}

impl<'a> Reader<'a> {
    fn experiment(self, document: &'a DeTable<'a>) -> Result<Experiment, DocumentError> {
        let mut top = Section::new(self.source, WHOLE.into(), 0, document);
        let title = top.text("title")?.map(str::to_owned);
        let title = title.ok_or_else(|| top.missing("title", "what it shows, in one line"))?;
        let values = top.field("values").map(|field| self.values(field)).transpose()?.unwrap_or_default();
        let Factors { axis, combines, variants } = self.variants(&mut top)?;
        let processes = self.sections(&mut top, "process", Self::process)?;
        let works = self.sections(&mut top, "work", Self::work)?;
        if works.is_empty() {
            return Err(top.missing("work", "at least one [[work]]: what to drive, and how many users"));
        }
        if let (Some(axis), [_], [_]) = (top.field("axis"), variants.as_slice(), works.as_slice()) {
            let expected = "a table with a list of two values or more: one alone is compared with nothing, and goes into [values]";
            return Err(wrong(self.source, axis, expected));
        }
        self.check_names(&mut top, "work", works.iter().map(|work| work.name.as_str()), works.len() > 1)?;
        let time = top.field("time").map(|field| self.duration(field)).transpose()?;
        let rounds = self.rounds(&mut top, !axis.is_empty())?;
        let claims = self.sections(&mut top, "claim", Self::claim)?;
        let baseline = top.field("baseline").map(|field| self.baseline(field, &variants)).transpose()?;
        let published = self.all_published(&mut top, &works, &variants)?;
        let mut experiment = Experiment {
            title,
            time: time.or((!axis.is_empty()).then_some(COMPARISON_TIME)),
            axis,
            combines,
            variants,
            values,
            texts: self.sections(&mut top, "text", Self::text_file)?,
            data: self.sections(&mut top, "data", Self::data)?,
            room: self.scalar_or(&mut top, "room", "")?,
            processes,
            prepare: self.sections(&mut top, "prepare", Self::preparation)?,
            reset: self.commands(&mut top, "reset")?,
            prove: top.field("prove").map(|field| self.prove(field)).transpose()?,
            works,
            page_cache: match top.field("page_cache") {
                None => PageCache::Warm,
                Some(field) => self.one_of(field, &[("warm", PageCache::Warm), ("cold", PageCache::Cold)])?,
            },
            generators: self.elsewhere(&mut top, "generators")?,
            observe: self.elsewhere(&mut top, "observe")?,
            confirm: self.confirm(&mut top)?,
            rounds,
            baseline,
            published,
            claims: Vec::new(),
            file: self.source.path.into(),
            lines: self.lines_of_values(document),
            names: template::named_lines(self.source.text),
        };
        top.finish()?;
        experiment.claims = self.checked_claims(claims, &experiment)?;
        Ok(experiment)
    }

    /// The variant that all others are compared with.
    fn baseline(self, field: Field<'a>, variants: &[Variant]) -> Result<String, DocumentError> {
        let name = self.scalar(field)?;
        if variants.iter().any(|variant| variant.name == name) {
            return Ok(name);
        }
        if let [_] = variants {
            return Err(wrong(self.source, field, "left out where nothing varies"));
        }
        let expected = variants.iter().map(|variant| variant.name.clone()).collect();
        Err(self.source.error(field.offset, Problem::UnknownName { what: "variant", name, expected }))
    }

    /// The lines in which values are defined, by name; the first where there are several.
    fn lines_of_values(self, document: &DeTable<'a>) -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        let mut note = |table: &DeTable<'a>| {
            for name in table.keys() {
                lines
                    .entry(name.get_ref().to_string())
                    .or_insert_with(|| self.source.line(name.span().start));
            }
        };
        for key in ["values", "axis"] {
            if let Some(DeValue::Table(table)) = document.get(key).map(|value| value.get_ref()) {
                note(table);
            }
        }
        for key in ["variant", "work"] {
            let Some(DeValue::Array(sections)) = document.get(key).map(|value| value.get_ref()) else {
                continue;
            };
            for section in sections.iter() {
                let values = section.get_ref().as_table().and_then(|section| section.get("values"));
                if let Some(DeValue::Table(table)) = values.map(|value| value.get_ref()) {
                    note(table);
                }
            }
        }
        lines
    }

    /// How often each variant is measured. What varies nothing is measured once: rounds are there to compare by.
    /// With fewer rounds than it is given by default no order is claimed.
    fn rounds(self, top: &mut Section<'a>, compares: bool) -> Result<u32, DocumentError> {
        if compares {
            return Ok(top.number("rounds", 1..=1_000, ROUNDS_MIN as u64)? as u32);
        }
        match top.field("rounds") {
            None => Ok(1),
            Some(field) => {
                Err(wrong(self.source, field, "left out where there is no [axis] and no [[variant]]"))
            }
        }
    }

    /// The tables of `[[key]]`.
    fn sections<T>(
        self,
        top: &mut Section<'a>,
        key: &'static str,
        read: fn(Self, Section<'a>) -> Result<T, DocumentError>,
    ) -> Result<Vec<T>, DocumentError> {
        let fields = top.array(key)?.unwrap_or_default();
        let section = |field| Section::under(self.source, format!("[[{key}]]"), field);
        fields.into_iter().map(|field| read(self, section(field)?)).collect()
    }

    /// Named values: texts, numbers, or lists of texts.
    fn values(self, field: Field<'a>) -> Result<Values, DocumentError> {
        let section = Section::under(self.source, format!("[{}]", field.key), field)?;
        let entry = |entry: Field<'a>| Ok((entry.key.to_owned(), self.value(entry)?));
        section.entries().into_iter().map(entry).collect()
    }

    fn value(self, field: Field<'a>) -> Result<Value, DocumentError> {
        match field.value {
            DeValue::Array(_) => {
                let words = elements_of(self.source, field)?.into_iter().map(|word| self.scalar(word));
                Ok(Value::List(words.collect::<Result<_, _>>()?))
            }
            _ => self.scalar(field).map(Value::Text),
        }
    }

    /// A text, or a number or truth value as it is written.
    fn scalar(self, field: Field<'a>) -> Result<String, DocumentError> {
        match field.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(number) => Ok(number.to_string()),
            DeValue::Float(number) => Ok(number.to_string()),
            DeValue::Boolean(truth) => Ok(truth.to_string()),
            _ => Err(wrong(self.source, field, "a text in quotes, or a number")),
        }
    }

    /// What varies: `[axis]`, every combination of whose lists is a variant, or `[[variant]]` one by one.
    fn variants(self, top: &mut Section<'a>) -> Result<Factors, DocumentError> {
        let (axis, named, varied) = (top.field("axis"), top.array("variant")?, top.text("varied")?);
        if let (None, Some(field)) = (&named, top.field("varied")) {
            return Err(wrong(self.source, field, "left out where there are no [[variant]] sections"));
        }
        match (axis, named) {
            (None, None) => Ok(Factors {
                axis: String::new(),
                combines: false,
                variants: vec![Variant { name: String::new(), values: Values::new() }],
            }),
            (Some(axis), None) => self.combinations(axis),
            (None, Some(fields)) => self.named_variants(fields, varied),
            (Some(axis), Some(_)) => {
                Err(wrong(self.source, axis, "left out where there are [[variant]] sections"))
            }
        }
    }

    fn combinations(self, axis: Field<'a>) -> Result<Factors, DocumentError> {
        let section = Section::under(self.source, "[axis]".into(), axis)?;
        let mut variants = vec![Variant { name: String::new(), values: Values::new() }];
        let mut names = Vec::new();
        let mut entries = section.entries();
        // In the order of the file.
        entries.sort_by_key(|entry| entry.offset);
        let lists = entries.iter().map(|entry| Ok((*entry, elements_of(self.source, *entry)?)));
        let lists: Vec<(Field<'a>, Vec<Field<'a>>)> = lists.collect::<Result<_, DocumentError>>()?;
        let varies = lists.iter().any(|(_, values)| values.len() > 1);
        for (entry, values) in lists {
            if values.is_empty() {
                return Err(wrong(self.source, entry, "a list of at least one value, such as [1, 2, 4]"));
            }
            // Beside others that vary, a single value is the same for all variants, and no part of their names.
            let told = values.len() > 1 || !varies;
            if told {
                names.push(entry.key);
            }
            let mut next = Vec::new();
            for variant in &variants {
                for value in &values {
                    let text = self.scalar(*value)?;
                    next.push(extended(variant, entry.key, text, told));
                }
            }
            if next.len() > VARIANTS_MAX {
                return Err(wrong(
                    self.source,
                    entry,
                    format!("short enough for at most {VARIANTS_MAX} variants in all"),
                ));
            }
            variants = next;
        }
        if names.is_empty() {
            return Err(wrong(self.source, axis, "a table of lists, such as workers = [1, 2, 4]"));
        }
        self.check_variants(axis, &variants)?;
        Ok(Factors { axis: names.join(", "), combines: names.len() > 1, variants })
    }

    /// `[[variant]]` sections; `varied` says in a word what differs between them.
    fn named_variants(self, fields: Vec<Field<'a>>, varied: Option<&str>) -> Result<Factors, DocumentError> {
        let Some(first) = fields.first().copied() else {
            return Err(self
                .source
                .error(0, Problem::Value { key: "variant".into(), expected: ONE_VARIANT.into() }));
        };
        let mut variants = Vec::new();
        for field in &fields {
            let mut section = Section::under(self.source, "[[variant]]".into(), *field)?;
            let Some(name) = section.text("name")? else {
                return Err(section.missing("name", "what tells it from the others"));
            };
            let values =
                section.field("values").map(|field| self.values(field)).transpose()?.unwrap_or_default();
            section.finish()?;
            variants.push(Variant { name: name.into(), values });
        }
        if variants.len() < 2 {
            return Err(wrong(self.source, first, ONE_VARIANT));
        }
        self.check_variants(first, &variants)?;
        Ok(Factors { axis: varied.unwrap_or("variant").into(), combines: false, variants })
    }

    /// Names of variants must differ as file names too, which are made of them.
    fn check_variants(self, field: Field<'a>, variants: &[Variant]) -> Result<(), DocumentError> {
        match twice(variants.iter().map(|variant| variant.name.as_str())) {
            None => Ok(()),
            Some(name) => Err(wrong(
                self.source,
                field,
                format!(
                    "made of different names: {name} is there twice, or two differ only in punctuation or capitals"
                ),
            )),
        }
    }

    fn check_names<'n>(
        self,
        top: &mut Section<'a>,
        key: &'static str,
        names: impl Iterator<Item = &'n str> + Clone,
        needed: bool,
    ) -> Result<(), DocumentError> {
        let Some(field) = top.field(key) else { return Ok(()) };
        if needed && names.clone().any(|name| slug(name).is_empty()) {
            return Err(wrong(
                self.source,
                field,
                "sections with a `name` each, with letters a to z or digits in it, to tell them apart",
            ));
        }
        match twice(names) {
            None => Ok(()),
            Some(name) => Err(wrong(
                self.source,
                field,
                format!(
                    "sections with different names: {name} is there twice, or two differ only in punctuation or capitals"
                ),
            )),
        }
    }

    fn text_file(self, mut section: Section<'a>) -> Result<TextFile, DocumentError> {
        let Some(field) = section.field("text") else {
            return Err(section.missing("text", "what is in the file"));
        };
        let text = text_of(self.source, field)?.into();
        let path = self.inner_path(&mut section, "path")?;
        section.finish()?;
        Ok(TextFile { path, text, line: self.line(field) })
    }

    fn data(self, mut section: Section<'a>) -> Result<Data, DocumentError> {
        let Some(field) = section.field("files") else {
            return Err(section.missing("files", "how many files to make"));
        };
        let data = Data {
            files: self.scalar(field)?,
            folder: self.inner_path(&mut section, "folder")?,
            size: match section.field("size") {
                Some(field) => self.scalar(field)?,
                None => return Err(section.missing("size", "the size of each, such as \"100 KB\"")),
            },
            of: section.text("of")?.unwrap_or_default().into(),
            line: self.line(field),
        };
        section.finish()?;
        Ok(data)
    }

    /// A relative path without a way out of the experiment's folder.
    fn inner_path(self, section: &mut Section<'a>, key: &'static str) -> Result<String, DocumentError> {
        let expected = "a path within the experiment's folder, such as \"files\"";
        let Some(field) = section.field(key) else { return Err(section.missing(key, expected)) };
        let text = text_of(self.source, field)?;
        if is_inner(Path::new(text)) { Ok(text.into()) } else { Err(wrong(self.source, field, expected)) }
    }

    fn prove(self, field: Field<'a>) -> Result<Proving, DocumentError> {
        let mut section = Section::under(self.source, "[prove]".into(), field)?;
        let proving = Proving {
            command: self.needed_command(&mut section)?,
            after: self.texts(&mut section, "after")?,
        };
        section.finish()?;
        Ok(proving)
    }

    fn needed_command(self, section: &mut Section<'a>) -> Result<Command, DocumentError> {
        match section.field("command") {
            Some(field) => self.command(field),
            None => Err(section.missing("command", "a list: the program and its arguments")),
        }
    }

    /// Commands of `[[key]]`.
    fn commands(self, top: &mut Section<'a>, key: &'static str) -> Result<Vec<Command>, DocumentError> {
        self.sections(top, key, |reader, mut section| {
            let command = reader.needed_command(&mut section)?;
            section.finish()?;
            Ok(command)
        })
    }

    fn command(self, field: Field<'a>) -> Result<Command, DocumentError> {
        let words = elements_of(self.source, field)?.into_iter().map(|word| self.scalar(word));
        let words: Vec<String> = words.collect::<Result<_, _>>()?;
        if words.first().is_none_or(String::is_empty) {
            return Err(wrong(
                self.source,
                field,
                "a list: the program and its arguments, such as [\"nginx\", \"-g\", \"daemon off;\"]",
            ));
        }
        Ok(Command { words, line: self.line(field) })
    }

    fn texts(self, section: &mut Section<'a>, key: &'static str) -> Result<Vec<String>, DocumentError> {
        let fields = section.array(key)?.unwrap_or_default();
        fields.into_iter().map(|field| text_of(self.source, field).map(Into::into)).collect()
    }

    /// Hosts and commands that make load, or observe.
    fn elsewhere(self, top: &mut Section<'a>, key: &'static str) -> Result<Vec<Elsewhere>, DocumentError> {
        let fields = top.array(key)?.unwrap_or_default();
        let place = |field: Field<'a>| {
            Ok(Elsewhere { text: text_of(self.source, field)?.into(), line: self.line(field) })
        };
        fields.into_iter().map(place).collect()
    }

    fn flag(self, section: &mut Section<'a>, key: &'static str) -> Result<bool, DocumentError> {
        match section.field(key) {
            None => Ok(false),
            Some(Field { value: DeValue::Boolean(truth), .. }) => Ok(*truth),
            Some(field) => Err(wrong(self.source, field, "true or false")),
        }
    }

    /// Fails if one of these keys is there, which mean nothing without another that is not.
    fn left_out_without(
        self,
        section: &mut Section<'a>,
        keys: &[&'static str],
        other: &str,
    ) -> Result<(), DocumentError> {
        match keys.iter().find_map(|key| section.field(key)) {
            Some(field) => Err(wrong(self.source, field, format!("left out without {other}"))),
            None => Ok(()),
        }
    }

    /// `true` or `false`; left out, doubtful verdicts are tested.
    fn confirm(self, top: &mut Section<'a>) -> Result<Confirm, DocumentError> {
        if top.field("confirm").is_none() {
            return Ok(Confirm::Doubtful);
        }
        Ok(if self.flag(top, "confirm")? { Confirm::Always } else { Confirm::Never })
    }

    fn duration(self, field: Field<'a>) -> Result<Duration, DocumentError> {
        let found = humantime::parse_duration(text_of(self.source, field)?).ok();
        found.filter(|time| !time.is_zero() && *time <= DURATION_MAX).ok_or_else(|| {
            wrong(self.source, field, "a length of time up to a year, such as \"30s\" or \"5m\"")
        })
    }

    fn one_of<T: Copy>(self, field: Field<'a>, known: &[(&str, T)]) -> Result<T, DocumentError> {
        let text = text_of(self.source, field)?;
        let found = known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let expected = known.iter().map(|(name, _)| (*name).to_owned()).collect();
            self.source.error(
                field.offset,
                Problem::UnknownName { what: field_name(field.key), name: text.into(), expected },
            )
        })
    }

    fn checked_claims(
        self,
        claims: Vec<ClaimAt>,
        experiment: &Experiment,
    ) -> Result<Vec<Claim>, DocumentError> {
        let works: Vec<String> = experiment.works.iter().map(|work| work.name.clone()).collect();
        let variants: Vec<String> = experiment.variants.iter().map(|variant| variant.name.clone()).collect();
        let checked = |claim: ClaimAt| match claim::check(&claim, &works, &variants) {
            Err(problem) => Err(DocumentError { file: self.source.path.into(), line: claim.line, problem }),
            Ok(()) => Ok(claim.claim),
        };
        claims.into_iter().map(checked).collect()
    }

    fn line(self, field: Field<'a>) -> usize {
        self.source.line(field.offset)
    }

    /// A file that the experiment names, and its text.
    fn beside(self, field: Field<'a>, name: &str) -> Result<(PathBuf, String), DocumentError> {
        let path = self.source.path.parent().unwrap_or(Path::new("")).join(name);
        let text = self.library.read(&path).map_err(|error| {
            let problem =
                Problem::Unreadable { key: field.key.into(), path: path.clone(), reason: error.to_string() };
            self.source.error(field.offset, problem)
        })?;
        Ok((path, text))
    }
}

fn extended(variant: &Variant, key: &str, text: String, told: bool) -> Variant {
    let mut extended = variant.clone();
    if told {
        let before = if variant.name.is_empty() { String::new() } else { format!("{}, ", variant.name) };
        extended.name = format!("{before}{text}");
    }
    extended.values.insert(key.to_owned(), Value::Text(text));
    extended
}

/// A name that is there twice as part of a file name.
fn twice<'n>(names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(slug(name)))
}

/// What a key is called in messages.
fn field_name(key: &str) -> &'static str {
    match key {
        "page_cache" => "state of the page cache",
        "connections" => "policy for connections",
        "stop" => "signal",
        "bottleneck" => "kind of bottleneck",
        "trend" => "trend",
        "of" => "quantity",
        _ => "word",
    }
}

#[cfg(test)]
mod tests;
