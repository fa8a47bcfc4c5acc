//! What every [`TransactionalSink`] must do, as tests over a harness that makes targets and looks at them from outside.
//!
//! Each function is one clause of the trait's doc, of the delivery protocol, or of a conflict mode; [`every_clause`]
//! runs them all. The harness's reader uses a connection of its own: what it sees is what any reader sees.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use hapax_model::contract::Contract;
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::KeyHash;
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Stage};
use hapax_model::mode::ConflictMode;
use hapax_model::outcome::{FoundAt, Outcome, Owner, decide_outcome};
use hapax_model::position::{Bookmark, DeliveryId, Position};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule, RejectStop};
use hapax_model::transaction::TransactionState;

use crate::batch::{Batch, FieldSpan, Layout, Operation};
use crate::second_pass::SecondPass;
use crate::sink::{Claim, Committed, EpochRecord, Reaction, SinkError, Target as _, TransactionalSink};

/// The amount that the harness's target refuses, and would refuse in any row.
pub const POISON: i64 = 13;

/// A row as a reader sees it: id and amount.
pub type SeenRow = (i64, i64);

/// Makes targets of one kind, and looks at them as any reader would.
///
/// The target has a number `id`, the key in keyed modes; a number `amount`, which must not be [`POISON`]; and a number
/// `seq`, the version column in `newer`. Deletes are allowed in `update` and `newer`.
pub trait Harness {
    /// The kind of sink.
    type Sink: TransactionalSink;

    /// Forgets the last target and makes an empty one for this mode.
    fn empty(&mut self, mode: ConflictMode);

    /// A sink for the present target, with nothing claimed. Several may live at once.
    fn sink(&self, id: &DeliveryId) -> Self::Sink;

    /// The rows that a reader sees now, tombstones left out, ascending.
    fn rows(&self) -> Vec<SeenRow>;

    /// The offsets of the dead letters that a reader sees now, ascending.
    fn letters(&self) -> Vec<u64>;

    /// Whether rows and progress are one transaction: then a commit in doubt lands once in every mode, else only where
    /// rows have keys.
    fn is_one_transaction(&self) -> bool;
}

/// All clauses.
pub async fn every_clause(harness: &mut impl Harness) {
    what_is_not_committed_is_not_seen(harness).await;
    an_abort_forgets_what_was_staged(harness).await;
    a_commit_shows_all_of_its_epoch(harness).await;
    several_epochs_follow_each_other_and_the_totals_add_up(harness).await;
    a_claim_fences_the_older_owner(harness).await;
    a_reclaim_succeeds_only_for_the_owner(harness).await;
    a_commit_in_doubt_lands_once(harness).await;
    a_commit_in_doubt_is_counted_once(harness).await;
    an_epoch_that_does_not_begin_where_progress_ends_is_fenced(harness).await;
    an_epoch_that_was_committed_is_not_committed_again(harness).await;
    illegal_moves_are_refused_and_change_nothing(harness).await;
    letters_share_the_fate_of_their_epoch(harness).await;
    a_refused_row_takes_only_its_own_input_along(harness).await;
    on_reject_stop_leaves_nothing_behind(harness).await;
    letters_of_the_fill_are_judged_too(harness).await;
    a_second_pass_may_commit_its_first_inputs(harness).await;
    each_mode_leaves_the_row_that_it_promises(harness).await;
    a_refused_row_changes_nothing_for_the_others_of_its_key(harness).await;
    a_delete_removes_its_row(harness).await;
    an_empty_epoch_moves_the_position(harness).await;
}

/// One event of a test.
#[derive(Debug, Clone, Copy)]
struct Event {
    id: i64,
    amount: i64,
    seq: i64,
    operation: Operation,
}

const fn row(id: i64, amount: i64) -> Event {
    Event { id, amount, seq: 1, operation: Operation::Upsert }
}

const fn version(id: i64, amount: i64, seq: i64) -> Event {
    Event { id, amount, seq, operation: Operation::Upsert }
}

const fn delete(id: i64, seq: i64) -> Event {
    Event { id, amount: 0, seq, operation: Operation::Delete }
}

const MODES: [ConflictMode; 4] =
    [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer];

