//! The script that puts changed settings back: run by a shell, or read by `nstar doctor --undo`.

use analysis::doctor::{Change, Setting, Undo};

/// Why a text is no script of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UndoScriptError {
    /// It holds something else than what was written, or nstar wrote another kind.
    #[error("it is not as nstar wrote it: put the settings back by hand (it names them), then remove it")]
    Changed,
}

const HEAD: &str = "#!/bin/sh
# nstar.undo/1
# Puts back what `nstar doctor --apply` set. Run it as root, or: nstar doctor --undo
";

const CHECK_NETWORK: &str = r#"if [ "$(readlink /proc/self/ns/net)" != "$network" ]; then
    echo "these are settings of another network namespace: run this where they were set" >&2
    exit 1
fi
"#;

const RESTORE: &str = r#"failed=0
# File, value before, value that was set.
restore() {
    printf '%s\n' "$2" >"$1" || failed=1
}
"#;

const END: &str = r#"[ "$failed" = 0 ] && rm -- "$0"
exit "$failed"
"#;

/// The script. Values that are not plain ([`Change::is_plain`]) have no place in it.
#[must_use]
pub fn script(undo: &Undo) -> String {
    let network = undo.network.as_ref().map(|name| format!("network='{name}'\n{CHECK_NETWORK}"));
    let restore = |of: &Change| format!("restore '{}' '{}' '{}'\n", of.setting.path(), of.before, of.after);
    let changes: String = undo.changes.iter().map(restore).collect();
    [HEAD, &network.unwrap_or_default(), RESTORE, &changes, END].concat()
}

/// Reads a script: only what [`script`] writes, to the last character.
///
/// # Errors
/// When it is anything else.
pub fn read(text: &str) -> Result<Undo, UndoScriptError> {
    let network = text.lines().find_map(|line| line.strip_prefix("network='")?.strip_suffix('\''));
    let undo =
        Undo { network: network.map(str::to_owned), changes: text.lines().filter_map(change).collect() };
    let is_plain =
        undo.changes.iter().all(Change::is_plain) && undo.network.iter().all(|name| !name.contains('\''));
    if is_plain && script(&undo) == text { Ok(undo) } else { Err(UndoScriptError::Changed) }
}

fn change(line: &str) -> Option<Change> {
    let words = line.strip_prefix("restore '")?.strip_suffix('\'')?;
    let mut words = words.split("' '");
    let (path, before, after) = (words.next()?, words.next()?, words.next()?);
    Some(Change { setting: Setting::at(path)?, before: before.to_owned(), after: after.to_owned() })
}

/// A setting by name: `net.core.somaxconn`, or its file.
fn name(setting: Setting) -> String {
    let path = setting.path();
    path.strip_prefix("/proc/sys/").map_or_else(|| path.clone(), |name| name.replace('/', "."))
}

/// Said where no setting mends what was found.
pub const NOTHING_TO_SET: &str = "\nNothing of it is mended by a setting of the kernel.\n";

/// Said where the answer was no.
pub const NOTHING_SET: &str = "Nothing was set.\n";

/// What is about to be set, ending in a newline: `net.core.somaxconn: 128 -> 4096`.
#[must_use]
pub fn planned(changes: &[Change]) -> String {
    let lines = changes.iter().map(|of| line(of.setting, &of.before, &of.after));
    format!("\nTo be set:\n{}", lines.collect::<String>())
}

/// Where settings would mend something that are not set from here, ending in a newline.
#[must_use]
pub fn elsewhere(hosts: &[&str]) -> String {
    let line =
        |host: &&str| format!("Nothing is set on {host} from here. As root there: nstar doctor --apply\n");
    format!("\n{}", hosts.iter().map(line).collect::<String>())
}

/// The question before it is set, with the file of the script.
#[must_use]
pub fn question(script: &str) -> String {
    format!("Before that, {script} is written, which puts everything back. Set it? [y/N]")
}

/// What was set, how to put it back, and what is left to do, ending in a newline. `failed` settings did not take their
/// value, `left` findings were left alone.
#[must_use]
pub fn applied(changes: &[Change], (failed, left): (usize, usize), script: &str) -> String {
    let restart = changes.iter().any(|change| change.setting == Setting::ListenQueue);
    let restart =
        if restart { "Start the server anew: its listen queue keeps its length until then.\n" } else { "" };
    let left = match left {
        0 => String::new(),
        1 => "One finding takes more than a setting: see above.\n".to_owned(),
        some => format!("{some} findings take more than a setting: see above.\n"),
    };
    let (all, set) = (changes.len(), changes.len().saturating_sub(failed));
    format!(
        "Set: {set} of {all}. nstar doctor --undo puts back what was before, as {script} says; so does a restart of the \
         machine.\n{restart}{left}"
    )
}

/// What was put back, ending in a newline.
#[must_use]
pub fn put_back(changes: &[Change], script: &str) -> String {
    let lines = changes.iter().map(|of| line(of.setting, &of.after, &of.before));
    format!("Put back, and {script} is removed:\n{}", lines.collect::<String>())
}

fn line(setting: Setting, from: &str, to: &str) -> String {
    format!("  {}: {from} -> {to}\n", name(setting))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undo() -> Undo {
        let change = |setting, before: &str, after: &str| Change {
            setting,
            before: before.into(),
            after: after.into(),
        };
        let changes = vec![
            change(Setting::LocalPorts, "32768 60999", "1024 65000"),
            change(Setting::Governor { processor: 3 }, "powersave", "performance"),
        ];
        Undo { network: Some("net:[4026531840]".into()), changes }
    }

    #[test]
    fn a_script_is_read_back() {
        let undo = undo();
        assert_eq!(read(&script(&undo)), Ok(undo.clone()));
        let without = Undo { network: None, ..undo };
        assert_eq!(read(&script(&without)), Ok(without));
    }

    #[test]
    fn a_script_that_was_changed_is_refused() {
        let text = script(&undo());
        let changed = [
            String::new(),
            text.replace("nstar.undo/1", "nstar.undo/2"),
            text.replace("scaling_governor", "../../../etc/passwd"),
            text.replace("'powersave'", "'$(reboot)'"),
            text.replace("failed=0", "reboot"),
            format!("{text}restore '/etc/passwd' '1' '2'\n"),
            text.replace("exit \"$failed\"\n", ""),
        ];
        for text in changed {
            assert_eq!(read(&text), Err(UndoScriptError::Changed), "{text}");
        }
    }

    #[test]
    fn what_is_set_elsewhere_is_set_there() {
        let told = elsewhere(&["web", "db"]);
        assert!(told.contains("on web from here. As root there: nstar doctor --apply\n"), "{told}");
        assert!(told.contains("on db from here") && told.ends_with('\n'), "{told}");
    }

    #[test]
    fn changes_have_the_names_that_people_know() {
        let told = planned(&undo().changes);
        assert!(told.contains("net.ipv4.ip_local_port_range: 32768 60999 -> 1024 65000\n"), "{told}");
        assert!(told.contains("cpu3/cpufreq/scaling_governor: powersave -> performance\n"), "{told}");
        let told = put_back(&undo().changes, "undo.sh");
        assert!(told.contains("ip_local_port_range: 1024 65000 -> 32768 60999\n"), "{told}");
        let told = applied(&undo().changes, (1, 1), "undo.sh");
        assert!(
            told.contains("Set: 1 of 2.") && told.contains("One finding") && !told.contains("anew"),
            "{told}"
        );
    }
}
