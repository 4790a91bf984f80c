//! Single flight: while a credential is being checked, others that present the same one wait for that answer.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::access::{fingerprint::Fingerprint, verdict::Verdict};

/// The checks under way.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    under_way: Mutex<HashMap<Fingerprint, Arc<Flight>>>,
}

/// One check under way, as those see it who wait for it.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    landed: Option<Landed>,
    waiting: Vec<Waker>,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Landed {
    /// With an answer.
    Here(Verdict),
    /// Whoever was checking went away; check again.
    Nowhere,
}

/// What someone who presents a credential is to do.
#[derive(Debug)]
pub(crate) enum Boarding<'a, K> {
    /// It was found right meanwhile: what is known of it.
    Known(K),
    /// Check it, for all who wait.
    Lead(Lead<'a>),
    /// Wait for the one who checks it.
    Follow(Arc<Flight>),
}

impl Flights {
    /// Joins the check of a credential, or begins it. `known` is asked when no check can end unseen.
    pub(crate) fn board<K>(&self, of: Fingerprint, known: impl FnOnce() -> Option<K>) -> Boarding<'_, K> {
        let mut under_way = lock(&self.under_way);
        if let Some(known) = known() {
            return Boarding::Known(known);
        }
        if let Some(flight) = under_way.get(&of) {
            return Boarding::Follow(Arc::clone(flight));
        }
        let flight = Arc::new(Flight::default());
        under_way.insert(of, Arc::clone(&flight));
        Boarding::Lead(Lead { flights: self, of, flight, landed: Landed::Nowhere })
    }
}

/// The duty to check. Dropped without [`Lead::land`], it tells those who wait to check themselves.
#[derive(Debug)]
pub(crate) struct Lead<'a> {
    flights: &'a Flights,
    of: Fingerprint,
    flight: Arc<Flight>,
    landed: Landed,
}

impl Lead<'_> {
    /// Gives the answer to all who wait.
    pub(crate) fn land(mut self, verdict: Verdict) {
        self.landed = Landed::Here(verdict);
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        lock(&self.flights.under_way).remove(&self.of);
        let waiting = {
            let mut state = lock(&self.flight.state);
            state.landed = Some(std::mem::replace(&mut self.landed, Landed::Nowhere));
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Flight {
    /// Waits for the answer.
    pub(crate) async fn landed(&self) -> Landed {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Landed> {
        let mut state = lock(&self.state);
        if let Some(landed) = &state.landed {
            return Poll::Ready(landed.clone());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// What is under the locks is whole at every step, so a thread that panicked has spoilt nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const OF: Fingerprint = [1; 32];

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn board(flights: &Flights) -> Boarding<'_, ()> {
        flights.board(OF, || None)
    }

    fn follow(flights: &Flights) -> Arc<Flight> {
        match board(flights) {
            Boarding::Follow(flight) => flight,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_leads_the_others_get_its_answer_and_the_next_begins_anew() {
        let flights = Flights::default();
        let Boarding::Lead(lead) = board(&flights) else { panic!("nobody leads") };
        let flight = follow(&flights);
        let mut waiting = pin!(flight.landed());
        assert!(poll(waiting.as_mut()).is_pending());
        assert!(matches!(flights.board([2; 32], || None::<()>), Boarding::Lead(_)), "another credential");
        lead.land(Verdict::Wrong);
        assert_eq!(poll(waiting.as_mut()), Poll::Ready(Landed::Here(Verdict::Wrong)));
        assert!(matches!(board(&flights), Boarding::Lead(_)));
    }

    #[test]
    fn a_leader_that_goes_away_leaves_the_check_to_the_next() {
        let flights = Flights::default();
        let lead = board(&flights);
        let flight = follow(&flights);
        drop(lead);
        assert_eq!(poll(pin!(flight.landed())), Poll::Ready(Landed::Nowhere));
        assert!(matches!(board(&flights), Boarding::Lead(_)));
    }

    #[test]
    fn what_became_known_meanwhile_is_not_checked_again() {
        let flights = Flights::default();
        assert!(matches!(flights.board(OF, || Some(7)), Boarding::Known(7)));
        assert!(matches!(board(&flights), Boarding::Lead(_)));
    }
}
