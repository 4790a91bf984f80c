//! The stacks of a profile as text, a line each, as tools for flame graphs read them.

use analysis::run::{Function, Processes, Run, Stack, TierOffCpu, TierProfile};

use crate::sentences::{function, holders};
use crate::words::is_hidden;

/// Lines of `tier;outermost;..;innermost SAMPLES` of what ran; nothing without a profile.
#[must_use]
pub fn folded(run: &Run) -> String {
    let of_tier = |tier: &TierProfile| lines(&tier.processes, &tier.functions, &tier.stacks);
    run.profile.iter().flat_map(|profile| &profile.tiers).map(of_tier).collect()
}

/// The same of threads that slept: the kernel's stacks. Nothing where they were not seen.
#[must_use]
pub fn folded_off_cpu(run: &Run) -> String {
    let of_tier = |tier: &TierOffCpu| lines(&tier.processes, &tier.functions, &tier.stacks);
    let seen = run.profile.iter().flat_map(|profile| &profile.off_cpu);
    seen.flat_map(|seen| &seen.tiers).map(of_tier).collect()
}

fn lines(tier: &Processes, functions: &[Function], stacks: &[Stack]) -> String {
    let functions: Vec<_> = functions.iter().map(|of| part(&function(of))).collect();
    let name = part(&holders::named_on(&tier.name, &tier.on));
    let line = |stack: &Stack| {
        let calls = stack.calls.iter().filter_map(|call| functions.get(usize::try_from(*call).ok()?));
        let calls: String = calls.map(|call| format!(";{call}")).collect();
        format!("{name}{calls} {}\n", stack.samples)
    };
    stacks.iter().map(line).collect()
}

/// A name without what would end it or its line.
fn part(name: &str) -> String {
    name.chars().map(|c| if c == ';' || is_hidden(c) { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_a_line() {
        let function = |name: &str| Function { name: name.into(), module: "m".into(), ..Function::default() };
        let functions = [function("main"), function("a;b\n"), function("")];
        let stacks = [Stack { calls: vec![0, 1, 2, 99], samples: 7 }];
        let nginx = Processes { name: "nginx".into(), ..Processes::default() };
        assert_eq!(lines(&nginx, &functions, &stacks), "nginx;main;a_b_;[m] 7\n");
        let far = Processes { on: Some("web".into()), ..nginx };
        assert_eq!(lines(&far, &functions, &stacks), "nginx on web;main;a_b_;[m] 7\n");
    }
}
