//! A source, a sink and a state store in memory, with faults that real ones cannot make on demand: an answer that is
//! lost after the commit landed, a commit that is lost before it, a claim by another worker at a chosen moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::letter::{Cause, Letter};
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::{Progress, Witness};
use hapax_model::transaction::{Move, TransactionState};

use crate::batch::{Batch, Inputs};
use crate::bookkeeping::prefix_record;
use crate::second_pass::{InputJudge, Judged};
use crate::sink::{Claim, Committed, EpochRecord, SinkError, Target, TargetIdentity, TransactionalSink, Written};
use crate::source::{Follow, Held, Polled, Room, Source, SourceError, StartAt};
use crate::state::{DeliveryNote, Lease, StateError, StateStore, Suspicion, TakeOver};

/// Lines with positions 0, 1, 2 …; ends after the last if not followed.
pub(super) struct Lines {
    pub(super) lines: Vec<String>,
    pub(super) next: u64,
    pub(super) follow: Follow,
    pub(super) gap_at: Option<u64>,
    pub(super) incarnation: &'static str,
    pub(super) number: u32,
    /// Lines that come later.
    pub(super) feed: Arc<Mutex<Vec<String>>>,
    /// Whether something else is in its place now.
    pub(super) replaced: Arc<AtomicBool>,
    /// From this line on it is the next file.
    pub(super) boundary_at: Option<u64>,
    /// The file of this number is gone.
    pub(super) lost_number: Option<u32>,
}

impl Lines {
    pub(super) fn new(lines: &[&str]) -> Self {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Self {
            lines,
            next: 0,
            follow: Follow::No,
            gap_at: None,
            incarnation: "lines",
            number: 1,
            feed: Arc::default(),
            replaced: Arc::default(),
            boundary_at: None,
            lost_number: None,
        }
    }

    fn at(&self, offset: u64) -> Bookmark {
        Bookmark::new(Incarnation::new(self.number, self.incarnation), Position::at(offset))
    }
}

impl Source for Lines {
    fn lane(&self) -> &str {
        "0"
    }

    fn identity(&self) -> String {
        "lines".into()
    }

    async fn start(&mut self, at: StartAt) -> Result<Bookmark, SourceError> {
        Ok(match at {
            StartAt::Earliest => self.at(0),
            StartAt::Latest => self.at(self.lines.len() as u64),
            StartAt::At(position) => self.at(position.offset),
        })
    }

    async fn hold(&mut self, bookmark: &Bookmark) -> Result<Held, SourceError> {
        if self.replaced.load(Ordering::SeqCst) {
            Ok(Held::OtherIncarnation { now: "another".into() })
        } else if &*bookmark.incarnation.text == self.incarnation {
            Ok(Held::Yes)
        } else {
            Ok(Held::OtherIncarnation { now: self.incarnation.into() })
        }
    }

    async fn hold_range(&mut self, from: &Bookmark, to: &Bookmark) -> Result<Held, SourceError> {
        let numbers = from.incarnation.number..to.incarnation.number;
        match self.lost_number.filter(|lost| numbers.contains(lost)) {
            Some(lost) => Ok(Held::Gone { missing: format!("number {lost} is gone") }),
            None => self.hold(to).await,
        }
    }

    async fn assign(&mut self, bookmark: &Bookmark, follow: Follow) -> Result<(), SourceError> {
        self.next = bookmark.position.offset;
        self.number = bookmark.incarnation.number;
        self.follow = follow;
        Ok(())
    }

    async fn poll(&mut self, into: &mut Inputs, room: Room) -> Result<Polled, SourceError> {
        if self.gap_at.is_some_and(|gap| self.next >= gap) {
            return Err(SourceError::Gap { what: format!("lines from {} on are gone", self.next) });
        }
        self.lines.append(&mut self.feed.lock().expect("no test panics while it feeds"));
        let boundary = self.boundary_at.filter(|_| self.number == 1).unwrap_or(u64::MAX);
        if self.next == boundary {
            return Ok(Polled::Boundary);
        }
        let most = room.events.min(usize::try_from(boundary - self.next).unwrap_or(usize::MAX));
        let rest = self.lines.iter().enumerate().skip(usize::try_from(self.next).expect("small")).take(most);
        let mut read = 0;
        for (offset, line) in rest {
            into.push(Position::at(offset as u64), line.as_bytes());
            read += 1;
        }
        self.next += read;
        match (read, self.follow) {
            (1.., _) => Ok(Polled::Records),
            (_, Follow::No) => Ok(Polled::End),
            (_, Follow::Yes) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok(Polled::Idle)
            }
        }
    }

    fn bookmark(&self) -> Bookmark {
        self.at(self.next)
    }

    async fn close_epoch(&mut self, _from: &Bookmark) -> Result<Bookmark, SourceError> {
        Ok(self.bookmark())
    }

    async fn step(&mut self) -> Result<(), SourceError> {
        self.number += 1;
        Ok(())
    }

    async fn reads_what(&mut self, _lane: &str, _other: &Bookmark) -> Result<bool, SourceError> {
        Ok(false)
    }

    async fn ack(&mut self, _upto: &Bookmark) -> Result<(), SourceError> {
        Ok(())
    }

    fn called(&self) -> Option<String> {
        Some("the script".to_owned())
    }

    fn extent(&self) -> Option<u64> {
        Some(self.lines.len() as u64)
    }
}

