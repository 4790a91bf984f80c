//! Words for what becomes of a system that is changed.

use analysis::prediction::{
    Caution, Change, Estimate, GoalAnswer, GoalFigure, GoalOption, LimitFacts, MixShare, NoMix, Outlook,
    Prediction, Refusal, Slowdown,
};

use super::holders;
use crate::{number, words};

/// A change in a few words: `4 processors for nginx`.
pub(crate) fn change(of: &Change) -> String {
    match of {
        Change::Cpus { name, cpus: 1.0 } => format!("one processor for {name}"),
        Change::Cpus { name, cpus } => format!("{} processors for {name}", number::cores(*cpus)),
        Change::Demand { of, factor } => format!("{of} {}", number::change(*factor, None)),
        Change::Workers { name, workers: 1 } => format!("one worker of {name}"),
        Change::Workers { name, workers } => {
            format!("{} workers of {name}", number::count((*workers).into()))
        }
        Change::Link { name, bits_per_s } => {
            let rate = number::prefixed(*bits_per_s, "bit/s");
            name.as_ref().map_or_else(|| format!("link of {rate}"), |name| format!("link {name} of {rate}"))
        }
        Change::UpstreamDelay { name, added_us } if *added_us < 0.0 => {
            format!("calls of {name} shorter by {}", number::time(added_us.abs()))
        }
        Change::UpstreamDelay { name, added_us } => {
            format!("calls of {name} longer by {}", number::time(*added_us))
        }
        Change::Think { think_us } if *think_us == 0.0 => "users who do not think".to_owned(),
        Change::Think { think_us } => format!("users who think for {}", number::time(*think_us)),
        Change::AddServer { name, servers } => {
            let more = if *servers == 1 { "one server".to_owned() } else { format!("{servers} servers") };
            name.as_ref().map_or_else(|| format!("{more} more"), |name| format!("{more} more of {name}"))
        }
        Change::Mix { shares } => {
            let share = |of: &MixShare| format!("{} {}", number::percent(of.share), of.name);
            format!("a mix of {}", shares.iter().map(share).collect::<Vec<_>>().join(" and "))
        }
    }
}

