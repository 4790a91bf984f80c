//! What an agent said, on the clock of this host. It knows no clock of its own: whoever adds a report says when it came.

use std::collections::VecDeque;

use analysis::counters::{Counters, ThreadLook};
use analysis::doctor::Facts;
use analysis::run::AgentTrouble;

use crate::alignment::{Alignment, Ping};
use crate::allowance::{Allowance, Exceeded};
use crate::arrived::Arrived;
use crate::protocol::{About, Listens, NotFound, Profiled, Report, Unseen};
use crate::samples::Samples;

/// Pings without an answer that are remembered.
const UNANSWERED_MAX: usize = 16;

/// An agent that says nothing for longer has stalled: it is asked for the time once a second.
const STALLED_US: u64 = 3_000_000;

/// A clock known no better than this may put a sample on the wrong side of a border.
const CLOCK_ERROR_US: f64 = 1_000.0;

/// What an agent said so far.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) about: Option<About>,
    /// How many questions were asked that are numbered. An answer may come when it is not waited for any longer.
    questions: u64,
    /// The last answer about addresses, with the number of the question.
    pub(crate) watching: (u64, Vec<Result<Listens, NotFound>>),
    /// What it said last that it may not see.
    pub(crate) unseen: Unseen,
    /// The last facts of its host, with the number of the question.
    pub(crate) facts: (u64, Facts),
    /// How many profiles were asked for, and the last answer.
    pub(crate) profiles: (u64, Option<Profiled>),
    pub(crate) pongs: u64,
    /// Why nothing more comes, if that is so.
    pub(crate) ended: Option<AgentTrouble>,
    /// What it said of the load that it makes, if it makes any.
    pub(crate) arrived: Arrived,
    pub(crate) alignment: Alignment,
    seen: Samples,
    /// Since when a sample is waited for, and the longest that one was.
    sample_due_us: Option<u64>,
    longest_wait_us: u64,
    worst_error_us: f64,
    unanswered: VecDeque<(u64, u64)>,
    next_ping: u64,
    began_us: u64,
    heard_us: u64,
    longest_silence_us: u64,
    left_out: u64,
    allowance: Allowance,
}

impl Kept {
    pub(crate) fn new(now_us: u64) -> Self {
        Self {
            about: None,
            questions: 0,
            watching: (0, Vec::new()),
            unseen: Unseen::default(),
            facts: (0, Facts::default()),
            profiles: (0, None),
            pongs: 0,
            ended: None,
            arrived: Arrived::default(),
            alignment: Alignment::default(),
            seen: Samples::default(),
            sample_due_us: None,
            longest_wait_us: 0,
            began_us: now_us,
            worst_error_us: 0.0,
            unanswered: VecDeque::new(),
            next_ping: 0,
            heard_us: now_us,
            longest_silence_us: 0,
            left_out: 0,
            allowance: Allowance::new(now_us),
        }
    }

    /// The number of a question that is asked now.
    pub(crate) fn question(&mut self) -> u64 {
        self.questions += 1;
        self.questions
    }

    /// The number of a ping that is sent now.
    pub(crate) fn ping(&mut self, now_us: u64) -> u64 {
        self.next_ping += 1;
        self.unanswered.push_back((self.next_ping, now_us));
        if self.unanswered.len() > UNANSWERED_MAX {
            self.unanswered.pop_front();
        }
        self.next_ping
    }

    /// A sample is asked for now; `at_border` that of a measurement, it is kept for good.
    pub(crate) fn ask_for_sample(&mut self, at_border: bool, now_us: u64) {
        self.sample_due_us.get_or_insert(now_us);
        if at_border {
            self.seen.expect_border(now_us);
        }
    }

