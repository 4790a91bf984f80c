//! Giving up what is being obtained: because nobody has it, or because it is wanted no longer.

use super::{
    Obtaining,
    progress::{Tracked, Whose},
};
use crate::content::Content;

/// Why it was given up when somebody said so.
const CANCELLED: &str = "it was cancelled; what came is kept, and asking again goes on";

impl Obtaining {
    /// Somebody wants some content no longer that is being obtained, or nobody does; whether it was. It is given up when
    /// nobody is left who wants it. What is being received at that moment is still taken in, so that it is over a little
    /// later.
    pub(crate) fn cancel(&self, content: &Content, whose: Whose) -> bool {
        let mut known = self.known();
        let Some(tracked) = known.all.get(content).filter(|tracked| tracked.unwant(whose)).cloned() else {
            return false;
        };
        let waiting = known.waiting.len();
        known.waiting.retain(|wanted| wanted.asked.content != *content || !tracked.is_cancelled());
        if known.waiting.len() < waiting {
            tracked.finish(Err(CANCELLED.into()));
        }
        true
    }
}

/// Why some content was given up; where something is wrong with the index, more may be known who have it than it told.
pub(super) fn why(progress: &Tracked, index: Option<String>) -> String {
    if progress.is_cancelled() {
        return CANCELLED.into();
    }
    let progress = progress.lock();
    let troubles = progress
        .sources
        .iter()
        .filter_map(|(peer, source)| source.trouble.as_ref().map(|trouble| format!("{peer}: {trouble}")));
    let troubles: Vec<_> = troubles.chain(index.clone().map(|trouble| trouble.replace('\n', "; "))).collect();
    match (&troubles[..], index) {
        ([], _) => "nobody has it now; search for it again later".into(),
        ([index], Some(_)) => format!("nobody is known to have it: {index}"),
        (troubles, _) => {
            format!("no peer could give all of it ({}); what came is kept", troubles.join("; "))
        }
    }
}
