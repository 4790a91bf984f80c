//! Whether a request is outstanding on a connection, from what the kernel counts at its two ends.
//!
//! The contents are not looked at: on a connection with one request at a time, one is outstanding if the client sent
//! last. Unread and unacknowledged bytes tell that without a clock. Otherwise the times of the last data do, in
//! milliseconds that may be rounded to the kernel's tick. Where they are equal, either a response and the next request
//! or a request and its response followed each other within one tick. Then segments are counted, on connections of which
//! each message is one: on from an earlier look that told ([`Told`]), or from the beginning, as far as connections to the
//! same server have shown by how much clients are ahead when nothing is under way ([`Lead`]).

use std::collections::BTreeMap;

/// What one end of a connection tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// It has received data that its process has not read.
    pub(crate) unread: bool,
    /// It has sent data that the other end has not acknowledged.
    pub(crate) unacknowledged: bool,
    /// Times and counts; `None` where the kernel does not tell.
    pub(crate) exchange: Option<Exchange>,
}

/// Times and counts of the segments at one end (struct tcp_info).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// Since it last sent data.
    pub(crate) sent_ms_ago: u32,
    /// Since it last received data.
    pub(crate) received_ms_ago: u32,
    /// Since it last received an acknowledgement, which data carries too.
    pub(crate) acknowledged_ms_ago: u32,
    /// All segments sent.
    pub(crate) sent_segments: u32,
    /// All segments received.
    pub(crate) received_segments: u32,
    /// Segments received that carried data.
    pub(crate) received_data_segments: u32,
    /// Segments sent that carried data.
    pub(crate) sent_data_segments: u32,
}

/// The end that sent last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastWord {
    Own,
    Other,
    /// Neither has sent anything.
    Nobody,
}

/// What is under way on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// Nothing: it was answered, or there was none.
    None,
    /// Sent, and not read by the server.
    Unread,
    /// Read by the server, and not answered.
    Held,
    /// Nothing, or one that is held.
    Unclear,
}

/// What is under way on a connection of which one end or both are known, and what is known of it from now on. Where the
/// ends do not tell, it is counted on from what was known `before`, or counted from the beginning, with the `lead` that
/// clients of this server have. How messages are acknowledged is the last thing to go by.
pub(crate) fn request(
    client: Option<&End>,
    server: Option<&End>,
    before: Option<Known>,
    lead: &mut Lead,
) -> (Request, Option<Known>) {
    // A connection that is idle looks the same each time, so it teaches only once.
    let last_messages = before.map(|known| known.messages);
    let last_told = before.and_then(|known| known.told);
    let (request, messages) = told(client, server);
    if request != Request::Unclear {
        let told = messages.and_then(|messages| Told::of(messages, request));
        let is_new = |told: &Told| last_told.is_none_or(|last| last.messages != told.messages);
        if let Some(told) = told.filter(is_new) {
            lead.learn(told);
        }
        return (request, messages.map(|messages| Known { messages, told }));
    }
    let messages = Messages::at_server(server).or_else(|| Messages::at_client(client));
    let Some(messages) = messages else { return (Request::Unclear, before) };
    if last_messages != Some(messages) {
        lead.note(messages, last_messages);
    }
    let counted = last_told.map_or(Request::Unclear, |told| told.now(messages));
    let request = counted.or_else(|| lead.request(messages, last_told)).or_else(|| guessed(client, server));
    (request, Some(Known { messages, told: last_told }))
}

/// What bytes and times tell, and the messages by then at the end that tells it: the other end is looked at a moment earlier or
/// later.
fn told(client: Option<&End>, server: Option<&End>) -> (Request, Option<Messages>) {
    let at_server = Messages::at_server(server);
    if server.is_some_and(|server| server.unread) {
        return (Request::Unread, at_server);
    }
    if let Some(last) = server.and_then(End::last_word) {
        return (Request::if_outstanding(Some(last == LastWord::Other)), at_server);
    }
    let by_client = client.and_then(End::last_word).map(|last| last == LastWord::Own);
    (Request::if_outstanding(by_client), Messages::at_client(client))
}

