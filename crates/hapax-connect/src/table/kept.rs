//! Counters and moments as our own tables keep them. The same in every database.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock of this machine, in milliseconds since 1970: for people and for leases, never for safety.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A counter as it is stored. Counters grow by one per event or epoch and never come near the limit.
pub(crate) fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Five counters, in the order of their columns.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn stored_totals(totals: hapax_model::ledger::Totals) -> [i64; 5] {
    [totals.read, totals.delivered, totals.filtered, totals.dead, totals.rows].map(stored)
}
