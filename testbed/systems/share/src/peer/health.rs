//! Records how other peers answer when they are asked for content.

use std::{
    collections::HashMap,
    net::SocketAddr,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde::Serialize;

use crate::{
    entry::Content,
    interfaces::{ContentSource, FetchError},
};

/// Most peers to remember; beyond, the one asked longest ago is forgotten.
const PEERS_MAX: usize = 1000;

/// Asks peers through another source, and records how each of them answers.
pub(crate) struct PeerMonitor {
    source: Arc<dyn ContentSource>,
    records: Mutex<HashMap<SocketAddr, PeerRecord>>,
}

struct PeerRecord {
    asked: Instant,
    answered: Option<Instant>,
    bytes: u64,
    failures: u64,
    trouble: Option<String>,
}

/// How a peer has answered so far.
#[derive(Debug, Serialize)]
pub(crate) struct PeerHealth {
    peer: SocketAddr,
    /// Seconds since it last answered; `None` if it never did.
    answered_s_ago: Option<u64>,
    /// Bytes that it sent, right or wrong.
    bytes: u64,
    /// How often it did not send what it was asked for.
    failures: u64,
    /// What was wrong at the last request.
    trouble: Option<String>,
    /// How it sent wrong content, if it did.
    lied: Option<String>,
}

impl PeerMonitor {
    pub(crate) fn new(source: Arc<dyn ContentSource>) -> Self {
        Self { source, records: Mutex::default() }
    }

    /// How all known peers have answered, the most recently asked first. `liars` are the peers that sent wrong content.
    pub(crate) fn health(&self, mut liars: HashMap<SocketAddr, String>) -> Vec<PeerHealth> {
        let known = self.records();
        let mut latest: Vec<_> = known.iter().collect();
        latest.sort_by_key(|(_, known)| std::cmp::Reverse(known.asked));
        let show = |(&peer, known): (&SocketAddr, &PeerRecord)| PeerHealth {
            peer,
            answered_s_ago: known.answered.map(|at| at.elapsed().as_secs()),
            bytes: known.bytes,
            failures: known.failures,
            trouble: known.trouble.clone(),
            lied: liars.remove(&peer),
        };
        latest.into_iter().map(show).collect()
    }

    fn record(&self, from: SocketAddr, answer: &Result<Vec<u8>, FetchError>) {
        let (now, mut all) = (Instant::now(), self.records());
        if all.len() >= PEERS_MAX && !all.contains_key(&from) {
            let oldest = all.iter().min_by_key(|(_, known)| known.asked).map(|(&peer, _)| peer);
            oldest.map(|oldest| all.remove(&oldest));
        }
        let unknown = PeerRecord { asked: now, answered: None, bytes: 0, failures: 0, trouble: None };
        let known = all.entry(from).or_insert(unknown);
        known.asked = now;
        match answer {
            Ok(bytes) => {
                known.answered = Some(now);
                known.bytes += bytes.len() as u64;
                known.trouble = None;
            }
            Err(error) => {
                known.failures += 1;
                known.trouble = Some(error.to_string());
            }
        }
    }

    fn records(&self) -> MutexGuard<'_, HashMap<SocketAddr, PeerRecord>> {
        // No code panics while holding the lock.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContentSource for PeerMonitor {
    fn outboard(&self, from: SocketAddr, content: &Content, length: u64) -> Result<Vec<u8>, FetchError> {
        let answer = self.source.outboard(from, content, length);
        self.record(from, &answer);
        answer
    }

    fn bytes(
        &self,
        from: SocketAddr,
        content: &Content,
        length: u64,
        range: Range<u64>,
    ) -> Result<Vec<u8>, FetchError> {
        let answer = self.source.bytes(from, content, length, range);
        self.record(from, &answer);
        answer
    }

    fn tell_wrong(&self, whom: SocketAddr, content: &Content) {
        self.source.tell_wrong(whom, content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers from even ports, and fails from odd ones.
    struct Half;

    impl ContentSource for Half {
        fn outboard(&self, _: SocketAddr, _: &Content, _: u64) -> Result<Vec<u8>, FetchError> {
            Err(FetchError::TooSlow)
        }

        fn bytes(&self, from: SocketAddr, _: &Content, _: u64, _: Range<u64>) -> Result<Vec<u8>, FetchError> {
            if from.port().is_multiple_of(2) { Ok(vec![0; 10]) } else { Err(FetchError::TooSlow) }
        }
    }

    #[test]
    fn what_came_and_what_did_not_is_counted_by_peer_and_the_longest_silent_is_forgotten() {
        let (watched, content) = (PeerMonitor::new(Arc::new(Half)), Content::of(b"x"));
        let peer = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for port in [1, 2, 2] {
            let _ = watched.bytes(peer(port), &content, 10, 0..10);
        }
        let all = watched.health(HashMap::from([(peer(2), "zeros".to_owned())]));
        let [good, bad] = &all[..] else { panic!("{all:?}") };
        assert_eq!((good.peer, good.bytes, good.failures), (peer(2), 20, 0));
        assert_eq!((good.answered_s_ago.is_some(), good.lied.as_deref()), (true, Some("zeros")));
        assert_eq!((bad.peer, bad.bytes, bad.failures), (peer(1), 0, 1));
        assert_eq!((bad.answered_s_ago, bad.trouble.as_deref()), (None, Some("it is too slow")));
        for port in 0..1000 {
            let _ = watched.outboard(peer(1000 + port), &content, 1);
        }
        let all = watched.health(HashMap::new());
        assert!(all.len() == PEERS_MAX && all.iter().all(|health| health.peer.port() >= 1000));
    }
}