/// What follows from who acknowledges before it replies. Who lets replies acknowledge may hold a request for a while
/// nevertheless: acknowledgements are delayed for tens of milliseconds (RFC 9293, 3.8.6.3).
fn guessed(client: Option<&End>, server: Option<&End>) -> Request {
    let by_server = server.and_then(End::acknowledges_first);
    let is_first = by_server.or_else(|| client.and_then(End::is_acknowledged_first));
    if is_first == Some(true) { Request::Held } else { Request::Unclear }
}

impl Request {
    fn if_outstanding(outstanding: Option<bool>) -> Self {
        match outstanding {
            Some(true) => Self::Held,
            Some(false) => Self::None,
            None => Self::Unclear,
        }
    }

    /// This, or what else tells where this does not.
    fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::Unclear { other() } else { self }
    }
}

/// What is known of a connection after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its messages at the look.
    messages: Messages,
    /// What was told last; `None` where nothing ever was.
    told: Option<Told>,
}

/// Whether a request was under way on a connection when bytes or times told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    outstanding: bool,
    messages: Messages,
}

/// Segments with data, by who sent them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Messages {
    by_client: u32,
    by_server: u32,
}

impl Messages {
    fn at_server(server: Option<&End>) -> Option<Self> {
        let seen = server?.exchange?;
        Some(Self { by_client: seen.received_data_segments, by_server: seen.sent_data_segments })
    }

    fn at_client(client: Option<&End>) -> Option<Self> {
        let seen = client?.exchange?;
        Some(Self { by_client: seen.sent_data_segments, by_server: seen.received_data_segments })
    }

    /// Whether a message is one segment, nearly always.
    fn are_segments(&self) -> bool {
        let Self { by_client, by_server } = *self;
        by_client.abs_diff(by_server) <= by_client.min(by_server) / LONGER
    }

    fn is_empty(&self) -> bool {
        self.by_client == 0 && self.by_server == 0
    }

    fn are_both_ways(&self) -> bool {
        self.by_client > 0 && self.by_server > 0
    }

    /// Segments of the client beyond those of the server.
    fn more_by_client(&self) -> i64 {
        i64::from(self.by_client) - i64::from(self.by_server)
    }

    /// The request under way, if clients are ahead by this lead where nothing is.
    fn request(&self, lead: i64) -> Request {
        match self.more_by_client() - lead {
            0 => Request::None,
            1 => Request::Held,
            _ => Request::Unclear,
        }
    }
}

impl Told {
    /// `None` where nothing is told, or nothing was sent yet: a greeting or a handshake may still come between.
    fn of(messages: Messages, request: Request) -> Option<Self> {
        if messages.is_empty() {
            return None;
        }
        let outstanding = match request {
            Request::None => false,
            Request::Held | Request::Unread => true,
            Request::Unclear => return None,
        };
        Some(Self { outstanding, messages })
    }

    /// The request under way now, by the messages since.
    fn now(&self, messages: Messages) -> Request {
        if messages.are_segments() { messages.request(self.lead()) } else { Request::Unclear }
    }

    /// By how many segments the client is ahead where nothing is under way.
    fn lead(&self) -> i64 {
        self.messages.more_by_client() - i64::from(self.outstanding)
    }
}

/// By how many segments with data the clients of a server are ahead of it while nothing is under way: what greetings and
/// handshakes leave, the same on each connection. It is 0 where clients speak first and each message is answered by one, and
/// less where servers greet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lead {
    /// How often it was told, by its value.
    told: BTreeMap<i64, u32>,
    /// By how many segments clients were ahead when nothing told whether a request was among them, and how often.
    seen: BTreeMap<i64, u32>,
    /// How often the same connection went from one value to the next or back, by the smaller of both.
    turns: BTreeMap<i64, u32>,
}

/// Handshakes leave no greater lead, either way: anything else comes of messages of several segments.
const LEAD_MAX: i64 = 4;

/// So many looks of which most agree are enough.
const ENOUGH: u32 = 8;

/// At most one look in so many differs, because of a message of several segments now and then.
const SELDOM: u32 = 16;

impl Lead {
    /// Before both ends have sent, there was no handshake that could have left anything.
    fn learn(&mut self, told: Told) {
        if told.messages.are_both_ways() {
            add(&mut self.told, told.lead());
        }
    }

    fn note(&mut self, messages: Messages, then: Option<Messages>) {
        let ahead = messages.more_by_client();
        add(&mut self.seen, ahead);
        if let Some(then) = then.map(|then| then.more_by_client()).filter(|then| then.abs_diff(ahead) == 1) {
            add(&mut self.turns, ahead.min(then));
        }
    }

