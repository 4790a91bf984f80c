//! A terminal for programs that act otherwise on one.

/// Runs a command with a terminal of 80 columns and 24 rows as its stdin and stderr, and does something once a text was seen on
/// it. Keeps what the terminal was given in `screen` and what came on stdout in `stdout`, and ends with the command's exit status.
pub(crate) const TERMINAL: &str = r#"
import fcntl, os, pty, signal, struct, subprocess, sys, termios, time
action, text, *words = sys.argv[1:]
master, slave = pty.openpty()
def size(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
size(24, 80)
child = subprocess.Popen(words, stdin=slave, stdout=open("stdout", "wb"), stderr=slave, start_new_session=True)
os.close(slave)
seen, done = b"", False
while True:
    try: part = os.read(master, 65536)
    except OSError: break
    if not part: break
    seen += part
    if done or text.encode() not in seen: continue
    done = True
    if action == "resize": size(40, 120)
    if action == "interrupt": child.send_signal(signal.SIGINT)
    if action == "interrupt twice":
        child.send_signal(signal.SIGINT)
        time.sleep(0.8)
        child.send_signal(signal.SIGINT)
    if action.startswith("answer "): os.write(master, action[len("answer "):].encode() + b"\n")
    if action == "hang up":
        os.close(master)
        break
open("screen", "wb").write(seen)
status = child.wait()
sys.exit(status if status >= 0 else 128 - status)
"#;
