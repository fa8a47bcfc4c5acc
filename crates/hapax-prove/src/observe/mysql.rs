//! Looking at MariaDB, through a client that the program under test does not use.
//!
//! Reads: the tables `hapax_…`, the user's table. Writes: nothing: every look is one read-only transaction with one snapshot.

use hapax_services::{MysqlClient, ServiceError};

use super::values::{Values, bytes, parsed, quoted, text, value};
use super::{Blind, Subject};
use crate::check::history::{BalanceRow, BalanceSeen, EpochRow, Found, LetterRow, ProgressRow, Sample};
use crate::database::Engine;
use crate::ddl;
use crate::shape::{Row, Shape};
use crate::truth::Digest;

type Result<T> = std::result::Result<T, ServiceError>;

const NO_SUCH_TABLE: &str = "1146";
const COLUMNS: &str = "n, order_id, region, reference, account, amount, op, slot, version";
const LETTERS: &str = "SELECT HEX(bytes), state FROM hapax_dead_letters ORDER BY id";
const PROGRESS: &str = "SELECT generation, epoch, position, `read`, delivered, filtered, dead, `rows` FROM hapax_progress \
                        WHERE workflow = ";

/// A connection that looks, and remembers its last look: what adds up to the same is not read again.
#[derive(Debug)]
pub struct Watcher {
    client: MysqlClient,
    last: Option<(String, Sample)>,
}

/// What is away may come back; a table that is being made again is away, too.
pub(super) fn blind(error: ServiceError) -> Blind {
    let passing = match error.code() {
        // No database, no table, a table that has changed since the look began; locks; connections; the server's end.
        Some(code) => {
            matches!(code, "1049" | NO_SUCH_TABLE | "1412" | "1205" | "1213" | "1040" | "1053" | "1317" | "1927")
        }
        None => matches!(error, ServiceError::System { .. }),
    };
    if passing { Blind::Now(error.into()) } else { Blind::Ever(error.into()) }
}

impl Watcher {
    pub(super) const fn new(client: MysqlClient) -> Self {
        Self { client, last: None }
    }

    /// Runs `look` in a transaction that sees one moment. It always ends it: while it is open, nobody can alter a table.
    fn at_one_moment<T>(&mut self, look: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
        let seen = look(self);
        let ended = self.client.query("ROLLBACK");
        seen.and_then(|seen| ended.map(|_| seen))
    }

    pub(super) fn sample(&mut self, subject: &Subject) -> Result<Option<Sample>> {
        self.at_one_moment(|watcher| {
            let Some(progress) = watcher.progress(&subject.workflow)? else { return Ok(None) };
            let sum = format!("{progress:?} {:?}", watcher.sums(subject.shape)?);
            if let Some((_, sample)) = watcher.last.as_ref().filter(|(known, _)| *known == sum) {
                return Ok(Some(sample.clone()));
            }
            let rows = watcher.rows(subject.shape)?;
            let balance = watcher.balances(subject.shape)?;
            let seen = (!balance.is_empty()).then(|| BalanceSeen {
                rows: rows.iter().map(|row| row.amount).sum(),
                kept: balance.iter().map(|balance| balance.amount).sum(),
            });
            let letters = watcher.letters()?.len() as u64;
            let sample = Sample { progress, digest: Digest::of(&rows), balance: seen, letters };
            watcher.last = Some((sum, sample.clone()));
            Ok(Some(sample))
        })
    }

    /// What the rows of every table that is looked at add up to.
    fn sums(&mut self, shape: Shape) -> Result<Vec<Vec<Option<String>>>> {
        let sum = |columns: &str, from: &str| {
            format!("SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('|', {columns}))), 0) FROM {from}")
        };
        let orders = format!("orders WHERE {}", ddl::alive(shape));
        let mut sums = self.each(&sum(COLUMNS, &orders), |row| Ok(row.to_vec()))?;
        sums.extend(self.each(&sum("id, state", "hapax_dead_letters"), |row| Ok(row.to_vec()))?);
        if shape == Shape::Append {
            sums.extend(self.each(&sum("account, amount, entries", "balance"), |row| Ok(row.to_vec()))?);
        }
        Ok(sums)
    }

    pub(super) fn found(&mut self, subject: &Subject) -> Result<Found> {
        self.at_one_moment(|watcher| {
            Ok(Found {
                rows: watcher.rows(subject.shape)?,
                balance: watcher.balances(subject.shape)?,
                progress: watcher.progress(&subject.workflow)?,
                epochs: watcher.epochs(&subject.workflow)?,
                letters: watcher.letters()?,
            })
        })
    }

    pub(super) fn count_rows(&mut self) -> Result<u64> {
        let answer = self.client.query("SELECT COUNT(*) FROM orders")?;
        parsed(answer.value().map(str::to_owned))
    }

    fn letters(&mut self) -> Result<Vec<LetterRow>> {
        self.each(LETTERS, |row| Ok(LetterRow { bytes: bytes(&text(row, 0)?)?, state: text(row, 1)? }))
    }

    fn progress(&mut self, workflow: &str) -> Result<Option<ProgressRow>> {
        let rows = self.each(&format!("{PROGRESS}{}", quoted(workflow)), |row| {
            Ok(ProgressRow {
                generation: value(row, 0)?,
                epoch: value(row, 1)?,
                position: text(row, 2)?,
                read: value(row, 3)?,
                delivered: value(row, 4)?,
                filtered: value(row, 5)?,
                dead: value(row, 6)?,
                rows: value(row, 7)?,
            })
        })?;
        Ok(rows.into_iter().next())
    }