/// Everything that changes.
pub(crate) fn changes(of: &[Change]) -> String {
    match of {
        [] => "As it was measured".to_owned(),
        some => {
            format!("With {}", some.iter().map(change).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The answer in a sentence.
pub(crate) fn headline(of: &Prediction) -> String {
    let (before, after) = (&of.before, &of.after);
    let instead = |text: String| if of.changes.is_empty() { String::new() } else { text };
    let max = after.throughput_max_per_s;
    let throughput = format!(
        "at most {}{}",
        number::rate(max.value, Some(max.ci)),
        instead(format!(" instead of {}", number::estimate(before.throughput_max_per_s.value, None)))
    );
    let earlier = before.users_at_saturation.map(|users| number::count(users.value as u64));
    let users = match after.users_at_saturation {
        Some(users) => format!(
            "N* = {}{}{}",
            words::users(users.value as u32),
            whole(users),
            instead(earlier.map(|earlier| format!(" instead of {earlier}")).unwrap_or_default())
        ),
        None => "N* beyond a million users".to_owned(),
    };
    let response = after.response_time_at_saturation_us.map(|time| {
        format!("; mean response there {}", number::time_with_interval(time.value, Some(time.ci)))
    });
    format!("{}: {throughput}; {users}{}.", changes(&of.changes), response.unwrap_or_default())
}

fn whole(of: Estimate) -> String {
    format!(" ({}–{})", number::count(of.ci[0] as u64), number::count(of.ci[1] as u64))
}

/// What limits the changed system, and what would come next.
pub(crate) fn bottleneck(of: &Outlook) -> String {
    let mut limits = of.limits.iter();
    let Some(first) = limits.next() else { return "No limit of it is known.".to_owned() };
    let next = limits.next().map(|next| {
        format!(" Next: {}, at about {} req/s.", limit(next), number::about(next.throughput_per_s))
    });
    format!("Bottleneck: {}.{}", limit(first), next.unwrap_or_default())
}

fn limit(of: &LimitFacts) -> String {
    use analysis::run::ResourceKind::{
        ConnectionPool, Cpu, CpuQuota, Disk, Lock, Network, SingleThread, WorkerPool,
    };
    match &of.identity {
        Some(identity) if matches!(of.kind, Lock | WorkerPool | ConnectionPool) => {
            format!("the {} of {}", words::kind(of.kind), holders::name(identity))
        }
        Some(identity) if matches!(of.kind, Cpu | SingleThread | CpuQuota | Disk | Network) => {
            holders::resource(identity)
        }
        Some(identity) => format!("{} ({})", words::kind(of.kind), holders::name(identity)),
        None => words::kind(of.kind).to_owned(),
    }
}

/// What was asked for, one number of users.
pub(crate) fn asked(of: &Prediction) -> Option<String> {
    let point = of.curve.iter().find(|point| point.asked)?;
    let (throughput, response) = (point.throughput_per_s, point.response_time_us);
    let percentiles = [("p95", point.p95_us), ("p99", point.p99_us)]
        .into_iter()
        .filter_map(|(name, us)| us.map(|us| format!(", {name} about {}", number::time(us.value))));
    Some(format!(
        "With {}: {}, mean response {}{}.",
        words::users(point.users),
        number::rate(throughput.value, Some(throughput.ci)),
        number::time_with_interval(response.value, Some(response.ci)),
        percentiles.collect::<String>()
    ))
}

/// The model in a sentence.
pub(crate) fn model(of: &Prediction) -> String {
    let facts = &of.model;
    format!(
        "A queueing network of {}, calibrated on {} steps, from which it is {} away; times are {} irregular (0 constant, 1 \
         exponential).{} Intervals are of 95 %.",
        facts.demands.join(", "),
        number::count(facts.steps.into()),
        number::percent(facts.misses),
        number::quantity(facts.irregularity),
        facts.slowdown.map(slowdown).unwrap_or_default()
    )
}

/// How its bottleneck slows down, after a space: as many waiting requests as double the time of one, or by how much it is slower
/// however many wait.
fn slowdown(of: Slowdown) -> String {
    match of.waiting_for_double() {
        Some(doubled) => format!(
            " The bottleneck takes longer the more requests wait for it, twice as long with about {}.",
            number::about(doubled)
        ),
        None if of.onset < 1.0 => {
            format!(" The bottleneck takes {} longer while requests wait for it.", number::percent(of.growth))
        }
        None => format!(
            " The bottleneck takes {} longer while more than about {} requests wait for it.",
            number::percent(of.growth),
            number::about(of.onset)
        ),
    }
}

/// What became of the goal.
pub(crate) fn goal(of: &GoalAnswer) -> Vec<String> {
    let now = figure(&of.goal.figure, of.now);
    if of.reached {
        return vec![format!("Goal {}: reached without another change, at {now}.", of.goal.text)];
    }
    let found = match of.options.as_slice() {
        [] => "None of the single changes that were tried reaches it.".to_owned(),
        [first, ..] => format!("The cheapest single change that reaches it: {}.", change(&first.change)),
    };
    let first = format!("Goal {}: not reached, at {now}. {found}", of.goal.text);
    std::iter::once(first).chain(of.options.iter().map(|option| option_of(of, option))).collect()
}

fn option_of(of: &GoalAnswer, option: &GoalOption) -> String {
    let sure = if option.sure { "" } else { ", not within its whole interval" };
    format!("{}: {}{sure}", change(&option.change), figure(&of.goal.figure, option.figure))
}

fn figure(of: &GoalFigure, value: Estimate) -> String {
    match of {
        GoalFigure::Throughput => number::rate(value.value, Some(value.ci)),
        GoalFigure::Users => format!("{}{}", words::users(value.value as u32), whole(value)),
        GoalFigure::Mean | GoalFigure::Quantile { .. } => {
            number::time_with_interval(value.value, Some(value.ci))
        }
    }
}

/// A reason not to rely on it.
pub(crate) fn caution(of: &Caution) -> String {
    match of {
        Caution::BeyondThroughput { measured_per_s } => format!(
            "Beyond what was measured, at most {} req/s: what stops it there is known only from what a request cost with less.",
            number::estimate(*measured_per_s, None)
        ),
        Caution::BeyondUsers { measured } => {
            format!("Beyond what was measured, at most {}.", words::users(*measured))
        }
        Caution::Fell { users, share, followed } => format!(
            "With {} throughput had fallen to {} of its maximum. {}",
            words::users(*users),
            number::percent(*share),
            match followed {
                true => "The model falls as it did; how far it falls with more users is not known.",
                false => "The model does not fall: beyond N* it may promise too much.",
            }
        ),
        Caution::Misses { share } => format!(
            "The model is {} away from the steps it was made from; the intervals are wider by as much.",
            number::percent(*share)
        ),
        Caution::NoOtherLimit => {
            "No other limit is known from this run: what comes next may come earlier than this says.".to_owned()
        }
        Caution::MoreProcessors { name } => {
            format!("{name} is taken to use more processors as well as those it had.")
        }
        Caution::OtherThinkTime => {
            "How regularly users come who think for another time is not known; the intervals allow for it.".to_owned()
        }
        Caution::SeveralChanges { changes } => format!(
            "What {} changes at once do to one another was not measured: it is what the model makes of them.",
            number::count((*changes).into())
        ),
        Caution::FarBeyond { changes, times } => format!(
            "{} changes at once promise {} times what was measured, and no prediction as far was ever held against a changed \
             server: make one of them, sweep again, and predict the others from that.",
            number::count((*changes).into()),
            number::about(*times)
        ),
        Caution::SharedDevices { demands } => format!(
            "Other tiers on the same host use {} too, so added servers are taken to bring none of their own.",
            demands.join(", ")
        ),
        Caution::SharedWithLoad => {
            "The processors of that host carry whatever else ran there, the load generator too where it was on it.".to_owned()
        }
        Caution::OneCall { name } => format!("Each request is taken to call {name} once."),
        Caution::Mix => "The mix of requests is taken to stay as it was.".to_owned(),
        Caution::OtherMix => "Each kind of request is taken to cost what it did, and to be held up, where no resource accounts for \
             it, for as long as with the fewest users; how irregular times are with another mix is not known."
            .to_owned(),
        Caution::MixKept { demand } => {
            format!("What each kind of request takes of {demand} is not known: it is taken to stay as it was.")
        }
    }
}

/// Why there is no answer, and what to do.
pub(crate) fn refusal(of: &Refusal) -> String {
    match of {
        Refusal::OpenLoop => {
            "this run sent at a rate, whatever the responses; a prediction needs a sweep over users: nstar sweep URL".into()
        }
        Refusal::TooFewSteps => {
            "this run has fewer than two steady steps; a prediction needs a sweep: nstar sweep URL".into()
        }
        Refusal::NotBounded => {
            "throughput never stopped growing in this run, so that its limit is not known; sweep with more users".into()
        }
        Refusal::Inconclusive => {
            "this run is inconclusive, and what is built on it would be too; nstar report RUN says why".into()
        }
        Refusal::Failures => {
            "too many requests of this run failed; a model knows only those that completed".into()
        }
        Refusal::Bottleneck { kind } => format!(
            "the bottleneck of this run is {}, of which nothing says what becomes of it under a change",
            match kind {
                analysis::run::ResourceKind::Unknown => "unknown",
                kind => words::kind(*kind),
            }
        ),
        Refusal::NobodyAlone { users } => format!(
            "the fewest users of this run are {users}, who wait for each other; sweep from 1 user on, so that the response time of \
             one alone is known"
        ),
        Refusal::UnknownName { name, known } if known.is_empty() => {
            format!("this run has no '{name}', nor anything else of that kind")
        }
        Refusal::UnknownName { name, known } => {
            format!("this run has no '{name}'; it has {}", known.join(", "))
        }
        Refusal::ALock { name } => format!(
            "what limits {name} is a lock, which one holds at a time however many workers there are; shorten it: --demand \
             '{name}.lock=-30%'"
        ),
        Refusal::WorkersUnknown { name } => format!(
            "how many workers {name} has does not show in this run, as they are not what stopped it"
        ),
        Refusal::NoLink => "this run knows the rate of no link that requests used".into(),
        Refusal::NothingBehind => "this run saw nothing that the server calls".into(),
        Refusal::InTheLock { name } => {
            format!("this run does not tell whether {name} is called while the lock is held")
        }
        Refusal::ShorterThanCalls { name, shorter_us, at_most_us } => format!(
            "calls of {name} take {} of a request at most: they cannot be {} shorter; give less, or change a demand (--demand)",
            number::time(*at_most_us),
            number::time(*shorter_us)
        ),
        Refusal::NoServer => {
            "this run observed no process of the server, so that there is nothing to add another of".into()
        }
        Refusal::NamedTwice { change } => twice(change),
        Refusal::NoQuantile => "the percentile of the goal cannot be had from this run: its ratio to the mean is known only between \
             the steps that were measured with enough responses for it, for the bottleneck, the CPU quota, the think time and the \
             mix of requests that they had; ask for the mean"
            .into(),
        Refusal::QuantileNotKept { percentile, kept } => format!(
            "this run file has no {percentile}, as it was written before nstar kept that; sweep again (nstar sweep URL -o FILE) and \
             predict from the new file, or ask for one that this has: {}",
            kept.join(", ")
        ),
        Refusal::Mix(why) => no_mix(why),
    }
}

/// Which flag changes one thing twice.
fn twice(of: &Change) -> String {
    let once = |given: &str| format!("{given}: only one of the two can hold");
    let named = |flag: &str, name: &str| once(&format!("{flag} is given twice for '{name}'"));
    let unnamed = |flag: &str, what: &str| {
        format!("{flag} is given twice for what may be the same {what}: give it once, or name each of them")
    };
    match of {
        Change::Cpus { name, .. } => named("--cpus", name),
        Change::Demand { of, .. } => named("--demand", of),
        Change::Workers { name, .. } => named("--workers", name),
        Change::UpstreamDelay { name, .. } => named("--upstream-delay", name),
        Change::Link { .. } => unnamed("--link", "link"),
        Change::AddServer { .. } => unnamed("--add-server", "servers"),
        Change::Think { .. } => once("--think is given twice"),
        Change::Mix { .. } => once("--mix is given twice"),
    }
}

/// A sum that is not 100 %, to tenths, so that it does not look as if it were: `99.9 %`.
fn sum_of_shares(sum: f64) -> String {
    format!("{}{}%", number::tenths(sum * 100.0), number::GROUP)
}

/// Why there is no answer for another mix, and what to do.
fn no_mix(of: &NoMix) -> String {
    match of {
        NoMix::OneKind => "this run has one kind of request, and no mix that could be another; sweep a scenario of several: \
             nstar sweep SCENARIO.toml"
            .into(),
        NoMix::Shares { sum } if *sum > 1.0 => {
            format!("the shares of --mix sum to {}, which is more than all requests", sum_of_shares(*sum))
        }
        NoMix::Shares { sum } => format!(
            "the shares of --mix sum to {}, and this run has no other kind of request to make up the rest",
            sum_of_shares(*sum)
        ),
        NoMix::SameName { name } => format!(
            "several kinds of request of this run are called '{name}': give each a name of its own in the scenario, and sweep again"
        ),
        NoMix::NamedTwice { name } => format!("--mix gives '{name}' two shares"),
        NoMix::Lock { name } => format!(
            "what limits {name} is a lock, and how long each kind of request holds it does not show in this run"
        ),
        NoMix::Bottleneck { kind } => format!(
            "the bottleneck of this run is {}, and what each kind of request takes of it does not show",
            words::kind(*kind)
        ),
        NoMix::Cost { request, of } => format!(
            "what '{request}' takes of {of} is not known from this run: it came too seldom or always in the same proportion to \
             others, nobody watched who serves it, or the file is from before nstar kept that; sweep again, for longer (-d) or with \
             more of it (--weight '{request}=N')"
        ),
        NoMix::Alone { request } => format!(
            "how long '{request}' takes where hardly anybody waits is not known from this run: too few completed with the fewest \
             users, or the file is from before nstar kept that; sweep again, for longer (-d) or with more of it (--weight \
             '{request}=N')"
        ),
    }
}
