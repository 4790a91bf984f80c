//! The table of metrics: every figure of a step, of a run's verdict and of a comparison's entry, once.
//!
//! Text tables, CSV, the tables of the page and `--gate` are made from this table, in its order. A new figure is one
//! entry of [`METRICS`]; a new percentile is one entry of [`analysis::run::PERCENTILES`] and none here.

mod unit;

use std::sync::LazyLock;

use analysis::comparison::Entry;
use analysis::run::{PERCENTILES, Percentile, ResponseTime, Run, Step};

pub use self::unit::{MetricUnit, Quantity, Value};
use analysis::ticks::failures;

/// Where a metric is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// The CSV of a run, a line per step.
    StepsCsv,
    /// The table of steps on a terminal.
    StepsText,
    /// The table of steps on the page.
    StepsPage,
    /// The table beside the page's chart of response times.
    ResponsePage,
    /// The CSV of a comparison, a line per entry.
    EntriesCsv,
    /// The table of a workload's entries on a terminal.
    EntriesText,
    /// The table of a workload's entries on the page.
    EntriesPage,
}

/// When a table on a terminal, which has little room, shows a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownIf {
    /// Always.
    Always,
    /// If the load asks for more than the system can take.
    Overload,
    /// If all variants are compared with one.
    Baseline,
    /// If responses have large bodies.
    LargeBodies,
    /// If some of what was sent came from a disk.
    FromDisk,
    /// If connecting took part of the response times.
    Connecting,
}

/// Every metric, in the order of columns.
pub(crate) static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    use Output::*;
    let mut all =
        vec![
            Metric::new("users", "Users", MetricUnit::Count, |of| Some(of.users?.into()))
                .gate("users")
                .shown(&[StepsCsv, StepsPage, ResponsePage, EntriesCsv, EntriesPage]),
            Metric::new("elapsed_s", "Measured", MetricUnit::Seconds, |of| Some(of.step()?.elapsed_s.into()))
                .shown(&[StepsCsv, StepsPage]),
            Metric::new("warmup_s", "Warm-up", MetricUnit::Seconds, |of| Some(of.step()?.warmup_s.into()))
                .shown(&[StepsCsv, StepsPage]),
            Metric::new("completed", "Completed", MetricUnit::Count, |of| Some(of.step()?.completed.into()))
                .shown(&[StepsCsv, StepsPage]),
            Metric::new("throughput_per_s", "Requests/s", MetricUnit::PerSecond, |of| Some(of.throughput))
                .interval(["throughput_lo_per_s", "throughput_hi_per_s"])
                .label("req/s")
                .gate("throughput")
                .shown(&[StepsCsv, StepsText, StepsPage, EntriesCsv, EntriesText, EntriesPage]),
            Metric::new("of_fastest", "Of the fastest", MetricUnit::OfBest, |of| of.of_fastest())
                .field("of_fastest.ratio")
                .interval(["of_fastest_lo", "of_fastest_hi"])
                .label("of first")
                .shown(&[EntriesCsv, EntriesText, EntriesPage]),
            Metric::new("of_baseline", "Of the baseline", MetricUnit::OfBest, |of| of.of_baseline())
                .field("of_baseline.ratio")
                .interval(["of_baseline_lo", "of_baseline_hi"])
                .label("of baseline")
                .text_if(ShownIf::Baseline)
                .shown(&[EntriesCsv, EntriesText, EntriesPage]),
            Metric::new("lower_bound", "Lower bound", MetricUnit::YesNo, |of| {
                Some(of.entry()?.lower_bound.into())
            })
            .shown(&[EntriesCsv]),
            Metric::new("response_time_mean_us", "Mean response", MetricUnit::Time, |of| Some(of.mean()))
                .field("response_time_us.mean")
                .interval(["response_time_mean_lo_us", "response_time_mean_hi_us"])
                .label("response")
                .gate("mean")
                .shown(&[StepsCsv, StepsText, ResponsePage, EntriesCsv, EntriesText, EntriesPage]),
        ];
    all.extend(PERCENTILES.iter().map(Metric::percentile));
    all.extend([
        Metric::new("response_time_max_us", "Max", MetricUnit::LongestTime, |of| {
            Some(of.response_time.max.into())
        })
        .field("response_time_us.max")
        .shown(&[StepsCsv, ResponsePage, EntriesCsv]),
        Metric::new("connecting_share", "Connecting", MetricUnit::Share, |of| {
            Some(of.step()?.connecting?.share.into())
        })
        .field("connecting.share")
        .label("connecting")
        .text_if(ShownIf::Connecting)
        .shown(&[StepsCsv, StepsText, ResponsePage]),
        Metric::new("cpu_us_per_request", "CPU per request", MetricUnit::Cost, |of| {
            Some(of.entry()?.cpu_us_per_request?.into())
        })
        .label("CPU each")
        .shown(&[EntriesCsv, EntriesText, EntriesPage]),
        // Over all runs of the entry, not of one step.
        Metric::new("completed", "Completed", MetricUnit::Count, |of| Some(of.entry()?.completed.into()))
            .label("served")
            .text_if(ShownIf::Overload)
            .shown(&[EntriesCsv, EntriesText, EntriesPage]),
        Metric::new("errors", "Errors", MetricUnit::Count, |of| Some(failures(&of.step()?.errors).into()))
            .label("errors")
            .shown(&[StepsText, StepsPage]),
        Metric::new("error_share", "Errors", MetricUnit::Share, |of| Some(of.run()?.failed_share().into()))
            .gate("errors"),
        Metric::new("received_bytes_per_s", "Received", MetricUnit::BytesPerSecond, |of| of.received())
            .label("received")
            .text_if(ShownIf::LargeBodies)
            .shown(&[StepsCsv, StepsPage, EntriesText, EntriesPage]),
        Metric::new("from_disk_share", "From disk", MetricUnit::Share, |of| {
            Some(of.step()?.from_disk_share?.into())
        })
        .label("from disk")
        .text_if(ShownIf::FromDisk)
        .shown(&[StepsCsv, StepsText, StepsPage]),
        Metric::new("sent_bytes_per_s", "Sent", MetricUnit::BytesPerSecond, |of| {
            Some(of.step()?.sent_bytes_per_s.into())
        })
        .shown(&[StepsCsv, StepsPage]),
        Metric::new("steady", "Steady", MetricUnit::YesNo, |of| Some(of.step()?.steady.into()))
            .shown(&[StepsCsv, StepsPage]),
        Metric::new("little_gap", "Little’s gap", MetricUnit::Share, |of| {
            Some(of.step()?.little_gap.into())
        })
        .shown(&[StepsCsv, StepsPage]),
        Metric::new("generator_useful_work", "Generator busy", MetricUnit::Share, |of| {
            Some(of.step()?.generator.useful_work.into())
        })
        .field("generator.useful_work")
        .shown(&[StepsCsv, StepsPage]),
        Metric::new("generator_lag_us_p99", "Generator lag p99", MetricUnit::Cost, |of| {
            Some(of.step()?.generator.lag_us_p99.into())
        })
        .field("generator.lag_us_p99")
        .shown(&[StepsCsv, StepsPage]),
    ]);
    all
});

