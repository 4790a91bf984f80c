//! Prints a JSON Schema: `cargo run -p report --example schema > docs/run.schema.json` of the run file,
//! `cargo run -p report --example schema -- comparison > docs/comparison.schema.json` of the comparison file; `contrast`,
//! `history`, `prediction` and `doctor` are what `nstar compare -j`, `nstar history -j`, `nstar predict -j` and `nstar doctor -j`
//! print.

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("comparison") => print!("{}", report::comparison::schema()),
        Some("contrast") => print!("{}", report::contrast::schema()),
        Some("doctor") => print!("{}", report::doctor::schema()),
        Some("history") => print!("{}", report::history::schema()),
        Some("prediction") => print!("{}", report::prediction::schema()),
        _ => print!("{}", report::schema()),
    }
}
