//! Steps that published experiments are made of, besides servers and loads. They are commands, so that the runner of
//! experiments knows no system.

pub(super) mod bookings;
pub(super) mod database_server;
pub(super) mod peers;
