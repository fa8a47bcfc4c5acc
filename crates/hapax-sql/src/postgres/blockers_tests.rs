use super::super::PostgresUrl;
use super::super::test_database::{TestDatabase, quick};
use super::*;

async fn with_row(database: &TestDatabase) -> Session {
    let session = database.session().await;
    session.client().batch_execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1)").await.unwrap();
    session
}

async fn lock(session: &Session) {
    session.begin().await.unwrap();
    session.client().batch_execute("UPDATE t SET id = id").await.unwrap();
}

/// Waits until `pid` waits for a lock, then ends those who hold it.
async fn end_those_in_front_of(watcher: &Session, pid: i32) -> Vec<Blocker> {
    for _ in 0..200 {
        let blockers = end_blockers(watcher, pid).await.unwrap();
        if !blockers.is_empty() {
            return blockers;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody blocks {pid}");
}

/// Goal: a worker that hangs within its transaction is ended, and the one behind it goes on; the ended one learns why.
/// Method: two sessions on one row, a third as watcher.
#[tokio::test]
async fn a_session_of_ours_is_ended() {
    let database = TestDatabase::new();
    let watcher = with_row(&database).await;
    let (hanging, waiting) = (database.session().await, database.session().await);
    lock(&hanging).await;
    let (done, blockers) = tokio::join!(
        waiting.client().batch_execute("UPDATE t SET id = id"),
        end_those_in_front_of(&watcher, waiting.backend_pid())
    );
    done.unwrap();
    let [blocker] = blockers.as_slice() else { panic!("{blockers:?}") };
    assert_eq!((blocker.pid, &blocker.end), (hanging.backend_pid(), &BlockerEnd::Ended));
    assert!(blocker.to_string().contains("idle in transaction"), "{blocker}");
    let error = hanging.client().batch_execute("SELECT 1").await.unwrap_err();
    let fault = hanging.fault(&error);
    assert_eq!((fault.class, fault.sqlstate.as_deref()), (FaultClass::Reconnect, Some("57P01")));
    assert!(hanging.is_closed() && !hanging.is_reusable());
}

/// Goal: a person's session is named, never ended. Method: a blocker with another name.
#[tokio::test]
async fn a_session_of_somebody_else_is_only_named() {
    let database = TestDatabase::new();
    let watcher = with_row(&database).await;
    let (person, waiting) = (database.session().await, database.session().await);
    person.client().batch_execute("SET application_name = 'psql'").await.unwrap();
    lock(&person).await;
    let release = async {
        let blockers = end_those_in_front_of(&watcher, waiting.backend_pid()).await;
        person.rollback().await.unwrap();
        blockers
    };
    let (done, blockers) = tokio::join!(waiting.client().batch_execute("UPDATE t SET id = id"), release);
    done.unwrap();
    let [blocker] = blockers.as_slice() else { panic!("{blockers:?}") };
    assert_eq!(blocker.end, BlockerEnd::NotOurs);
    assert!(blocker.to_string().contains("\"psql\"") && blocker.to_string().contains("not ours"), "{blocker}");
}

/// Goal: no special right is needed among sessions of one role; between roles the missing right is told with its cure.
/// Method: two plain roles; the second may not end the first.
#[tokio::test]
async fn rights_are_enough_or_missing_clearly() {
    let database = TestDatabase::new();
    let owner = with_row(&database).await;
    let role = |suffix: &str| format!("{}_{suffix}", database.url().database().unwrap());
    for suffix in ["a", "b"] {
        owner
            .client()
            .batch_execute(&format!("CREATE ROLE {0} LOGIN; GRANT ALL ON t TO {0}", role(suffix)))
            .await
            .unwrap();
    }
    let connect = |suffix: &str| {
        let text =
            format!("postgres://{}@127.0.0.1:{}/{}", role(suffix), database.port(), database.url().database().unwrap());
        async move { Session::connect(&PostgresUrl::parse(&text).unwrap(), &quick()).await.unwrap() }
    };
    let (hanging, waiting, same, other) =
        (connect("a").await, connect("b").await, connect("a").await, connect("b").await);
    lock(&hanging).await;
    let ends = async {
        let refused = end_those_in_front_of(&other, waiting.backend_pid()).await;
        (refused, end_those_in_front_of(&same, waiting.backend_pid()).await)
    };
    let (done, (refused, ended)) = tokio::join!(waiting.client().batch_execute("UPDATE t SET id = id"), ends);
    done.unwrap();
    assert!(matches!(refused[0].end, BlockerEnd::Denied(_)), "{refused:?}");
    assert!(refused[0].to_string().contains("pg_signal_backend"), "{}", refused[0]);
    assert_eq!(ended[0].end, BlockerEnd::Ended);
    drop((hanging, waiting, same, other));
    for suffix in ["a", "b"] {
        owner.client().batch_execute(&format!("DROP OWNED BY {0}; DROP ROLE {0}", role(suffix))).await.unwrap();
    }
}

/// Goal: a prepared transaction, which has no process, is told as such. Method: what would be printed.
#[test]
fn a_prepared_transaction_has_its_own_words() {
    let blocker = Blocker {
        pid: 0,
        name: String::new(),
        user: String::new(),
        state: String::new(),
        open_for: None,
        end: BlockerEnd::NotOurs,
    };
    assert!(blocker.to_string().contains("ROLLBACK PREPARED"));
}
