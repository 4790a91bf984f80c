use analysis::{
    run::{Identity, Resource, ResourceKind, Step, Unit, Words},
    search::{
        outlook::{Narrowing, Purpose, Settling, SoFar, TimeOf},
        saturation::Saturation,
    },
};
use report::live::Doing;

use super::*;

const PLAIN: Style = Style { colour: false, unicode: true };

fn known(steps: u32) -> Known {
    let step = |power: u32| {
        let (users, per_s) = (1 << power, 400.0 * f64::from(power.min(4) + 1));
        Step {
            users,
            throughput_per_s: per_s,
            throughput_ci_per_s: Some([0.97 * per_s, 1.03 * per_s]),
            ..Step::default()
        }
    };
    let resource = |name: &str, utilization: f64| Resource {
        kind: ResourceKind::Cpu,
        holder: Words::default(),
        identity: Identity::named(name),
        utilization,
        used: utilization,
        capacity: 1.0,
        unit: Unit::Cores,
    };
    let settling = Settling {
        users: 32,
        measured_us: 1_500_000,
        planned_us: 3_000_000,
        throughput_per_s: Narrowing { value: 1.0, relative_half_width: Some(0.02), target: Some(0.01) },
        ..Settling::default()
    };
    let purpose = Some(Purpose::Growth { from: 16, next: Some(64) });
    Known {
        target: "http://127.0.0.1:8080/a/rather/long/path/".repeat(4),
        doing: Doing::Measuring { users: 32, purpose, settling: Some(settling) },
        time: TimeOf { spent_us: 20_000_000, left_us_max: Some(30_000_000) },
        so_far: SoFar {
            steps: (0..steps).map(step).collect(),
            saturation: Saturation { throughput_max_per_s: 2_000.0, ..Saturation::default() },
        },
        resources: vec![
            resource("nginx", 0.99),
            resource("\u{1b}[2Jpostgres", 0.4),
            resource("generator", 0.1),
        ],
        ..Known::default()
    }
}

/// What is drawn, row by row.
fn drawn(known: &Known, style: Style, (width, height): (u16, u16)) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    render(known, style, area, &mut buffer);
    let row = |y: u16| (0..width).filter_map(|x| buffer.cell((x, y)).map(|cell| cell.symbol())).collect();
    (0..height).map(row).collect()
}

#[test]
fn everything_that_matters_is_seen_on_a_terminal_of_the_usual_size() {
    let rows = drawn(&known(5), PLAIN, (80, 24));
    let screen = rows.join("\n");
    for words in [
        "at most 30 s left",
        "So far:",
        "Measuring 32 users.",
        "64 come next",
        "±2 %",
        "requests a second",
        "nginx",
        "99 %",
        "Ctrl-C",
    ] {
        assert!(screen.contains(words), "no '{words}' in\n{screen}");
    }
    assert!(screen.matches('●').count() >= 4, "the curve\n{screen}");
    assert!(rows[23].starts_with(HOW_TO_END), "{screen}");
}

#[test]
fn a_large_terminal_shows_both_curves_and_the_table() {
    let screen = drawn(&known(6), PLAIN, (130, 50)).join("\n");
    for words in ["requests a second", "mean response time", "req/s"] {
        assert!(screen.contains(words), "no '{words}' in\n{screen}");
    }
}

#[test]
fn any_size_is_drawn() {
    for steps in [0, 1, 12] {
        for size in [(0, 0), (1, 1), (3, 2), (20, 5), (80, 10), (40, 24), (200, 3), (300, 100)] {
            for unicode in [true, false] {
                drawn(&known(steps), Style { colour: true, unicode }, size);
            }
        }
    }
}

#[test]
fn a_terminal_of_ascii_gets_nothing_else_and_names_steer_none() {
    for row in drawn(&known(6), Style { colour: false, unicode: false }, (100, 40)) {
        assert!(row.chars().all(|c| c.is_ascii_graphic() || c == ' '), "{row:?}");
    }
    assert!(drawn(&known(6), PLAIN, (100, 40)).iter().all(|row| !row.contains('\u{1b}')));
}
