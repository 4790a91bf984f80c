//! Addresses that a server cannot listen on: one clear line, and nothing is started.

use std::net::{Ipv6Addr, TcpListener};

use crate::{content::content, models::every_model, program::is_root_or_skip, server::Setup};

#[test]
fn a_port_in_use_is_told() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    every_model(|model| {
        let told = format!("nstar-lab: cannot listen on {address}: the port is in use");
        refused(&Setup::sink(model).at(address), &told);
        // By a server of the same model as well.
        let server = Setup::sink(model).start();
        refused(&Setup::sink(model).at(server.address), "the port is in use");
        server.assert_well();
        server.stop();
    });
}

#[test]
fn a_reserved_port_is_told() {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if first.trim().parse::<u16>().unwrap() < 2 {
        eprintln!("SKIPPED: no port is reserved here, see ip_unprivileged_port_start");
        return;
    }
    if !is_root_or_skip("a_reserved_port_is_told") {
        return;
    }
    every_model(|model| {
        let unprivileged = "setpriv --bounding-set=-net_bind_service --inh-caps=-net_bind_service";
        let setup = Setup::sink(model).at("127.0.0.1:1").under(unprivileged);
        refused(&setup, "nstar-lab: cannot listen on 127.0.0.1:1: the port is reserved");
    });
}

#[test]
fn an_address_of_another_host_is_told() {
    every_model(|model| {
        // 192.0.2.0/24 is for documentation (RFC 5737).
        let setup = Setup::sink(model).at("192.0.2.1:8080");
        refused(
            &setup,
            "nstar-lab: cannot listen on 192.0.2.1:8080: no interface of this host has that address",
        );
    });
}

/// Expects the server not to start, to say why in one line, and to fail.
fn refused(setup: &Setup, why: &str) {
    let outcome = setup.run().exits(1).complains(why);
    let lines = outcome.stderr.lines().filter(|line| line.starts_with("nstar-lab: ")).count();
    assert!(lines == 1 && outcome.stdout.is_empty(), "one line, and nothing else\n{outcome}");
}

#[test]
fn a_server_listens_at_an_address_of_ipv6_too() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("SKIPPED: this host has no IPv6");
        return;
    }
    every_model(|model| {
        let server = Setup::files(model, &[300_000]).at("[::1]:0").start();
        assert!(server.connect().get("/files/300000", "").body == content(300_000), "{model}");
        server.stop();
    });
}
