//! nginx: in front of another tier, or by itself with a limit on requests.

use super::{Address, Running, Start};
use crate::{Trouble, process, stage::Stage};

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    let nginx = process::find("nginx", "nginx-light")?;
    start.only(|stage| matches!(stage, Stage::Limit(_)))?;
    start.write("index.html", "ok")?;
    let file = start.write("nginx.conf", &configuration(start)?)?;
    start.serve([nginx, "-c".into(), file, "-p".into(), start.folder.display().to_string()])
}

fn configuration(start: &Start) -> Result<String, Trouble> {
    let limits = start.tier.stages.iter().filter_map(|stage| match stage {
        Stage::Limit(period) => Some((1.0 / period.as_secs_f64()).round()),
        _ => None,
    });
    let zone: String =
        limits.map(|rate| format!("limit_req_zone $server_addr zone=pace:1m rate={rate}r/s;\n")).collect();
    let limit = if zone.is_empty() { "" } else { "limit_req zone=pace burst=100000;\n" };
    let (upstream, pass) = match start.upstream {
        None => (String::new(), String::new()),
        Some(Address::Http(address)) => (
            format!("upstream next {{ server {address}; keepalive 1024; }}\n"),
            "proxy_pass http://next; proxy_http_version 1.1; proxy_set_header Connection '';\n".to_owned(),
        ),
        Some(Address::FastCgi { socket, program }) => (
            String::new(),
            format!(
                "fastcgi_pass unix:{socket}; fastcgi_param SCRIPT_FILENAME {program}; fastcgi_param REQUEST_METHOD GET;\n"
            ),
        ),
        Some(Address::Database(_)) => return Err(start.cannot("speak to a database")),
    };
    let (folder, address) = (start.folder.display(), &start.place.address);
    Ok(format!(
        "daemon off; user root; worker_processes 1; worker_rlimit_nofile 16384; pid {folder}/nginx.pid;
error_log {folder}/error.log; events {{ worker_connections 8192; }}
http {{ access_log off; keepalive_requests 1000000000; root {folder};
{upstream}{zone}server {{ listen {address} backlog=4096; location / {{ {limit}{pass} }} }} }}
"
    ))
}
