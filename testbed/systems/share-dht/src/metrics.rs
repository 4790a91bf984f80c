//! Metrics of this peer's part of the index.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, TypedMetric, counter::Counter, family::Family, gauge::ConstGauge},
};

use crate::message::Request;

/// The counters. Clones count into the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    sent: Family<Message, Counter>,
    received: Family<Message, Counter>,
    searches: Family<Search, Counter>,
    lookups: Counter,
    lookup_messages: Counter,
    refresh_messages: Counter,
    turned_away: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Message {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Search {
    answered: &'static str,
}

/// How a search was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// Without asking any peer.
    Here,
    /// By asking peers that were known to hold the key: one hop.
    Asked,
    /// By first looking up the peers that hold the key.
    LookedUp,
}

impl Search {
    fn of(answered: Answered) -> Self {
        let answered = match answered {
            Answered::Here => "here",
            Answered::Asked => "asked",
            Answered::LookedUp => "looked up",
        };
        Self { answered }
    }
}

impl Metrics {
    pub(crate) fn sent(&self, request: &Request) {
        self.sent.get_or_create(&Message { kind: kind(request) }).inc();
    }

    pub(crate) fn received(&self, request: &Request) {
        self.received.get_or_create(&Message { kind: kind(request) }).inc();
    }

    pub(crate) fn searched(&self, answered: Answered) {
        self.searches.get_or_create(&Search::of(answered)).inc();
    }

    /// Counts a lookup and its messages.
    pub(crate) fn looked_up(&self, messages: u32) {
        self.lookups.inc();
        self.lookup_messages.inc_by(messages.into());
    }

    /// Counts messages that refresh the routing table.
    pub(crate) fn refreshed(&self, messages: u32) {
        self.refresh_messages.inc_by(messages.into());
    }

    /// Counts a peer that was rejected because it is not a member.
    pub(crate) fn turned_away(&self) {
        self.turned_away.inc();
    }

    /// Encodes all metrics, with the numbers of other known peers and of stored records.
    pub(crate) fn show(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (peers, records): (usize, usize),
    ) -> fmt::Result {
        let gauge = |number| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
        show(encoder, "dht_peers", "Other peers in the routing table", &gauge(peers))?;
        show(encoder, "dht_records", "Records kept, each of one file under one key", &gauge(records))?;
        show(encoder, "dht_sent", "Messages sent, by kind; lookups are counted apart", &self.sent)?;
        show(encoder, "dht_received", "Messages received, by kind", &self.received)?;
        show(encoder, "dht_searches", "Searches, by how they were answered", &self.searches)?;
        show(encoder, "dht_lookups", "Lookups of who answers for a key", &self.lookups)?;
        show(encoder, "dht_lookup_messages", "Messages that lookups sent", &self.lookup_messages)?;
        let learning = "Messages sent to learn who there is";
        show(encoder, "dht_refresh_messages", learning, &self.refresh_messages)?;
        show(encoder, "dht_turned_away", "Connections of peers that are no members", &self.turned_away)
    }

    #[cfg(test)]
    pub(crate) fn sent_of(&self, kind: &'static str) -> u64 {
        self.sent.get_or_create(&Message { kind }).get()
    }

    #[cfg(test)]
    pub(crate) fn lookup_messages(&self) -> u64 {
        self.lookup_messages.get()
    }

    #[cfg(test)]
    pub(crate) fn searches(&self, answered: Answered) -> u64 {
        self.searches.get_or_create(&Search::of(answered)).get()
    }
}

fn kind(request: &Request) -> &'static str {
    match request {
        Request::Keep { .. } => "keep",
        Request::Renew { .. } => "renew",
        Request::Forget { .. } => "forget",
        Request::Leave => "leave",
        Request::Find { .. } => "find",
    }
}

fn show(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &(impl EncodeMetric + TypedMetric),
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric_type(metric))?)
}

fn metric_type<M: TypedMetric>(_: &M) -> MetricType {
    M::TYPE
}
