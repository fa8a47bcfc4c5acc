use std::collections::BTreeMap;
use std::time::Duration;

use hapax_engine::books::{Books as _, StateBooks as _};
use hapax_engine::letters::LetterStore as _;
use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_engine::state::{DeliveryNote, Lease, ProgressStore as _, StateStore as _, TakeOver};
use hapax_model::epoch::Epoch;
use hapax_model::position::Bookmark;
use hapax_model::progress::Witness;
use hapax_sql::postgres::Limits;

use super::super::books::PostgresBooks;
use super::super::sample::{Place, id, letter, next, pause, run, take};
use super::super::state::PostgresState;
use super::super::{progress, tables};
use super::*;

/// A database with a role that may connect to it, and nothing more.
struct Guest {
    place: Place,
    name: String,
}

impl Guest {
    async fn new() -> Self {
        let place = Place::new().await;
        let name = format!("guest of {}", place.url().database().unwrap());
        run(&place.bare().await, &format!("CREATE ROLE \"{name}\" LOGIN")).await;
        Self { place, name }
    }

    async fn connect(&self) -> Session {
        Session::connect(&self.place.url_of(&self.name.replace(' ', "%20")), &Limits::default()).await.unwrap()
    }

    async fn owner_runs(&self, sql: &str) {
        run(&self.place.bare().await, sql).await;
    }

    /// A role outlives its database: it goes when the test has ended well.
    async fn leave(self) {
        let name = &self.name;
        self.owner_runs(&format!("DROP OWNED BY \"{name}\"; DROP ROLE \"{name}\"")).await;
    }
}

fn denied(result: Result<impl std::fmt::Debug, SinkError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), "HX4016", "{error}");
    error.to_string()
}

/// Goal: whoever lacks rights is told the GRANTs that give them, all at once. Method: a role with nothing follows the
/// advice, and the check is content; then each right is taken away alone.
#[tokio::test]
async fn each_missing_right_is_named_with_its_grant() {
    let guest = Guest::new().await;
    let session = guest.connect().await;
    let quoted = quote_identifier(&guest.name).unwrap();
    let text = denied(tables::ensure(&session, Role::Target).await);
    assert!(text.contains(&format!("GRANT CREATE ON DATABASE … TO {quoted}")), "{text}");
    tables::ensure(&guest.place.bare().await, Role::State).await.unwrap();
    let text = denied(tables::check(&session, Role::State).await);
    for expected in ["GRANT USAGE ON SCHEMA hapax TO", "GRANT SELECT, INSERT, UPDATE ON TABLE hapax.progress TO"] {
        assert!(text.contains(&format!("{expected} {quoted};")), "{text}");
    }
    let (_, advice) = text.split_once("run: ").unwrap();
    let (_, for_a_person) = advice.split_once("/* for dlq, reset, pause and resume too: */").unwrap();
    assert!(for_a_person.contains("GRANT UPDATE, DELETE ON TABLE hapax.dead_letters TO"), "{text}");
    guest.owner_runs(advice).await;
    tables::check(&session, Role::State).await.unwrap();
    assert_eq!(missing(&session, Role::State).await.unwrap().person, Vec::<String>::new());
    for need in needs(Role::State) {
        for right in need.run {
            let table = need.table;
            guest.owner_runs(&format!("REVOKE {right} ON hapax.{table} FROM {quoted}")).await;
            let text = denied(tables::check(&session, Role::State).await);
            let grant = format!("run: GRANT {right} ON TABLE hapax.{table} TO {quoted};");
            assert!(text.ends_with(&grant), "{text}");
            guest.owner_runs(&format!("GRANT {right} ON hapax.{table} TO {quoted}")).await;
        }
    }
    drop(session);
    guest.leave().await;
}

/// Goal: a right that is taken away while a worker runs ends in a refusal with the cure, not in a retry for ever.
/// Method: no schema, then no table, under a claim.
#[tokio::test]
async fn a_right_that_is_lost_later_is_refused_with_the_cure() {
    let guest = Guest::new().await;
    let session = guest.connect().await;
    tables::ensure(&guest.place.bare().await, Role::Target).await.unwrap();
    let quoted = quote_identifier(&guest.name).unwrap();
    let text = denied(progress::claim(&session, &id("w"), &take(0)).await);
    assert!(text.contains(&format!("GRANT USAGE ON SCHEMA hapax TO {quoted}")), "{text}");
    guest.owner_runs(&format!("GRANT USAGE ON SCHEMA hapax TO {quoted}")).await;
    let text = denied(progress::claim(&session, &id("w"), &take(0)).await);
    assert!(text.contains("hapax setup --sql"), "{text}");
    assert!(session.is_reusable());
    denied(tables::drop_all(&session).await);
    drop(session);
    guest.leave().await;
}

