//! What one statement of rows did, booked by the table's mode. Pure.

use hapax_engine::sink::Written;
use hapax_model::letter::Cause;
use hapax_model::mode::ConflictMode;

use super::shape::RowKind;
use super::tries::swallowed;

/// What one statement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) kind: RowKind,
    pub(crate) sent: u64,
    pub(crate) changed: u64,
    pub(crate) created: u64,
    /// Rows that had nothing to do, where the database was asked: a newer one is there, or the one to delete is not.
    pub(crate) idle: Option<u64>,
}

/// Books what a statement did. In `append` and `update` every row sent must have changed one; elsewhere those must that
/// had something to do, where that is known.
pub(crate) fn book(written: &mut Written, mode: ConflictMode, table: &str, done: Done) -> Result<(), Cause> {
    let Done { kind, sent, changed, created, idle } = done;
    if idle.is_some_and(|idle| changed + idle < sent) {
        return Err(swallowed(table, sent - idle.unwrap_or(0), changed));
    }
    match (kind, mode) {
        (RowKind::Upsert, ConflictMode::Append | ConflictMode::Update) if changed != sent => {
            return Err(swallowed(table, sent, changed));
        }
        (RowKind::Upsert, ConflictMode::Append | ConflictMode::Ignore) => written.inserts += changed,
        (RowKind::Upsert, ConflictMode::Update | ConflictMode::Newer) => {
            written.inserts += created;
            written.updates += changed - created;
        }
        (RowKind::Delete | RowKind::Tombstone, _) => written.deletes += changed,
    }
    written.upserts += sent;
    written.unchanged += sent.saturating_sub(changed);
    Ok(())
}
