//! What a process runs in, with the names that people gave it.

use std::path::Path;

use analysis::counters::Container;

use super::cgroup::Membership;
use crate::kernel_files::{KernelPaths, Pid};
use crate::proc::container::{RunsIn, runs_in};
use crate::proc::process::Cgroups;

/// Where Docker keeps what it knows of each container.
const DOCKER: &str = "/var/lib/docker/containers";

/// Where the kubelet links the logs of containers, named by pod, namespace and container.
const POD_LOGS: &str = "/var/log/containers";

/// More of a file is not read.
const BYTES_MAX: u64 = 1 << 20;

/// More names are not looked through.
const NAMES_MAX: usize = 10_000;

/// Finds what one process runs in.
#[derive(Debug)]
pub(super) struct ContainerSampler {
    membership: Membership,
    /// Whether names are to be found on this host.
    are_names_here: bool,
    found: RunsIn,
}

impl ContainerSampler {
    pub(super) fn new(paths: &KernelPaths, pid: Pid) -> Self {
        Self {
            membership: Membership::of(paths, pid),
            are_names_here: paths.are_this_host(),
            found: RunsIn::default(),
        }
    }

    /// Reads it anew: a process may be moved. Its name is looked up once.
    pub(super) fn locate(&mut self) {
        let mut now = runs_in(&path(self.membership.read()));
        if now.id.is_empty() || now.id != self.found.id {
            if let Some(container) =
                now.container.as_mut().filter(|_| self.are_names_here && !now.id.is_empty())
            {
                name(container, &now.id, (Path::new(DOCKER), Path::new(POD_LOGS)));
            }
            self.found = now;
        }
    }

    pub(super) fn container(&self) -> Option<Container> {
        self.found.container.clone()
    }

    pub(super) fn unit(&self) -> Option<String> {
        self.found.unit.clone()
    }
}

/// The path that tells most: of a host that runs both versions, the second need not have any of its own.
fn path(Cgroups { unified, cpu, memory, .. }: Cgroups) -> String {
    let all = [unified, memory, cpu];
    all.into_iter().flatten().find(|path| path != "/").unwrap_or_default()
}

/// Adds the names of a container, where the files that tell them may be read.
fn name(container: &mut Container, id: &str, (docker, pod_logs): (&Path, &Path)) {
    if let Some((pod, name)) = container.pod.as_ref().and_then(|_| in_pod(pod_logs, id)) {
        (container.pod, container.name) = (Some(pod), Some(name));
    } else if container.pod.is_none() && container.engine == "docker" {
        container.name = docker_name(docker, id);
    }
}

/// The name in `config.v2.json`; that of a container begins with a slash, and no other name there does.
fn docker_name(folder: &Path, id: &str) -> Option<String> {
    let file = folder.join(id).join("config.v2.json");
    let length = std::fs::metadata(&file).ok()?.len();
    let text = std::fs::read_to_string(file).ok().filter(|_| length <= BYTES_MAX)?;
    let (_, after) = text.split_once(r#""Name":"/"#)?;
    let (name, _) = after.split_once('"')?;
    is_name(name).then(|| name.to_owned())
}

/// The pod and the container within it, by the link `POD_NAMESPACE_CONTAINER-ID.log`.
fn in_pod(folder: &Path, id: &str) -> Option<(String, String)> {
    let links = std::fs::read_dir(folder).ok()?.flatten().take(NAMES_MAX);
    let of_this =
        |name: String| Some(name.strip_suffix(".log")?.strip_suffix(id)?.strip_suffix('-')?.to_owned());
    let name = links.filter_map(|link| link.file_name().into_string().ok()).find_map(of_this)?;
    let mut parts = name.splitn(3, '_');
    let (pod, _, container) = (parts.next()?, parts.next()?, parts.next()?);
    (is_name(pod) && is_name(container)).then(|| (pod.to_owned(), container.to_owned()))
}

/// What engines take for a name.
fn is_name(text: &str) -> bool {
    let of_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(of_name)
}

#[cfg(test)]
mod tests {
    use super::super::cgroup::fake::{PID, Tree};
    use super::*;

    const ID: &str = "3f4e2b1a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f";

    #[test]
    fn a_process_may_be_moved() {
        let tree = Tree::new(&format!("3:cpu:/\n0::/system.slice/docker-{ID}.scope\n"));
        let mut sampler = ContainerSampler::new(&tree.paths(), PID);
        sampler.locate();
        let id = sampler.container().map(|container| container.id);
        assert_eq!((id.as_deref(), sampler.unit()), (Some("3f4e2b1a9c8d"), None));
        tree.file("proc/7/cgroup", "4:memory:/system.slice/web.service\n0::/\n");
        sampler.locate();
        assert_eq!((sampler.container(), sampler.unit().as_deref()), (None, Some("web.service")));
    }

    #[test]
    fn names_come_from_the_files_of_the_engines() {
        let folder = tempfile::tempdir().unwrap();
        let (docker, logs) = (folder.path().join("docker"), folder.path().join("logs"));
        let named = |engine: &str, pod: Option<&str>| {
            let mut container =
                Container { engine: engine.into(), pod: pod.map(str::to_owned), ..Container::default() };
            name(&mut container, ID, (&docker, &logs));
            (container.pod, container.name)
        };
        let uid = Some("1a2b");
        assert_eq!(named("docker", None), (None, None), "there are no files");
        assert_eq!(named("containerd", uid), (uid.map(str::to_owned), None));
        std::fs::create_dir_all(docker.join(ID)).unwrap();
        let config = r#"{"Mounts":{"a":{"Name":"data"}},"Name":"/shop-web-1","Driver":"overlay2"}"#;
        std::fs::write(docker.join(ID).join("config.v2.json"), config).unwrap();
        std::fs::create_dir_all(&logs).unwrap();
        for pod in ["other_shop_web-77.log".to_owned(), format!("web-5d9c_shop_nginx-{ID}.log")] {
            std::fs::write(logs.join(pod), "").unwrap();
        }
        assert_eq!(named("docker", None), (None, Some("shop-web-1".into())));
        assert_eq!(named("podman", None), (None, None));
        assert_eq!(named("containerd", uid), (Some("web-5d9c".into()), Some("nginx".into())));
        std::fs::write(docker.join(ID).join("config.v2.json"), r#"{"Name":"/<b>"}"#).unwrap();
        assert_eq!(named("docker", None), (None, None), "no engine allows such a name");
    }
}
