//! Inputs tried one by one in a second pass, many on their way at once.
//!
//! After the rows of each input follow a SAVEPOINT and a ROLLBACK TO it, whatever came of them: if a row was refused the
//! first fails, and the second goes back to the savepoint of the input before; else it goes back to where it stands.
//! So nobody waits for an answer between two inputs. Invariant: an input's rows are written all or none.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use hapax_engine::second_pass::{InputJudge, Judged};
use tokio_postgres::Statement;

use super::chunk::{Place, Shapes};
use super::flight::Flights;
use super::slow::Slow;
use super::statement::Answer;
use crate::table::booked::{Done, book};
use crate::table::tries::{Fault, Trouble};

/// How many inputs are on their way before their savepoints are released: the server keeps each until then.
const WINDOW: usize = 20;

/// What is sent.
#[derive(Debug, Clone, Copy)]
enum Request {
    Row(usize),
    Keep,
    BackToKept,
}

/// What came back.
enum Landed {
    Row(Result<Done, Fault>),
    Command(Result<(), tokio_postgres::Error>),
}

type Prepared = BTreeMap<usize, (Statement, Answer)>;

impl Slow<'_> {
    /// Tries the inputs of a range one by one; how many were refused, and whether the pass goes on.
    pub(super) async fn one_by_one(
        &mut self,
        range: Range<usize>,
        judge: &mut InputJudge<'_>,
    ) -> Result<(usize, Judged), Trouble> {
        let prepared = self.prepare_all(&range).await?;
        self.command("SAVEPOINT hapax_row").await?;
        let (mut refused, mut start) = (0, range.start);
        while start < range.end {
            let window = start..range.end.min(start + WINDOW);
            let before = self.written;
            match self.fly(window.clone(), &prepared).await? {
                Some(guilty) => {
                    refused += guilty.len();
                    for (event, cause) in guilty {
                        let cause = self.named(event, cause);
                        judge.refuse(event, cause);
                    }
                }
                // A trigger dropped a row: what else its input wrote must go too.
                None => {
                    self.command("ROLLBACK TO hapax_chunk; SAVEPOINT hapax_row").await?;
                    self.written = before;
                    refused += self.wait_for_each(window.clone(), judge).await?;
                }
            }
            self.command("RELEASE hapax_chunk; SAVEPOINT hapax_chunk; SAVEPOINT hapax_row").await?;
            if judge.tried(self.last_event(&window))? == Judged::EndHere {
                return Ok((refused, Judged::EndHere));
            }
            start = window.end;
        }
        Ok((refused, Judged::GoOn))
    }

    /// The statements of all shapes. Before the first is sent: whoever waits for anything else with requests on their way
    /// may wait for ever.
    async fn prepare_all(&mut self, range: &Range<usize>) -> Result<Prepared, Trouble> {
        let mut prepared = Prepared::new();
        for event in self.inputs[range.clone()].iter().flat_map(|input| input.iter()) {
            let shape = self.shapes.of(self.place, *event)?;
            if let Entry::Vacant(unprepared) = prepared.entry(shape) {
                let statement = &self.shapes.get(shape).statement;
                unprepared.insert((self.place.prepare(&statement.sql).await?, statement.answer));
            }
        }
        Ok(prepared)
    }

    /// Sends a window of inputs and hears what became of each; the refused events. None if a row was dropped silently.
    async fn fly(
        &mut self,
        window: Range<usize>,
        prepared: &Prepared,
    ) -> Result<Option<Vec<(usize, hapax_model::letter::Cause)>>, Trouble> {
        let inputs = &self.inputs[window];
        let mut requests = Vec::new();
        for input in inputs {
            for event in *input {
                let shape = self.shapes.of(self.place, *event)?;
                requests.push((Request::Row(*event), shape));
            }
            requests.extend([(Request::Keep, 0), (Request::BackToKept, 0)]);
        }
        let (place, shapes) = (self.place, &self.shapes);
        let mut flights = Flights::new();
        let mut heard = Heard::default();
        let mut waiting = requests.iter();
        for (request, shape) in &requests {
            while flights.is_full(0)
                && let (Some(landed), Some((request, _))) = (flights.land().await, waiting.next())
            {
                heard.take(*request, landed, place, &mut self.written)?;
            }
            flights.start(send(place, shapes, prepared, *request, *shape), 0).await;
        }
        while let (Some(landed), Some((request, _))) = (flights.land().await, waiting.next()) {
            heard.take(*request, landed, place, &mut self.written)?;
        }
        Ok((!heard.dropped).then_some(heard.guilty))
    }

    /// The same inputs, each waited for: the way back is known before the next one is sent.
    async fn wait_for_each(&mut self, window: Range<usize>, judge: &mut InputJudge<'_>) -> Result<usize, Trouble> {
        let mut refused = 0;
        for at in window {
            let before = self.written;
            let mut guilty = None;
            for event in self.inputs[at] {
                match self.send(&[*event]).await {
                    Ok(()) => {}
                    Err(Fault::Row(cause)) => {
                        guilty = Some((*event, cause));
                        break;
                    }
                    Err(fault) => return Err(fault.into()),
                }
            }
            match guilty {
                None => self.command("SAVEPOINT hapax_row").await?,
                Some((event, cause)) => {
                    self.command("ROLLBACK TO hapax_row").await?;
                    self.written = before;
                    refused += 1;
                    let cause = self.named(event, cause);
                    judge.refuse(event, cause);
                }
            }
        }
        Ok(refused)
    }
}

