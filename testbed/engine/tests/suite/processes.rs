//! Servers whose services run in processes of their own: which process is whose child, and which outlives which.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, Stdio},
    time::Duration,
};

use engine::{Model, Options, Server};
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::{commands::Commands, common::*};

const FORKING: [Model; 2] = [Model::Processes, Model::Prefork];

/// The children of a process, including zombies.
fn children_of(parent: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let lists = tasks.into_iter().flatten().flatten();
    let lists = lists.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers: Vec<i32> =
        lists.flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect();
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

/// Whether a process exists and has not ended.
fn is_alive(process: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    status.is_ok_and(|status| !status.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

/// The parent process of the only server of this process.
fn parent() -> Pid {
    let children = children_of(getpid());
    assert_eq!(children.len(), 1, "one parent: {children:?}");
    children[0]
}

fn kill(process: Pid) {
    kill_process(process, Signal::KILL).expect("it is there");
}

/// A connection, and the process that serves it.
fn served(server: &Server) -> (TcpStream, Pid) {
    let mut client = connect(server);
    let told = ask(&mut client, "thread");
    let number = told.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a process");
    (client, Pid::from_raw(number).expect("a process"))
}

#[test]
fn every_process_that_ended_is_reaped() {
    run_apart("processes::no_zombies", Model::Processes);
}

#[test]
#[ignore = "run by the test above"]
fn no_zombies() {
    let server = start(model_to_try(), Commands::new());
    let parent = parent();
    for number in 0..50 {
        let mut client = connect(&server);
        assert_eq!(ask(&mut client, &format!("number {number}")), format!("number {number}"));
    }
    eventually("no child is left, alive or dead", || children_of(parent).is_empty());
    drop(server);
    assert!(children_of(getpid()).is_empty());
}

#[test]
fn no_more_processes_than_connections_allowed() {
    run_apart("processes::bounded", Model::Processes);
}

#[test]
#[ignore = "run by the test above"]
fn bounded() {
    let options = Options { max_connections: 4, ..options() };
    let server = start_with(model_to_try(), &options, Commands::new());
    let parent = parent();
    // The child that tried to make a service has reported, but may not have ended yet.
    eventually("the child of the trial is gone", || children_of(parent).is_empty());
    let clients: Vec<TcpStream> = (0..40).map(|_| connect(&server)).collect();
    eventually("the limit is met", || server.counters().limit_pauses() > 0);
    // Of those that are idle for long, one may just have ended for another.
    assert!((3..=4).contains(&children_of(parent).len()));
    drop(clients);
    eventually("all came and went", || server.counters().closed() == 40);
    assert_eq!(ask(&mut connect(&server), "hello again"), "hello again");
}

#[test]
fn a_killed_process_ends_its_connection_only_and_gives_its_place_back() {
    for model in FORKING {
        run_apart("processes::killed_child", model);
    }
}

#[test]
#[ignore = "run by the test above"]
fn killed_child() {
    let model = model_to_try();
    let server = start_with(model, &Options { max_connections: 2, workers: 2, ..options() }, Commands::new());
    let parent = parent();
    let workers = if model == Model::Prefork { 2 } else { 0 };
    let (mut killed, process) = served(&server);
    let (mut other, another) = served(&server);
    assert_ne!(process, another);
    kill(process);
    assert_eq!(rest(&mut killed), b"");
    assert_eq!(ask(&mut other, "still here"), "still here");
    // If its end were not known yet, the other connection might have to give way to the third.
    eventually("its place is given back", || server.counters().active() == 1);
    // It takes the killed one's place, which is freed only once.
    let (third, _) = served(&server);
    eventually("two are open", || server.counters().active() == 2);
    drop((third, other));
    eventually("none is open", || server.counters().active() == 0);
    eventually("as many workers as before", || children_of(parent).len() == workers);
}

#[test]
fn a_worker_told_to_end_finishes_its_request_and_is_replaced() {
    run_apart("processes::replaced", Model::Prefork);
}

#[test]
#[ignore = "run by the test above"]
fn replaced() {
    let server = start_with(model_to_try(), &Options { workers: 1, ..options() }, Commands::new());
    let (mut client, process) = served(&server);
    client.write_all(b"hello you\nhalf a").unwrap();
    assert_eq!(read_line(&mut client), "hello you");
    kill_process(process, Signal::TERM).unwrap();
    client.write_all(b" request\n").unwrap();
    assert_eq!(rest(&mut client), b"half a request\n");
    let (_client, next) = served(&server);
    assert_ne!(process, next);
}

#[test]
fn workers_that_cannot_begin_again_are_tried_again_and_the_server_still_stops() {
    run_apart("processes::stops_while_replacing", Model::Prefork);
}

#[test]
#[ignore = "run by the test above"]
fn stops_while_replacing() {
    let server = start_with(model_to_try(), &Options { workers: 3, ..options() }, Commands::new());
    let parent = parent();
    // One more has tried to make a service, and may end by itself before it is killed.
    eventually("only the workers are left", || children_of(parent).len() == 3);
    children_of(parent).into_iter().for_each(kill);
    server.drain(Duration::from_secs(600));
    server.join();
    assert!(!is_alive(parent));
}

#[test]
fn a_killed_parent_takes_its_children_with_it_and_is_noticed() {
    for model in FORKING {
        run_apart("processes::killed_parent", model);
    }
}

#[test]
#[ignore = "run by the test above"]
fn killed_parent() {
    let server = start(model_to_try(), Commands::new());
    let (mut client, process) = served(&server);
    assert!(!server.is_finished());
    kill(parent());
    assert_eq!(rest(&mut client), b"");
    eventually("the child is gone", || !is_alive(process));
    eventually("it is noticed", || server.is_finished());
    server.join();
}

#[test]
fn a_killed_caller_leaves_no_process_behind() {
    for model in FORKING {
        let mut caller = Caller::start(model);
        let processes = caller.processes();
        assert!(processes.len() > 1 && processes.iter().all(|&process| is_alive(process)), "{model}");
        caller.process.kill().unwrap();
        caller.process.wait().unwrap();
        eventually("all are gone", || !processes.iter().any(|&process| is_alive(process)));
    }
}

/// A server with a connection held open, in a process of its own.
#[test]
#[ignore = "run by the test above"]
fn server_to_be_orphaned() {
    let server = start_with(model_to_try(), &Options { workers: 3, ..options() }, Commands::new());
    let (mut client, process) = served(&server);
    let parent = parent();
    let serving = if model_to_try() == Model::Prefork { 3 } else { 1 };
    // One more has tried to make a service, and may not have ended yet.
    eventually("only those that serve are left", || children_of(parent).len() == serving);
    let children: Vec<String> =
        children_of(parent).iter().map(|child| child.as_raw_nonzero().to_string()).collect();
    assert!(children.contains(&process.as_raw_nonzero().to_string()));
    println!("\nprocesses {} {}", parent.as_raw_nonzero(), children.join(" "));
    ask(&mut client, "forever");
}

struct Caller {
    process: Child,
}

impl Caller {
    fn start(model: Model) -> Self {
        let mut command = apart("processes::server_to_be_orphaned", model);
        Self { process: command.stdout(Stdio::piped()).spawn().expect("a process") }
    }

    /// The parent and its children.
    fn processes(&mut self) -> Vec<Pid> {
        let output = BufReader::new(self.process.stdout.take().expect("a pipe"));
        let told = output.lines().map_while(Result::ok).find_map(|line| {
            Some(line.strip_prefix("processes ")?.split(' ').flat_map(str::parse).collect::<Vec<i32>>())
        });
        told.expect("the processes").into_iter().filter_map(Pid::from_raw).collect()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // Already gone if all went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_kept_connection_gives_its_worker_up_after_its_answer_while_others_wait() {
    run_apart("processes::kept_and_waiting", Model::Prefork);
}

#[test]
#[ignore = "run by the test above"]
fn kept_and_waiting() {
    let server = start_with(model_to_try(), &Options { workers: 1, ..options() }, Commands::new());
    let mut kept = connect(&server);
    kept.write_all(b"hello you\nhalf a").unwrap();
    assert_eq!(read_line(&mut kept), "hello you");
    let mut waiting = connect(&server);
    waiting.write_all(b"hello too\n").unwrap();
    assert_eq!(ask(&mut kept, " request"), "half a request");
    assert_eq!(rest(&mut kept), b"");
    assert_eq!(read_line(&mut waiting), "hello too");
}

#[test]
fn idle_kept_connections_give_way_to_waiting_clients() {
    run_apart("processes::idle_and_waiting", Model::Prefork);
}

#[test]
#[ignore = "run by the test above"]
fn idle_and_waiting() {
    let server = start_with(model_to_try(), &Options { workers: 3, ..options() }, Commands::new());
    let mut fresh = connect(&server);
    eventually("it has a worker", || server.counters().active() == 1);
    let mut kept: Vec<TcpStream> = (0..2).map(|_| connect(&server)).collect();
    kept.iter_mut().for_each(|client| assert_eq!(ask(client, "hello you"), "hello you"));
    let mut waiting = connect(&server);
    assert_eq!(ask(&mut waiting, "hello too"), "hello too");
    let mut others: Vec<TcpStream> = (0..2).map(|_| connect(&server)).collect();
    others.iter_mut().for_each(|client| client.write_all(b"hello more\n").expect("sent"));
    others.iter_mut().for_each(|client| assert_eq!(read_line(client), "hello more"));
    // Three came, and at least three made room. Which ones is not specified, nor that there are no more: one that the
    // parent tells to close and one that has just been answered may both make room for the same newcomer.
    let all = || kept.iter().chain([&waiting]).chain(&others);
    let gone = || all().filter(|client| has_ended(client)).count();
    eventually("three made room", || gone() >= 3);
    eventually("the others are kept", || server.counters().active() + gone() == 6);
    // A connection that never sent a request is not closed to make room.
    assert_eq!(ask(&mut fresh, "hello at last"), "hello at last");
}

/// Whether the peer has closed, without taking input.
fn has_ended(client: &TcpStream) -> bool {
    client.set_nonblocking(true).expect("set");
    let ended = matches!(client.peek(&mut [0]), Ok(0));
    client.set_nonblocking(false).expect("set");
    ended
}

#[test]
fn clients_waiting_when_the_server_begins_to_drain_are_served() {
    run_apart("processes::waiting_at_the_end", Model::Prefork);
}

#[test]
#[ignore = "run by the test above"]
fn waiting_at_the_end() {
    let server = start_with(model_to_try(), &Options { workers: 1, ..options() }, Commands::new());
    let mut busy = connect(&server);
    busy.write_all(b"hello you\nhalf a").unwrap();
    assert_eq!(read_line(&mut busy), "hello you");
    let mut waiting: Vec<TcpStream> = (0..3).map(|_| connect(&server)).collect();
    waiting.iter_mut().for_each(|client| client.write_all(b"hello too\n").unwrap());
    server.drain(Duration::from_secs(600));
    let address = server.local_addr();
    eventually("nobody listens", || TcpStream::connect(address).is_err());
    busy.write_all(b" request\n").unwrap();
    assert_eq!(rest(&mut busy), b"half a request\n");
    waiting.iter_mut().for_each(|client| assert_eq!(rest(client), b"hello too\n"));
    server.join();
}

#[test]
fn two_servers_of_one_program_hold_none_of_each_others_connections() {
    for model in FORKING {
        run_apart("processes::two_servers", model);
    }
}

#[test]
#[ignore = "run by the test above"]
fn two_servers() {
    let first = start(Model::Threads, Commands::new());
    let mut client = connect(&first);
    assert_eq!(ask(&mut client, "hello you"), "hello you");
    let _second = start(model_to_try(), Commands::new());
    client.write_all(b"panic\n").unwrap();
    assert_eq!(rest(&mut client), b"", "the end is seen, though a process was forked meanwhile");
}
