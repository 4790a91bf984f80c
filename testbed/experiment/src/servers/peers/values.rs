//! Values of a scenario that depend on which files the peers share.
//!
//! A scenario for peers may use these values:
//!
//! | name | what a user gets, in turn |
//! |---|---|
//! | `others` | names of files that other peers share |
//! | `content` | hashes of the files of the peer that it asks |
//!
//! User u asks peer u modulo P, the number of peers. Every P-th item of a list, starting with item u, is for peer u.

use load::Scenario;
use share::client::ListedFile;

/// The most items in a list: enough that nothing is asked for again soon.
const ITEMS_MAX: usize = 10_000;

/// Fills in the values, for peers that share these files.
pub(super) fn fill(scenario: &Scenario, shared: &[Vec<ListedFile>]) -> Scenario {
    let step = shared.len().max(1) as u64;
    let each = |item: &dyn Fn(usize, usize) -> Option<String>, most: usize| interleaved(shared, most, item);
    let files = shared.iter().map(Vec::len).min().unwrap_or(0);
    let listed = |peer: usize, place: usize| shared.get(peer)?.get(place);
    let content = each(&|peer, turn| listed(peer, turn).map(|file| file.hash.to_string()), files);
    // A single peer searches for its own files.
    let others_count = shared.len().saturating_sub(1).max(1);
    let of_others = |peer: usize, turn: usize| {
        let other = (peer + 1 + turn % others_count) % shared.len().max(1);
        listed(other, turn / others_count).map(name)
    };
    let others = each(&of_others, files * others_count);
    scenario.clone().with_items("others", &others, step).with_items("content", &content, step)
}

/// The items of all peers: the first of each, then the second of each, and so on.
fn interleaved(
    shared: &[Vec<ListedFile>],
    most: usize,
    item: &dyn Fn(usize, usize) -> Option<String>,
) -> Vec<String> {
    let turns = most.min(ITEMS_MAX / shared.len().max(1));
    (0..turns).flat_map(|turn| (0..shared.len()).filter_map(move |peer| item(peer, turn))).collect()
}

fn name(file: &ListedFile) -> String {
    file.path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn listed(path: &str) -> ListedFile {
        ListedFile { path: path.into(), hash: share::Content::of(path.as_bytes()), size: 1 }
    }

    fn items(value: &str, shared: &[Vec<ListedFile>]) -> Vec<String> {
        let text = format!(
            "[values]\n{value} = {{ kind = \"cycle\", items = [\"x\"] }}\n[[request]]\npath = \"/${{{value}}}\"\n"
        );
        let scenario = Scenario::from_toml(Path::new("s.toml"), &text).expect("a scenario");
        fill(&scenario, shared).items(value).expect("a cycle").to_vec()
    }

    fn three() -> Vec<Vec<ListedFile>> {
        let peer = |peer: char| (0..2).map(|file| listed(&format!("sub/{peer}{file}"))).collect();
        ['a', 'b', 'c'].map(peer).to_vec()
    }

    #[test]
    fn every_peer_is_asked_for_its_own_files() {
        let hash = |path: &str| share::Content::of(path.as_bytes()).to_string();
        let wanted = ["a0", "b0", "c0", "a1", "b1", "c1"].map(|name| hash(&format!("sub/{name}")));
        assert_eq!(items("content", &three()), wanted);
    }

    #[test]
    fn every_peer_searches_for_all_files_of_all_others() {
        let items = items("others", &three());
        let of_peer =
            |peer: usize| -> Vec<&str> { items.iter().skip(peer).step_by(3).map(String::as_str).collect() };
        assert_eq!(of_peer(0), ["b0", "c0", "b1", "c1"]);
        assert_eq!(of_peer(2), ["a0", "b0", "a1", "b1"]);
    }

    #[test]
    fn one_peer_alone_searches_for_its_own() {
        assert_eq!(items("others", &three()[..1]), ["a0", "a1"]);
        assert!(items("others", &[]).is_empty());
    }

    #[test]
    fn lists_are_bounded_and_still_fair() {
        let many: Vec<Vec<ListedFile>> =
            (0..7).map(|p| (0..1000).map(|f| listed(&format!("{p}-{f}"))).collect()).collect();
        let items = items("others", &many);
        assert!(items.len() <= ITEMS_MAX && items.len().is_multiple_of(7), "{}", items.len());
    }
}
