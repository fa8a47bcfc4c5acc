//! Rows of one shape as one statement: how many may go together, how they are sent, what came of them.
//!
//! Invariant: no message is larger than the server takes, and no statement has more values than the protocol counts.

use std::sync::Arc;

use hapax_engine::batch::Operation;
use hapax_model::letter::{Cause, Stage};
use hapax_model::mode::ConflictMode;
use hapax_sql::mysql::{Outcome, Session, SqlFault, Value};

use super::column::MysqlColumn;
use super::error::During;
use super::plan::Ready;
use super::row_error::{self, ROW_TOO_LARGE};
use super::statement::{Named, Statement, WAS_THERE, statement};
use crate::table::booked::Done;
use crate::table::mapping::WriteOrder;
use crate::table::rows::Rows;
use crate::table::shape::{AbsentSet, RowKind, RowShape};
use crate::table::tries::Fault;

/// How many values one statement can have: the protocol counts them in 16 bits.
const MOST_VALUES: usize = 65_535;
/// How many keys one DELETE names at most: the server plans each of them.
const MOST_DELETES: usize = 128;
/// What a message has besides its values, with room to spare.
const FRAME_BYTES: usize = 64;

/// Where rows go, and as what.
pub(super) struct Place<'a> {
    pub(super) table: &'a Named,
    pub(super) rows: &'a Rows<'a, MysqlColumn>,
    pub(super) per_statement: usize,
    /// `max_allowed_packet`.
    pub(super) largest: usize,
    pub(super) target: &'a str,
    pub(super) during: During,
}

/// A shape with its statement.
pub(super) struct Shaped {
    pub(super) shape: RowShape,
    pub(super) statement: Statement,
    /// How many rows one statement carries at most.
    pub(super) most: usize,
}

/// The shapes of a batch.
#[derive(Default)]
pub(super) struct Shapes {
    all: Vec<Arc<Shaped>>,
    last: usize,
    absent: AbsentSet,
}

impl Shapes {
    /// The shape of an event, as an index.
    pub(super) fn of(&mut self, place: &Place<'_>, event: usize) -> Result<usize, Fault> {
        let rows = place.rows;
        let event = rows.batch.event(event);
        // Most events have the shape of the one before.
        let as_before = |shaped: &Arc<Shaped>| {
            let shape = &shaped.shape;
            (shape.kind, event.operation()) == (RowKind::Upsert, Operation::Upsert)
                && rows.lacks_just(&event, &shape.absent)
        };
        if self.all.get(self.last).is_some_and(as_before) {
            return Ok(self.last);
        }
        let kind = rows.kind(&event).map_err(Fault::Row)?;
        rows.absent(&event, kind, &mut self.absent);
        let same = |shaped: &Arc<Shaped>| shaped.shape.kind == kind && shaped.shape.absent == self.absent;
        self.last = match self.all.iter().position(same) {
            Some(known) => known,
            None => {
                let shape = RowShape::new(rows.mapping, kind, self.absent.clone());
                let quoting = |error: hapax_sql::QuoteError| Fault::Schema(error.to_string());
                let statement = statement(place.table, rows.mapping, &shape).map_err(quoting)?;
                let most = place.most_rows(&shape, &statement);
                self.all.push(Arc::new(Shaped { shape, statement, most }));
                self.all.len() - 1
            }
        };
        Ok(self.last)
    }

    pub(super) fn get(&self, at: usize) -> &Arc<Shaped> {
        &self.all[at]
    }
}

