//! `nstar fleet kubernetes`: what starts the machines of a fleet on Kubernetes.

use crate::{
    exit::{Exit, Failure},
    flags::Kubernetes,
    output,
};

/// The manifests, with names in double braces where something is to be filled in.
const MANIFESTS: &str = include_str!("kubernetes/manifests.yaml");

/// Where the credentials are within a container.
const CREDENTIALS: &str = "/nats/nats.creds";

/// The longest name of a namespace or a secret.
const NAME_BYTES_MAX: usize = 63;

/// Prints the manifests for these numbers and images.
pub(super) fn print(flags: &Kubernetes) -> Result<Exit, Failure> {
    output::print(&manifests(flags)?)?;
    Ok(Exit::Done)
}

fn manifests(flags: &Kubernetes) -> Result<String, Failure> {
    check(flags)?;
    let namespace = &flags.namespace;
    let (url, port) = match &flags.nats {
        Some(address) => (address.to_string(), address.port()),
        None => (format!("nats://nats.{namespace}:4222"), 4222),
    };
    let secret = flags.nats_secret.as_deref();
    let login = secret.map_or_else(String::new, |_| format!(", --nats-creds, {CREDENTIALS}"));
    let mount = secret.map(|_| "{name: nats, mountPath: /nats, readOnly: true}".to_owned());
    let volume = secret.map(|name| format!("{{name: nats, secret: {{secretName: {name}}}}}"));
    // The groups of the node, which bound what a container may use.
    let cgroups = [
        "{name: cgroups, mountPath: /sys/fs/cgroup, readOnly: true}".to_owned(),
        "{name: cgroups, hostPath: {path: /sys/fs/cgroup, type: Directory}}".to_owned(),
    ];
    let [cgroup_mount, cgroup_volume] = cgroups.map(Some);
    let filled = [
        ("namespace", namespace.clone()),
        ("image", quoted(&flags.image)),
        ("generators", flags.generators.to_string()),
        ("port", port.to_string()),
        ("generator_arguments", format!("[agent, --join, {}{login}]", quoted(&url))),
        ("observer_arguments", format!("[agent, --observe, --join, {}{login}]", quoted(&url))),
        ("mounts", list(&[&mount])),
        ("volumes", list(&[&volume])),
        ("observer_mounts", list(&[&mount, &cgroup_mount])),
        ("observer_volumes", list(&[&volume, &cgroup_volume])),
    ];
    let fill = |text: String, (name, value): &(&str, String)| text.replace(&format!("{{{{{name}}}}}"), value);
    Ok(filled.iter().fold(MANIFESTS.to_owned(), fill))
}

/// Checks what is filled in, so that it means nothing else to whoever reads the manifests.
fn check(flags: &Kubernetes) -> Result<(), Failure> {
    let names = [("--namespace", Some(&flags.namespace)), ("--nats-secret", flags.nats_secret.as_ref())];
    for (flag, name) in names {
        if name.is_some_and(|name| !is_name(name)) {
            return Err(Failure::usage(format!(
                "{flag}: Kubernetes has names of small letters, digits and dashes, 63 at most, such as load-test"
            )));
        }
    }
    if flags.image.is_empty() || !flags.image.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::usage(
            "--image: this is no name of an image; write one such as registry/nstar:1.0",
        ));
    }
    if flags.nats.as_ref().is_some_and(bus::Address::has_secret) {
        return Err(Failure::usage(
            "--nats: a password would be in the manifests for all to see; put credentials into a secret, and name it with \
             --nats-secret",
        ));
    }
    Ok(())
}

/// Whether this is a label of DNS, as RFC 1123 has it.
fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A string as YAML and JSON have it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn list(items: &[&Option<String>]) -> String {
    let items: Vec<&str> = items.iter().filter_map(|item| item.as_deref()).collect();
    format!("[{}]", items.join(", "))
}
