//! The end of a machine that joined a fleet: it says that it is there, and lets itself be claimed by one run at a time.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::{oneshot, watch};

use crate::connection::{Bus, BusError};
use crate::message::{self, Answer, Claim, Presence, WHO, claim_subject, stream_subjects};
use crate::stream::{Farewell, Reader, Way, Writer, open};

/// What a member says of itself.
#[derive(Debug, Clone)]
pub struct Card {
    /// The name of its host.
    pub host: String,
    /// The version of what it says over a stream.
    pub version: String,
    /// Whether it observes, rather than makes load.
    pub observes: bool,
}

/// A machine's membership in a fleet, until dropped.
#[derive(Debug)]
pub struct Membership {
    bus: Bus,
    claims: mpsc::Receiver<Claimed>,
    busy: Busy,
    /// Ends the answers when it is dropped.
    _leave: oneshot::Sender<()>,
}

/// A run that claimed this machine.
#[derive(Debug)]
pub struct Run {
    /// Who runs, as they say.
    pub who: String,
    /// What the run says.
    pub reader: Reader,
    /// What it is told.
    pub writer: Writer,
    freed: Freed,
}

/// Who runs here now.
type Busy = Arc<Mutex<Option<String>>>;

/// A claim that was granted, and where its stream goes.
struct Claimed {
    who: String,
    way: Way,
}

/// Makes a machine free again when it is dropped.
#[derive(Debug)]
struct Freed(Busy);

impl Drop for Freed {
    fn drop(&mut self) {
        set(&self.0, None);
    }
}

impl Membership {
    /// Joins the fleet that meets on this bus.
    ///
    /// # Errors
    /// If the bus went away meanwhile.
    pub fn join(bus: &Bus, card: &Card) -> Result<Self, BusError> {
        let presence = Presence {
            id: message::random_word().map_err(std::io::Error::from)?,
            host: card.host.clone(),
            version: card.version.clone(),
            observes: card.observes,
            busy: None,
        };
        let (client, busy, (tell, claims)) = (bus.client(), Busy::default(), mpsc::channel());
        let subscribing = async {
            let who = client.subscribe(WHO).await?;
            Ok::<_, async_nats::SubscribeError>((who, client.subscribe(claim_subject(&presence.id)).await?))
        };
        let (asked, claimed) = bus.wait_for(subscribing).map_err(std::io::Error::other)?;
        let attendant = Attendant { client, breaks: bus.breaks(), presence, busy: Arc::clone(&busy), tell };
        let (leave, left) = oneshot::channel();
        bus.spawn(attendant.attend((asked, claimed), left));
        Ok(Self { bus: bus.clone(), claims, busy, _leave: leave })
    }

    /// Waits for the next run. `None` if the bus refuses this machine for good.
    #[must_use]
    pub fn next_run(&self) -> Option<Run> {
        let Claimed { who, way } = self.claims.recv().ok()?;
        let freed = Freed(Arc::clone(&self.busy));
        let (reader, writer) = open(&self.bus, way);
        Some(Run { who, reader, writer, freed })
    }
}

impl Run {
    /// The two ways of the stream, and what ends the run.
    pub fn split(self) -> (Reader, Writer, impl FnOnce(Writer, &Farewell)) {
        let Self { reader, writer, freed, .. } = self;
        (reader, writer, move |writer: Writer, farewell: &Farewell| {
            // Whoever hears the goodbye may claim this machine at once.
            drop(freed);
            writer.say_goodbye(farewell);
        })
    }
}

/// Answers for a member.
struct Attendant {
    client: Client,
    breaks: watch::Receiver<u64>,
    presence: Presence,
    busy: Busy,
    tell: mpsc::Sender<Claimed>,
}

impl Attendant {
    async fn attend(
        self,
        (mut asked, mut claimed): (Subscriber, Subscriber),
        mut left: oneshot::Receiver<()>,
    ) {
        loop {
            let (message, is_claim) = tokio::select! {
                message = asked.next() => (message, false),
                message = claimed.next() => (message, true),
                _ = &mut left => return,
            };
            let Some(Message { payload, reply: Some(reply), .. }) = message else {
                if message.is_none() {
                    return;
                }
                continue;
            };
            let answer = if is_claim {
                let Some(claim) = message::read(&payload).and_then(Claim::sound) else { continue };
                message::written(&self.answer(claim).await)
            } else {
                message::written(&Presence { busy: get(&self.busy), ..self.presence.clone() })
            };
            // Where the connection broke nobody waits for it any more.
            let _ = self.client.publish(reply, answer.into()).await;
        }
    }

    async fn answer(&self, claim: Claim) -> Answer {
        if claim.version != self.presence.version {
            return Answer::OtherVersion(self.presence.version.clone());
        }
        if let Some(who) = get(&self.busy) {
            return Answer::Busy(who);
        }
        let (down, up) = stream_subjects(&claim.run, &self.presence.id);
        // Whoever takes the run up may come to it after the connection broke.
        let mut breaks = self.breaks.clone();
        breaks.mark_unchanged();
        // What the run sends comes after the answer, and this before it.
        let Ok(from) = self.client.subscribe(down).await else { return Answer::Busy(String::new()) };
        set(&self.busy, Some(claim.who.clone()));
        let _ = self.tell.send(Claimed { who: claim.who, way: Way { from, to: up, breaks } });
        Answer::Claimed
    }
}

fn get(busy: &Busy) -> Option<String> {
    busy.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn set(busy: &Busy, who: Option<String>) {
    *busy.lock().unwrap_or_else(PoisonError::into_inner) = who;
}
