//! Stacks as a flame graph: callers above what they call, in the room that a page has for it.

use std::collections::BTreeMap;

use analysis::profile::{Node, tree};
use analysis::run::{Function, Stack};
use minijinja::HtmlEscape;
use serde::Serialize;

use crate::number;
use crate::sentences::{self, flame as sentence};
use crate::words;

/// Smaller parts are not drawn.
const SHARE_MIN: f64 = 0.002;
/// Most functions that the description names.
const NAMED_MAX: usize = 5;

/// Size of the drawing.
const WIDTH: f64 = 1_100.0;
const ROW: usize = 18;
/// Width of a character, on the safe side.
const LETTER: f64 = 7.0;
/// Bytes of a drawing beside its parts, its title and its description: its markup, and what is said of the parts that are left
/// out, where that grows longer.
const FRAME_BYTES: usize = 400;
/// Bytes of a part beside its words: its markup, and its numbers at their longest.
const MARKUP_BYTES: usize = 160;

/// The most that drawings may take of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes of the page.
    pub(super) bytes: usize,
    /// Parts: a browser is slow with many.
    pub(super) parts: usize,
}

/// A tier to be drawn.
#[derive(Debug)]
pub(super) struct Tier<'a> {
    /// What its drawing is called.
    pub(super) title: String,
    /// The functions that the stacks refer to.
    pub(super) functions: &'a [Function],
    pub(super) stacks: &'a [Stack],
}

/// A drawing with what stands above it.
#[derive(Debug, Serialize)]
pub(super) struct Graph {
    pub(super) id: String,
    pub(super) heading: String,
    pub(super) sentence: String,
    pub(super) drawing: Drawing,
}

/// The stacks of one tier, drawn.
#[derive(Debug, Serialize)]
pub(super) struct Drawing {
    pub(super) title: String,
    /// The drawing in a sentence, for people who cannot see it.
    description: String,
    /// What is not drawn.
    left_out: Option<String>,
    width: f64,
    height: usize,
    /// Callers before those they call.
    parts: Vec<Part>,
}

/// A function below one chain of callers.
#[derive(Debug, Serialize)]
struct Part {
    title: String,
    label: String,
    kernel: bool,
    x: String,
    y: usize,
    width: String,
}

/// A drawing of each tier, in their order. Each has an equal share of the room, and what one does not need is for those
/// before it: the first matter most.
pub(super) fn drawings(tiers: Vec<Tier<'_>>, room: Room) -> Vec<Drawing> {
    let mut left = room;
    let draw = |(before, tier): (usize, Tier<'_>)| {
        let sharing = before + 1;
        let share = Room { bytes: left.bytes / sharing, parts: left.parts / sharing };
        let drawing = Drawing::new(tier, share);
        left.bytes = left.bytes.saturating_sub(drawing.bytes());
        left.parts = left.parts.saturating_sub(drawing.parts.len());
        drawing
    };
    let mut drawn: Vec<Drawing> = tiers.into_iter().enumerate().rev().map(draw).collect();
    drawn.reverse();
    drawn
}

impl Drawing {
    /// Draws the largest parts that there is room for.
    fn new(Tier { title, functions, stacks }: Tier<'_>, room: Room) -> Self {
        let nodes = tree(stacks);
        let description = sentence::description(&most_of_their_own(functions, &nodes));
        let mut largest: Vec<(usize, &Node)> = nodes.iter().enumerate().collect();
        // A caller, which is no smaller than what it calls, comes before it.
        largest.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share).then(a.depth.cmp(&b.depth)));
        let (mut drawn, mut bytes, mut rows) = (Vec::new(), frame_bytes(&title, &description), 0_usize);
        for (place, node) in &largest {
            let part = Part::new(functions, node);
            bytes += part.bytes();
            let fits = node.share >= SHARE_MIN && drawn.len() < room.parts && bytes <= room.bytes;
            if !fits {
                break;
            }
            rows = rows.max(node.depth + 1);
            drawn.push((*place, part));
        }
        let next = largest.get(drawn.len());
        let left_out = next.map(|(_, next)| sentence::left_out(largest.len() - drawn.len(), next.share));
        drawn.sort_by_key(|(place, _)| *place);
        let parts = drawn.into_iter().map(|(_, part)| part).collect();
        Self { title, description, left_out, width: WIDTH, height: rows * ROW, parts }
    }

    /// At most so many bytes more on the page than without room for it: what has no parts has no markup either.
    fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(Part::bytes).sum();
        if parts == 0 { 0 } else { frame_bytes(&self.title, &self.description) + parts }
    }
}

