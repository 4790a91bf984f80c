//! The page's colours against what stands behind them: WCAG 2.2 AA, in light, dark and print.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("../templates/style.css");
/// Ratio that text needs (success criterion 1.4.3).
const TEXT: f64 = 4.5;
/// Ratio that lines and marks need (success criterion 1.4.11).
const GRAPHICS: f64 = 3.0;

#[test]
fn text_and_lines_stand_out() {
    let palettes = palettes();
    assert_eq!(palettes.len(), 3, "light, dark, print");
    for palette in &palettes {
        for (front, back, least) in [
            ("ink", "paper", TEXT),
            ("soft", "paper", TEXT),
            ("accent", "paper", TEXT),
            ("warn", "warn-paper", TEXT),
            ("ink", "warn-paper", TEXT),
            ("ink", "tint", TEXT),
            ("ink", "grid", TEXT),
            ("accent", "tint", GRAPHICS),
            ("accent", "grid", GRAPHICS),
            ("faint", "paper", GRAPHICS),
            ("faint", "tint", GRAPHICS),
            ("faint", "grid", GRAPHICS),
            ("warn-rule", "paper", GRAPHICS),
        ] {
            let ratio = ratio(luminance(&palette[front]), luminance(&palette[back]));
            assert!(ratio >= least, "{front} {} on {back} {}: {ratio:.2}", palette[front], palette[back]);
        }
    }
}

/// The variables of each `:root`; later ones change what the first says.
fn palettes() -> Vec<BTreeMap<String, String>> {
    let mut palettes: Vec<BTreeMap<String, String>> = Vec::new();
    for block in STYLE.split(":root {").skip(1) {
        let declarations = block.split('}').next().unwrap_or_default().split(';');
        let mut palette = palettes.first().cloned().unwrap_or_default();
        palette.extend(declarations.filter_map(|declaration| {
            let (name, value) = declaration.split_once(':')?;
            Some((name.trim().strip_prefix("--")?.to_owned(), value.trim().to_owned()))
        }));
        palettes.push(palette);
    }
    palettes
}

/// Relative luminance (WCAG 2.2, definitions).
fn luminance(colour: &str) -> f64 {
    let digits = colour.trim_start_matches('#');
    let wide = digits.len() == 6;
    let channel = |index: usize| {
        let text =
            if wide { digits[2 * index..2 * index + 2].to_owned() } else { digits[index..=index].repeat(2) };
        let share = f64::from(u8::from_str_radix(&text, 16).expect("a hexadecimal colour")) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
}

fn ratio(a: f64, b: f64) -> f64 {
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}
