//! Parsers of the kernel's text files: text in, values out. They never fail. Whatever is missing or broken is zero,
//! absent or left out, because the files differ between kernel versions.

pub(crate) mod container;
pub(crate) mod host;
pub(crate) mod network;
pub(crate) mod process;
pub(crate) mod softnet;

/// The number at `index` of whitespace-separated fields, or 0.
fn number(fields: &[&str], index: usize) -> u64 {
    fields.get(index).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// The value of the line `name value`, or 0.
pub(crate) fn named(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim_start_matches(':').split_whitespace().next())
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_breaks_a_parser(text in "\\PC*") {
            parse_with_all(&text);
        }

        #[test]
        fn no_near_miss_breaks_a_parser(
            text in "((cpu|some|Tcp:|TcpExt:|  sl|0:|lo:|Max open files|State:|0::/|\\||--|/32 host LOCAL)?[ \t:0-9A-F.,/()-]{0,40}\n?){0,12}"
        ) {
            parse_with_all(&text);
        }

        #[test]
        fn truncated_files_parse(cut in 0usize..400) {
            for file in [process::tests::NGINX, network::tests::TABLE, network::tests::CONNTRACK, network::tests::SNMP, host::tests::DISKS, softnet::tests::TWO] {
                parse_with_all(file.get(..cut).unwrap_or(file));
            }
        }
    }

    fn parse_with_all(text: &str) {
        let _ = container::runs_in(text);
        let _ = host::cpus(text, 100);
        let _ = host::disks(text);
        let _ = host::memory(text, text);
        let _ = host::pressure_total_us(text, "some");
        let _ = network::interfaces(text);
        let _ = network::own_ipv4(text);
        let _ = network::own_ipv6(text);
        let _ = network::tcp_counters(text, text);
        let _ = network::local_ports(text);
        let _ = network::tcp_sockets(text);
        let _ = network::time_wait(text);
        let _ = network::tracked(text);
        let _ = process::cgroups(text);
        let _ = process::numbers(text);
        let _ = process::open_files_limit(text);
        let _ = process::schedstat(text);
        let _ = process::stat(text);
        let _ = process::allowed_cpus(text);
        let _ = softnet::softnet(text);
    }

    #[test]
    fn named_values_need_the_whole_name() {
        let text = "pgpgin 7\npgpgout 8\nMemTotal:       16 kB\n";
        assert_eq!(named(text, "pgpgin "), 7);
        assert_eq!(named(text, "MemTotal:"), 16);
        assert_eq!(named(text, "absent"), 0);
    }
}
