//! Tables of PostgreSQL that cannot carry a delivery.

use super::world::Postgres;
use crate::servers;

/// Goal: a table that would lose or double rows is refused before anything is written. Method: each kind.
#[test]
fn unfit_tables_are_refused_with_the_cure() {
    let cases = [
        ("CREATE UNLOGGED TABLE orders (id bigint PRIMARY KEY, amount integer)", "HX4251", "SET LOGGED"),
        ("CREATE TABLE orders (id bigint NOT NULL, customer text, amount integer)", "HX41", "unique"),
        ("CREATE TABLE orders (id bigint UNIQUE, customer text, amount integer)", "HX41", "NOT NULL"),
        (
            "CREATE TABLE orders (id bigint NOT NULL, amount integer); \
             CREATE UNIQUE INDEX ON orders (id) WHERE amount > 0",
            "HX41",
            "unique",
        ),
        ("CREATE TABLE orders (id bigint NOT NULL UNIQUE DEFERRABLE, amount integer)", "HX41", "unique"),
        ("CREATE VIEW orders AS SELECT 1 AS id", "HX41", "view"),
        ("SELECT 1", "HX41", "CREATE TABLE"),
    ];
    servers::unfit_tables_are_refused_with_the_cure::<Postgres>(&cases);
}