/// At most so many bytes of the page, around the parts of a drawing with these words.
fn frame_bytes(title: &str, description: &str) -> usize {
    FRAME_BYTES + written(title) + written(description)
}

/// The functions with the most time of their own, and the share of it.
fn most_of_their_own(functions: &[Function], nodes: &[Node]) -> Vec<(String, f64)> {
    let mut own = BTreeMap::<u32, f64>::new();
    for node in nodes {
        *own.entry(node.function).or_default() += node.own;
    }
    let mut own: Vec<_> = own.into_iter().filter(|(_, share)| *share >= SHARE_MIN).collect();
    own.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    own.into_iter().take(NAMED_MAX).map(|(function, share)| (name(functions, function), share)).collect()
}

fn function(functions: &[Function], number: u32) -> Option<&Function> {
    functions.get(usize::try_from(number).ok()?)
}

fn name(functions: &[Function], number: u32) -> String {
    let name = function(functions, number).map_or_else(|| "[unknown]".to_owned(), sentences::function);
    sentences::short(&name)
}

impl Part {
    fn new(functions: &[Function], node: &Node) -> Self {
        let of = function(functions, node.function);
        let name = name(functions, node.function);
        let module = of.map(|of| sentences::short(&of.module)).filter(|module| !module.is_empty());
        let module = module.map_or_else(String::new, |module| format!(" ({module})"));
        let width = node.share * WIDTH;
        let (share, own) = (number::percent(node.share), number::percent(node.own));
        Self {
            title: format!("{name}{module}: {share}, itself {own}"),
            label: label(&name, width),
            kernel: of.is_some_and(|of| of.kernel),
            x: format!("{:.1}", node.left * WIDTH),
            y: node.depth * ROW,
            width: format!("{width:.1}"),
        }
    }

    /// At most so many bytes of the page.
    fn bytes(&self) -> usize {
        MARKUP_BYTES + written(&self.title) + written(&self.label)
    }
}

/// The bytes of a text on the page, where markup is escaped and what is hidden replaced.
fn written(text: &str) -> usize {
    let bytes = |c: char| match words::is_hidden(c) {
        true => char::REPLACEMENT_CHARACTER.len_utf8(),
        false => c.len_utf8(),
    };
    HtmlEscape(text).to_string().chars().map(bytes).sum()
}

/// As much of a name as has room.
fn label(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER) as usize;
    if room < 3 {
        return String::new();
    }
    if name.chars().map(columns).sum::<usize>() <= room {
        return name.to_owned();
    }
    let mut taken = 1;
    let fits = |c: &char| {
        taken += columns(*c);
        taken <= room
    };
    name.chars().take_while(fits).chain(['…']).collect()
}

