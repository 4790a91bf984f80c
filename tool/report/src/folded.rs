//! The stacks of a profile as text, a line each, as tools for flame graphs read them.

use analysis::run::{Run, TierProfile};

use crate::sentences::function;
use crate::words::is_hidden;

/// Lines of `tier;outermost;..;innermost SAMPLES`; nothing without a profile.
#[must_use]
pub fn folded(run: &Run) -> String {
    run.profile.iter().flat_map(|profile| &profile.tiers).flat_map(lines).collect()
}

fn lines(tier: &TierProfile) -> impl Iterator<Item = String> {
    let functions: Vec<_> = tier.functions.iter().map(|of| part(&function(of))).collect();
    let name = part(&tier.processes.name);
    tier.stacks.iter().map(move |stack| {
        let calls = stack.calls.iter().filter_map(|call| functions.get(usize::try_from(*call).ok()?));
        let calls: String = calls.map(|call| format!(";{call}")).collect();
        format!("{name}{calls} {}\n", stack.samples)
    })
}

/// A name without what would end it or its line.
fn part(name: &str) -> String {
    name.chars().map(|c| if c == ';' || is_hidden(c) { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use analysis::run::{Function, Processes, Stack};

    use super::*;

    #[test]
    fn a_stack_is_a_line() {
        let function = |name: &str| Function { name: name.into(), module: "m".into(), ..Function::default() };
        let tier = TierProfile {
            processes: Processes { name: "nginx".into(), ..Processes::default() },
            functions: vec![function("main"), function("a;b\n"), function("")],
            stacks: vec![Stack { calls: vec![0, 1, 2, 99], samples: 7 }],
            ..TierProfile::default()
        };
        assert_eq!(lines(&tier).collect::<String>(), "nginx;main;a_b_;[m] 7\n");
    }
}
