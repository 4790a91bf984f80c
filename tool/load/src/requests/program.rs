//! A scenario made ready to send: requests rendered once if nothing in them changes, and with slots otherwise.

use wire::Method;

use super::compile::compile;
use super::filler::Filler;
use super::rendering::{Fixed, Rendered, Rendering, Scratch};
use crate::fleet::Member;
use crate::scenario::definition::{Body, Capture, Request, Scenario, Verify};
use crate::scenario::sizes::Sizes;
use crate::scenario::statuses::Statuses;
use crate::scenario::value::Value;
use crate::url::Url;
use crate::values::stream::{SharedDraws, UserStream};

/// A scenario made ready to send to one server.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) requests: Vec<PreparedRequest>,
    values: Vec<Value>,
    /// Draws of all users together.
    shared: SharedDraws,
    /// Upper ends of each request's share of `0..total_weight`.
    shares: Vec<u64>,
    /// Number of lists that users capture values into.
    lists: usize,
    /// Number of requests, if the body of any of them varies in size.
    bodies: usize,
    longest: u64,
    filler: Filler,
}

/// One request, ready to send, and what its response must be.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    rendering: Rendering,
    pub(crate) method: Method,
    pub(crate) expect: Statuses,
    pub(crate) verify: Verify,
    pub(crate) capture: Option<Capture>,
    /// Lists that it takes a captured value from.
    takes: Vec<usize>,
}

/// The request that a user makes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) request: usize,
    /// The request that was drawn but needs a captured value that the user does not have.
    pub(crate) instead_of: Option<usize>,
}

impl Program {
    /// Renders everything that does not change from request to request. `close` asks the server to close the connection
    /// after each response.
    pub(crate) fn new(scenario: &Scenario, base: &Url, close: bool) -> Self {
        let is_generated = |request: &Request| matches!(request.body, Body::Generated(_));
        let filler = Filler::new(scenario.requests.iter().any(is_generated));
        let prepare = |request| PreparedRequest::new(request, base, close, &filler);
        let requests: Vec<_> = scenario.requests.iter().map(prepare).collect();
        let mut total = 0;
        let share = |request: &Request| {
            total += u64::from(request.weight);
            total
        };
        Program {
            shares: scenario.requests.iter().map(share).collect(),
            lists: scenario.lists.len(),
            bodies: if scenario.requests.iter().any(varies_in_size) { requests.len() } else { 0 },
            longest: requests.iter().map(PreparedRequest::len).max().unwrap_or_default(),
            requests,
            filler,
            values: scenario.values.clone(),
            shared: SharedDraws::new(scenario.values.len(), &Member::default()),
        }
    }

    /// The same for one of several generators, whose users draw no value in turn that those of another draw.
    pub(crate) fn of_member(self, member: &Member) -> Self {
        Program { shared: SharedDraws::new(self.values.len(), member), ..self }
    }

    /// Makes the random stream of a user.
    pub(crate) fn stream(&self, seed: u64, user: u32) -> UserStream {
        UserStream::new(seed, user, self.values.len())
            .with_lists(self.lists)
            .with_bodies(self.bodies)
            .with_shared(&self.shared)
    }

    /// Draws a user's next request by weight. If it needs a captured value that the user does not have, draws another by
    /// weight among those that the user can make.
    #[inline]
    pub(crate) fn pick(&self, stream: &mut UserStream) -> Choice {
        let request = match self.shares.as_slice() {
            [] | [_] => 0,
            [.., total] => {
                let at = stream.rng.u64(0..*total);
                self.shares.partition_point(|end| *end <= at)
            }
        };
        if self.lists == 0 || self.can_be_made(request, stream) {
            return Choice { request, instead_of: None };
        }
        Choice { request: self.pick_possible(stream), instead_of: Some(request) }
    }

