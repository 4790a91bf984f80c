//! Acknowledged accounts survive a kill, and a full disk damages nothing.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};

use crate::support::{options, post, serve};
use engine::Model;

const FOLDER: &str = "NSTAR_TEST_ACCOUNTS_FOLDER";
const PASSWORD: &str = "correct horse";

/// Not a test: the server process that the other test starts and kills.
#[test]
fn server_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let server = serve(Model::Epoll, options(Path::new(&folder)));
    println!("\nlistening on {}", server.local_addr());
    server.join();
}

fn spawn(folder: &Path) -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::server_process", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
        .expect("the server says where it listens");
    (child, address.parse().unwrap())
}

/// Creates accounts from several connections until the server is killed. Returns the acknowledged names.
fn make_until_killed(folder: &Path, round: usize) -> Vec<String> {
    let (mut child, to) = spawn(folder);
    let acknowledged = AtomicUsize::new(0);
    thread::scope(|scope| {
        let acknowledged = &acknowledged;
        let makers: Vec<_> = (0..4)
            .map(|maker| {
                scope.spawn(move || {
                    let names = (0..).map(|n| format!("r{round}-m{maker}-{n}"));
                    // Stops at the first response other than 201, when the server is dead.
                    let made = names.take_while(|name| {
                        let made =
                            post(to, "/accounts", name, PASSWORD).is_ok_and(|answer| answer.status == 201);
                        acknowledged.fetch_add(usize::from(made), SeqCst);
                        made
                    });
                    made.collect::<Vec<_>>()
                })
            })
            .collect();
        while acknowledged.load(SeqCst) < 10 && !makers.iter().any(|maker| maker.is_finished()) {
            thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
    })
}

#[test]
fn every_acknowledged_account_outlives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        acknowledged.extend(make_until_killed(folder.path(), round));
    }
    assert!(acknowledged.len() >= 30, "only {} were acknowledged", acknowledged.len());

    let server = serve(Model::Epoll, options(folder.path()));
    let to = server.local_addr();
    for name in &acknowledged {
        assert_eq!(post(to, "/accounts", name, PASSWORD).unwrap().status, 409, "{name} is lost");
    }
    assert_eq!(post(to, "/sessions", &acknowledged[0], PASSWORD).unwrap().status, 200);
}

/// Uses a file system of 512 KiB, which only root can create.
#[test]
fn a_full_disk_is_told_and_passes() {
    let folder = tempfile::tempdir().unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(folder.path()).output();
    if !mount.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: a small file system cannot be mounted here ({mount:?}); run as root");
        return;
    }
    let outcome = std::panic::catch_unwind(|| fill_and_free(folder.path()));
    let unmounted = Command::new("umount").arg("-l").arg(folder.path()).status();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    assert!(unmounted.unwrap().success());
}

fn fill_and_free(folder: &Path) {
    let server = serve(Model::Epoll, options(folder));
    let to = server.local_addr();
    assert_eq!(post(to, "/accounts", "before", PASSWORD).unwrap().status, 201);
    let ballast = folder.join("ballast");
    fill(&ballast);
    let (mut kept, mut refused) = (0, None);
    for n in 0..200 {
        let answer = post(to, "/accounts", &format!("during-{n}"), PASSWORD).unwrap();
        match answer.status {
            201 => kept += 1,
            _ => {
                refused = Some(answer);
                break;
            }
        }
    }
    let refused = refused.expect("a full disk refuses sooner or later");
    assert_eq!(refused.status, 507, "{}", refused.body);

    std::fs::remove_file(&ballast).unwrap();
    assert_eq!(post(to, "/accounts", "after", PASSWORD).unwrap().status, 201);
    for name in
        ["before".to_owned(), "after".to_owned()].into_iter().chain((0..kept).map(|n| format!("during-{n}")))
    {
        assert_eq!(post(to, "/accounts", &name, PASSWORD).unwrap().status, 409, "{name} is lost");
    }
    assert_eq!(
        post(to, "/accounts", &format!("during-{kept}"), PASSWORD).unwrap().status,
        201,
        "it had not been kept"
    );
}

/// Fills the disk.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
}
