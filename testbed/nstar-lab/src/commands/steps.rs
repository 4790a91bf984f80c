//! Steps that published experiments are made of, besides servers and loads. They are commands, so that the runner of
//! experiments knows no system.

pub(crate) mod bookings;
pub(crate) mod database_server;
pub(crate) mod peers;
