//! The clauses of mode `newer` over rows that were removed.

use hapax_model::mode::ConflictMode;

use crate::table::column::LiveColumn as _;
use crate::table::rig::{Database, Rig, of_contract, strs};
use crate::table::seen::Inspection;
use crate::table::sink::Home;

/// A table with a column that a tombstone may not clear, one that it clears, and `more`.
async fn versioned<D: Database>(more: &str) -> Rig<D> {
    let deleted = <<D::Home as Home>::Inspected as Inspection>::Column::DELETED_TYPE;
    let ddl = format!(
        "CREATE TABLE t (id bigint NOT NULL PRIMARY KEY, a int NOT NULL, b varchar(9){more}, v bigint NOT NULL, \
         hapax_deleted {deleted})"
    );
    Rig::new(&ddl, |config| {
        of_contract(D::table(config), ConflictMode::Newer);
        D::table(config).version_column = Some("v".into());
    })
    .await
}

/// Delivers the events in epochs of this size into the empty table; what every row holds then, the removed ones too.
async fn whole_rows_after<D: Database>(rig: &mut Rig<D>, columns: &str, events: &[String], size: usize) -> Vec<String> {
    rig.run("DELETE FROM t").await;
    for epoch in events.chunks(size) {
        assert_eq!(rig.deliver(&strs(epoch)).await.dead_inputs, [0; 0], "in epochs of {size}");
    }
    let state = "CASE WHEN hapax_deleted THEN 'gone' ELSE 'there' END";
    rig.texts(&format!("SELECT concat_ws(' ', {columns}, {state}) FROM t ORDER BY id")).await
}

/// Goal: in `newer` no column of a tombstone shows where an epoch was cut: it holds what the events leave that are applied one by
/// one, also where the first thing heard of a key is its delete. Method: a column that must have a value and has no default,
/// alone and beside one that fills itself; keys that are written twice and removed, removed first, brought back, removed too late;
/// then random events of few keys with versions out of order. Each in epochs of one, two, three events and in one; whole rows.
pub(crate) async fn a_tombstone_does_not_show_the_cut<D: Database>() {
    let told = [
        r#"{"id":1,"v":1,"a":5,"b":"x","c":1}"#,
        r#"{"id":1,"v":2,"a":6,"b":"y","c":2}"#,
        r#"{"id":1,"v":3,"op":"d"}"#,
        r#"{"id":2,"v":3,"op":"d"}"#,
        r#"{"id":2,"v":1,"a":5,"b":"x","c":1}"#,
        r#"{"id":3,"v":3,"op":"d"}"#,
        r#"{"id":3,"v":4,"a":8,"b":"z","c":3}"#,
        r#"{"id":4,"v":2,"a":5,"b":"x","c":1}"#,
        r#"{"id":4,"v":1,"op":"d"}"#,
    ]
    .map(str::to_owned);
    let alone = ["1 6 - 3 gone", "2 0 - 3 gone", "3 8 z 4 there", "4 5 x 2 there"];
    let beside = ["1 6 - 2 3 gone", "2 0 - 7 3 gone", "3 8 z 3 4 there", "4 5 x 1 2 there"];
    for (more, columns, rows) in [
        ("", "id, a, coalesce(b, '-'), v", alone),
        (", c int NOT NULL DEFAULT 7", "id, a, coalesce(b, '-'), c, v", beside),
    ] {
        let mut rig: Rig<D> = versioned(more).await;
        for size in [1, 2, 3, told.len()] {
            let found = whole_rows_after(&mut rig, columns, &told, size).await;
            assert_eq!(found, rows, "epochs of {size}");
        }
        for seed in 0..20 {
            let events = random_events(seed);
            let one_by_one = whole_rows_after(&mut rig, columns, &events, 1).await;
            for size in [2, 3, 12] {
                let found = whole_rows_after(&mut rig, columns, &events, size).await;
                assert_eq!(found, one_by_one, "seed {seed}, epochs of {size}: {events:?}");
            }
        }
    }
}

/// Events of which each says its whole row, and deletes.
fn random_events(seed: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let event = |n: usize| {
        let (id, v) = (random.u32(0..3), n + random.usize(0..3));
        if random.u32(0..3) == 0 {
            return format!("{{\"id\":{id},\"v\":{v},\"op\":\"d\"}}");
        }
        format!("{{\"id\":{id},\"v\":{v},\"a\":{n},\"b\":\"n{n}\",\"c\":{n}}}")
    };
    (0..12).map(event).collect()
}
