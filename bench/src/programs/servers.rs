//! The servers that cases measure: ours, nginx with its best settings (sendfile, cached descriptors, one worker for one
//! processor), and the barest server of a model, in C.

use std::{fs, net::SocketAddr, path::PathBuf};

use super::compiler::compiled;
use crate::tools::{
    effort::Result,
    workspace::{ServerProcess, Workspace, installed},
};

pub(crate) const KB: usize = 1_000;

/// Starts the bare responder with bodies of 1 KB.
pub(crate) fn responder(workspace: &Workspace) -> Result<ServerProcess> {
    let program = workspace.ours("bare-responder");
    workspace.serve(|address| Ok(vec![program, address.to_string(), KB.to_string()]))
}

/// Starts one that computes before each response ([`bench::work`]).
pub(crate) fn working_responder(workspace: &Workspace, steps: u64) -> Result<ServerProcess> {
    let program = workspace.ours("bare-responder");
    workspace.serve(|address| Ok(vec![program, address.to_string(), KB.to_string(), steps.to_string()]))
}

/// Starts our file server on the workspace with one loop; `accounts` as its flag takes it.
pub(crate) fn files(workspace: &Workspace, accounts: &str) -> Result<ServerProcess> {
    let root = workspace.path("").display().to_string();
    let flags = ["files", "--root", &root, "--accounts", accounts, "--auth-cache", "1h"];
    workspace.serve_ours(&flags)
}

/// Starts our file server on the workspace on a concurrency model, open to all.
pub(crate) fn files_on(workspace: &Workspace, model: &str) -> Result<ServerProcess> {
    let root = workspace.path("").display().to_string();
    workspace.serve_ours_on(model, &["files", "--root", &root, "--accounts", "none"])
}

/// Fails if nginx is not installed, for cases that compare with nothing else.
pub(crate) fn need_nginx() -> Result<()> {
    if installed("nginx") { Ok(()) } else { Err("nginx is not installed".into()) }
}

/// What differs between one nginx and another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Site {
    /// Directives outside of the server.
    pub http: String,
    /// Directives inside of the server.
    pub server: String,
    /// Parameters of `listen` after the address.
    pub listen: &'static str,
    /// A folder of libraries that are used rather than the system's.
    pub libraries: Option<PathBuf>,
}

/// Starts nginx on the workspace's folder.
pub(crate) fn nginx(workspace: &Workspace, site: &Site) -> Result<ServerProcess> {
    workspace.serve(|address| {
        let path = workspace.path(&format!("nginx-{}.conf", address.port()));
        fs::write(&path, nginx_configuration(workspace, site, address))?;
        let words = ["nginx", "-e", "stderr", "-c", &path.display().to_string()].map(String::from);
        let libraries = site.libraries.as_ref().map(|folder| format!("LD_LIBRARY_PATH={}", folder.display()));
        let environment = libraries.into_iter().flat_map(|libraries| ["env".to_owned(), libraries]);
        Ok(environment.chain(words).collect())
    })
}

fn nginx_configuration(workspace: &Workspace, site: &Site, address: SocketAddr) -> String {
    let folder = workspace.path("").display().to_string();
    let port = address.port();
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let Site { http, server, listen, .. } = site;
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

/// Bytes of one read: the default of our own sink.
const CHUNK: &str = "65536";

pub(crate) struct BareServer {
    program: String,
}

impl BareServer {
    pub(crate) fn compile(workspace: &Workspace) -> Result<Self> {
        Ok(Self { program: compiled(workspace, "bare-server")? })
    }

    /// Starts one that takes uploads.
    pub(crate) fn sink(&self, workspace: &Workspace, model: &str) -> Result<ServerProcess> {
        self.start(workspace, model, &[])
    }

    /// Starts one that answers every request with this many bytes.
    pub(crate) fn responder(
        &self,
        workspace: &Workspace,
        model: &str,
        body_bytes: usize,
    ) -> Result<ServerProcess> {
        self.start(workspace, model, &[&body_bytes.to_string()])
    }

    /// Starts one that parses as much of a request as it must and answers those for `path` with this many bytes.
    pub(crate) fn parser(
        &self,
        workspace: &Workspace,
        model: &str,
        body_bytes: usize,
        path: &str,
    ) -> Result<ServerProcess> {
        self.start(workspace, model, &[&body_bytes.to_string(), path])
    }

    fn start(&self, workspace: &Workspace, model: &str, rest: &[&str]) -> Result<ServerProcess> {
        workspace.serve(|address| {
            let address = address.to_string();
            let words = [&[&self.program, model, &address, CHUNK], rest].concat();
            Ok(words.into_iter().map(String::from).collect())
        })
    }
}
