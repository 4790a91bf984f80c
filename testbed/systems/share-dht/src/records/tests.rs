use std::{collections::HashMap, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::testing::{address, all_keys, entry, peer};

const LIFE: Duration = Duration::from_secs(120);

fn small() -> Limits {
    Limits { places: 3, publisher_bytes: 5_000, bytes: 8_000, publishers: 4 }
}

fn keep(records: &mut Records, publisher: u8, now: Instant, files: &[Entry]) -> StoreOutcome {
    let lease = Lease::new(address(publisher), now, LIFE);
    records.keep(peer(publisher), lease, files.iter().map(|entry| (entry, all_keys(entry))))
}

fn search(records: &Records, words: &str, now: Instant) -> Vec<(String, usize)> {
    let found = records.find(&Query::words(words).unwrap(), now, 100);
    found.into_iter().map(|found| (found.entry.name.to_string(), found.peers.len())).collect()
}

#[test]
fn files_of_several_publishers_come_together_and_go_one_by_one() {
    let (mut records, now) = (Records::new(Limits::default()), Instant::now());
    let (report, notes) = (entry("annual report.pdf", "1"), entry("report notes.txt", "2"));
    keep(&mut records, 1, now, &[report.clone(), notes.clone()]);
    keep(&mut records, 2, now, std::slice::from_ref(&report));
    assert_eq!(
        search(&records, "report", now),
        [("annual report.pdf".into(), 2), ("report notes.txt".into(), 1)]
    );
    assert_eq!(search(&records, "report annual", now), [("annual report.pdf".into(), 2)]);
    assert_eq!(records.find(&Query::Name(notes.name.clone()), now, 9)[0].peers, [address(1)]);
    assert_eq!(records.find(&Query::Content(report.content), now, 9)[0].entry, report);

    records.forget(peer(1), [&report]);
    assert_eq!(search(&records, "annual", now), [("annual report.pdf".into(), 1)]);
    records.leave(peer(2));
    assert_eq!(search(&records, "annual", now), []);
    assert_eq!(records.files(peer(1)), 1);
}

#[test]
fn who_does_not_renew_is_not_found_and_then_forgotten() {
    let (mut records, now) = (Records::new(Limits::default()), Instant::now());
    keep(&mut records, 1, now, &[entry("a.txt", "1")]);
    keep(&mut records, 2, now, &[entry("a.txt", "1")]);
    let later = now + LIFE - Duration::from_secs(1);
    assert_eq!(records.renew(peer(2), Lease::new(address(9), later, LIFE)), 1);
    assert_eq!(search(&records, "txt", later), [("a.txt".into(), 2)]);
    let dead = now + LIFE;
    assert_eq!(records.find(&Query::words("txt").unwrap(), dead, 9)[0].peers, [address(9)]);
    records.expire(dead);
    assert_eq!((records.files(peer(1)), records.files(peer(2)), records.len()), (0, 1, 4));
    assert_eq!(
        records.renew(peer(1), Lease::new(address(1), dead, LIFE)),
        0,
        "it is to tell everything again"
    );
}

#[test]
fn a_popular_word_takes_no_more_but_the_file_is_found_otherwise() {
    let (mut records, now) = (Records::new(small()), Instant::now());
    for publisher in 1..=3 {
        let kept = keep(&mut records, publisher, now, &[entry(&format!("{publisher}.pdf"), "x")]);
        assert_eq!(kept, StoreOutcome { files: 1, refused: 0 });
    }
    let more = entry("4.pdf", "y");
    assert_eq!(
        keep(&mut records, 4, now, std::slice::from_ref(&more)),
        StoreOutcome { files: 1, refused: 1 }
    );
    assert_eq!(search(&records, "pdf", now).len(), 3);
    assert_eq!(records.find(&Query::Name(more.name.clone()), now, 9).len(), 1);
    assert_eq!(search(&records, "4", now).len(), 1);
}

#[test]
fn nobody_fills_a_peer() {
    let (mut records, now) = (Records::new(small()), Instant::now());
    let files: Vec<_> = (0..50).map(|number| entry(&format!("{number}"), &number.to_string())).collect();
    let kept = keep(&mut records, 1, now, &files);
    assert!(kept.files < 50 && kept.refused > 0, "{kept:?}");
    keep(&mut records, 2, now, &files);
    assert!(records.bytes <= 8_000, "{}", records.bytes);
    keep(&mut records, 3, now, &[]);
    keep(&mut records, 4, now, &[]);
    assert_eq!(
        keep(&mut records, 5, now, &files[..1]),
        StoreOutcome { files: 0, refused: 3 },
        "there are too many"
    );
    records.leave(peer(1));
    records.leave(peer(2));
    assert_eq!((records.bytes, records.len()), (0, 0));
    assert_eq!(keep(&mut records, 5, now, &files[..1]).files, 1);
}

/// A step of a test against a simple model.
#[derive(Debug, Clone)]
enum Step {
    Keep(u8, u8),
    Forget(u8, u8),
    Renew(u8),
    Leave(u8),
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (peer, file) = (0..4u8, 0..6u8);
    prop_oneof![
        4 => (peer.clone(), file.clone()).prop_map(|(peer, file)| Step::Keep(peer, file)),
        2 => (peer.clone(), file).prop_map(|(peer, file)| Step::Forget(peer, file)),
        1 => peer.clone().prop_map(Step::Renew),
        1 => peer.prop_map(Step::Leave),
        2 => (0..80u8).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn what_is_found_is_what_was_kept_and_renewed(steps in prop::collection::vec(step(), 0..60)) {
        let names = ["a one", "b one", "c two", "d two", "e three", "one two"];
        let files: Vec<_> = names.iter().map(|name| entry(name, name)).collect();
        let (mut records, mut now) = (Records::new(Limits::default()), Instant::now());
        let mut model: HashMap<u8, (Instant, BTreeSet<u8>)> = HashMap::new();
        for step in steps {
            match step {
                Step::Keep(who, file) => {
                    keep(&mut records, who, now, &files[usize::from(file)..=usize::from(file)]);
                    let held = model.entry(who).or_insert_with(|| (now, BTreeSet::new()));
                    (held.0, _) = (now + LIFE, held.1.insert(file));
                }
                Step::Forget(who, file) => {
                    records.forget(peer(who), [&files[usize::from(file)]]);
                    model.get_mut(&who).map(|held| held.1.remove(&file));
                }
                Step::Renew(who) => {
                    records.renew(peer(who), Lease::new(address(who), now, LIFE));
                    model.entry(who).and_modify(|held| held.0 = now + LIFE);
                }
                Step::Leave(who) => {
                    records.leave(peer(who));
                    model.remove(&who);
                }
                Step::Wait(seconds) => {
                    now += Duration::from_secs(seconds.into());
                    records.expire(now);
                    model.retain(|_, held| held.0 > now);
                }
            }
        }
        for (at, file) in files.iter().enumerate() {
            let who: BTreeSet<_> = model.iter().filter(|(_, held)| held.1.contains(&(at as u8))).map(|(who, _)| address(*who)).collect();
            let found = records.find(&Query::Name(file.name.clone()), now, 9);
            let peers: BTreeSet<_> = found.iter().flat_map(|found| found.peers.clone()).collect();
            prop_assert_eq!(peers, who);
        }
        (0..4).for_each(|who| records.leave(peer(who)));
        prop_assert_eq!((records.len(), records.bytes), (0, 0));
    }
}
