//! Experiments with other numbers of users than their own.

use super::{comparison, experiment, replaced};
use crate::common::support::Place;

/// A sweep of it looked for where throughput stops growing, which one step cannot show, and put every variant in doubt.
#[test]
fn one_number_of_users_in_place_of_the_experiments_own_is_a_load() {
    let place = Place::beside_others();
    let text = replaced(&[("users = 2", "users = [1, 4]")]);
    let outcome = experiment(&place, &text, &["-c", "3", "-d", "300ms"]).run();
    let comparison = comparison(&place);
    let entries = comparison["works"][0]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2, "{outcome}");
    for entry in entries {
        assert_eq!(entry["users"], 3, "{entry}");
        assert!(!entry["reasons"].to_string().contains("only-step"), "{entry}");
    }
}
