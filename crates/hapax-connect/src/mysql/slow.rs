//! The second pass, after a rejection: in lane order, savepoints, until only the guilty have died.
//!
//! Nothing is reduced here: every event is tried, as if each were a statement of its own. Statements of many rows are
//! halved; where several rows are refused, inputs go one by one. A statement that the server refuses takes its own row
//! back; savepoints are for inputs of several rows, and for rows that only we refuse.
//! Invariant: an input's rows are written all or none; what lies before another in the lane is written before it.

use std::collections::BTreeMap;
use std::ops::Range;

use hapax_engine::second_pass::{InputJudge, Judged};
use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_model::letter::Cause;
use hapax_sql::mysql::Session;

use super::chunk::{Place, Shapes};
use super::plan::Plan;
use crate::table::booked::book;
use crate::table::halving::{Halving, NextTry, fitting_inputs};
use crate::table::tries::{Fault, Outcome, Trouble};

/// Writes the rows of `order`, which is lane order. Events that are `known` to be refused are not tried.
pub(super) async fn write_slowly(
    session: &mut Session,
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
    let ended = slow.write(session, &mut judge).await?;
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
    match place.push_row(shapes.get(shape), event, &mut Vec::new()) {
        Err(Fault::Row(cause)) => Some(cause),
        Err(_) | Ok(_) => None,
    }
}

