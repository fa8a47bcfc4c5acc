//! The second try, after a rejection: in lane order, a savepoint per statement, halving until only the guilty die.
//!
//! Nothing is reduced here: every event is tried, as if each were a statement of its own.
//! Invariant: an input's rows are written all or none; what lies before another in the lane is written before it.
//! Not here: BEGIN, COMMIT, progress, letters.

use std::collections::BTreeMap;
use std::ops::Range;

use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_model::letter::Cause;
use hapax_sql::mysql::Session;

use super::chunk::{Place, Shapes};
use super::plan::Plan;
use crate::table::booked::book;
use crate::table::halving::{Halving, Refused, fitting_inputs, outcome};
use crate::table::tries::{Fault, Outcome, Trouble};

/// Writes the rows of `order`, which is lane order. Events that are `known` to be refused are not tried.
pub(super) async fn write_slowly(
    session: &mut Session,
    place: &Place<'_>,
    order: &[usize],
    known: &BTreeMap<usize, Cause>,
) -> Result<Outcome, Trouble> {
    let mut shapes = Shapes::default();
    let misfit = |event| misfit(place, &mut shapes, event, known);
    let (inputs, mut refused) = fitting_inputs(place.rows.batch, order, misfit);
    let mut slow = Slow { place, shapes, inputs, written: Written::default() };
    slow.write(session, &mut refused).await?;
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
    match place.push_row(shapes.get(shape), event, &mut Vec::new()) {
        Err(Fault::Row(cause)) => Some(cause),
        Err(_) | Ok(_) => None,
    }
}

struct Slow<'a> {
    place: &'a Place<'a>,
    shapes: Shapes,
    inputs: Vec<&'a [usize]>,
    written: Written,
}

/// A savepoint of the same name takes the place of the one before.
const KEEP: &str = "SAVEPOINT hapax_chunk";
const UNDO: &str = "ROLLBACK TO SAVEPOINT hapax_chunk";

impl Slow<'_> {
    async fn write(&mut self, session: &mut Session, refused: &mut Refused) -> Result<(), Trouble> {
        if self.inputs.is_empty() {
            point("sql.bisect_middle");
            return Ok(());
        }
        self.command(session, KEEP).await?;
        let mut halving = Halving::new(&self.inputs, self.place.per_statement);
        while let Some(range) = halving.next() {
            let before = self.written;
            match self.apply(session, range.clone()).await {
                Ok(()) => self.command(session, KEEP).await?,
                Err((event, Fault::Row(cause))) => {
                    self.command(session, UNDO).await?;
                    self.written = before;
                    if !halving.halve(range) {
                        refused.push((event, cause));
                    }
                }
                Err((_, fault)) => return Err(fault.into()),
            }
        }
        Ok(())
    }

    async fn command(&self, session: &mut Session, sql: &str) -> Result<(), Trouble> {
        let done = session.text(sql).await;
        done.map(|_| ()).map_err(|fault| match self.place.fault(&fault) {
            Fault::Row(cause) => Trouble::Schema(cause.message),
            fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
        })
    }

    /// Writes the inputs of a range; the event is the one to blame, which only means something if it is one input.
    async fn apply(&mut self, session: &mut Session, range: Range<usize>) -> Result<(), (usize, Fault)> {
        let (alone, first) = (range.len() == 1, self.inputs[range.start][0]);
        let events: Vec<usize> = self.inputs[range].iter().flat_map(|input| input.iter().copied()).collect();
        if alone {
            for event in events {
                self.send(session, &[event]).await.map_err(|fault| (event, fault))?;
            }
            return Ok(());
        }
        self.send(session, &events).await.map_err(|fault| (first, fault))
    }

    /// Writes events in their order, in as few statements as their shapes and sizes allow. A key may come twice: the
    /// server takes the rows of a statement one after the other.
    async fn send(&mut self, session: &mut Session, events: &[usize]) -> Result<(), Fault> {
        let mapping = self.place.rows.mapping;
        let mut plan = Plan::new(self.place, &mut self.shapes, events);
        while let Some(ready) = plan.next()? {
            let done = self.place.run(session, ready).await?;
            book(&mut self.written, mapping.mode, &mapping.table, done).map_err(Fault::Row)?;
        }
        Ok(())
    }
}