    /// Takes a report of so many bytes that came now.
    pub(crate) fn add(&mut self, report: Report, bytes: usize, now_us: u64) -> Result<(), Exceeded> {
        self.longest_silence_us = self.silence_us(now_us);
        self.heard_us = now_us;
        // Slices are taken away again, so that they have a limit of their own.
        if !matches!(report, Report::Tick(..)) {
            self.allowance.take(now_us, bytes)?;
        }
        let after_us = now_us.saturating_sub(self.began_us);
        let Some(report) = self.arrived.add(report, bytes, after_us)? else { return Ok(()) };
        match report.believed() {
            Report::About(about) => self.about = Some(about),
            Report::Watching(number, found) => self.watching = (number, found),
            Report::Unseen(unseen) => self.add_unseen(unseen),
            Report::Facts(number, facts) => self.facts = (number, *facts),
            Report::Profiled(profiled) => self.profiles.1 = Some(profiled),
            Report::Sample(sample) => self.add_sample(*sample, now_us)?,
            Report::Look(look) => self.add_look(look, now_us),
            Report::Pong(number, far_us) => self.add_pong(number, far_us, now_us),
            Report::LeftOut(count) => self.left_out = self.left_out.saturating_add(count),
            // All else is about a load.
            _ => {}
        }
        Ok(())
    }

    /// Of namespaces most is kept that was said at a time: those of processes that ended are not forgotten.
    fn add_unseen(&mut self, unseen: Unseen) {
        let known = std::mem::replace(&mut self.unseen, unseen);
        if known.namespaces.len() > self.unseen.namespaces.len() {
            self.unseen.namespaces = known.namespaces;
        }
    }

    fn add_sample(&mut self, mut sample: Counters, now_us: u64) -> Result<(), Exceeded> {
        self.longest_wait_us = self.wait_us(now_us);
        self.sample_due_us = None;
        let last_us = self.samples().last().map_or(0, |sample| sample.at_us);
        let Some(at_us) = self.near_us(sample.at_us, last_us, now_us) else { return Ok(()) };
        sample.at_us = at_us;
        self.seen.add(sample)
    }

    fn add_look(&mut self, mut look: ThreadLook, now_us: u64) {
        let last_us = self.seen.looks().last().map_or(0, |look| look.at_us);
        if let Some(at_us) = self.near_us(look.at_us, last_us, now_us) {
            look.at_us = at_us;
            self.seen.add_look(look);
        }
    }

    /// A time of the far clock by ours: never before what came earlier, and never in the future.
    fn near_us(&mut self, far_us: u64, last_us: u64, now_us: u64) -> Option<u64> {
        let near_us = self.alignment.near_us(far_us)?;
        self.worst_error_us = self.alignment.error_us(now_us).unwrap_or(0.0).max(self.worst_error_us);
        Some(near_us.min(now_us).max(last_us))
    }

    fn add_pong(&mut self, number: u64, far_us: u64, now_us: u64) {
        let asked = self.unanswered.iter().position(|(asked, _)| *asked == number);
        let Some((_, sent_us)) = asked.and_then(|at| self.unanswered.remove(at)) else { return };
        self.alignment.add(Ping { sent_us, far_us, received_us: now_us });
        self.pongs += 1;
    }

    fn silence_us(&self, now_us: u64) -> u64 {
        self.longest_silence_us.max(now_us.saturating_sub(self.heard_us))
    }

    /// The longest that a sample was waited for.
    fn wait_us(&self, now_us: u64) -> u64 {
        let wait_us = self.sample_due_us.map_or(0, |due_us| now_us.saturating_sub(due_us));
        self.longest_wait_us.max(wait_us)
    }

    /// Whether it has said nothing, or sent no sample that it was asked for, for so long that nobody should wait for it.
    pub(crate) fn has_stalled(&self, now_us: u64) -> bool {
        let since_us = self.sample_due_us.map_or(self.heard_us, |due_us| due_us.min(self.heard_us));
        now_us.saturating_sub(since_us) > STALLED_US
    }

    /// Whether a sample was taken at this time or later.
    pub(crate) fn covers(&self, end_us: u64) -> bool {
        self.samples().last().is_some_and(|sample| sample.at_us >= end_us)
    }

    /// The samples that cover a span, in order of time.
    pub(crate) fn between(&self, start_us: u64, end_us: u64) -> Vec<Counters> {
        observe::covering(self.samples(), (start_us, end_us)).to_vec()
    }