    /// The request under way on a connection of which nothing was known, or which was told to have this lead.
    fn request(&self, messages: Messages, told: Option<Told>) -> Request {
        let ahead = messages.more_by_client();
        let lead = self.told_or_seen().or_else(|| self.is_only_requests(ahead).then_some(0));
        let agreed = lead.filter(|lead| told.is_none_or(|told| told.lead() == *lead));
        agreed.map_or(Request::Unclear, |lead| messages.request(lead))
    }

    /// The lead, if looks agree: as it was told, or where connections go between two values the smaller. Two values of
    /// different connections may be two leads.
    fn told_or_seen(&self) -> Option<i64> {
        if total(&self.told) >= ENOUGH {
            return most(&self.told).filter(|lead| lead.abs() <= LEAD_MAX);
        }
        let less = most(&self.turns).filter(|less| (-LEAD_MAX..=0).contains(less))?;
        let [often, more] = [less, less + 1].map(|of| self.seen.get(&of).copied().unwrap_or(0));
        mostly_of(often.saturating_add(more), &self.seen).then_some(less)
    }

    /// Whether what clients are ahead is always one request. Most handshakes leave no client ahead, and where servers greet it is
    /// behind by then; where one was told to be ahead with nothing under way, it is otherwise.
    fn is_only_requests(&self, ahead: i64) -> bool {
        let told_ahead = self.told.range(1..).map(|of| *of.1).fold(0, u32::saturating_add);
        ahead == 1 && most(&self.seen) == Some(1) && seldom(told_ahead, &self.told)
    }
}

/// What is out of all bounds counts as one value, with which no other agrees.
fn add(looks: &mut BTreeMap<i64, u32>, ahead: i64) {
    let often = looks.entry(ahead.clamp(-LEAD_MAX - 1, LEAD_MAX + 1)).or_default();
    *often = often.saturating_add(1);
}

fn total(looks: &BTreeMap<i64, u32>) -> u32 {
    looks.values().fold(0, |sum, often| sum.saturating_add(*often))
}

/// The value that most looks agree on.
fn most(looks: &BTreeMap<i64, u32>) -> Option<i64> {
    looks.iter().find(|of| mostly_of(*of.1, looks)).map(|of| *of.0)
}

fn mostly_of(often: u32, looks: &BTreeMap<i64, u32>) -> bool {
    let all = total(looks);
    all >= ENOUGH && seldom(all - often, looks)
}

fn seldom(often: u32, looks: &BTreeMap<i64, u32>) -> bool {
    often <= total(looks) / SELDOM
}

/// At most one message in so many takes another segment.
const LONGER: u32 = 32;

impl End {
    /// The end that sent last; `None` where that cannot be told.
    fn last_word(&self) -> Option<LastWord> {
        if self.unread {
            return Some(LastWord::Other);
        }
        if self.unacknowledged {
            return Some(LastWord::Own);
        }
        let exchange = self.exchange?;
        match (exchange.sent_data_segments, exchange.received_data_segments) {
            (0, 0) => return Some(LastWord::Nobody),
            (0, _) => return Some(LastWord::Other),
            (_, 0) => return Some(LastWord::Own),
            _ => {}
        }
        let Exchange { sent_ms_ago, received_ms_ago, acknowledged_ms_ago, .. } = exchange;
        if sent_ms_ago != received_ms_ago {
            return Some(if sent_ms_ago < received_ms_ago { LastWord::Own } else { LastWord::Other });
        }
        // An acknowledgement without data, later than the last data, was for data of ours that came after it.
        (acknowledged_ms_ago < received_ms_ago).then_some(LastWord::Own)
    }

    /// Whether this end mostly acknowledges what it receives before it replies. Those that reply at once let the reply
    /// acknowledge, so here a request that came within a tick of the last response is still held. `None` for an end that
    /// did the one for a while and then the other.
    fn acknowledges_first(&self) -> Option<bool> {
        let Exchange { sent_segments, sent_data_segments, received_data_segments, .. } = self.exchange?;
        mostly(sent_segments.saturating_sub(sent_data_segments), received_data_segments)
    }

