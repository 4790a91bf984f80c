//! Prints a JSON Schema: `cargo run -p report --example schema > docs/run.schema.json` of the run file,
//! `cargo run -p report --example schema -- study > docs/study.schema.json` of a study.

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("study") => print!("{}", report::study::schema()),
        _ => print!("{}", report::schema()),
    }
}
