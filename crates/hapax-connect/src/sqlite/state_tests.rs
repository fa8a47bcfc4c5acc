use hapax_model::epoch::Generation;
use hapax_model::position::Bookmark;

use super::super::admin;
use super::super::letters;
use super::super::sample::{Place, id, letter, next, take};
use super::*;

const LONG: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_secs(20);

async fn open(place: &Place) -> SqliteState {
    SqliteState::open(&place.path(), WAIT).await.unwrap()
}

fn witness(epoch: u64, offset: u64) -> Witness {
    Witness { epoch: Epoch(epoch), bookmark: Bookmark::at("inode 7", offset) }
}

/// Goal: the store makes its own folder and file. Method: a path two folders deep that does not exist.
#[tokio::test]
async fn the_store_makes_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/state.db");
    let mut state = SqliteState::open(&path, WAIT).await.unwrap();
    assert_eq!(state.load_witness(&id("w")).await.unwrap(), None);
    assert!(path.exists());
    let below_a_file = SqliteState::open(&path.join("c/state.db"), WAIT).await.unwrap_err();
    assert_eq!(below_a_file.code(), "HX4001");
}

/// Goal: one of two workers holds the lease, the other stands by and knows for how long. Method: two stores.
#[tokio::test]
async fn a_second_worker_stands_by() {
    let place = Place::new();
    let (mut first, mut second) = (open(&place).await, open(&place).await);
    assert_eq!(first.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Ours);
    assert_eq!(first.clone().lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Ours);
    let held = second.lease(&id("w"), LONG, TakeOver::Never).await.unwrap();
    let Lease::Held { by, remaining } = held else { panic!("{held:?}") };
    assert_eq!(by, session_name());
    assert!(remaining > LONG / 2 && remaining <= LONG, "{remaining:?}");
    assert_eq!(second.lease(&id("other"), LONG, TakeOver::Never).await.unwrap(), Lease::Ours);
    second.release(&id("w")).await.unwrap();
    assert!(matches!(second.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Held { .. }));
    first.release(&id("w")).await.unwrap();
    assert_eq!(second.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Ours);
}

/// Goal: a lease that is not renewed ends, and its old holder cannot renew it. Method: a short one.
#[tokio::test]
async fn an_expired_lease_is_free() {
    let place = Place::new();
    let (mut first, mut second) = (open(&place).await, open(&place).await);
    assert_eq!(first.lease(&id("w"), Duration::from_millis(30), TakeOver::Never).await.unwrap(), Lease::Ours);
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert_eq!(second.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Ours);
    assert!(matches!(first.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Held { .. }));
}

/// Goal: a person can take a lease from a worker that lives. Method: take over, then the old holder asks.
#[tokio::test]
async fn a_person_can_take_a_lease_over() {
    let place = Place::new();
    let (mut first, mut second) = (open(&place).await, open(&place).await);
    first.lease(&id("w"), LONG, TakeOver::Never).await.unwrap();
    assert_eq!(second.lease(&id("w"), LONG, TakeOver::Now).await.unwrap(), Lease::Ours);
    assert!(matches!(first.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Held { .. }));
    first.release(&id("w")).await.unwrap();
    let leases = second.run(During::Look, admin::leases).await.unwrap();
    assert_eq!(leases.len(), 1, "a release by the old holder does not free it");
}

/// Goal: a restart after a kill need not wait for the lease of the killed process. Method: the lease of a process
/// that has ended, and of one on another machine, which may still live.
#[tokio::test]
async fn the_lease_of_a_process_that_ended_is_free() {
    let place = Place::new();
    let (mut first, mut second) = (open(&place).await, open(&place).await);
    first.lease(&id("w"), LONG, TakeOver::Never).await.unwrap();
    place.connect().execute_batch("UPDATE hapax_leases SET started = started + 1, machine = 'elsewhere'").unwrap();
    assert!(matches!(second.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Held { .. }));
    first.lease(&id("w"), LONG, TakeOver::Never).await.unwrap();
    place.connect().execute_batch("UPDATE hapax_leases SET started = started + 1").unwrap();
    assert_eq!(second.lease(&id("w"), LONG, TakeOver::Never).await.unwrap(), Lease::Ours);
}

