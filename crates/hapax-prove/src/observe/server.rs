//! Looking at PostgreSQL, through a client that the program under test does not use.
//!
//! Reads: schema `hapax`, the user's table. Writes: nothing: every look is one read-only transaction with one snapshot.

use hapax_services::{Client, ServiceError};

use super::values::{Values, bytes, parsed, quoted, text, value};
use super::{Blind, Subject};
use crate::check::history::{BalanceRow, BalanceSeen, EpochRow, Found, LetterRow, ProgressRow, Sample};
use crate::database::Engine;
use crate::ddl;
use crate::shape::{Row, Shape};
use crate::truth::Digest;

type Result<T> = std::result::Result<T, ServiceError>;

/// A connection that looks, and remembers its last look: where the snapshot is the same, so is what is seen.
#[derive(Debug)]
pub struct Watcher {
    client: Client,
    last: Option<(String, Option<Sample>)>,
}

/// What is away may come back; a table that is being made again is away, too.
pub(super) fn blind(error: ServiceError) -> Blind {
    let passing = match error.code() {
        Some(code) => {
            matches!(code, "42P01" | "3D000" | "40001" | "55P03" | "XX000")
                || ["57P", "53", "08"].iter().any(|class| code.starts_with(class))
        }
        None => matches!(error, ServiceError::System { .. }),
    };
    if passing { Blind::Now(error.into()) } else { Blind::Ever(error.into()) }
}

impl Watcher {
    pub(super) const fn new(client: Client) -> Self {
        Self { client, last: None }
    }

    /// Runs `look` in a transaction that sees one moment.
    fn at_one_moment<T>(&mut self, look: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let seen = look(self);
        let ended = self.client.query("ROLLBACK");
        seen.and_then(|seen| ended.map(|_| seen))
    }

    pub(super) fn sample(&mut self, subject: &Subject) -> Result<Option<Sample>> {
        self.at_one_moment(|watcher| {
            let snapshot = watcher.text("SELECT pg_current_snapshot()")?;
            if let Some((_, sample)) = watcher.last.as_ref().filter(|(known, _)| *known == snapshot) {
                return Ok(sample.clone());
            }
            let sample = watcher.sample_now(subject)?;
            watcher.last = Some((snapshot, sample.clone()));
            Ok(sample)
        })
    }

    fn sample_now(&mut self, subject: &Subject) -> Result<Option<Sample>> {
        let Some(progress) = self.progress(&subject.workflow)? else { return Ok(None) };
        let rows = self.rows(subject.shape)?;
        let balance = self.balances(subject.shape)?;
        let seen = (!balance.is_empty()).then(|| BalanceSeen {
            rows: rows.iter().map(|row| row.amount).sum(),
            kept: balance.iter().map(|balance| balance.amount).sum(),
        });
        let letters = self.letters()?.len() as u64;
        Ok(Some(Sample { progress, digest: Digest::of(&rows), balance: seen, letters }))
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
        let count = self.text("SELECT count(*) FROM orders")?;
        parsed(Some(count))
    }

    pub(super) fn witness_epoch(&mut self, workflow: &str) -> Result<u64> {
        if !self.has_table("hapax.witness")? {
            return Ok(0);
        }
        let sql = format!("SELECT coalesce(max(epoch), 0) FROM hapax.witness WHERE workflow = {}", quoted(workflow));
        let epoch = self.text(&sql)?;
        parsed(Some(epoch))
    }

    pub(super) fn letters(&mut self) -> Result<Vec<LetterRow>> {
        if !self.has_table("hapax.dead_letters")? {
            return Ok(Vec::new());
        }
        let sql = "SELECT encode(bytes, 'hex'), state FROM hapax.dead_letters ORDER BY id";
        self.each(sql, |row| Ok(LetterRow { bytes: bytes(&text(row, 0)?)?, state: text(row, 1)? }))
    }

