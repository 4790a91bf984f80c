//! Database servers of one's own: MariaDB or PostgreSQL as ordinary processes, in a temporary folder, on a free loopback
//! port, with what is installed on this host. Nothing of a database that runs here already is touched.
//!
//! Both are durable as they come: every commit is on the disk before it is answered (`innodb_flush_log_at_trx_commit=1`,
//! `synchronous_commit=on`). The folder lies where `TMPDIR` says, and so does what that costs.

mod error;
mod kind;
mod launch;
mod port;
mod server;

pub use self::{
    error::DatabaseError,
    kind::Kind,
    port::free_port,
    server::{DatabaseServer, Identity, Settings},
};
