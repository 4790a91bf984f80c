//! The page's markup: well-formed, self-contained, safe, and sound for a screen reader.

use std::collections::BTreeSet;

use analysis::run::{
    Function, GeneratorHost, GeneratorShare, OffCpu, Processes, Profile, ResourceKind, Run, RunState, Stack,
    TierOffCpu, Unit, Wait,
};
use report::html;

mod markup;
mod samples;

use markup::{Tag, tags};

fn pages() -> Vec<(&'static str, String)> {
    samples::all().into_iter().map(|(name, run)| (name, html(&run).expect("renders"))).collect()
}

#[test]
fn every_tag_is_closed_in_order() {
    const VOID: [&str; 4] = ["meta", "!doctype", "br", "input"];
    for (name, page) in pages() {
        let mut open = Vec::new();
        for tag in tags(&page).into_iter().filter(|tag| !VOID.contains(&tag.name.as_str())) {
            match tag.name.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop().as_deref(), Some(closed), "{name}"),
                None => open.push(tag.name),
            }
        }
        assert_eq!(open, [""; 0], "{name}");
    }
}

#[test]
fn ids_are_unique_and_every_reference_finds_one() {
    for (name, page) in pages() {
        let tags = tags(&page);
        let ids: Vec<_> = tags.iter().filter_map(|tag| tag.get("id")).collect();
        let unique: BTreeSet<_> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{name}: {ids:?}");
        for reference in
            tags.iter().filter_map(|tag| tag.get("aria-labelledby")).flat_map(str::split_whitespace)
        {
            assert!(unique.contains(reference), "{name}: {reference}");
        }
    }
}

#[test]
fn nothing_is_fetched() {
    const FETCHING: [&str; 8] = ["link", "img", "iframe", "object", "embed", "base", "use", "image"];
    for (name, page) in pages() {
        for tag in tags(&page) {
            assert!(!FETCHING.contains(&tag.name.as_str()), "{name}: {tag:?}");
            assert!(tag.get("src").is_none() && tag.get("href").is_none(), "{name}: {tag:?}");
        }
        assert!(!page.contains("url(") && !page.contains("@import"), "{name}");
    }
}

#[test]
fn headings_descend_one_level_at_a_time() {
    for (name, page) in pages() {
        let levels: Vec<u8> = tags(&page).iter().filter_map(heading_level).collect();
        assert_eq!(levels[0], 1, "{name}");
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{name}");
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {levels:?}");
    }
}

fn heading_level(tag: &Tag) -> Option<u8> {
    tag.name.strip_prefix('h').and_then(|level| level.parse().ok())
}

#[test]
fn a_limit_on_a_disk_is_not_called_the_disk() {
    let mut run = samples::cpu();
    run.verdict.bottleneck.kind = ResourceKind::Disk;
    for (unit, expected) in [
        ("writes/s", "limited by what its cgroup lets nginx worker (pid 812) ask of a disk."),
        ("devices", "limited by the disk nginx worker (pid 812)."),
    ] {
        for step in &mut run.steps {
            (step.resources[0].kind, step.resources[0].unit) =
                (ResourceKind::Disk, Unit::from(unit.to_owned()));
        }
        let page = html(&run).unwrap();
        assert!(page.contains(expected), "{unit}");
    }
}