    fn progress(&mut self, workflow: &str) -> Result<Option<ProgressRow>> {
        if !self.has_table("hapax.progress")? {
            return Ok(None);
        }
        let sql = format!(
            "SELECT generation, epoch, position::text, read, delivered, filtered, dead, rows \
             FROM hapax.progress WHERE workflow = {}",
            quoted(workflow)
        );
        let rows = self.each(&sql, |row| {
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
        if !self.has_table("hapax.epochs")? {
            return Ok(Vec::new());
        }
        let sql =
            format!("SELECT epoch, generation FROM hapax.epochs WHERE workflow = {} ORDER BY epoch", quoted(workflow));
        self.each(&sql, |row| Ok(EpochRow { epoch: value(row, 0)?, generation: value(row, 1)? }))
    }

    fn rows(&mut self, shape: Shape) -> Result<Vec<Row>> {
        if !self.has_table("orders")? {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT n, order_id, region, reference, account, amount, op, slot, version FROM orders WHERE {} ORDER BY {}",
            ddl::alive(shape),
            ddl::arrival(Engine::Postgres)
        );
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
        if shape != Shape::Append || !self.has_table("balance")? {
            return Ok(Vec::new());
        }
        self.each("SELECT account, amount, entries FROM balance", |row| {
            Ok(BalanceRow { account: text(row, 0)?, amount: value(row, 1)?, entries: value(row, 2)? })
        })
    }

    fn has_table(&mut self, name: &str) -> Result<bool> {
        Ok(self.text(&format!("SELECT to_regclass({}) IS NOT NULL", quoted(name)))? == "t")
    }

    fn text(&mut self, sql: &str) -> Result<String> {
        let answer = self.client.query(sql)?;
        answer.value().map(str::to_owned).ok_or_else(|| ServiceError::Protocol(format!("nothing for {sql}")))
    }

    fn each<T>(&mut self, sql: &str, read: impl Fn(&Values) -> Result<T>) -> Result<Vec<T>> {
        self.client.query(sql)?.rows.iter().map(|row| read(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a server that restarts makes blind for a moment, a wrong statement for good.
    #[test]
    fn what_comes_back_is_told_from_what_does_not() {
        let product = hapax_services::Product::Postgres;
        let said = |code: &str| ServiceError::Server { product, code: code.to_owned(), message: String::new() };
        for code in ["57P01", "57P03", "53300", "42P01"] {
            assert!(matches!(blind(said(code)), Blind::Now(_)), "{code}");
        }
        assert!(matches!(blind(said("42601")), Blind::Ever(_)));
        assert!(matches!(blind(ServiceError::Protocol(String::new())), Blind::Ever(_)));
    }

    const OURS: &str = "CREATE SCHEMA hapax;
        CREATE TABLE hapax.progress (workflow text, generation bigint, epoch bigint, position text, read bigint,
            delivered bigint, filtered bigint, dead bigint, rows bigint);
        CREATE TABLE hapax.epochs (workflow text, epoch bigint, generation bigint);
        CREATE TABLE hapax.dead_letters (id bigint, bytes bytea, state text);
        INSERT INTO hapax.progress VALUES ('orders', 2, 1, '17', 2, 1, 0, 1, 1), ('other', 9, 9, '9', 9, 9, 9, 9, 9);
        INSERT INTO hapax.epochs VALUES ('orders', 1, 2), ('other', 9, 9);
        INSERT INTO hapax.dead_letters VALUES (1, '{bad', 'dead');
        INSERT INTO orders (n, order_id, region, reference, account, amount, op, version)
            VALUES (1, 7, 'eu', 'r7', 'a3', 5, 'c', 100);";

    /// Goal: what is in the tables is what the judge sees. Method: tables made by hand, looked at before and after.
    #[test]
    fn the_judge_sees_what_is_there() {
        let servers = crate::servers::Servers::default();
        let need = crate::servers::Need::Databases;
        let stack = crate::setting::Stack::Postgres;
        let lodging = crate::lodging::Lodging::take(&servers, need, stack).expect("PostgreSQL");
        let database = lodging.target();
        let subject = Subject { workflow: "orders".into(), shape: Shape::Append };
        let Ok(crate::database::Line::Postgres(client)) = database.line() else { panic!("it connects") };
        let mut watcher = Watcher::new(client);
        assert_eq!(watcher.sample(&subject).expect("a look"), None);
        assert_eq!(watcher.found(&subject).expect("a look"), Found::default());
        database.execute(&ddl::tables(Shape::Append, Engine::Postgres)).expect("tables");
        database.execute(OURS).expect("our tables");
        let sample = watcher.sample(&subject).expect("a look").expect("there is progress");
        assert_eq!((sample.progress.generation, sample.progress.read, sample.letters), (2, 2, 1));
        assert_eq!((sample.digest.rows, sample.balance), (1, Some(BalanceSeen { rows: 5, kept: 5 })));
        assert_eq!(watcher.sample(&subject).expect("a look"), Some(sample));
        let found = watcher.found(&subject).expect("a look");
        assert_eq!(found.epochs, [EpochRow { epoch: 1, generation: 2 }]);
        assert_eq!(found.letters, [LetterRow { bytes: b"{bad".to_vec(), state: "dead".into() }]);
        assert_eq!((found.rows[0].order_id, found.rows[0].slot.as_deref()), (7, None));
        assert_eq!((watcher.count_rows().expect("a count"), watcher.witness_epoch("orders").expect("none")), (1, 0));
    }
}