fn id() -> DeliveryId {
    DeliveryId { workflow: "contract".into(), sink: "sink".into(), lane: "lane".into() }
}

fn take(session: &str) -> Claim {
    let contract = Contract::default().with("kind", "contract test");
    Claim::Take { start: Bookmark::at("only", 0), contract, session: session.into() }
}

/// A sink that was inspected and has claimed.
async fn claimed<H: Harness>(harness: &H, session: &str) -> (H::Sink, Progress) {
    let mut sink = harness.sink(&id());
    sink.inspect().await.expect("the harness's target is fit");
    let progress = sink.init_transactions(&take(session)).await.expect("a claim is unconditional");
    (sink, progress)
}

/// One input per event, from `offset` on.
fn batch(fields: &[FieldPath], offset: u64, events: &[Event]) -> Batch {
    let mut batch = Batch::new(Layout::new(fields));
    for (n, event) in events.iter().enumerate() {
        add_input(&mut batch, offset + n as u64, &[*event]);
    }
    batch
}

fn add_input(batch: &mut Batch, offset: u64, events: &[Event]) {
    let mut text = String::from("[");
    let mut spans = Vec::new();
    for event in events {
        let mut number = |name: &str, value: i64| {
            text.push_str(&format!("\"{name}\":"));
            let start = text.len();
            text.push_str(&value.to_string());
            let span = FieldSpan::Number(start..text.len());
            text.push(',');
            (FieldPath::of_name(name), span)
        };
        spans.push([number("id", event.id), number("amount", event.amount), number("seq", event.seq)]);
    }
    let input = batch.inputs.len();
    batch.inputs.push(Position::at(offset), text.as_bytes());
    let layout = batch.layout().clone();
    for (emit, (event, fields)) in (0_u16..).zip(events.iter().zip(spans)) {
        let mut writer = batch.push_event(input, emit, event.operation);
        for (path, span) in &fields {
            if let Some(slot) = layout.slot_of(path) {
                writer.set(slot, span);
            }
        }
        writer.set_keys(Some(key(event.id, 0)), Some(key(event.id, offset + 1)));
    }
}

fn key(id: i64, version: u64) -> KeyHash {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.to_be_bytes());
    bytes[8..].copy_from_slice(&version.to_be_bytes());
    KeyHash(bytes)
}

/// The epoch after `was` that holds `batch`.
fn record(was: &Progress, batch: &Batch) -> EpochRecord {
    let (read, dead) = (batch.inputs.len() as u64, batch.letters().len() as u64);
    let mut to = was.bookmark.clone();
    to.position.offset += read;
    let counts = Totals { read, delivered: read - dead, filtered: 0, dead, rows: batch.len() as u64 };
    let rejects = RejectRule::new(OnReject::DeadLetter, 1000);
    let (opened_at_ms, closed_at_ms) = (1, 2);
    let pass = SecondPass::default();
    EpochRecord {
        epoch: was.epoch.next(),
        from: was.bookmark.clone(),
        to,
        counts,
        opened_at_ms,
        closed_at_ms,
        rejects,
        pass,
    }
}

/// Stages `batch` as the epoch after `was`, and returns its record.
fn stage(sink: &mut impl TransactionalSink, was: &Progress, batch: Batch) -> EpochRecord {
    let record = record(was, &batch);
    sink.begin_transaction(record.epoch).expect("the sink is idle");
    sink.write(Arc::new(batch)).expect("the transaction is open");
    record
}

async fn deliver(sink: &mut impl TransactionalSink, was: &Progress, events: &[Event]) -> Committed {
    let batch = batch(sink.fields(), was.bookmark.position.offset, events);
    let record = stage(sink, was, batch);
    let committed = sink.commit_transaction(&record).await.expect("nothing stands against this commit");
    assert_eq!(committed.progress.epoch, record.epoch);
    assert_eq!(committed.progress.bookmark, record.to);
    assert_eq!(sink.transaction_state(), TransactionState::Idle);
    committed
}

/// Guarantee: no reader sees an event before its epoch has committed.
pub async fn what_is_not_committed_is_not_seen(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    let staged = batch(sink.fields(), 0, &[row(1, 10)]);
    stage(&mut sink, &was, staged);
    assert_eq!(sink.transaction_state(), TransactionState::Active { epoch: Epoch(1) });
    assert_eq!(harness.rows(), []);
    let (_, after) = claimed(harness, "b").await;
    assert_eq!((after.epoch, after.bookmark), (was.epoch, was.bookmark));
    assert_eq!(harness.rows(), []);
}

