//! Peers with unusable addresses of their own or of others. They run in a network namespace without other machines, which
//! needs root.

use std::process::Command;

use super::eventually;
use crate::{
    common::support::{Place, is_root_or_skip},
    serve::listening,
};

/// 198.18.0.0/15 is for benchmarks (RFC 2544).
const ALONE: &str =
    "ip link set lo up; ip addr add 198.18.0.1/32 dev lo; ip route add 224.0.0.0/4 dev lo; exec \"$@\"";
const HEALTH: &str = "exec 3<>/dev/tcp/127.0.0.1/8085; \
     printf 'GET /healthz HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3";

#[test]
fn a_peer_that_only_its_own_machine_reaches_is_told_where_its_index_is_for_others_too() {
    if !is_root_or_skip("a_peer_that_only_its_own_machine_reaches_is_told_where_its_index_is_for_others_too")
    {
        return;
    }
    let place = Place::beside_others();
    place.write("shared/a.txt", "a");
    for (index, told) in [
        (&["--index", "198.18.0.1:8084"][..], true),
        (&["--index", "198.18.0.1:8084", "--advertise", "198.18.0.1:8085"], false),
        (&["--index", "127.0.0.1:8084"], false),
        (&["--dht", "--dht-listen", "198.18.0.1:8086", "--secret-file", "secret"], true),
    ] {
        let words = ["serve", "peer", "--share", "shared", "--user", "root"].iter().chain(index);
        let mut peer = place.wrapped(["unshare", "--net", "sh", "-c", ALONE, "sh"], words).start();
        listening(&mut peer);
        let pid = peer.pid().to_string();
        let health = || {
            let words = ["--net", "--target", &pid, "bash", "-c", HEALTH];
            let asked = Command::new("nsenter").args(words).output().expect("nsenter");
            String::from_utf8_lossy(&asked.stdout).into_owned()
        };
        eventually("it answers", || health().contains("200 OK"));
        assert_eq!(
            health().contains("which only its own machine can reach"),
            told,
            "{index:?}: {}",
            health()
        );
        peer.signal("TERM");
        let said = peer.finish().exits(0).stderr;
        assert_eq!(said.contains("--advertise ADDR:PORT"), told, "{index:?}: {said}");
    }
}

#[test]
fn a_peer_that_listens_everywhere_is_told_which_of_those_it_is_to_join_is_itself() {
    if !is_root_or_skip("a_peer_that_listens_everywhere_is_told_which_of_those_it_is_to_join_is_itself") {
        return;
    }
    let place = Place::beside_others();
    place.write("shared/a.txt", "a");
    for own in ["198.18.0.1:8086", "127.0.0.1:8086"] {
        let words = ["serve", "peer", "--share", "shared", "--listen", "198.18.0.1:8085"];
        let words = words.into_iter().chain(["--secret-file", "secret", "--dht", "--bootstrap", own]);
        let words = words.chain(["--dht-listen", "0.0.0.0:8086", "--user", "root"]);
        let peer = place.wrapped(["unshare", "--net", "sh", "-c", ALONE, "sh"], words);
        peer.run().exits(2).complains(&format!("--bootstrap {own} is this peer's own address"));
    }
}
