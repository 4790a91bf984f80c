//! Links: how fast they are, and what they take off the processors.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use analysis::doctor::{Check, LinkOffloads};

use super::ethtool::{self, Feature};
use super::reader::Reader;
use crate::kernel_files::read_or_empty;
use crate::proc::network;

/// The name of a link, and its directory in `/sys`.
pub(super) type Link = (String, PathBuf);

/// Name, bits a second, and whether both directions work at once, of the links that say how fast they are: virtual ones do not.
pub(super) fn speeds(reader: &Reader<'_>, links: &[Link]) -> Vec<(String, f64, bool)> {
    let of = |(name, directory): &Link| {
        let speed = reader.number(Check::Links, &directory.join("speed")).filter(|speed| *speed > 0)?;
        let duplex = reader.word(Check::Links, &directory.join("duplex"));
        Some((name.clone(), speed as f64 * 1e6, duplex.is_none_or(|duplex| duplex != "half")))
    };
    links.iter().filter_map(of).collect()
}

/// What the links take off the processors. It does not stand in files: only this host can be asked, and only of the links of the
/// network namespace that asks.
pub(super) fn offloads(reader: &Reader<'_>, links: Vec<Link>) -> Vec<LinkOffloads> {
    let can_be_asked = reader.paths.are_this_host() && are_ours(reader);
    let socket = can_be_asked.then(ethtool::socket);
    let Some(socket) = socket.and_then(|socket| reader.noted(Check::Links, socket)) else {
        return Vec::new();
    };
    let of = |(link, _): Link| {
        let is_on = |feature| reader.noted(Check::Links, ethtool::is_on(&socket, &link, feature));
        let [segmentation, receive] = [Feature::Segmentation, Feature::Receive].map(is_on);
        LinkOffloads { link, segmentation, receive }
    };
    links.into_iter().map(of).collect()
}

/// The links that are up and have a device behind them, which tells them from a bridge, a tunnel or one end of a pair.
pub(super) fn real(reader: &Reader<'_>) -> Vec<Link> {
    let is_real = |directory: &Path| {
        let state = reader.word(Check::Links, &directory.join("operstate"));
        state.is_some_and(|state| state == "up") && directory.join("device").exists()
    };
    let mut links: Vec<_> = shown(reader).filter(|(_, directory)| is_real(directory)).collect();
    links.sort();
    links
}

/// The links that `/sys` shows.
fn shown(reader: &Reader<'_>) -> impl Iterator<Item = Link> {
    let entries = std::fs::read_dir(reader.paths.sys.join("class/net")).into_iter().flatten().flatten();
    let named = |entry: DirEntry| Some((entry.file_name().to_str()?.to_owned(), entry.path()));
    // The files beside the directories of links are settings.
    entries.filter_map(named).filter(|(_, directory)| directory.is_dir())
}

/// Whether `/sys` shows the links of this process's network namespace, and not of the one that it was mounted in.
fn are_ours(reader: &Reader<'_>) -> bool {
    let ours = network::interfaces(&read_or_empty(&reader.paths.proc.join("net/dev")));
    let ours: BTreeSet<String> = ours.into_iter().map(|link| link.name).collect();
    shown(reader).map(|(name, _)| name).collect::<BTreeSet<_>>() == ours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::KernelPaths;

    #[test]
    fn links_of_another_network_namespace_are_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let paths = KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cgroup") };
        let are_ours = |names: &[&str]| {
            let row = |name: &&str| format!("{name}: {}\n", "0 ".repeat(16));
            let rows: String = names.iter().map(row).collect();
            std::fs::write(at("proc/net/dev"), format!("head\nhead\n{rows}")).unwrap();
            are_ours(&Reader::new(&paths))
        };
        for directory in ["proc/net", "sys/class/net/lo", "sys/class/net/eth0"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::fs::write(at("sys/class/net/bonding_masters"), "").unwrap();
        assert!(are_ours(&["lo", "eth0"]));
        assert!(!are_ours(&["lo"]) && !are_ours(&["lo", "eth1"]) && !are_ours(&["lo", "eth0", "eth1"]));
    }
}
