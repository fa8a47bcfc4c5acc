//! The pool, over MySQL's sessions.

use std::task::Poll;
use std::time::Duration;

use super::test_database::{TestDatabase, quick};
use super::{CommitEnd, FaultClass, Pool, checked_commit};

const SOON: Duration = Duration::from_secs(5);

fn pool(database: &TestDatabase, connections: usize) -> Pool {
    Pool::new(database.url(), quick(), connections)
}

/// Goal: a session given back is used again. Method: its connection id, and its prepared statements.
#[tokio::test]
async fn a_session_is_used_again() {
    let database = TestDatabase::new();
    database.session().await.text("CREATE TABLE t (id int PRIMARY KEY) ENGINE=InnoDB").await.unwrap();
    let pool = pool(&database, 2);
    let mut first = pool.take(SOON).await.unwrap();
    let id = first.connection_id();
    first.begin().await.unwrap();
    first.text("INSERT INTO t VALUES (1)").await.unwrap();
    assert_eq!(checked_commit(&mut first).await, CommitEnd::Committed);
    let statement = first.prepare("INSERT INTO t VALUES (?)").await.unwrap();
    assert_eq!(pool.taken(), 1);
    drop(first);
    assert_eq!(pool.taken(), 0);
    let mut again = pool.take(SOON).await.unwrap();
    assert_eq!(again.connection_id(), id);
    assert_eq!(again.execute_prepared(&statement, vec![2.into()]).await.unwrap().affected, 1);
}

/// Goal: no session with a transaction, in doubt, discarded or dead is handed out again.
/// Method: spoil one in each way; the next has another connection id.
#[tokio::test]
async fn an_unfit_session_is_replaced() {
    let database = TestDatabase::new();
    let pool = pool(&database, 1);
    let mut seen = Vec::new();
    for round in 0..5 {
        let mut taken = pool.take(SOON).await.unwrap();
        assert!(!seen.contains(&taken.connection_id()), "round {round}");
        seen.push(taken.connection_id());
        match round {
            0 => taken.begin().await.unwrap(),
            1 => taken.spoil(),
            2 => {
                taken.discard();
                continue;
            }
            _ => {
                // Ended by somebody else while it lies in the pool.
                let id = taken.connection_id();
                drop(taken);
                database.on_server(&format!("KILL {id}"));
                tokio::time::sleep(Duration::from_millis(600)).await;
                continue;
            }
        }
        drop(taken);
    }
}

/// Goal: who waits too long is told what to do. Method: a pool of one, which is taken.
#[tokio::test]
async fn waiting_ends_with_a_cure() {
    let database = TestDatabase::new();
    let pool = pool(&database, 1);
    let _held = pool.take(SOON).await.unwrap();
    let error = pool.take(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!((error.code(), error.class()), ("HX4360", FaultClass::Reconnect));
    assert!(error.to_string().contains("all 1 connections"), "{error}");
}

/// Writes one row in a transaction of its own; says how it ended.
async fn write(pool: &Pool, id: i32) -> CommitEnd {
    let mut taken = pool.take(SOON).await.unwrap();
    let inside: Option<i64> = taken.text_rows("SELECT @@in_transaction").await.unwrap().remove(0).take(0);
    assert_eq!(inside, Some(0), "a session with an open transaction came out of the pool");
    taken.begin().await.unwrap();
    taken.execute("INSERT INTO t VALUES (?)", vec![id.into()]).await.unwrap();
    checked_commit(&mut taken).await
}

/// What `work` answers, or none if it has to wait more than `steps` times: it is dropped there.
async fn cut_off_after<T>(steps: i32, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut left) = (std::pin::pin!(work), steps);
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Goal: work that is given up at any moment never leaves its transaction to the next one, and never undoes or makes up
/// a commit. Method: many writers on few sessions, cut off after another number of steps each; count the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_cut_off_leaves_no_transaction_behind() {
    let database = TestDatabase::new();
    let mut watcher = database.session().await;
    watcher.text("CREATE TABLE t (id int PRIMARY KEY) ENGINE=InnoDB").await.unwrap();
    let pool = pool(&database, 3);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..6 {
        let pool = pool.clone();
        writers.spawn(async move {
            let mut known = Vec::new();
            for round in 0..30 {
                let id = writer * 100 + round;
                // Every other one is cut off, from its very beginning to about its end; the others find what it left.
                let patience = if round % 2 == 0 { round / 2 } else { i32::MAX };
                if let Some(end) = cut_off_after(patience, write(&pool, id)).await {
                    known.push((id, end));
                }
            }
            known
        });
    }
    let known: Vec<(i32, CommitEnd)> = writers.join_all().await.into_iter().flatten().collect();
    assert!((90..180).contains(&known.len()), "{} of 180 were not cut off", known.len());
    let rows = watcher.rows("SELECT id FROM t", Vec::new()).await.unwrap();
    let there: Vec<i32> = rows.into_iter().map(|mut row| row.take(0).unwrap()).collect();
    for (id, end) in known {
        assert_eq!(end, CommitEnd::Committed);
        assert!(there.contains(&id), "{id} was committed and is not there");
    }
    assert_eq!((pool.taken(), pool.waiting()), (0, 0));
}
