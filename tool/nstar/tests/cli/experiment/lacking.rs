//! Experiments that lack something: a program that stays, room, a right, a folder of their own.

use std::fs;

use super::{SLEEPER, comparison, experiment, left_running, replaced};
use crate::common::support::{Place, is_root, is_root_or_skip};

/// What it said last is told, and the other variants are measured.
#[test]
fn a_program_that_ends_while_it_is_measured_is_told_with_what_it_said() {
    let place = Place::beside_others();
    let python = "[\"python3\", \"${folder}/server.py\", \"${port.web}\", \"${sleep}\"]";
    // One of the variants ends once it has answered a few times.
    let ends = "[\"sh\", \"-c\", \"python3 ${folder}/server.py ${port.web} ${sleep} & [ ${sleep} = 20 ] || wait; until grep -qs xxxx served-20; do sleep 0.02; done; echo out of luck; exit 7\"]";
    let counted = "open('served-' + sys.argv[2], 'a').write('x'); time.sleep(int(sys.argv[2]) / 1000)";
    let text = replaced(&[(python, ends), ("time.sleep(int(sys.argv[2]) / 1000)", counted)]);
    experiment(&place, &text, &["-d", "2s"])
        .run()
        .complains("LEFT OUT: 20, round 1: sleeper ended during the measurement: it ended with exit status 7")
        .complains("out of luck");
    let comparison = comparison(&place);
    assert_eq!(comparison["left_out"][0]["what"], "20, round 1");
    assert_eq!(comparison["works"][0]["entries"].as_array().map(Vec::len), Some(1), "{comparison}");
    assert_eq!(left_running(&place), Vec::<String>::new());
}

/// Needs root, for a small file system.
#[test]
fn files_without_room_on_the_disk_are_refused_before_anything_starts() {
    if !is_root_or_skip("files_without_room_on_the_disk_are_refused_before_anything_starts") {
        return;
    }
    let place = Place::beside_others();
    let data = "[[data]]\nfolder = \"data\"\nfiles = 3\nsize = \"1 MB\"\n\n[[work]]";
    place.write("mine.toml", replaced(&[("[[work]]", data), ("title = ", "room = \"1 GB\"\ntitle = ")]));
    fs::create_dir_all(place.path("tmp")).expect("a folder");
    let folder = place.path("tmp").display().to_string();
    let script = format!("mount -t tmpfs -o size=2m none {folder} && exec env TMPDIR={folder} \"$@\"");
    place
        .wrapped(["unshare", "--mount", "sh", "-c", &script, "sh"], ["experiment", "mine.toml"])
        .run()
        .exits(2)
        .complains("the experiment puts 1 GB on the disk, but")
        .complains("has room for 2.1 MB: set TMPDIR to a folder with room");
    assert!(!place.path("run.runs").exists());
}

/// A link takes the right to make interfaces: what is over one is left out, and the rest is measured. In a user namespace of
/// its own even root has no such right.
#[test]
fn a_link_without_the_right_to_make_it_is_left_out() {
    let place = Place::beside_others();
    let works = "[[work]]\nname = \"near\"\nvalues = { mbit = \"\" }\nurl = \"http://${address.sleeper}:${port.web}/\"\n\
                 users = 2\nconnections = \"per-request\"\n\n\
                 [[work]]\nname = \"far\"\nvalues = { mbit = 100 }\nurl = \"http://${address.sleeper}:${port.web}/\"\n";
    let text = replaced(&[
        ("ports = [\"web\"]", "ports = [\"web\"]\nlink_mbit = \"${mbit}\""),
        ("[[work]]\nurl = \"http://127.0.0.1:${port.web}/\"\n", works),
    ]);
    place.write("mine.toml", text);
    fs::create_dir_all(place.path("tmp")).expect("a folder");
    let folder = format!("TMPDIR={}", place.path("tmp").display());
    let mut wrapper = vec!["env", &folder];
    if is_root() {
        wrapper.splice(0..0, ["unshare", "--user"]);
    }
    place
        .wrapped(wrapper, ["experiment", "mine.toml", "-o", "mine.json", "-d", "500ms"])
        .run()
        .complains("LEFT OUT: far: a network namespace and a shaped link need root");
    let comparison = comparison(&place);
    assert_eq!(comparison["left_out"][0]["cause"]["kind"], "link-needs-root");
    let works = comparison["works"].as_array().expect("works");
    let measured: Vec<_> = works.iter().filter(|work| work["entries"][0].is_object()).collect();
    assert!(measured.len() == 1 && measured[0]["name"] == "near", "{comparison}");
}

/// The first failure ended an experiment that varies nothing, and what had been measured of its other workloads was lost.
#[test]
fn a_workload_that_fails_leaves_the_others() {
    let place = Place::beside_others();
    let broken = "[[work]]\nname = \"broken\"\nvalues = { python = \"false\" }\n\
                  url = \"http://127.0.0.1:${port.web}/\"\nusers = 2\n\n\
                  [[work]]\nname = \"sound\"\nvalues = { python = \"python3\" }\nurl";
    let text = replaced(&[
        ("rounds = 1\n", ""),
        ("[axis]\nsleep = [1, 20]\n", ""),
        ("\"python3\", ", "\"${python}\", "),
        ("\"${sleep}\"]", "\"1\"]"),
        ("[[work]]\nurl", broken),
    ]);
    let outcome = experiment(&place, &text, &["-d", "500ms"]).run().exits(1);
    outcome.complains("LEFT OUT: broken: sleeper");
    assert!(place.path("mine-sound.json").is_file() && !place.path("mine-broken.json").exists());
}

/// The second would write over the files of the first. Elsewhere it is measured, on ports of its own.
#[test]
fn two_experiments_at_once_in_one_folder_are_refused() {
    let place = Place::beside_others();
    let mut first = experiment(&place, SLEEPER, &["-d", "60s"]).start();
    first.wait_for_stderr("starting sleeper");
    for more in [&["-d", "60s"] as &[&str], &["-d", "60s", "--resume"]] {
        let refused = experiment(&place, SLEEPER, more).run().exits(2);
        refused.complains("another nstar writes to").complains("give this one another -o");
    }
    let folder = format!("TMPDIR={}", place.path("tmp").display());
    let elsewhere = ["experiment", "mine.toml", "-o", "other.json", "-d", "300ms"];
    let second = place.wrapped(["env", &folder], elsewhere).run().complains("starting sleeper");
    assert!(matches!(second.status.code(), Some(0 | 4)) && place.path("other.json").exists(), "{second}");
    first.signal("INT");
    first.finish().exits(130);
    assert_eq!(left_running(&place), Vec::<String>::new());
}
