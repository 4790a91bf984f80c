//! The concurrency models: they move the bytes and poll the service.
//!
//! A service is written once against [`service`] and runs on every [`Model`]. No model knows what
//! service it runs; no service knows which model runs it. [`start`] brings the two together,
//! [`Server::drain`] ends it, and [`offload`] takes work that blocks or computes long off the loops.
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
//! # The families, and where a model belongs
//!
//! **Blocking** (`blocking`): calls wait in the kernel, inside the future's poll, which therefore is
//! ready at once; a thread sleeps for everything else a future may wait for, such as [`offload`].
//! `threads` is this family with a thread per connection, `pool` with a fixed number of them and a bounded
//! queue, whose overflow is a matter of [`Overload`]. `processes` (a process forked for each connection) and
//! `prefork` (a fixed number of them, which accept for themselves) take the same connection; `process` says who
//! forks, watches and ends whom, and why that is safe.
//!
//! **Readiness** (`readiness`): a loop over a `Poller`, chosen at compile time; each task is polled
//! straight from the event that makes it ready. Transfers are tried first, and a socket is shown to
//! the poller only when it would have to wait. `epoll`, `poll`, `select` (which refuses a descriptor
//! beyond its 1 024) and `polling` (which calls everything ready) are each a file.
//!
//! **Completion**: `aio` and `uring` hand a buffer over and get it back full. The connection owns its
//! buffers and lends them only between calls, so they can do so behind the same trait. `aio` reads so on the
//! readiness family's loop; `uring` has a connection and loop of its own.
//!
//! # What a service may rely on
//!
//! - A connection's calls wake the task that makes them, not the waker in the context. Combinators that poll
//!   each of their futures whenever they are polled work in the models with loops; those that poll only
//!   what was woken (as `FuturesUnordered`) do not. In the blocking family calls run one after another.
//! - Wakers work from every thread.
//! - A panic closes its connection only; it is logged and counted.
//! - Where a model runs services in processes of their own ([`Model::forks`]), they are made after the fork. What
//!   they share is the factory as it was when the server started, and [`shared`] memory.

mod aio;
mod block_on;
mod blocking;
mod buffer;
mod clock;
mod control;
mod counters;
mod epoll;
mod error;
mod listen;
mod loops;
mod model;
mod net;
pub mod offload;
mod panics;
mod poll;
mod polling;
mod pool;
mod prefork;
mod process;
mod processes;
mod readiness;
mod select;
mod server;
pub mod service;
pub mod shared;
mod threads;
mod uring;

pub use block_on::block_on;
pub use blocking::Connection as BlockingConnection;
pub use counters::{Counters, Denied, Handshake};
pub use error::EngineError;
pub use listen::check as check_address;
pub use model::{Model, UnknownModel};
pub use server::{Options, Overload, Server, UnknownOverload, start};
