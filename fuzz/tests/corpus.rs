//! Replays what is kept of inputs, and a number of mutations of each, without a fuzzer.

use std::{
    collections::BTreeSet,
    env, fs, iter,
    panic::catch_unwind,
    path::{Path, PathBuf},
    thread,
};

use fastrand::Rng;
use fuzz::{TARGETS, Target};

/// The variable with the seed of all mutations.
const SEED: &str = "NSTAR_FUZZ_SEED";
/// Mutations of each kept input.
const MUTATIONS: usize = 60;
/// Most changes in a mutation.
const CHANGES_MAX: usize = 4;
/// Longest part that is repeated, bytes.
const REPEATED_MAX: usize = 64;
/// The fewest inputs that are kept for a target.
const KEPT_MIN: usize = 5;

/// Bytes that have a meaning somewhere.
const SIGNIFICANT: &[u8] = b"\r\n\t ,;:=?&%/\\\"'()[]{}<>-+.*#@$0129aAfFxX_\0\x7f\x80\xc3\xff";

/// One kept input.
struct Kept {
    path: PathBuf,
    bytes: Vec<u8>,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn kept(target: &Target) -> Vec<Kept> {
    let folder = corpus().join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| Kept { bytes: fs::read(&path).expect("an input"), path };
    paths.into_iter().map(read).collect()
}

#[test]
fn kept_inputs_and_mutations_of_them_break_no_target() {
    let seed = seed();
    let broken: Vec<String> = thread::scope(|scope| {
        let try_one = |target| scope.spawn(move || broken_inputs(target, seed));
        let tried: Vec<_> = TARGETS.iter().map(try_one).collect();
        tried.into_iter().flat_map(|one| one.join().expect("targets fail by themselves")).collect()
    });
    assert!(broken.is_empty(), "again with {SEED}={seed}:\n{}", broken.join("\n"));
}

/// Other mutations on every run, unless somebody wants those of an earlier one.
fn seed() -> u64 {
    match env::var(SEED) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{SEED}={text}: {error}")),
        Err(_) => fastrand::u64(..1_000_000_000),
    }
}

#[test]
fn the_same_seed_makes_the_same_mutations_and_another_makes_others() {
    let all = [b"GET / HTTP/1.1\r\n".as_slice(), b"name=value&more", b"{\"a\": [1, 2]}"];
    let all = all.map(|bytes| Kept { path: PathBuf::new(), bytes: bytes.to_vec() });
    let of = |seed| mutations(&all, 0, seed).collect::<Vec<_>>();
    assert_eq!(of(1).len(), MUTATIONS);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

/// Mutations of one kept input, which follow from the seed.
fn mutations(all: &[Kept], index: usize, seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Rng::with_seed(seed.wrapping_add(index as u64));
    (0..MUTATIONS).map(move |_| mutated(&all[index].bytes, all, &mut random))
}

/// The inputs that break a target, as words.
fn broken_inputs(target: &Target, seed: u64) -> Vec<String> {
    let (all, run) = (kept(target), target.run);
    assert!(all.len() >= KEPT_MIN, "keep more inputs in {}", corpus().join(target.name).display());
    let mut broken = Vec::new();
    for (index, Kept { path, bytes }) in all.iter().enumerate() {
        let mut inputs = iter::once(bytes.clone()).chain(mutations(&all, index, seed));
        // One is enough to see what is wrong.
        if let Some(input) = inputs.find(|input| catch_unwind(|| run(input)).is_err()) {
            let shown = input.escape_ascii();
            broken.push(format!("{}, at {} or by a mutation: {shown}", target.name, path.display()));
        }
    }
    broken
}

/// The input with a few changes, of which each makes it at most as much longer as another input is long.
fn mutated(bytes: &[u8], all: &[Kept], random: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.usize(1..=CHANGES_MAX) {
        let at = random.usize(..=bytes.len());
        let end = random.usize(at..=bytes.len());
        match random.u8(..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, any_byte(random)),
            2 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = any_byte(random)),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let part = bytes[at..end.min(at + REPEATED_MAX)].to_vec();
                bytes.splice(at..at, part);
            }
            _ => {
                let other = &all[random.usize(..all.len())].bytes;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.usize(..=other.len())..]);
            }
        }
    }
    bytes
}

fn any_byte(random: &mut Rng) -> u8 {
    if random.bool() { random.u8(..) } else { SIGNIFICANT[random.usize(..SIGNIFICANT.len())] }
}

#[test]
fn each_folder_of_the_corpus_belongs_to_a_target() {
    let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), TARGETS.len(), "two targets have one name");
    let folders = fs::read_dir(corpus()).expect("the corpus");
    let folders: BTreeSet<_> =
        folders.map(|folder| folder.expect("a folder").file_name().into_string().expect("a name")).collect();
    assert_eq!(folders, names);
}

#[test]
fn a_target_of_a_name_is_found() {
    for target in TARGETS {
        assert_eq!(fuzz::find(target.name).map(|found| found.input), Some(target.input));
    }
    assert!(fuzz::find("").is_none() && fuzz::find("nothing").is_none());
}
