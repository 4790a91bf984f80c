//! What was left out of a comparison: one of each cause.

use analysis::comparison::*;
use report::comparison::{json, parse, terminal};
use serde_json::{Value, json as value};

/// Every kind of cause.
pub(super) fn causes() -> Vec<LeftOutCause> {
    use LeftOutCause::*;
    let (process, program, said) =
        (|| "web 2".to_owned(), || "fill-rooms".to_owned(), || "no licence".to_owned());
    vec![
        LinkNeedsRoot,
        LinkToolFailed { tool: "ip".into(), os_error: Some(2) },
        LinkRefused { command: "ip link set nst1a up".into(), said: String::new() },
        MemoryNotLimited { os_error: Some(13) },
        DiskNotLimited { os_error: Some(15) },
        ProgramMissing { process: Some(process()), program: "nginx".into() },
        ProgramMissing { process: None, program: program() },
        NotStarted { process: process(), error: "Exec format error".into() },
        EndedBeforeReady { process: process(), ending: Ending::Exit(3), said: said() },
        Taken { process: process(), sign: ReadySign::Answers("http://127.0.0.1:8080/".into()) },
        not_ready(ReadySign::Running),
        not_ready(ReadySign::Line("listening".into())),
        not_ready(ReadySign::Connections(([127, 0, 0, 1], 8080).into())),
        EndedMeanwhile { process: process(), ending: Ending::Signal(9), said: String::new() },
        CommandFailed { program: program(), ending: Ending::Unknown, said: said() },
        CommandSlow { program: program(), within_ms: 600_000, said: said() },
        NotTheJson { program: program(), error: "expected `,` at line 1 column 8".into() },
        EmptyList { program: program(), list: "rooms".into() },
        NotPrepared { made: 3, wanted: 1_000 },
        NoFolder { error: "Permission denied (os error 13)".into() },
        NoData { error: "No space left on device (os error 28)".into() },
        Failed { error: "the target refused the connection".into() },
        Told { text: "A newer version says so.".into() },
    ]
}

fn not_ready(sign: ReadySign) -> LeftOutCause {
    LeftOutCause::NotReady { process: "web 2".into(), within_ms: 1_500, sign, said: "waiting".into() }
}

/// A comparison in which each was left out for a cause of its own; the first had no name.
fn everything() -> Comparison {
    let mut comparison = parse(include_str!("../golden/study-1.json")).unwrap();
    let named = |(index, cause)| LeftOut::new(if index == 0 { String::new() } else { "epoll".into() }, cause);
    comparison.left_out = causes().into_iter().enumerate().map(named).collect();
    comparison
}

fn written(comparison: &Comparison) -> Value {
    serde_json::from_str(&json(comparison).unwrap()).unwrap()
}

#[test]
fn every_cause_is_written_read_back_and_has_its_words() {
    let everything = everything();
    assert_eq!(parse(&json(&everything).unwrap()).unwrap(), everything);
    let written = written(&everything);
    let all = written["left_out"].as_array().unwrap().iter();
    let lines: Vec<String> =
        all.map(|left| format!("{}\n  {}", left["why"].as_str().unwrap(), left["cause"])).collect();
    assert!(lines.iter().all(|line| line.is_ascii()), "they are told on stderr as well: {lines:#?}");
    insta::assert_snapshot!("left_out", lines.join("\n"));
}

/// Files of older versions hold words alone, and those of newer ones causes that nobody knows here.
#[test]
fn causes_that_are_not_known_are_told_in_the_words_of_the_file() {
    let words = "the kernel denies io_uring";
    for cause in [Value::Null, value!({ "kind": "seccomp", "calls": [{ "number": 425 }] })] {
        let mut file = written(&everything());
        file["left_out"] = value!([{ "what": "uring", "why": words }]);
        if !cause.is_null() {
            file["left_out"][0]["cause"] = cause;
        }
        let read = parse(&file.to_string()).unwrap();
        assert_eq!(read.left_out, [LeftOut::new("uring".into(), LeftOutCause::Told { text: words.into() })]);
        assert!(terminal(&read, &report::TerminalOptions::default()).contains("Left out: uring: the kernel"));
        assert_eq!(written(&read)["left_out"], value!([{ "what": "uring", "why": words }]));
    }
}