/// Goal: the printed list gives all that a worker and a person need, and no ownership. Method: run it, then do
/// everything as that role.
#[tokio::test]
async fn the_printed_grants_suffice() {
    let guest = Guest::new().await;
    tables::ensure(&guest.place.bare().await, Role::State).await.unwrap();
    guest.owner_runs(&grants(Role::State, &guest.name, &[]).unwrap()).await;
    let url = guest.place.url_of(&guest.name.replace(' ', "%20"));
    let mut state = PostgresState::open(&url, Limits::default(), Duration::from_secs(1)).await.unwrap();
    let was = state.claim(&id("w"), &take(0)).await.unwrap();
    let was = state.save(&id("w"), &was, &next(&was), &[letter(1, "x"), letter(2, "x")]).await.unwrap();
    let again = Claim::Reclaim { generation: was.generation, session: "again".into() };
    let was = state.claim(&id("w"), &again).await.unwrap();
    let trims = EpochRecord { epoch: Epoch(1_000), ..next(&was) };
    state.save(&id("w"), &was, &trims, &[]).await.unwrap();
    assert_eq!(state.lease(&id("w"), Duration::from_secs(9), TakeOver::Never).await.unwrap(), Lease::Ours);
    state.release(&id("w")).await.unwrap();
    let witness = Witness { epoch: Epoch(1), bookmark: Bookmark::at("a", 1) };
    state.save_witness(&id("w"), &witness).await.unwrap();
    let note = DeliveryNote {
        state: hapax_model::delivery_state::WorkerState::Running,
        exit_code: None,
        code: None,
        message: "a\0b".into(),
    };
    state.note(&id("w"), &note).await.unwrap();
    let intent = hapax_engine::state::Intent { from: Bookmark::at("a", 1), to: Bookmark::at("a", 2), digest: [1; 32] };
    state.save_intent(&id("w"), was.generation, Epoch(1), &intent).await.unwrap();
    let mut books = PostgresBooks::open(&url, Limits::default()).await.unwrap();
    books.pause(&pause("w")).await.unwrap();
    assert!(state.paused("w").await.unwrap() && books.resume("w").await.unwrap());
    assert_eq!(books.discard(&[1]).await.unwrap(), 1);
    assert_eq!(books.mark_replayed(&[1, 2], &BTreeMap::new()).await.unwrap(), 1);
    assert_eq!(books.adopt("w", "v", "table").await.unwrap(), 1);
    books.reset(&id("v"), &Bookmark::at("a", 0), None).await.unwrap();
    books.reset_witness(&id("v")).await.unwrap();
    books.forget(&id("v")).await.unwrap();
    drop((state, books));
    guest.leave().await;
}

/// Goal: a table's rights follow its mode, and its names are quoted. Method: the text for each mode.
#[test]
fn the_rights_on_a_table_follow_its_mode() {
    let rights = |mode, deletes| {
        let table = TableName::new(Some("my shop"), "orders").unwrap();
        grants(Role::Target, "wo\"rker", &[TargetRights { table, mode, deletes }]).unwrap()
    };
    for (mode, deletes, expected) in [
        (ConflictMode::Append, Deletes::Never, "GRANT SELECT, INSERT ON"),
        (ConflictMode::Ignore, Deletes::Never, "GRANT SELECT, INSERT ON"),
        (ConflictMode::Update, Deletes::Never, "GRANT SELECT, INSERT, UPDATE ON"),
        (ConflictMode::Update, Deletes::Wanted, "GRANT SELECT, INSERT, UPDATE, DELETE ON"),
        (ConflictMode::Newer, Deletes::Wanted, "GRANT SELECT, INSERT, UPDATE ON"),
    ] {
        let text = rights(mode, deletes);
        assert!(text.contains(&format!("{expected} TABLE \"my shop\".\"orders\" TO \"wo\"\"rker\";")), "{text}");
        assert!(text.contains("GRANT USAGE ON SCHEMA \"my shop\" TO"), "{text}");
        assert!(!text.contains("hapax.leases"), "{text}");
    }
    assert!(grants(Role::State, "w", &[]).unwrap().contains("hapax.leases"));
    assert!(grants(Role::State, "", &[]).is_err());
}
