//! What a sweep shows while it goes on: sentences, the curve on a terminal, and the parts of the page.

use analysis::run::{Run, Step};
use analysis::search::outlook::{Narrowing, Purpose, Settling, SoFar, TimeOf};
use analysis::search::saturation::Saturation;
use report::live::{Doing, Known, Part, Renderer, curves, table, wrapped};

mod markup;
mod samples;

/// A sweep that has come as far as this run, and measures 16 users.
fn known(run: Run) -> Known {
    let found = &run.verdict;
    let saturation = Saturation {
        users: found.users_at_saturation,
        users_ci: found.users_at_saturation_ci,
        knee_users: found.knee_users,
        bounded: found.bounded,
        throughput_max_per_s: found.throughput_max_per_s,
        throughput_max_ci_per_s: found.throughput_max_ci_per_s,
    };
    let settling = Settling {
        users: 16,
        measured_us: 1_500_000,
        planned_us: 3_100_000,
        longest_us: 6_000_000,
        steady: true,
        throughput_per_s: Narrowing { value: 800.0, relative_half_width: Some(0.02), target: Some(0.01) },
        response_time_us: Narrowing { value: 20_000.0, relative_half_width: Some(0.03), target: None },
    };
    let purpose = Some(Purpose::Growth { from: 8, next: Some(32) });
    Known {
        target: run.target.clone(),
        doing: Doing::Measuring { users: 16, purpose, settling: Some(settling) },
        time: TimeOf { spent_us: 12_300_000, left_us_max: Some(37_700_000) },
        resources: run.steps.last().map(|step| step.resources.clone()).unwrap_or_default(),
        so_far: SoFar { steps: run.steps, saturation },
        ..Known::default()
    }
}

fn spaced(text: &str) -> String {
    text.replace('\u{202f}', " ")
}

#[test]
fn the_view_says_what_is_found_done_decided_and_left() {
    let frame = known(samples::cpu()).frame();
    let found = spaced(&frame.headline);
    assert!(found.starts_with("So far: N* = 4 users (") && found.contains("at most 34 120 req/s"), "{found}");
    assert_eq!(frame.doing, "Measuring 16 users.");
    assert_eq!(
        spaced(frame.decides.as_deref().unwrap_or_default()),
        "Does throughput still grow beyond 8 users? If so, 32 come next; if not, the search turns back to N*."
    );
    assert_eq!(spaced(&frame.time.text), "12 s measured, at most 38 s left");
    let settled = frame.settled.expect("a gauge");
    // What is twice too wide needs four times as long, and the response time is not what this is measured for.
    assert_eq!(settled.share, Some(0.25));
    assert_eq!(spaced(&settled.text), "throughput ±2 % (wanted: ±1 %), 1.5 of 3.1 s");
    let busiest: Vec<_> = frame.busiest.iter().map(|one| (one.kind.as_str(), spaced(&one.text))).collect();
    assert_eq!(busiest[0], ("CPU", "99 %".to_owned()));
}

#[test]
fn each_purpose_is_a_sentence_of_its_own() {
    let between = [8, 16];
    let purposes = [
        Purpose::Fewest { next: Some(2) },
        Purpose::Fewest { next: None },
        Purpose::Growth { from: 8, next: Some(32) },
        Purpose::Growth { from: 8, next: None },
        Purpose::Listed { number: 2, of: 5 },
        Purpose::Maximum { between },
        Purpose::Saturation { between },
        Purpose::Interval { between },
        Purpose::Again { round: 1, left: 2 },
        Purpose::Again { round: 1, left: 0 },
    ];
    let said = purposes.map(|purpose| {
        let doing = Doing::Measuring { users: 12, purpose: Some(purpose), settling: None };
        Known { doing, ..Known::default() }.frame().decides.expect("a sentence")
    });
    for (index, sentence) in said.iter().enumerate() {
        assert!(sentence.ends_with('.') || sentence.ends_with('?'), "{sentence}");
        assert!(!said[..index].contains(sentence), "{sentence}");
    }
}

