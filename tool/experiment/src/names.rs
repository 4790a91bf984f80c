//! Names of files.

use analysis::comparison::Finished;

/// A name as part of a file name: `10-mb` for `10 MB`.
pub fn slug(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The name of a trial's run file without the extension: `100-kb-100-connections-epoll-2`.
pub fn of_trial(trial: &Finished) -> String {
    slug(&format!("{} {} {}", trial.work, trial.variant, trial.round + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_file_names() {
        assert_eq!(slug("100 Mb/s link, up to 20 users"), "100-mb-s-link-up-to-20-users");
        assert_eq!(slug("10.0 MB"), "10-0-mb");
        assert_eq!(slug("../.."), "");
    }
}