    fn epochs(&mut self, workflow: &str) -> Result<Vec<EpochRow>> {
        let sql =
            format!("SELECT epoch, generation FROM hapax_epochs WHERE workflow = {} ORDER BY epoch", quoted(workflow));
        self.each(&sql, |row| Ok(EpochRow { epoch: value(row, 0)?, generation: value(row, 1)? }))
    }

    fn rows(&mut self, shape: Shape) -> Result<Vec<Row>> {
        let order = ddl::arrival(Engine::Mysql);
        let sql = format!("SELECT {COLUMNS} FROM orders WHERE {} ORDER BY {order}", ddl::alive(shape));
        self.each(&sql, |row| {
            Ok(Row {
                n: value(row, 0)?,
                order_id: value(row, 1)?,
                region: text(row, 2)?,
                reference: text(row, 3)?,
                account: text(row, 4)?,
                amount: value(row, 5)?,
                op: text(row, 6)?,
                slot: row.get(7).cloned().flatten(),
                version: value(row, 8)?,
            })
        })
    }

    fn balances(&mut self, shape: Shape) -> Result<Vec<BalanceRow>> {
        if shape != Shape::Append {
            return Ok(Vec::new());
        }
        self.each("SELECT account, amount, entries FROM balance", |row| {
            Ok(BalanceRow { account: text(row, 0)?, amount: value(row, 1)?, entries: value(row, 2)? })
        })
    }

    /// Each row of an answer; none of a table that is not there.
    fn each<T>(&mut self, sql: &str, read: impl Fn(&Values) -> Result<T>) -> Result<Vec<T>> {
        match self.client.query(sql) {
            Ok(answer) => answer.rows.iter().map(|row| read(row)).collect(),
            Err(error) if error.code() == Some(NO_SUCH_TABLE) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Line;
    use crate::lodging::Lodging;
    use crate::servers::{Need, Servers};
    use crate::setting::Stack;

    /// Goal: a server that restarts makes blind for a moment, a wrong statement for good.
    #[test]
    fn what_comes_back_is_told_from_what_does_not() {
        let product = hapax_services::Product::Mariadb;
        let said = |code: &str| ServiceError::Server { product, code: code.to_owned(), message: String::new() };
        for code in ["1040", "1053", "1146", "1412"] {
            assert!(matches!(blind(said(code)), Blind::Now(_)), "{code}");
        }
        assert!(matches!(blind(said("1064")), Blind::Ever(_)));
        assert!(matches!(blind(ServiceError::Protocol(String::new())), Blind::Ever(_)));
    }

    const OURS: &str = "CREATE TABLE hapax_progress (workflow text, generation bigint, epoch bigint, position text,
            `read` bigint, delivered bigint, filtered bigint, dead bigint, `rows` bigint);
        CREATE TABLE hapax_epochs (workflow text, epoch bigint, generation bigint);
        CREATE TABLE hapax_dead_letters (id bigint, bytes longblob, state text);
        INSERT INTO hapax_progress VALUES ('orders', 2, 1, '17', 2, 1, 0, 1, 1), ('other', 9, 9, '9', 9, 9, 9, 9, 9);
        INSERT INTO hapax_epochs VALUES ('orders', 1, 2), ('other', 9, 9);
        INSERT INTO hapax_dead_letters VALUES (1, '{bad', 'dead');
        INSERT INTO orders (n, order_id, region, reference, account, amount, op, version)
            VALUES (1, 7, 'eu', 'r7', 'a3', 5, 'c', 100);";

    /// Goal: what is in the tables is what the judge sees. Method: tables made by hand, looked at before and after.
    #[test]
    fn the_judge_sees_what_is_there() {
        let lodging = Lodging::take(&Servers::default(), Need::Databases, Stack::Mysql).expect("MariaDB");
        let database = lodging.target();
        let subject = Subject { workflow: "orders".into(), shape: Shape::Append };
        let Ok(Line::Mysql(client)) = database.line() else { panic!("it connects") };
        let mut watcher = Watcher::new(client);
        assert_eq!(watcher.sample(&subject).expect("a look"), None);
        assert_eq!(watcher.found(&subject).expect("a look"), Found::default());
        database.execute(&ddl::tables(Shape::Append, Engine::Mysql)).expect("tables");
        database.execute(OURS).expect("our tables");
        let sample = watcher.sample(&subject).expect("a look").expect("there is progress");
        assert_eq!((sample.progress.generation, sample.progress.read, sample.letters), (2, 2, 1));
        assert_eq!((sample.digest.rows, sample.balance), (1, Some(BalanceSeen { rows: 5, kept: 5 })));
        assert_eq!(watcher.sample(&subject).expect("a look"), Some(sample.clone()));
        database.execute("UPDATE orders SET amount = 6").expect("a change");
        assert_ne!(watcher.sample(&subject).expect("a look"), Some(sample));
        let found = watcher.found(&subject).expect("a look");
        assert_eq!(found.epochs, [EpochRow { epoch: 1, generation: 2 }]);
        assert_eq!(found.letters, [LetterRow { bytes: b"{bad".to_vec(), state: "dead".into() }]);
        assert_eq!((found.rows[0].order_id, found.rows[0].slot.as_deref()), (7, None));
        assert_eq!(watcher.count_rows().expect("a count"), 1);
    }
}
