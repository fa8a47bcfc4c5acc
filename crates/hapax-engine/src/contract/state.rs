//! What every state store must do, as tests over a harness that makes stores and looks at them from outside.
//!
//! Each function is one clause of the docs of [`StateStore`], [`ProgressStore`] and [`StateBooks`]; [`every_clause`]
//! runs them all.

use std::future::Future;
use std::time::Duration;

use hapax_model::contract::{Contract, SOURCE, TARGET};
use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Letter, LetterBytes, Stage};
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::{Progress, Witness};
use hapax_model::rejects::{OnReject, RejectRule};

use crate::books::{Books, Forgotten, OldNames, Pause, StateBooks};
use crate::pulse::Verdict;
use crate::second_pass::SecondPass;
use crate::sink::{Claim, EpochRecord, SinkError};
use crate::state::{DeliveryNote, Intent, Lease, ProgressStore, StateStore, Suspicion, TakeOver};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// Makes state stores of one kind, and looks at them as a person would.
pub trait Harness {
    /// The kind of store.
    type Store: StateStore + ProgressStore + Clone;
    /// What a person asks of it.
    type Books: Books + StateBooks;

    /// Forgets the last store and makes an empty one.
    fn empty(&mut self) -> impl Future<Output = ()>;

    /// The present store, opened by a holder of its own. Several may live at once.
    fn open(&self) -> impl Future<Output = Self::Store>;

    /// The books of the present store.
    fn books(&self) -> impl Future<Output = Self::Books>;

    /// Makes every lease look as if its holder were another process of this kind.
    fn disguise_holders(&self, holder: Disguise) -> impl Future<Output = ()>;
}

/// Whom a lease is to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disguise {
    /// A process of this machine that has ended.
    Ended,
    /// A process of another machine, which may live.
    Elsewhere,
}

/// All clauses.
pub async fn every_clause(harness: &mut impl Harness) {
    a_second_worker_stands_by(harness).await;
    an_expired_lease_is_free(harness).await;
    a_person_can_take_a_lease_over(harness).await;
    the_lease_of_a_process_that_ended_is_free(harness).await;
    of_many_who_ask_at_once_one_gets_the_lease(harness).await;
    a_witness_is_never_lowered(harness).await;
    a_note_replaces_the_one_before(harness).await;
    a_pause_lasts_until_it_is_resumed(harness).await;
    a_suspicion_survives_until_it_is_cleared(harness).await;
    saved_progress_is_fenced_and_keeps_its_letters(harness).await;
    an_intent_survives_a_restart(harness).await;
    an_intent_of_an_older_owner_is_fenced(harness).await;
    lanes_that_become_one_keep_their_doubt(harness).await;
    a_renamed_workflow_keeps_its_witness(harness).await;
    forgetting_takes_one_delivery_whole(harness).await;
}

/// A delivery of this workflow.
#[must_use]
pub fn id(workflow: &str) -> DeliveryId {
    DeliveryId { workflow: workflow.into(), sink: "table".into(), lane: "lane".into() }
}

fn witness(epoch: u64, offset: u64) -> Witness {
    Witness { epoch: Epoch(epoch), bookmark: Bookmark::at("inode 7", offset) }
}

fn take(start: u64) -> Claim {
    let contract = Contract::default().with(SOURCE, "file:a").with(TARGET, "t");
    Claim::Take { start: Bookmark::at("inode 7", start), contract, session: "pid 1 on here".into() }
}

/// The epoch that follows `was` and reads ten inputs.
fn next(was: &Progress) -> EpochRecord {
    let mut to = was.bookmark.clone();
    to.position = Position::at(to.position.offset + 10);
    EpochRecord {
        epoch: was.epoch.next(),
        from: was.bookmark.clone(),
        to,
        counts: Totals { read: 10, delivered: 8, filtered: 1, dead: 1, rows: 16 },
        opened_at_ms: 1,
        closed_at_ms: 2,
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        pass: SecondPass::default(),
    }
}

