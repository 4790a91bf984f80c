//! Sentences on flame graphs: what stands out in one, and what is not drawn.

use crate::number::{count, percent};

/// `The functions with the most time of their own: deflate_slow 41 %, memcpy 12 %.`
pub(crate) fn description(largest: &[(String, f64)]) -> String {
    let named: Vec<_> = largest.iter().map(|(name, own)| format!("{name} {}", percent(*own))).collect();
    match named.is_empty() {
        true => "No function has a part worth drawing.".to_owned(),
        false => format!("The functions with the most time of their own: {}.", named.join(", ")),
    }
}

/// `812 parts of at most 0.2 % each are not drawn.`
pub(crate) fn left_out(parts: usize, share_max: f64) -> String {
    let share = percent(share_max);
    match parts {
        1 => format!("A part of {share} is not drawn."),
        _ => format!("{} parts of at most {share} each are not drawn.", count(parts as u64)),
    }
}

/// `2 more tiers are only in the run file.`; nothing where all are shown.
pub(crate) fn more_tiers(more: usize) -> Option<String> {
    match more {
        0 => None,
        1 => Some("One more tier is only in the run file.".to_owned()),
        _ => Some(format!("{} more tiers are only in the run file.", count(more as u64))),
    }
}
