//! Disks, links, and limits on how many are let in or served at a time.

use analysis::conclude::Conclusion;
use analysis::counters::ThreadState;
use analysis::run::{Doubt, HeldBack, ResourceKind, Step, WarningKind};
use analysis::ticks::ErrorKind;

use super::lab::{Lab, Link, Observed, Platter, Sure, conclude, says, server, sure, sweep};

fn kind(lab: &Lab) -> ResourceKind {
    lab.conclude().verdict.bottleneck.kind
}

#[test]
fn heavy_traffic_on_loopback_is_not_the_network() {
    // 80 kbit a request on lo at 33 000 a second: 2.7 Gb/s, in every lab of these tests.
    assert_eq!(kind(&sweep().tier(server("nginx").cpus(&[0]))), ResourceKind::Cpu);
}

#[test]
fn a_full_link_is_the_network() {
    let link =
        Link { name: "eth0", bits_per_request: 1e5, speed: Some(100_000_000), real: true, ..Link::default() };
    let found = sweep().tier(server("nginx").cpus(&[0])).link(link).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!((bottleneck.kind, bottleneck.holder.as_str()), (ResourceKind::Network, "eth0"));
    assert_eq!(sure(&found), Sure::Fairly, "no queue was seen before it");
    assert!(bottleneck.evidence[0].contains("of at most 100 Mb/s"), "{bottleneck:?}");
    assert!((bottleneck.demand_us.unwrap() - 1_000.0).abs() < 20.0);
}

#[test]
fn a_shaper_that_delays_is_the_network() {
    let link = Link {
        name: "eth0",
        bits_per_request: 1e5,
        speed: Some(1_000_000_000),
        shaped: Some(50_000_000),
        real: true,
    };
    let found = sweep().tier(server("nginx").demand_us(300.0).cpus(&[0])).link(link).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Network);
    assert_eq!(sure(&found), Sure::Direct);
    assert!(found.verdict.next.unwrap().contains("nginx"));
}

#[test]
fn a_made_up_link_speed_is_not_the_network() {
    let link = Link { name: "tap0", bits_per_request: 1e5, speed: Some(10_000_000), ..Link::default() };
    assert_eq!(kind(&sweep().tier(server("nginx").cpus(&[0])).link(link)), ResourceKind::Cpu);
}

#[test]
fn a_disk_that_queues_the_servers_reads_is_the_disk() {
    let lab = sweep()
        .tier(server("files").threads(8).disk_share(1.0).state(ThreadState::Disk))
        .disk(Platter { demand_us: 4_000.0, ..Platter::default() });
    let found = lab.conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!((bottleneck.kind, bottleneck.holder.as_str()), (ResourceKind::Disk, "vda"), "{found:#?}");
    assert_eq!(sure(&found), Sure::Direct);
    assert!((bottleneck.demand_us.unwrap() - 4_000.0).abs() < 100.0);
}

/// Four workers waited for a disk that serves 32 requests side by side, which was never idle: it was full, 97 %.
#[test]
fn a_disk_that_serves_all_workers_side_by_side_is_not_surely_the_limit() {
    let disk = Platter { demand_us: 5_000.0, at_once: 32, ..Platter::default() };
    let files = server("files").threads(4).disk_share(1.0).state(ThreadState::Disk);
    let found = sweep().tier(files).pool(4, 5_000.0).disk(disk).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(sure(&found), Sure::Undecided, "{found:#?}");
    assert!(!found.verdict.is_conclusive(), "{found:#?}");
    assert!(bottleneck.alternatives.iter().any(|other| other.kind == ResourceKind::WorkerPool), "{found:#?}");
    assert!(says(&found, "it serves so many side by side"), "{bottleneck:?}");
}

