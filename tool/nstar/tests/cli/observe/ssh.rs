//! A real sshd on another host, with keys of its own.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use super::{
    far::{Daemon, Far, HIDDEN, nstar_is_hidden_or_skip, succeeds},
    is_held_by_python_on_far, warnings,
};
use crate::common::{
    support::{Outcome, Place, free_port, is_root_or_skip, tool_program},
    verdict::{ONE_MUTEX, is_said, kind, verdict},
};

const SSHD: &str = "/usr/sbin/sshd";

/// What is special about a host.
#[derive(Default)]
struct Special {
    /// Programs that come first there, by name.
    programs: Vec<(&'static str, String)>,
    /// How its temporary folder is mounted, if it is.
    mounted: Option<&'static str>,
}

/// A host that ssh reaches.
struct SshHost {
    far: Far,
    address: SocketAddr,
    _sshd: Daemon,
}

impl SshHost {
    /// `None` where that is not possible; then it says so.
    fn start(place: &Place, test: &str, special: &Special) -> Option<Self> {
        let installed = Path::new(SSHD).exists();
        assert!(
            installed || std::env::var_os("CI").is_none(),
            "{test} needs openssh-server, and CI must have it"
        );
        if !installed {
            eprintln!("SKIPPED {test}: it needs openssh-server; see make setup");
            return None;
        }
        let far = Far::serving(place, ONE_MUTEX, &[])?;
        let address = SocketAddr::from((far.network.address, free_port()));
        make_keys(place);
        let config = place.write("sshd_config", sshd_config(place, address));
        fs::create_dir_all("/run/sshd").expect("sshd's own folder");
        fs::create_dir_all(place.path("far-tmp")).expect("a folder");
        fs::create_dir_all(place.path("far-bin")).expect("a folder");
        for (name, content) in &special.programs {
            program(place, &format!("far-bin/{name}"), content);
        }
        let mount = special.mounted.map_or("true".to_owned(), |options| {
            format!("mount -t tmpfs -o {options} none {}", place.path("far-tmp").display())
        });
        let script = format!("{mount} && exec {SSHD} -D -e -f {}", config.display());
        let sshd = Daemon::start(far.network.on_far(place, &["sh", "-c", &script]));
        let sshd = sshd.once(|| TcpStream::connect(address).is_ok());
        make_client(place, address);
        Some(Self { far, address, _sshd: sshd })
    }

    fn url(&self) -> String {
        format!("ssh://{}", self.address)
    }

    /// nstar with a load of its server, as seen by ssh alone.
    fn load(&self, place: &Place, more: &[&str]) -> Outcome {
        self.load_through(place, &self.url(), more)
    }

    fn load_through(&self, place: &Place, ssh_url: &str, more: &[&str]) -> Outcome {
        let url = self.far.url();
        let load = ["load", &url, "-c", "4", "-d", "1s", "-o", "run.json", "--observe", ssh_url];
        let outcome = run(place, load.iter().chain(more).copied());
        println!("{outcome}");
        outcome
    }
}

/// nstar that sees nothing of this machine, with ssh as the test configures it.
fn run<'a>(place: &Place, words: impl Iterator<Item = &'a str>) -> Outcome {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("PATH={}:{path}", place.path("bin").display());
    let temporary = place.path("here-tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    let temporary = format!("TMPDIR={}", temporary.display());
    let wrapper = HIDDEN.into_iter().chain(["env", &path, &temporary]);
    place.wrapped(wrapper.collect::<Vec<_>>(), words.collect::<Vec<_>>()).run()
}

fn make_keys(place: &Place) {
    for name in ["host", "user", "stranger"] {
        let file = place.path(name).display().to_string();
        assert!(succeeds(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &file]), "ssh-keygen");
    }
    fs::copy(place.path("user.pub"), place.path("authorized")).expect("a key");
}

fn sshd_config(place: &Place, address: SocketAddr) -> String {
    format!(
        "ListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
         PermitRootLogin prohibit-password\nSetEnv PATH={}:/usr/bin:/bin TMPDIR={} XDG_CACHE_HOME={}\n",
        place.path("host").display(),
        place.path("authorized").display(),
        place.path("far-bin").display(),
        place.path("far-tmp").display(),
        place.path("far-cache").display(),
    )
}

