//! Which of those that make a load or observe was lost, for a caller that can measure again with others.
//!
//! A loss is told from what would happen again: a server that does not answer, a load that cannot be made.

use agent::{Endpoint, StartError};
use analysis::run::{GeneratorLoss, GeneratorTrouble};

use super::FleetError;

/// A generator or an observer that was lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Lost {
    /// Its name.
    pub name: String,
    /// How it was lost.
    pub loss: GeneratorLoss,
}

impl Lost {
    /// The first that was lost while load was made, whether or not others went on.
    pub(crate) fn first_of(troubles: &[(String, GeneratorTrouble)]) -> Option<Self> {
        troubles.iter().find_map(|(name, trouble)| match trouble {
            GeneratorTrouble::Lost { loss, .. } => Some(Self { name: name.clone(), loss: loss.clone() }),
            _ => None,
        })
    }

    /// What was lost while load was made, so that the run ended.
    pub(crate) fn meanwhile(error: &FleetError) -> Option<Self> {
        match error {
            FleetError::Lost { name, loss } => Some(Self { name: name.clone(), loss: loss.clone() }),
            // The users of another that was lost are too many for it.
            FleetError::TooFewFiles { name, users, allowed } => {
                let reason =
                    format!("it was to have {users} users, and its limit on open files allows {allowed}");
                Some(Self { name: name.clone(), loss: GeneratorLoss::Failed { reason } })
            }
            FleetError::Start { .. } | FleetError::TooMany(_) | FleetError::TooLarge(_) => None,
        }
    }

    /// What was lost before load was made. A generator that says why it can make none was not lost: most often the server did
    /// not answer it.
    pub(crate) fn at_start(error: &FleetError) -> Option<Self> {
        match error {
            FleetError::Lost { loss: GeneratorLoss::Failed { .. }, .. } => None,
            FleetError::Lost { .. } => Self::meanwhile(error),
            FleetError::Start { source, .. } => Self::before_it_began(source),
            FleetError::TooFewFiles { .. } | FleetError::TooMany(_) | FleetError::TooLarge(_) => None,
        }
    }

    /// An agent at the end of an open stream that was lost before it began. Commands and hosts that cannot be reached are
    /// what somebody named, not what was lost.
    pub(crate) fn before_it_began(error: &StartError) -> Option<Self> {
        let (endpoint, loss) = match error {
            StartError::Ended { endpoint, code, stderr } => {
                (endpoint, GeneratorLoss::Ended { code: *code, stderr: stderr.clone() })
            }
            StartError::Silent { endpoint, limit_s, .. } => {
                (endpoint, GeneratorLoss::Silent { silent_s: *limit_s as f64 })
            }
            StartError::Disconnected { endpoint, reason } => {
                (endpoint, GeneratorLoss::Disconnected { reason: reason.clone() })
            }
            _ => return None,
        };
        let is_open = matches!(**endpoint, Endpoint::Open(_));
        is_open.then(|| Self { name: endpoint.to_string(), loss })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use agent::{OpenStream, Ways};

    use super::*;
    use crate::sweep::SweepError;

    fn gone() -> GeneratorLoss {
        GeneratorLoss::Disconnected { reason: "the connection to the bus broke".into() }
    }

    fn refused() -> GeneratorLoss {
        GeneratorLoss::Failed { reason: "connection refused".into() }
    }

    fn of(loss: GeneratorLoss) -> FleetError {
        FleetError::Lost { name: "web".into(), loss }
    }

    fn open() -> Box<Endpoint> {
        let ways =
            Ways { output: Box::new(io::empty()), input: Box::new(io::sink()), ended: Box::new(|| None) };
        Box::new(Endpoint::Open(OpenStream::new("web", ways)))
    }

    fn broken(endpoint: Box<Endpoint>) -> StartError {
        StartError::Disconnected { endpoint, reason: "the connection to the bus broke".into() }
    }

    #[test]
    fn a_member_whose_stream_ended_is_lost_whenever_that_was() {
        let lost = Some(Lost { name: "web".into(), loss: gone() });
        let start = FleetError::Start { flag: "--fleet", source: broken(open()) };
        let observer = SweepError::Agent { flag: "--fleet", source: broken(open()) };
        for error in [SweepError::Lost(of(gone())), of(gone()).into(), start.into(), observer] {
            assert_eq!(error.lost(), lost, "{error}");
        }
    }

    /// What it had sent is in no total, although the run went on to its end.
    #[test]
    fn a_generator_that_others_went_on_without_is_the_first_that_was_lost() {
        let lost = |ended_run| GeneratorTrouble::Lost { users: 3, loss: gone(), ended_run };
        let late = ("db".to_owned(), GeneratorTrouble::StartedLate { late_us: 30_000 });
        let troubles = [late.clone(), ("web".to_owned(), lost(false)), ("db".to_owned(), lost(true))];
        assert_eq!(Lost::first_of(&troubles), Some(Lost { name: "web".into(), loss: gone() }));
        assert_eq!(Lost::first_of(&[late]), None);
    }

    /// What the server does, or what is wrong with the load, happens again however often it is measured.
    #[test]
    fn a_server_that_does_not_answer_is_no_loss() {
        assert_eq!(SweepError::from(of(refused())).lost(), None);
        let few = || FleetError::TooFewFiles { name: "web".into(), users: 9, allowed: 5 };
        assert_eq!(SweepError::from(few()).lost(), None);
        assert_eq!(SweepError::from(FleetError::TooMany(1_000)).lost(), None);
        assert_eq!(SweepError::BeforeStep("the reset failed".into()).lost(), None);
        // Once load was made, both are the generator's own.
        assert!(SweepError::Lost(of(refused())).lost().is_some());
        assert!(SweepError::Lost(few()).lost().is_some());
    }

    #[test]
    fn a_command_that_ended_was_named_and_not_lost() {
        let command = || Box::new(Endpoint::Command(vec!["ssh".into(), "web".into()]));
        let start = FleetError::Start { flag: "--generator", source: broken(command()) };
        assert_eq!(SweepError::from(start).lost(), None);
        let observer = SweepError::Agent { flag: "--observe", source: broken(command()) };
        assert_eq!(observer.lost(), None);
    }
}
