//! Reads and writes settings of the kernel.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use analysis::doctor::Setting;

use crate::kernel_files::{KernelPaths, read};

/// The settings of this host; network settings are those of this process's network namespace.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    paths: KernelPaths,
}

/// Why a setting does not have the value that it was given.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// It could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The kernel took the value and has another.
    #[error("{path} was set to {wanted} and is {found}")]
    Other {
        /// The file.
        path: String,
        /// The value that it was given.
        wanted: String,
        /// The value that it has.
        found: String,
    },
}

impl Settings {
    /// Those in files below `root`, laid out as the kernel has them: `root/proc`, `root/sys`.
    #[must_use]
    pub fn under(root: &Path) -> Self {
        let (proc, sys) = (root.join("proc"), root.join("sys"));
        Self { paths: KernelPaths { cgroup: sys.join("fs/cgroup"), proc, sys } }
    }

    /// The value now, with single spaces between its words; of a list to choose from, the chosen word.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn value(&self, setting: Setting) -> Result<String, SettingError> {
        let text = read(&self.path(setting)).map_err(|source| failed(setting, source))?;
        let chosen =
            text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
        Ok(chosen.unwrap_or(&text).split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Checks that this process may set it, and changes nothing.
    ///
    /// # Errors
    /// Why not.
    pub fn check_may_set(&self, setting: Setting) -> Result<(), SettingError> {
        let opened = OpenOptions::new().write(true).open(self.path(setting));
        opened.map(drop).map_err(|source| failed(setting, source))
    }

    /// Sets it, and looks whether it has that value then.
    ///
    /// # Errors
    /// When the file cannot be written, or has another value afterwards.
    pub fn set(&self, setting: Setting, value: &str) -> Result<(), SettingError> {
        let opened = OpenOptions::new().write(true).truncate(true).open(self.path(setting));
        // In one write: the kernel takes each as a whole value.
        let written = opened.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|source| failed(setting, source))?;
        let found = self.value(setting)?;
        let other =
            || SettingError::Other { path: setting.path(), wanted: value.to_owned(), found: found.clone() };
        if found == value { Ok(()) } else { Err(other()) }
    }

    /// The network namespace of this process, as the kernel names it: `net:[4026531840]`.
    #[must_use]
    pub fn network(&self) -> Option<String> {
        let name = fs::read_link(self.paths.proc.join("self/ns/net")).ok()?;
        name.to_str().map(str::to_owned)
    }

    fn path(&self, setting: Setting) -> PathBuf {
        let path = setting.path();
        match path.strip_prefix("/proc/") {
            Some(rest) => self.paths.proc.join(rest),
            None => self.paths.sys.join(path.trim_start_matches("/sys/")),
        }
    }
}

fn failed(setting: Setting, source: io::Error) -> SettingError {
    SettingError::Io { path: setting.path(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_read_checked_and_set() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings::under(root.path());
        let lay_out = |setting: Setting, text: &str| {
            let path = settings.path(setting);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        lay_out(Setting::LocalPorts, "32768\t60999\n");
        lay_out(Setting::HugePages, "[always] madvise never\n");
        assert_eq!(settings.value(Setting::LocalPorts).unwrap(), "32768 60999");
        assert_eq!(settings.value(Setting::HugePages).unwrap(), "always");
        settings.check_may_set(Setting::HugePages).unwrap();
        assert_eq!(settings.value(Setting::HugePages).unwrap(), "always", "nothing was changed");
        settings.set(Setting::LocalPorts, "1024 65000").unwrap();
        assert_eq!(settings.value(Setting::LocalPorts).unwrap(), "1024 65000");
        let missing = settings.set(Setting::Clock, "tsc").unwrap_err().to_string();
        assert!(missing.contains("current_clocksource"), "{missing}");
        assert!(settings.check_may_set(Setting::Clock).is_err());
    }
}
