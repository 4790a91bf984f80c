//! Bytes go through whole, whatever their number and pace.

use engine::{Model, service::Connection};

use crate::common::*;

struct Echo;

impl Program for Echo {
    async fn serve<C: Connection>(&self, mut connection: C) {
        while let Ok(1..) = connection.fill().await {
            let input = connection.input().to_vec();
            connection.consume(input.len());
            connection.output().extend_from_slice(&input);
            if connection.flush().await.is_err() {
                return;
            }
        }
        let _ = connection.shutdown_write();
    }
}

#[test]
fn small_messages_come_back() {
    for &model in Model::ALL {
        let server = start(model, Echo);
        let mut client = connect(&server);
        for number in 0..100 {
            let said = format!("message {number}");
            assert_eq!(ask(&mut client, &said), said, "{model}");
        }
    }
}
