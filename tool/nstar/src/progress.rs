//! Progress on stderr: a bar on a terminal, plain lines elsewhere, nothing on request.

use std::time::Duration;

use experiment::{progress::Event as Around, run::AGAIN_MAX};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::{printable, progress};
use sweep::progress::{Event, Listener, NotPutBack};

use crate::{exit, output};

/// Where progress goes.
pub enum Progress {
    /// A terminal.
    Bar(ProgressBar),
    /// A file or a pipe.
    Lines,
    /// Nowhere.
    Silent,
}

impl Progress {
    /// Chooses by what stderr is.
    pub fn new(silent: bool) -> Self {
        if silent {
            Progress::Silent
        } else if output::stderr_moves_its_cursor() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::default_spinner());
            bar.enable_steady_tick(Duration::from_millis(120));
            Progress::Bar(bar)
        } else {
            Progress::Lines
        }
    }

    /// Takes the bar away, so that what follows stands alone.
    pub fn finish(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

impl Progress {
    /// Shows a line that stays.
    pub fn say(&self, line: &str) {
        self.show(line, false);
    }

    /// Shows a text: only until the next, if it `passes`.
    fn show(&self, text: &str, passes: bool) {
        match self {
            Progress::Bar(bar) if passes => bar.set_message(printable(text).into_owned()),
            Progress::Bar(bar) => bar.println(printable(text)),
            Progress::Lines => exit::say(text),
            Progress::Silent => {}
        }
    }
}

impl Listener for Progress {
    fn on(&mut self, event: &Event) {
        let passes = matches!(event, Event::StepBegun { .. });
        let is_for_views =
            matches!(event, Event::UnderWay(_) | Event::SoFar(_) | Event::Resources { .. } | Event::Searched);
        // Told even where progress is not wanted: nobody else can mend it.
        if let (Progress::Silent, Event::NotPutBack(_)) = (&*self, event) {
            exit::say(&words(event));
        }
        // A log wants no lines that are soon out of date.
        if !(is_for_views || passes && matches!(self, Progress::Lines)) {
            self.show(&words(event), passes);
        }
    }
}

impl experiment::progress::Listener for Progress {
    fn on_experiment(&mut self, event: &Around) {
        let (text, passes) = around(event);
        self.show(&text, passes);
    }
}

/// An event in words, and whether it is shown only until the next.
fn around(event: &Around) -> (String, bool) {
    match event {
        Around::Placed(split) => {
            let split = split.as_ref().map(|split| (split.generator.as_slice(), split.systems.as_slice()));
            (progress::placed(split), false)
        }
        Around::MakingFiles { files, bytes } => (progress::making_files(*files, *bytes), true),
        Around::Starting(programs) => (progress::starting(programs), true),
        Around::Preparing => (progress::preparing(), true),
        Around::Planned(forecast) => (progress::planned(forecast.trials, forecast.time), false),
        Around::TooShort { needed } => (progress::too_short(needed.as_secs_f64()), false),
        Around::GoesOn(made) => (progress::goes_on(*made), false),
        Around::TrialBegun { name, number, ahead } => {
            // The forecast counts this trial in.
            let all = number + ahead.trials.saturating_sub(1);
            (progress::trial_begun(name, *number, all, ahead.time), false)
        }
        Around::MeasuredAgain { lost, times } => {
            (progress::measured_again(&lost.name, &lost.loss, *times, AGAIN_MAX), false)
        }
        Around::Unlimited(program) => (progress::unlimited(program), false),
        Around::Proving { interrupted } => (progress::proving(*interrupted), !interrupted),
        Around::Settled { left } => (progress::settled(left.as_secs_f64()), false),
        Around::Proved(proof) => (progress::proved(proof), false),
        Around::LeftOut(left_out) => (progress::left_out(left_out), false),
    }
}

/// An event in words; none of those that only a view shows.
pub fn words(event: &Event) -> String {
    match event {
        Event::Advice { on, fault } => report::doctor::in_short(on, fault),
        Event::UnexpectedStatus { server, status } => progress::unexpected_status(*server, *status),
        Event::Redirected { server, status } => progress::redirected(*server, *status),
        Event::NothingToKeep { server } => progress::nothing_to_keep(*server),
        Event::SocketsUnread { on, reason, others } => progress::sockets_unread(on, reason, *others),
        Event::DatabaseUnwatched { database, reason } => progress::database_unwatched(database, reason),
        Event::StepBegun { users, time, .. } => progress::step_begun(*users, time.as_ref()),
        Event::StepDone(step) => progress::step_done(step),
        Event::TellingApart { users } => progress::telling_apart(*users),
        Event::Profiling { users } => progress::profiling(*users),
        Event::Slowing { tier } => progress::slowing(tier),
        Event::NotPutBack(NotPutBack::Quota { file, held }) => progress::quota_not_put_back(file, held),
        Event::NotPutBack(NotPutBack::Rate { interface, command }) => {
            progress::rate_not_put_back(interface, command)
        }
        Event::UnderWay(_) | Event::SoFar(_) | Event::Resources { .. } | Event::Searched => String::new(),
    }
}
