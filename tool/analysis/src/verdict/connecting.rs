//! Connecting as a part of the response times, where requests wait for it.

use super::curve::Curve;
use super::finding::Finding;
use crate::run::ConnectionEvidence;

/// From this share of the response times on, connecting is worth telling.
const MUCH: f64 = 0.25;

/// Adds how much of the response times at N* went to connecting, if it is much.
pub(super) fn with_share(curve: &Curve, finding: Finding) -> Finding {
    let Some((star, took)) = curve.star().and_then(|star| Some((star, star.connecting?))) else {
        return finding;
    };
    if took.share <= MUCH {
        return finding;
    }
    let (share, mean_us, users) = (took.share, took.mean_us, star.users);
    finding.seeing(ConnectionEvidence::ConnectingTook { share, mean_us, users })
}
