use std::time::Duration;

use super::super::test_database::{TestDatabase, quick};
use super::super::test_wire::{Cut, wire};
use super::super::{FaultClass, Limits};
use super::*;

async fn with_table(database: &TestDatabase) -> Session {
    let mut session = database.session().await;
    session.text("CREATE TABLE t (id int PRIMARY KEY, n int) ENGINE=InnoDB").await.unwrap();
    session
}

async fn count(session: &mut Session) -> i64 {
    let mut rows = session.rows("SELECT count(*) FROM t", Vec::new()).await.unwrap();
    rows.remove(0).take(0).unwrap()
}

/// Goal: success is success, and the session is free again. Method: a plain transaction.
#[tokio::test]
async fn a_good_commit_is_committed() {
    let database = TestDatabase::new();
    let mut session = with_table(&database).await;
    session.begin().await.unwrap();
    assert!(!session.is_reusable());
    session.text("INSERT INTO t VALUES (1, 1)").await.unwrap();
    assert_eq!(checked_commit(&mut session).await, CommitEnd::Committed);
    assert!(session.is_reusable());
    assert_eq!(count(&mut session).await, 1);
}

/// Goal: a row's own fault leaves the transaction as it was: what was good can still be committed, as savepoints need it.
/// Method: a duplicate between two good rows.
#[tokio::test]
async fn a_rows_fault_leaves_the_transaction_open() {
    let database = TestDatabase::new();
    let mut session = with_table(&database).await;
    session.begin().await.unwrap();
    session.text("INSERT INTO t VALUES (1, 1)").await.unwrap();
    let fault = session.text("INSERT INTO t VALUES (2, 2), (1, 1)").await.unwrap_err();
    assert_eq!((fault.class, fault.number), (FaultClass::Row, Some(1062)));
    session.text("INSERT INTO t VALUES (3, 3)").await.unwrap();
    assert_eq!(checked_commit(&mut session).await, CommitEnd::Committed);
    assert_eq!(count(&mut session).await, 2);
}

/// Goal: after a deadlock, which rolls everything back, no further statement gets through to be committed by itself, and
/// COMMIT is no success. Method: two sessions that wait for each other; the victim goes on writing.
#[tokio::test]
async fn nothing_is_written_after_a_deadlock() {
    let database = TestDatabase::new();
    let mut one = with_table(&database).await;
    let mut two = database.session().await;
    one.text("INSERT INTO t VALUES (1, 0), (2, 0)").await.unwrap();
    one.begin().await.unwrap();
    two.begin().await.unwrap();
    one.text("UPDATE t SET n = n + 1 WHERE id = 1").await.unwrap();
    two.text("UPDATE t SET n = n + 1 WHERE id = 2").await.unwrap();
    let (first, second) =
        tokio::join!(one.text("UPDATE t SET n = n + 1 WHERE id = 2"), two.text("UPDATE t SET n = n + 1 WHERE id = 1"));
    let (mut victim, mut winner, fault) = match (first, second) {
        (Err(fault), Ok(_)) => (one, two, fault),
        (Ok(_), Err(fault)) => (two, one, fault),
        other => panic!("no deadlock: {other:?}"),
    };
    assert_eq!((fault.class, fault.number), (FaultClass::Again, Some(1213)));
    let refused = victim.text("INSERT INTO t VALUES (9, 9)").await.unwrap_err();
    assert_eq!(refused, fault);
    let end = checked_commit(&mut victim).await;
    assert_eq!(end, CommitEnd::RolledBack { fault: Box::new(fault) });
    assert!(victim.is_reusable());
    assert_eq!(checked_commit(&mut winner).await, CommitEnd::Committed);
    assert_eq!(count(&mut victim).await, 2);
}

