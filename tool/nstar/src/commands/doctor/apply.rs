//! Sets what mends a host. The script that puts it back is there before the first setting is changed.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use ::sweep::doctor::{Diagnosis, SettingError, Settings};
use analysis::doctor::{Change, Setting, Undo, left_alone, remedies};

use super::{exit_of, script};
use crate::{
    exit::{self, Exit, Failure},
    output,
};

/// Fails where nothing could be applied, whatever is found.
pub(super) fn check(script: &Path, yes: bool) -> Result<(), Failure> {
    if !yes && !asks() {
        return Err(Failure::usage(
            "--apply asks before it sets anything, and there is no terminal: add --yes",
        ));
    }
    script::check_is_new(script)
}

fn asks() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Sets what mends what was found.
pub(super) fn apply(
    settings: &Settings,
    found: &Diagnosis,
    (script, yes): (&Path, bool),
) -> Result<Exit, Failure> {
    let here = &found.here;
    let (changes, refused) = plan(settings, remedies(&here.faults, &here.facts));
    refused.iter().for_each(exit::warn);
    if changes.is_empty() {
        return match refused.is_empty() {
            true => {
                output::print(report::undo::NOTHING_TO_SET)?;
                Ok(exit_of(found))
            }
            false => Err(Failure::failed(
                "nothing could be set. Run it as root, on the host and not in a container",
            )),
        };
    }
    output::print(&report::undo::planned(&changes))?;
    if !yes && !is_wanted(script) {
        output::print(report::undo::NOTHING_SET)?;
        return Ok(exit_of(found));
    }
    let failed = carry_out(settings, script, changes.clone())?;
    failed.iter().for_each(exit::warn);
    let left = left_alone(&here.faults, &here.facts);
    output::print(&report::undo::applied(&changes, (failed.len(), left), &script.display().to_string()))?;
    Ok(if failed.is_empty() && refused.is_empty() { Exit::Done } else { Exit::Failed })
}

/// What to change, and what may not be.
fn plan(settings: &Settings, wanted: Vec<(Setting, String)>) -> (Vec<Change>, Vec<SettingError>) {
    let (mut changes, mut refused) = (Vec::new(), Vec::new());
    for (setting, after) in wanted {
        match settings.check_may_set(setting).and_then(|()| settings.value(setting)) {
            Ok(before) if before == after => {}
            Ok(before) => changes.push(Change { setting, before, after }),
            Err(error) => refused.push(error),
        }
    }
    // What could not be put back is not touched.
    changes.retain(Change::is_plain);
    (changes, refused)
}

fn is_wanted(script: &Path) -> bool {
    exit::say(&report::undo::question(&script.display().to_string()));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer).is_ok();
    read && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Writes the script, then sets everything. Returns what did not get its value.