/// Guarantee: an abort discards everything since the begin, and the next epoch is untouched by it.
pub async fn an_abort_forgets_what_was_staged(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    let staged = batch(sink.fields(), 0, &[row(1, 10)]);
    stage(&mut sink, &was, staged);
    sink.abort_transaction().await.expect("an open transaction can be aborted");
    assert_eq!(sink.transaction_state(), TransactionState::Idle);
    assert_eq!(harness.rows(), []);
    deliver(&mut sink, &was, &[row(2, 20)]).await;
    assert_eq!(harness.rows(), [(2, 20)]);
}

/// Guarantee: after the commit every row of the epoch is there, and progress says so to whoever looks.
pub async fn a_commit_shows_all_of_its_epoch(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    let events: Vec<Event> = (0..300).map(|n| row(n, n * 100)).collect();
    let committed = deliver(&mut sink, &was, &events).await;
    assert_eq!(harness.rows(), (0..300).map(|n| (n, n * 100)).collect::<Vec<_>>());
    assert_eq!(sink.look().await.expect("progress can be read"), Some(committed.progress));
    assert_eq!((committed.written.upserts, committed.written.failures), (300, 0));
}

/// Several epochs in a row: positions and totals go on from one to the next, and survive a new owner.
pub async fn several_epochs_follow_each_other_and_the_totals_add_up(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, mut progress) = claimed(harness, "a").await;
    for epoch in 1..=5 {
        progress = deliver(&mut sink, &progress, &[row(epoch, 1), row(epoch, 2), row(epoch, POISON)]).await.progress;
        assert!(progress.totals.adds_up(), "{:?}", progress.totals);
    }
    let (_, found) = claimed(harness, "b").await;
    assert_eq!(found.totals, Totals { read: 15, delivered: 10, filtered: 0, dead: 5, rows: 10 });
    assert_eq!((found.epoch, found.bookmark.position), (Epoch(5), Position::at(15)));
    assert_eq!((harness.rows().len(), harness.letters().len()), (10, 5));
}

/// The fence: once a newer owner has claimed, the older one can no longer commit, whatever it has staged.
pub async fn a_claim_fences_the_older_owner(harness: &mut impl Harness) {
    for mode in MODES {
        harness.empty(mode);
        let (mut old, was) = claimed(harness, "old").await;
        let staged = batch(old.fields(), 0, &[row(1, 10)]);
        let record = stage(&mut old, &was, staged);
        let (mut new, found) = claimed(harness, "new").await;
        assert!(found.generation > was.generation);
        let fenced = old.commit_transaction(&record).await.expect_err("the older owner is fenced");
        assert!(matches!(fenced, SinkError::FencedOut { .. }), "{fenced}");
        assert_eq!(harness.rows(), []);
        deliver(&mut new, &found, &[row(2, 20)]).await;
        assert_eq!(harness.rows(), [(2, 20)]);
    }
}

/// A reclaim raises the generation only for whoever still owns the delivery: a woken zombie must not steal it back.
pub async fn a_reclaim_succeeds_only_for_the_owner(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut old, was) = claimed(harness, "old").await;
    let reclaim = |progress: &Progress| Claim::Reclaim { generation: progress.generation, session: "again".into() };
    let again = old.init_transactions(&reclaim(&was)).await.expect("nobody else has claimed");
    assert!(again.generation > was.generation);
    let (_, taken) = claimed(harness, "new").await;
    let fenced = old.init_transactions(&reclaim(&again)).await.expect_err("another owns it");
    assert!(matches!(fenced, SinkError::FencedOut { .. }), "{fenced}");
    let (_, after) = claimed(harness, "newer").await;
    assert_eq!(after.generation.0, taken.generation.0 + 1, "a refused reclaim raises nothing");
}

