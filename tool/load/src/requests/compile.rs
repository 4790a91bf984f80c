//! From a request of a scenario to literals and slots, once, before the load starts.

use super::rendering::{Draw, Patched, Piece};
use crate::scenario::definition::{Body, Request};
use crate::scenario::template::{Template, TemplatePart};
use crate::url::Url;

/// Compiles a request for the server at `base`. `close` asks the server to close the connection after each response.
pub(super) fn compile(request: &Request, base: &Url, close: bool) -> Patched {
    let mut compiler = Compiler { draws: Vec::new() };
    let head = compiler.head(request, base, close);
    let (body, generated) = match &request.body {
        Body::Text(text) => (compiler.pieces(text, Piece::Slot), None),
        Body::Generated(sizes) => (Vec::new(), Some(sizes.clone())),
    };
    Patched { draws: compiler.draws, head, body, generated }
}

/// Collects the values that a request draws while its parts are compiled.
struct Compiler {
    draws: Vec<Draw>,
}

impl Compiler {
    fn head(&mut self, request: &Request, base: &Url, close: bool) -> Vec<Piece> {
        let mut head = vec![literal(format!("{} ", request.method))];
        head.extend(self.target(&request.path, base));
        head.push(literal(" HTTP/1.1\r\n"));
        if !has_header(request, "host") {
            head.push(literal(format!("Host: {}\r\n", base.host_header())));
        }
        for (name, value) in &request.headers {
            head.push(literal(format!("{name}: ")));
            head.extend(self.pieces(value, Piece::Slot));
            head.push(literal("\r\n"));
        }
        if let Some((name, password)) = self.credentials(request, base) {
            head.push(literal("Authorization: Basic "));
            let plain = name.into_iter().chain([literal(":")]).chain(password).collect();
            head.push(Piece::Base64(plain));
            head.push(literal("\r\n"));
        }
        if close && !has_header(request, "connection") {
            head.push(literal("Connection: close\r\n"));
        }
        if says_length(request) {
            head.extend([literal("Content-Length: "), Piece::ContentLength, literal("\r\n")]);
        }
        head.push(literal("\r\n"));
        head
    }

    /// Compiles the request target. A captured path is complete and encoded already.
    fn target(&mut self, path: &Template, base: &Url) -> Vec<Piece> {
        let mut pieces = self.pieces(path, Piece::TargetSlot);
        match (path.pieces.first(), pieces.first_mut()) {
            (Some(TemplatePart::Taken(_)), Some(Piece::TargetSlot(draw))) => pieces[0] = Piece::Slot(*draw),
            _ => pieces.insert(0, literal(base_prefix(base))),
        }
        pieces
    }

    fn credentials(&mut self, request: &Request, base: &Url) -> Option<(Vec<Piece>, Vec<Piece>)> {
        if let Some((name, password)) = &request.basic_auth {
            return Some((self.pieces(name, Piece::Slot), self.pieces(password, Piece::Slot)));
        }
        let credentials = base.credentials().filter(|_| !has_header(request, "authorization"))?;
        Some((vec![literal(credentials.name.as_str())], vec![literal(credentials.password.as_str())]))
    }

    fn pieces(&mut self, template: &Template, slot: fn(usize) -> Piece) -> Vec<Piece> {
        let piece = |part: &TemplatePart| match part {
            TemplatePart::Literal(bytes) => Piece::Literal(bytes.clone()),
            TemplatePart::Slot(value) => slot(self.position(Draw::Value(*value))),
            TemplatePart::Taken(list) => slot(self.position(Draw::Taken(*list))),
        };
        template.pieces.iter().map(piece).collect()
    }

    fn position(&mut self, drawn: Draw) -> usize {
        self.draws.iter().position(|draw| *draw == drawn).unwrap_or_else(|| {
            self.draws.push(drawn);
            self.draws.len() - 1
        })
    }
}

fn literal(bytes: impl Into<Vec<u8>>) -> Piece {
    Piece::Literal(bytes.into())
}

/// The part of the base URL that precedes the path of a request.
pub(crate) fn base_prefix(base: &Url) -> &str {
    base.path().split('?').next().unwrap_or_default().trim_end_matches('/')
}

fn has_header(request: &Request, name: &str) -> bool {
    request.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name))
}

/// Whether to send Content-Length: if there is a body, or if the method gives a body meaning (RFC 9110 section 8.6), unless
/// the scenario frames the request itself.
fn says_length(request: &Request) -> bool {
    let framed = has_header(request, "content-length") || has_header(request, "transfer-encoding");
    let meant = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    let some = match &request.body {
        Body::Text(text) => !text.pieces.is_empty(),
        Body::Generated(_) => true,
    };
    !framed && (meant || some)
}
