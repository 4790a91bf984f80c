//! Makes the load of a trial, and lets the programs prove afterwards that they kept their promises.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use analysis::{
    run::{Cause, Proof, Warning},
    search::{SearchOptions, UsersRange},
};
use load::{Plan, Scenario, Stop, limits};
use sweep::{
    conclusion::{Circumstances, numbers},
    cores,
    database::{DatabaseUrl, read_password},
    elsewhere::Observe,
    fleet::{Generators, Lost},
    single::{LoadPlan, load},
    sweep::{Confirming, Driven, SweepError, SweepPlan, sweep_with},
};

use super::{
    plan::RunError,
    preparation,
    stage::{Around, Stage},
};
use crate::{
    data,
    definition::{Confirm, PageCache, Users},
    process::Trouble,
    progress::Event,
    resolve::TrialSetup,
};

/// How long a load of a fixed number of users takes, if nothing else says so.
const FIXED_LOAD: Duration = Duration::from_secs(10);
/// A sweep uses its time well when that is enough for this many of its longest steps.
const STEPS: u32 = 5;
/// A step shorter than this yields no interval.
const SHORTEST_STEP: Duration = Duration::from_millis(500);

impl Stage<'_> {
    pub(super) fn drive(
        &mut self,
        setup: &TrialSetup<'_>,
        around: &mut Around<'_>,
    ) -> Result<Driven, RunError> {
        match (&self.plan.users, &setup.work.users) {
            (None, Users::Fixed(users)) => {
                let users = setup.users(&setup.work.target, users, &self.places)?;
                self.load(setup, users, around)
            }
            (None, Users::Swept(numbers)) => self.sweep(setup, setup.swept(numbers, &self.places)?, around),
            // One number of users is a load wherever it stands: a sweep of it would look for what no single step shows.
            (Some(range), _) => match range.single() {
                Some(users) => self.load(setup, users, around),
                None => self.sweep(setup, range.clone(), around),
            },
        }
    }

    fn load(
        &mut self,
        setup: &TrialSetup<'_>,
        users: u32,
        around: &mut Around<'_>,
    ) -> Result<Driven, RunError> {
        let (plan, circumstances) = (self.load_plan(setup)?, self.circumstances(setup));
        self.check_files(users, &plan)?;
        self.reset(setup, around.interrupt)?;
        self.drop_if_cold()?;
        let (generators, observe) = self.elsewhere(setup, around.interrupt)?;
        let plan = LoadPlan {
            load: plan,
            users,
            stop: Stop::Time(self.plan.step_max.or(self.time).unwrap_or(FIXED_LOAD)),
            profile: self.profile,
            observe,
            generators,
            circumstances,
        };
        self.whole(load(&plan, around.interrupt, around.listener))
    }

    fn sweep(
        &mut self,
        setup: &TrialSetup<'_>,
        users: UsersRange,
        around: &mut Around<'_>,
    ) -> Result<Driven, RunError> {
        let (plan, circumstances) = (self.load_plan(setup)?, self.circumstances(setup));
        let (generators, observe) = self.elsewhere(setup, around.interrupt)?;
        self.check_files(users.most(), &plan)?;
        let plan = SweepPlan {
            load: plan,
            search: self.search(users),
            database: self.database(setup)?,
            confirm: self.confirming(),
            profile: self.profile,
            observe,
            generators,
            circumstances,
            advise: false,
        };
        let interrupt = around.interrupt;
        let mut in_the_way = None;
        let mut before_step = || {
            let ready = self.reset(setup, interrupt).and_then(|()| self.drop_if_cold());
            ready.map_err(|error| {
                in_the_way = Some(error);
                "the reset failed".to_owned()
            })
        };
        let driven = sweep_with(&plan, &mut before_step, around.interrupt, around.listener);
        self.whole(driven).map_err(|error| in_the_way.unwrap_or(error))
    }

    /// What was driven, unless the fleet that makes the load was lost meanwhile. Of what it had measured by then nothing is
    /// used: some counts are missing, which programs may have to prove.
    fn whole(&self, driven: Result<Driven, SweepError>) -> Result<Driven, RunError> {
        let lost = match &driven {
            Ok(driven) => driven.lost.clone(),
            Err(error) => error.lost(),
        };
        match lost.filter(|_| self.plan.fleet.is_some()) {
            Some(lost) => Err(RunError::Lost(lost)),
            None => Ok(driven?),
        }
    }

    /// What makes the load, and what observes, besides this process: as the command line says, or else the experiment. Members
    /// of a fleet belong to this trial from then on, for as long as they are kept.
    fn elsewhere(
        &self,
        setup: &TrialSetup<'_>,
        interrupt: &AtomicBool,
    ) -> Result<(Generators, Observe), RunError> {
        let (mut generators, mut observe) = (self.plan.generators.clone(), self.plan.observe.clone());
        if generators.endpoints.is_empty() && self.plan.fleet.is_none() {
            generators.endpoints = setup.generators(&self.places)?;
        }
        if observe.endpoints.is_empty() {
            observe.endpoints = setup.observers(&self.places)?;
        }
        if let Some(fleet) = &self.plan.fleet {
            fleet.claim((&mut generators, &mut observe), interrupt)?;
        }
        Ok((generators, observe))
    }

    /// Checks that there can be so many users here; generators elsewhere check that themselves.
    fn check_files(&self, users: u32, plan: &Plan) -> Result<(), RunError> {
        if !self.plan.is_driven_elsewhere() {
            limits::ensure(users, plan.threads)?;
        }
        Ok(())
    }

    /// The database to watch, with its password. Its program may have made that, so it is read only now.
    fn database(&self, setup: &TrialSetup<'_>) -> Result<Option<DatabaseUrl>, RunError> {
        let Some(url) = setup.database(&self.places)? else { return Ok(None) };
        let Some(file) = setup.database_password_file(&self.places)? else { return Ok(Some(url)) };
        let password = read_password(&file).map_err(|error| RunError::password(&error))?;
        Ok(Some(url.with_password(password)))
    }

    /// Makes what a step finds the same for each.
    fn reset(&mut self, setup: &TrialSetup<'_>, interrupt: &AtomicBool) -> Result<(), RunError> {
        if setup.experiment.reset.is_empty() {
            return Ok(());
        }
        let values = setup.command_values(&self.places)?;
        for (place, command) in setup.experiment.reset.iter().enumerate() {
            let words = setup.words(command, &values)?;
            let shown = preparation::reset(&words, self.surroundings(interrupt))?;
            self.note_said((true, place), shown);
        }
        Ok(())
    }

    fn drop_if_cold(&self) -> Result<(), RunError> {
        if self.plan.experiment.page_cache == PageCache::Cold { self.drop_data() } else { Ok(()) }
    }

    /// Takes the data out of the page cache.
    pub(super) fn drop_data(&self) -> Result<(), RunError> {
        self.data.iter().try_for_each(|set| data::drop_from_page_cache(&set.folder)).map_err(RunError::data)
    }

    /// Lets the programs prove that they kept their promises. `None` if the experiment proves nothing, or if nobody knows all
    /// that they promised.
    pub(super) fn prove(
        &mut self,
        setup: &TrialSetup<'_>,
        driven: &mut Driven,
        around: &mut Around<'_>,
    ) -> Result<Option<Proof>, RunError> {
        let Some(proving) = &self.plan.experiment.prove else { return Ok(None) };
        if let Some(warning) = not_proven(driven.uncounted.as_ref()) {
            driven.run.warnings.push(warning);
            // What they keep of a load that is counted nowhere is not to be asked of the next.
            self.stop_all();
            return Ok(None);
        }
        let mut values = setup.command_values(&self.places)?;
        let first = self.running.iter().position(|((name, _), _)| proving.after.contains(name));
        if let Some(first) = first {
            self.stop_only(first, &proving.after);
        }
        let totals = self.folder.path().join("totals.json");
        preparation::write_totals(&totals, &driven.totals).map_err(RunError::data)?;
        values.insert("totals".into(), totals.display().to_string().into());
        let words = setup.words(&proving.command, &values)?;
        // An interrupted run is proved as well: what was promised until then must have been kept. A second signal ends all.
        let (interrupted, never) = (around.interrupt.load(Ordering::Relaxed), AtomicBool::new(false));
        around.listener.on_experiment(&Event::Proving { interrupted });
        let surroundings = self.surroundings(if interrupted { &never } else { around.interrupt });
        match preparation::proof(&words, surroundings) {
            Ok(proof) => {
                around.listener.on_experiment(&Event::Proved(proof.clone()));
                Ok(Some(proof))
            }
            // What was measured is worth more than nothing; that it is not whole is told.
            Err(RunError::Trouble(Trouble::Interrupted)) => {
                driven.run.warnings.push(Cause::Interrupted.into());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn load_plan(&self, setup: &TrialSetup<'_>) -> Result<Plan, RunError> {
        let work = setup.work;
        let scenario = self.with_items(setup.scenario(&work.target, &self.places)?);
        let mut load = Plan::new(scenario);
        // Generators that are started here are confined as this process is; those on other hosts have other processors.
        let split = self.plan.split.as_ref().filter(|_| !self.plan.is_driven_elsewhere());
        load.cpus = split.map(|split| split.generator.clone());
        load.threads = load.cpus.as_ref().map_or_else(|| cores::available().len(), Vec::len);
        load.seed = self.plan.seed;
        load.connections = work.connections;
        load.timeout = work.timeout.unwrap_or(load.timeout);
        // The programs are started here, with whatever certificates they make.
        load.insecure = true;
        Ok(load)
    }

    /// The scenario with the lists that preparations gave. Every server gets its share: user u of P servers takes every
    /// P-th item, starting with item u.
    fn with_items(&self, scenario: Scenario) -> Scenario {
        let step = scenario.bases().len().max(1) as u64;
        self.items.iter().fold(scenario, |scenario, (name, items)| scenario.with_items(name, items, step))
    }

    /// How the verdict of the trial is tested. Nobody was asked, so what the experiment did not start is left alone.
    fn confirming(&self) -> Option<Confirming> {
        let always = self.plan.experiment.confirm == Confirm::Always;
        self.test.map(|most| Confirming { always, most: Some(most), started_only: true })
    }

    fn search(&self, users: UsersRange) -> SearchOptions {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let search = SearchOptions { users, ..SearchOptions::default() };
        let search = match self.time {
            None => search,
            Some(time) => SearchOptions { total_us: Some(micros(time)), ..search }
                .with_longest_step(micros((time / STEPS).max(SHORTEST_STEP))),
        };
        match self.plan.step_max {
            None => search,
            Some(longest) => search.with_longest_step(micros(longest)),
        }
    }

    fn circumstances(&self, setup: &TrialSetup<'_>) -> Circumstances {
        let mut target = setup.experiment.title.clone();
        for part in [&setup.work.name, &setup.variant.name].into_iter().filter(|part| !part.is_empty()) {
            target = format!("{target}: {part}");
        }
        Circumstances {
            target,
            system_cpus: self.plan.split.as_ref().map(|split| numbers(&split.systems)),
            cold: self.plan.experiment.page_cache == PageCache::Cold,
            fewer_users: None,
        }
    }
}

/// Why programs cannot prove that they kept their promises: a generator took with it what it had been promised.
fn not_proven(uncounted: Option<&Lost>) -> Option<Warning> {
    let Lost { name, loss } = uncounted?.clone();
    Some(Cause::NotProven { generator: name, loss }.into())
}

#[cfg(test)]
mod tests {
    use analysis::run::{GeneratorLoss, WarningKind};

    use super::*;

    /// A database that held rows which nobody had told of failed its proof.
    #[test]
    fn what_a_lost_generator_had_been_promised_is_not_to_be_proved() {
        let loss = GeneratorLoss::Malformed;
        let lost = Lost { name: "web-2".into(), loss: loss.clone() };
        let warning = not_proven(Some(&lost)).expect("a warning");
        assert_eq!(warning.kind, WarningKind::Generators);
        assert_eq!(warning.cause, Cause::NotProven { generator: "web-2".into(), loss });
        assert_eq!(not_proven(None), None);
    }
}
