//! Rows on their way into the table, inside a transaction that the caller opened.
//!
//! The first try carries many rows per statement and has no savepoints. The second, after a rejection, goes in lane
//! order with a savepoint per input, so that only the guilty ones die.
//! Invariant: an input's rows are written all or none. Not here: BEGIN, COMMIT, progress, letters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hapax_engine::batch::{Operation, OutputEvent};
use hapax_engine::second_pass::{InputJudge, Judged};
use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_model::letter::{Cause, Stage};
use hapax_model::mode::ConflictMode;
use rusqlite::hooks::Action;
use rusqlite::{CachedStatement, Connection};

use super::bind::{Bound, Way};
use super::error::{During, RowFault, path_of, row_fault, sink_error};
use super::inspect::Inspected;
use super::schema::{RowNumbers, SqliteColumn};
use super::statement::{is_done, rows_per_statement, sql};
use crate::table::live::SilentDrop;
use crate::table::middle::Middle;
use crate::table::rows::Rows;
use crate::table::shape::{AbsentSet, RowKind, RowShape};
use crate::table::tries::{Fault, Outcome, Trouble, swallowed};

/// How many shapes keep their statements during one transaction.
const SHAPES_KEPT: usize = 32;

/// Counts rows that were created: SQLite itself tells only that a row changed.
#[derive(Debug, Clone, Default)]
pub(super) struct InsertCounter(Option<Arc<AtomicU64>>);

impl InsertCounter {
    /// Starts counting, where the mode leaves it open and SQLite can tell (not in a `WITHOUT ROWID` table).
    pub(super) fn install(connection: &mut Connection, inspected: &Inspected) -> rusqlite::Result<Self> {
        let open = matches!(inspected.mapping.mode, ConflictMode::Update | ConflictMode::Newer);
        if !open || inspected.row_numbers == RowNumbers::None {
            return Ok(Self(None));
        }
        let count = Arc::new(AtomicU64::new(0));
        let (hook, table) = (Arc::clone(&count), inspected.mapping.table.clone());
        connection.update_hook(Some(move |action: Action, _: &str, changed: &str, _: i64| {
            if action == Action::SQLITE_INSERT && changed == table {
                hook.fetch_add(1, Ordering::Relaxed);
            }
        }))?;
        Ok(Self(Some(count)))
    }

    /// Stops counting.
    pub(super) fn remove(self, connection: &mut Connection) -> rusqlite::Result<()> {
        match self.0 {
            Some(_) => connection.update_hook(None::<fn(Action, &str, &str, i64)>),
            None => Ok(()),
        }
    }

    fn get(&self) -> u64 {
        self.0.as_ref().map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn set(&self, value: u64) {
        if let Some(count) = &self.0 {
            count.store(value, Ordering::Relaxed);
        }
    }
}

/// Writes all rows of `order` in the first try.
pub(super) fn write_fast(
    connection: &Connection,
    rows: &Rows<'_, SqliteColumn>,
    order: &[usize],
    per_statement: usize,
    counter: &InsertCounter,
    during: During,
) -> Result<Outcome, Trouble> {
    let mut writer = Writer::new(connection, rows, per_statement, counter, during);
    let mut middle = Middle::of(order.len());
    for event in order {
        middle.before(1);
        writer.add(*event).inspect_err(|_| middle.stopped())?;
    }
    writer.flush()?;
    Ok(Outcome { written: writer.finish(), ..Outcome::default() })
}

/// Writes the rows of `order`, which is lane order, with a savepoint for each input.
pub(super) fn write_slowly(
    connection: &Connection,
    rows: &Rows<'_, SqliteColumn>,
    order: &[usize],
    known: &BTreeMap<usize, Cause>,
    mut judge: InputJudge<'_>,
    counter: &InsertCounter,
    during: During,
) -> Result<Outcome, Trouble> {
    let mut writer = Writer::new(connection, rows, 1, counter, during);
    let same_input = |a: &usize, b: &usize| rows.batch.event(*a).input() == rows.batch.event(*b).input();
    let inputs: Vec<&[usize]> = order.chunk_by(same_input).collect();
    let mut ended = Judged::GoOn;
    for (done, events) in inputs.iter().enumerate() {
        if done == inputs.len() / 2 {
            point("sql.bisect_middle");
        }
        if let Some((event, cause)) = writer.write_input(events, known)? {
            judge.refuse(event, cause);
        }
        ended = judge.tried(events[0])?;
        if ended == Judged::EndHere {
            break;
        }
    }
    Ok(judge.outcome(writer.finish(), ended)?)
}

struct Prepared<'c> {
    shape: RowShape,
    /// How each of the shape's columns is bound.
    ways: Vec<Way>,
    per_statement: usize,
    one: Option<CachedStatement<'c>>,
    many: Option<CachedStatement<'c>>,
}