/// Where hardly more than one read and a half are under way, they take that many times as long if they queue: a little less was
/// taken for reads that are served side by side.
#[test]
fn a_disk_with_a_short_queue_is_the_disk() {
    let files = server("files").threads(8).disk_share(1.0).state(ThreadState::Disk);
    let disk = Platter { demand_us: 4_000.0, ..Platter::default() };
    let lab = sweep().tier(files).delay_us(4_000.0).disk(disk);
    let mut steps = lab.observed();
    for observed in &mut steps {
        let under_way = match observed.step.users {
            1 => 0.58,
            2 => 1.0,
            _ => 1.65,
        };
        for (number, sample) in observed.counters.iter_mut().enumerate() {
            sample.disks[0].weighted_us = 5_000_000 + (under_way * 250_000.0 * number as f64) as u64;
        }
    }
    let found = conclude(&steps, &lab.context);
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Disk, "{found:#?}");
    assert_eq!(sure(&found), Sure::Direct, "{found:#?}");
}

#[test]
fn a_disk_that_serves_several_at_a_time_and_lets_the_others_wait_is_the_disk() {
    let disk = Platter { demand_us: 4_000.0, at_once: 4, ..Platter::default() };
    let files = server("files").threads(64).disk_share(1.0).state(ThreadState::Disk);
    let found = sweep().tier(files).disk(disk).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Disk, "{found:#?}");
    assert_eq!(sure(&found), Sure::Direct, "{found:#?}");
}

#[test]
fn one_writer_that_waits_for_flushes_is_the_disk() {
    let lab = sweep()
        .tier(server("accounts").demand_us(400.0).disk_share(1.0).state(ThreadState::Disk))
        .disk(Platter { demand_us: 3_000.0, flush_share: 0.8, ..Platter::default() });
    let found = lab.conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Disk, "{found:#?}");
    assert!(
        found.verdict.bottleneck.evidence.iter().any(|said| said.contains("flushes took 80 %")),
        "{found:#?}"
    );
}

#[test]
fn a_disk_busy_with_other_work_is_not_why_a_full_processor_is_slow() {
    let lab =
        sweep().tier(server("nginx").cpus(&[0])).disk(Platter { background: 1.0, ..Platter::default() });
    let found = lab.conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Cpu);
    assert!(
        !found.verdict.next.unwrap().contains("vda"),
        "a disk that the load does not use cannot come next"
    );
}

#[test]
fn a_disk_busy_with_other_work_is_not_why_sleepers_are_slow() {
    let lab = sweep()
        .tier(server("app").demand_us(100.0).threads(4))
        .pool(4, 5_000.0)
        .disk(Platter { background: 1.0, ..Platter::default() });
    assert!(!matches!(kind(&lab), ResourceKind::Disk | ResourceKind::Cpu));
}

#[test]
fn four_workers_that_sleep_are_a_pool_of_four() {
    let found = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!((bottleneck.kind, sure(&found)), (ResourceKind::WorkerPool, Sure::Fairly), "{found:#?}");
    assert!(
        bottleneck.evidence[0].contains("a pool of 4 workers, or a limit of 4 downstream"),
        "{bottleneck:?}"
    );
    assert_eq!(bottleneck.utilization, None);
    assert!((found.verdict.throughput_max_per_s - 780.0).abs() < 30.0);
}

#[test]
fn one_at_a_time_while_idle_is_like_a_lock() {
    let found = sweep().tier(server("app").demand_us(100.0).threads(8)).pool(1, 5_000.0).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Lock);
    assert_eq!(sure(&found), Sure::Rather, "{:?}", found.verdict.bottleneck);
}

#[test]
fn without_a_step_of_one_user_no_pool_is_claimed() {
    let lab =
        sweep().users(&[8, 16, 32, 64, 128]).tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0);
    assert!(matches!(kind(&lab), ResourceKind::Unknown | ResourceKind::None));
}

#[test]
fn a_listen_queue_that_overflows_while_all_is_idle_is_the_accept_queue() {
    let lab =
        sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0).listen_queue(40.0, 128);
    let found = lab.conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::AcceptQueue, "{found:#?}");
    assert!(found.warnings.iter().any(|warning| warning.kind == WarningKind::HostLimit));
}