/// The metrics that an output shows, in the order of its columns.
pub(crate) fn shown_in(output: Output) -> impl Iterator<Item = &'static Metric> + Clone {
    METRICS.iter().filter(move |metric| metric.outputs.contains(&output))
}

/// The metrics that `--gate` can bound, each with the name it has there.
pub fn gates() -> impl Iterator<Item = (&'static str, &'static Metric)> {
    METRICS.iter().filter_map(|metric| Some((metric.gate.as_deref()?, metric)))
}

/// One figure: what it is read from, what it is called, how it is written, where it is shown.
#[derive(Debug)]
pub struct Metric {
    /// Its column in CSV.
    name: String,
    /// The columns of its interval's ends, after it.
    ends: Option<[&'static str; 2]>,
    /// Where it is in the run file or the comparison file.
    field: String,
    /// Over a column of the page.
    heading: String,
    /// Over a column on a terminal.
    label: String,
    unit: MetricUnit,
    source: Source,
    /// Its name in `--gate`, if it can be bounded there.
    gate: Option<String>,
    outputs: &'static [Output],
    shown_if: ShownIf,
}

/// Where a figure is read from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Measurement(fn(&Measurement<'_>) -> Option<Quantity>),
    Percentile(Percentile),
}

impl Metric {
    fn new(
        name: &str,
        heading: &str,
        unit: MetricUnit,
        read: fn(&Measurement<'_>) -> Option<Quantity>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            ends: None,
            field: name.to_owned(),
            heading: heading.to_owned(),
            label: heading.to_owned(),
            unit,
            source: Source::Measurement(read),
            gate: None,
            outputs: &[],
            shown_if: ShownIf::Always,
        }
    }

