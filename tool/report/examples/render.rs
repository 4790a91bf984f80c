//! Renders a run file: `cargo run -p report --example render -- run.json html > report.html`.
//! The other forms are `terminal` (100 columns), `csv` and `json`.

use report::TerminalOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(form)) = (arguments.next(), arguments.next()) else {
        return Err("usage: render RUN html|terminal|csv|json".into());
    };
    let run = report::parse(&std::fs::read_to_string(path)?)?;
    let text = match form.as_str() {
        "html" => report::html(&run)?,
        "terminal" => report::terminal(&run, &TerminalOptions { colour: true, ..Default::default() }),
        "csv" => report::csv(&run),
        "json" => report::json(&run)?,
        other => return Err(format!("unknown form `{other}`: html, terminal, csv or json").into()),
    };
    print!("{text}");
    Ok(())
}
