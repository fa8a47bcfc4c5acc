//! A row that we wrote, by which a table is known again that the server has numbered anew.
//!
//! `ALTER TABLE` often makes a new table, fills it and gives it the old name; `OPTIMIZE TABLE` does, and so do the tools
//! that change a schema while others work. Only the rows tell such a table from one that was dropped and made again.

use hapax_engine::batch::Operation;
use hapax_sql::mysql::{Session, SqlFault, Value};

use super::column::MysqlColumn;
use super::inspect::Inspected;
use super::statement::by_key;
use super::value::Stored;
use crate::table::read::key_values;
use crate::table::rows::Rows;

/// What the columns of the key hold in a row that was committed.
pub(super) type Proof = Vec<Value>;

/// The key of the last row that an epoch has written; none if it may have been removed again, or rows have no key.
pub(super) fn last_written(rows: &Rows<'_, MysqlColumn>, dead_inputs: &[usize]) -> Option<Proof> {
    for at in (0..rows.batch.len()).rev() {
        let event = rows.batch.event(at);
        if event.operation() == Operation::Delete {
            return None;
        }
        if dead_inputs.binary_search(&event.input()).is_err() {
            return key_values(rows, &event).map(|values| values.iter().map(Stored::bound).collect());
        }
    }
    None
}

/// Whether the table holds that row.
pub(super) async fn is_there(session: &mut Session, inspected: &Inspected, proof: &[Value]) -> Result<bool, SqlFault> {
    let mapping = &inspected.mapping;
    let Ok(by_key) = by_key(mapping) else { return Ok(false) };
    if proof.is_empty() || proof.len() != mapping.key.len() {
        return Ok(false);
    }
    let sql = format!("SELECT 1 FROM {} WHERE {by_key} LIMIT 1", inspected.named.quoted);
    Ok(!session.rows(&sql, proof.to_vec()).await?.is_empty())
}