    fn pick_possible(&self, stream: &mut UserStream) -> usize {
        let weight = |index: usize| {
            let before = index.checked_sub(1).and_then(|before| self.shares.get(before)).copied();
            self.shares.get(index).copied().unwrap_or_default() - before.unwrap_or_default()
        };
        let is_possible = |stream: &UserStream, index: &usize| self.can_be_made(*index, stream);
        let all = 0..self.shares.len();
        let total: u64 = all.clone().filter(|index| is_possible(stream, index)).map(weight).sum();
        // A scenario has at least one request that takes no captured value.
        let mut at = stream.rng.u64(0..total.max(1));
        let mut possible = all.filter(|index| is_possible(stream, index));
        let found = possible.find(|index| {
            let weight = weight(*index);
            let is_here = at < weight;
            at = at.saturating_sub(weight);
            is_here
        });
        found.unwrap_or_default()
    }

    #[inline]
    fn can_be_made(&self, request: usize, stream: &UserStream) -> bool {
        let takes = self.requests.get(request).map(|request| request.takes.as_slice());
        takes.unwrap_or_default().iter().all(|list| stream.captured.has(*list))
    }

    /// Index of the first request that takes no captured value.
    pub(crate) fn first(&self) -> usize {
        self.requests.iter().position(|request| request.takes.is_empty()).unwrap_or_default()
    }

    /// The bytes of a request that is the same every time; `None` if it is not.
    pub(crate) fn fixed(&self, request: usize) -> Option<&[u8]> {
        match self.requests.get(request).map(|prepared| &prepared.rendering) {
            Some(Rendering::Fixed(fixed)) => Some(&fixed.bytes),
            Some(Rendering::Patched(_)) | None => None,
        }
    }

    /// The bytes of a generated body from `position` on: at least one and at most `most`.
    #[inline]
    pub(crate) fn fill(&self, position: u64, most: u64) -> &[u8] {
        self.filler.at(position, most)
    }

    /// Length of the longest request without its drawn values, bytes.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// Renders a request for the user with this stream.
    #[inline]
    pub(crate) fn render<'a>(
        &'a self,
        request: usize,
        stream: &mut UserStream,
        scratch: &'a mut Scratch,
    ) -> Rendered<'a> {
        match self.requests.get(request).map(|prepared| &prepared.rendering) {
            Some(Rendering::Fixed(Fixed { bytes, head, whole })) => {
                Rendered { bytes, fixed: true, head: *head, whole: *whole }
            }
            Some(Rendering::Patched(patched)) => {
                scratch.draw(patched, &self.values, stream);
                let size = patched.generated.as_ref().map(|sizes| stream.body_size(request, sizes));
                scratch.render(patched, size, &self.filler)
            }
            None => Rendered { bytes: &[], fixed: false, head: 0, whole: 0 },
        }
    }
}

fn varies_in_size(request: &Request) -> bool {
    matches!(&request.body, Body::Generated(sizes) if sizes.only().is_none())
}

impl PreparedRequest {
    fn new(request: &Request, base: &Url, close: bool, filler: &Filler) -> Self {
        let patched = compile(request, base, close);
        let size = patched.generated.as_ref().map(Sizes::only);
        let rendering = match size {
            // The size varies.
            Some(None) => Rendering::Patched(patched),
            _ if !patched.draws.is_empty() => Rendering::Patched(patched),
            size => {
                let mut scratch = Scratch::default();
                let Rendered { bytes, head, whole, .. } = scratch.render(&patched, size.flatten(), filler);
                Rendering::Fixed(Fixed { bytes: bytes.into(), head, whole })
            }
        };
        PreparedRequest {
            rendering,
            method: Method::from_token(&request.method),
            expect: request.expect,
            verify: request.verify.clone(),
            capture: request.capture.clone(),
            takes: request.takes().collect(),
        }
    }

    /// Length without drawn values, bytes.
    fn len(&self) -> u64 {
        match &self.rendering {
            Rendering::Fixed(fixed) => fixed.whole,
            Rendering::Patched(patched) => patched.len(),
        }
    }
}

#[cfg(test)]
mod tests;
