//! The statements that make the user's tables, in each database's own words.

use crate::database::Engine;
use crate::shape::Shape;

const SQLITE_COLUMNS: &str = "n INTEGER NOT NULL, order_id INTEGER NOT NULL, region TEXT NOT NULL, reference TEXT NOT NULL, \
     account TEXT NOT NULL, amount INTEGER NOT NULL CHECK (amount > -1000), op TEXT NOT NULL, slot TEXT, version INTEGER NOT NULL";

const SQLITE_REFUSE: &str = "
CREATE TRIGGER refuse_insert BEFORE INSERT ON orders WHEN NEW.amount BETWEEN -999 AND -1
BEGIN SELECT RAISE(ABORT, 'amount below zero'); END;
CREATE TRIGGER refuse_update BEFORE UPDATE ON orders WHEN NEW.amount BETWEEN -999 AND -1
BEGIN SELECT RAISE(ABORT, 'amount below zero'); END;";

const SQLITE_BALANCE: &str = "
CREATE TABLE balance (account TEXT PRIMARY KEY, amount INTEGER NOT NULL, entries INTEGER NOT NULL);
INSERT INTO balance SELECT value, 0, 0 FROM json_each('[\"a0\",\"a1\",\"a2\",\"a3\",\"a4\",\"a5\",\"a6\",\"a7\"]');
CREATE TRIGGER keep_balance AFTER INSERT ON orders
BEGIN UPDATE balance SET amount = amount + NEW.amount, entries = entries + 1 WHERE account = NEW.account; END;";

/// `arrived` tells the order of insertion, which no other column of PostgreSQL's does.
const POSTGRES_COLUMNS: &str = "arrived bigint GENERATED ALWAYS AS IDENTITY, n bigint NOT NULL, \
     order_id bigint NOT NULL, region text NOT NULL, reference text NOT NULL, account text NOT NULL, \
     amount bigint NOT NULL CHECK (amount > -1000), op text NOT NULL, slot text, version bigint NOT NULL";

const POSTGRES_REFUSE: &str = "
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'amount below zero'; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON orders FOR EACH ROW
WHEN (NEW.amount BETWEEN -999 AND -1) EXECUTE FUNCTION refuse();";

const POSTGRES_BALANCE: &str = "
CREATE TABLE balance (account text PRIMARY KEY, amount bigint NOT NULL, entries bigint NOT NULL);
INSERT INTO balance SELECT 'a' || i, 0, 0 FROM generate_series(0, 7) AS i;
CREATE OR REPLACE FUNCTION keep_balance() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
UPDATE balance SET amount = amount + NEW.amount, entries = entries + 1 WHERE account = NEW.account; RETURN NULL; END $$;
CREATE TRIGGER keep_balance AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION keep_balance();";

/// The key of `arrived` is not unique: MariaDB writes over any row that meets a unique one.
const MYSQL_COLUMNS: &str = "arrived bigint NOT NULL AUTO_INCREMENT, n bigint NOT NULL, order_id bigint NOT NULL, \
     region varchar(100) NOT NULL, reference varchar(100) NOT NULL, account varchar(100) NOT NULL, \
     amount bigint NOT NULL CHECK (amount > -1000), op varchar(10) NOT NULL, slot varchar(100), version bigint NOT NULL, \
     KEY in_order_of_arrival (arrived)";

const MYSQL_REFUSE: &str = "
CREATE TRIGGER refuse_insert BEFORE INSERT ON orders FOR EACH ROW
IF NEW.amount BETWEEN -999 AND -1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'amount below zero'; END IF;
CREATE TRIGGER refuse_update BEFORE UPDATE ON orders FOR EACH ROW
IF NEW.amount BETWEEN -999 AND -1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'amount below zero'; END IF;";

const MYSQL_BALANCE: &str = "
CREATE TABLE balance (account varchar(100) PRIMARY KEY, amount bigint NOT NULL, entries bigint NOT NULL);
INSERT INTO balance VALUES ('a0', 0, 0), ('a1', 0, 0), ('a2', 0, 0), ('a3', 0, 0), ('a4', 0, 0), ('a5', 0, 0), ('a6', 0, 0),
    ('a7', 0, 0);
CREATE TRIGGER keep_balance AFTER INSERT ON orders FOR EACH ROW
UPDATE balance SET amount = amount + NEW.amount, entries = entries + 1 WHERE account = NEW.account;";

/// What a database's statements are made of.
struct Words {
    columns: &'static str,
    refuse: &'static str,
    balance: &'static str,
    key: &'static str,
    version: &'static str,
    deleted: &'static str,
}

const fn words(engine: Engine) -> Words {
    match engine {
        Engine::Sqlite => Words {
            columns: SQLITE_COLUMNS,
            refuse: SQLITE_REFUSE,
            balance: SQLITE_BALANCE,
            key: "TEXT",
            version: "BLOB",
            deleted: "INTEGER NOT NULL DEFAULT 0",
        },
        Engine::Postgres => Words {
            columns: POSTGRES_COLUMNS,
            refuse: POSTGRES_REFUSE,
            balance: POSTGRES_BALANCE,
            key: "text COLLATE \"C\"",
            version: "bytea",
            deleted: "boolean NOT NULL DEFAULT false",
        },
        Engine::Mysql => Words {
            columns: MYSQL_COLUMNS,
            refuse: MYSQL_REFUSE,
            balance: MYSQL_BALANCE,
            key: "binary(16)",
            version: "binary(18)",
            deleted: "boolean NOT NULL DEFAULT false",
        },
    }
}