struct Writer<'c, 'r> {
    connection: &'c Connection,
    rows: &'r Rows<'r, SqliteColumn>,
    per_statement: usize,
    counter: &'r InsertCounter,
    during: During,
    shapes: Vec<Prepared<'c>>,
    /// The shape of the events in `run`.
    current: usize,
    /// Events of one shape that wait to fill a statement.
    run: Vec<usize>,
    absent: AbsentSet,
    written: Written,
    /// Rows that upserts created or overwrote; which of the two, the counter tells.
    changed: u64,
}

impl<'c, 'r> Writer<'c, 'r> {
    fn new(
        connection: &'c Connection,
        rows: &'r Rows<'r, SqliteColumn>,
        per_statement: usize,
        counter: &'r InsertCounter,
        during: During,
    ) -> Self {
        counter.set(0);
        Self {
            connection,
            rows,
            per_statement,
            counter,
            during,
            shapes: Vec::new(),
            current: 0,
            run: Vec::with_capacity(per_statement),
            absent: AbsentSet::default(),
            written: Written::default(),
            changed: 0,
        }
    }

    /// Adds an event; writes as soon as a statement is full. Events keep their order.
    #[inline]
    fn add(&mut self, event: usize) -> Result<(), Trouble> {
        if !self.is_as_before(&self.rows.batch.event(event)) {
            let shape = self.shape_of(event).map_err(|_| Trouble::Refused)?;
            if shape != self.current {
                self.flush()?;
                self.current = shape;
            }
        }
        self.run.push(event);
        if self.run.len() == self.shapes[self.current].per_statement { self.flush() } else { Ok(()) }
    }

    /// Writes what waits.
    fn flush(&mut self) -> Result<(), Trouble> {
        let run = std::mem::take(&mut self.run);
        let full = self.shapes.get(self.current).is_some_and(|prepared| run.len() == prepared.per_statement);
        let written = if full { self.execute(&run) } else { run.chunks(1).try_for_each(|one| self.execute(one)) };
        self.run = run;
        self.run.clear();
        written.map_err(Trouble::from)
    }

