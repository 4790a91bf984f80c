//! What the tiers in scripting languages share: one program each, with the address, the upstream server and the stages
//! as arguments.

use super::{Address, Start};
use crate::{Trouble, stage::Stage};

/// The arguments of such a program.
pub(super) fn arguments(start: &Start) -> Result<Vec<String>, Trouble> {
    start.only(|stage| match stage {
        Stage::Delay(time) | Stage::Pool { hold: time, .. } => !time.exponential,
        Stage::Lock { hold, growth } => !hold.exponential && *growth == 0.0,
        Stage::Burn(_) => true,
        _ => false,
    })?;
    let upstream = match start.upstream {
        None => "-".to_owned(),
        Some(Address::Http(address) | Address::Database(address)) => address.clone(),
        Some(Address::FastCgi { .. }) => return Err(start.cannot("speak FastCGI")),
    };
    let around = &start.tier.surroundings;
    let mut words = vec![start.place.address.clone(), upstream];
    words.extend(around.forward.map(|most| format!("forward={most}")));
    words.push(format!("idle={}", around.idle));
    words.extend(start.tier.words());
    Ok(words)
}
