//! What came of sending each request of a scenario once.

/// One request, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Name of the request in the scenario.
    pub request: String,
    /// What came.
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The server answered.
    Answered(Answered),
    /// It was not sent: it takes a value from this list, and no request before it kept one.
    NothingToTake {
        /// Name of the list.
        list: String,
    },
    /// No response came.
    Failed {
        /// The error.
        reason: String,
    },
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Its status.
    pub status: u16,
    /// Bytes of its body that were read.
    pub body_bytes: u64,
    /// Whether the body is longer than that.
    pub is_cut: bool,
    /// Time from connecting to the end of the response.
    pub elapsed_us: f64,
    /// What the scenario keeps of it.
    pub kept: Option<Kept>,
    /// Why a load would count it as an error.
    pub fault: Option<Fault>,
}

/// A value that a request keeps for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Name of the list that it goes to.
    pub list: String,
    /// The value.
    pub value: String,
}

/// Why a load would count a response as an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The scenario does not expect its status.
    Status,
    /// Its body is not the one that the scenario expects.
    Body,
    /// It has no value for the scenario's `keep`.
    NothingToKeep,
}

impl Checked {
    /// Whether a load would count it as a success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(&self.outcome, Outcome::Answered(answered) if answered.fault.is_none())
    }
}
