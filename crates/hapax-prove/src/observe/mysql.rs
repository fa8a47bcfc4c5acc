//! What MariaDB says in words of its own when it is looked at.

use hapax_services::{Answer, MysqlClient};

use super::Subject;
use super::server::{COLUMNS, Result, Rows, Server};
use super::values::quoted;
use crate::database::Engine;
use crate::ddl;
use crate::shape::Shape;

const NO_SUCH_TABLE: &str = "1146";

impl Server for MysqlClient {
    fn engine(&self) -> Engine {
        Engine::Mysql
    }

    fn begins(&self) -> &'static str {
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
    }

    fn own(&self, table: &str) -> String {
        format!("hapax_{table}")
    }

    fn progress_columns(&self) -> &'static str {
        "generation, epoch, position, `read`, delivered, filtered, dead, `rows`"
    }

    fn letter_bytes(&self) -> &'static str {
        "HEX(bytes)"
    }

    fn passes(&self, code: &str) -> bool {
        passes(code)
    }

    fn ask(&mut self, sql: &str) -> Result<Answer> {
        self.query(sql)
    }

    fn rows_of(&mut self, _: &str, sql: &str) -> Result<Rows> {
        match self.query(sql) {
            Ok(answer) => Ok(answer.rows),
            Err(error) if error.code() == Some(NO_SUCH_TABLE) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// It numbers no snapshots: the progress, and what the rows of every table that is looked at add up to.
    fn mark(&mut self, subject: &Subject) -> Result<String> {
        let sum = |columns: &str, from: &str| {
            format!("SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('|', {columns}))), 0) FROM {from}")
        };
        let columns = self.progress_columns();
        let progress = format!("SELECT {columns} FROM hapax_progress WHERE workflow = {}", quoted(&subject.workflow));
        let orders = sum(COLUMNS, &format!("orders WHERE {}", ddl::alive(subject.shape)));
        let letters = sum("id, state", "hapax_dead_letters");
        let mut seen = Vec::new();
        for (table, sql) in [("hapax_progress", &progress), ("orders", &orders), ("hapax_dead_letters", &letters)] {
            seen.push(self.rows_of(table, sql)?);
        }
        if subject.shape == Shape::Append {
            seen.push(self.rows_of("balance", &sum("account, amount, entries", "balance"))?);
        }
        Ok(format!("{seen:?}"))
    }
}

/// Whether an error with this code may be gone at the next look.
pub(super) fn passes(code: &str) -> bool {
    // No database, no table, a table that has changed since the look began; locks; connections; the server's end.
    matches!(code, "1049" | NO_SUCH_TABLE | "1412" | "1205" | "1213" | "1040" | "1053" | "1317" | "1927")
}
