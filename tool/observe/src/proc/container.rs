//! What a process runs in, by the path of its cgroup: a container, or a unit of the init system.
//!
//! Container engines name the cgroups of their containers by the container's identifier, and Kubernetes those around them by
//! the pod's: `/system.slice/docker-ID.scope`, `/docker/ID`, `/machine.slice/libpod-ID.scope`,
//! `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope`,
//! `/kubepods/burstable/podUID/ID`.

use analysis::counters::Container;

/// Engines by what is in front of the identifier in the name of a scope.
const PREFIXES: [(&str, &str); 6] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-", "cri-o"),
    ("", ""),
];

/// Engines by the name of the cgroup around the one that is named by the identifier alone.
const PARENTS: [(&str, &str); 3] = [("docker", "docker"), ("libpod_parent", "podman"), ("ecs", "ecs")];

/// Engines that name the cgroup by the container's name, by what is in front of it.
const NAMED: [(&str, &str); 2] = [("lxc.payload.", "lxc"), ("machine-", "systemd-nspawn")];

/// Digits of an identifier.
const ID_DIGITS: usize = 64;

/// Digits of it that are enough for people.
const SHORT_DIGITS: usize = 12;

/// What a process runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunsIn {
    /// The innermost container.
    pub(crate) container: Option<Container>,
    /// The whole identifier of it; empty where it has none.
    pub(crate) id: String,
    /// The innermost service of the init system, where it is in no container.
    pub(crate) unit: Option<String>,
}

/// Parses the path of a cgroup.
pub(crate) fn runs_in(path: &str) -> RunsIn {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let pod = parts.iter().rev().find_map(|part| pod(part));
    let container = (0..parts.len()).rev().find_map(|index| container(&parts, index));
    match container {
        Some((engine, id)) => RunsIn {
            container: Some(Container {
                engine: engine.to_owned(),
                id: id.chars().take(SHORT_DIGITS).collect(),
                name: None,
                pod,
            }),
            id: id.to_owned(),
            unit: None,
        },
        None => match parts.iter().rev().find_map(|part| named(part)) {
            Some(container) => RunsIn { container: Some(container), ..RunsIn::default() },
            None => RunsIn { unit: parts.iter().rev().find_map(|part| unit(part)), ..RunsIn::default() },
        },
    }
}

