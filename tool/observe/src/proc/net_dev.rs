//! `/proc/net/dev` (proc_pid_net(5)).

use analysis::counters::Interface;

/// Name and traffic of each interface; the rest is filled in from elsewhere.
pub(crate) fn parse(text: &str) -> Vec<Interface> {
    text.lines().skip(2).filter_map(interface).collect()
}

fn interface(line: &str) -> Option<Interface> {
    // An alias (`eth0:1`) holds a colon of its own.
    let (name, rest) = line.rsplit_once(':')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() < 16 {
        return None;
    }
    let at = |index| super::number(&fields, index);
    Some(Interface {
        name: name.trim().to_owned(),
        received_bytes: at(0),
        sent_bytes: at(8),
        dropped: at(3).saturating_add(at(11)),
        ..Interface::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_drops_both_ways() {
        let text = "Inter-|   Receive    |  Transmit\n face |bytes packets errs drop\n\
             lo:    3193      29    0    0    0     0          0         0     3194      29    0    0    0     0       0          0\n\
             eth0:624685682 33478 0 2 0 0 0 0 1987932 20307 0 3 0 0 0 0\n broken: 1 2\n";
        let interfaces = parse(text);
        assert_eq!(interfaces.len(), 2);
        assert_eq!((interfaces[0].received_bytes, interfaces[0].sent_bytes), (3193, 3194));
        assert_eq!((interfaces[1].name.as_str(), interfaces[1].dropped), ("eth0", 5));
    }
}
