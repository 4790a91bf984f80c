//! What sshd on the other host and ssh here are told, with keys that nobody else has.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use crate::{
    Trouble,
    process::{find, make_folder, run},
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

/// A host that is reached by ssh: its address, and the folder with its keys.
pub(super) type Known<'a> = (Ipv4Addr, &'a Path);

/// What a command begins with that is killed with the thread that started it: while unshare waits, SIGKILL alone ends it.
const KILLED: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];

/// The command that runs sshd on a host of this name, with the files that are laid out in a folder, and with these
/// options of unshare besides.
pub(super) fn daemon(folder: &Path, sshd: &str, name: &str, apart: &[&str]) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let begin = format!("hostname {name} && {BEGIN}");
    let (boot_id, configuration) = (at("boot-id"), at("sshd_config"));
    let words = ["sh", "-c", &begin, &boot_id, sshd, "-D", "-e", "-f", &configuration];
    let killed = KILLED.into_iter().filter(|_| !apart.is_empty());
    let unshare = ["unshare", "--mount", "--uts"].into_iter().chain(apart.iter().copied());
    killed.chain(unshare).chain(words).map(str::to_owned).collect()
}

/// Writes the keys of both ends and the configuration of sshd into a folder, and installs nstar on the host.
pub(super) fn lay_out(folder: &Path, name: &str, address: Ipv4Addr, nstar: &Path) -> Result<(), Trouble> {
    let at = |name: &str| folder.join(name).display().to_string();
    for name in ["host", "user"] {
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &at(name)])?;
    }
    make_folder(folder, FAR_PROGRAMS)?;
    let nstar = fs::canonicalize(nstar).map_err(Trouble::io(format!("find {}", nstar.display())))?;
    symlink(nstar, folder.join(FAR_PROGRAMS).join("nstar")).map_err(Trouble::io("make a link to nstar"))?;
    let key = fs::read_to_string(folder.join("host.pub")).map_err(Trouble::io("read a key"))?;
    write(folder, "known_hosts", &format!("{address} {key}"))?;
    // No other host has it.
    write(folder, "boot-id", &format!("{name}-{address}\n"))?;
    write(folder, "sshd_config", &sshd_config(folder, address))
}

/// Writes into a folder the program and the configuration by which these hosts are reached.
pub(super) fn lay_out_client(folder: &Path, hosts: &[Known]) -> Result<(), Trouble> {
    let ssh = find("ssh", "openssh-client")?;
    make_folder(folder, PROGRAMS)?;
    make_folder(folder, TEMPORARY)?;
    write(folder, "ssh_config", &ssh_config(hosts))?;
    // ssh reads its configuration from the home of who runs it, whatever the environment says.
    let configuration = folder.join("ssh_config");
    let text = format!("#!/bin/sh\nexec {ssh} -F {} \"$@\"\n", configuration.display());
    write(&folder.join(PROGRAMS), "ssh", &text)?;
    let runs = fs::Permissions::from_mode(0o755);
    fs::set_permissions(program(folder), runs).map_err(Trouble::io("make a program of a file"))
}

/// The program that reaches the hosts.
pub(super) fn program(folder: &Path) -> PathBuf {
    folder.join(PROGRAMS).join("ssh")
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Trouble> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(Trouble::io(format!("write {}", path.display())))
}

fn sshd_config(folder: &Path, address: Ipv4Addr) -> String {
    let folder = folder.display();
    format!(
        "Port {PORT}\nListenAddress {address}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n\
         AllowUsers root\nAuthenticationMethods publickey\nPermitRootLogin prohibit-password\nStrictModes no\n\
         UsePAM no\nPidFile none\nSetEnv PATH={folder}/{FAR_PROGRAMS}:/usr/bin:/bin\n"
    )
}

fn ssh_config(hosts: &[Known]) -> String {
    let of = |(address, folder): &Known| {
        let folder = folder.display();
        format!(
            "Host {address}\nIdentityFile {folder}/user\nIdentitiesOnly yes\n\
             UserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n"
        )
    };
    hosts.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sshd_is_started_with_the_files_of_its_folder() {
        let words = daemon(Path::new("/tmp/x"), "/usr/sbin/sshd", "far", &[]);
        assert_eq!(words[..5], ["unshare", "--mount", "--uts", "sh", "-c"]);
        assert!(words[5].starts_with("hostname far && mount --bind "), "{}", words[5]);
        assert_eq!(words[6..], ["/tmp/x/boot-id", "/usr/sbin/sshd", "-D", "-e", "-f", "/tmp/x/sshd_config"]);
        let apart = daemon(Path::new("/tmp/x"), "/usr/sbin/sshd", "db", &["--pid", "--fork"]);
        assert_eq!(apart[..4], KILLED);
        assert_eq!(apart[4..11], ["unshare", "--mount", "--uts", "--pid", "--fork", "sh", "-c"]);
        assert!(apart[11].starts_with("hostname db && "), "{}", apart[11]);
    }

    #[test]
    fn only_the_key_of_this_host_is_let_in_and_only_this_host_is_known() {
        let (x, y) = (Ipv4Addr::new(198, 19, 0, 2), Ipv4Addr::new(198, 19, 0, 6));
        let server = sshd_config(Path::new("/tmp/x"), x);
        let client = ssh_config(&[(x, Path::new("/tmp/x")), (y, Path::new("/tmp/y"))]);
        assert!(server.starts_with("Port 22\nListenAddress 198.19.0.2\nHostKey /tmp/x/host\n"), "{server}");
        let keys = "\nAuthorizedKeysFile /tmp/x/user.pub\nAllowUsers root\nAuthenticationMethods publickey\n";
        assert!(server.contains(keys), "{server}");
        assert!(client.starts_with("Host 198.19.0.2\nIdentityFile /tmp/x/user\n"), "{client}");
        assert!(client.contains("\nIdentitiesOnly yes\nUserKnownHostsFile /tmp/x/known_hosts\n"), "{client}");
        assert!(client.contains("\nHost 198.19.0.6\nIdentityFile /tmp/y/user\n"), "{client}");
        assert!(client.ends_with("StrictHostKeyChecking yes\n"), "{client}");
    }
}