/// ssh reads its configuration from the home of the user who runs it, whatever the environment says: the test puts an `ssh`
/// first that is told of another.
fn make_client(place: &Place, address: SocketAddr) {
    let key = fs::read_to_string(place.path("host.pub")).expect("a key");
    place.write("known_hosts", format!("[{}]:{} {key}", address.ip(), address.port()));
    let config = |user: &str, known: &str| {
        format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nGlobalKnownHostsFile none\n\
             StrictHostKeyChecking yes\n",
            place.path(user).display(),
            place.path(known).display()
        )
    };
    place.write("ssh_config", config("user", "known_hosts"));
    place.write("stranger_config", config("stranger", "known_hosts"));
    place.write("unknown_config", config("user", "no_known_hosts"));
    use_config(place, "ssh_config");
}

fn use_config(place: &Place, name: &str) {
    let config = place.path(name).display().to_string();
    program(place, "bin/ssh", &format!("exec /usr/bin/ssh -F {config} \"$@\""));
}

/// A program of the shell.
fn program(place: &Place, name: &str, script: &str) {
    let path = place.write(name, format!("#!/bin/sh\n{script}\n"));
    assert!(Command::new("chmod").arg("+x").arg(path).status().expect("chmod").success());
}

/// The entries of a folder.
fn entries(place: &Place, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(folder)).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn can_run(test: &str) -> bool {
    is_root_or_skip(test) && nstar_is_hidden_or_skip(test)
}

#[test]
fn nstar_is_taken_along_names_the_holder_with_its_host_and_leaves_nothing() {
    let test = "nstar_is_taken_along_names_the_holder_with_its_host_and_leaves_nothing";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(host) = SshHost::start(&place, test, &Special::default()) else { return };
    for _ in 0..3 {
        let (server, observe) = (host.far.url(), host.url());
        let sweep = ["sweep", &server, "-c", "1..16", "-d", "2s", "--observe", &observe];
        println!("{}", run(&place, sweep.into_iter()));
        assert_eq!(entries(&place, "far-tmp"), [""; 0], "what was copied is gone");
        assert_eq!(entries(&place, "here-tmp"), [""; 0], "so is the socket of the connection");
        let run = place.run_file();
        if verdict(&run)["inconclusive"].as_array().expect("reasons").is_empty() && kind(&run) != "unknown" {
            if is_said(&run, &["lock", "single-thread"]) {
                is_held_by_python_on_far(&run);
            }
            return;
        }
    }
    eprintln!("UNDECIDED: this machine was too busy for a cause to be named, and every answer said so");
}

/// The same host makes half of the load and watches the server; the wrong key is told for either.
#[test]
fn load_is_made_by_a_host_that_ssh_reaches() {
    let test = "load_is_made_by_a_host_that_ssh_reaches";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(host) = SshHost::start(&place, test, &Special::default()) else { return };
    let more = ["--generator", &host.url(), "--generator", "here"];
    let outcome = host.load(&place, &more).exits(0);
    assert!(!outcome.stderr.contains("--generator"), "{outcome}");
    let run = place.run_file();
    let names: Vec<_> = run["load"]["generators"].as_array().expect("generators").iter().collect();
    assert!(names.len() == 2 && names[0]["name"] == "far", "{names:?}");
    assert_eq!(entries(&place, "far-tmp"), [""; 0], "what was copied is gone");
    use_config(&place, "stranger_config");
    let url = host.far.url();
    let generator = host.url();
    let load = ["load", &url, "-d", "1s", "--generator", &generator];
    self::run(&place, load.into_iter()).exits(1).complains("--generator: ").complains("cannot be reached");
}

#[test]
fn nstar_of_the_same_version_there_is_used_and_of_another_is_not() {
    let test = "nstar_of_the_same_version_there_is_used_and_of_another_is_not";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let (tool, used) = (tool_program().display().to_string(), place.path("used"));
    let same = Special {
        programs: vec![("nstar", format!("echo $$ >>{}\nexec {tool} \"$@\"", used.display()))],
        mounted: Some("size=4k"),
    };
    let Some(host) = SshHost::start(&place, test, &same) else { return };
    host.load(&place, &[]).exits(0);
    assert_eq!(fs::read_to_string(&used).expect("it was used").lines().count(), 2, "asked, then run");
    drop(host);
    // Its turn, before another is waited for.
    drop(place);
    let place = Place::beside_sleepers();
    let old = "echo nstar-agent 0.0.9 protocol 0".to_owned();
    let other = Special { programs: vec![("nstar", old)], ..Special::default() };
    let Some(host) = SshHost::start(&place, test, &other) else { return };
    host.load(&place, &[]).exits(0);
    let run = place.run_file();
    let ended = ["\"ended\"", "server-not-found"].iter().any(|trouble| warnings(&run).contains(trouble));
    assert!(!ended, "{}", warnings(&run));
}

