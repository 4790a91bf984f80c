//! Says before a certificate expires that it will, and afterwards that it has.

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use tls::{Certificate, Validity};

const DAY: u64 = 24 * 60 * 60;
/// How long before its end a certificate should have been renewed, at most, in seconds.
const NOTICE_MAX: u64 = 14 * DAY;
/// The same as a part of its life. Renewal takes place when a third is left, as a rule.
const NOTICE_PART: u64 = 5;

/// Watches the certificate of a server.
#[derive(Debug, Default)]
pub(crate) struct ExpiryWatch {
    of: Option<Validity>,
    told: Option<Told>,
}

/// What was said last of a certificate, and when.
#[derive(Clone, Copy, Debug)]
struct Told {
    is_over: bool,
    at: u64,
}

/// What is to be said of a certificate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    path: PathBuf,
    /// Seconds until its end, negative after it.
    left: i64,
    until: u64,
}

impl ExpiryWatch {
    /// What is to be said of the certificate in use, at a time in seconds since 1970: something once it should have been
    /// renewed, again when it ends, and every day.
    pub(crate) fn look(&mut self, shown: &Certificate, now: u64) -> Option<Notice> {
        let validity = shown.validity?;
        let is_over = validity.until < now;
        if self.of != Some(validity) {
            self.of = Some(validity);
            // Whoever read it has said so.
            self.told = is_over.then_some(Told { is_over, at: now });
        }
        let is_told = |told: Told| told.is_over == is_over && now < told.at.saturating_add(DAY);
        if now < notice_from(validity) || self.told.is_some_and(is_told) {
            return None;
        }
        self.told = Some(Told { is_over, at: now });
        Some(Notice {
            path: shown.path.clone(),
            left: signed(validity.until) - signed(now),
            until: validity.until,
        })
    }
}

fn notice_from(validity: Validity) -> u64 {
    let life = validity.until.saturating_sub(validity.from);
    validity.until.saturating_sub((life / NOTICE_PART).min(NOTICE_MAX))
}

/// Times of certificates end with the year 9999.
fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

impl Display for Notice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(self.until));
        let (path, advice) = (self.path.display(), "renew it: changed files are read without a restart");
        if self.left < 0 {
            return write!(
                f,
                "the certificate in {path} has expired ({date}), and clients refuse it; {advice}"
            );
        }
        write!(
            f,
            "the certificate in {path} expires in {} ({date}); {advice}",
            time(self.left.unsigned_abs())
        )
    }
}

/// A time in words, rounded down, in the largest unit of which there are two.
fn time(seconds: u64) -> String {
    let units = [(DAY, "days"), (60 * 60, "hours"), (60, "minutes")];
    let fits = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    let (unit, name) = fits.unwrap_or((1, "seconds"));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01.
    const START: u64 = 1_767_225_600;

    fn valid_for(days: u64) -> Certificate {
        let validity = Some(Validity { from: START, until: START + days * DAY });
        Certificate { path: "cert.pem".into(), validity }
    }

    /// The days on which something is said, looking every hour.
    fn days_told(watch: &mut ExpiryWatch, shown: &Certificate, days: std::ops::Range<u64>) -> Vec<u64> {
        let hours = days.start * 24..days.end * 24;
        hours.filter(|hour| watch.look(shown, START + hour * 3600).is_some()).map(|hour| hour / 24).collect()
    }

    #[test]
    fn a_certificate_that_nobody_renews_is_told_every_day_until_long_after_its_end() {
        let mut watch = ExpiryWatch::default();
        let expected: Vec<u64> = (76..95).collect();
        let mut told = days_told(&mut watch, &valid_for(90), 0..95);
        told.dedup();
        assert_eq!(told, expected);
    }

    #[test]
    fn short_lives_are_told_late_and_the_end_at_once() {
        let mut watch = ExpiryWatch::default();
        let shown = valid_for(5);
        assert_eq!(days_told(&mut watch, &shown, 0..4), [] as [u64; 0]);
        assert!(watch.look(&shown, START + 5 * DAY - 60).is_some());
        assert!(watch.look(&shown, START + 5 * DAY - 30).is_none());
        assert!(watch.look(&shown, START + 5 * DAY + 1).is_some(), "the end is news");
        assert!(watch.look(&shown, START + 5 * DAY + 60).is_none());
    }

    #[test]
    fn a_renewed_certificate_is_judged_anew_and_an_expired_one_was_told_when_it_was_read() {
        let mut watch = ExpiryWatch::default();
        assert!(watch.look(&valid_for(90), START + 80 * DAY).is_some());
        assert!(watch.look(&valid_for(900), START + 80 * DAY).is_none());
        assert!(watch.look(&valid_for(79), START + 80 * DAY).is_none());
        assert!(watch.look(&valid_for(79), START + 81 * DAY).is_some(), "the next day");
        let unknown = Certificate { path: "cert.pem".into(), validity: None };
        assert!(watch.look(&unknown, u64::MAX).is_none());
    }

    #[test]
    fn a_notice_says_when_and_what_to_do() {
        let said = |left: i64| {
            let until = START.checked_add_signed(left).unwrap();
            Notice { path: "cert.pem".into(), left, until }.to_string()
        };
        assert!(
            said(13 * 86_400 + 5)
                .starts_with("the certificate in cert.pem expires in 13 days (Wed, 14 Jan 2026")
        );
        assert!(said(7_000).contains("in 116 minutes") && said(30).contains("in 30 seconds"));
        assert!(said(-5).contains("has expired") && said(-5).contains("renew it"));
    }
}
