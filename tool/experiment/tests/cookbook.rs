//! What the pages of the cookbook and of the guide say to write is an experiment.

use std::{fs, path::Path};

use experiment::{
    definition::Experiment,
    document::{Disk, read},
};

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pieces of TOML in a page, without the indentation of the list they stand in.
fn pieces(page: &str) -> Vec<String> {
    let page = text(page);
    let fenced = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    fenced.map(|piece| piece.lines().map(|line| format!("{}\n", line.trim_start())).collect()).collect()
}

/// The section of the file that begins with this line, up to the next.
fn section(file: &str, first: &str) -> String {
    let from = file.find(first).unwrap_or_else(|| panic!("no {first} in {file}"));
    let rest = &file[from..];
    let end = rest[1..].find("\n[").map_or(rest.len(), |end| end + 1);
    rest[..end].to_owned()
}

/// The experiment that a page of the cookbook says to make of its example: each piece of text in place of another.
fn made_yours(name: &str, changes: &[(&str, &str)]) -> Experiment {
    let mut file = text(&format!("experiments/cookbook/{name}.toml"));
    for (from, to) in changes {
        assert!(file.contains(from), "{name} has no {from} any more, which its page is about");
        file = file.replace(from, to);
    }
    read(Path::new("mine.toml"), &file, &Disk).unwrap_or_else(|error| panic!("{name}: {error}\n{file}"))
}

fn piece(name: &str) -> String {
    let pieces = pieces(&format!("docs/cookbook/{name}.md"));
    let [piece] = pieces.as_slice() else { panic!("{name} has {} pieces", pieces.len()) };
    piece.clone()
}

#[test]
fn what_the_cookbook_says_to_vary_is_varied() {
    let axis = |name: &str| section(&text(&format!("experiments/cookbook/{name}.toml")), "[axis]");
    let nginx = made_yours(
        "nginx-workers",
        &[
            (&axis("nginx-workers"), &piece("nginx-workers")),
            ("worker_processes ${workers};", "worker_processes 2;"),
            ("access_log off;", "access_log off; keepalive_timeout ${keepalive};"),
        ],
    );
    let gunicorn = made_yours(
        "gunicorn-workers",
        &[
            (&axis("gunicorn-workers"), &piece("gunicorn-workers")),
            ("\"${workers}\",", "\"${workers}\", \"--threads\", \"${threads}\","),
        ],
    );
    let php = made_yours(
        "php-fpm-pool",
        &[
            (&axis("php-fpm-pool"), &piece("php-fpm-pool")),
            ("pm = static", "pm = ${pm}"),
            ("max_children = ${children}", "max_children = 4"),
        ],
    );
    let variants = [nginx, gunicorn, php].map(|one| (one.axis, one.variants.len()));
    let expected = [("keepalive", 2), ("workers, threads", 6), ("pm", 2)];
    assert_eq!(variants, expected.map(|(axis, variants)| (axis.to_owned(), variants)));
}

/// The page left the script of the database that is left out in place, which names its port.
#[test]
fn one_of_the_two_databases_can_be_left_out() {
    let name = "two-databases";
    let file = text("experiments/cookbook/two-databases.toml");
    let of_mariadb = "[[text]]\npath = \"mariadb.sh\"";
    let script = &file[file.find(of_mariadb).expect("its script")..];
    let script = &script[..script.find("# One password").expect("what follows")];
    let variants = section(&file, "[[variant]]\nname = \"postgres\"");
    let second = section(&file, "[[variant]]\nname = \"mariadb\"");
    let database = made_yours(
        name,
        &[
            ("varied = \"database\"\n", ""),
            (&variants, &piece(name)),
            (&second, ""),
            (script, ""),
            (&section(&file, "[[process]]\nname = \"mariadb\""), ""),
            ("-D $data -h", "-D $data -c shared_buffers=${buffers} -h"),
        ],
    );
    assert_eq!((database.axis.as_str(), database.variants.len()), ("buffers", 2));
}

/// The first two steps of `Your own in ten minutes` make one file; so do the first and the scenario.
#[test]
fn the_steps_of_the_guide_are_an_experiment() {
    let pieces = pieces("docs/experiments.md");
    let [start, url, scenario, ..] = pieces.as_slice() else { panic!("too few pieces") };
    for work in [url, scenario] {
        let file = format!("{start}\n{work}");
        let experiment = read(Path::new("mine.toml"), &file, &Disk).unwrap_or_else(|e| panic!("{e}\n{file}"));
        assert_eq!((experiment.axis.as_str(), experiment.variants.len()), ("workers", 4));
    }
}
