//! The concurrency models: they move the bytes and poll the service.
//!
//! A service is written once against [`service`] and runs on every [`Model`]. No model knows which service it runs, and
//! no service knows which model runs it. [`start`] brings the two together, [`Server::drain`] ends them, and [`offload`]
//! keeps blocking calls and long computations off the loops.
//!
//! ```
//! use std::{io, net::SocketAddr, time::Duration};
//! use engine::{Model, Options, service::{Connection, Factory, Service}};
//!
//! struct Echo;
//!
//! impl<C: Connection> Service<C> for Echo {
//!     async fn serve(&self, mut connection: C) {
//!         while let Ok(1..) = connection.fill().await {
//!             let input = connection.input().to_vec();
//!             connection.consume(input.len());
//!             connection.output().extend_from_slice(&input);
//!             if connection.flush().await.is_err() {
//!                 return;
//!             }
//!         }
//!     }
//! }
//!
//! struct Echoes;
//!
//! impl Factory for Echoes {
//!     type Service<C: Connection> = Echo;
//!     fn make<C: Connection>(&self) -> io::Result<Echo> {
//!         Ok(Echo)
//!     }
//! }
//!
//! let options = Options::new(SocketAddr::from(([127, 0, 0, 1], 0)));
//! let server = engine::start(Model::Epoll, &options, Echoes)?;
//! println!("listening on {}", server.local_addr());
//! server.drain(Duration::from_secs(5));
//! server.join();
//! # Ok::<(), engine::EngineError>(())
//! ```
//!
//! # The families
//!
//! **Blocking** (`blocking`, `process`): calls wait in the kernel, inside the future's poll, so the future is never
//! pending on I/O. For everything else a future may wait for, such as [`offload`], the thread sleeps. `threads` has a
//! thread per connection; `pool` has a fixed number of them and a bounded queue, whose overflow [`Overload`] governs.
//! `processes` forks a process for each connection; `prefork` has a fixed number of processes that accept for
//! themselves. All four use the same connection; `process` explains which process forks, watches and ends which, and why
//! that is safe.
//!
//! **Readiness** (`readiness`): a loop over a `Poller`, chosen at compile time, polls each task straight from the event
//! that makes it ready. Transfers are tried first, and a socket is handed to the poller only if it would have to wait.
//! `epoll`, `poll`, `select` (which refuses descriptors beyond its 1 024) and `polling` (which reports everything as
//! ready) are one file each.
//!
//! **Completion** (`completion`): `aio` and `uring` hand a buffer over and get it back full. They fit behind the same
//! trait because the connection owns its buffers and lends them only between calls. `aio` reads this way on the readiness
//! family's loop; `uring` has a connection and a loop of its own.
//!
//! A new model is a file of its own in its family's folder, which implements `Implementation`, and an entry in the list
//! of `model.rs`.
//!
//! # What a service may rely on
//!
//! - A connection's calls wake the task that makes them, not the waker in the context. In models with loops, combinators
//!   that poll all of their futures whenever they are polled work; those that poll only what was woken, such as
//!   `FuturesUnordered`, do not. In the blocking family calls run one after another.
//! - Wakers work from every thread.
//! - A panic closes only its own connection, and is logged and counted.
//! - Models that run services in processes of their own ([`Model::forks`]) make them after the fork. They share the
//!   factory as it was when the server started, and [`shared`] memory.

mod block_on;
mod blocking;
mod buffer;
mod clients;
mod clock;
mod completion;
mod connection_limit;
mod control;
mod counters;
mod deadline;
mod error;
mod idle;
mod implementation;
mod inherited;
mod listen;
mod loops;
mod model;
mod net;
pub mod offload;
mod options;
mod panics;
mod process;
mod readiness;
mod server;
pub mod service;
pub mod shared;
mod signals;

pub use block_on::block_on;
pub use blocking::connection::Connection as BlockingConnection;
pub use counters::{Counters, Denied, Handshake};
pub use error::EngineError;
pub use inherited::{InheritedError, inherited};
pub use listen::Listeners;
pub use model::{Model, UnknownModel, start};
pub use options::{Options, Overload, UnknownOverload};
pub use server::Server;
