//! Which column the server means when it refuses a value that it reads itself, and names no column.
//!
//! Reads: the row, the live columns, the server's words. Writes: nothing.

use hapax_model::letter::Cause;

use super::chunk::Place;
use super::column::{Kind, PostgresColumn};
use super::convert::Stored;
use super::row_error::VALUE;
use crate::table::shape::RowShape;

/// How much of the server's words a letter keeps: they may repeat the whole value.
const CHARACTERS: usize = 400;

/// The cause, with the columns that can be meant: those of the type that it names, else all that the server reads.
pub(super) fn named(place: &Place<'_>, shape: &RowShape, event: usize, cause: Cause) -> Cause {
    if cause.code != VALUE {
        return cause;
    }
    let event = place.rows.batch.event(event);
    let filled = |at: &&usize| !matches!(place.rows.value(&event, **at), Ok(Stored::Null) | Err(_));
    let read: Vec<&PostgresColumn> = shape
        .bound
        .iter()
        .filter(filled)
        .map(|at| &place.rows.mapping.columns[*at].live)
        .filter(|column| is_read_by_server(column.kind))
        .collect();
    let meant: Vec<&PostgresColumn> =
        read.iter().copied().filter(|column| cause.message.contains(bare(column))).collect();
    let columns = if meant.is_empty() { read } else { meant };
    let names: Vec<String> =
        columns.iter().map(|column| format!("column \"{}\" ({})", column.name, column.declared)).collect();
    if names.is_empty() {
        return cause;
    }
    let names = names.join(" or ");
    let message: String = cause.message.chars().take(CHARACTERS).collect();
    Cause {
        message: format!("{names} refuses the value: {message}"),
        fingerprint: format!("{names} refuses the value: {}", cause.fingerprint),
        ..cause
    }
}

fn is_read_by_server(kind: Kind) -> bool {
    kind.is_cast()
}

/// The type as the server's messages call it.
fn bare(column: &PostgresColumn) -> &str {
    let name = column.declared.trim_end_matches("[]");
    name.split('(').next().unwrap_or(name).rsplit('.').next().unwrap_or(name)
}
