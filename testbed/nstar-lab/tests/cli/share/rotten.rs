//! A peer whose disk changed a file that it shares.

use std::fs;

use super::Group;

#[test]
fn a_copy_that_rotted_at_the_peer_is_told_and_the_file_got_from_others() {
    let group = Group::new();
    let (_ann, _) = group.peer("ann", &[]);
    let (bob, bob_at) = group.peer("bob", &[]);
    let (right, wrong) = (vec![1; 5_000], vec![2; 5_000]);
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_string();
    group.place.write("bob/own.bin", &wrong);
    group.ask_until(&bob_at, &["search", "own.bin"]);
    bob.signal("TERM");
    bob.finish().exits(0);
    // As if the file had been intact when it was hashed.
    let memory = group.place.path("bob/.nstar/memory");
    let kept = fs::read_to_string(&memory).expect("what is remembered");
    fs::write(&memory, kept.replace(&hash(&wrong), &hash(&right))).expect("a memory");
    let (_bob, bob_at) = group.peer("bob", &[]);
    group.ask_until(&bob_at, &["search", "own.bin"]);

    group.place.write("ann/right.bin", &right);
    group.ask_until(&bob_at, &["search", "right.bin"]);
    let got = group.ask(&bob_at, &["get", &hash(&right), "-o", "copy.bin"]).exits(0);
    got.complains("own copy has changed").says("5000 bytes");
    assert_eq!(fs::read(group.place.path("copy.bin")).expect("a copy"), right);
    let listed = group.ask(&bob_at, &["list"]).exits(0);
    listed.says(&hash(&wrong)).says(&hash(&right));
}
