//! The second try, after a rejection: in lane order, a savepoint per statement, halving until only the guilty die.
//!
//! Nothing is reduced here: every event is tried, as if each were a statement of its own.
//! Invariant: an input's rows are written all or none; what lies before another in the lane is written before it.
//! Not here: BEGIN, COMMIT, progress, letters.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_model::letter::Cause;

use super::blame;
use super::chunk::{Place, Shapes};
use crate::table::booked::book;
use crate::table::halving::{Halving, Refused, fitting_inputs, outcome};
use crate::table::tries::{Fault, Outcome, Trouble};

/// Writes the rows of `order`, which is lane order. Events that are `known` to be refused are not tried.
pub(super) async fn write_slowly(
    place: &Place<'_>,
    order: &[usize],
    known: &BTreeMap<usize, Cause>,
) -> Result<Outcome, Trouble> {
    let mut shapes = Shapes::default();
    let misfit = |event| misfit(place, &mut shapes, event, known);
    let (inputs, mut refused) = fitting_inputs(place.rows.batch, order, misfit);
    let mut slow = Slow { place, shapes, inputs, written: Written::default() };
    slow.write(&mut refused).await?;
    Ok(outcome(slow.written, refused))
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

struct Slow<'a> {
    place: &'a Place<'a>,
    shapes: Shapes,
    inputs: Vec<&'a [usize]>,
    written: Written,
}

impl Slow<'_> {
    async fn write(&mut self, refused: &mut Refused) -> Result<(), Trouble> {
        if self.inputs.is_empty() {
            point("sql.bisect_middle");
            return Ok(());
        }
        self.command("SAVEPOINT hapax_chunk").await?;
        let mut halving = Halving::new(&self.inputs, self.place.per_statement);
        while let Some(range) = halving.next() {
            let before = self.written;
            match self.apply(range.clone()).await {
                Ok(()) => self.command("RELEASE hapax_chunk; SAVEPOINT hapax_chunk").await?,
                Err((event, Fault::Row(cause))) => {
                    self.command("ROLLBACK TO hapax_chunk").await?;
                    self.written = before;
                    if !halving.halve(range) {
                        refused.push((event, self.named(event, cause)));
                    }
                }
                Err((_, fault)) => return Err(fault.into()),
            }
        }
        self.command("RELEASE hapax_chunk").await
    }

    /// The cause, with the column where the server did not name it.
    fn named(&mut self, event: usize, cause: Cause) -> Cause {
        match self.shapes.of(self.place, event) {
            Ok(shape) => blame::named(self.place, &self.shapes.get(shape).shape, event, cause),
            Err(_) => cause,
        }
    }

    async fn command(&self, sql: &str) -> Result<(), Trouble> {
        let done = self.place.session.client().batch_execute(sql).await;
        done.map_err(|error| match self.place.fault(&error) {
            Fault::Row(cause) => Trouble::Schema(cause.message),
            fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
        })
    }

    /// Writes the inputs of a range; the event is the one to blame, which only means something if it is one input.
    async fn apply(&mut self, range: Range<usize>) -> Result<(), (usize, Fault)> {
        if range.len() == 1 {
            for event in self.inputs[range.start] {
                self.send(&[*event]).await.map_err(|fault| (*event, fault))?;
            }
            return Ok(());
        }
        let events: Vec<usize> = self.inputs[range].iter().flat_map(|input| input.iter().copied()).collect();
        let first = events[0];
        let mut rest = events.as_slice();
        while !rest.is_empty() {
            let together = self.together(rest).map_err(|fault| (first, fault))?;
            let (chunk, after) = rest.split_at(together);
            self.send(chunk).await.map_err(|fault| (first, fault))?;
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

    async fn send(&mut self, events: &[usize]) -> Result<(), Fault> {
        let shape = self.shapes.of(self.place, events[0])?;
        let shaped = self.shapes.get(shape);
        let prepared = self.place.prepare(&shaped.statement.sql).await?;
        let done = self.place.run(&shaped.shape, &prepared, shaped.statement.answer, events).await?;
        let mapping = self.place.rows.mapping;
        book(&mut self.written, mapping.mode, &mapping.table, done).map_err(Fault::Row)
    }
}
