//! What is known of the peers that content was asked of.

use std::{
    collections::HashMap,
    net::SocketAddr,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde::Serialize;

use crate::{
    content::Content,
    seam::{Obtain, ObtainError},
};

/// Most peers of which something is known; beyond, the one asked longest ago is forgotten.
const PEERS_MAX: usize = 1000;

/// Asks peers, and notes how each of them answers.
pub(crate) struct Watched {
    peers: Arc<dyn Obtain>,
    known: Mutex<HashMap<SocketAddr, Known>>,
}

struct Known {
    asked: Instant,
    answered: Option<Instant>,
    bytes: u64,
    failures: u64,
    trouble: Option<String>,
}

/// How a peer does.
#[derive(Debug, Serialize)]
pub(crate) struct Health {
    peer: SocketAddr,
    /// How long ago it answered last, seconds; none: it never did.
    answered_s_ago: Option<u64>,
    /// What it sent, right or wrong, bytes.
    bytes: u64,
    /// How often it did not give what it was asked for.
    failures: u64,
    /// What was wrong when it was asked last.
    trouble: Option<String>,
    /// How it sent what is not the content, if it did.
    lied: Option<String>,
}

impl Watched {
    pub(crate) fn new(peers: Arc<dyn Obtain>) -> Self {
        Self { peers, known: Mutex::default() }
    }

    /// How each peer does, the one asked last first. Liars were found by those who looked at what came.
    pub(crate) fn health(&self, mut liars: HashMap<SocketAddr, String>) -> Vec<Health> {
        let known = self.known();
        let mut latest: Vec<_> = known.iter().collect();
        latest.sort_by_key(|(_, known)| std::cmp::Reverse(known.asked));
        let show = |(&peer, known): (&SocketAddr, &Known)| Health {
            peer,
            answered_s_ago: known.answered.map(|at| at.elapsed().as_secs()),
            bytes: known.bytes,
            failures: known.failures,
            trouble: known.trouble.clone(),
            lied: liars.remove(&peer),
        };
        latest.into_iter().map(show).collect()
    }

    fn note(&self, from: SocketAddr, answer: &Result<Vec<u8>, ObtainError>) {
        let (now, mut all) = (Instant::now(), self.known());
        if all.len() >= PEERS_MAX && !all.contains_key(&from) {
            let oldest = all.iter().min_by_key(|(_, known)| known.asked).map(|(&peer, _)| peer);
            oldest.map(|oldest| all.remove(&oldest));
        }
        let unknown = Known { asked: now, answered: None, bytes: 0, failures: 0, trouble: None };
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

    fn known(&self) -> MutexGuard<'_, HashMap<SocketAddr, Known>> {
        // Nothing panics while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Obtain for Watched {
    fn outboard(&self, from: SocketAddr, content: &Content, length: u64) -> Result<Vec<u8>, ObtainError> {
        let answer = self.peers.outboard(from, content, length);
        self.note(from, &answer);
        answer
    }

    fn bytes(
        &self,
        from: SocketAddr,
        content: &Content,
        length: u64,
        range: Range<u64>,
    ) -> Result<Vec<u8>, ObtainError> {
        let answer = self.peers.bytes(from, content, length, range);
        self.note(from, &answer);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what is asked for from an even port, and nothing from others.
    struct Half;

    impl Obtain for Half {
        fn outboard(&self, _: SocketAddr, _: &Content, _: u64) -> Result<Vec<u8>, ObtainError> {
            Err(ObtainError::Slow)
        }

        fn bytes(
            &self,
            from: SocketAddr,
            _: &Content,
            _: u64,
            _: Range<u64>,
        ) -> Result<Vec<u8>, ObtainError> {
            if from.port().is_multiple_of(2) { Ok(vec![0; 10]) } else { Err(ObtainError::Slow) }
        }
    }

    #[test]
    fn what_came_and_what_did_not_is_counted_by_peer_and_the_longest_silent_is_forgotten() {
        let (watched, content) = (Watched::new(Arc::new(Half)), Content::of(b"x"));
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
