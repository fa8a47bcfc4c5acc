//! A terminal that is drawn over in place, and the key that ends it.
//!
//! Invariant: whatever happens, the terminal is given back as it was found.

use std::io::{IsTerminal as _, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

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

    /// Draws `picture` over what is there: line by line, so that nothing flickers.
    pub(super) fn draw(&self, picture: &str) {
        let (rows, columns) = size();
        let lines = picture.lines().take(rows - 1).map(|line| line.chars().take(columns).collect::<String>());
        let drawn: String = lines.map(|line| format!("{line}\x1b[K\n")).collect();
        print!("\x1b[H{drawn}\x1b[J");
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

/// Rows and columns; at least two of each, whatever the terminal says.
fn size() -> (usize, usize) {
    match tcgetwinsize(std::io::stdout()) {
        Ok(Winsize { ws_row: rows @ 2.., ws_col: columns @ 2.., .. }) => (rows.into(), columns.into()),
        Ok(_) | Err(_) => (24, 80),
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