/// What a commit does instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It lands, and the answer is lost.
    AnswerLost,
    /// It does not land, and nobody says so.
    RequestLost,
    /// It is rolled back, and says so.
    RolledBack,
    /// It waits for ever, as behind a lock that nobody gives back.
    Blocked,
    /// It is refused for a reason that no repetition mends.
    Unfit,
    /// Another worker claims just before it.
    StolenBefore,
    /// It lands nothing, says nothing, and another worker claims before the reclaim.
    LostThenStolen,
    /// It lands nothing: the table has other columns now.
    OtherFields,
}

/// What a claim after doubt does instead of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimFault {
    /// It lands, and the answer is lost.
    AnswerLost,
    /// It lands, and what the sink does after it is in doubt.
    ThenInDoubt,
    /// It does not land, and another worker claims.
    Stolen,
    /// It does not land; another process of the same name claims, and delivers more than we tried.
    StolenByNamesake,
}

/// The target: rows, letters and one progress row, shared by all its sinks.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) rows: Vec<String>,
    pub(super) letters: Vec<Letter>,
    pub(super) progress: BTreeMap<DeliveryId, Progress>,
    pub(super) faults: VecDeque<Option<Fault>>,
    pub(super) epochs: Vec<EpochRecord>,
    pub(super) identity: String,
    /// How many inputs a commit takes at most, where it may take fewer than all.
    pub(super) prefix: Option<usize>,
    /// Rows are refused with this, one by one, for ever.
    pub(super) refuses: Option<Cause>,
    /// How many aborts fail, as they do without a network.
    pub(super) failing_aborts: u32,
    /// How many aborts never answer.
    pub(super) hanging_aborts: u32,
    /// Nobody reaches the target.
    pub(super) away: bool,
    /// What becomes of the next claims after doubt.
    pub(super) reclaims: VecDeque<Option<ClaimFault>>,
    /// How often a sink was told that no more comes.
    pub(super) finished: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no test panics while it holds the world")
    }
}

pub(super) struct MemorySink {
    pub(super) id: DeliveryId,
    pub(super) world: Shared,
    pub(super) fields: Vec<FieldPath>,
    pub(super) state: TransactionState,
    pub(super) staged: Option<Arc<Batch>>,
    pub(super) progress: Option<Progress>,
}

impl MemorySink {
    pub(super) fn new(id: &DeliveryId, world: &Shared) -> Self {
        let fields = vec![FieldPath::of_name("id")];
        Self {
            id: id.clone(),
            world: world.clone(),
            fields,
            state: TransactionState::Idle,
            staged: None,
            progress: None,
        }
    }

    fn in_doubt(&self, epoch: Epoch) -> SinkError {
        SinkError::CommitInDoubt { target: "memory".into(), epoch, message: "no answer".into() }
    }

    fn reach(&self) -> Result<(), SinkError> {
        if self.world.lock().away {
            return Err(SinkError::ConnectionFailed { target: "memory".into(), message: "connection refused".into() });
        }
        Ok(())
    }