/// The temporary folder there is too small for a copy, so that only one that was kept can run.
#[test]
fn a_copy_that_was_kept_is_used_again_and_a_spoilt_one_is_not() {
    let test = "a_copy_that_was_kept_is_used_again_and_a_spoilt_one_is_not";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let special = Special { mounted: Some("size=4k"), ..Special::default() };
    let Some(host) = SshHost::start(&place, test, &special) else { return };
    host.load(&place, &[]).exits(1).complains("could not be copied");
    host.load(&place, &["--keep-copy"]).exits(0);
    let folder = format!("far-cache/nstar/agent-{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(entries(&place, &folder), ["nstar"]);
    let kept = place.path(&folder).join("nstar");
    let mode = fs::metadata(&kept).expect("a copy").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
    host.load(&place, &[]).exits(0);
    fs::write(&kept, "#!/bin/sh\necho spoilt").expect("a file");
    host.load(&place, &[]).exits(1).complains("could not be copied");
    host.load(&place, &["--keep-copy", "--generator", &host.url()]).exits(0);
    let replaced = Command::new(&kept).arg("--version").output().expect("a program");
    assert!(replaced.status.success(), "{replaced:?}");
    let [copied, whole] = [&kept, &tool_program()].map(|path| fs::metadata(path).expect("a file").len());
    assert!(copied < whole, "what only debuggers read is not copied: {copied} of {whole}");
    assert_eq!(entries(&place, &folder), ["nstar"]);
    assert_eq!(entries(&place, "here-tmp"), [""; 0]);
}

#[test]
fn a_host_that_cannot_be_reached_is_told_in_the_words_of_ssh() {
    let test = "a_host_that_cannot_be_reached_is_told_in_the_words_of_ssh";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let Some(host) = SshHost::start(&place, test, &Special::default()) else { return };
    let closed = format!("ssh://{}", SocketAddr::from((host.far.network.address, 1)));
    host.load_through(&place, &closed, &[]).exits(1).complains("cannot be reached").complains("refused");
    use_config(&place, "stranger_config");
    host.load(&place, &[]).exits(1).complains("Permission denied");
    use_config(&place, "unknown_config");
    host.load(&place, &[]).exits(1).complains("Host key verification failed");
    assert_eq!(entries(&place, "here-tmp"), [""; 0]);
}

/// Loads through a host that is special in this way.
fn refused(test: &str, special: Special) -> Option<Outcome> {
    if !can_run(test) {
        return None;
    }
    let place = Place::beside_sleepers();
    let host = SshHost::start(&place, test, &special)?;
    let outcome = host.load(&place, &[]).exits(1);
    assert_eq!(entries(&place, "here-tmp"), [""; 0]);
    Some(outcome)
}

#[test]
fn a_full_temporary_folder_there_is_told() {
    let test = "a_full_temporary_folder_there_is_told";
    let full = Special { mounted: Some("size=1m"), ..Special::default() };
    if let Some(outcome) = refused(test, full) {
        outcome.complains("could not be copied").complains("No space left on device");
    }
}

#[test]
fn a_temporary_folder_there_that_runs_nothing_is_told() {
    let test = "a_temporary_folder_there_that_runs_nothing_is_told";
    let noexec = Special { mounted: Some("noexec"), ..Special::default() };
    if let Some(outcome) = refused(test, noexec) {
        outcome.complains("Permission denied").complains("noexec").complains("TMPDIR");
    }
}

#[test]
fn another_architecture_is_told() {
    let test = "another_architecture_is_told";
    let other = Special { programs: vec![("uname", "echo riscv64".to_owned())], ..Special::default() };
    if let Some(outcome) = refused(test, other) {
        outcome.complains("is riscv64");
    }
}

#[test]
fn sudo_that_wants_a_password_is_told() {
    let test = "sudo_that_wants_a_password_is_told";
    if !can_run(test) {
        return;
    }
    let place = Place::beside_sleepers();
    let asks = "test \"$1\" = -n && echo sudo: a password is required >&2; exit 1".to_owned();
    let special = Special { programs: vec![("sudo", asks)], ..Special::default() };
    let Some(host) = SshHost::start(&place, test, &special) else { return };
    host.load(&place, &["--sudo"]).exits(1).complains("a password is required");
    let (url, generator) = (host.far.url(), host.url());
    let load = ["load", &url, "-d", "1s", "--generator", &generator, "--sudo"];
    run(&place, load.into_iter()).exits(1).complains("--generator: ").complains("a password is required");
    assert_eq!(entries(&place, "far-tmp"), [""; 0]);
}
