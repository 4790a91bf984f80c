//! Prints the JSON Schema of the run file: `cargo run -p report --example schema > docs/run.schema.json`.

fn main() {
    print!("{}", report::schema());
}
