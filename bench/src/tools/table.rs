//! The tables that are printed: one line per comparison with the ratio of ours to theirs, and tables of plain figures.

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub work: String,
    pub unit: &'static str,
    /// Our figures, one per round.
    pub ours: Vec<f64>,
    pub against: Against,
}

/// What our figures are compared with.
#[derive(Debug)]
pub(crate) enum Against {
    /// Another program's figures, one per round, and the ratio that ours should reach.
    Program { name: String, theirs: Vec<f64>, reach: Option<f64> },
    /// A limit that ours must not exceed.
    AtMost(f64),
    /// A figure that ours should reach.
    AtLeast(f64),
    /// The least and the most that ours should be.
    Between(f64, f64),
    /// A program that is not installed.
    Missing(String),
    /// Nothing: ours stand alone.
    Nothing,
}

/// Renders the table as Markdown.
pub(crate) fn render(rows: &[Row]) -> String {
    let header = "| work | unit | ours | against | theirs | ours / theirs | reach | met |\n|---|---|--:|---|--:|--:|--:|---|\n";
    rows.iter().fold(header.to_owned(), |table, row| table + &line(row))
}

/// A table of figures to compare with each other, with nothing to reach.
#[derive(Debug)]
pub(crate) struct Grid {
    pub columns: Vec<&'static str>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// Renders the table as Markdown.
    pub(crate) fn render(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let names: Vec<String> = self.columns.iter().map(|&name| name.to_owned()).collect();
        let rule = format!("|{}\n", "---|".repeat(names.len()));
        let body: String = self.rows.iter().map(|cells| line(cells)).collect();
        line(&names) + &rule + &body
    }
}

fn line(row: &Row) -> String {
    let ours = short(median(&row.ours));
    let rest = match &row.against {
        Against::Program { name, theirs, reach } => {
            let ratios: Vec<f64> = row.ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
            let met = reach.map_or("", |reach| word(median(&ratios) >= reach));
            let reach = reach.map_or_else(String::new, |reach| format!(">= {reach}"));
            format!("{ours} | {name} | {} | {} | {reach} | {met}", short(median(theirs)), spread(&ratios))
        }
        Against::AtMost(limit) => {
            let met = word(median(&row.ours) <= *limit);
            format!("{} | | | | <= {} | {met}", spread(&row.ours), short(*limit))
        }
        Against::AtLeast(limit) => {
            let met = word(median(&row.ours) >= *limit);
            format!("{} | | | | >= {} | {met}", spread(&row.ours), short(*limit))
        }
        Against::Between(least, most) => {
            let met = word((*least..=*most).contains(&median(&row.ours)));
            format!("{} | | | | {} to {} | {met}", spread(&row.ours), short(*least), short(*most))
        }
        Against::Missing(name) => format!("{ours} | {name} | not installed | | |"),
        Against::Nothing => format!("{} | | | | |", spread(&row.ours)),
    };
    format!("| {} | {} | {rest} |\n", row.work, row.unit)
}

/// Whether something is met, in a word.
pub(crate) fn word(met: bool) -> &'static str {
    if met { "yes" } else { "no" }
}

/// The median and, in parentheses, the least and the most. With n rounds these hold the true median with probability
/// 1 - 2^(1-n): 94 % for 5 rounds.
pub(crate) fn spread(values: &[f64]) -> String {
    let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
    format!("{} ({}-{})", short(median(values)), short(least), short(most))
}

/// The middle value, or the mean of the two in the middle; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// A figure with its unit's prefix, to about three digits.
pub(crate) fn short(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e3 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let theirs = vec![100.0, 200.0, 100.0];
        let against = Against::Program { name: "peer".into(), theirs, reach: Some(1.5) };
        let row = Row { work: "work".into(), unit: "req/CPU-s", ours: vec![100.0, 400.0, 150.0], against };
        assert_eq!(
            line(&row),
            "| work | req/CPU-s | 150.00 | peer | 100.00 | 1.50 (1.00-2.00) | >= 1.5 | yes |\n"
        );
    }

    #[test]
    fn a_grid_has_a_line_for_each_row() {
        let grid = Grid {
            columns: vec!["model", "calls"],
            rows: vec![vec!["a".into(), "2.01".into()], vec!["b".into(), "-".into()]],
        };
        assert_eq!(grid.render(), "| model | calls |\n|---|---|\n| a | 2.01 |\n| b | - |\n");
    }

    #[test]
    fn a_limit_and_a_missing_program_and_nothing() {
        let row = |against| Row { work: "work".into(), unit: "ms", ours: vec![40.0, 60.0, 70.0], against };
        assert_eq!(
            line(&row(Against::AtMost(50.0))),
            "| work | ms | 60.00 (40.00-70.00) | | | | <= 50.00 | no |\n"
        );
        assert_eq!(
            line(&row(Against::AtLeast(50.0))),
            "| work | ms | 60.00 (40.00-70.00) | | | | >= 50.00 | yes |\n"
        );
        assert_eq!(
            line(&row(Against::Between(30.0, 60.0))),
            "| work | ms | 60.00 (40.00-70.00) | | | | 30.00 to 60.00 | yes |\n"
        );
        assert!(line(&row(Against::Between(30.0, 59.0))).ends_with("| no |\n"));
        assert_eq!(
            line(&row(Against::Missing("peer".into()))),
            "| work | ms | 60.00 | peer | not installed | | | |\n"
        );
        assert_eq!(line(&row(Against::Nothing)), "| work | ms | 60.00 (40.00-70.00) | | | | | |\n");
    }
}