    /// The metric of a percentile of response times. Every output of response times shows it; tables that show one
    /// percentile beside other figures show [`TAIL`].
    fn percentile(percentile: &Percentile) -> Self {
        use Output::*;
        let Percentile { name, share, .. } = percentile;
        let heading = percentile_name(*share);
        Self {
            name: format!("response_time_{name}_us"),
            ends: None,
            field: format!("response_time_us.{name}"),
            label: heading.clone(),
            heading,
            unit: MetricUnit::Time,
            source: Source::Percentile(*percentile),
            gate: Some((*name).to_owned()),
            outputs: match *name == TAIL {
                true => &[StepsCsv, StepsText, ResponsePage, EntriesCsv, EntriesText, EntriesPage],
                false => &[StepsCsv, ResponsePage, EntriesCsv],
            },
            shown_if: ShownIf::Always,
        }
    }

    fn field(self, field: &str) -> Self {
        Self { field: field.to_owned(), ..self }
    }

    fn label(self, label: &str) -> Self {
        Self { label: label.to_owned(), ..self }
    }

    fn interval(self, ends: [&'static str; 2]) -> Self {
        Self { ends: Some(ends), ..self }
    }

    fn gate(self, name: &str) -> Self {
        Self { gate: Some(name.to_owned()), ..self }
    }

    fn text_if(self, shown_if: ShownIf) -> Self {
        Self { shown_if, ..self }
    }

    fn shown(self, outputs: &'static [Output]) -> Self {
        Self { outputs, ..self }
    }

    /// The figure that a measurement has for this metric, if it has one.
    pub fn read(&self, of: &Measurement<'_>) -> Option<Quantity> {
        match self.source {
            Source::Measurement(read) => read(of),
            Source::Percentile(percentile) => percentile.read(of.response_time).map(Quantity::from),
        }
    }

    /// How many responses the figure needs, and how many there were, where those are too few for it: ASCII alone.
    pub fn too_few(&self, of: &Measurement<'_>) -> Option<String> {
        let (Source::Percentile(percentile), time) = (self.source, of.response_time) else { return None };
        (!percentile.is_known(time)).then(|| {
            let (name, needed) = (percentile_name(percentile.share), percentile.samples_min());
            format!("{name} needs {needed} responses; there were {}", time.samples)
        })
    }

    /// How the figure is written, and what it is measured in.
    pub fn unit(&self) -> MetricUnit {
        self.unit
    }

    pub(crate) fn shown_if(&self) -> ShownIf {
        self.shown_if
    }

    pub(crate) fn field_name(&self) -> &str {
        &self.field
    }

    pub(crate) fn heading(&self) -> &str {
        &self.heading
    }

    pub(crate) fn text_label(&self) -> &str {
        &self.label
    }

    /// Whether the figure comes with an interval.
    pub(crate) fn has_interval(&self) -> bool {
        self.ends.is_some()
    }

    /// The columns of CSV: the figure, then the ends of its interval if it has one.
    pub(crate) fn csv_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.ends.into_iter().flatten())
    }

    /// The cells below [`Self::csv_names`], unrounded; empty where the measurement has no such figure.
    pub(crate) fn csv_cells(&self, of: &Measurement<'_>) -> Vec<String> {
        let figure = self.read(of);
        let mut cells = vec![figure.map_or_else(String::new, |figure| figure.value.to_string())];
        if self.ends.is_some() {
            let ends = figure.and_then(|figure| figure.interval);
            cells.extend(ends.map_or_else(Default::default, |ends| ends.map(|end| end.to_string())));
        }
        cells
    }
}

/// The percentile shown where there is room for one.
const TAIL: &str = "p99";

/// The percentile shown where there is room for one, microseconds; `None` where the sample is too small for it.
pub(crate) fn tail_us(time: &ResponseTime) -> Option<f64> {
    PERCENTILES.iter().find(|percentile| percentile.name == TAIL)?.read(time)
}

/// The percentiles of a table with room for a few: up to the one that stands for the tail.
pub(crate) fn percentiles_to_tail() -> impl Iterator<Item = Percentile> {
    let tail = PERCENTILES.iter().position(|percentile| percentile.name == TAIL);
    PERCENTILES.into_iter().take(tail.map_or(0, |tail| tail + 1))
}

