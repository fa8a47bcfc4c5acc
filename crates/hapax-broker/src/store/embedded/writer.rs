//! The one writer: a thread that takes everything that waits, writes it in one transaction, and answers.
//!
//! Each operation has a savepoint of its own, so that a refused one spoils nothing. Nothing is answered with `Ok` before
//! COMMIT has returned. The write-ahead log is copied back here, after the answers, so that its errors are seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::failure::{self, Health, Undone};
use super::rows;
use crate::store::StoreError;

/// Operations that may wait; more wait outside.
const QUEUE: usize = 1024;
/// Operations in one commit.
const GROUP: usize = 1024;
/// Pages in the write-ahead log after which it is copied back: 16 MiB.
const CHECKPOINT_PAGES: i32 = 1000;
/// Pages from which on readers are waited for, for a moment, so that the log begins anew: 64 MiB.
const RESTART_PAGES: i32 = 4000;
/// That moment: a read takes less.
const RESTART_WAIT: Duration = Duration::from_millis(100);

/// The writer's handle. Dropping it ends the thread after what already waits.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    health: Health,
    sweep: Arc<AtomicBool>,
}

impl Writer {
    /// Takes the connection onto a thread of its own.
    pub(super) fn start(mut connection: Connection, health: Health) -> Result<Self, std::io::Error> {
        let (sender, queue) = mpsc::channel(QUEUE);
        let pages = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages| {
            seen.store(pages, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(std::io::Error::other)?;
        let sweep = Arc::new(AtomicBool::new(true));
        let bench = Bench {
            connection,
            queue,
            health: health.clone(),
            pages,
            copy_at: CHECKPOINT_PAGES,
            sweep: Arc::clone(&sweep),
        };
        let thread = std::thread::Builder::new().name("broker-writer".to_owned()).spawn(move || bench.run())?;
        Ok(Self { queue: Some(sender), thread: Some(thread), health, sweep })
    }

    /// Runs `work` inside the next commit.
    ///
    /// # Errors
    /// What `work` said, or why the commit failed.
    pub(super) async fn call<R, F>(&self, work: F) -> Result<R, StoreError>
    where
        F: FnOnce(&Connection) -> Result<R, Undone> + Send + 'static,
        R: Send + 'static,
    {
        self.health.check()?;
        let (reply, answer) = oneshot::channel();
        let call = Call { work: Some(work), done: None, reply };
        let queue = self.queue.as_ref().expect("the queue is there until the writer is dropped");
        if queue.send(Box::new(call)).await.is_err() {
            return Err(self.ended());
        }
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(self.ended()),
        }
    }

    /// To be set, inside an operation, when it leaves rows of deleted partitions to be removed.
    pub(super) fn sweep(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.sweep)
    }

    fn ended(&self) -> StoreError {
        self.health.broke("the writing thread has ended".to_owned());
        StoreError::InDoubt("the writing thread has ended".to_owned())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// One operation of a group.
trait Job: Send {
    /// An error: its writes do not stay. It is answered with that error, whatever comes of the others.
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError>;
    fn answer(self: Box<Self>, end: Result<(), StoreError>);
}

struct Call<R, F> {
    work: Option<F>,
    done: Option<Result<R, StoreError>>,
    reply: oneshot::Sender<Result<R, StoreError>>,
}

impl<R, F> Job for Call<R, F>
where
    F: FnOnce(&Connection) -> Result<R, Undone> + Send,
    R: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let work = self.work.take().expect("an operation is run once");
        let done = work(connection).map_err(StoreError::from);
        let end = done.as_ref().map(|_| ()).map_err(StoreError::clone);
        self.done = Some(done);
        end
    }

    fn answer(self: Box<Self>, end: Result<(), StoreError>) {
        let answer = match (self.done, end) {
            (Some(Err(refused)), _) => Err(refused),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Ok(_)), Err(error)) => Err(error),
            // Never run, because an operation before it ended the transaction.
            (None, end) => Err(end.err().unwrap_or_else(|| StoreError::Away("not tried".to_owned()))),
        };
        // Who asked may have gone; what was done stays done.
        drop(self.reply.send(answer));
    }
}