fn carry_out(settings: &Settings, script: &Path, changes: Vec<Change>) -> Result<Vec<SettingError>, Failure> {
    let of_network = changes.iter().any(|change| change.setting.is_of_network());
    let undo = Undo { network: settings.network().filter(|_| of_network), changes };
    script::write(script, &undo)?;
    Ok(undo.changes.iter().filter_map(|of| settings.set(of.setting, &of.after).err()).collect())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

    use super::super::undo::put_back;
    use super::*;

    /// A host whose listen queues are short and whose large pages are given to all.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            let host = Self(tempfile::tempdir().expect("a folder"));
            host.write(Setting::ListenQueue, "128\n");
            host.write(Setting::HugePages, "[always] madvise never\n");
            host
        }

        fn file(&self, setting: Setting) -> PathBuf {
            self.0.path().join(setting.path().trim_start_matches('/'))
        }

        fn write(&self, setting: Setting, text: &str) {
            fs::create_dir_all(self.file(setting).parent().expect("a folder")).expect("a folder");
            fs::write(self.file(setting), text).expect("a file");
        }

        fn settings(&self) -> Settings {
            Settings::under(self.0.path())
        }

        fn script(&self) -> PathBuf {
            self.0.path().join("state/nstar/undo.sh")
        }

        fn wanted() -> Vec<(Setting, String)> {
            vec![(Setting::ListenQueue, "4096".into()), (Setting::HugePages, "madvise".into())]
        }

        fn apply(&self) -> Result<Vec<SettingError>, Failure> {
            let (changes, refused) = plan(&self.settings(), Self::wanted());
            assert!(refused.is_empty(), "{refused:?}");
            carry_out(&self.settings(), &self.script(), changes)
        }

        fn values(&self) -> [String; 2] {
            [Setting::ListenQueue, Setting::HugePages].map(|of| self.settings().value(of).expect("a value"))
        }
    }

    #[test]
    fn what_is_applied_is_put_back_and_the_script_is_its_owners_alone() {
        let host = Host::new();
        assert!(host.apply().expect("it is applied").is_empty());
        assert_eq!(host.values(), ["4096", "madvise"]);
        let mode = fs::metadata(host.script()).expect("a script").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let undo = script::read(&host.script()).expect("it is ours");
        assert!(put_back(&host.settings(), &undo).expect("here").is_empty());
        assert_eq!(host.values(), ["128", "always"]);
    }

    #[test]
    fn applying_twice_keeps_what_the_first_script_puts_back() {
        let host = Host::new();
        host.apply().expect("it is applied");
        host.write(Setting::ListenQueue, "200\n");
        let before = fs::read_to_string(host.script()).expect("a script");
        let again = host.apply().expect_err("it is refused").to_string();
        assert!(again.contains("--undo first"), "{again}");
        assert_eq!(fs::read_to_string(host.script()).expect("a script"), before);
        assert_eq!(host.values()[0], "200", "nothing was set");
        assert!(check(&host.script(), true).is_err());
    }

    #[test]
    fn an_apply_that_was_interrupted_is_put_back_whole() {
        let host = Host::new();
        let (changes, _) = plan(&host.settings(), Host::wanted());
        script::write(&host.script(), &Undo { network: None, changes }).expect("a script");
        host.write(Setting::ListenQueue, "4096\n");
        let undo = script::read(&host.script()).expect("it is ours");
        assert!(put_back(&host.settings(), &undo).expect("here").is_empty());
        assert_eq!(host.values(), ["128", "always"]);
    }

    #[test]
    fn where_no_script_can_be_written_nothing_is_set() {
        let host = Host::new();
        fs::write(host.0.path().join("state"), "a file where a folder is wanted").expect("a file");
        assert!(host.apply().is_err());
        assert_eq!(host.values(), ["128", "always"]);
    }

    #[test]
    fn what_may_not_be_set_is_told() {
        let host = Host::new();
        let wanted = vec![(Setting::Clock, "tsc".to_owned()), (Setting::ListenQueue, "128".to_owned())];
        let (changes, refused) = plan(&host.settings(), wanted);
        assert!(changes.is_empty(), "it has that value already: {changes:?}");
        assert!(refused.len() == 1 && refused[0].to_string().contains("current_clocksource"), "{refused:?}");
    }

    #[test]
    fn a_script_that_others_may_have_written_is_refused() {
        let host = Host::new();
        host.apply().expect("it is applied");
        let script = host.script();
        let refusal = || script::read(&script).expect_err("it is refused").to_string();
        for mode in [0o720, 0o702] {
            fs::set_permissions(&script, fs::Permissions::from_mode(mode)).expect("permissions");
            assert!(refusal().contains("others than its owner"), "{}", refusal());
        }
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("permissions");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&script, Some(65_534), None).expect("another owner");
            assert!(refusal().contains("another user"), "{}", refusal());
            std::os::unix::fs::chown(&script, Some(0), None).expect("its owner");
        } else {
            eprintln!("SKIPPED: only root can give a file to another user");
        }
        let link = host.0.path().join("link");
        std::os::unix::fs::symlink(&script, &link).expect("a link");
        assert!(script::read(&link).is_err(), "links lead anywhere");
        assert!(script::read(host.0.path()).is_err(), "a folder");
        let text = fs::read_to_string(&script).expect("text").replace("'128'", "'$(reboot)'");
        fs::write(&script, text).expect("it is changed");
        assert!(refusal().contains("not as nstar wrote it"), "{}", refusal());
        assert_eq!(host.values()[0], "4096");
    }
}
