//! One connection to one SQLite file, used from async code: each piece of work runs on a blocking thread.
//!
//! Invariant: a connection whose state is not known (its future was dropped, its work panicked, it came back with an
//! open transaction, its file was replaced) is never used again; the next piece of work opens another. Work that was
//! given up has ended before the next begins: it cannot overtake it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error, ErrorCode, InterruptHandle, OpenFlags};
use rustix::fs::Access;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::place::make_private;

/// What to do about a file that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// It is an error.
    Existing,
    /// Create it, the first time; a file that vanishes later is an error all the same.
    OrCreate,
    /// It is an error; and of one that is there nothing is changed, not even its journal mode.
    ToLook,
}

/// Why a database could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The folder does not exist.
    #[error("the folder {} does not exist; create it, or correct the path {}", folder.display(), path.display())]
    MissingFolder {
        /// The path, absolute.
        path: PathBuf,
        /// The folder that is not there.
        folder: PathBuf,
    },
    /// The file does not exist, and was not to be created.
    #[error("{} does not exist; create the database, or correct the path", path.display())]
    Missing {
        /// The path, absolute.
        path: PathBuf,
    },
    /// The path names a folder.
    #[error("{} is a folder; name a file in it", path.display())]
    Folder {
        /// The path, absolute.
        path: PathBuf,
    },
    /// The file or its folder may not be read and written.
    #[error("{} cannot be read and written: {message}; give this user the right to write the file and its folder", path.display())]
    Denied {
        /// The path, absolute.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// The file is something else, or damaged.
    #[error("{} is not a sound SQLite database: {message}; name another file, or restore it from a backup", path.display())]
    NotADatabase {
        /// The path, absolute.
        path: PathBuf,
        /// What SQLite said.
        message: String,
    },
    /// The file system cannot do what a write-ahead log needs.
    #[error("{} cannot use a write-ahead log (journal mode stays \"{mode}\"): {message}; put the file on a local disk", path.display())]
    NoWriteAheadLog {
        /// The path, absolute.
        path: PathBuf,
        /// The journal mode that it has.
        mode: String,
        /// What SQLite said.
        message: String,
    },
    /// Another process holds the file.
    #[error("{} is locked: {message}", path.display())]
    Busy {
        /// The path, absolute.
        path: PathBuf,
        /// What SQLite said.
        message: String,
    },
    /// Anything else.
    #[error("{} cannot be opened: {message}", path.display())]
    Failed {
        /// The path, absolute.
        path: PathBuf,
        /// What SQLite said.
        message: String,
    },
}

/// The work could not be done, or its end is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionLost {
    /// There was no connection, and opening another failed. The work was not started.
    #[error(transparent)]
    Reopen(#[from] OpenError),
    /// The work panicked; its transaction is in doubt.
    #[error("the work on {} ended in a panic: {message}", path.display())]
    Panicked {
        /// The database.
        path: PathBuf,
        /// What the panic said.
        message: String,
    },
}

/// How many prepared statements a connection keeps.
const STATEMENTS_KEPT: usize = 128;
/// How long to wait between two tries to switch to a write-ahead log while another process does the same.
const SWITCH_PAUSE: Duration = Duration::from_millis(5);

/// One connection to one SQLite file: write-ahead log, `synchronous = FULL`, foreign keys on.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    /// How the file is opened again.
    again: Open,
    busy_timeout: Duration,
    connection: Option<Opened>,
    /// Work that has not come back yet; its future may have been dropped.
    running: Option<JoinHandle<Option<Opened>>>,
}

/// Ends work on its thread when its future is dropped: before its first statement, in the running one, or, between two
/// statements, by itself.
struct GivenUp {
    flag: Arc<AtomicBool>,
    interrupt: InterruptHandle,
    answered: bool,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if !self.answered {
            self.flag.store(true, Ordering::Release);
            self.interrupt.interrupt();
        }
    }
}

