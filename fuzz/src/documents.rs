//! Files that people write or keep, and bodies that they send.

use std::{io, path::Path};

use agent::protocol::{Command, Commands, Prepare, command};
use analysis::{
    contrast::{self, Figure, Gate, GateVerdict, Given, Limit},
    history::{self, Brief},
    prediction::{self, Change, Goal, GoalFigure, Question},
    run::Run,
};
use experiment::document::{self, Library};
use http_io::Fields;
use load::{Plan, Scenario, ScenarioError};
use report::{Document, TerminalOptions};

/// The most variants that axes of an experiment may make together.
const VARIANTS_MAX: usize = 1_000;

/// The only file beside an experiment.
const BESIDE: (&str, &str) = ("scenario.toml", "[[request]]\npath = \"/\"\n");

pub(crate) fn scenario(bytes: &[u8]) {
    let Some(text) = without_files(bytes) else { return };
    match Scenario::from_toml(Path::new("nowhere/scenario.toml"), text) {
        Ok(scenario) => passes_to_an_agent(scenario),
        Err(error) => {
            let lines = text.matches('\n').count() + 1;
            assert!((1..=lines).contains(&error.line), "there is no such line: {error}");
            names_a_file(&error);
        }
    }
}

/// The text of an input. A scenario may send any file, also one that has no end: none of those are tried.
fn without_files(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains("@/") && !text.contains("@..")).then_some(text)
}

/// What an agent is to send is what was read here.
fn passes_to_an_agent(scenario: Scenario) {
    let prepare = Prepare { plan: Plan::new(scenario.clone()), threads: None, watch: false };
    // Of bodies that are too long for a message the user is told.
    let Ok(sent) = command(&Command::Prepare(Box::new(prepare))) else { return };
    let mut commands = Commands::default();
    commands.push(&sent);
    match commands.next_command() {
        Ok(Some(Command::Prepare(came))) => assert!(came.plan.scenario == scenario, "it arrives changed"),
        other => panic!("what was sent is {other:?}"),
    }
}

struct Beside;

impl Library for Beside {
    fn read(&self, path: &Path) -> io::Result<String> {
        let (name, text) = BESIDE;
        if path.ends_with(name) { Ok(text.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

pub(crate) fn experiment(bytes: &[u8]) {
    let Some(text) = without_files(bytes) else { return };
    match document::read(Path::new("nowhere/experiment.toml"), text, &Beside) {
        Ok(experiment) => {
            let variants = experiment.variants.len();
            assert!(!experiment.works.is_empty() && variants <= VARIANTS_MAX, "{variants} variants");
        }
        Err(error) => names_a_file(&error),
    }
}

/// The file is the input, or one that it names.
fn names_a_file(error: &ScenarioError) {
    assert!(error.to_string().starts_with("nowhere/"), "no file is named: {error}");
}

pub(crate) fn run_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match report::read(text) {
        Ok(Document::Run(run)) => {
            let written = report::json(&run).expect("a run can be written");
            let again = report::parse(&written).expect("what was written can be read");
            steers_no_terminal(&report::terminal(&again, &TerminalOptions::default()));
            predicted(&again);
            let given = Given { file: "run.json".into(), run: again };
            followed(&given);
            compared_with_itself(&given);
        }
        Ok(Document::Comparison(_)) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn steers_no_terminal(shown: &str) {
    let steers = |character: char| character.is_control() && character != '\n';
    assert!(!shown.contains(steers), "a terminal would obey: {shown:?}");
}

/// What else is made of a run file: what becomes of the server, and a goal so high that every kind of change is tried.
fn predicted(run: &Run) {
    let figure = GoalFigure::Users;
    let goal = Goal { text: "users>=900000".into(), figure, value: 9e5, ..Goal::default() };
    let with_users = Question { users: Some(64), seed: 1, ..Question::default() };
    let another = Change::AddServer { name: None, servers: 1 };
    answered(run, &Question { changes: vec![another], ..with_users.clone() });
    answered(run, &Question { goal: Some(goal), ..with_users });
}

fn answered(run: &Run, question: &Question) {
    match prediction::predict(run, question, "") {
        Ok(found) => {
            report::prediction::json(&found).expect("a prediction can be written");
            steers_no_terminal(&report::prediction::terminal(&found, &TerminalOptions::default()));
        }
        Err(refusal) => assert!(!report::prediction::refusal(&refusal).is_empty()),
    }
}

/// Nothing has changed between a run and itself.
fn compared_with_itself(given: &Given) {
    let runs = || vec![given.clone()];
    let mut found = contrast::of_runs(runs(), runs(), "").expect("a run on each side");
    let mut figures = found.cases.iter().flat_map(|case| &case.figures);
    assert!(figures.all(|ratio| !ratio.changed), "it differs from itself: {:?}", found.cases);
    let (text, figure) = ("throughput>-3%".into(), Figure::Throughput);
    found.hold(&[Gate { text, figure, limit: Limit::Above, ratio: 0.97 }]);
    let is_breached = found.gates.iter().any(|gate| gate.verdict == GateVerdict::Breached);
    assert!(!is_breached, "it is slower than itself: {:?}", found.gates);
    report::contrast::json(&found).expect("a contrast can be written");
    report::contrast::html(&found).expect("a contrast has a page");
    steers_no_terminal(&report::contrast::terminal(&found, &TerminalOptions::default()));
    steers_no_terminal(&report::contrast::markdown(&found));
    steers_no_terminal(&report::contrast::junit(&found));
}

fn followed(given: &Given) {
    let found = history::history(vec![Brief::of(given)], "");
    report::history::json(&found).expect("a history can be written");
    report::history::html(&found).expect("a history has a page");
    steers_no_terminal(&report::history::terminal(&found, &TerminalOptions::default()));
    steers_no_terminal(&report::history::markdown(&found));
}

pub(crate) fn json_body(bytes: &[u8]) {
    let fields = Fields::read(bytes);
    let taken = fields.and_then(|mut fields| {
        fields.take_null("null");
        fields.text("name")?;
        fields.maybe_number("number")?;
        fields.maybe_truth("truth")?;
        fields.maybe_texts("texts")?;
        fields.items("items")?.into_iter().try_for_each(|mut item| item.secret("secret").map(drop))?;
        fields.finish("null, name, number, truth, texts and items")
    });
    if let Err(error) = taken {
        assert!([400, 422].contains(&error.status()), "{error}");
    }
}
