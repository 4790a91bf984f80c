//! The view on a terminal: a screen of its own, beside what scrolls, for as long as the sweep takes.
//!
//! It is drawn on stderr, where progress goes. Keys do what they always do, since the terminal stays in its usual mode; so
//! Ctrl-C is a signal, and nothing has to be put right but the screen and its cursor ([`restore_terminal`]).

mod backend;
mod drawing;

use std::{
    io::{self, BufWriter, Stderr, Write},
    panic,
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use ratatui_core::{layout::Size, terminal::Terminal};

use self::backend::Ansi;
use crate::Shared;

/// How often is looked whether the terminal changed its size.
const LOOK: Duration = Duration::from_millis(200);

/// Switches to a screen of its own, and hides the cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";

/// Shows the cursor again, and goes back to the screen that scrolls.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Whether the screen is ours. Held while anything is drawn, so that nothing is drawn after it was given back.
static HOLD: Mutex<Hold> = Mutex::new(Hold::Left);

/// Whether the screen is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// It is not.
    Left,
    /// It is, and empty where it was entered the given number of times before it was drawn.
    Entered(u32),
    /// It will be again once the process goes on.
    Suspended(u32),
}

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether colours and bold letters may be used.
    pub colour: bool,
    /// Whether anything beyond ASCII may be used.
    pub unicode: bool,
}

/// The view. It leaves the terminal as it was when dropped.
#[derive(Debug)]
pub struct Screen {
    shared: Shared,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Shows a sweep from now on.
    ///
    /// # Errors
    /// The terminal takes no output, or there is no thread to draw it.
    pub fn open(shared: &Shared, style: Style) -> io::Result<Self> {
        restore_on_panic();
        enter()?;
        let over = Arc::new(AtomicBool::new(false));
        let (seen, until) = (shared.clone(), over.clone());
        let drawing = thread::Builder::new().name("screen".into()).spawn(move || {
            // A terminal that has gone away ends the view, not the sweep.
            let _ = show(&seen, style, &until);
        });
        match drawing {
            Ok(thread) => Ok(Self { shared: shared.clone(), over, thread: Some(thread) }),
            Err(error) => {
                restore_terminal();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // It ended by itself where the terminal has gone away.
            let _ = thread.join();
        }
        restore_terminal();
    }
}

/// Gives the terminal back as it was, from any thread, if the view has it.
pub fn restore_terminal() {
    leave(|_| Hold::Left);
}

/// The same until [`resume_terminal`]: for a process that is about to be stopped.
pub fn suspend_terminal() {
    leave(Hold::Suspended);
}

/// Takes the terminal again, if it was suspended.
pub fn resume_terminal() {
    let mut hold = hold();
    if let Hold::Suspended(times) = *hold
        && write(ENTER).is_ok()
    {
        *hold = Hold::Entered(times.wrapping_add(1));
    }
}

fn leave(next: impl FnOnce(u32) -> Hold) {
    // If it is being drawn just now, perhaps by the thread that panics: to leave twice does no harm.
    if let Ok(mut hold) = HOLD.try_lock() {
        let Hold::Entered(times) = *hold else { return };
        *hold = next(times);
    }
    // The terminal may have gone away.
    let _ = write(LEAVE);
}

fn hold() -> MutexGuard<'static, Hold> {
    HOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn enter() -> io::Result<()> {
    let mut hold = hold();
    write(ENTER)?;
    *hold = Hold::Entered(0);
    Ok(())
}

fn write(sequence: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr();
    stderr.write_all(sequence)?;
    stderr.flush()
}

/// What a panic says belongs on the screen that stays.
fn restore_on_panic() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let said_before = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            restore_terminal();
            said_before(about);
        }));
    });
}

/// Draws whenever something changed, until it is over or the screen was given back.
fn show(shared: &Shared, style: Style, over: &AtomicBool) -> io::Result<()> {
    let mut terminal = Terminal::new(Ansi::new(BufWriter::<Stderr>::new(io::stderr()), style.colour))?;
    let mut shown: Option<(u64, bool, Size, u32)> = None;
    loop {
        let version = shown.map_or(u64::MAX, |(version, ..)| version);
        let seen = shared.wait(version, LOOK);
        let hold = hold();
        let times = match *hold {
            _ if over.load(Ordering::Relaxed) => return Ok(()),
            Hold::Left => return Ok(()),
            Hold::Suspended(_) => continue,
            Hold::Entered(times) => times,
        };
        let state = (seen.version, seen.known.ending, terminal.size()?, times);
        if shown == Some(state) {
            continue;
        }
        if shown.is_some_and(|(.., before)| before != times) {
            terminal.clear()?;
        }
        terminal.draw(|frame| drawing::draw(frame, &seen.known, style))?;
        shown = Some(state);
    }
}