    /// The same of the other end.
    fn is_acknowledged_first(&self) -> Option<bool> {
        let Exchange { received_segments, received_data_segments, sent_data_segments, .. } = self.exchange?;
        mostly(received_segments.saturating_sub(received_data_segments), sent_data_segments)
    }
}

/// Acknowledgements without data that every connection has at its beginning.
const AT_FIRST: u32 = 2;

/// Whether messages are mostly acknowledged by segments without data, or next to never; `None` in between.
fn mostly(acknowledgements: u32, messages: u32) -> Option<bool> {
    let never = acknowledgements <= AT_FIRST.max(messages / 20);
    if acknowledgements >= messages.div_ceil(2) { Some(true) } else { never.then_some(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(client: Option<&End>, server: Option<&End>) -> Request {
        super::request(client, server, None, &mut Lead::default()).0
    }

    /// An end that sent and received so many milliseconds ago, ten times each.
    fn end(sent_ms_ago: u32, received_ms_ago: u32) -> End {
        let exchange = Exchange {
            sent_ms_ago,
            received_ms_ago,
            acknowledged_ms_ago: received_ms_ago,
            sent_segments: 11,
            received_segments: 11,
            received_data_segments: 10,
            sent_data_segments: 10,
        };
        End { exchange: Some(exchange), ..End::default() }
    }

    fn with(end: End, change: impl FnOnce(&mut Exchange)) -> End {
        let mut exchange = end.exchange.unwrap_or_default();
        change(&mut exchange);
        End { exchange: Some(exchange), ..end }
    }

    #[test]
    fn unread_bytes_need_no_clock() {
        let server = End { unread: true, ..end(4, 4) };
        assert_eq!(request(None, Some(&server)), Request::Unread);
        let client = End { unread: true, ..end(40, 0) };
        assert_eq!(request(Some(&client), None), Request::None, "the response is there");
        let client = End { unacknowledged: true, ..end(4, 4) };
        assert_eq!(request(Some(&client), Some(&end(4, 4))), Request::Held);
    }

    #[test]
    fn whoever_received_last_has_the_request() {
        assert_eq!(request(None, Some(&end(8, 4))), Request::Held);
        assert_eq!(request(None, Some(&end(4, 8))), Request::None);
        assert_eq!(request(Some(&end(4, 8)), None), Request::Held, "an upstream on another host");
    }

    #[test]
    fn a_connection_for_one_request_needs_no_clock() {
        let accepted = with(end(0, 0), |exchange| exchange.sent_data_segments = 0);
        assert_eq!(request(None, Some(&accepted)), Request::Held);
        let silent = with(accepted, |exchange| exchange.received_data_segments = 0);
        assert_eq!(request(None, Some(&silent)), Request::None);
    }

    #[test]
    fn within_one_tick_acknowledgements_tell() {
        let server = with(end(12, 12), |exchange| exchange.acknowledged_ms_ago = 4);
        assert_eq!(request(None, Some(&server)), Request::None, "the response was acknowledged after it");
        let acknowledges_first = with(end(12, 12), |exchange| exchange.sent_segments = 20);
        assert_eq!(request(Some(&end(12, 12)), Some(&acknowledges_first)), Request::Held);
        let acknowledged_first = with(end(12, 12), |exchange| exchange.received_segments = 20);
        assert_eq!(request(Some(&acknowledged_first), None), Request::Held);
    }

    #[test]
    fn an_end_that_changed_its_ways_tells_nothing_within_a_tick() {
        let changed = with(end(12, 12), |exchange| exchange.sent_segments = 14);
        assert_eq!(request(None, Some(&changed)), Request::Unclear);
    }

    #[test]
    fn an_end_that_lets_replies_acknowledge_may_hold_a_request() {
        assert_eq!(request(Some(&end(12, 12)), Some(&end(12, 12))), Request::Unclear);
    }

    /// Server ends at two looks, the later one within a tick, after so many requests and responses more.
    fn later(first: End, asked: u32, answered: u32) -> Request {
        let first = with(first, |exchange| {
            (exchange.received_data_segments, exchange.sent_data_segments) = (100, 101);
        });
        // It acknowledges about half of the messages, so that nothing can be guessed from that.
        let second = with(first, |exchange| {
            (exchange.sent_ms_ago, exchange.received_ms_ago, exchange.acknowledged_ms_ago) = (12, 12, 12);
            exchange.received_data_segments += asked;
            exchange.sent_data_segments += answered;
            exchange.sent_segments = exchange.sent_data_segments + 30;
        });
        let mut lead = Lead::default();
        let (_, known) = super::request(None, Some(&first), None, &mut lead);
        super::request(None, Some(&second), known, &mut lead).0
    }

    #[test]
    fn requests_are_counted_on_from_when_they_were_known() {
        let (idle, working) = (end(4, 8), end(8, 4));
        assert_eq!(later(idle, 0, 0), Request::None);
        assert_eq!(later(idle, 3, 3), Request::None);
        assert_eq!(later(idle, 4, 3), Request::Held);
        assert_eq!(later(working, 0, 0), Request::Held);
        assert_eq!(later(working, 0, 1), Request::None);
        assert_eq!(later(working, 2, 2), Request::Held);
    }

    #[test]
    fn messages_of_several_segments_are_not_counted() {
        assert_eq!(later(end(4, 8), 1, 3), Request::Unclear, "more responses than requests");
        assert_eq!(later(end(4, 8), 20, 40), Request::Unclear, "two segments each");
        assert_eq!(later(end(12, 12), 0, 0), Request::Unclear, "nothing was known before");
    }

    /// A server's end within a tick, after so many segments either way.
    fn within_a_tick(by_client: u32, by_server: u32) -> End {
        with(end(12, 12), |exchange| {
            (exchange.received_data_segments, exchange.sent_data_segments) = (by_client, by_server);
            (exchange.sent_segments, exchange.received_segments) = (by_server + 4, by_client + 4);
        })
    }

    /// What is under way at such an end, of which nothing was known.
    fn young(lead: &mut Lead, by_client: u32, by_server: u32) -> Request {
        super::request(None, Some(&within_a_tick(by_client, by_server)), None, lead).0
    }

    /// What looks told in which times differed, with a request under way or not.
    fn told(lead: &mut Lead, outstanding: bool, by_client: u32, by_server: u32) {
        let ago = if outstanding { end(8, 4) } else { end(4, 8) };
        let clear = with(ago, |exchange| {
            (exchange.received_data_segments, exchange.sent_data_segments) = (by_client, by_server);
        });
        super::request(None, Some(&clear), None, lead);
    }

    #[test]
    fn a_request_held_for_whole_ticks_is_counted_from_the_beginning() {
        let mut lead = Lead::default();
        let looks: Vec<Request> = (0..10).map(|n| young(&mut lead, 50 + n, 49 + n)).collect();
        assert_eq!(
            looks[9],
            Request::Held,
            "no look ever told, and a client is never ahead after a handshake"
        );
        assert!(!looks.contains(&Request::None), "{looks:?}");
    }

    #[test]
    fn equal_numbers_alone_do_not_tell_an_idle_connection_from_a_greeting() {
        let mut lead = Lead::default();
        assert!((0..100).all(|n| young(&mut lead, 50 + n, 50 + n) == Request::Unclear));
    }

    #[test]
    fn what_a_server_that_greets_leaves_is_learnt_from_other_connections() {
        for outstanding in [false, true] {
            let mut lead = Lead::default();
            (0..10).for_each(|n| told(&mut lead, outstanding, 20 + n + u32::from(outstanding), 21 + n));
            assert_eq!(young(&mut lead, 40, 40), Request::Held);
            assert_eq!(young(&mut lead, 40, 41), Request::None);
            assert_eq!(young(&mut lead, 40, 43), Request::Unclear);
        }
    }

    /// What looks find at one connection within a tick, the last of them: segments by client and server.
    fn looks(lead: &mut Lead, all: impl Iterator<Item = (u32, u32)>) -> Option<Request> {
        let mut known = None;
        let look = |(by_client, by_server)| {
            let (request, now) =
                super::request(None, Some(&within_a_tick(by_client, by_server)), known, lead);
            known = now;
            request
        };
        all.map(look).last()
    }

    #[test]
    fn numbers_that_alternate_are_idle_and_held() {
        let mut lead = Lead::default();
        looks(&mut lead, (0..20).map(|n| (20 + n + n % 2, 21 + n)));
        assert_eq!(young(&mut lead, 40, 41), Request::None);
        assert_eq!(young(&mut lead, 41, 41), Request::Held);
        let mut lead = Lead::default();
        looks(&mut lead, (0..20).map(|n| (21 + n + n % 2, 20 + n)));
        assert_eq!(young(&mut lead, 41, 40), Request::Unclear, "requests of two segments");
    }

    #[test]
    fn connections_that_differ_do_not_alternate() {
        let mut lead = Lead::default();
        looks(&mut lead, (0..20).map(|n| (20 + n, 20 + n)));
        looks(&mut lead, (0..20).map(|n| (20 + n, 21 + n)));
        assert_eq!(young(&mut lead, 40, 40), Request::Unclear, "both may be idle");
    }

    #[test]
    fn a_connection_that_stays_as_it_is_tells_only_once() {
        let mut lead = Lead::default();
        assert_eq!(looks(&mut lead, (0..100).map(|_| (51, 50))), Some(Request::Unclear));
        let idle = with(end(4, 8), |exchange| exchange.sent_data_segments = 11);
        let mut known = None;
        (0..100).for_each(|_| known = super::request(None, Some(&idle), known, &mut lead).1);
        assert_eq!(young(&mut lead, 40, 40), Request::Unclear);
    }

    #[test]
    fn connections_on_which_one_end_has_not_sent_yet_leave_no_lead() {
        let mut lead = Lead::default();
        (0..20).for_each(|_| told(&mut lead, false, 0, 0));
        (0..20).for_each(|_| told(&mut lead, true, 1, 0));
        assert_eq!(young(&mut lead, 40, 40), Request::Unclear);
    }

    #[test]
    fn nothing_is_counted_on_from_before_a_greeting() {
        let silent = with(end(0, 0), |exchange| {
            (exchange.received_data_segments, exchange.sent_data_segments) = (0, 0);
        });
        let (request, known) = super::request(None, Some(&silent), None, &mut Lead::default());
        assert_eq!(request, Request::None);
        let later = super::request(None, Some(&end(12, 12)), known, &mut Lead::default());
        assert_eq!(later.0, Request::Unclear, "after a greeting as many segments each way are a request");
    }

    #[test]
    fn segments_are_those_of_the_end_that_tells() {
        let mut lead = Lead::default();
        for _ in 0..20 {
            let asks = with(end(12, 12), |exchange| exchange.sent_data_segments = 11);
            let client = End { unacknowledged: true, ..asks };
            super::request(Some(&client), Some(&end(12, 12)), None, &mut lead);
        }
        assert_eq!(young(&mut lead, 40, 40), Request::None);
        assert_eq!(young(&mut lead, 41, 40), Request::Held);
    }

    #[test]
    fn a_connection_that_was_told_to_have_another_lead_is_unclear() {
        let mut lead = Lead::default();
        (0..10).for_each(|n| told(&mut lead, false, 20 + n, 20 + n));
        let longer = with(end(4, 8), |exchange| exchange.sent_data_segments = 13);
        let (_, known) = super::request(None, Some(&longer), None, &mut Lead::default());
        let later = with(end(12, 12), |exchange| {
            (exchange.received_data_segments, exchange.sent_data_segments) = (13, 13);
        });
        assert_eq!(super::request(None, Some(&later), known, &mut lead).0, Request::Unclear);
        assert_eq!(super::request(None, Some(&later), None, &mut lead).0, Request::None);
    }

    #[test]
    fn clients_that_are_ahead_while_idle_are_not_thought_to_ask() {
        let mut lead = Lead::default();
        (0..2).for_each(|n| told(&mut lead, false, 21 + n, 20 + n));
        assert!((0..20).all(|n| young(&mut lead, 51 + n, 50 + n) == Request::Unclear));
    }

    #[test]
    fn responses_of_several_segments_leave_no_lead() {
        let mut lead = Lead::default();
        (0..100).for_each(|n| told(&mut lead, n % 2 == 0, 20 + n, 40 + 2 * n));
        assert_eq!(young(&mut lead, 41, 40), Request::Unclear);
        assert_eq!(young(&mut lead, 40, 40), Request::Unclear);
    }

    #[test]
    fn without_times_only_unread_bytes_are_known() {
        assert_eq!(request(None, Some(&End::default())), Request::Unclear);
        assert_eq!(request(None, Some(&End { unread: true, ..End::default() })), Request::Unread);
    }
}