/// The kernel counts the overflows of all servers of the host together.
#[test]
fn overflows_while_the_servers_own_queue_has_room_are_not_put_down_to_it() {
    let nginx = sweep().tier(server("nginx").cpus(&[0]));
    let told = |waiting| {
        let warnings = nginx.clone().listen_queue(40.0, waiting).conclude().warnings;
        let of_host = warnings.into_iter().find(|warning| warning.kind == WarningKind::HostLimit);
        of_host.expect("overflows are told").text
    };
    assert!(told(3).contains("never more than 3 of 128 places in the queue of port 80"), "{}", told(3));
    assert!(told(128).contains("the server's backlog is the limit"), "{}", told(128));
}

#[test]
fn a_queue_that_overflows_long_after_the_workers_were_taken_is_their_sign() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0);
    let found = lab.listen_queue(40.0, 128).room_for(16).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::WorkerPool, "{found:#?}");
}

#[test]
fn a_listen_queue_that_overflows_before_a_full_processor_is_cpu() {
    assert_eq!(kind(&sweep().tier(server("nginx").cpus(&[0])).listen_queue(40.0, 128)), ResourceKind::Cpu);
}

/// A server on another host that lets sixteen connections in; the others try again and again.
fn concluded_out_of_sight(room_for: u32, retried_per_s: f64) -> Conclusion {
    concluded_but(room_for, retried_per_s, |_| ())
}

/// The same after this change of what was seen.
fn concluded_but(room_for: u32, retried_per_s: f64, change: impl Fn(&mut Observed)) -> Conclusion {
    let lab = sweep().tier(server("far")).hidden().delay_us(20_000.0).admitted(16);
    let lab = lab.handshakes_retried(retried_per_s).room_for(room_for);
    let mut steps = lab.observed();
    for Observed { step, .. } in steps.iter_mut().filter(|seen| seen.step.users > room_for) {
        answer_only(step, 16.0 / f64::from(step.users));
    }
    steps.iter_mut().for_each(change);
    conclude(&steps, &lab.context)
}

/// As if only this share of the users were answered, whose response times are as much shorter.
fn answer_only(step: &mut Step, inside: f64) {
    step.response_time_us.mean *= inside;
    step.response_time_us.mean_ci = step.response_time_us.mean_ci.map(|ends| ends.map(|end| end * inside));
}

#[test]
fn a_server_on_another_host_that_lets_nobody_in_is_the_accept_queue() {
    let found = concluded_out_of_sight(16, 12.0);
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!((bottleneck.kind, sure(&found)), (ResourceKind::AcceptQueue, Sure::Rather), "{found:#?}");
    assert!(
        bottleneck.evidence[0].contains("12 handshakes per second had to be tried again"),
        "{bottleneck:#?}"
    );
    assert!(bottleneck.evidence[1].contains("48 of 64 users had no connection"), "{bottleneck:#?}");
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
}

/// Whoever finds no room waits 1 s before trying again, then 2 s and 4 s: a step in which nobody tried was taken for one in which
/// all had found room.
#[test]
fn a_step_in_which_those_outside_only_wait_is_none_with_room_for_all() {
    let found = concluded_but(16, 12.0, |Observed { step, counters, .. }| {
        let quiet = counters.iter_mut().filter(|_| step.users == 32);
        quiet.for_each(|sample| sample.generator_tcp.handshakes_retried = 0);
    });
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::AcceptQueue, "{found:#?}");
}

/// Where users wait outside at N* already, Little's law misses them there, and the verdict was said to be in doubt for it.
#[test]
fn users_outside_are_no_doubt_about_the_law_that_misses_them() {
    let outside_at_saturation = |room_for: u32, retried_per_s: f64| {
        concluded_but(room_for, retried_per_s, |Observed { step, .. }| {
            if step.users == 16 {
                answer_only(step, 0.8);
            }
        })
    };
    let found = outside_at_saturation(16, 12.0);
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::AcceptQueue, "{found:#?}");
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
    assert!(!outside_at_saturation(16, 0.0).verdict.is_conclusive(), "nobody is known to be outside");
}