/// What the thread owns.
struct Bench {
    connection: Connection,
    queue: mpsc::Receiver<Box<dyn Job>>,
    health: Health,
    pages: Arc<AtomicI32>,
    /// How many pages the write-ahead log has when it is copied back next.
    copy_at: i32,
    sweep: Arc<AtomicBool>,
}

impl Bench {
    fn run(mut self) {
        self.tidy();
        while let Some(first) = self.queue.blocking_recv() {
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(job) = self.queue.try_recv()
            {
                group.push(job);
            }
            let end = self.health.check().and_then(|()| self.write(&mut group));
            for job in group {
                job.answer(end.clone());
            }
            self.tidy();
        }
    }

    /// Runs a group in one transaction.
    fn write(&self, group: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
        self.transaction(|connection| {
            for job in group {
                connection.prepare_cached("SAVEPOINT operation")?.execute([])?;
                if let Err(error) = job.run(connection) {
                    if let StoreError::Broken(reason) = &error {
                        self.health.broke(reason.clone());
                    }
                    if connection.is_autocommit() || self.health.check().is_err() {
                        // SQLite ended the whole transaction (no room, no memory): nothing of this group is there.
                        return Err(error.into());
                    }
                    connection.prepare_cached("ROLLBACK TO operation")?.execute([])?;
                }
                connection.prepare_cached("RELEASE operation")?.execute([])?;
            }
            Ok(())
        })
    }

    fn transaction(&self, work: impl FnOnce(&Connection) -> Result<(), Undone>) -> Result<(), StoreError> {
        let connection = &self.connection;
        connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| failure::of_statement(&error))?;
        match work(connection) {
            Ok(()) => failure::commit(connection, &self.health),
            Err(undone) => {
                let error = StoreError::from(undone);
                if let Err(second) = failure::roll_back(connection) {
                    self.health.broke(format!("{error}; and the roll back failed: {second}"));
                }
                Err(error)
            }
        }
    }

    /// What happens between commits: the write-ahead log is copied back, rows of deleted topics go while nobody waits.
    fn tidy(&mut self) {
        self.copy_back();
        while self.sweep.load(Ordering::Acquire) && self.health.check().is_ok() {
            let mut left = false;
            let swept = self.transaction(|connection| {
                left = rows::sweep(connection)?;
                Ok(())
            });
            if let Err(error) = &swept {
                tracing::warn!(%error, "rows of deleted topics could not be removed; they are tried again later");
            }
            if swept.is_err() || !left {
                self.sweep.store(false, Ordering::Release);
            }
            self.copy_back();
            if !self.queue.is_empty() || self.queue.is_closed() {
                return;
            }
        }
    }

    /// Copies the write-ahead log into the file. When no reader needs it any more, the next commit begins it anew.
    fn copy_back(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.copy_at || self.health.check().is_err() {
            return;
        }
        match checkpoint(&self.connection, pages) {
            Ok((log, copied)) if copied >= log => {
                self.pages.store(0, Ordering::Relaxed);
                self.copy_at = CHECKPOINT_PAGES;
            }
            // A reader holds an old state: once more after as much again.
            Ok((log, _)) => self.copy_at = log.saturating_add(CHECKPOINT_PAGES),
            Err(error) => match failure::of_statement(&error) {
                StoreError::Full(why) | StoreError::Away(why) => {
                    tracing::warn!(why, "the write-ahead log grows, because it cannot be copied into the file");
                    self.copy_at = pages.saturating_add(CHECKPOINT_PAGES);
                }
                StoreError::Fenced
                | StoreError::Conflict
                | StoreError::InDoubt(_)
                | StoreError::Broken(_)
                | StoreError::Damaged(_) => self.health.broke(format!("the write-ahead log: {error}")),
            },
        }
    }
}

/// Copies the write-ahead log back: how many pages it has, and how many of them are in the file now.
fn checkpoint(connection: &Connection, pages: i32) -> Result<(i32, i32), rusqlite::Error> {
    let both = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
    if pages < RESTART_PAGES {
        return connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], both);
    }
    connection.busy_timeout(RESTART_WAIT)?;
    let copied = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], both);
    connection.busy_timeout(super::open::BUSY)?;
    copied
}

/// Opens a transaction by the same rules as the thread; for what is done before it starts.
pub(super) fn at_once<R>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<R, Undone>,
) -> Result<R, Undone> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = work(&transaction)?;
    transaction.commit()?;
    Ok(value)
}
