use hapax_model::mode::ConflictMode;

use super::rig::{Rig, Server, keyed};
use crate::table::cases::{Exactness, moments, numbers, same_number};
use crate::table::contract::clauses;
use crate::table::rig::strs;

/// Goal: what is accepted reads back equal, numbers as exact decimals. Method: many random numbers into every type that
/// holds numbers; every row is compared.
#[tokio::test]
async fn a_number_that_is_accepted_reads_back_equal() {
    const TYPES: [(&str, &str); 6] = [
        ("decimal", "decimal(65,30)"),
        ("bigint", "bigint"),
        ("unsigned", "bigint unsigned"),
        ("float", "float"),
        ("double", "double"),
        ("text", "text"),
    ];
    let columns: Vec<String> = TYPES.iter().map(|(name, declared)| format!("c_{name} {declared}")).collect();
    let ddl = format!("CREATE TABLE t (id int PRIMARY KEY, {})", columns.join(", "));
    let mut rig = Rig::new(&ddl, keyed(ConflictMode::Update)).await;
    let numbers = numbers(400);
    for (at, (name, _)) in TYPES.iter().enumerate() {
        let id = |n: usize| at * 1000 + n;
        let events: Vec<String> =
            numbers.iter().enumerate().map(|(n, text)| format!("{{\"id\":{},\"c_{name}\":{text}}}", id(n))).collect();
        let done = rig.deliver(&strs(&events)).await;
        let rows = format!("SELECT concat(id, ' ', c_{name}) FROM t WHERE c_{name} IS NOT NULL");
        let rows = rig.texts(&rows).await;
        assert_eq!(rows.len() + done.dead_inputs.len(), numbers.len());
        assert!(rows.len() > 10, "{name}: {}", rows.len());
        for row in rows {
            let (id, read) = row.split_once(' ').unwrap();
            let written = &numbers[id.parse::<usize>().unwrap() - at * 1000];
            let exactness = if *name == "double" { Exactness::Double } else { Exactness::Decimal };
            assert!(same_number(written, read, exactness), "{name}: {written} is read as {read}");
        }
    }
}

/// Goal: a moment that is accepted is the same instant when it is read. Method: many random moments with offsets.
#[tokio::test]
async fn a_moment_reads_back_as_the_same_instant() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, a datetime(6))";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let moments = moments(300);
    let event = |(n, (_, text)): (usize, &(i64, String))| format!("{{\"id\":{n},\"a\":\"{text}\"}}");
    let events: Vec<String> = moments.iter().enumerate().map(event).collect();
    let done = rig.deliver(&strs(&events)).await;
    assert_eq!(done.dead_inputs, [0; 0]);
    let sql = "SELECT timestampdiff(MICROSECOND, '1970-01-01', a) FROM t ORDER BY id";
    for ((instant, text), read) in moments.iter().zip(rig.texts(sql).await) {
        assert_eq!(read, instant.to_string(), "{text}");
    }
}

clauses!(values, Server:
    a_key_of_several_fields_names_one_row_in_every_mode("varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", "decimal(5,2)"),
    the_hash_of_several_fields_names_one_row(["binary(16)", "varchar(29) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"]),
    absent_is_the_default_and_null_is_null(&[]),
    numbers_of_csv_land_as_what_they_are("decimal(30,15)"),
    texts_that_spell_numbers_stay_texts("varchar(1)"),
);
