//! The samples of a profile as tools for pprof read them: the message `Profile` of its `profile.proto`, not compressed.
//!
//! The format is at <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use std::collections::BTreeMap;

use analysis::run::{Function, Profile, Run, TierProfile};

use crate::folded::LEFT_OUT;
use crate::sentences::{function, holders};

// Numbers of fields: of the profile,
const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING_TABLE: u64 = 6;
const DURATION_NANOS: u64 = 10;
const PERIOD_TYPE: u64 = 11;
const PERIOD: u64 = 12;
// of a mapping, which is a program, library or module,
const FILENAME: u64 = 5;
const HAS_FUNCTIONS: u64 = 7;
// and of a location.
const MAPPING_ID: u64 = 2;
const LINE: u64 = 4;

/// What ran on the processors, with the tier of each sample as its label `tier`; `None` without a profile.
#[must_use]
pub fn pprof(run: &Run) -> Option<Vec<u8>> {
    run.profile.as_ref().map(encoded)
}

fn encoded(profile: &Profile) -> Vec<u8> {
    let mut tables = Tables::default();
    tables.text("");
    let period_ns = 1_000_000_000 / u64::from(profile.hertz.max(1));
    let mut out = Message::default();
    let cpu = tables.value_type("cpu", "nanoseconds");
    out.message(SAMPLE_TYPE, &tables.value_type("samples", "count"));
    out.message(SAMPLE_TYPE, &cpu);
    for tier in &profile.tiers {
        samples(tier, period_ns, &mut tables, &mut out);
    }
    out.number(DURATION_NANOS, (profile.elapsed_s * 1e9) as u64);
    out.message(PERIOD_TYPE, &cpu);
    out.number(PERIOD, period_ns);
    tables.write(&mut out);
    out.0
}

fn samples(tier: &TierProfile, period_ns: u64, tables: &mut Tables, out: &mut Message) {
    let name = holders::named_on(&tier.processes.name, &tier.processes.on);
    let label = Message::of(&[(1, tables.text("tier")), (2, tables.text(&name))]);
    let locations: Vec<u64> = tier.functions.iter().map(|function| tables.location(function)).collect();
    let mut add = |calls: Vec<u64>, samples: u64| {
        let mut sample = Message::default();
        sample.numbers(1, calls);
        sample.numbers(2, [samples, samples.saturating_mul(period_ns)]);
        sample.message(3, &label);
        out.message(SAMPLE, &sample);
    };
    for stack in &tier.stacks {
        // The innermost call first.
        let calls = stack.calls.iter().rev();
        let calls = calls.filter_map(|call| locations.get(usize::try_from(*call).ok()?).copied());
        add(calls.collect(), stack.samples);
    }
    if tier.left_out > 0 {
        let rest = Function { name: LEFT_OUT.to_owned(), ..Function::default() };
        add(vec![tables.location(&rest)], tier.left_out);
    }
}

/// What samples refer to by number: texts from 0, all others from 1.
#[derive(Default)]
struct Tables {
    texts: BTreeMap<String, u64>,
    modules: BTreeMap<u64, u64>,
    locations: BTreeMap<Function, (u64, Message)>,
    functions: Vec<Message>,
}

impl Tables {
    fn text(&mut self, text: &str) -> u64 {
        let next = self.texts.len() as u64;
        *self.texts.entry(text.to_owned()).or_insert(next)
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        Message::of(&[(1, self.text(kind)), (2, self.text(unit))])
    }

    /// A function is one location, of its own number.
    fn location(&mut self, of: &Function) -> u64 {
        if let Some((id, _)) = self.locations.get(of) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        let (name, module) = (self.text(&function(of)), self.text(&of.module));
        let next = self.modules.len() as u64 + 1;
        let mapping = *self.modules.entry(module).or_insert(next);
        self.functions.push(Message::of(&[(1, id), (2, name), (3, name)]));
        let mut location = Message::of(&[(1, id), (MAPPING_ID, mapping)]);
        location.message(LINE, &Message::of(&[(1, id)]));
        self.locations.insert(of.clone(), (id, location));
        id
    }

