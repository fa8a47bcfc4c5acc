//! The readers: two threads with a connection each. A read is one statement, or one read transaction.
//!
//! They see what was committed when the read began, and never wait for the writer.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::failure::{Health, Undone};
use crate::store::StoreError;

/// Reads that may wait; more wait outside.
const QUEUE: usize = 1024;

type Task = Box<dyn FnOnce(&Connection) + Send>;

/// The readers' handle. Dropping it ends the threads.
#[derive(Debug)]
pub(super) struct Readers {
    queue: Option<mpsc::Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
    health: Health,
}

impl Readers {
    /// Takes each connection onto a thread of its own.
    pub(super) fn start(connections: Vec<Connection>, health: Health) -> Result<Self, std::io::Error> {
        let (sender, queue) = mpsc::channel::<Task>(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for connection in connections {
            let queue = Arc::clone(&queue);
            let builder = std::thread::Builder::new().name("broker-reader".to_owned());
            threads.push(builder.spawn(move || serve(&connection, &queue))?);
        }
        Ok(Self { queue: Some(sender), threads, health })
    }

    /// # Errors
    /// [`StoreError::Broken`] once the store broke.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.health.check()
    }

    /// Runs `work` on the next free connection.
    ///
    /// # Errors
    /// What `work` said.
    pub(super) async fn call<R, F>(&self, work: F) -> Result<R, StoreError>
    where
        F: FnOnce(&Connection) -> Result<R, Undone> + Send + 'static,
        R: Send + 'static,
    {
        self.health.check()?;
        let (reply, answer) = oneshot::channel();
        let task: Task = Box::new(move |connection| {
            // Who asked may have gone.
            drop(reply.send(work(connection).map_err(StoreError::from)));
        });
        let queue = self.queue.as_ref().expect("the queue is there until the readers are dropped");
        let ended = || StoreError::Broken("the reading threads have ended".to_owned());
        queue.send(task).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

fn serve(connection: &Connection, queue: &Mutex<mpsc::Receiver<Task>>) {
    loop {
        // The lock is held only while waiting for the next task, never while one runs.
        let task = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        match task {
            Some(task) => task(connection),
            None => return,
        }
    }
}