#[derive(Debug)]
struct Opened {
    connection: Connection,
    file: FileIdentity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl Session {
    /// Opens the database at `path`; every wait for a lock ends after `busy_timeout`.
    ///
    /// # Errors
    /// If the file is not there, is no database, is locked, or may not be used.
    pub async fn open(path: &Path, open: Open, busy_timeout: Duration) -> Result<Self, OpenError> {
        // An absolute path also keeps SQLite from reading a name that begins with "file:" as an address.
        let path = std::path::absolute(path)
            .map_err(|error| OpenError::Failed { path: path.to_owned(), message: error.to_string() })?;
        let opened = connect_on_thread(path.clone(), open, busy_timeout).await?;
        let again = if open == Open::OrCreate { Open::Existing } else { open };
        Ok(Self { path, again, busy_timeout, connection: Some(opened), running: None })
    }

    /// The database's path, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on a blocking thread and gives its answer back.
    ///
    /// If this future is dropped, the work is interrupted, and its connection closed when it has ended: a commit in it is
    /// in doubt. The next `run` waits for that end and opens another connection.
    ///
    /// # Errors
    /// If there was no connection and none could be opened, or the work panicked.
    pub async fn run<R, F>(&mut self, work: F) -> Result<R, SessionLost>
    where
        F: FnOnce(&mut Connection) -> R + Send + 'static,
        R: Send + 'static,
    {
        self.wait_for_given_up().await;
        let usable = self.connection.take().filter(|opened| FileIdentity::of(&self.path).ok() == Some(opened.file));
        let mut opened = match usable {
            Some(opened) => opened,
            None => connect_on_thread(self.path.clone(), self.again, self.busy_timeout).await?,
        };
        let flag = Arc::new(AtomicBool::new(false));
        let interrupt = opened.connection.get_interrupt_handle();
        let (tell, told) = oneshot::channel();
        let given_up = Arc::clone(&flag);
        self.running = Some(tokio::task::spawn_blocking(move || {
            if given_up.load(Ordering::Acquire) {
                return None;
            }
            let answer = work(&mut opened.connection);
            // Left open by the work: whatever it staged must not become part of the next transaction.
            let kept = if opened.connection.is_autocommit() { Some(opened) } else { None };
            // Nobody listens any more if the future was dropped.
            tell.send(answer).ok();
            kept
        }));
        let mut guard = GivenUp { flag, interrupt, answered: false };
        let answer = told.await;
        guard.answered = true;
        let ended = match &mut self.running {
            Some(running) => running.await,
            None => Ok(None),
        };
        self.running = None;
        match (answer, ended) {
            (Ok(answer), Ok(kept)) => {
                self.connection = kept;
                Ok(answer)
            }
            (_, Err(error)) => Err(SessionLost::Panicked { path: self.path.clone(), message: error.to_string() }),
            (Err(_), Ok(_)) => {
                let message = "it ended without an answer".to_owned();
                Err(SessionLost::Panicked { path: self.path.clone(), message })
            }
        }
    }

    /// Work whose future was dropped may still write: nothing else begins before it has ended.
    async fn wait_for_given_up(&mut self) {
        if let Some(running) = &mut self.running {
            // Whatever came of it, nobody asks any more, and its connection is closed.
            drop(running.await);
            self.running = None;
        }
    }

    /// Throws the connection away; the next `run` opens another. To be called when a commit is in doubt.
    pub fn discard(&mut self) {
        self.connection = None;
    }
}

/// Not a method: a future that borrows a session for reading could not move between threads.
async fn connect_on_thread(path: PathBuf, open: Open, busy_timeout: Duration) -> Result<Opened, OpenError> {
    let named = path.clone();
    let opening = tokio::task::spawn_blocking(move || connect(&path, open, busy_timeout));
    opening.await.map_err(|error| OpenError::Failed { path: named, message: error.to_string() })?
}

impl FileIdentity {
    fn of(path: &Path) -> std::io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

fn connect(path: &Path, open: Open, busy_timeout: Duration) -> Result<Opened, OpenError> {
    check_path(path, open)?;
    if open == Open::OrCreate {
        make_private(path).map_err(|error| unmade(path, &error))?;
    }
    let connection = match open {
        Open::Existing | Open::OrCreate => open_to_write(path, busy_timeout)?,
        Open::ToLook => {
            refuse_read_only_folder(path)?;
            open_to_look(path, busy_timeout).map_err(|error| open_error(path, &error))?
        }
    };
    // Also where nothing is written now: whoever looks is told that a worker could not.
    if connection.is_readonly("main").map_err(|error| open_error(path, &error))? {
        let message = "SQLite could open it for reading only".to_owned();
        return Err(OpenError::Denied { path: path.to_owned(), message });
    }
    if open != Open::ToLook {
        configure(&connection, path, busy_timeout)?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    let file = FileIdentity::of(path)
        .map_err(|error| OpenError::Failed { path: path.to_owned(), message: error.to_string() })?;
    Ok(Opened { connection, file })
}

fn open_to_write(path: &Path, busy_timeout: Duration) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let fail = |error: Error| open_error(path, &error);
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(busy_timeout).map_err(fail)?;
    Ok(connection)
}

/// A connection that changes nothing, and leaves nothing beside the file that was not there.
///
/// Not opened for reading only: such a connection could not take away the files of a write-ahead log that it had to make.
///
/// # Errors
/// What SQLite said.
pub fn open_to_look(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // An empty one is that of another look.
    let others_log = fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    // A log that a worker left when it was killed stays for the next worker.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, others_log)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    Ok(connection)
}

/// SQLite writes beside the file; without that right no worker could use it.
fn refuse_read_only_folder(path: &Path) -> Result<(), OpenError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| OpenError::Denied {
        path: path.to_owned(),
        message: format!("the folder {} cannot be written: {error}", folder.display()),
    })
}

