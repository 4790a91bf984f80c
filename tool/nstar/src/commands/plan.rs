//! From what was typed to what will run: a scenario, and a plan of the load.

use std::{ffi::OsStr, fs, path::Path, thread, time::Duration};

use ::load::{
    Credentials, Pacing, Plan, RequestTemplate, Scenario, Statuses, Url,
    limits::{self, LimitError},
};
use analysis::{
    run::FewerUsers,
    search::{SearchOptions, UsersRange},
};

use import::Curl;

use crate::{
    exit::{self, Failure},
    flags::{Drive, Generate, Target},
};

/// The scenario that the target names or that URL and flags describe.
pub(super) fn scenario(target: &Target) -> Result<Scenario, Failure> {
    if let Some(curl) = &target.from_curl {
        return from_curl(target, curl);
    }
    if Path::new(target.name()).extension() == Some(OsStr::new("toml")) {
        return scenario_file(target);
    }
    if target.base.is_some() {
        return Err(Failure::usage("--base goes with a scenario file; a URL already names its server"));
    }
    if !target.weights.is_empty() {
        return Err(Failure::usage("--weight goes with a scenario file; a URL is one request"));
    }
    let url = url(target.name())?;
    Scenario::single(&url, request(target, &url)?).map_err(Failure::usage)
}

/// A closed-loop plan of the scenario.
pub(super) fn plan(target: &Target, scenario: Scenario) -> Plan {
    let drive = &target.drive;
    let mut plan = Plan::new(scenario);
    plan.pacing = Pacing::Closed { think: drive.think };
    plan.connections = drive.connections;
    plan.timeout = drive.timeout;
    plan.cpus = drive.cpus.as_ref().map(|processors| processors.0.clone());
    plan.threads = threads(drive);
    plan.insecure = target.insecure || target.from_curl.as_ref().is_some_and(|curl| curl.insecure);
    plan.seed = drive.seed;
    plan
}

/// What the scenario drives, for people: its name, and the server where the name does not say.
pub(super) fn title(scenario: &Scenario) -> String {
    match scenario.base() {
        Some(base) if !scenario.name().contains("://") => {
            let others = match scenario.bases().len() {
                0 | 1 => String::new(),
                all => format!(" and {} more", all - 1),
            };
            format!("{} at {}{others}", scenario.name(), base.origin())
        }
        _ => scenario.name().into(),
    }
}

/// The search for these users with steps of at most this length. Longer ones than usual lengthen the whole search in
/// proportion: a step gets no more than its share of that.
pub(super) fn search(users: UsersRange, longest: Duration) -> SearchOptions {
    let usual = SearchOptions::default();
    let longest_us = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    let in_proportion = |total_us: u64| {
        let total_us = u128::from(total_us) * u128::from(longest_us.max(usual.step_us_max))
            / u128::from(usual.step_us_max.max(1));
        u64::try_from(total_us).unwrap_or(u64::MAX)
    };
    let total_us = usual.total_us.map(in_proportion);
    SearchOptions { users, total_us, ..usual }.with_longest_step(longest_us)
}

/// The users of a load: those that the limit on open files allows here, or all where other hosts make the load, which know
/// limits of their own.
pub(super) fn users(
    users: &UsersRange,
    plan: &Plan,
    (drive, generate): (&Drive, &Generate),
) -> Result<(UsersRange, Option<FewerUsers>), Failure> {
    if generate.is_elsewhere() { Ok((users.clone(), None)) } else { users_within_limits(users, plan, drive) }
}

/// The users that the limit on open files allows: all of them, or, where that was asked for, fewer, with the limit.
fn users_within_limits(
    users: &UsersRange,
    plan: &Plan,
    drive: &Drive,
) -> Result<(UsersRange, Option<FewerUsers>), Failure> {
    let Err(limit) = limits::ensure(users.most(), plan.threads) else {
        return Ok((users.clone(), None));
    };
    if !drive.fewer_users || limit.allowed == 0 {
        return Err(Failure::failed(format!("{limit}; --fewer-users runs with what there is")));
    }
    let LimitError { users: asked, needed: files_needed, limit: files_limit, allowed } = limit;
    Ok((users.at_most(allowed), Some(FewerUsers { asked, files_needed, files_limit, allowed })))
}