fn letter(offset: u64) -> Letter {
    let cause = Cause { stage: Stage::Decode, code: "HX2001", message: "no event".into(), fingerprint: "x".into() };
    Letter { position: Position::at(offset), cause, bytes: LetterBytes::Whole(vec![0xff, 0]), event_key: None }
}

async fn ask(store: &mut impl StateStore, workflow: &str) -> Lease {
    store.lease(&id(workflow), LONG, TakeOver::Never).await.expect("the store answers")
}

fn held(lease: &Lease) -> bool {
    matches!(lease, Lease::Held { .. })
}

/// Goal: one of two workers holds the lease, the other stands by and knows for how long. Method: two stores.
async fn a_second_worker_stands_by(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut first, mut second) = (harness.open().await, harness.open().await);
    assert_eq!(ask(&mut first, "w").await, Lease::Ours);
    assert_eq!(ask(&mut first.clone(), "w").await, Lease::Ours, "a clone is the same holder");
    let Lease::Held { by, remaining } = ask(&mut second, "w").await else { panic!("two holders of one lease") };
    assert!(by.starts_with(&format!("pid {} on ", std::process::id())), "{by}");
    assert!(remaining > LONG / 2 && remaining <= LONG, "{remaining:?}");
    assert_eq!(ask(&mut second, "other").await, Lease::Ours);
    second.release(&id("w")).await.expect("the store answers");
    assert!(held(&ask(&mut second, "w").await), "only its holder gives a lease back");
    first.release(&id("w")).await.expect("the store answers");
    assert_eq!(ask(&mut second, "w").await, Lease::Ours);
}

/// Goal: a lease that is not renewed ends, and its old holder cannot renew it. Method: a short one.
async fn an_expired_lease_is_free(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut first, mut second) = (harness.open().await, harness.open().await);
    assert_eq!(first.lease(&id("w"), SHORT, TakeOver::Never).await.expect("the store answers"), Lease::Ours);
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(ask(&mut second, "w").await, Lease::Ours);
    assert!(held(&ask(&mut first, "w").await));
}

/// Goal: a person can take a lease from a worker that lives. Method: take over, then the old holder asks.
async fn a_person_can_take_a_lease_over(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut first, mut second) = (harness.open().await, harness.open().await);
    ask(&mut first, "w").await;
    assert_eq!(second.lease(&id("w"), LONG, TakeOver::Now).await.expect("the store answers"), Lease::Ours);
    assert!(held(&ask(&mut first, "w").await));
    first.release(&id("w")).await.expect("the store answers");
    let leases = harness.books().await.leases().await.expect("the store answers");
    assert_eq!(leases.len(), 1, "a release by the old holder does not free it");
}

/// Goal: a restart after a kill need not wait for the lease of the killed process. Method: the lease of a process
/// that has ended, and of one on another machine, which may still live.
async fn the_lease_of_a_process_that_ended_is_free(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut first, mut second) = (harness.open().await, harness.open().await);
    ask(&mut first, "w").await;
    harness.disguise_holders(Disguise::Elsewhere).await;
    assert!(held(&ask(&mut second, "w").await));
    ask(&mut first, "w").await;
    harness.disguise_holders(Disguise::Ended).await;
    assert_eq!(ask(&mut second, "w").await, Lease::Ours);
}

/// Goal: a lease has one holder, however many ask for it at once. Method: eight stores, rounds of asking together.
async fn of_many_who_ask_at_once_one_gets_the_lease(harness: &mut impl Harness) {
    harness.empty().await;
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(harness.open().await);
    }
    for round in 0..5 {
        let workflow = format!("w{round}");
        let asking: Vec<_> = stores
            .iter()
            .cloned()
            .map(|mut store| {
                let workflow = workflow.clone();
                tokio::spawn(async move { ask(&mut store, &workflow).await })
            })
            .collect();
        let mut ours = 0;
        for answer in asking {
            ours += u32::from(answer.await.expect("no panic") == Lease::Ours);
        }
        assert_eq!(ours, 1, "round {round}");
    }
}

