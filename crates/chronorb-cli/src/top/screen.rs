//! The terminal as a screen that is redrawn in place.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use chronorb_rt::{Deadline, Termination};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// The alternate screen of the terminal, with single keys. Dropping it restores the terminal.
pub(crate) struct Screen {
    termination: &'static Termination,
    /// The modes of the keyboard before, if there is one.
    keyboard: Option<Termios>,
}

/// An event while the screen waited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Event {
    /// The user ends it by `q`, Ctrl-C or a signal.
    Quit,
    /// Another key was pressed.
    Key(u8),
    /// The peer has closed the descriptor that was waited for.
    Closed,
    /// No event until the deadline.
    TimedOut,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn open() -> io::Result<Self> {
        let termination = Termination::install()?;
        let keyboard = if io::stdin().is_terminal() {
            Some(single_keys()?)
        } else {
            None
        };
        let screen = Self {
            termination,
            keyboard,
        };
        write(ENTER)?;
        Ok(screen)
    }

    /// Draws lines, whose number and width fit, over the previous ones.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut frame = HOME.to_owned();
        for (i, line) in lines.iter().enumerate() {
            // No line feed after the last line, which would scroll.
            frame += if i == 0 { "" } else { "\r\n" };
            frame += line;
            frame += CLEAR_TO_END_OF_LINE;
        }
        frame += CLEAR_BELOW;
        write(&frame)
    }

    /// Waits for a key, a signal, or the end of `other`; at most until `deadline`.
    pub(crate) fn wait(&self, other: impl AsFd, deadline: Deadline) -> io::Result<Event> {
        let stdin = io::stdin();
        loop {
            if self.termination.requested() {
                return Ok(Event::Quit);
            }
            let Some(left) = deadline.remaining() else {
                return Ok(Event::TimedOut);
            };
            let keys = match self.keyboard {
                Some(_) => PollFlags::IN,
                None => PollFlags::empty(),
            };
            let signal = self.termination.fd();
            let mut descriptors = [
                PollFd::new(&signal, PollFlags::IN),
                PollFd::new(&other, PollFlags::IN),
                PollFd::new(&stdin, keys),
            ];
            // Without a keyboard it is not asked at all, since it could be closed.
            let asked = if self.keyboard.is_some() { 3 } else { 2 };
            let time_out = Timespec::try_from(left.min(LONGEST)).ok();
            match poll(&mut descriptors[..asked], time_out.as_ref()) {
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
            let [_, other, keys] = descriptors.map(|descriptor| descriptor.revents());
            if !keys.is_empty() {
                let mut key = [0];
                // Not by the standard library, which would keep what comes after it from `poll`.
                match read(&stdin, &mut key)? {
                    // The terminal has gone.
                    0 => return Ok(Event::Quit),
                    _ if [b'q', b'Q', CTRL_C].contains(&key[0]) => return Ok(Event::Quit),
                    _ => return Ok(Event::Key(key[0])),
                }
            }
            if !other.is_empty() {
                return Ok(Event::Closed);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(LEAVE);
        if let Some(keyboard) = &self.keyboard {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, keyboard);
        }
    }
}

/// Returns the columns and rows of the terminal, if it reports them.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    let is_known = size.ws_col > 0 && size.ws_row > 0;
    is_known.then_some((size.ws_col.into(), size.ws_row.into()))
}

/// Switches to single keys without echo and signals. Returns the modes before.
fn single_keys() -> io::Result<Termios> {
    let before = tcgetattr(io::stdin())?;
    let mut modes = before.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(io::stdin(), OptionalActions::Flush, &modes)?;
    Ok(before)
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

// ECMA-48, and the private modes of xterm: the other screen, no cursor, no wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_TO_END_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

const CTRL_C: u8 = 3;
/// The longest single wait.
const LONGEST: Duration = Duration::from_secs(3600);
