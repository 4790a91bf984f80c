//! Interfaces, their addresses, and routes (rtnetlink(7)).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Attributes, NetlinkSocket, attribute, u32_at};

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;

/// The names of the interfaces, by index.
pub(crate) fn names(socket: &mut NetlinkSocket) -> io::Result<BTreeMap<u32, String>> {
    let mut names = BTreeMap::new();
    // struct ifinfomsg: all zeroes request all interfaces.
    socket.dump(RTM_GETLINK, &[0; 16], |reply| names.extend(link(reply)))?;
    Ok(names)
}

/// Parses struct ifinfomsg, which holds the index, and its attributes, which hold the name.
pub(super) fn link(reply: &[u8]) -> Option<(u32, String)> {
    const IFLA_IFNAME: u16 = 3;
    let name = Attributes::after(reply, 16).find(IFLA_IFNAME)?;
    let name = String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned();
    Some((u32_at(reply, 4)?, name))
}

/// The index of the interface that has the address `ip`.
pub(crate) fn interface_with(socket: &mut NetlinkSocket, ip: IpAddr) -> io::Result<Option<u32>> {
    let mut found = None;
    socket.dump(RTM_GETADDR, &[0; 8], |reply| {
        if let Some((index, address)) = address(reply)
            && address == ip
        {
            found = Some(index);
        }
    })?;
    Ok(found)
}

/// Parses struct ifaddrmsg: family, prefix, flags, scope, index. On a point-to-point link `ADDRESS` is the peer's.
pub(super) fn address(reply: &[u8]) -> Option<(u32, IpAddr)> {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    let attributes = Attributes::after(reply, 8);
    let value = attributes.find(IFA_LOCAL).or_else(|| attributes.find(IFA_ADDRESS))?;
    let ip = match *reply.first()? {
        AF_INET => Ipv4Addr::from(value.first_chunk::<4>().copied()?).into(),
        AF_INET6 => Ipv6Addr::from(value.first_chunk::<16>().copied()?).into(),
        _ => return None,
    };
    Some((u32_at(reply, 4)?, ip))
}

/// The index of the interface through which packets for `ip` leave; the loopback one for an address of our own.
pub(crate) fn interface_towards(socket: &mut NetlinkSocket, ip: IpAddr) -> io::Result<Option<u32>> {
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
    let (family, bits, address) = match ip {
        IpAddr::V4(ip) => (AF_INET, 32, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AF_INET6, 128, ip.octets().to_vec()),
    };
    // struct rtmsg: family and length of the destination, the rest zero.
    let mut request = vec![family, bits];
    request.resize(12, 0);
    request.extend(attribute(RTA_DST, &address));
    let mut found = None;
    socket.get(RTM_GETROUTE, &request, |reply| {
        found = Attributes::after(reply, 12).find(RTA_OIF).and_then(|value| u32_at(value, 0));
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::NetlinkSockets;
    use super::*;

    #[test]
    fn loopback_is_known_by_all_three() {
        let mut route = NetlinkSockets::open(None).unwrap().route;
        let localhost = IpAddr::from(Ipv4Addr::LOCALHOST);
        let index = interface_with(&mut route, localhost).unwrap().unwrap();
        assert_eq!(names(&mut route).unwrap().get(&index).map(String::as_str), Some("lo"));
        assert_eq!(interface_towards(&mut route, localhost).unwrap(), Some(index));
    }
}