/// The engine and the identifier of the container that a part of the path names.
fn container<'a>(parts: &[&'a str], index: usize) -> Option<(&'static str, &'a str)> {
    let part = parts.get(index)?;
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let of_prefix = |(prefix, engine): &(&str, &'static str)| Some((*engine, name.strip_prefix(prefix)?));
    let (engine, id) = PREFIXES.iter().filter_map(of_prefix).find(|(_, id)| is_id(id))?;
    let parent = index.checked_sub(1).and_then(|index| parts.get(index));
    let of_parent = PARENTS.iter().find(|(name, _)| parent.is_some_and(|parent| parent == name));
    Some((of_parent.map_or(engine, |(_, engine)| engine), id))
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The identifier of a pod: `kubepods-burstable-pod1a2b_3c4d.slice`, `pod1a2b-3c4d`.
fn pod(part: &str) -> Option<String> {
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let uid = match part.strip_prefix("kubepods") {
        Some(rest) => rest.split_once("-pod")?.1.replace('_', "-"),
        None => part.strip_prefix("pod")?.to_owned(),
    };
    let is_uid = uid.len() >= 32 && uid.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-');
    is_uid.then_some(uid)
}

/// A container that is known by its name alone.
fn named(part: &str) -> Option<Container> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let (name, engine) =
        NAMED.iter().find_map(|(prefix, engine)| Some((part.strip_prefix(prefix)?, *engine)))?;
    let name = Some(unescaped(name)).filter(|name| !name.is_empty())?;
    Some(Container { engine: engine.to_owned(), name: Some(name), ..Container::default() })
}

/// A service, but none of those that hold the sessions of users.
fn unit(part: &str) -> Option<String> {
    let is_service = part.ends_with(".service") && !part.starts_with("user@");
    is_service.then(|| unescaped(part))
}

/// A name of systemd without its escapes: `web\x2d1.service` is `web-1.service` (systemd-escape(1)).
fn unescaped(name: &str) -> String {
    let mut parts = name.split("\\x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii_graphic).zip(part.get(2..)) {
            Some((byte, rest)) => {
                plain.push(char::from(byte));
                plain.push_str(rest);
            }
            None => {
                plain.push_str("\\x");
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f4e2b1a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f";
    const POD: &str = "1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d";

    fn found(path: &str) -> Option<(String, String, Option<String>)> {
        let RunsIn { container, id, unit } = runs_in(path);
        let container = container?;
        assert_eq!((id.as_str(), unit), (ID, None), "{path}");
        assert_eq!(container.name, None, "{path}");
        Some((container.engine, container.id, container.pod))
    }

    #[test]
    fn every_engine_is_known_by_its_cgroups() {
        let pod_slice = format!("/kubepods.slice/kubepods-pod{}.slice", POD.replace('-', "_"));
        let burstable = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod";
        let burstable = format!("{burstable}{}.slice", POD.replace('-', "_"));
        for (path, engine, in_pod) in [
            (format!("/system.slice/docker-{ID}.scope"), "docker", false),
            (format!("/docker/{ID}"), "docker", false),
            (format!("/docker/{ID}/init.scope"), "docker", false),
            (format!("/machine.slice/libpod-{ID}.scope/container"), "podman", false),
            (format!("/libpod_parent/{ID}"), "podman", false),
            (format!("/system.slice/nerdctl-{ID}.scope"), "containerd", false),
            (format!("/ecs/{ID}"), "ecs", false),
            (format!("/default/{ID}"), "", false),
            (format!("{burstable}/cri-containerd-{ID}.scope"), "containerd", true),
            (format!("{pod_slice}/crio-{ID}.scope/app"), "cri-o", true),
            (format!("{pod_slice}/docker-{ID}.scope"), "docker", true),
            (format!("/kubepods/besteffort/pod{POD}/{ID}"), "", true),
            (format!("/../docker-{ID}.scope"), "docker", false),
        ] {
            let pod = in_pod.then(|| POD.to_owned());
            assert_eq!(found(&path), Some((engine.to_owned(), ID[..12].to_owned(), pod)), "{path}");
        }
    }

    #[test]
    fn the_innermost_container_counts() {
        let outer = ID.replace('3', "7");
        let path = format!("/docker/{outer}/system.slice/containerd.service/docker/{ID}");
        assert_eq!(found(&path).map(|found| found.1), Some(ID[..12].to_owned()));
    }

    #[test]
    fn a_container_may_be_named_by_its_cgroup() {
        for (path, engine, name) in [
            ("/lxc.payload.web-1/system.slice/nginx.service", "lxc", "web-1"),
            ("/machine.slice/machine-web\\x2d1.scope", "systemd-nspawn", "web-1"),
        ] {
            let container = runs_in(path).container.unwrap();
            assert_eq!((container.engine.as_str(), container.name.as_deref()), (engine, Some(name)));
        }
    }

    #[test]
    fn services_are_units_and_sessions_are_not() {
        let unit = |path: &str| {
            let RunsIn { container, unit, .. } = runs_in(path);
            assert_eq!(container, None, "{path}");
            unit
        };
        assert_eq!(unit("/system.slice/nginx.service").as_deref(), Some("nginx.service"));
        assert_eq!(unit("/system.slice/php\\x2dfpm.service/pool").as_deref(), Some("php-fpm.service"));
        let of_user = "/user.slice/user-1000.slice/user@1000.service/app.slice/";
        assert_eq!(unit(&format!("{of_user}web.service")).as_deref(), Some("web.service"));
        for none in ["", "/", "/init.scope", "/user.slice/user-0.slice/session-3.scope", of_user] {
            assert_eq!(unit(none), None, "{none}");
        }
        // Its monitor is not in the container, and what is no identifier is none.
        for none in [format!("/machine.slice/libpod-conmon-{ID}.scope"), format!("/docker/{ID}0")] {
            assert_eq!(unit(&none), None, "{none}");
        }
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescaped("a\\x2db\\x2d"), "a-b-");
        assert_eq!(unescaped("a\\xzz\\x1b\\x"), "a\\xzz\\x1b\\x");
        assert_eq!(unescaped("\\xé"), "\\xé");
    }
}