/// `p99.9` for 0.999.
pub(crate) fn percentile_name(share: f64) -> String {
    // Rounded: 0.999 × 100 is not 99.9 in binary.
    format!("p{}", (share * 1e4).round() / 1e2)
}

/// A step, a run's verdict or an entry of a comparison, as metrics read it.
#[derive(Debug, Clone, Copy)]
pub struct Measurement<'a> {
    users: Option<u32>,
    throughput: Quantity,
    response_time: &'a ResponseTime,
    of: Of<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Of<'a> {
    Step(&'a Step),
    Run(&'a Run),
    Entry(&'a Entry),
}

impl<'a> From<&'a Step> for Measurement<'a> {
    fn from(step: &'a Step) -> Self {
        Self {
            users: Some(step.users),
            throughput: Quantity::estimate(step.throughput_per_s, step.throughput_ci_per_s),
            response_time: &step.response_time_us,
            of: Of::Step(step),
        }
    }
}

/// The verdict of a run.
impl<'a> From<&'a Run> for Measurement<'a> {
    fn from(run: &'a Run) -> Self {
        let verdict = &run.verdict;
        Self {
            users: verdict.users_at_saturation,
            throughput: Quantity::estimate(
                verdict.throughput_max_per_s,
                Some(verdict.throughput_max_ci_per_s),
            ),
            response_time: &verdict.response_time_at_saturation_us,
            of: Of::Run(run),
        }
    }
}

impl<'a> From<&'a Entry> for Measurement<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self {
            users: entry.users,
            throughput: Quantity::estimate(entry.throughput_per_s, Some(entry.throughput_ci_per_s)),
            response_time: &entry.response_time_us,
            of: Of::Entry(entry),
        }
    }
}

impl<'a> Measurement<'a> {
    fn step(&self) -> Option<&'a Step> {
        if let Of::Step(step) = self.of { Some(step) } else { None }
    }

    fn run(&self) -> Option<&'a Run> {
        if let Of::Run(run) = self.of { Some(run) } else { None }
    }

    fn entry(&self) -> Option<&'a Entry> {
        if let Of::Entry(entry) = self.of { Some(entry) } else { None }
    }

    fn mean(&self) -> Quantity {
        Quantity::estimate(self.response_time.mean, self.response_time.mean_ci)
    }

    fn of_fastest(&self) -> Option<Quantity> {
        let share = self.entry()?.of_fastest?;
        Some(Quantity::estimate(share.ratio, Some(share.ci)))
    }

    fn of_baseline(&self) -> Option<Quantity> {
        let share = self.entry()?.of_baseline?;
        Some(Quantity::estimate(share.ratio, Some(share.ci)))
    }

    fn received(&self) -> Option<Quantity> {
        match self.of {
            Of::Step(step) => Some(step.received_bytes_per_s.into()),
            Of::Entry(entry) => Some(entry.received_bytes_per_s.into()),
            Of::Run(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn percentiles_are_named_as_people_write_them() {
        assert_eq!([0.5, 0.95, 0.999, 0.9999].map(percentile_name), ["p50", "p95", "p99.9", "p99.99"]);
    }

    #[test]
    fn fifty_eight_responses_are_too_few_for_p95() {
        let (_, p95) = gates().find(|(name, _)| *name == "p95").expect("a gate");
        let of = |samples| Step {
            response_time_us: ResponseTime { p95: Some(2.0), samples, ..ResponseTime::default() },
            ..Step::default()
        };
        let (few, enough) = (of(58), of(59));
        let (few, enough) = (Measurement::from(&few), Measurement::from(&enough));
        assert!(p95.read(&few).is_none());
        assert_eq!(p95.too_few(&few).as_deref(), Some("p95 needs 59 responses; there were 58"));
        assert_eq!(p95.read(&enough).map(|found| found.number()), Some(2.0));
    }

    #[test]
    fn no_output_shows_a_name_twice() {
        use Output::*;
        for output in [StepsCsv, StepsText, StepsPage, ResponsePage, EntriesCsv, EntriesText, EntriesPage] {
            let names: Vec<_> = shown_in(output).map(|metric| &metric.name).collect();
            let unique: BTreeSet<_> = names.iter().collect();
            assert_eq!(names.len(), unique.len(), "{output:?}: {names:?}");
        }
        let gates: Vec<_> = gates().map(|(name, _)| name).collect();
        assert_eq!(gates.len(), gates.iter().collect::<BTreeSet<_>>().len(), "{gates:?}");
    }
}
