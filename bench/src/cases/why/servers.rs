//! Servers that spend their time in one function each.

use std::{fs, path::Path, process::Command};

use crate::{
    programs::{
        compiler::named_library,
        servers::{self, Site, need_nginx},
    },
    tools::{
        effort::Result,
        workspace::{ServerProcess, Workspace, installed},
    },
};

/// A server whose hot code is known.
pub(super) struct Hot {
    pub name: &'static str,
    /// What it spends its time in.
    pub code: &'static str,
    pub path: &'static str,
    /// Starts it; fails where what it takes is not installed.
    pub start: fn(&Workspace) -> Result<ServerProcess>,
}

pub(super) const ALL: [Hot; 6] = [
    Hot {
        name: "nginx, gzip at level 6",
        code: "zlib, without the names of its own functions",
        path: "/text",
        start: |workspace| compressing(workspace, Site::default()),
    },
    Hot {
        name: "nginx, gzip at level 6, zlib with names",
        code: "`deflate_slow` of zlib and what it calls",
        path: "/text",
        start: compressing_with_names,
    },
    Hot {
        name: "Python",
        code: "the interpreter, in a loop of `swap`",
        path: "/",
        start: |workspace| python(workspace, &[debian_python()?], "swap"),
    },
    Hot {
        name: "Python, a function in C",
        code: "`math.gcd`",
        path: "/",
        start: |workspace| python(workspace, &[debian_python()?], "divide"),
    },
    Hot {
        name: "Python, `-X perf`",
        code: "the interpreter, in a loop of `swap`",
        path: "/",
        start: |workspace| {
            python(workspace, &[python_that_names_functions()?.as_str(), "-X", "perf"], "swap")
        },
    },
    Hot { name: "Node, `--perf-basic-prof`", code: "`add` of the script", path: "/", start: node },
];

/// Bytes of the text that is compressed for every request.
const TEXT_BYTES: usize = 100_000;

fn compressing(workspace: &Workspace, site: Site) -> Result<ServerProcess> {
    need_nginx()?;
    fs::write(workspace.path("text"), text())?;
    servers::nginx(workspace, &Site { server: "gzip on; gzip_comp_level 6; gzip_types *;".into(), ..site })
}

/// Debian strips its zlib. Made of the static one, it has names.
fn compressing_with_names(workspace: &Workspace) -> Result<ServerProcess> {
    let libraries = named_library(workspace, "libz.a", "libz.so.1")
        .map_err(|error| format!("zlib1g-dev and gcc are needed: {error}"))?;
    compressing(workspace, Site { libraries: Some(libraries), ..Site::default() })
}

/// Words in an order that does not repeat, which compress about as text does.
fn text() -> String {
    const WORDS: &str = "the of and server request a response to in thread is that queue for users it as time \
                         with was on are by be limit this which or from throughput at one";
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut text = String::new();
    // Knuth's MMIX generator; its upper bits are the random ones.
    let mut state = 1_u64;
    while text.len() < TEXT_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text += words[(state >> 33) as usize % words.len()];
        text.push(' ');
    }
    text
}

/// Serves by a function of `hot.py` on a Python that is called like this.
fn python(workspace: &Workspace, python: &[&str], function: &str) -> Result<ServerProcess> {
    let script = script(workspace, "hot.py", include_str!("../../../programs/hot.py"))?;
    workspace.serve(|address| {
        let address = address.to_string();
        let words = [python, &[script.as_str(), address.as_str(), function]].concat();
        Ok(words.into_iter().map(String::from).collect())
    })
}

/// Debian's own Python, whose interpreter exports its functions.
fn debian_python() -> Result<&'static str> {
    const PYTHON: &str = "/usr/bin/python3";
    if Path::new(PYTHON).is_file() { Ok(PYTHON) } else { Err(format!("{PYTHON} is not installed").into()) }
}

/// A Python on the path that can tell perf of its functions: 3.12 or later.
fn python_that_names_functions() -> Result<String> {
    const PROGRAM: &str = "import sys; assert sys.version_info >= (3, 12); print(sys.executable)";
    ["python3", "python3.14", "python3.13", "python3.12"]
        .iter()
        .filter_map(|name| Command::new(name).args(["-c", PROGRAM]).output().ok())
        .find(|said| said.status.success())
        .map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned())
        .ok_or_else(|| "no Python of 3.12 or later is on the path".into())
}

fn node(workspace: &Workspace) -> Result<ServerProcess> {
    if !installed("node") {
        return Err("node is not installed".into());
    }
    let script = script(workspace, "hot.js", include_str!("../../../programs/hot.js"))?;
    // What is built into its caller has no name of its own. Besides the map there is a log, which nobody reads.
    let log = format!("--logfile={}", workspace.path("v8.log").display());
    let words = ["node", "--perf-basic-prof", "--no-turbo-inlining", &log, &script].map(String::from);
    workspace.serve(|address| Ok([&words[..], &[address.to_string()]].concat()))
}

/// Writes a script into the workspace and returns its path.
fn script(workspace: &Workspace, name: &str, text: &str) -> Result<String> {
    let path = workspace.path(name);
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_long_and_does_not_repeat() {
        let text = text();
        assert!(text.len() >= TEXT_BYTES);
        let (first, rest) = text.split_at(200);
        assert!(!rest.contains(first));
    }
}
