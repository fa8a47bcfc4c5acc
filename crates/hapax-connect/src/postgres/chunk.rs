//! Rows of one shape as one statement: which events fit together, how they are sent, what came of them.

use std::ops::Range;
use std::pin::pin;

use bytes::Bytes;
use futures_util::SinkExt as _;
use hapax_engine::batch::Operation;
use hapax_model::fault::point;
use hapax_sql::postgres::Session;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::column::PostgresColumn;
use super::encode::{ColumnArray, CopyRows};
use super::error::During;
use super::row_error;
use super::statement::{Answer, Named, Statement, copy, statement};
use crate::table::booked::Done;
use crate::table::rows::Rows;
use crate::table::shape::{AbsentSet, RowKind, RowShape};
use crate::table::tries::Fault;

/// How many bytes of inputs one statement carries at most, unless a single one has more.
const BYTES_PER_STATEMENT: usize = 8 << 20;

/// Where rows go, and as what.
pub(super) struct Place<'a> {
    pub(super) session: &'a Session,
    pub(super) table: &'a Named,
    pub(super) rows: &'a Rows<'a, PostgresColumn>,
    pub(super) per_statement: usize,
    pub(super) target: &'a str,
    pub(super) during: During,
}

/// A shape with its statements.
pub(super) struct Shaped {
    pub(super) shape: RowShape,
    pub(super) statement: Statement,
    /// The COPY that can carry it, if one can.
    pub(super) copy: Option<String>,
}

/// The shapes of a batch.
#[derive(Default)]
pub(super) struct Shapes {
    all: Vec<Shaped>,
    last: usize,
    absent: AbsentSet,
}

impl Shapes {
    /// The shape of an event, as an index.
    pub(super) fn of(&mut self, place: &Place<'_>, event: usize) -> Result<usize, Fault> {
        let rows = place.rows;
        let event = rows.batch.event(event);
        // Most events have the shape of the one before.
        let as_before = |Shaped { shape, .. }: &Shaped| {
            (shape.kind, event.operation()) == (RowKind::Upsert, Operation::Upsert)
                && rows.lacks_just(&event, &shape.absent)
        };
        if self.all.get(self.last).is_some_and(as_before) {
            return Ok(self.last);
        }
        let kind = rows.kind(&event).map_err(Fault::Row)?;
        rows.absent(&event, kind, &mut self.absent);
        let same = |shaped: &Shaped| shaped.shape.kind == kind && shaped.shape.absent == self.absent;
        self.last = match self.all.iter().position(same) {
            Some(known) => known,
            None => {
                let shape = RowShape::new(rows.mapping, kind, self.absent.clone());
                let quoting = |error: hapax_sql::QuoteError| Fault::Schema(error.to_string());
                let statement = statement(place.table, rows.mapping, &shape).map_err(quoting)?;
                let copy = copy(place.table, rows.mapping, &shape).map_err(quoting)?;
                self.all.push(Shaped { shape, statement, copy });
                self.all.len() - 1
            }
        };
        Ok(self.last)
    }

    pub(super) fn get(&self, at: usize) -> &Shaped {
        &self.all[at]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Shaped> {
        self.all.iter()
    }
}

impl Place<'_> {
    pub(super) fn fault(&self, error: &Error) -> Fault {
        row_error::fault(self.session, self.target, self.during, error)
    }

    /// How many events from `range.start` on one statement takes, of those that may go together.
    pub(super) fn fitting(&self, events: &[usize], range: Range<usize>) -> usize {
        let mut bytes = 0;
        let fits = |event: &&usize| {
            bytes += self.input_bytes(**event);
            bytes <= BYTES_PER_STATEMENT
        };
        let most = self.per_statement.max(1);
        events[range].iter().take(most).take_while(fits).count().max(1)
    }

    fn input_bytes(&self, event: usize) -> usize {
        let batch = self.rows.batch;
        batch.inputs.bytes(batch.event(event).input()).len()
    }

