//! Uploads without HTTP: bytes until the client closes its side.

use std::{io, time::Duration};

use engine::service::Connection;

use crate::{intake::Intake, options::Verify, totals::Totals};

/// How long a client may send nothing. Each idle one holds a descriptor.
const IDLE: Duration = Duration::from_secs(60);

/// Takes everything one client sends.
pub(crate) async fn serve<C: Connection>(mut connection: C, totals: &Totals) {
    let mut intake = Intake::new(totals, Verify::Nothing);
    let outcome = take_all(&mut connection, &mut intake).await;
    let (peer, bytes) = (connection.peer(), intake.bytes());
    match outcome {
        Ok(()) => {
            intake.finish();
            // Whether the client is still there to hear of it does not matter.
            let _ = connection.finish().await;
            tracing::info!(target: "access", %peer, bytes, "closed");
        }
        Err(error) => {
            totals.failed();
            tracing::info!(target: "access", %peer, bytes, %error, "cut off");
        }
    }
}

async fn take_all<C: Connection>(connection: &mut C, intake: &mut Intake<'_>) -> io::Result<()> {
    loop {
        connection.set_deadline(Some(IDLE));
        if connection.fill().await? == 0 {
            return Ok(());
        }
        intake.take(connection.input());
        let taken = connection.input().len();
        connection.consume(taken);
    }
}
