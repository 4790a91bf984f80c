//! php-fpm at a unix socket: a fixed number of processes.

use std::os::unix::net::UnixStream;

use super::{Address, Keeps, Running, Start};
use crate::{Trouble, process, process::Process, stage::Stage};

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    let fpm = process::find("php-fpm*", "php-fpm")?;
    let [Stage::Pool { workers, hold }] = start.tier.stages[..] else {
        return Err(start.cannot("do anything but pool=NxTIME"));
    };
    let program = start.write("index.php", include_str!("../../programs/index.php"))?;
    let folder = start.folder.display();
    let (socket, hold_us) = (format!("{folder}/fpm.sock"), hold.mean.as_micros());
    let text = format!(
        "[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
user = root
group = root
listen = {socket}
listen.backlog = 4096
pm = static
pm.max_children = {workers}
env[HOLD_US] = {hold_us}
"
    );
    let file = start.write("fpm.conf", &text)?;
    let words = [fpm, "-F".into(), "-R".into(), "-n".into(), "-y".into(), file];
    let words: Vec<_> = start.place.wrapper.iter().cloned().chain(words).collect();
    let mut process = Process::start(&words, start.folder, &[])?;
    process.wait_until(|| UnixStream::connect(&socket).is_ok())?;
    Ok(Running { address: Address::FastCgi { socket, program }, _keeps: Keeps::Process(process) })
}
