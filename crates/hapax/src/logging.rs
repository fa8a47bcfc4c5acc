//! Logs: lines on standard error, for people or for programs.

use std::fmt;
use std::io::IsTerminal as _;

use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::cli::{LogFormat, Shared};

/// Starts logging as the command line asks for it.
pub(crate) fn start(shared: &Shared, default_level: &str) {
    let filter = shared.log_level.as_deref().unwrap_or(default_level);
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|error| {
        eprintln!("hapax: --log-level \"{filter}\" is not understood ({error}); logging at {default_level}");
        EnvFilter::new(default_level)
    });
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match shared.log_format {
        LogFormat::Text => {
            let fields = debug_fn(write_field).delimited(" ");
            builder.with_ansi(std::io::stderr().is_terminal()).fmt_fields(fields).init();
        }
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}

/// What comes from outside, such as the name of a file, never begins a line of the log, and sends nothing to a terminal.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = format!("{value:?}");
    let is_message = field.name() == "message";
    if !is_message {
        match writer.has_ansi_escapes() {
            true => write!(writer, "\x1b[3m{}\x1b[0m\x1b[2m=\x1b[0m", field.name())?,
            false => write!(writer, "{}=", field.name())?,
        }
    }
    for character in text.chars() {
        match character {
            '\n' if is_message => writer.write_str("\n    ")?,
            character if character.is_control() => write!(writer, "{}", character.escape_default())?,
            character => writer.write_char(character)?,
        }
    }
    Ok(())
}