#[test]
fn a_server_on_another_host_is_not_blamed_for_handshakes_without_that() {
    let unknown =
        |found: Conclusion| assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Unknown, "{found:#?}");
    unknown(concluded_out_of_sight(16, 0.0));
    unknown(concluded_out_of_sight(32, 12.0));
    let here = sweep().tier(server("far")).hidden().delay_us(20_000.0).admitted(16).room_for(16);
    unknown(here.listen_queue(40.0, 0).conclude());
}

#[test]
fn a_full_descriptor_table_is_file_descriptors() {
    let lab = sweep()
        .tier(server("app").demand_us(20.0).open_files_limit(22))
        .delay_us(20_000.0)
        .admitted(16)
        .listen_queue(0.0, 48)
        .errors(32, 0.4, ErrorKind::TimedOut);
    let found = lab.conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::FileDescriptors, "{found:#?}");
    assert!(found.verdict.bottleneck.evidence[0].contains("22 of its 22 descriptors"), "{found:#?}");
}

/// A server that answers 503 for want of descriptors turns away as much as one that answers nothing.
#[test]
fn a_full_descriptor_table_whose_server_says_so_politely_is_file_descriptors_too() {
    let lab = sweep()
        .tier(server("app").demand_us(20.0).open_files_limit(22))
        .delay_us(20_000.0)
        .admitted(16)
        .errors(16, 0.02, ErrorKind::Unavailable);
    let found = lab.conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::FileDescriptors, "{found:#?}");
}

#[test]
fn a_pool_that_turns_away_whom_it_has_no_room_for_is_still_a_pool() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0);
    let bottleneck = lab.errors(32, 0.02, ErrorKind::Unavailable).conclude().verdict.bottleneck;
    assert_eq!(bottleneck.kind, ResourceKind::WorkerPool, "{bottleneck:#?}");
    assert!(bottleneck.evidence.iter().any(|said| said.contains("turned away")), "{bottleneck:#?}");
}

#[test]
fn descriptors_that_run_out_beyond_a_full_processor_are_not_why() {
    let lab =
        sweep().tier(server("nginx").cpus(&[0]).open_files_limit(69)).errors(64, 0.02, ErrorKind::Reset);
    assert_eq!(kind(&lab), ResourceKind::Cpu);
}

/// Four workers on a host that swaps. They take 5 ms for each request, and so many pages from a disk.
fn on_a_host_that_swaps(pages: f64, state: ThreadState) -> Lab {
    let app = server("app").demand_us(100.0).threads(4).faults(pages).state(state);
    sweep().tier(app).pool(4, 5_000.0).swapping()
}

#[test]
fn a_host_that_swaps_while_its_server_waits_for_pages_is_short_of_memory() {
    assert_eq!(kind(&on_a_host_that_swaps(0.5, ThreadState::Sleeping)), ResourceKind::Memory);
    // A page that comes from a slow disk may keep a thread for as long as many requests.
    assert_eq!(kind(&on_a_host_that_swaps(0.05, ThreadState::Disk)), ResourceKind::Memory);
}

/// A neighbour swapped, and whatever stopped the server was memory, 87 %.
#[test]
fn a_host_that_swaps_is_not_what_stops_a_server_that_hardly_waits_for_pages() {
    let alone = on_a_host_that_swaps(0.0, ThreadState::Sleeping).conclude();
    assert_eq!(alone.verdict.bottleneck.kind, ResourceKind::WorkerPool, "{alone:#?}");
    let hardly = on_a_host_that_swaps(0.05, ThreadState::Sleeping).conclude();
    assert_eq!(hardly.verdict.bottleneck.kind, ResourceKind::WorkerPool, "{hardly:#?}");
}

