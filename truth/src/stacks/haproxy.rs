//! HAProxy in front of another tier, with or without a limit on its connections there.

use super::{Running, Start};
use crate::{Trouble, process};

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    let haproxy = process::find("haproxy", "haproxy")?;
    start.only(|_| false)?;
    let upstream = start.http_upstream()?.ok_or_else(|| start.cannot("answer by itself"))?;
    let most = start.tier.surroundings.forward.map_or(String::new(), |most| format!(" maxconn {most}"));
    let address = &start.place.address;
    let text = format!(
        "global
  maxconn 8192
  nbthread 1
defaults
  mode http
  timeout connect 60s
  timeout client 600s
  timeout server 600s
  timeout queue 600s
  http-reuse always
listen front
  bind {address} backlog 4096
  server next {upstream}{most}
"
    );
    let file = start.write("haproxy.cfg", &text)?;
    start.serve([haproxy, "-db".into(), "-f".into(), file])
}
