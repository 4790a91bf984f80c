//! Parsers of the kernel's text files: text in, values out. They never fail; what is missing or broken
//! is zero, absent or left out, as the kernel's files differ between versions.

pub(crate) mod addresses;
pub(crate) mod cgroup;
pub(crate) mod cpus;
pub(crate) mod disks;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod net_dev;
pub(crate) mod pressure;
pub(crate) mod schedstat;
pub(crate) mod snmp;
pub(crate) mod stat;
pub(crate) mod status;
pub(crate) mod tcp;

/// The number at `index` of whitespace-separated fields, 0 where there is none.
fn number(fields: &[&str], index: usize) -> u64 {
    fields.get(index).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// The value of the line `name value`, 0 where there is none.
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
            for file in [stat::tests::NGINX, tcp::tests::TABLE, snmp::tests::SNMP, disks::tests::DISKS] {
                parse_with_all(file.get(..cut).unwrap_or(file));
            }
        }
    }

    fn parse_with_all(text: &str) {
        let _ = addresses::ipv4(text);
        let _ = addresses::ipv6(text);
        let _ = cgroup::parse(text);
        let _ = cpus::parse(text, 100);
        let _ = disks::parse(text);
        let _ = limits::open_files(text);
        let _ = memory::parse(text, text);
        let _ = net_dev::parse(text);
        let _ = pressure::total_us(text, "some");
        let _ = schedstat::parse(text);
        let _ = snmp::parse(text, text);
        let _ = stat::parse(text);
        let _ = status::parse(text);
        let _ = status::numbers(text);
        let _ = tcp::parse(text);
    }

    #[test]
    fn named_values_need_the_whole_name() {
        let text = "pgpgin 7\npgpgout 8\nMemTotal:       16 kB\n";
        assert_eq!(named(text, "pgpgin "), 7);
        assert_eq!(named(text, "MemTotal:"), 16);
        assert_eq!(named(text, "absent"), 0);
    }
}
