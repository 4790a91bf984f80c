//! Servers of one database that lose each other's packets, while clients reach all of them. Needs root.

use test_support::replicated::{Galera, Pair, wait_until};

use crate::{
    BOOKING, MORE, all_nodes_keep, all_promises_are_kept,
    clients::Promises,
    lost_standby::await_waiting_commits,
    network::{Network, is_apart},
    reached, start_on_nodes, start_on_pair, step, the_part_of_one_refuses_changes, turn,
};

#[test]
fn two_nodes_of_galera_go_on_and_the_third_refuses_changes_while_its_packets_are_lost() {
    let test = "two_nodes_of_galera_go_on_and_the_third_refuses_changes_while_its_packets_are_lost";
    let _turn = turn();
    if !is_apart(&format!("lost_packets::{test}")) {
        return;
    }
    let network = Network::<3>::new();
    let Some(galera) = Galera::start_on(&network.hosts) else { return };
    let folder = tempfile::tempdir().unwrap();
    let systems = start_on_nodes(&galera, folder.path());
    let (servers, promises) = (reached(&systems), Promises::default());
    let [first, second, third] = galera.nodes() else { panic!("three nodes") };
    promises.during(&servers, || {
        promises.await_more(&servers, MORE);
        step("packets of a node are lost");
        network.cut(2);
        wait_until("the node notices that it is alone", || {
            !third.run("SELECT COUNT(*) FROM rooms", Some(BOOKING)).unwrap().status.success()
        });
        the_part_of_one_refuses_changes(third);
        promises.await_more(&servers, MORE);
        step("they arrive again");
        network.join(2);
        wait_until("the node takes part again", || third.is_ready());
        promises.await_more(&servers, MORE);
    });
    all_nodes_keep([first, second, third], &promises);
}

/// At the end the primary itself is lost, with all that it had not sent.
#[test]
fn a_primary_that_loses_the_packets_to_its_standby_acknowledges_nothing_until_they_arrive() {
    let test = "a_primary_that_loses_the_packets_to_its_standby_acknowledges_nothing_until_they_arrive";
    if !is_apart(&format!("lost_packets::{test}")) {
        return;
    }
    let network = Network::<2>::new();
    let Some(pair) = Pair::start_on(network.hosts) else { return };
    let folder = tempfile::tempdir().unwrap();
    let systems = start_on_pair(&pair, folder.path());
    let (servers, promises) = (reached(&systems), Promises::default());
    let lose_packets = || {
        step("packets between the two are lost");
        network.cut(0);
        let before = promises.acknowledged();
        await_waiting_commits(&pair);
        promises.stand_still_since(before);
    };
    promises.during(&servers, || {
        promises.await_more(&servers, MORE);
        lose_packets();
        step("they arrive again");
        network.join(0);
        promises.await_more(&servers, MORE);
        lose_packets();
        step("the primary is killed");
        pair.primary().kill();
        pair.promote().unwrap();
        promises.await_more(&servers, MORE);
    });
    all_promises_are_kept(pair.standby(), &promises);
}