/// Goal: a witness never goes back, unless a person says so. Method: save an older one, then reset.
#[tokio::test]
async fn a_witness_is_never_lowered() {
    let place = Place::new();
    let mut state = open(&place).await;
    assert_eq!(state.load_witness(&id("w")).await.unwrap(), None);
    for (save, expected) in [((5, 50), (5, 50)), ((4, 40), (5, 50)), ((5, 55), (5, 55)), ((6, 10), (6, 10))] {
        state.save_witness(&id("w"), &witness(save.0, save.1)).await.unwrap();
        assert_eq!(state.load_witness(&id("w")).await.unwrap(), Some(witness(expected.0, expected.1)));
    }
    assert_eq!(state.run(During::Look, admin::witnesses).await.unwrap(), [(id("w"), witness(6, 10))]);
    state.run(During::Look, |connection| admin::reset_witness(connection, &id("w"))).await.unwrap();
    assert_eq!(state.load_witness(&id("w")).await.unwrap(), None);
}

/// Goal: the last note is the one that shows. Method: note twice.
#[tokio::test]
async fn a_note_replaces_the_one_before() {
    let place = Place::new();
    let mut state = open(&place).await;
    let running = DeliveryNote { state: "running".into(), exit_code: None, code: None, message: String::new() };
    let stopped = DeliveryNote {
        state: "stopped".into(),
        exit_code: Some(5),
        code: Some("HX4012".into()),
        message: "the contract has changed".into(),
    };
    state.note(&id("w"), &running).await.unwrap();
    state.note(&id("w"), &stopped).await.unwrap();
    let notes = state.run(During::Look, admin::notes).await.unwrap();
    assert_eq!(notes.len(), 1);
    assert_eq!((&notes[0].id, &notes[0].note, &notes[0].session), (&id("w"), &stopped, &session_name()));
}

/// Goal: progress beside the target is fenced like progress inside it, with its letters. Method: two stores.
#[tokio::test]
async fn saved_progress_is_fenced_and_keeps_its_letters() {
    let place = Place::new();
    let (mut old, mut new) = (open(&place).await, open(&place).await);
    let zombie = ProgressStore::claim(&mut old, &id("w"), &take(0)).await.unwrap();
    let saved = old.save(&id("w"), &zombie, &next(&zombie), &[letter(3, "x")]).await.unwrap();
    let owner = new.claim(&id("w"), &take(0)).await.unwrap();
    assert_eq!((owner.generation, &owner.bookmark), (Generation(2), &saved.bookmark));
    let fenced = old.save(&id("w"), &saved, &next(&saved), &[letter(4, "x")]).await.unwrap_err();
    assert!(matches!(fenced, SinkError::FencedOut { .. }), "{fenced}");
    assert_eq!(new.look(&id("w")).await.unwrap(), Some(owner.clone()));
    assert_eq!(new.others(&id("v")).await.unwrap(), [(id("w"), owner)]);
    let counts = new.run(During::Look, |connection| letters::counts(connection, &id("w"))).await.unwrap();
    assert_eq!(counts.dead, 1, "the letter of the fenced save is not there");
}

/// Goal: what was about to be sent is known after a restart; a reset forgets it. Method: save, open again, reset.
#[tokio::test]
async fn an_intent_survives_a_restart() {
    let place = Place::new();
    let mut state = open(&place).await;
    state.claim(&id("w"), &take(0)).await.unwrap();
    assert_eq!(state.load_intent(&id("w")).await.unwrap(), None);
    let intent = |to| Intent { from: Bookmark::at("a", 1), to: Bookmark::at("b", to), digest: [9; 32] };
    state.save_intent(&id("w"), Epoch(1), &intent(5)).await.unwrap();
    state.save_intent(&id("w"), Epoch(2), &intent(6)).await.unwrap();
    drop(state);
    let mut state = open(&place).await;
    assert_eq!(state.load_intent(&id("w")).await.unwrap(), Some(intent(6)));
    let to = Bookmark::at("a", 0);
    state.run(During::Look, move |c| admin::reset(c, &id("w"), &to, None)).await.unwrap();
    assert_eq!(state.load_intent(&id("w")).await.unwrap(), None);
}

/// Goal: a renamed workflow keeps its witness. Method: move it over one that the new name already had.
#[tokio::test]
async fn a_renamed_workflow_keeps_its_witness() {
    let place = Place::new();
    let mut state = open(&place).await;
    state.save_witness(&id("old"), &witness(5, 50)).await.unwrap();
    state.save_witness(&id("new"), &witness(1, 10)).await.unwrap();
    state.run(During::Look, |c| admin::adopt_memory(c, "old", "new", "sqlite")).await.unwrap();
    assert_eq!(state.load_witness(&id("new")).await.unwrap(), Some(witness(5, 50)));
    assert_eq!(state.load_witness(&id("old")).await.unwrap(), None);
}
