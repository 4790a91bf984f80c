//! The stacks of a profile as text, a line each, as tools for flame graphs read them.

use analysis::run::{Function, Processes, Profile, Run, Stack, TierOffCpu, TierProfile};

use crate::sentences::{function, holders};
use crate::words::is_hidden;

/// What stands in the place of stacks that were too rare to be kept, so that totals are whole.
pub(crate) const LEFT_OUT: &str = "[left out]";

/// Lines of `tier;outermost;..;innermost SAMPLES` of what ran; nothing without a profile.
#[must_use]
pub fn folded(run: &Run) -> String {
    run.profile.iter().map(ran).collect()
}

/// The same of threads that slept: the kernel's stacks. Nothing where they were not seen.
#[must_use]
pub fn folded_off_cpu(run: &Run) -> String {
    run.profile.iter().map(slept).collect()
}

fn ran(profile: &Profile) -> String {
    let of_tier = |tier: &TierProfile| lines(&tier.processes, (&tier.functions, &tier.stacks), tier.left_out);
    profile.tiers.iter().map(of_tier).collect()
}

fn slept(profile: &Profile) -> String {
    let of_tier =
        |tier: &TierOffCpu| lines(&tier.processes, (&tier.functions, &tier.stacks), tier.stacks_left_out);
    profile.off_cpu.iter().flat_map(|seen| &seen.tiers).map(of_tier).collect()
}

fn lines(tier: &Processes, (functions, stacks): (&[Function], &[Stack]), left_out: u64) -> String {
    let functions: Vec<_> = functions.iter().map(|of| part(&function(of))).collect();
    let name = part(&holders::named_on(&tier.name, &tier.on));
    let line = |stack: &Stack| {
        let calls = stack.calls.iter().filter_map(|call| functions.get(usize::try_from(*call).ok()?));
        let calls: String = calls.map(|call| format!(";{call}")).collect();
        format!("{name}{calls} {}\n", stack.samples)
    };
    let rest = (left_out > 0).then(|| format!("{name};{LEFT_OUT} {left_out}\n"));
    stacks.iter().map(line).chain(rest).collect()
}

/// A name without what would end it or its line.
fn part(name: &str) -> String {
    name.chars().map(|c| if c == ';' || is_hidden(c) { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use analysis::run::OffCpu;

    use super::*;

    #[test]
    fn a_stack_is_a_line() {
        let function = |name: &str| Function { name: name.into(), module: "m".into(), ..Function::default() };
        let functions = [function("main"), function("a;b\n"), function("")];
        let stacks = [Stack { calls: vec![0, 1, 2, 99], samples: 7 }];
        let nginx = Processes { name: "nginx".into(), ..Processes::default() };
        let told = |tier: &Processes, left_out| lines(tier, (&functions, &stacks), left_out);
        assert_eq!(told(&nginx, 0), "nginx;main;a_b_;[m] 7\n");
        assert_eq!(told(&nginx, 3), "nginx;main;a_b_;[m] 7\nnginx;[left out] 3\n", "10 in all");
        let far = Processes { on: Some("web".into()), ..nginx };
        assert_eq!(told(&far, 0), "nginx on web;main;a_b_;[m] 7\n");
    }

    #[test]
    fn stacks_that_were_left_out_are_in_the_totals_of_time_on_and_off_processors() {
        let busy = TierProfile { samples: 5, left_out: 5, ..TierProfile::default() };
        let asleep = TierOffCpu { samples: 6, left_out: 1, stacks_left_out: 4, ..TierOffCpu::default() };
        let off_cpu = Some(OffCpu { tiers: vec![asleep], ..OffCpu::default() });
        let profile = Profile { tiers: vec![busy], off_cpu, ..Profile::default() };
        assert_eq!(ran(&profile), ";[left out] 5\n");
        assert_eq!(slept(&profile), ";[left out] 4\n", "of stacks, not of places");
    }
}
