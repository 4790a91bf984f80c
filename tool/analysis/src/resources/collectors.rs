//! How garbage collectors and compilers of a runtime show in the names of threads and programs.

/// Beginnings of the names of threads that collect: HotSpot's (serial, parallel, G1, ZGC, Shenandoah).
const COLLECTOR_THREADS: [&str; 6] = ["ZWorker", "ZDriver", "XWorker", "XDriver", "Shenandoah", "ParGC"];

/// First words of such names, and what follows; nothing where any word may.
const COLLECTOR_WORDS: [(&str, &str); 4] = [("GC", "Thread"), ("G1", ""), ("VM", "Thread"), (".NET", "GC")];

/// Beginnings of the names of runtimes that collect in the threads that do the work, one at a time.
const COLLECT_IN_WORKERS: [&str; 4] = ["python", "pypy", "ruby", "node"];

/// First words of the names of threads that compile; the second is [`COMPILER`].
const COMPILERS: [&str; 2] = ["C1", "C2"];
const COMPILER: &str = "Compiler";

/// While everything is stopped, a collector uses at least this many cores.
pub(crate) const COLLECTING: f64 = 0.5;

/// Whether threads of this name collect garbage.
pub(crate) fn collects(name: &str) -> bool {
    let two_words = |(first, later): &(&str, &str)| {
        name.split_once(' ').is_some_and(|(word, rest)| word == *first && rest.contains(later))
    };
    COLLECTOR_THREADS.iter().any(|prefix| name.starts_with(prefix)) || COLLECTOR_WORDS.iter().any(two_words)
}

/// Whether threads of this name compile what the others run: HotSpot's.
pub(crate) fn compiles(name: &str) -> bool {
    name.split_once(' ').is_some_and(|(first, rest)| COMPILERS.contains(&first) && rest.starts_with(COMPILER))
}

/// Whether processes of this name collect garbage in the threads that do the work.
pub(crate) fn collect_in_workers(name: &str) -> bool {
    COLLECT_IN_WORKERS.iter().any(|prefix| name.starts_with(prefix))
}