    /// The looks within a span, in order of time.
    pub(crate) fn looks_between(&self, start_us: u64, end_us: u64) -> Vec<ThreadLook> {
        let within = |look: &&ThreadLook| (start_us..=end_us).contains(&look.at_us);
        self.seen.looks().iter().filter(within).cloned().collect()
    }

    /// All samples so far that were kept, in order of time.
    pub(crate) fn samples(&self) -> &[Counters] {
        self.seen.all()
    }

    /// What to tell of it besides what it saw.
    pub(crate) fn troubles(&self, now_us: u64) -> Vec<AgentTrouble> {
        let silence_us = match self.ended {
            Some(_) => self.longest_silence_us.max(self.longest_wait_us),
            None => self.silence_us(now_us).max(self.wait_us(now_us)),
        };
        let silent =
            (silence_us > STALLED_US).then(|| AgentTrouble::Silent { longest_s: silence_us as f64 / 1e6 });
        let left_out = (self.left_out > 0).then_some(AgentTrouble::LeftOut { count: self.left_out });
        let error_us = self.worst_error_us;
        let clock = (error_us > CLOCK_ERROR_US).then_some(AgentTrouble::Clock { error_us });
        self.ended.clone().into_iter().chain([silent, left_out, clock].into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use analysis::counters::{Process, Thread};
    use proptest::prelude::*;

    use super::*;

    fn sample(at_us: u64) -> Report {
        Report::Sample(Box::new(Counters { at_us, ..Counters::default() }))
    }

    /// An agent whose clock is two seconds ahead, asked at 10 s and answering within a millisecond.
    fn aligned() -> Kept {
        let mut kept = Kept::new(10_000_000);
        let number = kept.ping(10_000_000);
        kept.add(Report::Pong(number, 12_000_500), 8, 10_001_000).unwrap();
        kept
    }

    fn times(kept: &Kept) -> Vec<u64> {
        kept.between(0, u64::MAX).iter().map(|sample| sample.at_us).collect()
    }

    #[test]
    fn samples_come_to_lie_on_our_clock() {
        let mut kept = aligned();
        for at_us in [12_100_000, 12_350_000, 12_600_000] {
            kept.add(sample(at_us), 8, 11_000_000).unwrap();
        }
        assert_eq!(times(&kept), [10_100_000, 10_350_000, 10_600_000]);
        assert_eq!(kept.between(10_200_000, 10_300_000).len(), 2, "one on either side");
        assert!(kept.covers(10_600_000) && !kept.covers(10_600_001));
        assert_eq!(kept.troubles(11_000_000), []);
    }

    #[test]
    fn a_time_that_cannot_be_is_not_believed() {
        let mut kept = aligned();
        for at_us in [12_100_000, u64::MAX, 0, 12_200_000] {
            kept.add(sample(at_us), 8, 10_500_000).unwrap();
        }
        assert_eq!(times(&kept), [10_100_000, 10_500_000, 10_500_000, 10_500_000]);
        kept.add(Report::Pong(77, 5), 8, 10_600_000).unwrap();
        assert_eq!(kept.pongs, 1, "nobody asked for the other");
    }

    #[test]
    fn samples_before_the_clocks_are_aligned_are_not_used() {
        let mut kept = Kept::new(0);
        kept.add(sample(5), 8, 10).unwrap();
        assert!(times(&kept).is_empty());
    }

    #[test]
    fn what_is_missing_is_told() {
        let mut kept = aligned();
        kept.add(Report::LeftOut(3), 8, 15_001_000).unwrap();
        let silent = AgentTrouble::Silent { longest_s: 5.0 };
        assert_eq!(kept.troubles(15_001_000), [silent.clone(), AgentTrouble::LeftOut { count: 3 }]);
        assert!(!kept.has_stalled(16_000_000) && kept.has_stalled(18_100_000));
        kept.ended = Some(AgentTrouble::Malformed);
        assert_eq!(kept.troubles(99_000_000)[..2], [AgentTrouble::Malformed, silent], "an end is no silence");
    }

    /// It tells the time, and nothing else.
    #[test]
    fn one_that_sends_no_sample_that_it_was_asked_for_is_not_waited_for_and_told_of() {
        let mut kept = aligned();
        kept.ask_for_sample(false, 11_000_000);
        for now_us in (11_000_000..20_000_000).step_by(1_000_000) {
            let number = kept.ping(now_us);
            kept.add(Report::Pong(number, now_us + 2_000_000), 8, now_us).unwrap();
            kept.ask_for_sample(false, now_us);
        }
        assert!(!kept.has_stalled(14_000_000) && kept.has_stalled(14_000_001));
        assert_eq!(kept.troubles(19_000_000), [AgentTrouble::Silent { longest_s: 8.0 }]);
        kept.add(sample(21_000_000), 8, 19_000_000).unwrap();
        assert!(!kept.has_stalled(20_000_000), "it goes on");
        assert_eq!(kept.troubles(20_000_000), [AgentTrouble::Silent { longest_s: 8.0 }]);
    }

    /// Four samples a second of a server with hundreds of threads, and 25 looks.
    #[test]
    fn a_load_of_eight_hours_is_watched_to_its_end() {
        let mut kept = aligned();
        let process = Process { pid: 7, threads: vec![Thread::default(); 300], ..Process::default() };
        for number in 0..8 * 3_600 * 4u64 {
            let now_us = 11_000_000 + number * 250_000;
            let sample = Counters { at_us: now_us + 2_000_000, ..Counters::default() };
            // One in a hundred stands for all, so that the test is quick.
            let processes = if number % 100 == 0 { vec![process.clone()] } else { Vec::new() };
            let sample = Report::Sample(Box::new(Counters { processes, ..sample }));
            kept.add(sample, 8_000, now_us).unwrap();
            let look = ThreadLook { at_us: now_us + 2_000_000, processes: Vec::new() };
            (0..6).for_each(|_| kept.add(Report::Look(look.clone()), 300, now_us).unwrap());
        }
        assert!(kept.samples().len() < 5_000, "{}", kept.samples().len());
        let first_us = kept.samples().first().map(|sample| sample.at_us);
        assert_eq!(first_us, Some(11_000_000), "the first are there still");
    }

    #[test]
    fn a_slow_stream_leaves_the_clocks_apart_and_that_is_told() {
        let mut kept = Kept::new(0);
        let number = kept.ping(0);
        kept.add(Report::Pong(number, 9_000_000), 8, 80_000).unwrap();
        kept.add(sample(9_000_000), 8, 90_000).unwrap();
        let [AgentTrouble::Clock { error_us }] = kept.troubles(100_000)[..] else { panic!("{kept:?}") };
        assert!((40_000.0..40_010.0).contains(&error_us), "{error_us}");
    }

    #[test]
    fn the_last_facts_count_and_are_cut_to_what_is_believed() {
        let mut kept = Kept::new(0);
        let facts = |number, name: &str| {
            Report::Facts(number, Box::new(Facts { clock: Some(name.into()), ..Facts::default() }))
        };
        kept.add(facts(1, "tsc"), 8, 10).unwrap();
        kept.add(facts(2, "\x1b[2Jhpet"), 8, 20).unwrap();
        let expected = Facts { clock: Some(" [2Jhpet".into()), ..Facts::default() };
        assert_eq!(kept.facts, (2, expected));
    }

    proptest! {
        /// Whatever times an agent makes up, its samples are in order and none lies in the future.
        #[test]
        fn lies_do_not_disorder_samples(far in prop::collection::vec(any::<u64>(), 0..30)) {
            let mut kept = aligned();
            for (number, at_us) in far.into_iter().enumerate() {
                let now_us = 11_000_000 + number as u64;
                kept.add(sample(at_us), 8, now_us).unwrap();
                prop_assert!(times(&kept).last().is_some_and(|last| *last <= now_us));
            }
            prop_assert!(times(&kept).is_sorted());
        }
    }
}