/// The page lists what each of several generators did, and its clock; the terminal says how busy the busiest was.
#[test]
fn several_generators_are_listed_with_their_users_and_clocks() {
    let mut run = samples::load();
    let host = |name: &str, clock_offset_us| GeneratorHost {
        name: name.into(),
        threads: 2,
        ceiling_per_s: Some(171_000.0),
        clock_offset_us,
        clock_error_us: 34.0,
        started_late_us: 120,
    };
    run.load.generators = vec![host("one", -1_500), host("two", 0), host("three", 0)];
    let share = |name: &str, users, useful_work| GeneratorShare {
        name: name.into(),
        users,
        useful_work,
        ..GeneratorShare::default()
    };
    run.steps[0].generators = vec![share("one", 12, 0.31), share("two", 20, 0.46)];
    let page = html(&run).expect("renders");
    let most = ", at most 171 000 requests/s of the cheapest kind";
    let listed = format!("one: 12 users, busy 31 %{most}; two: 20 users, busy 46 %{most}; three: lost{most}");
    let plain = |text: &str| text.replace(['\u{a0}', '\u{202f}', '\u{2009}'], " ").replace("&#x2f;", "/");
    assert!(plain(&page).contains(&listed), "{page}");
    assert!(plain(&page).contains("one: -1.50 ms ±34"), "{page}");
    let shown = plain(&report::terminal(&run, &report::TerminalOptions::default()));
    assert!(shown.contains("busiest of 2 generators 46 %"), "{shown}");
}

/// The slow kind is too rare for its 99th percentile: 220 responses, of 299.
#[test]
fn each_kind_of_request_is_a_row_of_a_table() {
    let page = html(&samples::mix()).expect("renders");
    let tags = tags(&page);
    let figures = |name: &str| -> Vec<&str> {
        let cells = tags.iter().filter(|tag| tag.get("data-name") == Some(name));
        cells.filter_map(|tag| tag.get("data-value")).collect()
    };
    assert_eq!(figures("requests.asked_share"), ["0.998", "0.002"]);
    assert_eq!(figures("requests.completed"), ["136256", "218"]);
    assert_eq!(figures("requests.response_time_us.mean"), ["114.7", "1840"]);
    assert_eq!(figures("requests.response_time_us.p95"), ["182", "3000"]);
    assert_eq!(figures("requests.response_time_us.p99"), ["205"]);
    assert!(page.contains("Each kind of request at 4 users"), "{page}");
    assert!(!html(&samples::cpu()).expect("renders").contains("requests-table"));
}

#[test]
fn what_kinds_of_request_cost_each_tier_is_in_their_table() {
    let page = html(&samples::mix_with_costs()).expect("renders");
    let tags = tags(&page);
    let costs = tags.iter().filter(|tag| tag.get("data-name") == Some("requests.demands.demand_us"));
    let costs: Vec<_> = costs.filter_map(|tag| tag.get("data-value")).collect();
    assert_eq!(costs, ["27", "1900", "640"]);
    assert!(page.contains("CPU time of nginx worker (pid 812)") && page.contains("CPU time of db (pid 900)"));
}

#[test]
fn tables_and_charts_are_named() {
    for (name, page) in pages() {
        let tags = tags(&page);
        let count = |wanted: &str| tags.iter().filter(|tag| tag.name == wanted).count();
        assert_eq!(count("table"), count("caption"), "{name}");
        assert!(tags.iter().filter(|tag| tag.name == "th").all(|tag| tag.get("scope").is_some()), "{name}");
        let charts: Vec<_> = tags.iter().filter(|tag| tag.name == "svg").collect();
        assert!(
            charts.iter().all(|svg| svg.get("role") == Some("img") && svg.get("aria-labelledby").is_some())
        );
        assert_eq!((count("desc"), charts.len()), (charts.len(), count("desc")), "{name}");
    }
}

/// What the run's strings hold must be text, whatever they hold.
#[test]
fn strings_of_the_run_are_never_markup() {
    assert_text_alone(samples::hostile(), samples::tame);
}

#[test]
fn names_in_a_profile_are_never_markup() {
    assert_text_alone(samples::profiles::profiled(), samples::profiles::tame);
}

/// The page of a hostile run has the shape that it has with tame names, one script, and nothing hidden.
fn assert_text_alone(hostile: Run, tame: fn(&mut Run)) {
    let shape = |page: &str| -> BTreeSet<(String, Vec<String>)> {
        let names = |tag: &Tag| tag.attributes.iter().map(|(name, _)| name.clone()).collect();
        tags(page).iter().map(|tag| (tag.name.clone(), names(tag))).collect()
    };
    let mut tamed = hostile.clone();
    tame(&mut tamed);
    let (hostile, tamed) = (html(&hostile).expect("renders"), html(&tamed).expect("renders"));
    assert_eq!(shape(&hostile), shape(&tamed));
    assert_eq!(hostile.matches("<script>").count(), 1);
    assert!(hostile.contains("{{ 7*7 }}"), "what looks like a template is text");
    let hidden = |c: &char| c.is_control() && *c != '\n' || *c == '\u{202e}';
    assert_eq!(hostile.chars().find(hidden), None);
}

