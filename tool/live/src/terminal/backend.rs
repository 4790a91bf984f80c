//! ANSI escape sequences for ratatui: as many as this view needs, which leaves a larger library out.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use ratatui_core::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::{Color, Modifier},
};

/// The size that is assumed of a terminal that does not tell its own.
const USUAL: Size = Size { width: 80, height: 24 };

/// Writes cells as ANSI escape sequences.
#[derive(Debug)]
pub(super) struct Ansi<W> {
    out: W,
    colour: bool,
    cursor: Position,
}

impl<W: Write> Ansi<W> {
    pub(super) fn new(out: W, colour: bool) -> Self {
        Self { out, colour, cursor: Position::ORIGIN }
    }

    fn send(&mut self, sequence: &str) -> io::Result<()> {
        self.out.write_all(sequence.as_bytes())
    }
}

/// Selects how following characters look: the modifiers and colours that the view uses.
fn look(cell: &Cell) -> String {
    let mut sequence = String::from("\x1b[0");
    for (modifier, code) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2")] {
        if cell.modifier.contains(modifier) {
            sequence += code;
        }
    }
    match cell.fg {
        Color::Cyan => sequence += ";36",
        Color::Yellow => sequence += ";33",
        _ => {}
    }
    sequence.push('m');
    sequence
}

impl<W: Write> Backend for Ansi<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let (mut text, mut next, mut looks) = (String::new(), None, String::new());
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                // Writing to a string does not fail.
                let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
            }
            let wanted = if self.colour { look(cell) } else { String::new() };
            if wanted != looks {
                text += &wanted;
                looks = wanted;
            }
            text += cell.symbol();
            next = Some((x + 1, y));
        }
        if self.colour && !looks.is_empty() {
            text += "\x1b[0m";
        }
        self.send(&text)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.send("\x1b[?25l")
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        // Asked for at the end, when the terminal may have gone away, which is no reason to complain.
        let _ = self.send("\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        let Position { x, y } = self.cursor;
        self.send(&format!("\x1b[{};{}H", y + 1, x + 1))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.send(match region {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[0J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[0K",
        })
    }

    fn size(&self) -> io::Result<Size> {
        let told = rustix::termios::tcgetwinsize(io::stderr());
        let known = told.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        Ok(known.map_or(USUAL, |size| Size::new(size.ws_col, size.ws_row)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
