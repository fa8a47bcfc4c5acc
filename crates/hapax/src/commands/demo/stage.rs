//! The demo's folder: a configuration, two databases, the workers' logs.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::NAMES;
use super::count::Count;
use crate::exit::Failure;

/// The first line of a configuration that the demo wrote: such a folder may be made anew.
const MARK: &str = "# Written by `hapax demo`. It is yours to edit; the next demo writes it anew.";

/// The folder.
pub(super) struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// Makes the folder anew.
    pub(super) fn build(folder: &Path, seed: u64, orders: u64, rate: u64) -> Result<Self, Failure> {
        let stage = Self { folder: folder.to_owned() };
        stage.clear()?;
        fs::create_dir_all(folder).map_err(|error| stage.failed("make the folder", &error))?;
        fs::write(stage.config(), config(seed, orders, rate))
            .map_err(|error| stage.failed("write hapax.yaml", &error))?;
        for name in NAMES {
            let connection =
                Connection::open(stage.database(name)).map_err(|error| stage.failed("make a database", &error))?;
            connection.execute_batch(TABLES).map_err(|error| stage.failed("make a table", &error))?;
        }
        Ok(stage)
    }

    /// Removes what an earlier demo left; anything else stays, and is an error.
    fn clear(&self) -> Result<(), Failure> {
        if !self.folder.exists() {
            return Ok(());
        }
        let ours = fs::read_to_string(self.config()).is_ok_and(|text| text.starts_with(MARK));
        let empty = fs::read_dir(&self.folder).is_ok_and(|mut entries| entries.next().is_none());
        if !ours && !empty {
            let message = format!("{} exists and is not from a demo: name another --folder", self.folder.display());
            return Err(Failure::new("HX5006", message).with_exit(crate::exit::USAGE));
        }
        fs::remove_dir_all(&self.folder).map_err(|error| self.failed("remove the last demo", &error))
    }

    pub(super) fn config(&self) -> PathBuf {
        self.folder.join("hapax.yaml")
    }

    fn database(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.db"))
    }

    /// The worker's log, which grows with each of its lives.
    pub(super) fn log(&self, name: &str) -> Result<fs::File, Failure> {
        let path = self.folder.join(format!("{name}.log"));
        fs::File::options().create(true).append(true).open(path).map_err(|error| self.failed("open a log", &error))
    }

    /// How many rows an outsider sees now.
    pub(super) fn rows(&self, worker: usize) -> Result<u64, Failure> {
        let connection = self.outsider(NAMES[worker])?;
        let rows = connection.query_row("SELECT count(*) FROM orders", [], |row| row.get::<_, i64>(0));
        Ok(rows.map_err(|error| self.failed("count", &error))?.unsigned_abs())
    }

    /// Everything an outsider can count, in one moment.
    pub(super) fn count(&self, worker: usize) -> Result<Count, Failure> {
        let connection = self.outsider(NAMES[worker])?;
        let sql = "SELECT (SELECT count(*) FROM orders), (SELECT count(DISTINCT order_id) FROM orders), (SELECT cents FROM balance)";
        let counted = connection.query_row(sql, [], |row| {
            Ok(Count {
                rows: row.get::<_, i64>(0)?.unsigned_abs(),
                different: row.get::<_, i64>(1)?.unsigned_abs(),
                cents: row.get(2)?,
            })
        });
        counted.map_err(|error| self.failed("count", &error))
    }

    fn outsider(&self, name: &str) -> Result<Connection, Failure> {
        let connection = Connection::open_with_flags(self.database(name), OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|error| self.failed("open a database", &error))?;
        connection
            .busy_timeout(std::time::Duration::from_secs(5))
            .map_err(|error| self.failed("open a database", &error))?;
        Ok(connection)
    }

    fn failed(&self, what: &str, error: &dyn std::fmt::Display) -> Failure {
        Failure::new("HX5006", format!("the demo could not {what} in {}: {error}", self.folder.display()))
    }
}

/// No unique index: nothing but the worker's own care keeps a row from being there twice.
const TABLES: &str = "
PRAGMA journal_mode = WAL;
CREATE TABLE orders (order_id INTEGER NOT NULL, customer TEXT NOT NULL, amount_cents INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE balance (cents INTEGER NOT NULL);
INSERT INTO balance VALUES (0);
CREATE TRIGGER add_to_balance AFTER INSERT ON orders BEGIN UPDATE balance SET cents = cents + NEW.amount_cents; END;
";

fn config(seed: u64, orders: u64, rate: u64) -> String {
    format!(
        "{MARK}
state: \"sqlite://state.db\"
workflows:
  # Rows, position and dead letters commit together: a kill at any moment loses nothing and doubles nothing.
  - id: guarded
    source:
      generate: {{ seed: {seed}, count: {orders}, rate: {rate} }}
    sink:
      sqlite: {{ path: guarded.db, table: orders, onConflict: append }}
    delivery:
      guarantee: exactly-once

  # Rows first, the position a little later, in a place of its own: what most pipelines do.
  - id: naive
    source:
      generate: {{ seed: {seed}, count: {orders}, rate: {rate} }}
    sink:
      sqlite: {{ path: naive.db, table: orders, onConflict: append, progress: state }}
    delivery:
      guarantee: at-least-once
"
    )
}
