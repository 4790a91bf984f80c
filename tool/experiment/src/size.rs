//! Sizes as people write them.

use std::fmt;

/// A number of bytes, shown in the decimal units that experiments use: `100 KB`, `1.5 MB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")];
        let bytes = self.0 as f64;
        let (scale, unit) = UNITS.into_iter().find(|(scale, _)| bytes >= *scale).unwrap_or((1.0, "bytes"));
        let text = format!("{:.1}", bytes / scale);
        write!(f, "{} {unit}", text.trim_end_matches(".0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_they_were_asked_for() {
        let cases = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (100_000, "100 KB"),
            (1_500_000, "1.5 MB"),
            (10_000_000_000, "10 GB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