#[test]
fn a_sweep_that_was_asked_to_end_says_so_and_decides_nothing() {
    let frame = Known { ending: true, ..known(samples::cpu()) }.frame();
    assert_eq!((frame.doing.as_str(), frame.decides), ("Ending with what was measured.", None));
    assert_eq!(Known::default().frame().headline, "Nothing is measured yet.");
}

#[test]
fn the_curve_keeps_to_its_room() {
    for (name, run) in samples::all() {
        let known = known(run);
        for size in [(80, 12), (120, 22), (200, 40), (30, 7), (44, 8), (80, 6), (1, 1), (0, 0), (500, 3)] {
            for unicode in [true, false] {
                let lines = curves(&known, size, unicode);
                assert!(lines.len() <= size.1, "{name} {size:?}: {}", lines.len());
                assert!(unicode || lines.iter().all(|line| line.is_ascii()), "{name}: {lines:?}");
                assert!(lines.iter().all(|line| !line.contains('\x1b')), "{name}");
            }
        }
    }
}

#[test]
fn wide_intervals_are_drawn_and_narrow_ones_are_not() {
    let step = |users: u32, half_width: f64| Step {
        users,
        throughput_per_s: 100.0,
        throughput_ci_per_s: Some([100.0 - half_width, 100.0 + half_width]),
        ..Step::default()
    };
    let bars = |half_width: f64| {
        let steps = vec![step(1, half_width), step(2, half_width)];
        let known = Known { so_far: SoFar { steps, ..SoFar::default() }, ..Known::default() };
        let lines = curves(&known, (60, 20), false);
        // Beside the axis.
        lines.iter().filter(|line| line.matches('|').count() > 1).count()
    };
    assert_eq!(bars(1.0), 0);
    assert!(bars(40.0) > 3);
}

#[test]
fn the_table_has_a_row_for_each_step() {
    let known = known(samples::cpu());
    assert_eq!(table(&known, 100, true).len(), 1 + known.so_far.steps.len());
}

#[test]
fn lines_are_broken_at_words() {
    let text = "throughput grows, and the search goes on with more users than before";
    let lines = wrapped(text, 30);
    assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= 30), "{lines:?}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&lines.join(" ")), words(text));
}

#[test]
fn the_page_holds_its_parts_and_fetches_nothing_from_elsewhere() {
    let renderer = Renderer::new().expect("templates");
    for (name, run) in samples::all() {
        let known = Known { notes: vec!["a note".into()], ..known(run) };
        let page = renderer.page(&known, "a-nonce").expect("renders");
        let tags = markup::tags(&page);
        for part in Part::ALL {
            let inside = renderer.part(&known, part).expect("renders");
            assert!(page.contains(inside.trim()), "{name}: {part:?}");
            assert!(tags.iter().any(|tag| tag.get("id") == Some(part.name())), "{name}: {part:?}");
        }
        assert!(tags.iter().all(|tag| tag.get("src").is_none() && tag.get("href").is_none()), "{name}");
        let scripts: Vec<_> = tags.iter().filter(|tag| tag.name == "script").collect();
        assert_eq!(scripts.len(), 1, "{name}");
        assert_eq!(scripts[0].get("nonce"), Some("a-nonce"), "{name}");
        assert!(!page.contains("url(") && !page.contains("@import"), "{name}");
    }
}

#[test]
fn hostile_words_are_text_on_the_page() {
    let renderer = Renderer::new().expect("templates");
    let hostile = "</h1><script>alert(1)</script>\r\n\u{202e}";
    let known = Known { target: hostile.into(), notes: vec![hostile.into()], ..known(samples::hostile()) };
    let mut texts: Vec<_> = Part::ALL.map(|part| renderer.part(&known, part).expect("renders")).into();
    texts.extend([renderer.failed(hostile).expect("renders"), renderer.page(&known, "").expect("renders")]);
    for text in texts {
        assert!(
            !text.contains("<script>alert") && !text.contains('\r') && !text.contains('\u{202e}'),
            "{text}"
        );
    }
}