    fn write(self, out: &mut Message) {
        let mut modules: Vec<_> = self.modules.into_iter().map(|(name, id)| (id, name)).collect();
        modules.sort_unstable();
        for (id, name) in modules {
            out.message(MAPPING, &Message::of(&[(1, id), (FILENAME, name), (HAS_FUNCTIONS, 1)]));
        }
        self.locations.values().for_each(|(_, location)| out.message(LOCATION, location));
        self.functions.iter().for_each(|function| out.message(FUNCTION, function));
        let mut texts: Vec<_> = self.texts.into_iter().collect();
        texts.sort_unstable_by_key(|(_, number)| *number);
        texts.iter().for_each(|(text, _)| out.bytes(STRING_TABLE, text.as_bytes()));
    }
}

/// A message of Protocol Buffers: <https://protobuf.dev/programming-guides/encoding/>.
#[derive(Debug, Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn of(fields: &[(u64, u64)]) -> Self {
        let mut message = Self::default();
        fields.iter().for_each(|(field, value)| message.number(*field, *value));
        message
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.message(field, &packed);
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits in a byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use analysis::run::{Processes, Stack};

    use super::*;

    /// The fields of a message: numbers as they are, others as bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (byte, rest) = bytes.split_first().expect("a byte");
                *bytes = rest;
                value |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            if key & 7 == 2 {
                let (field, rest) = bytes.split_at(usize::try_from(value).expect("short"));
                bytes = rest;
                found.push((key >> 3, 0, field.to_vec()));
            } else {
                found.push((key >> 3, value, Vec::new()));
            }
        }
        found
    }

    #[test]
    fn samples_are_read_back() {
        let function = |name: &str, module: &str| Function {
            name: name.into(),
            module: module.into(),
            ..Function::default()
        };
        let tier = TierProfile {
            processes: Processes { name: "nginx".into(), ..Processes::default() },
            functions: vec![function("main", "nginx"), function("deflate", "libz.so.1")],
            stacks: vec![Stack { calls: vec![0, 1, 99], samples: 300 }],
            ..TierProfile::default()
        };
        let profile =
            Profile { hertz: 99, elapsed_s: 5.0, tiers: vec![tier.clone(), tier], ..Profile::default() };
        let read = fields(&encoded(&profile));
        let all = |number: u64| read.iter().filter(move |field| field.0 == number);
        let texts: Vec<_> =
            all(STRING_TABLE).map(|field| String::from_utf8(field.2.clone()).expect("text")).collect();
        assert_eq!(texts[0], "", "the first text is empty");
        let text = |number: u64| texts[usize::try_from(number).expect("a number")].as_str();
        let names = |field: u64, at: usize| {
            let mut found: Vec<_> = all(field).map(|of| text(fields(&of.2)[at].1)).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(names(FUNCTION, 1), ["deflate", "main"], "each once, though two tiers have it");
        assert_eq!(names(MAPPING, 1), ["libz.so.1", "nginx"]);
        assert_eq!(all(LOCATION).count(), 2);
        let sample = fields(&all(SAMPLE).next().expect("a sample").2);
        assert_eq!(sample[0].2, [2, 1], "the innermost first, and no call that is not there");
        let mut values = Message::default();
        [300, 300 * (1_000_000_000 / 99)].into_iter().for_each(|value| values.varint(value));
        assert_eq!(sample[1].2, values.0);
        let label = fields(&sample[2].2);
        assert_eq!((text(label[0].1), text(label[1].1)), ("tier", "nginx"));
        assert_eq!(all(DURATION_NANOS).next().map(|field| field.1), Some(5_000_000_000));
    }

    #[test]
    fn stacks_that_were_left_out_are_a_sample_of_their_own() {
        let tier = TierProfile { samples: 300, left_out: 300, ..TierProfile::default() };
        let profile = Profile { hertz: 100, tiers: vec![tier], ..Profile::default() };
        let read = fields(&encoded(&profile));
        let samples: Vec<_> = read.iter().filter(|field| field.0 == SAMPLE).collect();
        let [sample] = &samples[..] else { panic!("one sample: {read:?}") };
        let sample = fields(&sample.2);
        let mut values = Message::default();
        [300, 300 * 10_000_000].into_iter().for_each(|value| values.varint(value));
        assert_eq!((&sample[0].2[..], &sample[1].2), (&[1][..], &values.0));
        let is_text = |field: &&(u64, u64, Vec<u8>)| field.0 == STRING_TABLE;
        assert!(read.iter().filter(is_text).any(|field| field.2 == LEFT_OUT.as_bytes()), "{read:?}");
    }
}
