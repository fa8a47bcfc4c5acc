use std::collections::BTreeMap;

use hapax_engine::books::Books as _;
use hapax_engine::letters::LetterStore as _;
use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_model::epoch::Epoch;
use hapax_model::position::Bookmark;
use hapax_sql::mysql::Limits;

use super::super::books::MysqlBooks;
use super::super::letters::insert_letters;
use super::super::sample::{Place, id, letter, next, run, take};
use super::super::{progress, tables};
use super::*;

/// A database with a user who may connect to it, and read one table.
struct Guest {
    place: Place,
    name: String,
}

impl Guest {
    async fn new() -> Self {
        let place = Place::new().await;
        let name = format!("guest of {}", place.name());
        let guest = Self { place, name };
        let (name, database) = (&guest.name, guest.place.name());
        guest.owner_runs("CREATE TABLE anything (id int)").await;
        guest
            .owner_runs(&format!("CREATE USER `{name}`@`%`; GRANT SELECT ON `{database}`.anything TO `{name}`@`%`"))
            .await;
        guest
    }

    async fn connect(&self) -> Session {
        Session::connect(&self.place.url_of(&self.name.replace(' ', "%20")), &Limits::default()).await.unwrap()
    }

    async fn owner_runs(&self, sql: &str) {
        run(&mut self.place.bare().await, sql).await;
    }

    fn account(&self) -> String {
        format!("`{}`@`%`", self.name)
    }

    /// A user outlives its database: it goes when the test has ended well.
    async fn leave(self) {
        self.owner_runs(&format!("DROP USER {}", self.account())).await;
    }
}

fn denied_text(result: Result<impl std::fmt::Debug, SinkError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), "HX4016", "{error}");
    error.to_string()
}

/// Goal: whoever lacks rights is told the GRANTs that give them, all at once. Method: a user with nothing follows the
/// advice, and the check is content; then each right is taken away alone.
#[tokio::test]
async fn each_missing_right_is_named_with_its_grant() {
    let guest = Guest::new().await;
    let mut session = guest.connect().await;
    let text = denied_text(tables::ensure(&mut session).await);
    assert!(text.contains("GRANT SELECT ON"), "{text}");
    tables::ensure(&mut guest.place.bare().await).await.unwrap();
    let (account, database) = (guest.account(), guest.place.name().to_owned());
    let text = denied_text(tables::check(&mut session).await);
    for expected in ["GRANT SELECT ON `{}`.`hapax_meta`", "GRANT SELECT, INSERT, UPDATE ON `{}`.`hapax_progress`"] {
        assert!(text.contains(&format!("{} TO {account};", expected.replace("{}", &database))), "{text}");
    }
    let (_, advice) = text.split_once("run: ").unwrap();
    let (_, for_a_person) = advice.split_once("/* for dlq, reset, pause and resume too: */").unwrap();
    assert!(for_a_person.contains(&format!("GRANT UPDATE, DELETE ON `{database}`.`hapax_dead_letters` TO")), "{text}");
    guest.owner_runs(advice).await;
    session.forget_statements();
    tables::check(&mut session).await.unwrap();
    assert_eq!(missing(&mut session).await.unwrap().person, []);
    for need in &NEEDS {
        for right in need.run {
            let table = need.table;
            guest.owner_runs(&format!("REVOKE {right} ON {table} FROM {account}")).await;
            session.forget_statements();
            let text = denied_text(tables::check(&mut session).await);
            let grant = format!("run: GRANT {right} ON `{database}`.`{table}` TO {account};");
            assert!(text.ends_with(&grant), "{text}");
            guest.owner_runs(&format!("GRANT {right} ON {table} TO {account}")).await;
        }
    }
    drop(session);
    guest.leave().await;
}

/// Goal: a right that is taken away while a worker runs ends in a refusal with the cure, not in a retry for ever.
/// Method: no right on our tables under a look, a claim and a drop.
#[tokio::test]
async fn a_right_that_is_lost_later_is_refused_with_the_cure() {
    let guest = Guest::new().await;
    let mut session = guest.connect().await;
    tables::ensure(&mut guest.place.bare().await).await.unwrap();
    let text = denied_text(progress::look(&mut session, &id("w")).await);
    assert!(text.contains("`hapax_progress` TO"), "{text}");
    let text = denied_text(progress::claim(&mut session, &id("w"), &take(0)).await);
    assert!(text.contains("hapax setup --sql"), "{text}");
    assert!(session.is_reusable());
    denied_text(tables::drop_all(&mut session).await);
    drop(session);
    guest.leave().await;
}

