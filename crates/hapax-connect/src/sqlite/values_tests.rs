use hapax_engine::sink::Target as _;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;

use super::config::SqliteSinkConfig;
use super::rig::Rig;
use crate::table::cases::{self, ABSENT, ABSENT_KEPT, Exactness, ORDERS, ORDERS_KEPT, numbers, same_number};

fn by_id(config: &mut SqliteSinkConfig) {
    config.table.mode = Some(ConflictMode::Update);
    config.table.key_fields = vec![FieldPath::of_name("id")];
}

/// Goal: what is accepted reads back equal, numbers as exact decimals. Method: many random numbers into every type that
/// holds numbers; every row is compared.
#[tokio::test]
async fn a_number_that_is_accepted_reads_back_equal() {
    const TYPES: [&str; 4] = ["INTEGER", "REAL", "NUMERIC", "TEXT"];
    let columns: Vec<String> = TYPES.iter().map(|name| format!("c_{name} {name}")).collect();
    let mut rig = Rig::new(&format!("CREATE TABLE t (id INTEGER PRIMARY KEY, {})", columns.join(", ")), by_id).await;
    let numbers = numbers(400);
    for (at, declared) in TYPES.iter().enumerate() {
        let id = |n: usize| at * 1000 + n;
        let events: Vec<String> = numbers
            .iter()
            .enumerate()
            .map(|(n, text)| format!("{{\"id\":{},\"c_{declared}\":{text}}}", id(n)))
            .collect();
        let done = rig.deliver(&events.iter().map(String::as_str).collect::<Vec<_>>()).await;
        // SQLite's own text of a double has fifteen digits; `printf` shows them all.
        let shown = format!(
            "SELECT id || ' ' || CASE typeof(c_{declared}) WHEN 'real' THEN printf('%!.17g', c_{declared}) \
             ELSE c_{declared} END FROM t WHERE c_{declared} IS NOT NULL"
        );
        let rows = rig.texts(&shown);
        assert_eq!(rows.len() + done.dead_inputs.len(), numbers.len());
        assert!(rows.len() > 50, "{declared}: {}", rows.len());
        assert!(*declared != "TEXT" || done.dead_inputs.is_empty(), "{declared} holds them all");
        for row in rows {
            let (id, read) = row.split_once(' ').unwrap();
            let written = &numbers[id.parse::<usize>().unwrap() - at * 1000];
            let exact = matches!(*declared, "INTEGER" | "TEXT");
            let exactness = if exact { Exactness::Decimal } else { Exactness::Double };
            assert!(same_number(written, read, exactness), "{declared}: {written} is read as {read}");
        }
    }
}

/// Goal: a key of several fields of different types is one row exactly if all of them are one, in every mode. Method:
/// orders of which some share a key in other spellings, in one epoch and in one epoch each.
#[tokio::test]
async fn a_key_of_several_fields_names_one_row_in_every_mode() {
    let ddl = "CREATE TABLE t (tenant TEXT NOT NULL, day DATE NOT NULL, no INTEGER NOT NULL, part NUMERIC NOT NULL, \
               amount INTEGER, PRIMARY KEY (tenant, day, no, part))";
    for (mode, kept) in ORDERS_KEPT {
        for per_epoch in [ORDERS.len(), 1] {
            let mut rig = Rig::new(ddl, |config| cases::order_table(&mut config.table, mode)).await;
            let mut dead = Vec::new();
            for inputs in ORDERS.chunks(per_epoch) {
                let first = rig.progress.as_ref().unwrap().bookmark.position.offset;
                let batch = cases::orders(rig.sink.fields(), first, inputs);
                dead.push(rig.try_deliver(batch).await.unwrap().progress.totals.dead);
            }
            assert_eq!(dead.last(), Some(&1), "the order without a line");
            let amounts = "SELECT group_concat(amount, ' ') FROM (SELECT amount FROM t ORDER BY amount)";
            assert_eq!(rig.texts(amounts), [kept], "{mode:?}, {per_epoch} per epoch");
        }
    }
}

/// Goal: the hash of a key of several fields names one row. Method: the same orders with a keyColumn of both forms.
#[tokio::test]
async fn the_hash_of_several_fields_names_one_row() {
    for declared in ["BLOB", "TEXT"] {
        let ddl = format!("CREATE TABLE t (k {declared} NOT NULL PRIMARY KEY, amount INTEGER)");
        let mut rig = Rig::new(&ddl, |config| {
            config.table.mode = Some(ConflictMode::Update);
            config.table.key_fields = cases::order_key();
            config.table.key_column = Some("k".to_owned());
        })
        .await;
        let batch = cases::orders(rig.sink.fields(), 0, &ORDERS);
        rig.try_deliver(batch).await.unwrap();
        let amounts = "SELECT group_concat(amount, ' ') FROM (SELECT amount FROM t ORDER BY amount)";
        assert_eq!(rig.texts(amounts), ["2 2 3 4"], "{declared}");
    }
}

/// Goal: an absent field leaves a column to its default, null is NULL, and NULL where none may be is a dead letter that
/// names the column. Method: a column of each kind, events of each kind.
#[tokio::test]
async fn absent_is_the_default_and_null_is_null() {
    let ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, plain TEXT, filled TEXT DEFAULT 'd', needed TEXT NOT NULL DEFAULT 'd', \
               twice INTEGER GENERATED ALWAYS AS (id * 2) STORED)";
    let mut rig = Rig::new(ddl, by_id).await;
    let done = rig.deliver(&ABSENT).await;
    assert_eq!(done.dead_inputs, [3]);
    let rows =
        "SELECT id || ' ' || coalesce(plain, '-') || ' ' || coalesce(filled, '-') || ' ' || needed FROM t ORDER BY id";
    assert_eq!(rig.texts(rows), ABSENT_KEPT);
    let letter = rig.texts("SELECT code || ' ' || message FROM hapax_dead_letters");
    assert_eq!(letter, ["HX2021 column \"needed\" must have a value, and the event says null"]);
}