/// Goal: a witness never goes back, unless a person says so. Method: save an older one, then reset.
async fn a_witness_is_never_lowered(harness: &mut impl Harness) {
    harness.empty().await;
    let mut state = harness.open().await;
    assert_eq!(state.load_witness(&id("w")).await.expect("the store answers"), None);
    for (save, expected) in [((5, 50), (5, 50)), ((4, 40), (5, 50)), ((5, 55), (5, 55)), ((6, 10), (6, 10))] {
        state.save_witness(&id("w"), &witness(save.0, save.1)).await.expect("the store answers");
        let found = state.load_witness(&id("w")).await.expect("the store answers");
        assert_eq!(found, Some(witness(expected.0, expected.1)));
    }
    let mut books = harness.books().await;
    assert_eq!(books.witnesses().await.expect("the store answers"), [(id("w"), witness(6, 10))]);
    books.reset_witness(&id("w")).await.expect("the store answers");
    assert_eq!(state.load_witness(&id("w")).await.expect("the store answers"), None);
}

/// Goal: the last note is the one that shows. Method: note twice.
async fn a_note_replaces_the_one_before(harness: &mut impl Harness) {
    harness.empty().await;
    let mut state = harness.open().await;
    let running = DeliveryNote { state: WorkerState::Running, exit_code: None, code: None, message: String::new() };
    let stopped = DeliveryNote {
        state: WorkerState::Stopped,
        exit_code: Some(5),
        code: Some("HX4012".into()),
        message: "the contract has changed".into(),
    };
    state.note(&id("w"), &running).await.expect("the store answers");
    state.note(&id("w"), &stopped).await.expect("the store answers");
    let notes = harness.books().await.notes().await.expect("the store answers");
    assert_eq!(notes.len(), 1);
    assert_eq!((&notes[0].id, &notes[0].note), (&id("w"), &stopped));
    assert!(notes[0].session.starts_with("pid "), "{}", notes[0].session);
}

/// Goal: a pause is kept, seen by workers, replaced by the next one, and ends when it is taken back or its time is over.
/// Method: pause twice, ask as a worker, resume twice; then one whose time is over.
async fn a_pause_lasts_until_it_is_resumed(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut state, mut books) = (harness.open().await, harness.books().await);
    let pause = |by: &str, until_ms| Pause {
        workflow: "w".into(),
        by: by.into(),
        why: "the target is moved".into(),
        since_ms: 7,
        until_ms,
    };
    assert!(!books.resume("w").await.expect("the store answers"));
    books.pause(&pause("pid 1 on here", Some(1))).await.expect("the store answers");
    assert!(!state.paused("w").await.expect("the store answers"), "its time is over");
    books.pause(&pause("pid 2 on here", Some(u64::MAX / 4))).await.expect("the store answers");
    assert!(state.paused("w").await.expect("the store answers"), "its time is not over");
    books.pause(&pause("pid 3 on here", None)).await.expect("the store answers");
    assert_eq!(books.pauses().await.expect("the store answers"), [pause("pid 3 on here", None)]);
    assert!(state.paused("w").await.expect("the store answers"));
    assert!(!state.paused("v").await.expect("the store answers"));
    assert!(books.resume("w").await.expect("the store answers"));
    assert!(!state.paused("w").await.expect("the store answers"));
}

/// Goal: what a watchdog wrote down is there after a crash, per delivery. Method: another holder reads it.
async fn a_suspicion_survives_until_it_is_cleared(harness: &mut impl Harness) {
    harness.empty().await;
    let mut state = harness.open().await;
    let suspicion = |lives, verdict| Suspicion { at: Bookmark::at("inode 7: odd", 12), lives, verdict };
    assert_eq!(state.suspicion(&id("w")).await.expect("the store answers"), None);
    state.suspect(&id("w"), &suspicion(1, None)).await.expect("the store answers");
    state.suspect(&id("w"), &suspicion(2, Some(Verdict::TooLong))).await.expect("the store answers");
    let mut other = harness.open().await;
    let found = other.suspicion(&id("w")).await.expect("the store answers");
    assert_eq!(found, Some(suspicion(2, Some(Verdict::TooLong))));
    assert_eq!(other.suspicion(&id("v")).await.expect("the store answers"), None);
    other.clear_suspicion(&id("w")).await.expect("the store answers");
    assert_eq!(state.suspicion(&id("w")).await.expect("the store answers"), None);
}

