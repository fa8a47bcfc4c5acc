//! Short writes of many deliveries in one transaction: a hundred workflows must not wait for a hundred times the disk.
//!
//! Reads: nothing. Writes: what it is given, all of it before one COMMIT. Invariant: an answer is given only after the
//! COMMIT that holds its write; if that fails, everybody in it hears so. Not here: which writes these are (`state`).

use std::path::Path;
use std::sync::{Arc, Mutex as ShortLock, PoisonError};

use hapax_engine::sink::SinkError;
use hapax_sql::sqlite::{Session, checked_commit};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{Mutex, oneshot};

use super::error::{During, after_commit, path_of, session_lost};
use super::tables::look_error;

/// A write that waits. It is given the connection, or why there is none, and gives back how its answer is told once the
/// transaction has ended.
type Waiting = Box<dyn FnOnce(Result<&Connection, &str>) -> Told + Send>;
type Told = Box<dyn FnOnce(Result<(), &str>) + Send>;

/// Writes that wait for the next transaction.
#[derive(Clone, Default)]
pub(super) struct Together {
    waiting: Arc<ShortLock<Vec<Waiting>>>,
}

impl std::fmt::Debug for Together {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

impl Together {
    /// Does `work` in a transaction with whatever else waits. Whoever gets the session first does it for all; who comes
    /// meanwhile is in the next one.
    pub(super) async fn run<R, F>(&self, session: &Mutex<Session>, work: F) -> Result<R, String>
    where
        F: FnOnce(&Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        let (tell, mut told) = oneshot::channel();
        self.lock().push(waiting(work, tell));
        let lost = |_| Err("the connection was lost before the answer came".to_owned());
        tokio::select! {
            biased;
            answer = &mut told => return answer.unwrap_or_else(lost),
            mut session = session.lock() => self.write(&mut session).await,
        }
        told.await.unwrap_or_else(lost)
    }

    /// Everything that waits, in one transaction.
    async fn write(&self, session: &mut Session) {
        let waiting = std::mem::take(&mut *self.lock());
        if waiting.is_empty() {
            return;
        }
        match session.run(move |connection| write_all(connection, waiting)).await {
            Ok(Ok(())) => {}
            // Perhaps in doubt: a new connection costs a millisecond, an old one might lie.
            Ok(Err(())) => session.discard(),
            Err(lost) => {
                tracing::debug!(error = %session_lost(Path::new(""), During::Look, &lost), "the session was lost")
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn waiting<R, F>(work: F, tell: oneshot::Sender<Result<R, String>>) -> Waiting
where
    F: FnOnce(&Connection) -> Result<R, SinkError> + Send + 'static,
    R: Send + 'static,
{
    Box::new(move |connection| {
        let done = connection.map_err(str::to_owned).and_then(|it| work(it).map_err(|error| error.to_string()));
        Box::new(move |committed: Result<(), &str>| {
            // Who no longer listens does not need the answer.
            tell.send(done.and_then(|answer| committed.map(|()| answer).map_err(str::to_owned))).ok();
        })
    })
}

/// An error: the connection is not to be used again.
fn write_all(connection: &Connection, waiting: Vec<Waiting>) -> Result<(), ()> {
    let path = path_of(connection);
    let transaction = match Transaction::new_unchecked(connection, TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(error) => {
            let why = look_error(connection, &error).to_string();
            waiting.into_iter().for_each(|one| one(Err(&why))(Err(&why)));
            return Err(());
        }
    };
    let told: Vec<Told> = waiting.into_iter().map(|one| one(Ok(&transaction))).collect();
    // A full disk ends the whole transaction, whoever met it: then there is nothing to commit.
    let committed = if transaction.is_autocommit() {
        Err("what was written with it could not be, as on a full disk".to_owned())
    } else {
        after_commit(&path, During::Look, checked_commit(&transaction)).map_err(|error| error.to_string())
    };
    told.into_iter().for_each(|one| one(committed.as_ref().copied().map_err(String::as_str)));
    committed.map_err(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use hapax_sql::sqlite::Open;

    use super::*;

    async fn store(folder: &tempfile::TempDir) -> Arc<Mutex<Session>> {
        let path = folder.path().join("s.db");
        let mut session = Session::open(&path, Open::OrCreate, Duration::from_secs(1)).await.expect("a file");
        let made =
            session.run(|c| c.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT CHECK (x <> 'bad'))"));
        made.await.expect("a session").expect("a table");
        Arc::new(Mutex::new(session))
    }

    fn insert(n: i64, x: &'static str) -> impl FnOnce(&Connection) -> Result<i64, SinkError> + Send + 'static {
        move |connection| {
            let done = connection.execute("INSERT INTO t VALUES (?1, ?2)", rusqlite::params![n, x]);
            done.map(|_| n).map_err(|error| look_error(connection, &error))
        }
    }

    /// Goal: writes that wait together share one transaction, and each hears of its own. Method: fifty at once while the
    /// session is held, one of them refused; count the commits.
    #[tokio::test]
    async fn writes_that_wait_share_one_transaction() {
        let folder = tempfile::tempdir().expect("a folder");
        let session = store(&folder).await;
        let together = Together::default();
        let commits = Arc::new(AtomicU32::new(0));
        let mut held = session.lock().await;
        let counted = Arc::clone(&commits);
        let hook = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        held.run(|c| c.commit_hook(Some(hook))).await.expect("a session").expect("a hook");
        let asked: Vec<_> = (0..50)
            .map(|n| {
                let (together, session) = (together.clone(), Arc::clone(&session));
                let x = if n == 7 { "bad" } else { "good" };
                tokio::spawn(async move { together.run(&session, insert(n, x)).await })
            })
            .collect();
        while together.lock().len() < 50 {
            tokio::task::yield_now().await;
        }
        drop(held);
        for (n, answer) in (0..).zip(asked) {
            let answer = answer.await.expect("it ends");
            assert_eq!(answer.is_ok(), n != 7, "{n}: {answer:?}");
        }
        let mut session = session.lock().await;
        let rows = session.run(|c| c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))).await;
        assert_eq!(rows.expect("a session").expect("a count"), 49);
        assert_eq!(commits.load(Ordering::Relaxed), 1);
    }
}