/// How many letters wide a character is at most: those of some scripts, and what stands for hidden ones, are twice as wide.
fn columns(c: char) -> usize {
    if c.is_ascii_graphic() || c == ' ' { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Room = Room { bytes: usize::MAX, parts: usize::MAX };

    fn functions(names: &[&str]) -> Vec<Function> {
        names.iter().map(|name| Function { name: (*name).into(), ..Function::default() }).collect()
    }

    fn stacks(of: &[(&[u32], u64)]) -> Vec<Stack> {
        of.iter().map(|(calls, samples)| Stack { calls: (*calls).into(), samples: *samples }).collect()
    }

    fn tier<'a>(functions: &'a [Function], stacks: &'a [Stack]) -> Tier<'a> {
        Tier { title: "Flame graph of nginx".to_owned(), functions, stacks }
    }

    /// `main` calls `big` and `small`, and each of them something.
    fn drawn(room: Room) -> Drawing {
        let functions = functions(&["main", "big", "inner", "small", "least"]);
        let stacks = stacks(&[(&[0, 1, 2], 60), (&[0, 1], 10), (&[0, 3, 4], 20), (&[0, 3], 10)]);
        Drawing::new(tier(&functions, &stacks), room)
    }

    fn labels(of: &Drawing) -> Vec<&str> {
        of.parts.iter().map(|part| part.label.as_str()).collect()
    }

    fn told(of: &Drawing) -> Option<String> {
        of.left_out.as_ref().map(|text| text.replace('\u{202f}', " "))
    }

    #[test]
    fn the_smallest_parts_are_left_out_first_and_counted() {
        assert_eq!(labels(&drawn(ALL)), ["main", "big", "inner", "small", "least"]);
        assert_eq!(told(&drawn(ALL)), None);
        let few = drawn(Room { parts: 3, ..ALL });
        assert_eq!((labels(&few), few.height), (vec!["main", "big", "inner"], 3 * ROW));
        assert_eq!(told(&few).as_deref(), Some("2 parts of at most 30 % each are not drawn."));
        let most = drawn(Room { parts: 4, ..ALL });
        assert_eq!(told(&most).as_deref(), Some("A part of 20 % is not drawn."));
    }

    #[test]
    fn parts_take_no_more_bytes_than_there_are() {
        let all = drawn(ALL).bytes();
        for room in [0, 1, all / 2, all - 1, all] {
            let some = drawn(Room { bytes: room, ..ALL });
            assert!(some.bytes() <= room, "{room}");
            assert_eq!(some.left_out.is_none(), room == all);
        }
    }

    /// Of a chain of calls that all have the same share, the innermost are left out: nothing hangs without its caller.
    #[test]
    fn nothing_is_drawn_without_its_caller() {
        let functions = functions(&["a", "b", "c", "d"]);
        let stacks = stacks(&[(&[0, 1, 2, 3], 9)]);
        let some = Drawing::new(tier(&functions, &stacks), Room { parts: 2, ..ALL });
        assert_eq!(labels(&some), ["a", "b"]);
        assert_eq!(told(&some).as_deref(), Some("2 parts of at most 100 % each are not drawn."));
    }

    #[test]
    fn what_one_tier_does_not_need_is_for_those_before_it() {
        let functions = functions(&["a", "b", "c", "d", "e"]);
        let large = stacks(&[(&[0, 1, 2, 3, 4], 9)]);
        let small = stacks(&[(&[0], 9)]);
        let tiers = vec![tier(&functions, &large), tier(&functions, &small)];
        let drawn = drawings(tiers, Room { parts: 6, ..ALL });
        assert_eq!(drawn.iter().map(|drawing| drawing.parts.len()).collect::<Vec<_>>(), [5, 1]);
    }

    #[test]
    fn the_functions_with_most_time_of_their_own_are_described() {
        let said = drawn(ALL).description.replace('\u{202f}', " ");
        assert_eq!(
            said,
            "The functions with the most time of their own: inner 60 %, least 20 %, big 10 %, small 10 %."
        );
        let nothing = Drawing::new(tier(&[], &[]), ALL);
        assert_eq!((nothing.parts.len(), nothing.height), (0, 0));
        assert_eq!(nothing.description, "No function has a part worth drawing.");
        let never_seen = Drawing::new(tier(&functions(&["main"]), &stacks(&[(&[0], 0)])), ALL);
        assert_eq!((never_seen.parts.len(), never_seen.left_out), (0, None));
    }

    #[test]
    fn a_function_that_the_file_does_not_name_is_unknown() {
        let drawing = Drawing::new(tier(&[], &stacks(&[(&[7], 9)])), ALL);
        assert_eq!(labels(&drawing), ["[unknown]"]);
    }

    #[test]
    fn a_name_is_cut_to_its_room() {
        let cut = [100.0, 40.0, 20.0].map(|width| label("deflate_slow", width));
        assert_eq!(cut, ["deflate_slow", "def…", ""].map(str::to_owned));
        assert_eq!(label("圧縮する関数", 50.0), "圧縮…");
    }

    #[test]
    fn bytes_are_counted_as_they_are_written() {
        assert_eq!(written("a<b>\"'/&"), "a&lt;b&gt;&quot;&#x27;&#x2f;&amp;".len());
        assert_eq!(written("é\u{202e}\x1b"), "é\u{fffd}\u{fffd}".len());
    }
}