    fn apply(&self, record: &EpochRecord) -> Result<Committed, SinkError> {
        self.reach()?;
        let mut world = self.world.lock();
        let (ours, prefix) = (self.progress.clone().expect("claimed"), world.prefix);
        let row = world.progress.get_mut(&self.id).expect("claimed");
        if (row.generation, row.epoch, &row.bookmark) != (ours.generation, ours.epoch, &record.from) {
            return Err(SinkError::FencedOut { ours: ours.generation, by: None });
        }
        let batch = self.staged.as_ref().expect("written");
        crate::bookkeeping::judge(&record.rejects, batch, &[])?;
        let inputs = prefix.filter(|_| record.pass.prefix_from.is_some()).unwrap_or(usize::MAX);
        let record = &prefix_record(record, batch, inputs);
        row.epoch = record.epoch;
        row.bookmark = record.to.clone();
        row.totals = row.totals.plus(record.counts);
        let progress = row.clone();
        let events = batch.events().take_while(|event| event.input() < inputs);
        world.rows.extend(events.map(|event| event.payload().to_owned()));
        world.letters.extend(batch.letters().iter().map(|(_, letter)| letter.clone()));
        world.epochs.push(record.clone());
        let dead_inputs = batch.letters().iter().map(|(input, _)| *input).collect();
        let causes = crate::bookkeeping::causes(batch, &[], batch.inputs.len());
        Ok(Committed { stored: true, progress, written: Written::default(), dead_inputs, causes })
    }

    fn steal(&self) {
        raise(&mut self.world.lock(), &self.id, "thief");
    }
}

fn raise(world: &mut World, id: &DeliveryId, session: &str) -> Progress {
    let row = world.progress.get_mut(id).expect("claimed");
    row.generation.0 += 1;
    session.clone_into(&mut row.session);
    row.clone()
}

impl Target for MemorySink {
    fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        Ok(TargetIdentity(self.world.lock().identity.clone()))
    }

    async fn look(&mut self) -> Result<Option<Progress>, SinkError> {
        self.reach()?;
        Ok(self.world.lock().progress.get(&self.id).cloned())
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        let world = self.world.lock();
        Ok(world.progress.iter().filter(|(id, _)| **id != self.id).map(|(id, p)| (id.clone(), p.clone())).collect())
    }
}

impl TransactionalSink for MemorySink {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        self.reach()?;
        self.state = self.state.after(Move::Claim)?;
        let mut world = self.world.lock();
        match claim {
            Claim::Take { start, contract, session } => {
                let first = Progress::first(start, contract, session);
                let row = world.progress.entry(self.id.clone()).or_insert(first);
                row.generation.0 += 1;
                session.clone_into(&mut row.session);
                self.progress = Some(row.clone());
            }
            Claim::Reclaim { generation, session } => {
                let row = world.progress.get(&self.id).expect("claimed");
                if row.generation != *generation {
                    return Err(SinkError::FencedOut { ours: *generation, by: Some(row.session.clone()) });
                }
                let fault = world.reclaims.pop_front().flatten();
                let by = if fault == Some(ClaimFault::Stolen) { "thief" } else { session };
                let raised = raise(&mut world, &self.id, by);
                let no_answer =
                    SinkError::TransactionInitFailed { target: "memory".into(), message: "no answer".into() };
                match fault {
                    None => self.progress = Some(raised),
                    Some(ClaimFault::AnswerLost | ClaimFault::Stolen) => return Err(no_answer),
                    Some(ClaimFault::ThenInDoubt) => return Err(self.in_doubt(raised.epoch)),
                    Some(ClaimFault::StolenByNamesake) => {
                        world.progress.get_mut(&self.id).expect("claimed").epoch.0 += 2;
                        return Err(no_answer);
                    }
                }
            }
        }
        Ok(self.progress.clone().expect("just set"))
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Begin(epoch))?;
        Ok(())
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Write)?;
        self.staged = Some(batch);
        Ok(())
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        self.state = self.state.after(Move::Commit)?;
        let refuses = self.world.lock().refuses.clone();
        if let Some(cause) = refuses {
            let batch = self.staged.clone().expect("written");
            let mut judge = InputJudge::new(&batch, &record.rejects, &record.pass);
            judge.refuse(0, cause);
            assert_eq!(judge.tried(0).expect("all may die"), Judged::GoOn);
            std::future::pending::<()>().await;
        }
        let fault = self.world.lock().faults.pop_front().flatten();
        let result = match fault {
            None => self.apply(record),
            Some(Fault::Unfit) => {
                Err(SinkError::Unfit { code: "HX4110", target: "memory".into(), message: "gone".into() })
            }
            Some(Fault::Blocked) => std::future::pending().await,
            Some(Fault::AnswerLost) => self.apply(record).and_then(|_| Err(self.in_doubt(record.epoch))),
            Some(Fault::RequestLost) => Err(self.in_doubt(record.epoch)),
            Some(Fault::RolledBack) => Err(SinkError::TransactionCommitFailed {
                target: "memory".into(),
                epoch: record.epoch,
                message: "deadlock".into(),
            }),
            Some(Fault::StolenBefore) => {
                self.steal();
                self.apply(record)
            }
            Some(Fault::LostThenStolen) => {
                self.steal();
                Err(self.in_doubt(record.epoch))
            }
            Some(Fault::OtherFields) => Err(SinkError::FieldsAdded { target: "memory".into() }),
        };
        let step = if result.is_ok() { Move::Committed } else { Move::Fail };
        self.state = self.state.after(step)?;
        if let Ok(committed) = &result {
            self.progress = Some(committed.progress.clone());
            self.staged = None;
        }
        result
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Abort)?;
        let failing = self.world.lock().failing_aborts;
        if failing > 0 {
            self.world.lock().failing_aborts = failing - 1;
            return Err(SinkError::TransactionAbortFailed { target: "memory".into(), message: "no network".into() });
        }
        let hanging = self.world.lock().hanging_aborts;
        if hanging > 0 {
            self.world.lock().hanging_aborts = hanging - 1;
            std::future::pending::<()>().await;
        }
        self.state = self.state.after(Move::Aborted)?;
        self.staged = None;
        Ok(())
    }

    fn transaction_state(&self) -> TransactionState {
        self.state
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        self.world.lock().finished += 1;
        Ok(())
    }

    fn save_due(&self) -> Option<Instant> {
        None
    }
}

