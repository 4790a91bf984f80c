//! The page's lists of facts: the verdict, the models, the run.

use analysis::run::{Bottleneck, GeneratorHost, PERCENTILES, Resource, ResourceKind, Run, SlowedTier};
use serde::Serialize;

use crate::metrics::percentile_name;
use crate::number;
use crate::progress;
use crate::sentences::{comparisons, holders, sure};
use crate::summary::{self, Outcome, Reached};
use crate::words;

/// A named value, with its interval or a remark.
#[derive(Debug, Serialize)]
pub(super) struct Fact {
    name: String,
    value: String,
    note: String,
    /// Name of the figure in the run file, and the figure unrounded; empty for words.
    key: &'static str,
    raw: String,
}

impl Fact {
    pub(super) fn new(name: impl Into<String>, value: impl Into<String>, note: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), note: note.into(), key: "", raw: String::new() }
    }

    fn of(mut self, key: &'static str, raw: impl ToString) -> Self {
        (self.key, self.raw) = (key, raw.to_string());
        self
    }
}

/// The verdict, most telling first.
pub(super) fn verdict(run: &Run) -> Vec<Fact> {
    let mut facts = vec![users(run)];
    if !run.steps.is_empty() {
        facts.push(throughput(run));
        facts.extend(response_time(run));
    }
    facts.extend(bottleneck(&run.verdict.bottleneck));
    facts.extend(run.confirmation.iter().flat_map(|tested| &tested.tiers).map(slowed));
    facts.extend(run.verdict.knee_users.map(|knee| {
        Fact::new("Knee", format!("{} users", number::plain(knee)), "where the asymptotes cross")
            .of("knee_users", knee)
    }));
    facts
}

fn users(run: &Run) -> Fact {
    let verdict = &run.verdict;
    let note = verdict.users_at_saturation_ci.map_or_else(String::new, |[lo, hi]| {
        format!("95 % interval {}–{}", number::count(lo.into()), number::count(hi.into()))
    });
    match summary::outcome(run) {
        Outcome::Saturated(n) => {
            Fact::new("Users at saturation, N*", number::count(n.into()), note).of("users_at_saturation", n)
        }
        Outcome::GeneratorFull(n) => {
            Fact::new("Generator full at", words::users(n), note).of("users_at_saturation", n)
        }
        Outcome::NotSaturated(n) => {
            Fact::new("Users at saturation, N*", format!("more than {}", number::count(n.into())), "")
        }
        Outcome::OneStep | Outcome::AllFailed => {
            let users = run.steps.last().map_or(0, |step| step.users);
            Fact::new("Users", number::count(users.into()), summary::load_shape(run)).of("users", users)
        }
        Outcome::Empty => Fact::new("Users at saturation, N*", number::MISSING, ""),
    }
}

fn throughput(run: &Run) -> Fact {
    let (rate, ci) = (run.verdict.throughput_max_per_s, run.verdict.throughput_max_ci_per_s);
    let name = match summary::throughput_reached(run) {
        Reached::LowerBound => "Throughput, at least",
        Reached::Maximum => "Maximum throughput",
        Reached::Measured => "Throughput",
    };
    Fact::new(name, format!("{} req/s", number::estimate(rate, Some(ci))), interval_note(rate, ci))
        .of("throughput_max_per_s", rate)
}

fn interval_note(value: f64, ci: [f64; 2]) -> String {
    format!("95 % interval {}", number::interval(value, ci))
}