/// What a name grows by when it is escaped counts, and so does the rest of the page.
#[test]
fn flame_graphs_leave_the_page_below_a_megabyte_and_say_what_they_leave_out() {
    let page = html(&samples::profiles::largest()).expect("renders");
    assert!((900_000..=1_000_000).contains(&page.len()), "{} bytes", page.len());
    // Eight tiers are shown, and where their threads sleep. The outermost function of each is drawn.
    assert_eq!(page.matches("<title>main").count(), 16);
    assert_eq!(page.matches("each are not drawn.").count(), 16);
    assert_eq!(page.matches("One more tier is only in the run file.").count(), 2);
    let without_profile = html(&Run { profile: None, ..samples::profiles::largest() }).expect("renders");
    assert!(without_profile.len() > 200_000, "a long ladder: {} bytes", without_profile.len());
}

#[test]
fn what_fits_is_drawn_whole() {
    let page = html(&samples::profiles::profiled()).expect("renders");
    assert!(!page.contains("not drawn") && !page.contains("only in the run file"));
    // Each part says its share, and how much of that is its own.
    assert_eq!(page.matches(", itself ").count(), 11 + 65 + 5 + 3);
    assert!(page.contains("The functions with the most time of their own: deflate_slow 41"), "{page}");
}

/// A file may hold stacks of which none was ever seen.
#[test]
fn a_tier_without_a_sample_has_no_drawing() {
    let mut run = samples::profiles::profiled();
    let profile = run.profile.as_mut().expect("a profile");
    profile.off_cpu = None;
    for tier in &mut profile.tiers {
        tier.samples = 0;
        tier.stacks.iter_mut().for_each(|stack| stack.samples = 0);
    }
    let page = html(&run).expect("renders");
    assert!(page.contains("Where the CPU time goes") && !page.contains("NaN\""), "{page}");
    assert!(!page.contains("class=\"scroll flame\"") && !page.contains(" 0\" role=\"img\""), "{page}");
}

#[test]
fn where_threads_sleep_is_a_section_and_names_add_no_markup() {
    let name = "<b>\"'&";
    let wait =
        Wait { state: RunState::Sleeping, call: Some(name.into()), wchan: None, samples: 9, share: 0.9 };
    let tier = TierOffCpu {
        processes: Processes { name: name.into(), ..Processes::default() },
        threads: 3.0,
        samples: 10,
        asleep_share: 0.9,
        waits: vec![
            wait.clone(),
            Wait { state: RunState::Running, call: None, samples: 1, share: 0.1, ..wait },
        ],
        functions: vec![Function { name: name.into(), kernel: true, ..Function::default() }],
        stacks: vec![Stack { calls: vec![0, 0, 7], samples: 9 }],
        ..TierOffCpu::default()
    };
    let off_cpu = OffCpu { looks: 10, elapsed_s: 1.0, tiers: vec![tier.clone(), tier], troubles: Vec::new() };
    let profile = Profile { users: 4, off_cpu: Some(off_cpu), ..Profile::default() };
    let page = html(&Run { profile: Some(profile), ..samples::cpu() }).expect("renders");
    assert!(page.contains("Where threads sleep") && page.contains("running, or ready to"), "{page}");
    assert!(!page.contains("<b>"), "{page}");
    let tags = tags(&page);
    let ids: Vec<_> = tags.iter().filter_map(|tag| tag.get("id")).collect();
    let unique: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
    assert!(ids.contains(&"asleep-1-title") && ids.contains(&"asleep-table-1"), "{ids:?}");
}
