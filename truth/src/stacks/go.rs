//! Go: a goroutine for each connection.

use std::{path::Path, process::Command, sync::Mutex};

use super::{Running, Start, script};
use crate::{Trouble, process};

/// Held while the program is built, so that cases side by side do not build it at once.
static BUILDING: Mutex<()> = Mutex::new(());

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    let go = process::find("go", "golang-go")?;
    let source = start.write("tier.go", include_str!("../../programs/tier.go"))?;
    let program = start.folder.join("go-tier");
    build(&go, &source, &program)?;
    start.serve([program.display().to_string()].into_iter().chain(script::arguments(start)?))
}

fn build(go: &str, source: &str, program: &Path) -> Result<(), Trouble> {
    let _alone = BUILDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut command = Command::new(go);
    command.args(["build", "-o"]).arg(program).arg(source).env("GO111MODULE", "off").env("CGO_ENABLED", "0");
    let output = command.output().map_err(Trouble::io("run go"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Trouble::Failed {
            program: "go build".into(),
            said: String::from_utf8_lossy(&output.stderr).into(),
        }),
    }
}