fn response_time(run: &Run) -> Option<Fact> {
    let time = &run.verdict.response_time_at_saturation_us;
    let name = match summary::outcome(run) {
        Outcome::AllFailed | Outcome::Empty => return None,
        Outcome::Saturated(_) => "Mean response time at N*".to_owned(),
        Outcome::OneStep => "Mean response time".to_owned(),
        Outcome::GeneratorFull(n) | Outcome::NotSaturated(n) => {
            format!("Mean response time at {}", words::users(n))
        }
    };
    let percentiles = PERCENTILES.iter().filter_map(|percentile| {
        let name = percentile_name(percentile.share);
        match percentile.read(time) {
            Some(us) => Some(format!("{name} {}", number::time(us))),
            None if percentile.is_known(time) => None,
            None => Some(format!("too few responses for {name} ({})", number::count(time.samples))),
        }
    });
    let longest = format!("longest {}", number::time(time.max));
    let percentiles = percentiles.chain([longest]).collect::<Vec<_>>().join(", ");
    Some(
        Fact::new(name, number::time(time.mean), percentiles)
            .of("response_time_at_saturation_us.mean", time.mean),
    )
}

fn bottleneck(bottleneck: &Bottleneck) -> Vec<Fact> {
    if bottleneck.kind == ResourceKind::None && bottleneck.findings.is_empty() {
        return Vec::new();
    }
    let kind = words::capitalised(words::kind(bottleneck.kind));
    let name = match &bottleneck.identity {
        Some(holder) => format!("{kind}: {}", holders::name(holder)),
        None => kind,
    };
    let mut facts = vec![
        Fact::new("Bottleneck", name, sure::sure(bottleneck).unwrap_or_default())
            .of("bottleneck.confidence", bottleneck.confidence.share()),
    ];
    facts.extend(bottleneck.utilization.map(|share| {
        Fact::new("Its utilisation", number::percent(share), "busy share of what it could use")
            .of("bottleneck.utilization", share)
    }));
    facts.extend(bottleneck.demand_us.map(|us| {
        Fact::new("Service demand", number::time(us), "of it, for each completed request")
            .of("bottleneck.demand_us", us)
    }));
    facts.extend(bottleneck.runner_up.as_ref().map(runner_up));
    facts
}

fn slowed(tier: &SlowedTier) -> Fact {
    let [low, high] = tier.elasticity_ci;
    let followed = format!("{:.2} ({low:.2} to {high:.2})", tier.elasticity);
    let title = format!("Elasticity to {}", holders::short_name(&tier.tier.identity()));
    Fact::new(title, followed, "of throughput to its speed: 1 at the bottleneck, 0 with slack")
        .of("confirmation.tiers.elasticity", tier.elasticity)
}

fn runner_up(resource: &Resource) -> Fact {
    let name = holders::resource_name(resource);
    let note = resource.identity.as_ref().map_or("", |_| words::kind(resource.kind));
    Fact::new("Runner-up", format!("{name}, {} busy", number::percent(resource.utilization)), note)
        .of("bottleneck.runner_up.utilization", resource.utilization)
}

/// The fitted models.
pub(super) fn models(run: &Run) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(bounds) = &run.models.bounds {
        let limit = format!("{} req/s", number::plain(bounds.throughput_max_per_s));
        let knee = format!("reached at {} users at the earliest", number::plain(bounds.knee_users));
        facts.push(
            Fact::new("Upper bound on throughput", limit, knee)
                .of("bounds.throughput_max_per_s", bounds.throughput_max_per_s),
        );
        let alone = number::time(bounds.response_time_alone_us);
        facts.push(Fact::new("Response time of one user alone", alone, ""));
    }
    if let Some(usl) = &run.models.usl {
        let explains = match usl.fits {
            Some(false) => {
                "universal scalability law, which does not fit: the steps lie further from it than their \
                            intervals and 2 % explain"
                    .to_owned()
            }
            _ => format!(
                "universal scalability law; explains {} of the variance",
                number::percent(usl.r_squared)
            ),
        };
        let within = |ci: Option<[f64; 2]>, more: &str| match ci {
            Some([low, high]) if more.is_empty() => {
                format!("{} to {}", number::plain(low), number::plain(high))
            }
            Some([low, high]) => format!("{} to {}; {more}", number::plain(low), number::plain(high)),
            None => more.to_owned(),
        };
        let sigma = within(usl.sigma_ci, &explains);
        facts.push(Fact::new("Contention σ", number::plain(usl.sigma), sigma).of("usl.sigma", usl.sigma));
        let kappa = within(usl.kappa_ci, "");
        facts.push(Fact::new("Coherency κ", number::plain(usl.kappa), kappa).of("usl.kappa", usl.kappa));
        let one = format!("{} req/s", number::plain(usl.lambda_per_s));
        let lambda = within(usl.lambda_ci_per_s, "");
        facts.push(
            Fact::new("Throughput of one user λ", one, lambda).of("usl.lambda_per_s", usl.lambda_per_s),
        );
    }
    facts
}

