use hapax_engine::contract::sink::{Harness, POISON, SeenRow, every_clause};

use super::super::config::Deletes;
use super::super::sample::{Place, bare, id};
use super::*;

/// A table of every mode, under a name that wants to be more than a name.
const TABLE: &str = "a\"; DROP TABLE x; --";

struct Sqlite {
    place: Place,
    mode: ConflictMode,
}

impl Sqlite {
    fn config(&self) -> SqliteSinkConfig {
        let mut config = SqliteSinkConfig::new(self.place.path(), TABLE);
        config.mode = Some(self.mode);
        if self.mode != ConflictMode::Append {
            config.key_fields = vec![FieldPath::of_name("id")];
        }
        if matches!(self.mode, ConflictMode::Update | ConflictMode::Newer) {
            config.deletes = Deletes::Some;
        }
        if self.mode == ConflictMode::Newer {
            config.version_column = Some("seq".into());
        }
        config
    }
}

impl Harness for Sqlite {
    type Sink = SqliteSink;

    fn empty(&mut self, mode: ConflictMode) {
        (self.place, self.mode) = (Place::new(), mode);
        let key = if mode == ConflictMode::Append { "INTEGER NOT NULL" } else { "INTEGER PRIMARY KEY" };
        let sql = format!(
            "CREATE TABLE x (a); CREATE TABLE \"a\"\"; DROP TABLE x; --\" (id {key}, \
             amount INTEGER NOT NULL CHECK (amount <> {POISON}), seq INTEGER, hapax_deleted INTEGER DEFAULT 0)"
        );
        bare(&self.place.path()).execute_batch(&sql).unwrap();
    }

    fn sink(&self, id: &DeliveryId) -> SqliteSink {
        SqliteSink::new(self.config(), id.clone())
    }

    fn rows(&self) -> Vec<SeenRow> {
        let sql = "SELECT id, amount FROM \"a\"\"; DROP TABLE x; --\" WHERE hapax_deleted IS NOT 1 ORDER BY 1, 2";
        let connection = bare(&self.place.path());
        connection.query_row("SELECT count(*) FROM x", [], |row| row.get::<_, i64>(0)).expect("x is still there");
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    fn letters(&self) -> Vec<u64> {
        let connection = bare(&self.place.path());
        let mut statement =
            connection.prepare("SELECT CAST(position AS INTEGER) FROM hapax_dead_letters ORDER BY 1").unwrap();
        statement.query_map([], |row| row.get::<_, i64>(0)).unwrap().map(|n| n.unwrap().cast_unsigned()).collect()
    }
}

/// Goal: SQLite keeps the contract of every transactional sink. Method: all its clauses, on real files.
#[tokio::test]
async fn sqlite_keeps_the_contract_of_a_transactional_sink() {
    every_clause(&mut Sqlite { place: Place::new(), mode: ConflictMode::Append }).await;
}