/// What refuses amounts below zero, until somebody lifts it. Triggers make the order of rows show, so that a worker writes
/// all of them in lane order; beside a condition it reduces an epoch to what stays and sorts it. Both must be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Triggers,
    Condition,
}

const fn refusal(shape: Shape) -> Refusal {
    match shape {
        Shape::Append | Shape::IgnoreEvent | Shape::UpdateSlots | Shape::Newer => Refusal::Triggers,
        Shape::IgnoreFirst | Shape::IgnoreDiffering | Shape::Update | Shape::UpdateJoined | Shape::NewerDeclared => {
            Refusal::Condition
        }
    }
}

const CONDITION: &str = ", CONSTRAINT not_below_zero CHECK (amount NOT BETWEEN -999 AND -1)";

/// The statements that make the table of `shape` and what hangs on it.
#[must_use]
pub fn tables(shape: Shape, engine: Engine) -> String {
    let Words { columns, refuse, balance, key, version, deleted } = words(engine);
    let (condition, refuse) = match refusal(shape) {
        Refusal::Triggers => ("", refuse),
        Refusal::Condition => (CONDITION, ""),
    };
    match shape {
        Shape::Append => format!("CREATE TABLE orders ({columns});{refuse}{balance}"),
        Shape::IgnoreFirst | Shape::IgnoreDiffering | Shape::Update => {
            format!("CREATE TABLE orders ({columns}, PRIMARY KEY (order_id){condition});{refuse}")
        }
        Shape::IgnoreEvent | Shape::UpdateJoined => {
            format!("CREATE TABLE orders (hapax_key {key} NOT NULL PRIMARY KEY, {columns}{condition});{refuse}")
        }
        Shape::UpdateSlots => {
            format!("CREATE TABLE orders ({columns}, PRIMARY KEY (order_id), UNIQUE (slot));{refuse}")
        }
        Shape::NewerDeclared => {
            format!(
                "CREATE TABLE orders ({columns}, hapax_deleted {deleted}, PRIMARY KEY (order_id){condition});{refuse}"
            )
        }
        Shape::Newer => format!(
            "CREATE TABLE orders ({columns}, hapax_version {version}, hapax_deleted {deleted}, \
             PRIMARY KEY (order_id));{refuse}"
        ),
    }
}

/// The statements that drop what refuses rows: what `dlq replay` waits for.
#[must_use]
pub fn lift_refusal(shape: Shape, engine: Engine) -> String {
    match (refusal(shape), engine) {
        (Refusal::Triggers, Engine::Sqlite | Engine::Mysql) => {
            "DROP TRIGGER refuse_insert; DROP TRIGGER refuse_update;".to_owned()
        }
        (Refusal::Triggers, Engine::Postgres) => "DROP TRIGGER refuse ON orders;".to_owned(),
        (Refusal::Condition, Engine::Postgres | Engine::Mysql) => {
            "ALTER TABLE orders DROP CONSTRAINT not_below_zero;".to_owned()
        }
        // SQLite's own recipe for a condition that is to go.
        (Refusal::Condition, Engine::Sqlite) => format!(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, '{CONDITION}', '') WHERE name = 'orders';
             PRAGMA writable_schema = RESET;"
        ),
    }
}

/// The condition under which a row of the table counts as there.
#[must_use]
pub const fn alive(shape: Shape) -> &'static str {
    match shape {
        Shape::Newer | Shape::NewerDeclared => "NOT hapax_deleted",
        Shape::Append
        | Shape::IgnoreFirst
        | Shape::IgnoreDiffering
        | Shape::IgnoreEvent
        | Shape::Update
        | Shape::UpdateJoined
        | Shape::UpdateSlots => "true",
    }
}

/// The column that tells the order of insertion.
#[must_use]
pub const fn arrival(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "rowid",
        Engine::Postgres | Engine::Mysql => "arrived",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::servers::Servers;

    /// Goal: every shape's statements are valid in every database. Method: run them.
    #[test]
    fn every_table_can_be_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let servers = Servers::default();
        let (postgres, mariadb) = (servers.postgres().expect("PostgreSQL"), servers.mariadb().expect("MariaDB"));
        for (number, shape) in Shape::ALL.into_iter().enumerate() {
            let name = format!("made_{number}");
            postgres.query(&format!("CREATE DATABASE {name}")).expect("a database");
            mariadb.query(&format!("CREATE DATABASE {name}")).expect("a database");
            for database in [
                Database::File(dir.path().join(&name)),
                Database::Postgres { port: postgres.port(), name: name.clone() },
                Database::Mysql { port: mariadb.port(), name },
            ] {
                let engine = database.engine();
                for sql in [tables(shape, engine), lift_refusal(shape, engine)] {
                    database.execute(&sql).unwrap_or_else(|error| panic!("{} {engine:?}: {error:#}", shape.name()));
                }
            }
        }
    }
}
