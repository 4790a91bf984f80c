//! HTTP over an engine's connection: answer requests, ask another tier.
