use std::time::Duration;

use super::super::test_database::{TestDatabase, quick};
use super::super::test_wire::{Cut, wire};
use super::super::{FaultClass, Session};
use super::*;

const TABLES: &str = "CREATE TABLE parent (id int PRIMARY KEY); \
     CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)";

async fn with_tables(database: &TestDatabase) -> Session {
    let session = database.session().await;
    session.client().batch_execute(TABLES).await.unwrap();
    session
}

async fn parents(session: &Session) -> i64 {
    session.client().query_one("SELECT count(*) FROM parent", &[]).await.unwrap().get(0)
}

/// Goal: success is success, and the session is free again. Method: a plain transaction.
#[tokio::test]
async fn a_good_commit_is_committed() {
    let database = TestDatabase::new();
    let session = with_tables(&database).await;
    session.begin().await.unwrap();
    assert!(!session.is_reusable());
    session.client().batch_execute("INSERT INTO parent VALUES (1)").await.unwrap();
    assert_eq!(checked_commit(&session).await, CommitEnd::Committed);
    assert!(session.is_reusable());
    assert_eq!(parents(&session).await, 1);
}

/// Goal: COMMIT of a failed transaction, which the server answers without any error, is not taken for success.
/// Method: a failed statement whose error is ignored; then the same by hand, to see that the plain way would be fooled.
#[tokio::test]
async fn a_failed_transaction_is_not_committed() {
    let database = TestDatabase::new();
    let session = with_tables(&database).await;
    session.begin().await.unwrap();
    session.client().batch_execute("INSERT INTO parent VALUES (1)").await.unwrap();
    session.client().batch_execute("INSERT INTO parent VALUES (1)").await.unwrap_err();
    let end = checked_commit(&session).await;
    let CommitEnd::RolledBack { fault } = end else { panic!("{end:?}") };
    assert_eq!(fault.sqlstate.as_deref(), Some("25P02"));
    assert!(session.is_reusable());
    assert_eq!(parents(&session).await, 0);

    session.client().batch_execute("BEGIN").await.unwrap();
    session.client().batch_execute("SELECT 1/0").await.unwrap_err();
    session.client().batch_execute("COMMIT").await.expect("the driver hides the tag ROLLBACK");
}

/// Goal: statements that are still on their way when COMMIT is sent are covered too.
/// Method: a good and a bad statement and the COMMIT, all sent before the first answer.
#[tokio::test]
async fn a_commit_behind_a_failing_statement_does_nothing() {
    let database = TestDatabase::new();
    let session = with_tables(&database).await;
    let client = session.client();
    let (begun, good, bad, end) = tokio::join!(
        session.begin(),
        client.batch_execute("INSERT INTO parent VALUES (1)"),
        client.batch_execute("INSERT INTO parent VALUES (1)"),
        checked_commit(&session)
    );
    begun.unwrap();
    good.unwrap();
    assert_eq!(session.fault(&bad.unwrap_err()).class, FaultClass::Row);
    assert!(matches!(end, CommitEnd::RolledBack { .. }), "{end:?}");
    assert_eq!(parents(&session).await, 0);
}

/// Goal: a constraint that fails at COMMIT is a clean roll back. Method: a deferred foreign key.
#[tokio::test]
async fn a_refused_commit_is_rolled_back() {
    let database = TestDatabase::new();
    let session = with_tables(&database).await;
    session.begin().await.unwrap();
    session.client().batch_execute("INSERT INTO parent VALUES (1); INSERT INTO child VALUES (7)").await.unwrap();
    let end = checked_commit(&session).await;
    let CommitEnd::RolledBack { fault } = end else { panic!("{end:?}") };
    assert_eq!(fault.sqlstate.as_deref(), Some("23503"));
    assert_eq!(fault.constraint.as_deref(), Some("child_id_fkey"));
    assert!(session.is_reusable());
    assert_eq!(parents(&session).await, 0);
}

/// Goal: COMMIT without a transaction is no success. Method: none was begun; one was rolled back before.
#[tokio::test]
async fn a_transaction_that_is_not_there_is_not_committed() {
    let database = TestDatabase::new();
    let session = with_tables(&database).await;
    assert!(matches!(checked_commit(&session).await, CommitEnd::RolledBack { .. }));
    session.begin().await.unwrap();
    session.client().batch_execute("INSERT INTO parent VALUES (1); ROLLBACK").await.unwrap();
    assert!(matches!(checked_commit(&session).await, CommitEnd::RolledBack { .. }));
    assert_eq!(parents(&session).await, 0);
}

/// Goal: a COMMIT whose wire is cut is in doubt either way, and the session is never used again.
/// Method: a wire that loses the request (nothing is there) or the answer (everything is there).
#[tokio::test]
async fn a_commit_whose_connection_is_cut_is_in_doubt() {
    let database = TestDatabase::new();
    let watcher = with_tables(&database).await;
    for (cut, there) in [(Cut::Request, 0), (Cut::Answer, 1)] {
        let port = wire(database.port(), cut).await;
        let session = Session::connect(&database.behind(port), &quick()).await.unwrap();
        session.begin().await.unwrap();
        session.client().batch_execute("INSERT INTO parent VALUES (1)").await.unwrap();
        let end = checked_commit(&session).await;
        assert!(matches!(end, CommitEnd::InDoubt { .. }), "{cut:?} {end:?}");
        assert!(!session.is_reusable());
        assert_eq!(parents(&watcher).await, there, "{cut:?}");
    }
}

/// Goal: a session that is ended while it commits is in doubt, with the server's reason in the message.
/// Method: COMMIT waits in a deferred trigger for a lock; an administrator ends it there.
#[tokio::test]
async fn a_session_ended_within_commit_is_in_doubt() {
    let database = TestDatabase::new();
    let watcher = with_tables(&database).await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
                'BEGIN PERFORM pg_sleep(8); RETURN NULL; END'; \
                CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON parent DEFERRABLE INITIALLY DEFERRED \
                FOR EACH ROW EXECUTE FUNCTION slow()";
    watcher.client().batch_execute(slow).await.unwrap();
    let session = database.session().await;
    session.begin().await.unwrap();
    session.client().batch_execute("INSERT INTO parent VALUES (1)").await.unwrap();
    let pid = session.backend_pid();
    let (end, ()) = tokio::join!(checked_commit(&session), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        watcher.client().execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
    });
    let CommitEnd::InDoubt { message } = end else { panic!("{end:?}") };
    assert!(message.contains("57P01"), "{message}");
    assert!(!session.is_reusable());
}

/// Goal: a COMMIT that nobody waited for is in doubt. Method: its future is dropped right after sending.
#[tokio::test]
async fn a_dropped_commit_spoils_the_session() {
    let database = TestDatabase::new();
    let session = with_tables(&database).await;
    session.begin().await.unwrap();
    session.client().batch_execute("INSERT INTO parent VALUES (1)").await.unwrap();
    {
        let mut commit = std::pin::pin!(checked_commit(&session));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(commit.as_mut().poll(context))).await;
        assert!(polled.is_pending());
    }
    assert!(!session.is_reusable());
}
