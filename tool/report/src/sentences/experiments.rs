//! Sentences about the experiments that tell one explanation from another.

use analysis::run::TimesCompared;

use crate::number::time;
use crate::words::users;

/// A few users at random moments, against one. With `workers`, the verdict is a pool of so many, fewer than users.
pub(super) fn contention(made: &TimesCompared, workers: Option<u32>) -> String {
    let [low, high] = made.longer_ci_us.map(time);
    let [least, most] = made.expected_us.map(time);
    let told = match (made.told(), workers) {
        (Some(false), _) => {
            "they do not wait for each other, so several requests are served at a time".to_owned()
        }
        (Some(true), Some(workers)) => {
            format!("they wait for each other, which fits a pool of {workers}")
        }
        (Some(true), None) => "they wait for each other, so something is passed one at a time".to_owned(),
        (None, Some(workers)) => format!("what they waited fits a pool of {workers}"),
        (None, None) => "that does not tell whether requests are served one at a time or several".to_owned(),
    };
    format!(
        "An experiment: {} who came at random, pausing for {} on average, waited {} ({low} to {high}) longer than one \
         alone, whose request took {}. With one request at a time it would be {least} to {most}: {told}.",
        users(made.users),
        time(made.think_us),
        time(made.longer_us),
        time(made.alone_us)
    )
}

/// One user who paused, against one who did not.
pub(super) fn pausing(made: &TimesCompared) -> String {
    let [low, high] = made.longer_ci_us;
    let (difference, [least, most], than) = match made.longer_us < 0.0 {
        true => (-made.longer_us, [-high, -low], "less"),
        false => (made.longer_us, [low, high], "more"),
    };
    let told = match made.told() {
        Some(true) => "a pause makes up for the wait, so a limit on the rate delays requests",
        Some(false) => "a pause saves nothing, so requests are not delayed to limit their rate",
        None => "that does not tell a limit on the rate from something held",
    };
    format!(
        "An experiment: requests of one user took {} without pauses, and {} ({} to {}) {than} with pauses of {} on \
         average: {told}.",
        time(made.alone_us),
        time(difference),
        time(least),
        time(most),
        time(made.think_us)
    )
}
