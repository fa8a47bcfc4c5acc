//! The books of every lane, as a user reads them: ledger and epoch log.

use std::time::Duration;

use rusqlite::OptionalExtension as _;

use crate::check::{Anomaly, Finding};
use crate::database::{Database, Engine};
use crate::setting::Place;

/// The ledger of one lane, and the sum of its epoch log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaneLedger {
    /// The lane.
    pub lane: String,
    /// The last epoch.
    pub epoch: u64,
    /// Inputs read, delivered, filtered, dead, and rows.
    pub totals: [u64; 5],
    /// The same, summed over the epoch log; none where it has no epoch.
    pub logged: Option<LoggedEpochs>,
}

/// What the epoch log says of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoggedEpochs {
    /// How many epochs it has.
    pub count: u64,
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// Inputs read, delivered, filtered, dead, and rows.
    pub totals: [u64; 5],
}

impl LaneLedger {
    /// Inputs read.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.totals[0]
    }

    /// What is wrong with the books alone: read = delivered + filtered + dead, and the log says the same. Where progress is in the
    /// state store several epochs are saved as one.
    #[must_use]
    pub fn judge(&self, place: Place) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut wrong = |text: String| findings.push(Finding::new(Anomaly::Ledger, format!("{}: {text}", self.lane)));
        let [read, delivered, filtered, dead, _] = self.totals;
        if read != delivered + filtered + dead {
            wrong(format!("{read} read is not {delivered} delivered + {filtered} filtered + {dead} dead"));
        }
        let Some(logged) = self.logged else {
            if read > 0 {
                wrong(format!("{read} read, and no epoch in the log"));
            }
            return findings;
        };
        if logged.totals != self.totals {
            wrong(format!("the epoch log sums up to {:?}, the ledger says {:?}", logged.totals, self.totals));
        }
        let gap = place == Place::Sink && (logged.first != 1 || logged.count != self.epoch);
        if logged.last != self.epoch || gap {
            let LoggedEpochs { count, first, last, .. } = logged;
            wrong(format!("progress is at epoch {}, the log has {count} from {first} to {last}", self.epoch));
        }
        findings
    }
}

/// The ledgers of all lanes of a workflow; none before our tables are there.
///
/// # Errors
/// What the database says.
pub fn lane_ledgers(database: &Database, workflow: &str) -> anyhow::Result<Vec<LaneLedger>> {
    let (progress, epochs, read, rows) = match database.engine() {
        Engine::Sqlite => ("hapax_progress", "hapax_epochs", "read", "rows"),
        Engine::Postgres => ("hapax.progress", "hapax.epochs", "read", "rows"),
        Engine::Mysql => ("hapax_progress", "hapax_epochs", "`read`", "`rows`"),
    };
    let ledgers = format!(
        "SELECT lane, epoch, {read}, delivered, filtered, dead, {rows} FROM {progress} WHERE workflow = '{workflow}'"
    );
    let logs = format!(
        "SELECT lane, count(*), min(epoch), max(epoch), sum({read}), sum(delivered), sum(filtered), sum(dead), \
         sum({rows}) FROM {epochs} WHERE workflow = '{workflow}' GROUP BY lane"
    );
    let [ledgers, logs] = match database {
        Database::File(path) => match files_rows(path, [&ledgers, &logs])? {
            Some(rows) => rows,
            None => return Ok(Vec::new()),
        },
        Database::Postgres { .. } | Database::Mysql { .. } => server_rows(database, [&ledgers, &logs])?,
    };
    let log_of = |lane: &str| {
        let (_, numbers) = logs.iter().find(|(name, _)| name == lane)?;
        let &[count, first, last, read, delivered, filtered, dead, rows] = numbers.as_slice() else { return None };
        Some(LoggedEpochs { count, first, last, totals: [read, delivered, filtered, dead, rows] })
    };
    let ledger = |(lane, numbers): &(String, Vec<u64>)| {
        let &[epoch, read, delivered, filtered, dead, rows] = numbers.as_slice() else { return LaneLedger::default() };
        let totals = [read, delivered, filtered, dead, rows];
        LaneLedger { lane: lane.clone(), epoch, totals, logged: log_of(lane) }
    };
    Ok(ledgers.iter().map(ledger).collect())
}

/// How many lanes of a workflow do not say yet that their file was read to its end.
///
/// # Errors
/// What the database says.
pub fn unended_lanes(database: &Database, workflow: &str) -> anyhow::Result<u64> {
    let progress = if database.engine() == Engine::Postgres { "hapax.progress" } else { "hapax_progress" };
    let sql = format!(
        "SELECT count(*) FROM {progress} WHERE workflow = '{workflow}' AND incarnation NOT LIKE '%read to its end%'"
    );
    match database {
        Database::File(path) => {
            let connection = rusqlite::Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
        }
        Database::Postgres { .. } | Database::Mysql { .. } => database.number(&sql),
    }
}

type NamedNumbers = Vec<(String, Vec<u64>)>;

/// Both answers of one moment; none where our tables are not there.
fn files_rows(path: &std::path::Path, queries: [&str; 2]) -> anyhow::Result<Option<[NamedNumbers; 2]>> {
    if !path.exists() {
        return Ok(None);
    }
    let mut connection = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let transaction = connection.transaction()?;
    let there = "SELECT 1 FROM sqlite_schema WHERE name = 'hapax_epochs'";
    if transaction.query_row(there, [], |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    let read = |sql: &str| -> anyhow::Result<NamedNumbers> {
        let mut statement = transaction.prepare(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let numbers = (1..columns).map(|column| row.get::<_, i64>(column).map(i64::cast_unsigned));
            Ok((row.get(0)?, numbers.collect::<rusqlite::Result<_>>()?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    Ok(Some([read(queries[0])?, read(queries[1])?]))
}

fn server_rows(database: &Database, queries: [&str; 2]) -> anyhow::Result<[NamedNumbers; 2]> {
    let mut line = database.line()?;
    line.query(match database.engine() {
        Engine::Mysql => "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        Engine::Sqlite | Engine::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    })?;
    let mut read = |sql: &str| -> anyhow::Result<NamedNumbers> {
        let rows = line.query(sql)?.rows.into_iter().map(|row| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            let lane = values.next().unwrap_or_default();
            (lane, values.filter_map(|value| value.parse().ok()).collect())
        });
        Ok(rows.collect())
    };
    Ok([read(queries[0])?, read(queries[1])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> LaneLedger {
        let totals = [10, 8, 0, 2, 8];
        let logged = Some(LoggedEpochs { count: 3, first: 1, last: 3, totals });
        LaneLedger { lane: "a.log".to_owned(), epoch: 3, totals, logged }
    }

    /// Goal: books that agree are left in peace, and every counter that is off is seen.
    #[test]
    fn a_ledger_that_is_off_is_found() {
        assert_eq!(sound().judge(Place::Sink), []);
        let spoil: [fn(&mut LaneLedger); 5] = [
            |ledger| ledger.totals[0] += 1,
            |ledger| ledger.totals[3] -= 1,
            |ledger| ledger.epoch += 1,
            |ledger| ledger.logged = None,
            |ledger| ledger.totals[4] += 1,
        ];
        for change in spoil {
            let mut ledger = sound();
            change(&mut ledger);
            assert!(!ledger.judge(Place::Sink).is_empty(), "{ledger:?}");
        }
    }
}