fn unmade(path: &Path, error: &std::io::Error) -> OpenError {
    let (path, message) = (path.to_owned(), error.to_string());
    if [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem].contains(&error.kind()) {
        return OpenError::Denied { path, message };
    }
    OpenError::Failed { path, message }
}

/// What SQLite would only call "unable to open database file".
fn check_path(path: &Path, open: Open) -> Result<(), OpenError> {
    let own = || path.to_owned();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(OpenError::Folder { path: own() }),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(OpenError::Denied { path: own(), message: error.to_string() });
        }
        Err(error) => return Err(OpenError::Failed { path: own(), message: error.to_string() }),
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
        return Err(OpenError::MissingFolder { path: own(), folder: folder.to_owned() });
    }
    match open {
        Open::Existing | Open::ToLook => Err(OpenError::Missing { path: own() }),
        Open::OrCreate => Ok(()),
    }
}

fn configure(connection: &Connection, path: &Path, busy_timeout: Duration) -> Result<(), OpenError> {
    let fail = |error: Error| open_error(path, &error);
    use_write_ahead_log(connection, path, busy_timeout)?;
    // FULL: a commit is on the disk before it is answered. NORMAL would lose the last commits in a power cut.
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;")
        .map_err(fail)
}

fn use_write_ahead_log(connection: &Connection, path: &Path, busy_timeout: Duration) -> Result<(), OpenError> {
    let until = Instant::now() + busy_timeout;
    loop {
        // SQLite does not wait by itself here: two processes that open a new file at once meet as "busy".
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                let message = "the file system refuses it".to_owned();
                return Err(OpenError::NoWriteAheadLog { path: path.to_owned(), mode, message });
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {
                std::thread::sleep(SWITCH_PAUSE);
            }
            Err(error) => return Err(open_error(path, &error)),
        }
    }
}

fn open_error(path: &Path, error: &Error) -> OpenError {
    let (path, message) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => OpenError::NotADatabase { path, message },
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::AuthorizationForStatementDenied) => {
            OpenError::Denied { path, message }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy { path, message },
        // Never opened by ourselves to find out: closing it would drop the locks that SQLite holds in this process.
        Some(ErrorCode::CannotOpen) => match rustix::fs::access(&path, Access::READ_OK | Access::WRITE_OK) {
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => OpenError::Denied { path, message },
            Ok(()) | Err(_) => OpenError::Failed { path, message },
        },
        Some(_) | None => OpenError::Failed { path, message },
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
