//! Prints a JSON Schema: `cargo run -p report --example schema > docs/run.schema.json` of the run file,
//! `cargo run -p report --example schema -- comparison > docs/comparison.schema.json` of the comparison file; `contrast` and
//! `history` are what `nstar compare -j` and `nstar history -j` print.

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("comparison") => print!("{}", report::comparison::schema()),
        Some("contrast") => print!("{}", report::contrast::schema()),
        Some("history") => print!("{}", report::history::schema()),
        _ => print!("{}", report::schema()),
    }
}
