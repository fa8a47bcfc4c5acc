use hapax_model::mode::ConflictMode;

use super::rig::{File, Rig, keyed};
use crate::table::cases::{Exactness, numbers, same_number};
use crate::table::contract::clauses;
use crate::table::rig::strs;

/// Goal: what is accepted reads back equal, numbers as exact decimals. Method: many random numbers into every type that
/// holds numbers; every row is compared.
#[tokio::test]
async fn a_number_that_is_accepted_reads_back_equal() {
    const TYPES: [&str; 4] = ["INTEGER", "REAL", "NUMERIC", "TEXT"];
    let columns: Vec<String> = TYPES.iter().map(|name| format!("c_{name} {name}")).collect();
    let mut rig = Rig::new(
        &format!("CREATE TABLE t (id INTEGER PRIMARY KEY, {})", columns.join(", ")),
        keyed(ConflictMode::Update),
    )
    .await;
    let numbers = numbers(400);
    for (at, declared) in TYPES.iter().enumerate() {
        let id = |n: usize| at * 1000 + n;
        let events: Vec<String> = numbers
            .iter()
            .enumerate()
            .map(|(n, text)| format!("{{\"id\":{},\"c_{declared}\":{text}}}", id(n)))
            .collect();
        let done = rig.deliver(&strs(&events)).await;
        // SQLite's own text of a double has fifteen digits; `printf` shows them all.
        let shown = format!(
            "SELECT id || ' ' || CASE typeof(c_{declared}) WHEN 'real' THEN printf('%!.17g', c_{declared}) \
             ELSE c_{declared} END FROM t WHERE c_{declared} IS NOT NULL"
        );
        let rows = rig.texts(&shown).await;
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

clauses!(values, File:
    a_key_of_several_fields_names_one_row_in_every_mode("TEXT", "NUMERIC"),
    the_hash_of_several_fields_names_one_row(["BLOB", "TEXT"]),
    absent_is_the_default_and_null_is_null(&[]),
    numbers_of_csv_land_as_what_they_are("NUMERIC"),
);
