use hapax_engine::sink::Target as _;
use hapax_model::mode::ConflictMode;

use super::rig::{Rig, keyed};
use crate::table::cases::{self, ABSENT, ABSENT_KEPT, Exactness, ORDERS, ORDERS_KEPT, moments, numbers, same_number};

/// Goal: what is accepted reads back equal, numbers as exact decimals. Method: many random numbers into every type that
/// holds numbers; every row is compared, and exact types refuse none that fits.
#[tokio::test]
async fn a_number_that_is_accepted_reads_back_equal() {
    const TYPES: [&str; 5] = ["numeric", "bigint", "real", "float8", "text"];
    let columns: Vec<String> = TYPES.iter().map(|name| format!("c_{name} {name}")).collect();
    let mut rig =
        Rig::new(&format!("CREATE TABLE t (id int PRIMARY KEY, {})", columns.join(", ")), keyed(ConflictMode::Update))
            .await;
    let numbers = numbers(400);
    for (at, declared) in TYPES.iter().enumerate() {
        let id = |n: usize| at * 1000 + n;
        let events: Vec<String> = numbers
            .iter()
            .enumerate()
            .map(|(n, text)| format!("{{\"id\":{},\"c_{declared}\":{text}}}", id(n)))
            .collect();
        let done = rig.deliver(&events.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let rows =
            rig.texts(&format!("SELECT id || ' ' || c_{declared}::text FROM t WHERE c_{declared} IS NOT NULL")).await;
        assert_eq!(rows.len() + done.dead_inputs.len(), numbers.len());
        assert!(rows.len() > 50, "{declared}: {}", rows.len());
        assert!(!matches!(*declared, "numeric" | "text") || done.dead_inputs.is_empty(), "{declared} holds them all");
        for row in rows {
            let (id, read) = row.split_once(' ').unwrap();
            let written = &numbers[id.parse::<usize>().unwrap() - at * 1000];
            let exactness = match *declared {
                "float8" => Exactness::Double,
                "real" => Exactness::Single,
                _ => Exactness::Decimal,
            };
            assert!(same_number(written, read, exactness), "{declared}: {written} is read as {read}");
        }
    }
}

/// Goal: a moment that is accepted is the same instant when it is read. Method: many random moments with offsets, with
/// and without a zone, alone and in arrays.
#[tokio::test]
async fn a_moment_reads_back_as_the_same_instant() {
    let ddl =
        "CREATE TABLE t (id int PRIMARY KEY, a timestamptz, b timestamp, c timestamptz[], d timestamp[], e tsrange)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let moments = moments(300);
    let event = |(n, (_, text)): (usize, &(i64, String))| {
        format!(
            "{{\"id\":{n},\"a\":\"{text}\",\"b\":\"{text}\",\"c\":[\"{text}\"],\"d\":[null,\"{text}\"],\"e\":\"[{text},)\"}}"
        )
    };
    let events: Vec<String> = moments.iter().enumerate().map(event).collect();
    let done = rig.deliver(&events.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(done.dead_inputs, [0; 0]);
    let micros = |moment: &str| format!("(extract(epoch FROM {moment}) * 1000000)::bigint");
    let sql = format!(
        "SELECT concat_ws(' ', {}, {}, {}, {}, {}) FROM t ORDER BY id",
        micros("a"),
        micros("b"),
        micros("c[1]"),
        micros("d[2]"),
        micros("lower(e)")
    );
    for ((instant, text), read) in moments.iter().zip(rig.texts(&sql).await) {
        assert_eq!(read, vec![instant.to_string(); 5].join(" "), "{text}");
    }
}

/// Goal: a key of several fields of different types is one row exactly if all of them are one, in every mode. Method:
/// orders of which some share a key in other spellings, in one epoch and in one epoch each.
#[tokio::test]
async fn a_key_of_several_fields_names_one_row_in_every_mode() {
    let ddl = "CREATE TABLE t (tenant text, day date, no int, part numeric(5,2), amount int, \
               PRIMARY KEY (tenant, day, no, part))";
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
            let amounts = "SELECT string_agg(amount::text, ' ' ORDER BY amount) FROM t";
            assert_eq!(rig.texts(amounts).await, [kept], "{mode:?}, {per_epoch} per epoch");
        }
    }
}

/// Goal: the hash of a key of several fields names one row. Method: the same orders with a keyColumn of both forms.
#[tokio::test]
async fn the_hash_of_several_fields_names_one_row() {
    for declared in ["bytea", "text"] {
        let ddl = format!("CREATE TABLE t (k {declared} PRIMARY KEY, amount int)");
        let mut rig = Rig::new(&ddl, |config| {
            config.table.mode = Some(ConflictMode::Update);
            config.table.key_fields = cases::order_key();
            config.table.key_column = Some("k".to_owned());
        })
        .await;
        let batch = cases::orders(rig.sink.fields(), 0, &ORDERS);
        rig.try_deliver(batch).await.unwrap();
        let amounts = "SELECT string_agg(amount::text, ' ' ORDER BY amount) FROM t";
        assert_eq!(rig.texts(amounts).await, ["2 2 3 4"], "{declared}");
    }
}

/// Goal: an absent field leaves a column to its default, null is NULL, and NULL where none may be is a dead letter that
/// names the column. Method: a column of each kind, events of each kind.
#[tokio::test]
async fn absent_is_the_default_and_null_is_null() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, plain text, filled text DEFAULT 'd', needed text NOT NULL DEFAULT 'd', \
               n int GENERATED ALWAYS AS IDENTITY, m int GENERATED BY DEFAULT AS IDENTITY, s serial, \
               twice int GENERATED ALWAYS AS (id * 2) STORED)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let done = rig.deliver(&ABSENT).await;
    assert_eq!(done.dead_inputs, [3]);
    let rows = "SELECT concat_ws(' ', id, coalesce(plain, '-'), coalesce(filled, '-'), needed) FROM t ORDER BY id";
    assert_eq!(rig.texts(rows).await, ABSENT_KEPT);
    assert_eq!(rig.texts("SELECT concat_ws(' ', count(n), count(m), count(s), sum(twice)) FROM t").await, ["3 3 3 12"]);
    let letter = rig.texts("SELECT code || ' ' || message FROM hapax.dead_letters").await;
    assert_eq!(letter, ["HX2021 column \"needed\" must have a value, and the event says null"]);
}
