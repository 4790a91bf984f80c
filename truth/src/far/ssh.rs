//! What sshd on the other host and ssh here are told, with keys that nobody else has.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use super::NAME;
use crate::{
    Trouble,
    process::{find, run},
};

/// The port of sshd: nothing else listens there.
pub(super) const PORT: u16 = 22;
/// The folder of programs that come first here.
pub(super) const PROGRAMS: &str = "bin";
/// The folder for temporary files of nstar.
pub(super) const TEMPORARY: &str = "tmp";

/// The folder of programs that come first on the other host.
const FAR_PROGRAMS: &str = "far-bin";

/// Runs a command where it has mounts and a host name of its own, with the file that is given first in the place of the
/// number that tells one start of a machine from another. sshd wants a folder that its package leaves to the init system.
const BEGIN: &str = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && { test -d /run/sshd || \
                     { mount -t tmpfs none /run && mkdir -m 755 /run/sshd; }; } && exec \"$@\"";

/// The command that runs sshd, with the files that are laid out in a folder.
pub(super) fn daemon(folder: &Path, sshd: &str) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let begin = format!("hostname {NAME} && {BEGIN}");
    let (boot_id, configuration) = (at("boot-id"), at("sshd_config"));
    let words = ["unshare", "--mount", "--uts", "sh", "-c", &begin, &boot_id, sshd, "-D", "-e", "-f"];
    words.into_iter().chain([configuration.as_str()]).map(str::to_owned).collect()
}

/// Writes keys and configurations of both ends into a folder, and installs nstar on the other host.
pub(super) fn lay_out(folder: &Path, address: Ipv4Addr, nstar: &Path) -> Result<(), Trouble> {
    let ssh = find("ssh", "openssh-client")?;
    let at = |name: &str| folder.join(name).display().to_string();
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).map_err(Trouble::io(format!("write {}", at(name))))
    };
    for name in ["host", "user"] {
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &at(name)])?;
    }
    for name in [PROGRAMS, TEMPORARY, FAR_PROGRAMS] {
        fs::create_dir(folder.join(name)).map_err(Trouble::io(format!("make {}", at(name))))?;
    }
    let nstar = fs::canonicalize(nstar).map_err(Trouble::io(format!("find {}", nstar.display())))?;
    symlink(nstar, folder.join(FAR_PROGRAMS).join("nstar")).map_err(Trouble::io("make a link to nstar"))?;
    let key = fs::read_to_string(folder.join("host.pub")).map_err(Trouble::io("read a key"))?;
    write("known_hosts", format!("{address} {key}"))?;
    // No other host has it.
    write("boot-id", format!("{NAME}-{address}\n"))?;
    write("sshd_config", sshd_config(folder, address))?;
    write("ssh_config", ssh_config(folder))?;
    // ssh reads its configuration from the home of who runs it, whatever the environment says.
    let program = format!("{PROGRAMS}/ssh");
    write(&program, format!("#!/bin/sh\nexec {ssh} -F {} \"$@\"\n", at("ssh_config")))?;
    let runs = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join(&program), runs).map_err(Trouble::io("make a program of a file"))
}

fn sshd_config(folder: &Path, address: Ipv4Addr) -> String {
    let folder = folder.display();
    format!(
        "Port {PORT}\nListenAddress {address}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n\
         AllowUsers root\nAuthenticationMethods publickey\nPermitRootLogin prohibit-password\nStrictModes no\n\
         UsePAM no\nPidFile none\nSetEnv PATH={folder}/{FAR_PROGRAMS}:/usr/bin:/bin\n"
    )
}

fn ssh_config(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known_hosts\n\
         GlobalKnownHostsFile none\nStrictHostKeyChecking yes\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sshd_is_started_with_the_files_of_its_folder() {
        let words = daemon(Path::new("/tmp/x"), "/usr/sbin/sshd");
        assert_eq!(words[..5], ["unshare", "--mount", "--uts", "sh", "-c"]);
        assert!(words[5].starts_with("hostname far && mount --bind "), "{}", words[5]);
        assert_eq!(words[6..], ["/tmp/x/boot-id", "/usr/sbin/sshd", "-D", "-e", "-f", "/tmp/x/sshd_config"]);
    }

    #[test]
    fn only_the_key_of_this_host_is_let_in_and_only_this_host_is_known() {
        let (server, client) =
            (sshd_config(Path::new("/tmp/x"), Ipv4Addr::new(198, 19, 0, 2)), ssh_config(Path::new("/tmp/x")));
        assert!(server.starts_with("Port 22\nListenAddress 198.19.0.2\nHostKey /tmp/x/host\n"), "{server}");
        let keys = "\nAuthorizedKeysFile /tmp/x/user.pub\nAllowUsers root\nAuthenticationMethods publickey\n";
        assert!(server.contains(keys), "{server}");
        assert!(client.contains("\nIdentitiesOnly yes\nUserKnownHostsFile /tmp/x/known_hosts\n"), "{client}");
        assert!(client.ends_with("StrictHostKeyChecking yes\n"), "{client}");
    }
}