/// Goal: progress beside the target is fenced like progress inside it, with its letters. Method: two stores.
async fn saved_progress_is_fenced_and_keeps_its_letters(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut old, mut new) = (harness.open().await, harness.open().await);
    let zombie = old.claim(&id("w"), &take(0)).await.expect("the store answers");
    let saved = old.save(&id("w"), &zombie, &next(&zombie), &[letter(3)]).await.expect("the store answers");
    let owner = new.claim(&id("w"), &take(0)).await.expect("the store answers");
    assert_eq!((owner.generation, &owner.bookmark), (Generation(2), &saved.bookmark));
    let fenced = old.save(&id("w"), &saved, &next(&saved), &[letter(4)]).await.expect_err("a zombie saves nothing");
    assert!(matches!(fenced, SinkError::FencedOut { .. }), "{fenced}");
    assert_eq!(new.look(&id("w")).await.expect("the store answers"), Some(owner.clone()));
    assert_eq!(new.others(&id("v")).await.expect("the store answers"), [(id("w"), owner)]);
    let mut books = harness.books().await;
    let counts = books.letter_counts(&id("w")).await.expect("the store answers");
    assert_eq!(counts.dead, 1, "the letter of the fenced save is not there");
    assert_eq!(books.recent_epochs(&id("w"), 9).await.expect("the store answers").len(), 1);
}

/// Goal: what was about to be sent is known after a restart, and after a reset that goes on where it was, without its keys; one to another
/// place forgets it. Method: save, open again, reset to both.
async fn an_intent_survives_a_restart(harness: &mut impl Harness) {
    harness.empty().await;
    let mut state = harness.open().await;
    let was = state.claim(&id("w"), &take(0)).await.expect("the store answers");
    assert_eq!(state.load_intent(&id("w")).await.expect("the store answers"), None);
    let intent = |to| Intent { from: Bookmark::at("a", 1), to: Bookmark::at("b", to), digest: [9; 32] };
    state.save_intent(&id("w"), was.generation, Epoch(1), &intent(5)).await.expect("the store answers");
    state.save_intent(&id("w"), was.generation, Epoch(2), &intent(6)).await.expect("the store answers");
    drop(state);
    let mut state = harness.open().await;
    assert_eq!(state.load_intent(&id("w")).await.expect("the store answers"), Some(intent(6)));
    let here = was.bookmark.clone();
    let there = Bookmark { position: Position::at(here.position.offset + 1), ..here.clone() };
    harness.books().await.reset(&id("w"), &here, None).await.expect("the store answers");
    let kept = Intent { digest: [0; 32], ..intent(6) };
    assert_eq!(state.load_intent(&id("w")).await.expect("the store answers"), Some(kept));
    harness.books().await.reset(&id("w"), &there, None).await.expect("the store answers");
    assert_eq!(state.load_intent(&id("w")).await.expect("the store answers"), None);
}

/// Goal: a worker that was fenced writes down nothing. Method: the older of two owners, after the newer one's intent.
async fn an_intent_of_an_older_owner_is_fenced(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut old, mut new) = (harness.open().await, harness.open().await);
    let older = old.claim(&id("w"), &take(0)).await.expect("the store answers");
    let newer = new.claim(&id("w"), &take(0)).await.expect("the store answers");
    let intent = |to| Intent { from: Bookmark::at("a", 1), to: Bookmark::at("a", to), digest: [9; 32] };
    new.save_intent(&id("w"), newer.generation, Epoch(1), &intent(5)).await.expect("it is the owner");
    let fenced = old.save_intent(&id("w"), older.generation, Epoch(1), &intent(9)).await;
    assert!(matches!(fenced, Err(SinkError::FencedOut { .. })), "{fenced:?}");
    assert_eq!(new.load_intent(&id("w")).await.expect("the store answers"), Some(intent(5)));
}

