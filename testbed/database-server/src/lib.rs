//! Private database servers for experiments and tests: MariaDB or PostgreSQL as ordinary processes, with the programs
//! installed on this host, in a temporary folder and on a free loopback port. Databases that already run here are not
//! touched.
//!
//! Only the user `nstar` can log in, with a password, and it is no administrator: it can neither run programs nor touch
//! files. The administrators that installation creates are removed or have no way in. The password is in no argument and in no
//! log: clients get it in their environment.
//!
//! Both are durable by default: every commit is on disk before the server replies (`innodb_flush_log_at_trx_commit=1`,
//! `synchronous_commit=on`). The folder lies where `TMPDIR` says, so that disk determines the cost.
//!
//! Several servers can be one database, also on [hosts of their own](Host): [`GaleraCluster`] and [`StandbyPair`].

mod galera;
mod kind;
mod server;
mod settings;
mod standby;

pub use self::{
    galera::GaleraCluster,
    kind::Kind,
    server::{DatabaseServer, free_port},
    settings::{DatabaseError, Host, Identity, Password, Settings},
    standby::StandbyPair,
};
