//! The real generator on the real sink: the server survives, and every acknowledged upload was counted whole.
//!
//! In CI the bodies are smaller, so that all models together send only a few gigabytes. The published loads are sent by
//! `cargo test --release -p nstar-lab --test conformance -- --ignored --nocapture --test-threads 1`.

use serde_json::Value;

use crate::{
    descriptors,
    models::{Crowd, every_model},
    server::Setup,
};

/// This many connections, each of which uploads one body of one of these sizes.
struct Load {
    connections: usize,
    sizes: &'static str,
}

#[test]
fn a_thousand_connections_of_mixed_sizes() {
    Load { connections: 1_000, sizes: "1KB,10KB,100KB,1MB" }.on_every_model();
}

#[test]
fn five_thousand_connections_of_one_size() {
    Load { connections: 5_000, sizes: "40KB" }.on_every_model();
}

#[test]
fn ten_thousand_connections_of_mixed_sizes() {
    Load { connections: 10_000, sizes: "1KB,5KB,20KB" }.on_every_model();
}

#[test]
#[ignore = "gigabytes for each model"]
fn published_a_thousand_connections_of_mixed_sizes_to_10_mb() {
    Load { connections: 1_000, sizes: "1KB,100KB,1MB,5MB,10MB" }.on_every_model();
}

#[test]
#[ignore = "gigabytes for each model"]
fn published_five_thousand_connections_of_1_mb() {
    Load { connections: 5_000, sizes: "1MB" }.on_every_model();
}

#[test]
#[ignore = "gigabytes for each model"]
fn published_ten_thousand_connections_of_mixed_sizes() {
    Load { connections: 10_000, sizes: "1KB,10KB,100KB,1MB" }.on_every_model();
}

impl Load {
    fn on_every_model(&self) {
        if !descriptors::are_enough_or_skip("a load of many connections", self.connections) {
            return;
        }
        every_model(|model| {
            let crowd = Crowd::of(model);
            self.on(Setup::sink(model).with(crowd.flags), self.connections.min(crowd.most));
        });
    }

    fn on(&self, sink: Setup, connections: usize) {
        let server = sink.start();
        let url = format!("http://{}/upload", server.address);
        let users = connections.to_string();
        let load =
            ["load", &url, "-c", &users, "-n", "1", "--body-size", self.sizes, "--timeout", "120s", "--json"];
        let outcome = server.folder.nstar(load).run().has_not_panicked();
        // Too short for a steady state, so that it may be inconclusive.
        assert!(
            [0, 4].contains(&outcome.status.code().unwrap_or(-1)),
            "{}: it did not work\n{outcome}",
            server.model
        );
        let run: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let failed = run["warnings"].as_array().unwrap().iter().find(|warning| warning["kind"] == "errors");
        assert!(failed.is_none(), "{}: {failed:?}\n{outcome}", server.model);
        let metrics = server.connect().get("/metrics", "Connection: close\r\n");
        let count = |name: &str| metrics.metric(&format!("nstar_sink_{name}_total"));
        // One more request tries the target beforehand.
        let uploads = connections as u64 + 1;
        assert_eq!(count("uploads"), uploads, "{}: each upload was acknowledged", server.model);
        assert_eq!(count("upload_bytes"), count("received_bytes"), "{}: and came whole", server.model);
        if let Ok(size) = self.sizes.trim_end_matches("KB").parse::<u64>() {
            assert_eq!(count("upload_bytes"), size * 1_000 * uploads, "{}", server.model);
        }
        server.assert_well();
        eprintln!("{}: {connections} connections sent {} bytes", server.model, count("upload_bytes"));
        server.stop().says(&format!("{uploads} uploads completed, 0 failed"));
    }
}