/// Goal: what one of several lanes was about to send is known under the lane that they become, at its new number, without its keys.
/// Method: two lanes, of which the younger has an intent; joined under a third name and under that of the younger.
async fn lanes_that_become_one_keep_their_doubt(harness: &mut impl Harness) {
    let lane = |name: &str| DeliveryId { lane: name.into(), ..id("w") };
    for new in ["c", "b"] {
        harness.empty().await;
        let mut state = harness.open().await;
        state.claim(&lane("a"), &take(0)).await.expect("the store answers");
        let was = state.claim(&lane("b"), &take(0)).await.expect("the store answers");
        let at = |number: u32, offset| {
            let text = &was.bookmark.incarnation.text;
            Bookmark::new(Incarnation::new(number, text), Position::at(offset))
        };
        let number = was.bookmark.incarnation.number;
        let intent = Intent { from: at(number, 1), to: at(number, 5), digest: [9; 32] };
        state.save_intent(&lane("b"), was.generation, Epoch(1), &intent).await.expect("the store answers");
        let (old, to) = ([lane("a"), lane("b")], at(2 * number, 1));
        let mut books = harness.books().await;
        books.adopt_lanes(&old, &lane(new), &to, None, OldNames::Fenced).await.expect("the store answers");
        let expected = Intent { from: at(2 * number, 1), to: at(2 * number, 5), digest: [0; 32] };
        assert_eq!(state.load_intent(&lane(new)).await.expect("the store answers"), Some(expected), "as {new}");
        assert_eq!(state.load_intent(&lane("a")).await.expect("the store answers"), None);
    }
}

/// Goal: a renamed workflow keeps its witness. Method: move it over one that the new name already had.
async fn a_renamed_workflow_keeps_its_witness(harness: &mut impl Harness) {
    harness.empty().await;
    let mut state = harness.open().await;
    state.save_witness(&id("old"), &witness(5, 50)).await.expect("the store answers");
    state.save_witness(&id("new"), &witness(1, 10)).await.expect("the store answers");
    let mut books = harness.books().await;
    books.adopt_memory("old", "new", "table").await.expect("the store answers");
    assert_eq!(state.load_witness(&id("new")).await.expect("the store answers"), Some(witness(5, 50)));
    assert_eq!(state.load_witness(&id("old")).await.expect("the store answers"), None);
    books.adopt_memory("nobody", "new", "table").await.expect("nothing to move is no error");
}

/// Goal: forgetting takes all of one delivery and nothing of another. Method: two deliveries, one forgotten twice.
async fn forgetting_takes_one_delivery_whole(harness: &mut impl Harness) {
    harness.empty().await;
    let (mut state, mut books) = (harness.open().await, harness.books().await);
    for workflow in ["a", "b"] {
        let was = state.claim(&id(workflow), &take(0)).await.expect("the store answers");
        state.save(&id(workflow), &was, &next(&was), &[letter(3)]).await.expect("the store answers");
        state.save_witness(&id(workflow), &witness(1, 10)).await.expect("the store answers");
    }
    for expected in [Forgotten::Progress, Forgotten::Nothing] {
        assert_eq!(books.forget(&id("a")).await.expect("the store answers"), expected);
    }
    let left = books.deliveries().await.expect("the store answers");
    assert_eq!(left.iter().map(|found| &found.id).collect::<Vec<_>>(), [&id("b")]);
    assert_eq!(state.load_witness(&id("a")).await.expect("the store answers"), None);
    assert_eq!(state.load_witness(&id("b")).await.expect("the store answers"), Some(witness(1, 10)));
    assert_eq!(books.letter_counts(&id("a")).await.expect("the store answers").dead, 0);
    assert_eq!(books.letter_counts(&id("b")).await.expect("the store answers").dead, 1);
}