fn scenario_file(target: &Target) -> Result<Scenario, Failure> {
    let given = [
        ("-H", !target.headers.is_empty()),
        ("-m", target.method.is_some()),
        ("-b", target.body.is_some()),
        ("--body-size", target.body_size.is_some()),
        ("--expect", !target.expect.is_empty()),
        ("--verify", target.verify.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag} goes with a URL; a scenario file says itself what to send"
        )));
    }
    let path = Path::new(target.name());
    let weights = target.weights.iter().cloned().collect();
    let scenario = read_scenario(path)?
        .with_weights(&weights)
        .map_err(|problem| Failure::usage(format!("--weight: {}: {problem}", path.display())))?;
    with_base(scenario, path, target.base.as_deref(), "--base")
}

/// Reads a scenario file.
pub(super) fn read_scenario(path: &Path) -> Result<Scenario, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the scenario {}: {error}", path.display())))?;
    Scenario::from_toml(path, &text).map_err(Failure::usage)
}

/// Sends a scenario to this server, if one is given, which `flag` does.
pub(super) fn with_base(
    scenario: Scenario,
    path: &Path,
    base: Option<&str>,
    flag: &str,
) -> Result<Scenario, Failure> {
    match base {
        Some(base) => Ok(scenario.with_base(url(base)?)),
        None if scenario.base().is_none() => Err(Failure::usage(format!(
            "{}: the scenario names no server: add a line base = \"http://HOST:PORT\", or give {flag}",
            path.display()
        ))),
        None => Ok(scenario),
    }
}

/// The request of a curl command line.
fn from_curl(target: &Target, curl: &Curl) -> Result<Scenario, Failure> {
    let [url] = curl.urls.as_slice() else {
        return Err(Failure::usage(
            "--from-curl takes a command with one URL; nstar scenario import makes a scenario of several",
        ));
    };
    for what in &curl.left_out {
        exit::say(&report::import::left_out(what));
    }
    let url = self::url(url.as_str())?;
    let body = curl.body.as_ref().map(|body| match body {
        import::Body::Text(text) => Ok(text.clone().into_bytes()),
        import::Body::File(path) => self::body(&format!("@{path}")),
    });
    let credentials = curl.credentials.clone();
    let request = RequestTemplate {
        method: curl.method.clone(),
        headers: curl.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect(),
        body: body.transpose()?.unwrap_or_default(),
        credentials: credentials.map(|(name, password)| Credentials { name, password }),
        ..request(target, &url)?
    };
    Scenario::single(&url, request).map_err(Failure::usage)
}

fn url(text: &str) -> Result<Url, Failure> {
    // The text itself is not shown: it may hold a password.
    text.parse::<Url>().map_err(Failure::usage)
}

fn request(target: &Target, url: &Url) -> Result<RequestTemplate, Failure> {
    let mut request = RequestTemplate {
        headers: target.headers.clone(),
        body: target.body.as_deref().map_or(Ok(Vec::new()), body)?,
        body_sizes: target.body_size.clone(),
        credentials: url.credentials().cloned(),
        verify: target.verify.as_deref().map(body).transpose()?,
        ..RequestTemplate::default()
    };
    // As curl has it: a body without a method is posted.
    request.method = match &target.method {
        Some(method) => method.clone(),
        None if target.body.is_some() || target.body_size.is_some() => "POST".into(),
        None => "GET".into(),
    };
    if !target.expect.is_empty() {
        request.expect = Statuses::none();
        target.expect.iter().for_each(|status| request.expect.insert(*status));
    }
    Ok(request)
}

/// The text itself, or what is in `@FILE`.
fn body(flag: &str) -> Result<Vec<u8>, Failure> {
    match flag.strip_prefix('@') {
        Some(path) => {
            fs::read(path).map_err(|error| Failure::usage(format!("cannot read the body {path}: {error}")))
        }
        None => Ok(flag.as_bytes().to_vec()),
    }
}

fn threads(drive: &Drive) -> usize {
    let usable = || match &drive.cpus {
        Some(processors) => processors.0.len(),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    drive.threads.map_or_else(usable, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_steps_lengthen_the_search_and_shorter_ones_do_not_shorten_it() {
        let total_us = |longest| search(UsersRange::List(vec![1]), longest).total_us;
        let usual_us = SearchOptions::default().total_us;
        assert_eq!(total_us(Duration::from_secs(6)), usual_us);
        assert_eq!(total_us(Duration::from_secs(1)), usual_us);
        assert_eq!(total_us(Duration::from_secs(18)), usual_us.map(|us| 3 * us));
        assert_eq!(total_us(Duration::MAX), Some(u64::MAX));
    }
}
