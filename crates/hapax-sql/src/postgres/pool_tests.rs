//! The pool, over PostgreSQL's sessions.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use super::test_database::{TestDatabase, quick};
use super::{CommitEnd, Pool, checked_commit};

const SOON: Duration = Duration::from_secs(5);

fn pool(database: &TestDatabase, connections: usize) -> Pool {
    Pool::new(database.url(), quick(), connections)
}

/// Goal: a session given back is used again. Method: its process id, and its prepared statements.
#[tokio::test]
async fn a_session_is_used_again() {
    let database = TestDatabase::new();
    let pool = pool(&database, 2);
    let first = pool.take(SOON).await.unwrap();
    let pid = first.backend_pid();
    first.begin().await.unwrap();
    first.client().batch_execute("CREATE TABLE t (id int)").await.unwrap();
    assert_eq!(checked_commit(&first).await, CommitEnd::Committed);
    let statement = first.prepare_cached("SELECT 1").await.unwrap();
    assert_eq!(pool.taken(), 1);
    drop(first);
    assert_eq!(pool.taken(), 0);
    let again = pool.take(SOON).await.unwrap();
    assert_eq!(again.backend_pid(), pid);
    assert_eq!(again.client().query(&statement, &[]).await.unwrap().len(), 1);
}

/// Goal: no session with a transaction, in doubt, discarded or dead is handed out again.
/// Method: spoil one in each way; the next has another process id.
#[tokio::test]
async fn an_unfit_session_is_replaced() {
    let database = TestDatabase::new();
    let pool = pool(&database, 1);
    let mut seen = Vec::new();
    for round in 0..5 {
        let taken = pool.take(SOON).await.unwrap();
        assert!(!seen.contains(&taken.backend_pid()), "round {round}");
        seen.push(taken.backend_pid());
        match round {
            0 => taken.begin().await.unwrap(),
            1 => taken.spoil(),
            2 => {
                taken.discard();
                continue;
            }
            _ => {
                // Ended by somebody else while it lies in the pool.
                let pid = taken.backend_pid();
                drop(taken);
                database.on_server(&format!("SELECT pg_terminate_backend({pid}, 5000)"));
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        }
        drop(taken);
    }
}

/// Goal: who waits too long is told what to do, and the others go on in their order.
/// Method: a pool of one; two wait in turn, a third runs out of patience.
#[tokio::test]
async fn waiting_is_fair_and_ends() {
    let database = TestDatabase::new();
    let pool = pool(&database, 1);
    let held = pool.take(SOON).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for number in 0..2 {
        let (pool, order) = (pool.clone(), Arc::clone(&order));
        waiters.push(tokio::spawn(async move {
            let _taken = pool.take(SOON).await.unwrap();
            order.lock().unwrap().push(number);
        }));
        tokio::task::yield_now().await;
    }
    let error = pool.take(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.code(), "HX4210");
    let text = error.to_string();
    assert!(text.contains("all 1 connections") && text.contains("3 more wait"), "{text}");
    assert_eq!(pool.waiting(), 2);
    drop(held);
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1]);
    assert_eq!((pool.waiting(), pool.taken()), (0, 0));
}

/// Goal: one who gives up neither keeps a place nor is counted any more. Method: a dropped `take`.
#[tokio::test]
async fn one_who_gives_up_leaves_nothing_behind() {
    let database = TestDatabase::new();
    let pool = pool(&database, 1);
    let held = pool.take(SOON).await.unwrap();
    tokio::time::timeout(Duration::from_millis(20), pool.take(SOON)).await.unwrap_err();
    assert_eq!(pool.waiting(), 0);
    drop(held);
    pool.take(SOON).await.unwrap();
    assert_eq!(pool.taken(), 0);
}

/// Writes one row in a transaction of its own; says how it ended.
async fn write(pool: &Pool, id: i32) -> CommitEnd {
    let taken = pool.take(SOON).await.unwrap();
    let inside: Option<i64> = taken.client().query_one("SELECT txid_current_if_assigned()", &[]).await.unwrap().get(0);
    assert_eq!(inside, None, "a session with an open transaction came out of the pool");
    taken.begin().await.unwrap();
    taken.client().execute("INSERT INTO t VALUES ($1)", &[&id]).await.unwrap();
    checked_commit(&taken).await
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
    let watcher = database.session().await;
    watcher.client().batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
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
    let rows = watcher.client().query("SELECT id FROM t", &[]).await.unwrap();
    let there: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    for (id, end) in known {
        assert_eq!(end, CommitEnd::Committed);
        assert!(there.contains(&id), "{id} was committed and is not there");
    }
    assert_eq!((pool.taken(), pool.waiting()), (0, 0));
}