/// Leases, witnesses and notes, shared by all handles.
#[derive(Debug, Clone)]
pub(super) struct MemoryState {
    pub(super) me: &'static str,
    pub(super) table: Arc<Mutex<StateTable>>,
}

#[derive(Debug, Default)]
pub(super) struct StateTable {
    pub(super) lease: Option<(&'static str, tokio::time::Instant)>,
    pub(super) witness: Option<Witness>,
    pub(super) notes: Vec<DeliveryNote>,
    pub(super) paused: bool,
    pub(super) suspicion: Option<Suspicion>,
    pub(super) away: Option<Away>,
}

/// From which question on the state store does not answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Away {
    Lease,
    Witness,
}

impl StateTable {
    fn answers(&self, question: Away) -> Result<(), StateError> {
        if self.away != Some(question) {
            return Ok(());
        }
        Err(StateError { store: "memory".into(), message: "no such file".into() })
    }
}

impl MemoryState {
    pub(super) fn new(me: &'static str) -> Self {
        Self { me, table: Arc::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, StateTable> {
        self.table.lock().expect("no test panics while it holds the table")
    }
}

impl StateStore for MemoryState {
    async fn lease(&mut self, _: &DeliveryId, ttl: Duration, take_over: TakeOver) -> Result<Lease, StateError> {
        let now = tokio::time::Instant::now();
        let mut table = self.lock();
        table.answers(Away::Lease)?;
        match table.lease {
            Some((by, until)) if by != self.me && until > now && take_over == TakeOver::Never => {
                Ok(Lease::Held { by: by.into(), remaining: until - now })
            }
            Some(_) | None => {
                table.lease = Some((self.me, now + ttl));
                Ok(Lease::Ours)
            }
        }
    }

    async fn release(&mut self, _: &DeliveryId) -> Result<(), StateError> {
        let mut table = self.lock();
        if table.lease.is_some_and(|(by, _)| by == self.me) {
            table.lease = None;
        }
        Ok(())
    }

    async fn load_witness(&mut self, _: &DeliveryId) -> Result<Option<Witness>, StateError> {
        self.lock().answers(Away::Witness)?;
        Ok(self.lock().witness.clone())
    }

    async fn save_witness(&mut self, _: &DeliveryId, witness: &Witness) -> Result<(), StateError> {
        self.lock().witness = Some(witness.clone());
        Ok(())
    }

    async fn note(&mut self, _: &DeliveryId, note: &DeliveryNote) -> Result<(), StateError> {
        self.lock().notes.push(note.clone());
        Ok(())
    }

    async fn paused(&mut self, _: &str) -> Result<bool, StateError> {
        Ok(self.lock().paused)
    }

    async fn suspect(&mut self, _: &DeliveryId, suspicion: &Suspicion) -> Result<(), StateError> {
        self.lock().suspicion = Some(suspicion.clone());
        Ok(())
    }

    async fn suspicion(&mut self, _: &DeliveryId) -> Result<Option<Suspicion>, StateError> {
        Ok(self.lock().suspicion.clone())
    }

    async fn clear_suspicion(&mut self, _: &DeliveryId) -> Result<(), StateError> {
        self.lock().suspicion = None;
        Ok(())
    }
}
