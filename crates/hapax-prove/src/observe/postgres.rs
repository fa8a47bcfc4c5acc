//! What PostgreSQL says in words of its own when it is looked at.

use hapax_services::{Answer, Client, ServiceError};

use super::Subject;
use super::server::{Result, Rows, Server};
use super::values::quoted;
use crate::database::Engine;

impl Server for Client {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    fn begins(&self) -> &'static str {
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    }

    fn own(&self, table: &str) -> String {
        format!("hapax.{table}")
    }

    fn progress_columns(&self) -> &'static str {
        "generation, epoch, position::text, read, delivered, filtered, dead, rows"
    }

    fn letter_bytes(&self) -> &'static str {
        "encode(bytes, 'hex')"
    }

    fn passes(&self, code: &str) -> bool {
        passes(code)
    }

    fn ask(&mut self, sql: &str) -> Result<Answer> {
        self.query(sql)
    }

    /// It asks before: an error would end the transaction.
    fn rows_of(&mut self, table: &str, sql: &str) -> Result<Rows> {
        let there = self.query(&format!("SELECT to_regclass({}) IS NOT NULL", quoted(table)))?;
        if there.value() != Some("t") {
            return Ok(Vec::new());
        }
        Ok(self.query(sql)?.rows)
    }

    /// Where the snapshot is the same, so is what is seen.
    fn mark(&mut self, _: &Subject) -> Result<String> {
        let answer = self.query("SELECT pg_current_snapshot()")?;
        answer.value().map(str::to_owned).ok_or_else(|| ServiceError::Protocol("no snapshot".to_owned()))
    }
}

/// Whether an error with this code may be gone at the next look.
pub(super) fn passes(code: &str) -> bool {
    matches!(code, "42P01" | "3D000" | "40001" | "55P03" | "XX000")
        || ["57P", "53", "08"].iter().any(|class| code.starts_with(class))
}
