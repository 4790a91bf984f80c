//! `nstar doctor --apply` on a terminal: it asks, and sets nothing unless the answer is yes.

use std::ffi::OsStr;

use crate::common::support::{Place, is_root_or_skip, tool_program};
use crate::observe::far::succeeds;
use crate::terminal::TERMINAL;

/// A setting of a network namespace of the test's own is a fault; what is in `/sys` is hidden, and stays as it is.
const ANSWERED: &str = r#"
nstar=$1
mount -t tmpfs none /sys || exit 77
echo 64 > /proc/sys/net/core/somaxconn || exit 77
show() {
    script=absent
    test -e undo.sh && script=present
    echo "$1: somaxconn $(cat /proc/sys/net/core/somaxconn), script $script"
}
for action in 'answer n' 'answer ' 'answer maybe' 'hang up' 'answer y'; do
    python3 terminal.py "$action" '[y/N]' "$nstar" doctor --apply --undo-script undo.sh
    cat stdout screen
    show "after '$action'"
done
"$nstar" doctor --undo --undo-script undo.sh
show 'after undo'
"#;

#[test]
fn on_a_terminal_it_is_asked_and_nothing_but_yes_sets_anything() {
    let test = "on_a_terminal_it_is_asked_and_nothing_but_yes_sets_anything";
    if !is_root_or_skip(test) {
        return;
    }
    if !succeeds(&["unshare", "-n", "-m", "true"]) {
        eprintln!("SKIPPED {test}: no namespaces of its own are to be had here");
        return;
    }
    let place = Place::beside_others();
    place.write("terminal.py", TERMINAL);
    let nstar = tool_program();
    let words = ["unshare", "-n", "-m", "sh", "-c", ANSWERED, "sh"].map(OsStr::new);
    let outcome = place.call(words.into_iter().chain([nstar.as_os_str()])).run();
    if outcome.status.code() == Some(77) {
        eprintln!("SKIPPED {test}: settings of a namespace cannot be changed here\n{outcome}");
        return;
    }
    let told = |words: &str| outcome.stdout.matches(words).count();
    assert_eq!(told("net.core.somaxconn: 64 -> 4096"), 5, "each time it says what it would set: {outcome}");
    assert_eq!(told("which puts everything back. Set it? [y/N]"), 5, "and asks: {outcome}");
    assert_eq!(told("Nothing was set."), 4, "{outcome}");
    outcome
        .says("after 'answer n': somaxconn 64, script absent")
        .says("after 'answer ': somaxconn 64, script absent")
        .says("after 'answer maybe': somaxconn 64, script absent")
        .says("after 'hang up': somaxconn 64, script absent")
        .says("after 'answer y': somaxconn 4096, script present")
        .says("net.core.somaxconn: 4096 -> 64")
        .says("after undo: somaxconn 64, script absent")
        .has_not_panicked();
}
