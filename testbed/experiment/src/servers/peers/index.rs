//! How peers are told of the index. A new kind of index takes a line in each of these functions.

use std::ffi::OsString;

use super::super::{
    launch::{LaunchContext, Setting},
    process::{System, SystemError},
};
use crate::definition::IndexKind;

/// Starts the index server, if the peers ask one.
pub(super) fn serve(
    kind: IndexKind,
    setting: &Setting,
    context: LaunchContext<'_>,
) -> Result<Option<System>, SystemError> {
    let database = context.folder.join("index.db").into_os_string();
    match kind {
        IndexKind::Central => {
            System::start(&setting.behind("index", ["--database".into(), database], context)).map(Some)
        }
        IndexKind::Dht | IndexKind::Partitioned => Ok(None),
    }
}

/// The flags by which a peer finds the index, with `others` already running.
pub(super) fn flags(kind: IndexKind, index: Option<&System>, others: &[System]) -> Vec<OsString> {
    match kind {
        IndexKind::Central => {
            index.map(|index| vec!["--index".into(), index.url().into()]).unwrap_or_default()
        }
        IndexKind::Dht => among_peers("--dht", others),
        IndexKind::Partitioned => among_peers("--partitioned", others),
    }
}

/// The flags of a peer that keeps a part of the index itself.
fn among_peers(kind: &str, others: &[System]) -> Vec<OsString> {
    let known = others.first().and_then(|first| first.address_after("among the peers on "));
    let join = known.map(|known| ["--bootstrap".into(), known.to_string().into()]);
    let alone = [kind.into(), "--dht-listen".into(), "127.0.0.1:0".into()];
    alone.into_iter().chain(join.into_iter().flatten()).collect()
}
