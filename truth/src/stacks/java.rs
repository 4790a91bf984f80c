//! Java: a thread for each connection, many of them idle.

use super::{Running, Start, script};
use crate::{Trouble, process};

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    let java = process::find("java", "default-jdk-headless")?;
    process::find("javac", "default-jdk-headless")?;
    let program = start.write("Tier.java", include_str!("../../programs/Tier.java"))?;
    start.serve([java, "-XX:+UseSerialGC".into(), program].into_iter().chain(script::arguments(start)?))
}