/// Where, when and how the run was made.
pub(super) fn run(run: &Run) -> Vec<Fact> {
    let host = &run.host;
    let cores = format!("{} {}", host.cores, if host.cores == 1 { "core" } else { "cores" });
    let memory = number::prefixed(host.memory_bytes as f64, "B");
    let mut facts = vec![
        Fact::new("Target", &run.target, ""),
        Fact::new("Load", summary::load_shape(run), format!("generator threads: {}", run.load.threads)),
        Fact::new("Started", &run.started, format!("took {}", number::elapsed(run.elapsed_s))),
        Fact::new("Host", format!("{cores}, {memory}"), &host.processor),
        Fact::new("Kernel", &host.kernel, ""),
        Fact::new("nstar", &run.version, format!("seed {}", run.seed)),
    ];
    let mix = summary::mix(run);
    if !mix.is_empty() {
        facts.push(Fact::new("Requests", mix, ""));
    }
    if let Some(proof) = &run.proof {
        let holds = if proof.holds { "holds" } else { "FAILED" };
        facts.push(Fact::new("Proof", words::unbroken(progress::proof_text(proof)), holds));
        if !proof.counts.is_empty() {
            facts.push(Fact::new("Proof counted", comparisons::counts(&proof.counts), ""));
        }
    }
    for said in &run.prepared {
        let name = if said.reset { "Reset before each step" } else { "Prepared" };
        facts.push(Fact::new(name, words::unbroken(&comparisons::prepared(said)), &said.program));
    }
    if !run.load.generators.is_empty() {
        facts.push(Fact::new(
            "Generators",
            generators(run),
            "users and busy share of each where the verdict is about",
        ));
        facts.push(Fact::new("Their clocks", clocks(run), "ahead of that of this host"));
    }
    if run.load.generator_cpus.is_some() || run.load.system_cpus.is_some() {
        facts.push(Fact::new("Processors", processors(run), ""));
    }
    facts
}

/// Each of several generators, with its users at the step that the verdict is about.
fn generators(run: &Run) -> String {
    let of_step = run.verdict_step().map_or(&[][..], |step| &step.generators);
    let one = |host: &GeneratorHost| {
        let ceiling = host.ceiling_per_s.map_or_else(String::new, |most| {
            format!(", at most {} requests/s of the cheapest kind", number::quantity(most))
        });
        match of_step.iter().find(|one| one.name == host.name) {
            Some(own) => {
                format!(
                    "{}: {}, busy {}{ceiling}",
                    host.name,
                    words::users(own.users),
                    number::percent(own.useful_work)
                )
            }
            None => format!("{}: lost{ceiling}", host.name),
        }
    };
    run.load.generators.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn clocks(run: &Run) -> String {
    let one = |host: &GeneratorHost| {
        let (by, sign) =
            (host.clock_offset_us.unsigned_abs(), if host.clock_offset_us < 0 { "-" } else { "" });
        format!("{}: {sign}{} ±{}", host.name, number::time(by as f64), number::time(host.clock_error_us))
    };
    run.load.generators.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn processors(run: &Run) -> String {
    let list = |cpus: &Option<Vec<u32>>| match cpus {
        Some(cpus) => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        None => "any".into(),
    };
    format!("generator on {}; systems on {}", list(&run.load.generator_cpus), list(&run.load.system_cpus))
}
