//! A contrast: two sides, such as a build and the one before it, each of one or several runs, and the ratio of every figure
//! of theirs.
//!
//! Field names are a contract, as those of the run file are.

mod caution;
mod claim;
mod difference;
mod estimate;
mod figure;
mod gate;
mod side;
mod turns;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use caution::Caution;
pub(crate) use difference::Settings;
pub use difference::{Aspect, Difference, Setting};
pub use estimate::{Basis, Bound};
pub use figure::Figure;
pub use gate::{Gate, GateFinding, GateVerdict, Limit};
pub use side::{Given, Point, Side, Variant, VariantError};

pub use crate::comparison::Tier;
use crate::comparison::{AtUsers, Entry};
use claim::claim;
use estimate::{Pairing, Samples, estimate};
use turns::Turns;

/// The value of [`Contrast::schema`].
pub const SCHEMA: &str = "nstar.contrast/1";

/// Two sides, and the ratios of their figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contrast {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Version of nstar that wrote this.
    pub version: String,
    /// What is compared with.
    pub before: Side,
    /// What is compared.
    pub after: Side,
    /// What was compared: one of run files, one per workload and variant of comparisons.
    pub cases: Vec<Case>,
    /// What differs between the runs besides what is compared.
    pub differences: Vec<Difference>,
    /// Reasons to distrust single runs.
    pub cautions: Vec<Caution>,
    /// What the gates came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateFinding>,
}

/// One load on both sides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// The workload; empty for run files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// The variant; empty for run files, and where one variant is compared with another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// The number of users, the same on both sides, at which response times and costs were read; absent where no number was
    /// measured on both: then they are those at each run's own N*. A cost of single runs that has an interval is not of one
    /// number of users: it comes from all steps of each run, by regression.
    pub at_users: Option<u32>,
    /// The ratios, throughput first.
    pub figures: Vec<Ratio>,
    /// Throughput and response time by users before, in the run with the median throughput.
    pub steps_before: Vec<AtUsers>,
    /// The same after.
    pub steps_after: Vec<AtUsers>,
}

/// A figure on both sides, and its ratio.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The figure.
    pub figure: Figure,
    /// Its value before, the geometric mean of the runs, in the unit of the run file.
    pub before: f64,
    /// Its value after.
    pub after: f64,
    /// After over before.
    pub ratio: f64,
    /// 95 % interval of the ratio, [lo, hi]; absent where nothing tells how far the figure scatters.
    pub ci: Option<[f64; 2]>,
    /// Where the interval comes from.
    pub basis: Basis,
    /// What is known of the ratio where a side is only bounded.
    pub bound: Bound,
    /// Whether it is claimed that the figure changed.
    pub changed: bool,
    /// The standard deviation of the figure's logarithm between repeats; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<f64>,
}

impl Ratio {
    /// The fewest repeats of each side that would find a change by this factor 19 times in 20. `None` where the scatter between
    /// repeats is not known, or a thousand would not do.
    pub fn repeats_for(&self, factor: f64) -> Option<u32> {
        estimate::repeats_for(self.scatter?, factor.ln().abs(), self.basis)
    }
}

/// Puts the runs of two sides beside each other, paired where they took turns. `None` if a side has no runs.
pub fn of_runs(before: Vec<Given>, after: Vec<Given>, version: &str) -> Option<Contrast> {
    let cautions = caution::of_runs(&before, &after);
    let (before, after) = (side::without_copies(before), side::without_copies(after));
    let at_users = side::common_users(&before, &after);
    let samples = [&before, &after].map(|runs| figure::of_runs(runs, at_users));
    let samples = match (before.as_slice(), after.as_slice()) {
        ([one], [other]) => figure::with_demands(samples, [&one.run, &other.run]),
        _ => samples,
    };
    let (samples, pairing) = match Turns::of(&before, &after) {
        Some(turns) => (turns.aligned(samples), Pairing::Turns),
        None => (samples, Pairing::Apart),
    };
    let [steps_before, steps_after] = [side::middle_steps(&before)?, side::middle_steps(&after)?];
    let figures = ratios(&samples, pairing);
    let case = Case { at_users, figures, steps_before, steps_after, ..Case::default() };
    Some(Contrast {
        schema: SCHEMA.into(),
        version: version.into(),
        differences: difference::differences(&before, &after),
        before: Side::of_runs(&before),
        after: Side::of_runs(&after),
        cases: vec![case],
        cautions,
        gates: Vec::new(),
    })
}