async fn send(place: &Place<'_>, shapes: &Shapes, prepared: &Prepared, request: Request, shape: usize) -> Landed {
    let client = place.session.client();
    match request {
        Request::Row(event) => {
            let (statement, answer) = &prepared[&shape];
            Landed::Row(place.run(&shapes.get(shape).shape, statement, *answer, &[event]).await)
        }
        Request::Keep => Landed::Command(client.batch_execute("SAVEPOINT hapax_row").await),
        Request::BackToKept => Landed::Command(client.batch_execute("ROLLBACK TO hapax_row").await),
    }
}

/// What was heard of a window so far.
#[derive(Default)]
struct Heard {
    guilty: Vec<(usize, hapax_model::letter::Cause)>,
    /// A row of the input that is being heard of was refused: the rest of it fails, up to the way back.
    failed: bool,
    /// What the rows of that input did.
    done: Vec<Done>,
    /// The table took a row and did not change.
    dropped: bool,
}

impl Heard {
    fn take(
        &mut self,
        request: Request,
        landed: Landed,
        place: &Place<'_>,
        written: &mut hapax_engine::sink::Written,
    ) -> Result<(), Trouble> {
        match (request, landed) {
            (Request::Row(_), Landed::Row(Ok(done))) => self.done.push(done),
            (Request::Row(_), Landed::Row(Err(_))) if self.failed => {}
            (Request::Row(event), Landed::Row(Err(Fault::Row(cause)))) => {
                self.failed = true;
                self.guilty.push((event, cause));
            }
            (Request::Row(_), Landed::Row(Err(fault))) => return Err(fault.into()),
            (Request::Keep, Landed::Command(Err(_))) if self.failed => {}
            (Request::BackToKept, Landed::Command(Ok(()))) => {
                let done = std::mem::take(&mut self.done);
                if !std::mem::take(&mut self.failed) {
                    let mapping = place.rows.mapping;
                    let booked =
                        done.into_iter().try_for_each(|done| book(written, mapping.mode, &mapping.table, done));
                    self.dropped |= booked.is_err();
                }
            }
            (_, Landed::Command(Ok(()))) => {}
            (_, Landed::Command(Err(error))) => {
                return Err(match place.fault(&error) {
                    Fault::Row(cause) => Trouble::Schema(cause.message),
                    fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
                });
            }
            (Request::Keep | Request::BackToKept, Landed::Row(_)) => {}
        }
        Ok(())
    }
}
