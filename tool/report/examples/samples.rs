//! Writes every sample run of the tests, as the page and as `run.json`, into a directory:
//! `cargo run -p report --example samples -- DIR`. For looking at the design.

use std::path::PathBuf;

#[path = "../tests/samples/mod.rs"]
mod samples;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: samples DIR")?);
    std::fs::create_dir_all(&directory)?;
    for (name, run) in samples::all() {
        std::fs::write(directory.join(format!("{name}.json")), report::json(&run)?)?;
        std::fs::write(directory.join(format!("{name}.html")), report::html(&run)?)?;
    }
    Ok(())
}