/// Puts variants of two comparisons beside each other, or two variants of one, workload by workload. Of one comparison, rounds
/// are paired.
///
/// # Errors
/// [`VariantError`] where they have no workload or no variant in common.
pub fn of_variants(before: &Variant, after: &Variant, version: &str) -> Result<Contrast, VariantError> {
    let pairs = side::pairs(before, after)?;
    let is_one = before.comparison == after.comparison;
    let pairing = if is_one { Pairing::Rounds } else { Pairing::Apart };
    let case = |(work, one, other): side::Pair<'_>| Case {
        work: work.to_owned(),
        variant: if before.name.is_none() { one.variant.clone() } else { String::new() },
        at_users: None,
        figures: of_one_run(ratios(&[figure::of_entry(one), figure::of_entry(other)], pairing), [one, other]),
        steps_before: one.steps.clone(),
        steps_after: other.steps.clone(),
    };
    let cautions = pairs.iter().flat_map(|(_, one, other)| {
        [caution::of_entry(one, before), caution::of_entry(other, after)].into_iter().flatten()
    });
    Ok(Contrast {
        schema: SCHEMA.into(),
        version: version.into(),
        before: Side::of_variant(before),
        after: Side::of_variant(after),
        differences: variant_differences(before, after, &pairs),
        cautions: cautions.collect(),
        cases: pairs.into_iter().map(case).collect(),
        gates: Vec::new(),
    })
}

/// What differs between two comparisons besides their figures. Within one, the load may be what varies.
fn variant_differences(before: &Variant, after: &Variant, pairs: &[side::Pair<'_>]) -> Vec<Difference> {
    let (one, other) = (&before.comparison, &after.comparison);
    let loads = if one == other { Vec::new() } else { difference::of_entries(pairs) };
    let hosts = difference::of_hosts((&one.host, &one.version), (&other.host, &other.version));
    [loads, hosts].concat()
}

/// Says where the files of experiments hold a figure of one run only, whatever the number of rounds.
fn of_one_run(mut figures: Vec<Ratio>, sides: [&Entry; 2]) -> Vec<Ratio> {
    let is_kept =
        |entry: &Entry, name: &str| entry.percentiles_by_round.iter().any(|kept| kept.percentile == name);
    let is_one = |ratio: &&mut Ratio| match &ratio.figure {
        Figure::ResponseTimeQuantile { percentile } => {
            ratio.ci.is_none() && !sides.iter().all(|entry| is_kept(entry, percentile))
        }
        _ => false,
    };
    figures.iter_mut().filter(is_one).for_each(|ratio| ratio.basis = Basis::OneRun);
    figures
}

/// The ratio of every figure that both sides have, with claims.
fn ratios([before, after]: &[Vec<(Figure, Samples)>; 2], pairing: Pairing) -> Vec<Ratio> {
    let of = |(figure, before): &(Figure, Samples)| {
        let (_, after) = after.iter().find(|(other, _)| other == figure)?;
        estimate(before, after, pairing).map(|found| (figure.clone(), found))
    };
    claim(before.iter().filter_map(of).collect())
}

impl Contrast {
    /// The differences that make the loads of the two sides different ones: ratios would say nothing of the server.
    pub fn other_loads(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.aspect.is_of_load())
    }

    /// Holds gates against every case.
    pub fn hold(&mut self, gates: &[Gate]) {
        let of = |case| gates.iter().map(move |gate| gate::held(gate, case));
        self.gates = self.cases.iter().flat_map(of).collect();
    }
}

#[cfg(test)]
pub(crate) mod tests;
