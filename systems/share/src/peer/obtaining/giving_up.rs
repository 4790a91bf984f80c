//! Giving up what is being obtained: because nobody has it, or because it is wanted no longer.

use super::{Obtaining, progress::Tracked};
use crate::content::Content;

/// Why it was given up when somebody said so.
const CANCELLED: &str = "it was cancelled; what came is kept, and asking again goes on";

impl Obtaining {
    /// Gives up some content that is being obtained; whether it was. What is being received at this moment is still taken
    /// in, so that it is over a little later.
    pub(crate) fn cancel(&self, content: &Content) -> bool {
        let mut known = self.known();
        let Some(tracked) = known.all.get(content).filter(|tracked| tracked.cancel()).cloned() else {
            return false;
        };
        let waiting = known.waiting.len();
        known.waiting.retain(|wanted| wanted.content != *content);
        if known.waiting.len() < waiting {
            tracked.finish(Err(CANCELLED.into()));
        }
        true
    }
}

/// Why some content was given up.
pub(super) fn why(progress: &Tracked) -> String {
    if progress.is_cancelled() {
        return CANCELLED.into();
    }
    let progress = progress.lock();
    let troubles: Vec<_> = progress
        .sources
        .iter()
        .filter_map(|(peer, source)| source.trouble.as_ref().map(|trouble| format!("{peer}: {trouble}")))
        .collect();
    match &troubles[..] {
        [] => "nobody has it now; search for it again later".into(),
        troubles => format!("no peer could give all of it ({}); what came is kept", troubles.join("; ")),
    }
}