    /// How many bytes these events have as inputs: about as many as they have in a message.
    pub(super) fn bytes(&self, events: &[usize]) -> usize {
        events.iter().map(|event| self.input_bytes(*event)).sum()
    }

    /// Runs one statement for events of one shape.
    pub(super) async fn run(
        &self,
        shape: &RowShape,
        prepared: &tokio_postgres::Statement,
        answer: Answer,
        events: &[usize],
    ) -> Result<Done, Fault> {
        let (kind, sent) = (shape.kind, events.len() as u64);
        let arrays: Vec<ColumnArray<'_>> =
            shape.bound.iter().map(|at| ColumnArray { rows: self.rows, events, at: *at }).collect();
        let count = i64::try_from(sent).unwrap_or(i64::MAX);
        let values: Vec<&(dyn ToSql + Sync)> = match arrays.is_empty() {
            true => vec![&count],
            false => arrays.iter().map(|array| array as &(dyn ToSql + Sync)).collect(),
        };
        let client = self.session.client();
        match answer {
            Answer::Changed => {
                let changed = client.execute(prepared, &values).await.map_err(|error| self.fault(&error))?;
                Ok(Done { kind, sent, changed, created: changed, idle: None })
            }
            Answer::Counts | Answer::CountsAndIdle => {
                let row = client.query_one(prepared, &values).await.map_err(|error| self.fault(&error))?;
                let number = |at| match row.try_get::<_, i64>(at) {
                    Ok(count) => Ok(u64::try_from(count).unwrap_or(0)),
                    Err(error) => Err(self.fault(&error)),
                };
                let (changed, created) = (number(0)?, number(1)?);
                let idle = (answer == Answer::CountsAndIdle).then(|| number(2)).transpose()?;
                Ok(Done { kind, sent, changed, created: created.min(changed), idle })
            }
        }
    }

    pub(super) async fn prepare(&self, sql: &str) -> Result<tokio_postgres::Statement, Fault> {
        self.session.prepare_cached(sql).await.map_err(|error| self.fault(&error))
    }

    /// Writes events of one shape by binary COPY; `middle` is the event before which half of the epoch is done.
    pub(super) async fn copy(
        &self,
        shape: &RowShape,
        sql: &str,
        events: &[usize],
        middle: Option<usize>,
    ) -> Result<Done, Fault> {
        let prepared = self.prepare(sql).await?;
        let sink = self.session.client().copy_in::<_, Bytes>(&prepared).await;
        let mut sink = pin!(sink.map_err(|error| self.fault(&error))?);
        let mut buffer = CopyRows::new(self.rows, &shape.bound);
        for (done, event) in events.iter().enumerate() {
            if Some(done) == middle {
                point("sql.data_middle");
            }
            buffer.push(*event)?;
            if let Some(full) = buffer.full() {
                sink.feed(full).await.map_err(|error| self.fault(&error))?;
            }
        }
        sink.feed(buffer.end()).await.map_err(|error| self.fault(&error))?;
        let changed = sink.as_mut().finish().await.map_err(|error| self.fault(&error))?;
        Ok(Done { kind: RowKind::Upsert, sent: events.len() as u64, changed, created: changed, idle: None })
    }

    /// How many rows this transaction and what the session did shortly before have created in the table, by the
    /// server's own count; none where it does not count (`track_counts`). Only the difference of two answers means
    /// something, and only without savepoints between them: rows that were rolled back count too.
    pub(super) async fn inserted(&self) -> Result<Option<u64>, Fault> {
        let prepared = self.prepare(self.table.inserted()).await?;
        let row = self.session.client().query_one(&prepared, &[&self.table.quoted]).await;
        let count = row.and_then(|row| row.try_get::<_, Option<i64>>(0)).map_err(|error| self.fault(&error))?;
        Ok(count.and_then(|count| u64::try_from(count).ok()))
    }
}
