//! Standard output that may close before we end, as in `hapax dlq list | head`.
//!
//! The standard macros panic then. These stand in for them everywhere in the program: what nobody reads is dropped,
//! and what the command was doing goes on to its end.

use std::fmt;
use std::io::{self, Write as _};

macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::output::write(format_args!("\n")) };
    ($($text:tt)*) => {{
        $crate::output::write(format_args!($($text)*));
        $crate::output::write(format_args!("\n"));
    }};
}

/// Writes to standard output. Only a reader who has gone away is passed over in silence.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    match io::stdout().lock().write_fmt(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => eprintln!("hapax: standard output: {error}"),
        Ok(()) | Err(_) => {}
    }
}