impl Place<'_> {
    pub(super) fn fault(&self, fault: &SqlFault) -> Fault {
        row_error::fault(self.target, self.during, fault)
    }

    /// How many rows one statement carries at most, whatever they hold.
    fn most_rows(&self, shape: &RowShape, statement: &Statement) -> usize {
        let by_kind = match shape.kind {
            // One DELETE takes its rows in the order of an index, whatever order it names them in.
            RowKind::Delete if self.rows.mapping.order != WriteOrder::AnyOrder => 1,
            RowKind::Delete => MOST_DELETES,
            RowKind::Upsert | RowKind::Tombstone => usize::MAX,
        };
        let by_values = MOST_VALUES / shape.bound.len().max(1);
        let text = self.largest.saturating_sub(FRAME_BYTES + statement.frame_bytes());
        let by_text = text / statement.row_bytes().max(1);
        self.per_statement.min(by_kind).min(by_values).min(by_text).max(1)
    }

    /// Whether so many bytes of values fit into one message.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        bytes + FRAME_BYTES <= self.largest
    }

    /// Appends the values of an event's row; how many bytes they have in a message.
    pub(super) fn push_row(&self, shaped: &Shaped, event: usize, values: &mut Vec<Value>) -> Result<usize, Fault> {
        let event = self.rows.batch.event(event);
        let start = values.len();
        // One bit of every value says whether it is NULL, two bytes which type it has.
        let mut bytes = shaped.shape.bound.len() / 8 + 1;
        for at in &shaped.shape.bound {
            match self.rows.value(&event, *at) {
                Ok(value) => {
                    let value = value.bound();
                    bytes += 2 + usize::try_from(value.bin_len()).unwrap_or(usize::MAX / 2);
                    values.push(value);
                }
                Err(cause) => {
                    values.truncate(start);
                    return Err(Fault::Row(cause));
                }
            }
        }
        if self.fits(bytes) {
            return Ok(bytes);
        }
        values.truncate(start);
        Err(Fault::Row(too_large(&self.rows.mapping.table, bytes, self.largest)))
    }

    /// Runs one statement for rows of one shape.
    pub(super) async fn run(&self, session: &mut Session, ready: Ready) -> Result<Done, Fault> {
        let (done, unchanged_values) = self.execute(session, ready).await?;
        unchanged_values?;
        Ok(done)
    }

    /// The same; the second answer is an error if the server took the rows and stored other values than were sent.
    pub(super) async fn execute(
        &self,
        session: &mut Session,
        ready: Ready,
    ) -> Result<(Done, Result<(), Fault>), Fault> {
        let Ready { shaped, rows, values } = ready;
        let sql = shaped.statement.sql(rows);
        let outcome = session.execute(&sql, values).await.map_err(|fault| self.fault(&fault))?;
        let unchanged_values = match outcome.warnings {
            0 => Ok(()),
            _ => row_error::refuse_changed_values(session, self.target, self.during).await,
        };
        Ok((done(shaped.shape.kind, self.rows.mapping.mode, rows as u64, &outcome), unchanged_values))
    }
}

fn too_large(table: &str, bytes: usize, largest: usize) -> Cause {
    Cause {
        stage: Stage::Write,
        code: ROW_TOO_LARGE,
        message: format!(
            "the row has {bytes} bytes, and the server takes no message of more than {largest} (max_allowed_packet)"
        ),
        fingerprint: format!("a row of table \"{table}\" is larger than max_allowed_packet"),
    }
}

/// What the server's answer says. Of several rows it counts those that it was given and those that met their key; with
/// found rows, the plain count has 1 for a new row, 2 for a changed and 1 for an unchanged one.
fn done(kind: RowKind, mode: ConflictMode, sent: u64, outcome: &Outcome) -> Done {
    let affected = outcome.affected;
    if kind == RowKind::Delete || mode == ConflictMode::Append {
        return Done { kind, sent, changed: affected, created: affected, idle: None };
    }
    let (records, known, overwritten) = match (outcome.records(), outcome.duplicates()) {
        (Some(records), Some(known)) => (records, known, affected.saturating_sub(records)),
        (None, _) | (_, None) => {
            let known = u64::from(outcome.insert_id == WAS_THERE);
            (affected.min(1), known, u64::from(affected == 2))
        }
    };
    let created = records.saturating_sub(known);
    let changed = match (kind, mode) {
        // Every row that was there was set to what the event says, also if it said that before.
        (RowKind::Upsert, ConflictMode::Update) => records,
        (RowKind::Upsert, ConflictMode::Ignore) => created,
        _ => created + overwritten,
    };
    Done { kind, sent, changed, created, idle: None }
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
