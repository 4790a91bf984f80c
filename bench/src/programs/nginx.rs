//! nginx with its best settings: sendfile, cached descriptors, one worker for one processor.

use std::{fs, net::SocketAddr};

use crate::{
    Result,
    tools::workspace::{ServerProcess, Workspace},
};

/// What differs between one nginx and another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Site {
    /// Directives outside of the server.
    pub http: String,
    /// Directives inside of the server.
    pub server: String,
    /// Parameters of `listen` after the address.
    pub listen: &'static str,
}

/// Starts nginx on the workspace's folder.
pub(crate) fn start(workspace: &Workspace, site: &Site) -> Result<ServerProcess> {
    workspace.serve(|address| {
        let path = workspace.path(&format!("nginx-{}.conf", address.port()));
        fs::write(&path, configuration(workspace, site, address))?;
        Ok(["nginx", "-e", "stderr", "-c", &path.display().to_string()].map(String::from).into())
    })
}

fn configuration(workspace: &Workspace, site: &Site, address: SocketAddr) -> String {
    let folder = workspace.path("").display().to_string();
    let port = address.port();
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let Site { http, server, listen } = site;
    format!(
        "{user} daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid {folder}/nginx-{port}.pid;
         error_log stderr;
         events {{ worker_connections 16000; multi_accept on; }}
         http {{ access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; sendfile_max_chunk 2m;
           open_file_cache max=1000 inactive=60s; open_file_cache_valid 60s;
           keepalive_requests 1000000000; keepalive_timeout 3600s; default_type application/octet-stream;
           client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
           uwsgi_temp_path {folder}; scgi_temp_path {folder};
           {http}
           server {{ listen {address} reuseport backlog=4096 {listen}; root {folder}; {server} }} }}"
    )
}
