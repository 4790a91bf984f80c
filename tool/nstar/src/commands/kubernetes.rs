//! `nstar fleet kubernetes`: what starts the machines of a fleet on Kubernetes.

use crate::{
    exit::{Exit, Failure},
    flags::Kubernetes,
    output,
};

/// The manifests, with names in double braces where something is to be filled in.
const MANIFESTS: &str = include_str!("kubernetes/manifests.yaml");

/// Who may call the bus, where that is in the namespace.
const BUS_POLICY: &str = include_str!("kubernetes/bus.yaml");

/// The pods of the bus, where that is in the namespace: its chart has them so.
const TO_BUS: &str = "to:
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: nats
      ";

/// A warning about a bus that wants nothing to be shown.
const OPEN_BUS: &str = "
# These machines show nothing to the bus. Whoever else can call it can have them send requests to anything they reach, and
# read what is sent: keep it from others with --nats-secret or --nats-tls-secret.";

/// The longest name of a namespace or a secret.
const NAME_BYTES_MAX: usize = 63;

/// Mode of the files of a secret: root reads them, and the group of the pod (`fsGroup`). It is written as a decimal number,
/// since versions of YAML differ about octal ones.
const SECRET_MODE: u32 = 0o440;

/// What the chart of the bus needs for TLS that asks for certificates.
const BUS_TLS: &str = " \\
#     --set config.nats.tls.enabled=true,config.nats.tls.secretName=nats-server-tls,config.nats.tls.merge.verify=true \\
#     --set tlsCA.enabled=true,tlsCA.secretName=nats-server-tls";

/// Prints the manifests for these numbers and images.
pub(super) fn print(flags: &Kubernetes) -> Result<Exit, Failure> {
    output::print(&manifests(flags)?)?;
    Ok(Exit::Done)
}

fn manifests(flags: &Kubernetes) -> Result<String, Failure> {
    check(flags)?;
    let namespace = &flags.namespace;
    let is_tls = flags.nats_tls_secret.is_some();
    let (url, port) = match &flags.nats {
        Some(address) => (address.to_string(), address.port()),
        None => (format!("{}://nats.{namespace}:4222", if is_tls { "tls" } else { "nats" }), 4222),
    };
    let secrets = Secret::all(flags);
    let login: String = secrets.iter().map(Secret::arguments).collect();
    let mounts: Vec<String> = secrets.iter().map(Secret::mount).collect();
    let volumes: Vec<String> = secrets.iter().map(Secret::volume).collect();
    // The groups of the node, which bound what a container may use.
    let cgroup_mount = "{name: cgroups, mountPath: /sys/fs/cgroup, readOnly: true}".to_owned();
    let cgroup_volume = "{name: cgroups, hostPath: {path: /sys/fs/cgroup, type: Directory}}".to_owned();
    let (to_bus, bus_policy) = match flags.nats {
        Some(_) => (String::new(), String::new()),
        None => (TO_BUS.to_owned(), format!("\n{}", BUS_POLICY.trim_end())),
    };
    let filled = [
        ("to_bus", to_bus),
        ("bus_policy", bus_policy),
        ("namespace", namespace.clone()),
        ("image", quoted(&flags.image)),
        ("generators", flags.generators.to_string()),
        ("port", port.to_string()),
        ("generator_arguments", format!("[agent, --join, {}{login}]", quoted(&url))),
        ("observer_arguments", format!("[agent, --observe, --join, {}{login}]", quoted(&url))),
        ("mounts", list(&mounts)),
        ("volumes", list(&volumes)),
        ("observer_mounts", list(&[mounts, vec![cgroup_mount]].concat())),
        ("observer_volumes", list(&[volumes, vec![cgroup_volume]].concat())),
        ("bus_tls", if is_tls { BUS_TLS.to_owned() } else { String::new() }),
        ("secrets", creation(&secrets, namespace)),
        ("run_login", run_login(flags)),
    ];
    let fill = |text: String, (name, value): &(&str, String)| text.replace(&format!("{{{{{name}}}}}"), value);
    Ok(filled.iter().fold(MANIFESTS.to_owned(), fill))
}

/// A secret that holds what the machines show to the bus.
struct Secret<'a> {
    name: &'a str,
    /// The name of the volume with its files, which is mounted in a folder of this name.
    volume: &'static str,
    /// Its files, each after the flag that takes it.
    files: &'static [(&'static str, &'static str)],
}

impl<'a> Secret<'a> {
    /// All that are asked for.
    fn all(flags: &'a Kubernetes) -> Vec<Self> {
        let credentials = flags.nats_secret.as_deref().map(|name| Self {
            name,
            volume: "nats",
            files: &[("--nats-creds", "nats.creds")],
        });
        let tls = flags.nats_tls_secret.as_deref().map(|name| Self {
            name,
            volume: "nats-tls",
            files: &[("--nats-ca", "ca.crt"), ("--nats-cert", "tls.crt"), ("--nats-key", "tls.key")],
        });
        credentials.into_iter().chain(tls).collect()
    }

    /// What follows the other arguments of an agent.
    fn arguments(&self) -> String {
        self.files.iter().map(|(flag, file)| format!(", {flag}, /{}/{file}", self.volume)).collect()
    }

    fn mount(&self) -> String {
        format!("{{name: {0}, mountPath: /{0}, readOnly: true}}", self.volume)
    }

    fn volume(&self) -> String {
        let secret = format!("{{secretName: {}, defaultMode: {SECRET_MODE}}}", quoted(self.name));
        format!("{{name: {}, secret: {secret}}}", self.volume)
    }
}

/// Comments that say how secrets are made, or warn where there are none.
fn creation(secrets: &[Secret<'_>], namespace: &str) -> String {
    if secrets.is_empty() {
        return OPEN_BUS.to_owned();
    }
    let mut text = "\n# The machines wait until the namespace has what they show to the bus:".to_owned();
    for secret in secrets {
        let files: String = secret.files.iter().map(|(_, file)| format!(" --from-file={file}")).collect();
        text +=
            &format!("\n#   kubectl create secret generic {} --namespace {namespace}{files}", secret.name);
    }
    if let Some(tls) = secrets.iter().find(|secret| secret.files.len() > 1) {
        text += &format!(
            "\n# cert-manager writes {} itself: a Certificate with this secretName and usages: [digital signature, client auth],\
             \n# of an authority of your own (an issuer that tells no ca.crt will not do). In nats-server-tls, the same for the\
             \n# bus, the certificate names nats.{namespace}, and localhost for runs from here.",
            tls.name
        );
    }
    text
}

/// What a run through a forwarded port logs in with: the same files, here.
fn run_login(flags: &Kubernetes) -> String {
    let url = if flags.nats_tls_secret.is_some() { "tls://localhost:4222" } else { "nats://127.0.0.1:4222" };
    let files: Vec<_> = Secret::all(flags).iter().flat_map(|secret| secret.files).collect();
    let files: String = files.into_iter().map(|(flag, file)| format!(" {flag} {file}")).collect();
    format!("{url}{files}")
}

/// Checks what is filled in, so that it means nothing else to whoever reads the manifests.
fn check(flags: &Kubernetes) -> Result<(), Failure> {
    let names = [
        ("--namespace", Some(&flags.namespace)),
        ("--nats-secret", flags.nats_secret.as_ref()),
        ("--nats-tls-secret", flags.nats_tls_secret.as_ref()),
    ];
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

fn list(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}
