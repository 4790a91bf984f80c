//! The open loop: a rate that does not wait for the server, response times from the intended start.

use std::time::Duration;

use load::{Arrivals, Pacing, Stop};

use crate::common::{OK, Server, run};

#[test]
fn the_total_and_the_rate_are_kept() {
    let server = Server::answering(OK);
    for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
        let mut plan = server.plan();
        plan.threads = 2;
        plan.pacing = Pacing::Open { rate_per_s: 2_000.0, arrivals };
        let counted = run(&plan, 50, Stop::Total(400));
        assert_eq!((counted.completed, counted.errors_total()), (400, 0), "{counted:?}");
    }
    assert!(server.accepted() <= 100);
}

#[test]
fn one_connection_for_several_threads_carries_the_whole_rate() {
    let server = Server::answering(OK);
    let mut plan = server.plan();
    plan.threads = 3;
    plan.pacing = Pacing::Open { rate_per_s: 1_000.0, arrivals: Arrivals::Uniform };
    let counted = run(&plan, 1, Stop::Total(200));
    assert_eq!((counted.completed, counted.errors_total()), (200, 0), "{counted:?}");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_stall_of_the_server_counts_for_every_request_due_in_it() {
    let server = Server::start(|mut peer, _| {
        for request in 0.. {
            if peer.request().is_none() {
                return;
            }
            if request == 20 {
                std::thread::sleep(Duration::from_millis(200));
            }
            peer.send(OK).unwrap();
        }
    });
    let mut plan = server.plan();
    plan.pacing = Pacing::Open { rate_per_s: 200.0, arrivals: Arrivals::Uniform };
    let counted = run(&plan, 1, Stop::Total(100));
    assert_eq!((counted.completed, counted.errors_total()), (100, 0));
    // 40 requests were due in the 200 ms of the stall. A closed loop would have seen one slow request.
    assert!(counted.late_starts >= 30, "{}", counted.late_starts);
    assert!(counted.response_time_max >= Duration::from_millis(199), "{:?}", counted.response_time_max);
    assert!(counted.slower_than(Duration::from_millis(100)) >= 15, "{counted:?}");
}
