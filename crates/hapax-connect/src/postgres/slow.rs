//! The second pass, after a rejection: in lane order, savepoints, until only the guilty have died.
//!
//! Nothing is reduced here: every event is tried, as if each were a statement of its own. Statements of many rows are
//! halved; where several rows are refused, inputs go one by one, many on their way at once (`one_by_one`).
//! Invariant: an input's rows are written all or none; what lies before another in the lane is written before it.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use hapax_engine::second_pass::{InputJudge, Judged};
use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_model::letter::Cause;

use super::blame;
use super::chunk::{Place, Shapes};
use crate::table::booked::book;
use crate::table::halving::{Halving, NextTry, fitting_inputs};
use crate::table::tries::{Fault, Outcome, Trouble};

/// Writes the rows of `order`, which is lane order. Events that are `known` to be refused are not tried.
pub(super) async fn write_slowly(
    place: &Place<'_>,
    order: &[usize],
    known: &BTreeMap<usize, Cause>,
    mut judge: InputJudge<'_>,
) -> Result<Outcome, Trouble> {
    let mut shapes = Shapes::default();
    let misfit = |event| misfit(place, &mut shapes, event, known);
    let (inputs, refused) = fitting_inputs(place.rows.batch, order, misfit);
    for (event, cause) in refused {
        judge.refuse(event, cause);
    }
    let mut slow = Slow { place, shapes, inputs, written: Written::default() };
    let ended = slow.write(&mut judge).await?;
    Ok(judge.outcome(slow.written, ended)?)
}

/// Why an event is refused before it is sent, if it is.
fn misfit(place: &Place<'_>, shapes: &mut Shapes, event: usize, known: &BTreeMap<usize, Cause>) -> Option<Cause> {
    if let Some(cause) = known.get(&event) {
        return Some(cause.clone());
    }
    let shape = match shapes.of(place, event) {
        Err(Fault::Row(cause)) => return Some(cause),
        Err(_) => return None,
        Ok(shape) => shape,
    };
    let event = place.rows.batch.event(event);
    let bound = &shapes.get(shape).shape.bound;
    bound.iter().find_map(|at| place.rows.value(&event, *at).err())
}

/// What is being written, and what it did so far.
pub(super) struct Slow<'a> {
    pub(super) place: &'a Place<'a>,
    pub(super) shapes: Shapes,
    /// The events of each input.
    pub(super) inputs: Vec<&'a [usize]>,
    pub(super) written: Written,
}

impl Slow<'_> {
    async fn write(&mut self, judge: &mut InputJudge<'_>) -> Result<Judged, Trouble> {
        if self.inputs.is_empty() {
            point("sql.bisect_middle");
            return Ok(Judged::GoOn);
        }
        self.command("SAVEPOINT hapax_chunk").await?;
        let alone = self.place.rows.mapping.order.wants_rows_alone();
        let mut halving = Halving::new(&self.inputs, self.place.per_statement, alone);
        let mut judged = Judged::GoOn;
        while let (Judged::GoOn, Some(next)) = (judged, halving.next()) {
            judged = match next {
                NextTry::Together(range) => match self.try_together(range.clone()).await? {
                    Ok(()) => judge.tried(self.last_event(&range))?,
                    Err(cause) => {
                        judge.heard(&cause);
                        halving.refused_together(range);
                        Judged::GoOn
                    }
                },
                NextTry::OneByOne(range) => {
                    let (refused, judged) = self.one_by_one(range, judge).await?;
                    halving.refused_alone(refused);
                    judged
                }
            };
        }
        self.command("RELEASE hapax_chunk").await?;
        Ok(judged)
    }

    pub(super) fn last_event(&self, range: &Range<usize>) -> usize {
        self.inputs[range.end - 1][0]
    }

    /// Writes the inputs of a range in as few statements as they fit into; why one of its rows was refused, if one was.
    async fn try_together(&mut self, range: Range<usize>) -> Result<Result<(), Cause>, Trouble> {
        let before = self.written;
        match self.apply(range).await {
            Ok(()) => {
                self.command("RELEASE hapax_chunk; SAVEPOINT hapax_chunk").await?;
                Ok(Ok(()))
            }
            Err(Fault::Row(cause)) => {
                self.command("ROLLBACK TO hapax_chunk").await?;
                self.written = before;
                Ok(Err(cause))
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// The cause, with the column where the server did not name it.
    pub(super) fn named(&mut self, event: usize, cause: Cause) -> Cause {
        match self.shapes.of(self.place, event) {
            Ok(shape) => blame::named(self.place, &self.shapes.get(shape).shape, event, cause),
            Err(_) => cause,
        }
    }

    pub(super) async fn command(&self, sql: &str) -> Result<(), Trouble> {
        let done = self.place.session.client().batch_execute(sql).await;
        done.map_err(|error| self.command_failed(&error))
    }

    /// No row is to blame for what a command says.
    pub(super) fn command_failed(&self, error: &tokio_postgres::Error) -> Trouble {
        match self.place.fault(error) {
            Fault::Row(cause) => Trouble::Schema(cause.message),
            fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
        }
    }

    async fn apply(&mut self, range: Range<usize>) -> Result<(), Fault> {
        let events: Vec<usize> = self.inputs[range].iter().flat_map(|input| input.iter().copied()).collect();
        let mut rest = events.as_slice();
        while !rest.is_empty() {
            let together = self.together(rest)?;
            let (chunk, after) = rest.split_at(together);
            self.send(chunk).await?;
            rest = after;
        }
        Ok(())
    }

    /// How many of the first events one statement can carry: of one shape, no key twice.
    fn together(&mut self, events: &[usize]) -> Result<usize, Fault> {
        let shape = self.shapes.of(self.place, events[0])?;
        let mut keys = HashSet::new();
        let mut count = 0;
        for event in &events[..self.place.fitting(events, 0..events.len())] {
            let key = self.place.rows.key_bytes(*event).map_err(Fault::Row)?;
            if self.shapes.of(self.place, *event)? != shape || key.is_some_and(|key| !keys.insert(key)) {
                break;
            }
            count += 1;
        }
        Ok(count.max(1))
    }

    pub(super) async fn send(&mut self, events: &[usize]) -> Result<(), Fault> {
        let shape = self.shapes.of(self.place, events[0])?;
        let shaped = self.shapes.get(shape);
        let prepared = self.place.prepare(&shaped.statement.sql).await?;
        let done = self.place.run(&shaped.shape, &prepared, shaped.statement.answer, events).await?;
        let mapping = self.place.rows.mapping;
        book(&mut self.written, mapping.mode, &mapping.table, done).map_err(Fault::Row)
    }
}
