//! A terminal that is drawn over in place, and the key that ends it.
//!
//! Invariant: whatever happens, the terminal is given back as it was found.

use std::io::{IsTerminal as _, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use super::picture::Size;

/// The terminal, while it is ours.
pub(super) struct Screen {
    keys: mpsc::UnboundedReceiver<u8>,
    found: Option<Termios>,
}

impl Screen {
    /// Takes the terminal; none if standard output is none.
    pub(super) fn open() -> Option<Self> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        let found = listen_for_keys();
        let (to, keys) = mpsc::unbounded_channel();
        if found.is_some() {
            std::thread::spawn(move || {
                let mut byte = [0];
                while matches!(std::io::stdin().lock().read(&mut byte), Ok(1)) && to.send(byte[0]).is_ok() {}
            });
        }
        print!("\x1b[?1049h\x1b[?25l");
        Some(Self { keys, found })
    }

    /// Draws the picture for the screen as it is now over what is there: line by line, so that nothing flickers.
    pub(super) fn draw(&self, picture: impl FnOnce(Size) -> String) {
        // After the last character of a full line the terminal would take its erasing for that character.
        let drawn: Vec<String> = picture(size()).lines().map(|line| format!("\x1b[K{line}")).collect();
        print!("\x1b[H{}\n\x1b[J", drawn.join("\n"));
        std::io::stdout().flush().ok();
    }

    /// Returns when q is pressed.
    pub(super) async fn quit(&mut self) {
        while let Some(key) = self.keys.recv().await {
            if matches!(key, b'q' | b'Q') {
                return;
            }
        }
        std::future::pending().await
    }
}

/// At least two rows and columns, whatever the terminal says. The last row stays free.
fn size() -> Size {
    match tcgetwinsize(std::io::stdout()) {
        Ok(Winsize { ws_row: rows @ 3.., ws_col: columns @ 2.., .. }) => {
            Size { rows: usize::from(rows) - 1, columns: columns.into() }
        }
        Ok(_) | Err(_) => Size { rows: 23, columns: 80 },
    }
}

/// Keys arrive as they are pressed; Ctrl-C stays a signal. What the terminal was like, if it is one.
fn listen_for_keys() -> Option<Termios> {
    let stdin = std::io::stdin();
    let found = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten()?;
    let mut ours = found.clone();
    ours.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Now, &ours).ok()?;
    Some(found)
}

impl Drop for Screen {
    fn drop(&mut self) {
        print!("\x1b[?25h\x1b[?1049l");
        std::io::stdout().flush().ok();
        if let Some(found) = &self.found {
            tcsetattr(std::io::stdin(), OptionalActions::Now, found).ok();
        }
    }
}
