//! What came of sending each request of a scenario once, in words.

use analysis::check::{Answered, Checked, Fault, Kept, Outcome};

use crate::number;

/// The most characters of a kept value that are shown.
const VALUE_MAX: usize = 40;

/// The size of the body of a response.
pub(crate) fn body(answered: &Answered) -> String {
    match answered.body_bytes {
        few @ 0..1000 => format!("{few} B"),
        many if answered.is_cut => format!("over {}", number::prefixed(many as f64, "B")),
        many => number::prefixed(many as f64, "B"),
    }
}

/// What else there is to say of a request: why it counts as an error, or what was kept.
pub(crate) fn remark(outcome: &Outcome) -> String {
    match outcome {
        Outcome::NothingToTake { list } => {
            format!("not sent: no request before it kept a value in `{list}`")
        }
        Outcome::Failed { reason } => reason.clone(),
        Outcome::Answered(answered) => match answered.fault {
            Some(fault) => self::fault(fault, answered.status),
            None => answered.kept.as_ref().map(kept).unwrap_or_default(),
        },
    }
}

fn fault(fault: Fault, status: u16) -> String {
    match fault {
        Fault::Status => format!("this status counts as an error; `expect = {status}` accepts it"),
        Fault::Body => "the body is not the one that `verify` asks for".to_owned(),
        Fault::NothingToKeep => "the response has no value for `keep`".to_owned(),
    }
}

fn kept(kept: &Kept) -> String {
    let value = match import::is_secret(&kept.list) {
        true => "***".to_owned(),
        false if kept.value.chars().count() > VALUE_MAX => {
            kept.value.chars().take(VALUE_MAX).chain("..".chars()).collect()
        }
        false => kept.value.clone(),
    };
    format!("kept {} = {value}", kept.list)
}

/// How many requests would count as errors.
pub(crate) fn in_all(checked: &[Checked]) -> String {
    let failed = checked.iter().filter(|checked| !checked.is_success()).count();
    match (failed, checked.len()) {
        (0, 1) => "The request was answered as expected.".to_owned(),
        (0, all) => format!("All {all} requests were answered as expected."),
        (failed, all) => format!("{failed} of {all} requests would count as errors in a load."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(fault: Option<Fault>, kept: Option<(&str, &str)>) -> Outcome {
        let kept = kept.map(|(list, value)| Kept { list: list.into(), value: value.into() });
        Outcome::Answered(Answered {
            status: 404,
            body_bytes: 1_500,
            is_cut: true,
            elapsed_us: 1.0,
            kept,
            fault,
        })
    }

    #[test]
    fn a_remark_says_what_to_mend_and_no_secret() {
        assert_eq!(remark(&answered(None, Some(("book", "7")))), "kept book = 7");
        assert_eq!(remark(&answered(None, Some(("accessToken", "s3cret")))), "kept accessToken = ***");
        let long = remark(&answered(None, Some(("book", &"x".repeat(100)))));
        assert!(long.ends_with("xx..") && long.len() < 60, "{long}");
        assert!(remark(&answered(Some(Fault::Status), None)).contains("expect = 404"));
        assert!(remark(&Outcome::NothingToTake { list: "book".into() }).contains("`book`"));
    }

    #[test]
    fn what_failed_is_counted() {
        let checked = |fault| Checked { request: "GET /".into(), outcome: answered(fault, None) };
        assert_eq!(in_all(&[checked(None)]), "The request was answered as expected.");
        let two = in_all(&[checked(None), checked(Some(Fault::Body))]);
        assert_eq!(two, "1 of 2 requests would count as errors in a load.");
    }
}
