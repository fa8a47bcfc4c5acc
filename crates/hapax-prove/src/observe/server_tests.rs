use hapax_services::Product;

use super::super::{mysql, postgres};
use super::*;
use crate::lodging::Lodging;
use crate::servers::{Need, Servers};
use crate::setting::Stack;

const POSTGRES_TABLES: &str = "CREATE SCHEMA hapax;
    CREATE TABLE hapax.progress (workflow text, generation bigint, epoch bigint, position text, read bigint,
        delivered bigint, filtered bigint, dead bigint, rows bigint);
    CREATE TABLE hapax.epochs (workflow text, epoch bigint, generation bigint);
    CREATE TABLE hapax.dead_letters (id bigint, bytes bytea, state text, code text)";

const MYSQL_TABLES: &str = "CREATE TABLE hapax_progress (workflow text, generation bigint, epoch bigint, position text,
        `read` bigint, delivered bigint, filtered bigint, dead bigint, `rows` bigint);
    CREATE TABLE hapax_epochs (workflow text, epoch bigint, generation bigint);
    CREATE TABLE hapax_dead_letters (id bigint, bytes longblob, state text, code text)";

/// Goal: a server that restarts makes blind for a moment, a wrong statement for good. Method: codes of each.
#[test]
fn what_comes_back_is_told_from_what_does_not_in_postgres() {
    what_comes_back(Product::Postgres, postgres::passes, ["57P01", "57P03", "53300", "42P01"], "42601");
}

/// Goal: a server that restarts makes blind for a moment, a wrong statement for good. Method: codes of each.
#[test]
fn what_comes_back_is_told_from_what_does_not_in_mariadb() {
    what_comes_back(Product::Mariadb, mysql::passes, ["1040", "1053", "1146", "1412"], "1064");
}

fn what_comes_back(product: Product, passes: fn(&str) -> bool, passing: [&str; 4], wrong: &str) {
    let said = |code: &str| ServiceError::Server { product, code: code.to_owned(), message: String::new() };
    for code in passing {
        assert!(matches!(blind(said(code), passes), Blind::Now(_)), "{code}");
    }
    assert!(matches!(blind(said(wrong), passes), Blind::Ever(_)));
    assert!(matches!(blind(ServiceError::Protocol(String::new()), passes), Blind::Ever(_)));
}

/// Goal: what is in the tables is what the judge sees. Method: tables made by hand, looked at before and after.
#[test]
fn the_judge_sees_what_is_there_in_postgres() {
    the_judge_sees_what_is_there(Stack::Postgres, POSTGRES_TABLES);
}

/// Goal: what is in the tables is what the judge sees. Method: tables made by hand, looked at before and after.
#[test]
fn the_judge_sees_what_is_there_in_mariadb() {
    the_judge_sees_what_is_there(Stack::Mysql, MYSQL_TABLES);
}

fn the_judge_sees_what_is_there(stack: Stack, tables: &str) {
    let lodging = Lodging::take(&Servers::default(), Need::Databases, stack).expect("a server");
    let database = lodging.target();
    let subject = Subject { workflow: "orders".into(), shape: Shape::Append };
    let mut watcher = Watcher::new(database.line().expect("it connects"));
    assert_eq!(watcher.sample(&subject).expect("a look"), None);
    assert_eq!(watcher.found(&subject).expect("a look"), Found::default());
    database.execute(&ddl::tables(Shape::Append, watcher.server.engine())).expect("tables");
    database.execute(tables).expect("our tables");
    let [progress, epochs, letters] = ["progress", "epochs", "dead_letters"].map(|table| watcher.server.own(table));
    let filled = format!(
        "INSERT INTO {progress} VALUES ('orders', 2, 1, '17', 2, 1, 0, 1, 1), ('other', 9, 9, '9', 9, 9, 9, 9, 9);
        INSERT INTO {epochs} VALUES ('orders', 1, 2), ('other', 9, 9);
        INSERT INTO {letters} VALUES (1, '{{bad', 'dead', 'HX2001');
        INSERT INTO orders (n, order_id, region, reference, account, amount, op, version)
            VALUES (1, 7, 'eu', 'r7', 'a3', 5, 'c', 100)"
    );
    database.execute(&filled).expect("rows");
    let sample = watcher.sample(&subject).expect("a look").expect("there is progress");
    assert_eq!((sample.progress.generation, sample.progress.read, sample.letters), (2, 2, 1));
    assert_eq!((sample.digest.rows, sample.balance), (1, Some(BalanceSeen { rows: 5, kept: 5 })));
    assert_eq!(watcher.sample(&subject).expect("a look"), Some(sample.clone()));
    database.execute("UPDATE orders SET amount = 6").expect("a change");
    assert_ne!(watcher.sample(&subject).expect("a look"), Some(sample));
    let found = watcher.found(&subject).expect("a look");
    assert_eq!(found.epochs, [EpochRow { epoch: 1, generation: 2 }]);
    assert_eq!(found.letters, [LetterRow { bytes: b"{bad".to_vec(), state: "dead".into(), code: "HX2001".into() }]);
    assert_eq!((found.rows[0].order_id, found.rows[0].slot.as_deref()), (7, None));
    assert_eq!((watcher.count_rows().expect("a count"), watcher.witness_epoch("orders").expect("none")), (1, 0));
}
