//! Whether a system kept its promises, as the system itself proves it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comparison of what clients were promised with what a system holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Whether every promise was kept and every refusal explained.
    pub holds: bool,
    /// What was compared, in sentences with numbers, as the system states it.
    pub text: String,
    /// The same as data; empty in files from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
}

/// Something that was counted for a proof.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// What was counted, such as `bookings acknowledged`.
    pub name: String,
    /// How many there were.
    pub value: u64,
}
