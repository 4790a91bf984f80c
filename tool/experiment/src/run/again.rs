//! Measures again what lost its fleet on the way: that is no fault of what was measured.

use std::sync::atomic::{AtomicBool, Ordering};

use analysis::run::{Cause, Warning};
use sweep::fleet::Lost;

use super::plan::RunError;

/// How often one measurement is made again at most, because its fleet was lost.
pub const AGAIN_MAX: u32 = 2;

/// Makes a measurement until its fleet lasts to the end. Each attempt is told what those before it have lost, which comes back
/// with what the last one found. Nothing else of them is kept.
///
/// # Errors
/// Why the last attempt failed. One that lost its fleet is the last after [`AGAIN_MAX`] others, or if the user asked to stop.
pub(super) fn until_whole<T>(
    interrupt: &AtomicBool,
    mut attempt: impl FnMut(&[Lost]) -> Result<T, RunError>,
) -> Result<(T, Vec<Lost>), RunError> {
    let mut losses = Vec::new();
    loop {
        match attempt(&losses) {
            Err(RunError::Lost(lost)) if may_go_on(&losses, interrupt) => losses.push(lost),
            ended => return ended.map(|found| (found, losses)),
        }
    }
}

fn may_go_on(losses: &[Lost], interrupt: &AtomicBool) -> bool {
    times(losses) < AGAIN_MAX && !interrupt.load(Ordering::Relaxed)
}

/// How often a measurement was made again that has lost these.
pub(super) fn times(losses: &[Lost]) -> u32 {
    u32::try_from(losses.len()).unwrap_or(u32::MAX)
}

/// The warning of a measurement that was made again after these losses, if any.
pub(super) fn warning(losses: &[Lost]) -> Option<Warning> {
    let Lost { name, loss } = losses.last()?.clone();
    Some(Cause::MeasuredAgain { times: times(losses), generator: name, loss }.into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use analysis::{
        comparison::LeftOutCause,
        run::{GeneratorLoss, WarningKind},
    };

    use super::*;
    use crate::process::Trouble;

    fn lost(name: &str) -> RunError {
        let loss = GeneratorLoss::Disconnected { reason: "the connection to the bus broke".into() };
        RunError::Lost(Lost { name: name.into(), loss })
    }

    /// What became of a measurement.
    struct Made {
        ended: Result<(u64, Vec<Lost>), RunError>,
        /// The names of what each attempt knew to be lost.
        known: Vec<Vec<String>>,
        /// The requests that the server got.
        served: u64,
    }

    /// Makes a measurement whose attempts end so: each sends a hundred requests, and finds what it has sent itself.
    fn measured(endings: Vec<Result<(), RunError>>, interrupt: &AtomicBool) -> Made {
        let (server, mut endings, mut known) = (Cell::new(0), endings.into_iter(), Vec::new());
        let ended = until_whole(interrupt, |losses| {
            known.push(losses.iter().map(|lost| lost.name.clone()).collect());
            let before = server.replace(server.get() + 100);
            endings.next().expect("no more attempts").map(|()| server.get() - before)
        });
        Made { ended, known, served: server.get() }
    }

    #[test]
    fn what_lost_its_fleet_is_made_again_from_its_beginning() {
        for times in 0..=AGAIN_MAX {
            let names: Vec<_> = (0..times).map(|number| number.to_string()).collect();
            let endings = names.iter().map(|name| Err(lost(name))).chain([Ok(())]).collect();
            let Made { ended, known, served } = measured(endings, &AtomicBool::new(false));
            let (found, losses) = ended.expect("a measurement");
            assert_eq!((found, served), (100, 100 * u64::from(times + 1)), "what was lost is not counted");
            assert_eq!(known.last(), Some(&names), "each knows what those before it lost");
            assert_eq!(losses.len() as u32, times);
            let told = warning(&losses).map(|warning| {
                assert_eq!(warning.kind, WarningKind::Generators);
                match warning.cause {
                    Cause::MeasuredAgain { times, generator, .. } => (times, generator),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(told, names.last().map(|last| (times, last.clone())), "how often, and the last");
        }
    }

    #[test]
    fn a_fleet_that_is_lost_every_time_ends_it() {
        let endings = (0..=AGAIN_MAX).map(|number| Err(lost(&number.to_string()))).collect();
        let Made { ended, known, .. } = measured(endings, &AtomicBool::new(false));
        let last = match ended {
            Err(RunError::Lost(last)) => last.name,
            other => panic!("{other:?}"),
        };
        assert_eq!((last, known.len()), (AGAIN_MAX.to_string(), AGAIN_MAX as usize + 1));
    }

    /// A server that fails, and a fleet that does not come back, fail again.
    #[test]
    fn nothing_else_is_made_again() {
        let failed = || RunError::Trouble(Trouble::Cause(LeftOutCause::Failed { error: "no server".into() }));
        let Made { ended, known, .. } = measured(vec![Err(failed())], &AtomicBool::new(false));
        assert!(matches!(ended, Err(RunError::Trouble(_))) && known.len() == 1, "{ended:?}");
        let Made { ended, known, .. } =
            measured(vec![Err(lost("a")), Err(failed())], &AtomicBool::new(false));
        assert!(matches!(ended, Err(RunError::Trouble(_))) && known.len() == 2, "{ended:?}");
        let away = RunError::Fleet("the bus cannot be reached".into());
        let Made { ended, known, .. } = measured(vec![Err(lost("a")), Err(away)], &AtomicBool::new(false));
        assert!(matches!(ended, Err(RunError::Fleet(_))) && known.len() == 2, "{ended:?}");
    }

    #[test]
    fn who_asks_to_stop_waits_for_no_fleet() {
        let Made { ended, known, .. } = measured(vec![Err(lost("a"))], &AtomicBool::new(true));
        assert!(matches!(ended, Err(RunError::Lost(_))) && known.len() == 1, "{ended:?}");
    }
}