/// A neighbour in a cgroup of its own may swap, whatever stops the server.
#[test]
fn swapping_beside_a_full_processor_is_not_what_stops_it() {
    let lab = sweep().tier(server("nginx").cpus(&[0])).swapping();
    assert_eq!(kind(&lab), ResourceKind::Cpu);
}

#[test]
fn a_first_step_that_was_disturbed_does_not_enlarge_the_pool() {
    let lab = sweep().tier(server("app").demand_us(20.0).threads(4)).pool(4, 5_000.0);
    let mut steps = lab.observed();
    steps[0].step.response_time_us.mean *= 1.2;
    steps[0].step.throughput_per_s /= 1.2;
    let bottleneck = conclude(&steps, &lab.context).verdict.bottleneck;
    assert_eq!(bottleneck.kind, ResourceKind::WorkerPool, "{bottleneck:#?}");
    assert!(bottleneck.evidence[0].contains("a pool of 4 workers"), "{bottleneck:#?}");
}

/// On a machine that others use, the processors are busy but the server's threads get one when they want it.
#[test]
fn a_pool_is_told_beside_interference_that_keeps_nobody_waiting() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0).interference(3.7);
    let mut steps = lab.observed();
    // One step without them shows that none of their work is the load's.
    steps[6].counters = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0).observed()
        [6]
    .counters
    .clone();
    let found = conclude(&steps, &lab.context);
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::WorkerPool, "{found:#?}");
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
    assert!(
        found.verdict.bottleneck.evidence.iter().any(|said| said.contains("hardly waited")),
        "{found:#?}"
    );
}

/// A server of three workers that writes head and body apart, each response of which waited for 41 ms: it was a pool of 15.
#[test]
fn workers_are_counted_without_responses_that_are_held_back() {
    let lab = sweep()
        .users(&[1, 2, 4, 8, 12, 16, 24, 32, 64, 128])
        .tier(server("app").demand_us(100.0).threads(16))
        .delay_us(41_000.0)
        .pool(3, 10_000.0);
    let with = |share: f64| {
        let mut observed = lab.observed();
        for seen in &mut observed {
            seen.step.held_back = (share > 0.0).then_some(HeldBack { share, mean_us: 41_000.0 });
        }
        conclude(&observed, &lab.context)
    };
    assert!(says(&with(1.0), "a pool of 3 workers") && says(&with(1.0), "only wait"), "{:#?}", with(1.0));
    assert!(!says(&with(0.0), "a pool of 3 workers"), "{:#?}", with(0.0));
}

/// A Python server on kept connections: 16 users got 363 responses a second, most of them held back, and 24 users 2 108.
#[test]
fn a_jump_of_throughput_is_put_down_to_responses_that_were_held_back() {
    let lab = sweep().tier(server("app").demand_us(500.0).cpus(&[0]));
    let slowed = |share: Option<f64>| {
        let mut observed = lab.observed();
        let step = &mut observed.iter_mut().find(|seen| seen.step.users == 8).expect("8 users").step;
        (step.throughput_per_s, step.response_time_us.mean) = (step.throughput_per_s / 10.0, 41_000.0);
        step.throughput_ci_per_s = step.throughput_ci_per_s.map(|ends| ends.map(|end| end / 10.0));
        step.held_back = share.map(|share| HeldBack { share, mean_us: 40_000.0 });
        let doubts = conclude(&observed, &lab.context).verdict.doubts;
        let jump = doubts.into_iter().find_map(|doubt| match doubt {
            Doubt::Jump { from_users: 8, held_back, .. } => Some(held_back),
            _ => None,
        });
        jump.expect("a jump")
    };
    assert_eq!(slowed(Some(0.9)), Some([0.9, 0.0]));
    assert_eq!(slowed(Some(0.1)), None, "too few to explain it");
    assert_eq!(slowed(None), None);
}
