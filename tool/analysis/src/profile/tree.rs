//! Stacks laid together by what they have in common from the outermost call on: what a flame graph draws.

use std::collections::BTreeMap;

use crate::run::Stack;

/// Calls deeper than this are not drawn. The kernel gives 127 of itself and as many of the program at most; a file could say
/// anything.
const DEPTH_MAX: usize = 256;

/// One function below one chain of callers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// Index into the tier's functions.
    pub function: u32,
    /// How many calls lie outside it.
    pub depth: usize,
    /// The share of all that lies to the left of it, 0 to 1.
    pub left: f64,
    /// The share of all in it and in what it called, 0 to 1.
    pub share: f64,
    /// The share of all in it alone, 0 to 1.
    pub own: f64,
}

/// The tree of stacks, callers before those they call. Of stacks without a sample there is none.
pub fn tree(stacks: &[Stack]) -> Vec<Node> {
    let mut root = Branch::default();
    for stack in stacks.iter().filter(|stack| stack.samples > 0) {
        root.add(&stack.calls, stack.samples);
    }
    let mut drawn = Drawn { all: root.samples as f64, nodes: Vec::new() };
    drawn.below(&root, 0, 0);
    drawn.nodes
}

#[derive(Default)]
struct Branch {
    samples: u64,
    own: u64,
    calls: BTreeMap<u32, Branch>,
}

impl Branch {
    fn add(&mut self, calls: &[u32], samples: u64) {
        let mut at = self;
        at.samples = at.samples.saturating_add(samples);
        for call in calls.iter().take(DEPTH_MAX) {
            at = at.calls.entry(*call).or_default();
            at.samples = at.samples.saturating_add(samples);
        }
        at.own = at.own.saturating_add(samples);
    }
}

struct Drawn {
    all: f64,
    nodes: Vec<Node>,
}

impl Drawn {
    /// Adds what a branch called, the largest first.
    fn below(&mut self, branch: &Branch, depth: usize, before: u64) {
        let mut calls: Vec<_> = branch.calls.iter().collect();
        calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.samples));
        let mut before = before;
        for (function, call) in calls {
            let [left, share, own] =
                [before, call.samples, call.own].map(|samples| samples as f64 / self.all);
            self.nodes.push(Node { function: *function, depth, left, share, own });
            self.below(call, depth + 1, before);
            before = before.saturating_add(call.samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_what_they_have_in_common() {
        let stack = |calls: &[u32], samples| Stack { calls: calls.into(), samples };
        let stacks =
            vec![stack(&[0, 1], 6), stack(&[0, 2], 3), stack(&[0], 6), stack(&[3], 1), stack(&[0, 4], 0)];
        let node = |function, depth, sixteenths: [f64; 3]| {
            let [left, share, own] = sixteenths.map(|samples| samples / 16.0);
            Node { function, depth, left, share, own }
        };
        let nodes = [
            node(0, 0, [0.0, 15.0, 6.0]),
            node(1, 1, [0.0, 6.0, 6.0]),
            node(2, 1, [6.0, 3.0, 3.0]),
            node(3, 0, [15.0, 1.0, 1.0]),
        ];
        assert_eq!(tree(&stacks), nodes);
    }

    /// Their shares would be no numbers.
    #[test]
    fn stacks_without_samples_are_not_drawn() {
        let stacks = [Stack { calls: [0, 1].into(), samples: 0 }];
        assert_eq!(tree(&stacks), []);
        assert_eq!(tree(&[]), []);
    }
}
