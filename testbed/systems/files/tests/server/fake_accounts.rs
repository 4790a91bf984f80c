//! A scripted accounts server that counts credential checks. It revokes nothing.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

type Script = Box<dyn Fn() -> Vec<u8> + Send + Sync>;

/// A scripted accounts server.
pub(crate) struct FakeAccounts {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
    script: Arc<Mutex<Arc<Script>>>,
}

impl FakeAccounts {
    /// Sends what `script` returns for each request, byte for byte. Closes the connection if that is empty.
    pub(crate) fn start(script: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let script: Arc<Mutex<Arc<Script>>> = Arc::new(Mutex::new(Arc::new(Box::new(script))));
        let (counted, followed) = (Arc::clone(&asked), Arc::clone(&script));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (counted, followed) = (Arc::clone(&counted), Arc::clone(&followed));
                thread::spawn(move || serve(&stream, &counted, &followed));
            }
        });
        Self { address, asked, script }
    }

    /// Accepts every credential.
    pub(crate) fn right() -> Vec<u8> {
        answer(200, r#"{"name":"ann"}"#)
    }

    /// Refuses every credential.
    pub(crate) fn wrong() -> Vec<u8> {
        answer(401, "{}")
    }

    pub(crate) fn follow(&self, script: impl Fn() -> Vec<u8> + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(Box::new(script));
    }

    /// The number of requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

pub(crate) fn answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .into()
}

fn serve(stream: &TcpStream, asked: &AtomicUsize, script: &Mutex<Arc<Script>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        if lines.by_ref().take_while(|line| !line.is_empty()).count() == 0 {
            return;
        }
        let bytes = if line.starts_with("GET /revocations") {
            answer(200, r#"{"revision":1,"buckets":[]}"#)
        } else {
            asked.fetch_add(1, SeqCst);
            let script = Arc::clone(&script.lock().unwrap());
            script()
        };
        let mut out = stream;
        if bytes.is_empty() || out.write_all(&bytes).is_err() {
            return;
        }
    }
}