/// A commit whose answer never came: after the reclaim it is either there, or committed again, and then there once.
pub async fn a_commit_in_doubt_lands_once(harness: &mut impl Harness) {
    for polls in 0..4 {
        harness.empty(if harness.is_one_transaction() { ConflictMode::Append } else { ConflictMode::Update });
        let (mut sink, was) = claimed(harness, "a").await;
        let staged = batch(sink.fields(), 0, &[row(1, 10), row(2, 20)]);
        let record = stage(&mut sink, &was, staged);
        drop_after(sink.commit_transaction(&record), polls).await;
        let reclaim = Claim::Reclaim { generation: was.generation, session: "a again".into() };
        let found = sink.init_transactions(&reclaim).await.expect("the delivery is still ours");
        match decide_outcome(record.epoch, found.epoch, FoundAt::Outside, Owner::Us) {
            // What was staged is kept until the outcome is known; if it landed, it is forgotten now.
            Outcome::Landed if sink.transaction_state() == TransactionState::Idle => {}
            Outcome::Landed => sink.abort_transaction().await.expect("the buffer is no longer needed"),
            Outcome::CommitAgain => {
                sink.commit_transaction(&record).await.expect("the same buffer commits again");
            }
            lost @ (Outcome::LaneLost | Outcome::LandedInPart | Outcome::Broken { .. }) => {
                panic!("a commit in doubt ended as {lost:?}")
            }
        }
        assert_eq!(harness.rows(), [(1, 10), (2, 20)], "dropped after {polls} polls");
    }
}

