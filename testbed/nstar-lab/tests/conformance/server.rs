//! The real program as a server, stopped when dropped.

use std::{
    io,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use engine::Model;

use crate::{
    client::Client,
    content::content,
    program::{Folder, Nstar, Outcome, PATIENCE, Running},
    stream,
};

/// A file server and a few files, or a sink.
pub(crate) struct Served {
    pub(crate) model: Model,
    pub(crate) address: SocketAddr,
    pub(crate) folder: Folder,
    secure: bool,
    running: Running,
}

/// What to serve, and how.
pub(crate) struct Setup {
    model: Model,
    words: Vec<String>,
    wrapper: Vec<String>,
    listen: String,
    secure: bool,
    folder: Folder,
}

impl Setup {
    /// Files of these lengths: `/files/LENGTH` has LENGTH bytes.
    pub(crate) fn files(model: Model, lengths: &[usize]) -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("shared")).unwrap();
        for length in lengths {
            folder.write(&format!("shared/{length}"), content(*length));
        }
        Self::files_in(model, folder)
    }

    /// The files in the folder of an earlier server.
    pub(crate) fn files_in(model: Model, folder: Folder) -> Self {
        Self::new(model, "files --root shared --accounts none", folder)
    }

    /// Room booking, with this many rooms.
    pub(crate) fn booking(model: Model, rooms: usize) -> Self {
        let flags = format!("booking --database booking.db --allow-test-ids --rooms {rooms}");
        Self::new(model, &flags, Folder::new())
    }

    /// Accounts.
    pub(crate) fn accounts(model: Model) -> Self {
        Self::new(model, "accounts --database accounts.db", Folder::new())
    }

    /// A file of 5 bytes, for the users of an accounts server. Credentials are cached for an hour.
    pub(crate) fn files_behind(model: Model, accounts: SocketAddr) -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("shared")).unwrap();
        folder.write("shared/5", content(5));
        let flags = format!("files --root shared --accounts http://{accounts} --auth-cache 1h");
        Self::new(model, &flags, folder)
    }

    /// The upload sink.
    pub(crate) fn sink(model: Model) -> Self {
        Self::new(model, "sink", Folder::new())
    }

    fn new(model: Model, system: &str, folder: Folder) -> Self {
        let listen = "127.0.0.1:0".into();
        let (words, wrapper) = (vec!["serve".into()], Vec::new());
        let setup = Self { model, words, wrapper, listen, secure: false, folder };
        let setup = setup.with(system).with(&format!("--engine {model}"));
        if std::env::var_os("NSTAR_TLS").is_some() { setup.secured() } else { setup }
    }

    /// Over TLS.
    pub(crate) fn secured(mut self) -> Self {
        if std::mem::replace(&mut self.secure, true) {
            return self;
        }
        let flags = stream::certificate(&self.folder);
        self.with(flags)
    }

    /// Sets the address to listen on, instead of any free port.
    pub(crate) fn at(mut self, address: impl ToString) -> Self {
        self.listen = address.to_string();
        self
    }

    /// Adds flags.
    pub(crate) fn with(mut self, flags: &str) -> Self {
        self.words.extend(flags.split_whitespace().map(String::from));
        self
    }

    /// Runs the server by this command, such as `prlimit --nofile=64:64`.
    pub(crate) fn under(mut self, wrapper: &str) -> Self {
        self.wrapper.extend(wrapper.split_whitespace().map(String::from));
        self
    }

    /// Starts a server that is expected to end by itself.
    pub(crate) fn run(&self) -> Outcome {
        self.call().run()
    }

    pub(crate) fn start(self) -> Served {
        let mut running = self.call().start();
        let address = running.listening().parse().unwrap();
        Served { model: self.model, address, folder: self.folder, secure: self.secure, running }
    }

    fn call(&self) -> Nstar {
        let listen = ["--listen", &self.listen].map(String::from);
        self.folder.wrapped(&self.wrapper, self.words.iter().chain(&listen))
    }
}

impl Served {
    pub(crate) fn connect(&self) -> Client {
        self.try_connect().unwrap_or_else(|error| panic!("{}: cannot connect: {error}", self.model))
    }

    pub(crate) fn try_connect(&self) -> io::Result<Client> {
        Client::connect(self.address, self.secure, self.model)
    }

    /// The URL of a path for a load, and the flag that accepts a self-signed certificate.
    pub(crate) fn load_words(&self, path: &str) -> Vec<String> {
        let (scheme, trusting) = if self.secure { ("https", Some("-k".to_owned())) } else { ("http", None) };
        let url = format!("{scheme}://{}{path}", self.address);
        ["load".to_owned(), url].into_iter().chain(trusting).collect()
    }

    /// One value of `/metrics`, requested on a new connection, which is counted too.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.connect().get("/metrics", "Connection: close\r\n").metric(name)
    }

    /// Waits until a value of `/metrics` is this.
    pub(crate) fn wait_for_metric(&self, name: &str, expected: u64) {
        eventually(&format!("{}: {name} is {expected}", self.model), || self.metric(name) == expected);
    }

    /// Checks that it still responds.
    pub(crate) fn assert_well(&self) {
        let answer = self.connect().get("/healthz", "Connection: close\r\n");
        // What the process has given up follows.
        assert_eq!((answer.status, answer.text().lines().next()), (200, Some("ok")), "{}", self.model);
    }

    /// The anonymous memory of the server's process: RssAnon of proc_pid_status(5).
    pub(crate) fn user_memory_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1_024
    }

    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    /// Waits until it has printed this word on stderr.
    pub(crate) fn wait_until_it_says(&mut self, word: &str) {
        self.running.wait_for_stderr(word);
    }

    /// Kills it as a power failure would, and keeps its files.
    pub(crate) fn kill(self) -> Folder {
        self.signal("KILL");
        self.running.finish();
        self.folder
    }

    /// Stops it by a signal, and expects a clean end.
    pub(crate) fn stop(self) -> Outcome {
        self.signal("TERM");
        self.ends()
    }

    /// Expects a clean end, after a signal.
    pub(crate) fn ends(self) -> Outcome {
        self.ends_with(0)
    }

    /// Expects this exit code, after a signal.
    pub(crate) fn ends_with(self, code: i32) -> Outcome {
        self.running.finish().exits(code).has_not_panicked()
    }
}

/// Waits until a condition holds.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never came true: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