    /// Writes one input's rows in a savepoint; returns the event that was refused, if one was.
    fn write_input(
        &mut self,
        events: &[usize],
        known: &BTreeMap<usize, Cause>,
    ) -> Result<Option<(usize, Cause)>, Trouble> {
        if let Some((event, cause)) = events.iter().find_map(|event| Some((*event, known.get(event)?.clone()))) {
            return Ok(Some((event, cause)));
        }
        self.savepoint("SAVEPOINT hapax_input")?;
        let before = (self.written, self.changed, self.counter.get());
        for event in events {
            match self.write_alone(*event) {
                Ok(()) => {}
                Err(Fault::Row(cause)) if self.connection.is_autocommit() => {
                    return Err(Trouble::Without(*event, cause));
                }
                Err(Fault::Row(cause)) => {
                    self.savepoint("ROLLBACK TO hapax_input")?;
                    self.savepoint("RELEASE hapax_input")?;
                    (self.written, self.changed) = (before.0, before.1);
                    self.counter.set(before.2);
                    return Ok(Some((*event, cause)));
                }
                Err(fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_))) => return Err(fault.into()),
            }
        }
        self.savepoint("RELEASE hapax_input")?;
        Ok(None)
    }

    fn savepoint(&self, sql: &str) -> Result<(), Trouble> {
        let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| Trouble::Stop(sink_error(&path_of(self.connection), self.during, &error)))
    }

    fn write_alone(&mut self, event: usize) -> Result<(), Fault> {
        self.current = self.shape_of(event).map_err(Fault::Row)?;
        self.execute(&[event])
    }

    /// Whether an event has the current shape: most have.
    #[inline]
    fn is_as_before(&self, event: &OutputEvent<'_>) -> bool {
        self.shapes.get(self.current).is_some_and(|Prepared { shape, .. }| {
            (shape.kind, event.operation()) == (RowKind::Upsert, Operation::Upsert)
                && self.rows.lacks_just(event, &shape.absent)
        })
    }

    /// The shape of an event, as an index of `shapes`.
    fn shape_of(&mut self, event: usize) -> Result<usize, Cause> {
        let event = self.rows.batch.event(event);
        let kind = self.rows.kind(&event)?;
        self.rows.absent(&event, kind, &mut self.absent);
        let same = |prepared: &Prepared<'_>| prepared.shape.kind == kind && prepared.shape.absent == self.absent;
        if let Some(found) = self.shapes.iter().position(same) {
            return Ok(found);
        }
        let shape = RowShape::new(self.rows.mapping, kind, self.absent.clone());
        let wanted = match self.rows.mapping.silent_drop {
            SilentDrop::Impossible => self.per_statement,
            SilentDrop::Possible => 1, // only of a single row can be told whether it had something to do
        };
        let per_statement = rows_per_statement(&shape, wanted);
        let way = |at: &usize| Way::into(&self.rows.mapping.columns[*at].live, self.rows.slot(*at));
        let ways = shape.bound.iter().map(way).collect();
        let prepared = Prepared { shape, ways, per_statement, one: None, many: None };
        if self.shapes.len() >= SHAPES_KEPT && self.run.is_empty() {
            self.shapes.clear();
        }
        self.shapes.push(prepared);
        Ok(self.shapes.len() - 1)
    }

    /// Binds and runs one statement for `events`, which have the current shape: either one, or as many as it carries.
    fn execute(&mut self, events: &[usize]) -> Result<(), Fault> {
        let prepared = &mut self.shapes[self.current];
        let place = if events.len() == 1 { &mut prepared.one } else { &mut prepared.many };
        if place.is_none() {
            let sql =
                sql(&prepared.shape, self.rows.mapping, events.len()).map_err(|e| Fault::Schema(e.to_string()))?;
            let statement = self.connection.prepare_cached(&sql);
            *place = Some(statement.map_err(|error| fault(self.connection, self.during, &error))?);
        }
        let statement = place.as_mut().expect("it was prepared just now");
        let mut parameter = 0;
        for event in events {
            let event = self.rows.batch.event(*event);
            for (way, at) in prepared.ways.iter().zip(&prepared.shape.bound) {
                parameter += 1;
                match way.bind(&event, statement, parameter) {
                    Ok(Bound::Yes) => {}
                    Ok(Bound::NotYet) => {
                        let value = self.rows.value(&event, *at).map_err(Fault::Row)?;
                        let bound = statement.raw_bind_parameter(parameter, value);
                        bound.map_err(|error| fault(self.connection, self.during, &error))?;
                    }
                    Err(error) => return Err(fault(self.connection, self.during, &error)),
                }
            }
        }
        let inserted = self.counter.get();
        let changed = statement.raw_execute().map_err(|error| fault(self.connection, self.during, &error))?;
        let kind = prepared.shape.kind;
        if let (0, SilentDrop::Possible, [event]) = (changed, self.rows.mapping.silent_drop, events) {
            self.refuse_dropped(kind, *event)?;
        }
        self.count(kind, events.len() as u64, changed as u64, inserted)
    }

    /// A row changed nothing, and a trigger may have left it out: asks the table whether it had nothing to do.
    fn refuse_dropped(&self, kind: RowKind, event: usize) -> Result<(), Fault> {
        let mapping = self.rows.mapping;
        let Some((sql, bound)) = is_done(mapping, kind).map_err(|error| Fault::Schema(error.to_string()))? else {
            return Ok(()); // every row must change one, which is counted
        };
        let event = self.rows.batch.event(event);
        let values: Result<Vec<_>, Cause> = bound.iter().map(|at| self.rows.value(&event, *at)).collect();
        let values = rusqlite::params_from_iter(values.map_err(Fault::Row)?);
        let done = self
            .connection
            .prepare_cached(&sql)
            .and_then(|mut question| question.query_row(values, |row| row.get::<_, bool>(0)));
        match done.map_err(|error| fault(self.connection, self.during, &error))? {
            true => Ok(()),
            false => Err(Fault::Row(swallowed(&mapping.table, 1, 0))),
        }
    }

    /// Books what a statement did. In `append` and `update` every row sent must have changed one.
    fn count(&mut self, kind: RowKind, sent: u64, changed: u64, inserted: u64) -> Result<(), Fault> {
        self.written.upserts += sent;
        let mode = self.rows.mapping.mode;
        match kind {
            RowKind::Upsert => {
                let must_match = matches!(mode, ConflictMode::Append | ConflictMode::Update);
                if must_match && changed != sent {
                    return Err(Fault::Row(swallowed(&self.rows.mapping.table, sent, changed)));
                }
                self.written.unchanged += sent.saturating_sub(changed);
                match mode {
                    ConflictMode::Append | ConflictMode::Ignore => self.written.inserts += changed,
                    ConflictMode::Update | ConflictMode::Newer => self.changed += changed,
                }
            }
            RowKind::Delete | RowKind::Tombstone => {
                self.written.deletes += changed;
                self.written.unchanged += sent.saturating_sub(changed);
                self.counter.set(inserted);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Written {
        if self.counter.0.is_some() {
            let inserts = self.counter.get().min(self.changed);
            self.written.inserts = inserts;
            self.written.updates = self.changed - inserts;
        }
        self.written
    }
}

fn fault(connection: &Connection, during: During, error: &rusqlite::Error) -> Fault {
    match row_fault(error) {
        RowFault::Row { code, fingerprint } => {
            Fault::Row(Cause { stage: Stage::Write, code, message: error.to_string(), fingerprint })
        }
        RowFault::Schema => Fault::Schema(error.to_string()),
        RowFault::Target => Fault::Target(sink_error(&path_of(connection), during, error)),
    }
}
