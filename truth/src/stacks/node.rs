//! Node: everything in one thread.

use super::{Running, Start, script};
use crate::{Trouble, process};

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    let node = process::find("node", "nodejs")?;
    let program = start.write("tier.js", include_str!("../../programs/tier.js"))?;
    start.serve([node, program].into_iter().chain(script::arguments(start)?))
}
