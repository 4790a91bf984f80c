//! Links: how fast they are, and what they take off the processors.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use analysis::doctor::{Check, LinkOffloads};

use super::ethtool::{self, Feature};
use super::reader::Reader;

/// Name, bits a second, and whether both directions work at once, of the links that say how fast they are: virtual ones do not.
pub(super) fn speeds(reader: &Reader<'_>) -> Vec<(String, f64, bool)> {
    let of = |(name, directory): (String, PathBuf)| {
        let speed = reader.number(Check::Links, &directory.join("speed")).filter(|speed| *speed > 0)?;
        let duplex = reader.word(Check::Links, &directory.join("duplex"));
        Some((name, speed as f64 * 1e6, duplex.is_none_or(|duplex| duplex != "half")))
    };
    real(reader).into_iter().filter_map(of).collect()
}

/// What the links take off the processors. It does not stand in files: only this host can be asked.
pub(super) fn offloads(reader: &Reader<'_>) -> Vec<LinkOffloads> {
    let socket = reader.paths.are_this_host().then(ethtool::socket);
    let Some(socket) = socket.and_then(|socket| reader.noted(Check::Links, socket)) else {
        return Vec::new();
    };
    let of = |(link, _): (String, PathBuf)| {
        let is_on = |feature| reader.noted(Check::Links, ethtool::is_on(&socket, &link, feature));
        let [segmentation, receive] = [Feature::Segmentation, Feature::Receive].map(is_on);
        LinkOffloads { link, segmentation, receive }
    };
    real(reader).into_iter().map(of).collect()
}

/// Name and directory of the links that are up and have a device behind them, which tells them from a bridge, a tunnel or one
/// end of a pair.
fn real(reader: &Reader<'_>) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(reader.paths.sys.join("class/net")).into_iter().flatten().flatten();
    let is_real = |directory: &Path| {
        let state = reader.word(Check::Links, &directory.join("operstate"));
        state.is_some_and(|state| state == "up") && directory.join("device").exists()
    };
    let named = |entry: DirEntry| Some((entry.file_name().to_str()?.to_owned(), entry.path()));
    let mut links: Vec<_> = entries.filter_map(named).filter(|(_, directory)| is_real(directory)).collect();
    links.sort();
    links
}