/// Goal: a statement that waits too long for a lock fails its transaction, and the same may be tried again.
/// Method: a limit of one second and a row that another holds.
#[tokio::test]
async fn a_lock_that_is_waited_for_too_long_fails_the_transaction() {
    let database = TestDatabase::new();
    let mut holder = with_table(&database).await;
    holder.text("INSERT INTO t VALUES (1, 0)").await.unwrap();
    holder.begin().await.unwrap();
    holder.text("UPDATE t SET n = 1").await.unwrap();
    let limits = Limits { lock: Duration::from_secs(1), ..quick() };
    let mut session = Session::connect(&database.url(), &limits).await.unwrap();
    session.begin().await.unwrap();
    let fault = session.text("UPDATE t SET n = 2").await.unwrap_err();
    assert_eq!((fault.class, fault.number), (FaultClass::Again, Some(1205)));
    assert!(session.text("INSERT INTO t VALUES (2, 2)").await.is_err());
    session.rollback().await.unwrap();
    assert!(session.is_reusable());
}

/// Goal: COMMIT without a transaction is no success. Method: none was begun; one was rolled back before.
#[tokio::test]
async fn a_transaction_that_is_not_there_is_not_committed() {
    let database = TestDatabase::new();
    let mut session = with_table(&database).await;
    assert!(matches!(checked_commit(&mut session).await, CommitEnd::RolledBack { .. }));
    session.begin().await.unwrap();
    session.text("INSERT INTO t VALUES (1, 1)").await.unwrap();
    let fault = session.text("ROLLBACK").await.unwrap_err();
    assert!(fault.message.contains("ended underneath"), "{fault}");
    assert!(matches!(checked_commit(&mut session).await, CommitEnd::RolledBack { .. }));
    assert!(!session.is_reusable());
    assert_eq!(count(&mut database.session().await).await, 0);
}

/// Goal: a COMMIT whose wire is cut is in doubt either way, and the session is never used again.
/// Method: a wire that loses the request (nothing is there) or the answer (everything is there).
#[tokio::test]
async fn a_commit_whose_connection_is_cut_is_in_doubt() {
    let database = TestDatabase::new();
    let mut watcher = with_table(&database).await;
    for (cut, there) in [(Cut::Request, 0), (Cut::Answer, 1)] {
        let port = wire(database.port(), cut).await;
        let mut session = Session::connect(&database.behind(port), &quick()).await.unwrap();
        session.begin().await.unwrap();
        session.text("INSERT INTO t VALUES (1, 1)").await.unwrap();
        let end = checked_commit(&mut session).await;
        assert!(matches!(end, CommitEnd::InDoubt { .. }), "{cut:?} {end:?}");
        assert!(!session.is_reusable());
        assert_eq!(count(&mut watcher).await, there, "{cut:?}");
    }
}

/// Goal: a session that was ended before it commits is in doubt, and never used again. Method: KILL, then COMMIT.
#[tokio::test]
async fn a_session_ended_before_commit_is_in_doubt() {
    let database = TestDatabase::new();
    let mut watcher = with_table(&database).await;
    let mut session = database.session().await;
    session.begin().await.unwrap();
    session.text("INSERT INTO t VALUES (1, 1)").await.unwrap();
    watcher.text(&format!("KILL {}", session.connection_id())).await.unwrap();
    let end = checked_commit(&mut session).await;
    assert!(matches!(end, CommitEnd::InDoubt { .. }), "{end:?}");
    assert!(!session.is_reusable());
    assert_eq!(count(&mut watcher).await, 0);
}

/// Goal: a COMMIT that nobody waited for is in doubt. Method: its future is dropped right after sending.
#[tokio::test]
async fn a_dropped_commit_spoils_the_session() {
    let database = TestDatabase::new();
    let mut session = with_table(&database).await;
    session.begin().await.unwrap();
    session.text("INSERT INTO t VALUES (1, 1)").await.unwrap();
    {
        let mut commit = std::pin::pin!(checked_commit(&mut session));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(commit.as_mut().poll(context))).await;
        assert!(polled.is_pending());
    }
    assert!(!session.is_reusable());
    assert!(matches!(checked_commit(&mut session).await, CommitEnd::InDoubt { .. }));
}
