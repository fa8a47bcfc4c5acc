//! Rows on their way into the table in the first try: reduced, sorted, many per statement, several on their way, no
//! savepoint. Inside a transaction that the caller opened.
//!
//! Invariant: the error that counts is the first one in the order of sending; what comes behind it only follows from
//! it. Not here: the second try (`slow`), BEGIN, COMMIT, progress, letters.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_model::letter::Cause;
use hapax_model::mode::ConflictMode;
use tokio_postgres::Statement;

use super::chunk::{Place, Shapes};
use super::flight::Flights;
use super::statement::{Answer, SplitBy};
use crate::table::booked::{Done, book};
use crate::table::shape::RowKind;
use crate::table::tries::{Fault, Outcome, Trouble};

/// From so many rows on a COPY is worth its two round trips.
const COPY_FROM: usize = 64;

/// From so many rows on the table's counters tell created rows from overwritten ones.
const COUNT_FROM: usize = 256;

/// Events that go into one statement.
struct Chunk {
    shape: usize,
    start: usize,
    end: usize,
}

impl Chunk {
    /// The COPY that carries them, if one does.
    fn copied_by<'s>(&self, shapes: &'s Shapes) -> Option<&'s String> {
        shapes.get(self.shape).copy.as_ref().filter(|_| self.end - self.start >= COPY_FROM)
    }
}

/// Writes all rows of `order`; `cuts` are the places where a key is the one before again, ascending.
pub(super) async fn write_fast(place: &Place<'_>, order: &[usize], cuts: &[usize]) -> Result<Outcome, Trouble> {
    let mut shapes = Shapes::default();
    let chunks = plan(place, &mut shapes, order, cuts)?;
    let before = match can_be_counted(place, &shapes, order.len()) {
        true => place.inserted().await?,
        false => None,
    };
    let by = if before.is_some() { SplitBy::Table } else { SplitBy::Statement };
    let prepared = prepare(place, &shapes, &chunks, by).await?;
    let middle = order.len() / 2;
    let mut written = Written::default();
    let mut flights = Flights::new();
    let mut passed = false;
    for chunk in &chunks {
        let shaped = shapes.get(chunk.shape);
        let chunk_events = &order[chunk.start..chunk.end];
        let holds_middle = !passed && middle < chunk.end;
        passed |= holds_middle;
        if let Some(sql) = chunk.copied_by(&shapes) {
            land_all(place, &mut flights, &mut written).await?;
            let middle = holds_middle.then(|| middle - chunk.start.min(middle));
            let done = place.copy(&shaped.shape, sql, chunk_events, middle).await?;
            take(place, &mut written, Ok(done))?;
            continue;
        }
        if holds_middle {
            point("sql.data_middle");
        }
        let (statement, answer) = &prepared[&chunk.shape];
        let request = async move { place.run(&shaped.shape, statement, *answer, chunk_events).await };
        let bytes = place.bytes(chunk_events);
        while flights.is_full(bytes)
            && let Some(answer) = flights.land().await
        {
            take(place, &mut written, answer)?;
        }
        flights.start(request, bytes).await;
    }
    land_all(place, &mut flights, &mut written).await?;
    if let Some(before) = before {
        let created = place.inserted().await?.unwrap_or(before).saturating_sub(before);
        split(&mut written, created);
    }
    Ok(Outcome { written, ..Outcome::default() })
}

/// Whether the table's counters tell how many rows were created: if no statement creates rows that are booked as
/// something else, and if there are enough rows for two more questions to pay.
fn can_be_counted(place: &Place<'_>, shapes: &Shapes, events: usize) -> bool {
    let open = matches!(place.rows.mapping.mode, ConflictMode::Update | ConflictMode::Newer);
    open && events >= COUNT_FROM && shapes.all().all(|shaped| shaped.shape.kind != RowKind::Tombstone)
}

/// All rows were booked as created: those that were not, were overwritten. A trigger of the table may create further
/// ones, and another session may take a key in between: the sum stays right.
fn split(written: &mut Written, created: u64) {
    let overwritten = written.inserts.saturating_sub(created);
    written.inserts -= overwritten;
    written.updates += overwritten;
}

/// The statements of all shapes that do not go by COPY. Before the first is sent: the driver reads an answer only when
/// those before it are taken, so whoever waits for anything else with requests on their way may wait for ever.
async fn prepare(
    place: &Place<'_>,
    shapes: &Shapes,
    chunks: &[Chunk],
    by: SplitBy,
) -> Result<BTreeMap<usize, (Statement, Answer)>, Fault> {
    let mut prepared = BTreeMap::new();
    for chunk in chunks.iter().filter(|chunk| chunk.copied_by(shapes).is_none()) {
        if let Entry::Vacant(vacant) = prepared.entry(chunk.shape) {
            let (sql, answer) = shapes.get(chunk.shape).statement.for_split(by);
            vacant.insert((place.prepare(sql).await?, answer));
        }
    }
    Ok(prepared)
}

async fn land_all<F: Future<Output = Result<Done, Fault>>>(
    place: &Place<'_>,
    flights: &mut Flights<F>,
    written: &mut Written,
) -> Result<(), Trouble> {
    while let Some(answer) = flights.land().await {
        take(place, written, answer)?;
    }
    Ok(())
}

fn take(place: &Place<'_>, written: &mut Written, answer: Result<Done, Fault>) -> Result<(), Trouble> {
    let mapping = place.rows.mapping;
    let booked: Result<(), Cause> = book(written, mapping.mode, &mapping.table, answer?);
    booked.map_err(|_| Trouble::Refused)
}

/// How the events are cut into statements, in their order.
fn plan(place: &Place<'_>, shapes: &mut Shapes, order: &[usize], cuts: &[usize]) -> Result<Vec<Chunk>, Trouble> {
    let mut shaped: Vec<usize> = Vec::with_capacity(order.len());
    for event in order {
        shaped.push(shapes.of(place, *event)?);
    }
    // Never put together by their shape: rows arrive in lane order, or, where keys can be there already, are locked in
    // the order of their keys by every lane; else two lanes meet in a deadlock.
    let mut cuts = cuts.iter().copied().peekable();
    let (mut chunks, mut start) = (Vec::new(), 0);
    while start < shaped.len() {
        let shape = shaped[start];
        while cuts.next_if(|cut| *cut <= start).is_some() {}
        let until = cuts.peek().copied().unwrap_or(shaped.len());
        let run = shaped[start..until].iter().take_while(|other| **other == shape).count();
        let fitting = match shapes.get(shape).copy.is_some() && run >= COPY_FROM {
            true => run,
            false => place.fitting(order, start..start + run),
        };
        chunks.push(Chunk { shape, start, end: start + fitting });
        start += fitting;
    }
    Ok(chunks)
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
