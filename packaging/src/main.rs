//! Writes what is shipped beside the programs: manual pages and completions of shells, from the flags themselves, and the
//! terms of everything inside.

mod copyright;
mod licences;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory, Parser};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;
use nstar::exit::{self, Exit, Failure};

/// Shells that complete the command line.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Commands of nstar that nstar-lab carries out and describes: the page of `nstar lab` is that of nstar-lab itself.
const OF_NSTAR_LAB: [&str; 3] = ["lab", "serve", "share"];

/// Pages that lead to one of nstar-lab's.
const SEE_NSTAR_LAB: [(&str, &str); 2] =
    [("nstar-serve", "nstar-lab-serve"), ("nstar-share", "nstar-lab-share")];

/// Writes the manual pages, the completions and the terms of nstar and nstar-lab
#[derive(Debug, Parser)]
#[command(name = "packaging")]
struct Flags {
    /// Folder to write to: NAME/man/*.1, NAME/bash/NAME.bash, NAME/zsh/_NAME, NAME/fish/NAME.fish, NAME/copyright of each
    /// program
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

fn main() -> std::process::ExitCode {
    let flags = Flags::parse();
    let written = write_all(&flags.to);
    let named = |error| Failure::failed(format!("cannot write to {}: {error}", flags.to.display()));
    exit::end(written.map(|()| Exit::Done).map_err(named))
}

fn write_all(to: &Path) -> io::Result<()> {
    let (tool, lab) = (to.join("nstar"), to.join("nstar-lab"));
    write_pages(nstar::flags::Flags::command(), &OF_NSTAR_LAB, &tool.join("man"))?;
    write_pages(nstar_lab::command(), &[], &lab.join("man"))?;
    for (name, of) in SEE_NSTAR_LAB {
        fs::write(lab.join("man").join(format!("{name}.1")), format!(".so man1/{of}.1\n"))?;
    }
    write_completions(nstar::flags::Flags::command(), &tool)?;
    write_completions(nstar_lab::command(), &lab)?;
    fs::write(tool.join("copyright"), copyright::text("nstar")?)?;
    fs::write(lab.join("copyright"), copyright::text("nstar-lab")?)
}

/// Writes a page for the command and for each below it that is not hidden or described elsewhere.
fn write_pages(command: Command, elsewhere: &[&str], to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let mut command = command.disable_help_subcommand(true);
    // Gives commands their whole names.
    command.build();
    write_page(&command, elsewhere, to)
}

fn write_page(command: &Command, elsewhere: &[&str], to: &Path) -> io::Result<()> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    for command in below.filter(|below| !elsewhere.contains(&below.get_name())) {
        write_page(command, &[], to)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let version = env!("CARGO_PKG_VERSION");
    // The version in place of a date: the same page whenever it is written.
    let page = Man::new(command.clone()).title(name).date(version).source(format!("nstar {version}"));
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(to.join(page.get_filename()), text)
}

fn write_completions(mut command: Command, to: &Path) -> io::Result<()> {
    let name = command.get_name().to_owned();
    for shell in SHELLS {
        let folder = to.join(shell.to_string());
        fs::create_dir_all(&folder)?;
        generate_to(shell, &mut command, name.clone(), folder)?;
    }
    Ok(())
}
