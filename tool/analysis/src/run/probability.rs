//! How probable something is.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// A probability, 0 to 1.
///
/// Files from before it was a number say `high`, `medium` or `low`, which are read as 0.95, 0.8 and 0.5.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", into = "f64")]
#[schemars(with = "f64", extend("minimum" = 0, "maximum" = 1))]
pub struct Probability(f64);

impl Probability {
    /// The nearest probability to a number; 0 where it is none.
    pub const fn new(share: f64) -> Self {
        Self(if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) })
    }

    /// As a share, 0 to 1.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// What it becomes by evidence that is this many times as likely if the thing is so as if it is not.
    #[must_use]
    pub fn times_odds(self, likelihood_ratio: f64) -> Self {
        let (so, not) = (self.0 * likelihood_ratio, 1.0 - self.0);
        if so + not > 0.0 { Self::new(so / (so + not)) } else { self }
    }
}

impl From<Probability> for f64 {
    fn from(of: Probability) -> Self {
        of.share()
    }
}

/// As a run file of any version holds it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Share(f64),
    Word(Word),
    Unknown(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    High,
    Medium,
    Low,
}

impl From<Written> for Probability {
    fn from(written: Written) -> Self {
        Self::new(match written {
            Written::Share(share) => share,
            Written::Word(Word::High) => 0.95,
            Written::Word(Word::Medium) => 0.8,
            Written::Word(Word::Low) => 0.5,
            Written::Unknown(_) => 0.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    #[test]
    fn it_stays_between_nought_and_one() {
        assert_eq!(
            [-1.0, 0.3, 7.0, f64::NAN].map(|share| Probability::new(share).share()),
            [0.0, 0.3, 1.0, 0.0]
        );
    }

    #[test]
    fn evidence_multiplies_odds() {
        let near = |share: f64, ratio: f64, expected: f64| {
            let found = Probability::new(share).times_odds(ratio).share();
            assert!((found - expected).abs() < 1e-12, "{found}");
        };
        near(0.5, 3.0, 0.75);
        near(0.75, 1.0 / 3.0, 0.5);
        near(1.0, 0.0, 1.0);
        near(0.0, 9.0, 0.0);
    }

    #[test]
    fn words_of_older_files_are_read() {
        let read = |text: &'static str| {
            let text: StrDeserializer<'static, Error> = text.into_deserializer();
            Probability::deserialize(text).map(Probability::share)
        };
        assert_eq!(["high", "medium", "low", "certain"].map(read), [0.95, 0.8, 0.5, 0.0].map(Ok));
    }
}
