//! All pollers against the same expectations.

use std::{
    io::{Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    time::{Duration, Instant},
};

use super::{
    epoll::Epoll,
    poll::Poll,
    poller::{Event, Interest, Poller},
    polling::Polling,
    select::Select,
};
use crate::{completion::aio::Aio, loops::Key};

/// Longer than any of these waits takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test of a back-end for each one named.
macro_rules! for_each_poller {
    ($test:ident: $($poller:ty),+) => { $( $test::<$poller>(); )+ };
}

/// The keys of the sockets that become readable within `timeout`.
fn readable<P: Poller>(poller: &mut P, timeout: Duration) -> Vec<Key> {
    let mut events = Vec::new();
    poller.wait(Some(timeout), &mut events).unwrap();
    let mut keys: Vec<Key> = events.iter().filter(|event| event.readable).map(|event| event.key).collect();
    keys.sort();
    keys
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

fn reported_each_time<P: Poller>() {
    let (mut poller, (mut ours, mut theirs)) = (P::new().unwrap(), pair());
    let key = Key::reserved(7);
    poller.watch(ours.as_fd(), key, Interest::Read).unwrap();
    for _ in 0..3 {
        theirs.write_all(b"x").unwrap();
        assert_eq!(readable(&mut poller, PATIENCE), [key]);
        ours.read_exact(&mut [0]).unwrap();
        poller.rearm(ours.as_fd(), key, Interest::Read).unwrap();
    }
    drop(theirs);
    assert_eq!(readable(&mut poller, PATIENCE), [key], "the end is something to read");
}

#[test]
fn a_socket_is_reported_each_time_it_is_waited_for() {
    for_each_poller!(reported_each_time: Aio, Epoll, Poll, Polling, Select);
}

fn reported_once<P: Poller>() {
    let (mut poller, (ours, mut theirs)) = (P::new().unwrap(), pair());
    let key = Key::reserved(7);
    poller.watch(ours.as_fd(), key, Interest::Read).unwrap();
    theirs.write_all(b"x").unwrap();
    assert_eq!(readable(&mut poller, PATIENCE), [key]);
    assert_eq!(readable(&mut poller, Duration::ZERO), [], "nobody waits for it now");
}

#[test]
fn a_socket_nobody_waits_for_any_more_is_silent() {
    for_each_poller!(reported_once: Aio, Epoll, Poll, Polling, Select);
}

fn latest_interest_holds<P: Poller>() {
    let (mut poller, (ours, _theirs)) = (P::new().unwrap(), pair());
    let key = Key::reserved(7);
    let mut events = Vec::new();
    poller.watch(ours.as_fd(), key, Interest::Write).unwrap();
    poller.rearm(ours.as_fd(), key, Interest::Read).unwrap();
    poller.wait(Some(Duration::ZERO), &mut events).unwrap();
    assert!(events.is_empty(), "{events:?}");
    poller.rearm(ours.as_fd(), key, Interest::Write).unwrap();
    poller.wait(Some(PATIENCE), &mut events).unwrap();
    assert!(matches!(events[..], [Event { writable: true, closed: false, .. }]), "{events:?}");
}

#[test]
fn the_latest_interest_holds() {
    for_each_poller!(latest_interest_holds: Aio, Poll, Select);
}

fn forgotten_among_others<P: Poller>() {
    let mut poller = P::new().unwrap();
    let mut pairs: Vec<_> = (0..20).map(|_| pair()).collect();
    for (number, (ours, theirs)) in (0..).zip(&mut pairs) {
        poller.watch(ours.as_fd(), Key::reserved(number), Interest::Read).unwrap();
        theirs.write_all(b"x").unwrap();
    }
    for number in [19, 0, 7, 8] {
        poller.forget(pairs[number].0.as_fd(), Key::reserved(number as u32));
    }
    poller.forget(pairs[0].1.as_fd(), Key::reserved(99));
    let left = (0..20).filter(|number| ![19, 0, 7, 8].contains(number)).map(Key::reserved);
    assert_eq!(readable(&mut poller, PATIENCE), left.collect::<Vec<_>>());
    assert_eq!(readable(&mut poller, Duration::ZERO), []);
}

#[test]
fn a_forgotten_socket_is_silent_and_the_others_are_reported() {
    for_each_poller!(forgotten_among_others: Aio, Epoll, Poll, Select);
}

fn standing_until_forgotten<P: Poller>() {
    let (mut poller, (ours, mut theirs)) = (P::new().unwrap(), pair());
    let key = Key::reserved(7);
    poller.watch_readable(ours.as_fd(), key).unwrap();
    assert_eq!(readable(&mut poller, Duration::ZERO), []);
    theirs.write_all(b"x").unwrap();
    for _ in 0..3 {
        assert_eq!(readable(&mut poller, PATIENCE), [key]);
    }
    poller.forget(ours.as_fd(), key);
    assert_eq!(readable(&mut poller, Duration::ZERO), []);
}

#[test]
fn a_descriptor_watched_for_good_is_reported_until_it_is_forgotten() {
    for_each_poller!(standing_until_forgotten: Aio, Epoll, Poll, Polling, Select);
}

fn sleeps_for_its_time<P: Poller>() {
    let (mut poller, begin) = (P::new().unwrap(), Instant::now());
    assert_eq!(readable(&mut poller, Duration::from_millis(20)), []);
    assert!(begin.elapsed() >= Duration::from_millis(20), "{:?}", begin.elapsed());
}

#[test]
fn with_nothing_to_wait_for_every_back_end_sleeps_for_its_time() {
    for_each_poller!(sleeps_for_its_time: Aio, Epoll, Poll, Polling, Select);
}

#[test]
fn polling_tries_a_socket_without_asking_or_waiting() {
    let (mut poller, (ours, _theirs)) = (Polling::new().unwrap(), pair());
    let (key, begin) = (Key::reserved(7), Instant::now());
    poller.watch(ours.as_fd(), key, Interest::Read).unwrap();
    assert_eq!(readable(&mut poller, PATIENCE), [key]);
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
}
