//! The concurrency models: they move the bytes and poll the service.
//!
//! A service is written once against [`service`] and runs on every model. No model knows what
//! service it runs; no service knows which model runs it.

pub mod service;