/// Goal: the printed list gives all that a worker and a person need, and no right to change tables. Method: run it, then
/// do everything as that user.
#[tokio::test]
async fn the_printed_grants_suffice() {
    let guest = Guest::new().await;
    tables::ensure(&mut guest.place.bare().await).await.unwrap();
    guest.owner_runs(&grants(guest.place.name(), &guest.name, &[]).unwrap()).await;
    let mut session = guest.connect().await;
    tables::check(&mut session).await.unwrap();
    let was = progress::claim(&mut session, &id("w"), &take(0)).await.unwrap();
    let record = next(&was);
    session.begin().await.unwrap();
    let was = progress::swap(&mut session, &id("w"), &was, &record).await.unwrap();
    let letters = [letter(1, "x"), letter(2, "x")];
    let incarnation = &record.from.incarnation;
    insert_letters(&mut session, &id("w"), was.generation, record.epoch, incarnation, &letters).await.unwrap();
    progress::log_epoch(&mut session, &id("w"), was.generation, &record, record.counts).await.unwrap();
    ask::end(&mut session, During::Epoch(record.epoch), Ok(())).await.unwrap();
    let again = Claim::Reclaim { generation: was.generation, session: "again".into() };
    let was = progress::claim(&mut session, &id("w"), &again).await.unwrap();
    let trims = EpochRecord { epoch: Epoch(1_000), ..next(&was) };
    progress::log_epoch(&mut session, &id("w"), was.generation, &trims, trims.counts).await.unwrap();
    let url = guest.place.url_of(&guest.name.replace(' ', "%20"));
    let mut books = MysqlBooks::open(&url, Limits::default()).await.unwrap();
    assert_eq!(books.discard(&[1]).await.unwrap(), 1);
    assert_eq!(books.mark_replayed(&[1, 2], &BTreeMap::new()).await.unwrap(), 1);
    assert_eq!(books.adopt("w", "v", "table").await.unwrap(), 1);
    books.reset(&id("v"), &Bookmark::at("a", 0), None).await.unwrap();
    books.forget(&id("v")).await.unwrap();
    drop((session, books));
    guest.leave().await;
}

/// Goal: a table's rights follow its mode, and its names are quoted. Method: the text for each mode.
#[test]
fn the_rights_on_a_table_follow_its_mode() {
    let rights = |mode, deletes| {
        let table = TableName::new(None, "orders").unwrap();
        grants("my shop", "wo`rker@10.%", &[TargetRights { table, mode, deletes }]).unwrap()
    };
    for (mode, deletes, expected) in [
        (ConflictMode::Append, Deletes::Never, "GRANT SELECT, INSERT ON"),
        (ConflictMode::Ignore, Deletes::Never, "GRANT SELECT, INSERT, UPDATE ON"),
        (ConflictMode::Update, Deletes::Never, "GRANT SELECT, INSERT, UPDATE ON"),
        (ConflictMode::Update, Deletes::Some, "GRANT SELECT, INSERT, UPDATE, DELETE ON"),
        (ConflictMode::Newer, Deletes::Some, "GRANT SELECT, INSERT, UPDATE ON"),
    ] {
        let text = rights(mode, deletes);
        assert!(text.contains(&format!("{expected} `my shop`.`orders` TO `wo``rker`@`10.%`;")), "{text}");
        assert!(text.contains("GRANT SELECT ON `my shop`.`hapax_meta` TO"), "{text}");
    }
    let table = TableName::new(Some("other"), "orders").unwrap();
    let target = TargetRights { table, mode: ConflictMode::Append, deletes: Deletes::Never };
    let without = grants_without_ours("shop", "me", &[target]).unwrap();
    assert_eq!(without, "-- Your tables.\nGRANT SELECT, INSERT ON `other`.`orders` TO `me`@`%`;\n");
    assert!(grants("shop", "", &[]).is_err());
}
