//! Whether a request is outstanding on a connection, from what the kernel counts at its two ends.
//!
//! The contents are not looked at: on a connection with one request at a time, one is outstanding if the client sent
//! last. Unread and unacknowledged bytes tell that without a clock. Otherwise the times of the last data do, in
//! milliseconds that may be rounded to the kernel's tick. Where they are equal, either a response and the next request
//! or a request and its response followed each other within one tick. Then what was known at an earlier look is counted
//! on from, on connections of which each message is one segment ([`Known`]).

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

/// What is under way on a connection of which one end or both are known, and what is known of it from now on. What was
/// known `before` is counted on from where the ends do not tell; how messages are acknowledged is only a guess.
pub(crate) fn request(
    client: Option<&End>,
    server: Option<&End>,
    before: Option<Known>,
) -> (Request, Option<Known>) {
    let told = told(client, server);
    if told != Request::Unclear {
        return (told, Known::of(client, server, told));
    }
    let counted = before.map_or(Request::Unclear, |known| known.now(client, server));
    let request = if counted == Request::Unclear { guessed(client, server) } else { counted };
    (request, before)
}

/// What bytes and times tell.
fn told(client: Option<&End>, server: Option<&End>) -> Request {
    if server.is_some_and(|server| server.unread) {
        return Request::Unread;
    }
    let by_server = server.and_then(End::last_word).map(|last| last == LastWord::Other);
    let by_client = || client.and_then(End::last_word).map(|last| last == LastWord::Own);
    Request::if_outstanding(by_server.or_else(by_client))
}

/// What follows from who acknowledges before it replies.
fn guessed(client: Option<&End>, server: Option<&End>) -> Request {
    let by_server = server.and_then(End::acknowledges_first);
    Request::if_outstanding(by_server.or_else(|| client.and_then(End::is_acknowledged_first)))
}

impl Request {
    fn if_outstanding(outstanding: Option<bool>) -> Self {
        match outstanding {
            Some(true) => Self::Held,
            Some(false) => Self::None,
            None => Self::Unclear,
        }
    }
}

/// What was known of a connection at a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
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
    fn of(client: Option<&End>, server: Option<&End>) -> Option<Self> {
        let by_server = server
            .and_then(|end| end.exchange)
            .map(|end| Self { by_client: end.received_data_segments, by_server: end.sent_data_segments });
        let by_client = || {
            client
                .and_then(|end| end.exchange)
                .map(|end| Self { by_client: end.sent_data_segments, by_server: end.received_data_segments })
        };
        by_server.or_else(by_client)
    }

    /// Whether a message is one segment, nearly always.
    fn are_segments(&self) -> bool {
        let Self { by_client, by_server } = *self;
        by_client.abs_diff(by_server) <= by_client.min(by_server) / LONGER
    }
}

impl Known {
    /// What is known now; `None` where that is nothing.
    fn of(client: Option<&End>, server: Option<&End>, request: Request) -> Option<Self> {
        let messages = Messages::of(client, server)?;
        let outstanding = match request {
            Request::None => false,
            Request::Held | Request::Unread => true,
            Request::Unclear => return None,
        };
        Some(Self { outstanding, messages })
    }

    /// The request under way now, by the messages since.
    fn now(&self, client: Option<&End>, server: Option<&End>) -> Request {
        let Some(messages) = Messages::of(client, server).filter(Messages::are_segments) else {
            return Request::Unclear;
        };
        let asked = i64::from(messages.by_client) - i64::from(self.messages.by_client);
        let answered = i64::from(messages.by_server) - i64::from(self.messages.by_server);
        match i64::from(self.outstanding) + asked - answered {
            0 => Request::None,
            1 => Request::Held,
            _ => Request::Unclear,
        }
    }
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
        super::request(client, server, None).0
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
        let replies_at_once = end(12, 12);
        assert_eq!(request(Some(&end(12, 12)), Some(&replies_at_once)), Request::None);
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
        let (_, known) = super::request(None, Some(&first), None);
        super::request(None, Some(&second), known).0
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

    #[test]
    fn without_times_only_unread_bytes_are_known() {
        assert_eq!(request(None, Some(&End::default())), Request::Unclear);
        assert_eq!(request(None, Some(&End { unread: true, ..End::default() })), Request::Unread);
    }
}