/// Polls a future at most `polls` times, with a little time between, and drops it.
async fn drop_after(future: impl Future, polls: usize) {
    let mut future = pin!(future);
    for _ in 0..polls {
        let done = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if done.is_ready() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// After a commit in doubt the books count every input and every letter once.
pub async fn a_commit_in_doubt_is_counted_once(harness: &mut impl Harness) {
    for polls in 0..6 {
        harness.empty(if harness.is_one_transaction() { ConflictMode::Append } else { ConflictMode::Update });
        let (mut sink, was) = claimed(harness, "a").await;
        let staged = batch(sink.fields(), 0, &[row(1, 10), row(2, POISON), row(3, 30)]);
        let record = stage(&mut sink, &was, staged);
        drop_after(sink.commit_transaction(&record), polls).await;
        let reclaim = Claim::Reclaim { generation: was.generation, session: "a again".into() };
        let found = sink.init_transactions(&reclaim).await.expect("the delivery is still ours");
        let after = match decide_outcome(record.epoch, found.epoch, FoundAt::Outside, Owner::Us) {
            Outcome::Landed => found,
            Outcome::CommitAgain => sink.commit_transaction(&record).await.expect("commits again").progress,
            lost @ (Outcome::LaneLost | Outcome::LandedInPart | Outcome::Broken { .. }) => {
                panic!("a commit in doubt ended as {lost:?}")
            }
        };
        sink.finish().await.expect("nothing stands against it");
        let totals = Totals { read: 3, delivered: 2, filtered: 0, dead: 1, rows: 2 };
        assert_eq!((after.totals, harness.letters()), (totals, vec![1]), "dropped after {polls} polls");
        let (_, found) = claimed(harness, "b").await;
        assert_eq!(found.totals, totals, "dropped after {polls} polls");
    }
}

/// The compare-and-swap looks at the position too.
pub async fn an_epoch_that_does_not_begin_where_progress_ends_is_fenced(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    let elsewhere = Progress { bookmark: Bookmark::at("only", 7), ..was };
    let staged = batch(sink.fields(), 7, &[row(1, 10)]);
    let record = stage(&mut sink, &elsewhere, staged);
    let fenced = sink.commit_transaction(&record).await.expect_err("progress is not at 7");
    assert!(matches!(fenced, SinkError::FencedOut { .. }), "{fenced}");
    assert_eq!(harness.rows(), []);
}

/// An epoch that is committed a second time is not applied a second time.
pub async fn an_epoch_that_was_committed_is_not_committed_again(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    deliver(&mut sink, &was, &[row(1, 10)]).await;
    let staged = batch(sink.fields(), 0, &[row(1, 10)]);
    let record = stage(&mut sink, &was, staged);
    sink.commit_transaction(&record).await.expect_err("progress has moved past this epoch");
    assert_eq!(harness.rows(), [(1, 10)]);
}

/// The life cycle: every move that it does not list is refused, and nothing comes of it.
pub async fn illegal_moves_are_refused_and_change_nothing(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let illegal = |result: Result<(), SinkError>| assert!(matches!(result, Err(SinkError::Illegal(_))), "{result:?}");
    let early = harness.sink(&id()).begin_transaction(Epoch(1)).expect_err("nothing was claimed");
    assert!(matches!(early, SinkError::TransactionInitFailed { .. }), "{early}");
    let (mut sink, was) = claimed(harness, "a").await;
    let staged = Arc::new(batch(sink.fields(), 0, &[row(1, 10)]));
    let record = record(&was, &staged);
    illegal(sink.write(Arc::clone(&staged)));
    illegal(sink.commit_transaction(&record).await.map(drop));
    illegal(sink.abort_transaction().await);
    sink.begin_transaction(record.epoch).expect("idle");
    illegal(sink.begin_transaction(record.epoch.next()));
    assert_eq!(sink.transaction_state(), TransactionState::Active { epoch: record.epoch });
    sink.write(Arc::clone(&staged)).expect("open");
    illegal(sink.write(Arc::new(batch(sink.fields(), 0, &[row(2, 20)]))));
    sink.commit_transaction(&record).await.expect("a legal commit after refused moves");
    assert_eq!(harness.rows(), [(1, 10)]);
}

fn undecodable() -> Cause {
    let message = "no event".to_owned();
    Cause { stage: Stage::Decode, code: "HX2001", fingerprint: message.clone(), message }
}

/// Dead letters are in the epoch's transaction: there if it committed, not there if it did not.
pub async fn letters_share_the_fate_of_their_epoch(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut old, was) = claimed(harness, "old").await;
    let with_letter = |fields: &[FieldPath]| {
        let mut batch = batch(fields, 0, &[row(1, 10), row(2, POISON)]);
        batch.inputs.push(Position::at(2), b"not an event");
        batch.push_letter(2, undecodable(), None);
        batch
    };
    let staged = with_letter(old.fields());
    let record = stage(&mut old, &was, staged);
    let (mut new, found) = claimed(harness, "new").await;
    old.commit_transaction(&record).await.expect_err("fenced");
    assert_eq!((harness.rows(), harness.letters()), (Vec::new(), Vec::new()));
    let staged = with_letter(new.fields());
    let record = stage(&mut new, &found, staged);
    let committed = new.commit_transaction(&record).await.expect("ours");
    assert_eq!((harness.rows(), harness.letters()), (vec![(1, 10)], vec![1, 2]));
    assert_eq!(committed.dead_inputs, [1, 2]);
    assert_eq!(committed.progress.totals, Totals { read: 3, delivered: 1, filtered: 0, dead: 2, rows: 1 });
}

/// A row that the target refuses becomes a dead letter; every other input is delivered. An input is delivered whole
/// or not at all.
pub async fn a_refused_row_takes_only_its_own_input_along(harness: &mut impl Harness) {
    for mode in MODES {
        harness.empty(mode);
        let (mut sink, was) = claimed(harness, "a").await;
        let mut staged = batch(sink.fields(), 0, &[]);
        for n in 0..20 {
            let second = if n == 7 || n == 19 { POISON } else { n + 100 };
            add_input(&mut staged, n.cast_unsigned(), &[row(n, n + 50), row(n + 1000, second)]);
        }
        let record = stage(&mut sink, &was, staged);
        let committed = sink.commit_transaction(&record).await.expect("rows may be refused");
        let good = (0..20).filter(|n| *n != 7 && *n != 19);
        let mut expected: Vec<SeenRow> = good.flat_map(|n| [(n, n + 50), (n + 1000, n + 100)]).collect();
        expected.sort_unstable();
        assert_eq!(harness.rows(), expected, "{mode:?}");
        assert_eq!(harness.letters(), [7, 19], "{mode:?}");
        assert_eq!(committed.dead_inputs, [7, 19], "{mode:?}");
        let totals = Totals { read: 20, delivered: 18, filtered: 0, dead: 2, rows: 36 };
        assert_eq!(committed.progress.totals, totals, "{mode:?}");
        assert_eq!(committed.written.failures, 2, "{mode:?}");
    }
}

/// `onReject: stop`: the first refused row rolls the epoch back, and the delivery can go on after an abort.
pub async fn on_reject_stop_leaves_nothing_behind(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    let staged = batch(sink.fields(), 0, &[row(1, 10), row(2, POISON), row(3, POISON)]);
    let mut record = stage(&mut sink, &was, staged);
    record.rejects = RejectRule::new(OnReject::Stop, 1000);
    let stopped = sink.commit_transaction(&record).await.expect_err("a row was refused");
    assert_eq!(stopped.reaction(), Reaction::Stop(1));
    let SinkError::Rejected { stop, position, .. } = stopped else { panic!("{stopped}") };
    assert_eq!((stop, position), (RejectStop::First { input: 1 }, Position::at(1)));
    assert_eq!((harness.rows(), harness.letters()), (Vec::new(), Vec::new()));
    assert_eq!(sink.transaction_state(), TransactionState::Failed { epoch: record.epoch });
    let again = sink.commit_transaction(&record).await.expect_err("only a claim or an abort leads out");
    assert!(matches!(again, SinkError::Illegal(_)), "{again}");
    sink.abort_transaction().await.expect("a failed epoch can be aborted");
    deliver(&mut sink, &was, &[row(4, 40)]).await;
    assert_eq!(harness.rows(), [(4, 40)]);
}

/// A second pass whose time is over may commit the inputs that it has judged, as an epoch of their own; the rest becomes the
/// next one, and together they are what one epoch would have been. Only a sink that promises one transaction does so.
pub async fn a_second_pass_may_commit_its_first_inputs(harness: &mut impl Harness) {
    for mode in MODES {
        harness.empty(mode);
        let (mut sink, mut was) = claimed(harness, "a").await;
        let events: Vec<Event> = (0..300).map(|n| row(n, if n % 3 == 1 { POISON } else { n + 50 })).collect();
        let mut rest = batch(sink.fields(), 0, &events);
        let mut epochs = 0;
        while !rest.inputs.is_empty() {
            let mut record = stage(&mut sink, &was, rest.after_first(0));
            record.pass.prefix_from = Some(std::time::Instant::now());
            let committed = sink.commit_transaction(&record).await.expect("all may die");
            let inputs = usize::try_from(committed.progress.totals.read - was.totals.read).expect("small");
            assert!(inputs > 0, "every epoch gets on");
            assert_eq!(committed.progress.bookmark.position.offset, was.bookmark.position.offset + inputs as u64);
            assert_eq!(sink.look().await.expect("it can be read"), Some(committed.progress.clone()));
            rest = rest.after_first(inputs);
            (was, epochs) = (committed.progress, epochs + 1);
        }
        assert!(epochs > 1 || !harness.is_one_transaction(), "{mode:?}: the time was over from the start");
        let good = (0..300).filter(|n| n % 3 != 1).map(|n| (n, n + 50)).collect::<Vec<_>>();
        assert_eq!(harness.rows(), good, "{mode:?}");
        assert_eq!(harness.letters(), (0..100).map(|n| n * 3 + 1).collect::<Vec<u64>>(), "{mode:?}");
        assert_eq!(was.totals, Totals { read: 300, delivered: 200, filtered: 0, dead: 100, rows: 200 }, "{mode:?}");
    }
}

/// Inputs that died before they reached the sink count for `maxRejects` as well.
pub async fn letters_of_the_fill_are_judged_too(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    let mut staged = batch(sink.fields(), 0, &(0..100).map(|n| row(n, n + 50)).collect::<Vec<_>>());
    for n in 100..112 {
        staged.inputs.push(Position::at(n), b"not an event");
        staged.push_letter(usize::try_from(n).expect("small"), undecodable(), None);
    }
    let mut record = stage(&mut sink, &was, staged);
    record.rejects = RejectRule::new(OnReject::DeadLetter, 100);
    let stopped = sink.commit_transaction(&record).await.expect_err("12 of 112 died");
    assert!(matches!(stopped, SinkError::Rejected { stop: RejectStop::TooMany { .. }, .. }), "{stopped}");
    assert_eq!((harness.rows(), harness.letters()), (Vec::new(), Vec::new()));
}

/// `append` every event, `ignore` the first of a key, `update` the last in lane order, `newer` the highest version:
/// within one epoch and across two.
pub async fn each_mode_leaves_the_row_that_it_promises(harness: &mut impl Harness) {
    let first = [version(2, 20, 5), version(1, 10, 1), version(2, 21, 9), version(2, 22, 7)];
    let second = [version(2, 30, 8), version(1, 11, 2), version(2, 31, 4), version(3, 40, 1)];
    let expected = |mode| match mode {
        ConflictMode::Append => vec![(1, 10), (1, 11), (2, 20), (2, 21), (2, 22), (2, 30), (2, 31), (3, 40)],
        ConflictMode::Ignore => vec![(1, 10), (2, 20), (3, 40)],
        ConflictMode::Update => vec![(1, 11), (2, 31), (3, 40)],
        ConflictMode::Newer => vec![(1, 11), (2, 21), (3, 40)],
    };
    for mode in MODES {
        harness.empty(mode);
        let (mut sink, was) = claimed(harness, "a").await;
        let after = deliver(&mut sink, &was, &first).await.progress;
        deliver(&mut sink, &after, &second).await;
        assert_eq!(harness.rows(), expected(mode), "{mode:?}");
    }
}

/// In the second, slow try of an epoch every mode still leaves what it promises, and events are tried in lane order.
pub async fn a_refused_row_changes_nothing_for_the_others_of_its_key(harness: &mut impl Harness) {
    let events = [version(2, POISON, 9), version(2, 20, 5), version(1, 10, 1), version(2, 21, 7), version(2, 22, 6)];
    let expected = |mode| match mode {
        ConflictMode::Append => vec![(1, 10), (2, 20), (2, 21), (2, 22)],
        ConflictMode::Ignore => vec![(1, 10), (2, 20)],
        ConflictMode::Update => vec![(1, 10), (2, 22)],
        ConflictMode::Newer => vec![(1, 10), (2, 21)],
    };
    for mode in MODES {
        harness.empty(mode);
        let (mut sink, was) = claimed(harness, "a").await;
        // The poison of another key makes the first try fail in every mode.
        let all: Vec<Event> = events.into_iter().chain([version(9, POISON, 1)]).collect();
        let committed = deliver(&mut sink, &was, &all).await;
        assert_eq!(harness.rows(), expected(mode), "{mode:?}");
        assert_eq!(committed.dead_inputs, [0, 5], "{mode:?}");
    }
}

/// Deletes: the row is gone in `update`; in `newer` an older event does not bring it back, and a newer one does.
pub async fn a_delete_removes_its_row(harness: &mut impl Harness) {
    for mode in [ConflictMode::Update, ConflictMode::Newer] {
        harness.empty(mode);
        let (mut sink, was) = claimed(harness, "a").await;
        let after = deliver(&mut sink, &was, &[version(1, 10, 1), version(2, 20, 1), version(3, 30, 1)]).await.progress;
        let after = deliver(&mut sink, &after, &[delete(1, 5), delete(2, 5), delete(7, 5)]).await.progress;
        assert_eq!(harness.rows(), [(3, 30)], "{mode:?}");
        let after = deliver(&mut sink, &after, &[version(1, 11, 6)]).await.progress;
        assert_eq!(harness.rows(), [(1, 11), (3, 30)], "{mode:?}");
        if mode == ConflictMode::Newer {
            deliver(&mut sink, &after, &[version(2, 21, 4), version(7, 70, 4)]).await;
            assert_eq!(harness.rows(), [(1, 11), (3, 30)]);
        }
    }
}

/// Inputs without outputs still move the position.
pub async fn an_empty_epoch_moves_the_position(harness: &mut impl Harness) {
    harness.empty(ConflictMode::Append);
    let (mut sink, was) = claimed(harness, "a").await;
    let mut staged = batch(sink.fields(), 0, &[]);
    staged.inputs.push(Position::at(0), b"{}");
    staged.push_filtered();
    let mut record = stage(&mut sink, &was, staged);
    record.counts = Totals { read: 1, delivered: 0, filtered: 1, dead: 0, rows: 0 };
    let committed = sink.commit_transaction(&record).await.expect("nothing can be refused");
    assert_eq!(committed.progress.bookmark.position, Position::at(1));
    assert!(committed.progress.totals.adds_up());
}