/// Whether one of these events is refused before it is sent.
pub(super) fn refuses_one(place: &Place<'_>, events: &[usize]) -> bool {
    let (mut shapes, mut values) = (Shapes::default(), Vec::new());
    events.iter().any(|event| {
        values.clear();
        let shape = shapes.of(place, *event);
        let row = shape.and_then(|shape| place.push_row(shapes.get(shape), *event, &mut values));
        matches!(row, Err(Fault::Row(_)))
    })
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
/// How many inputs of one row go one by one between two savepoints.
const WINDOW: usize = 64;

/// An input's row was refused.
struct Guilty {
    event: usize,
    cause: Cause,
    /// Whether the server took it, and only we refuse it.
    taken: bool,
}

impl Slow<'_> {
    async fn write(&mut self, session: &mut Session, judge: &mut InputJudge<'_>) -> Result<Judged, Trouble> {
        if self.inputs.is_empty() {
            point("sql.bisect_middle");
            return Ok(Judged::GoOn);
        }
        self.command(session, KEEP).await?;
        let alone = self.place.rows.mapping.order.wants_rows_alone();
        let mut halving = Halving::new(&self.inputs, self.place.per_statement, alone);
        let mut judged = Judged::GoOn;
        while let (Judged::GoOn, Some(next)) = (judged, halving.next()) {
            judged = match next {
                NextTry::Together(range) => match self.try_together(session, range.clone()).await? {
                    Ok(()) => judge.tried(self.last_event(&range))?,
                    Err(cause) => {
                        judge.heard(&cause);
                        halving.refused_together(range);
                        Judged::GoOn
                    }
                },
                NextTry::OneByOne(range) => {
                    let (refused, judged) = self.one_by_one(session, range, judge).await?;
                    halving.refused_alone(refused);
                    judged
                }
            };
        }
        Ok(judged)
    }

    fn last_event(&self, range: &Range<usize>) -> usize {
        self.inputs[range.end - 1][0]
    }

    /// Writes the inputs of a range in as few statements as they fit into; why one of its rows was refused, if one was.
    async fn try_together(&mut self, session: &mut Session, range: Range<usize>) -> Result<Result<(), Cause>, Trouble> {
        let before = self.written;
        let events: Vec<usize> = self.inputs[range].iter().flat_map(|input| input.iter().copied()).collect();
        match self.send(session, &events).await {
            Ok(()) => {
                self.command(session, KEEP).await?;
                Ok(Ok(()))
            }
            Err((_, Fault::Row(cause))) => {
                self.command(session, UNDO).await?;
                self.written = before;
                Ok(Err(cause))
            }
            Err((_, fault)) => Err(fault.into()),
        }
    }

    /// Tries the inputs of a range one by one; how many were refused, and whether the pass goes on.
    async fn one_by_one(
        &mut self,
        session: &mut Session,
        range: Range<usize>,
        judge: &mut InputJudge<'_>,
    ) -> Result<(usize, Judged), Trouble> {
        let (mut refused, mut start) = (0, range.start);
        while start < range.end {
            let window = self.window(start..range.end);
            let before = self.written;
            let guilty = match self.try_each(session, window.clone()).await? {
                Some(guilty) => guilty,
                // What the server took must be taken back: once more, with a savepoint for each.
                None => {
                    self.command(session, UNDO).await?;
                    self.written = before;
                    self.keep_each(session, window.clone()).await?
                }
            };
            self.command(session, KEEP).await?;
            refused += guilty.len();
            for Guilty { event, cause, .. } in guilty {
                judge.refuse(event, cause);
            }
            if judge.tried(self.last_event(&window))? == Judged::EndHere {
                return Ok((refused, Judged::EndHere));
            }
            start = window.end;
        }
        Ok((refused, Judged::GoOn))
    }

    /// The first inputs of a range that need no savepoint between them: each is one row. Else one input.
    fn window(&self, range: Range<usize>) -> Range<usize> {
        let single = self.inputs[range.clone()].iter().take(WINDOW).take_while(|input| input.len() == 1).count();
        range.start..range.start + single.max(1)
    }

    /// Tries inputs without savepoints between them; the refused ones. None if something must be undone.
    async fn try_each(&mut self, session: &mut Session, range: Range<usize>) -> Result<Option<Vec<Guilty>>, Trouble> {
        let mut refused = Vec::new();
        for at in range.clone() {
            match self.try_input(session, at).await? {
                None => {}
                Some(guilty) if guilty.taken || (self.inputs[at].len() > 1 && range.len() > 1) => return Ok(None),
                Some(guilty) if self.inputs[at].len() > 1 => {
                    self.command(session, UNDO).await?;
                    refused.push(guilty);
                }
                Some(guilty) => refused.push(guilty),
            }
        }
        Ok(Some(refused))
    }

    /// Tries inputs with a savepoint after each.
    async fn keep_each(&mut self, session: &mut Session, range: Range<usize>) -> Result<Vec<Guilty>, Trouble> {
        let mut refused = Vec::new();
        for at in range {
            match self.try_input(session, at).await? {
                None => self.command(session, KEEP).await?,
                Some(guilty) => {
                    self.command(session, UNDO).await?;
                    refused.push(guilty);
                }
            }
        }
        Ok(refused)
    }

    /// Writes one input's rows; the refused one, if one was: then what was counted of them is taken back.
    async fn try_input(&mut self, session: &mut Session, at: usize) -> Result<Option<Guilty>, Trouble> {
        let before = self.written;
        for event in self.inputs[at] {
            match self.send(session, &[*event]).await {
                Ok(()) => {}
                Err((taken, Fault::Row(cause))) => {
                    self.written = before;
                    return Ok(Some(Guilty { event: *event, cause, taken }));
                }
                Err((_, fault)) => return Err(fault.into()),
            }
        }
        Ok(None)
    }

    async fn command(&self, session: &mut Session, sql: &str) -> Result<(), Trouble> {
        let done = session.text(sql).await;
        done.map(|_| ()).map_err(|fault| match self.place.fault(&fault) {
            Fault::Row(cause) => Trouble::Schema(cause.message),
            fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
        })
    }

    /// Writes events in their order, in as few statements as their shapes and sizes allow. A key may come twice: the
    /// server takes the rows of a statement one after the other. With an error it says whether the server took the rows.
    async fn send(&mut self, session: &mut Session, events: &[usize]) -> Result<(), (bool, Fault)> {
        let mapping = self.place.rows.mapping;
        let mut plan = Plan::new(self.place, &mut self.shapes, events);
        while let Some(ready) = plan.next().map_err(|fault| (false, fault))? {
            let (done, changed_values) = self.place.execute(session, ready).await.map_err(|fault| (false, fault))?;
            changed_values.map_err(|fault| (true, fault))?;
            book(&mut self.written, mapping.mode, &mapping.table, done).map_err(|cause| (true, Fault::Row(cause)))?;
        }
        Ok(())
    }
}
