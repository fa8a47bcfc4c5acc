//! The clauses of a sink with progress beside the data.

use hapax_engine::sink::{Reaction, SinkError, Target as _, TransactionalSink as _, Written};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;
use hapax_model::position::DeliveryId;
use hapax_model::rejects::{OnReject, RejectRule};

use crate::table::column::LiveColumn as _;
use crate::table::config::{Deletes, UniqueKeys};
use crate::table::rig::{Database, Rig, by_id, of_contract, record_after, strs};
use crate::table::sample::{batch, take};
use crate::table::seen::Inspection;
use crate::table::sink::{Home, TableSink};

/// Goal: a field that an event lacks takes its default in a new row and stays as it is in an old one, also within
/// one epoch. Method: whole rows, parts and deletes of the same keys, in one epoch and in two.
pub(crate) async fn absent_fields_take_their_default_or_stay<D: Database>() {
    let mut rig: Rig<D> = Rig::new(D::PLAIN, |config| {
        by_id(D::table(config), ConflictMode::Update);
        D::table(config).deletes = Deletes::Some;
    })
    .await;
    let events = [
        r#"{"id":1,"a":"x","b":1}"#,
        r#"{"id":2,"b":2}"#,
        r#"{"id":1,"b":3}"#,
        r#"{"id":3,"a":"y","b":4}"#,
        r#"{"id":3,"op":"d"}"#,
        r#"{"id":3,"b":5}"#,
        r#"{"id":2,"a":null}"#,
    ];
    rig.deliver(&events).await;
    let all = "SELECT concat_ws(' ', id, coalesce(a, 'null'), b) FROM t ORDER BY id";
    assert_eq!(rig.texts(all).await, ["1 x 3", "2 null 2", "3 none 5"]);
    rig.deliver(&[r#"{"id":3,"a":"z"}"#, r#"{"id":1,"op":"d"}"#, r#"{"id":9,"op":"d"}"#]).await;
    assert_eq!(rig.texts(all).await, ["2 null 2", "3 z 5"]);
}

/// Goal: sinks count what they did. Method: new keys, known keys, a repeated key, a delete, an abort, a refusal.
pub(crate) async fn the_sink_counts_what_it_did<D: Database>() {
    let mut rig: Rig<D> = Rig::keyed(D::PLAIN, ConflictMode::Update).await;
    rig.deliver(&[r#"{"id":1,"a":"x","b":1}"#, r#"{"id":2,"a":"x","b":1}"#, r#"{"id":2,"a":"y","b":2}"#]).await;
    let done = rig.deliver(&[r#"{"id":2,"a":"z","b":3}"#, r#"{"id":3,"a":"x","b":1}"#, r#"{"id":4,"b":"no"}"#]).await;
    assert_eq!((done.written.inserts, done.written.updates, done.written.failures), (1, 1, 1));
    rig.sink.begin_transaction(Epoch(3)).unwrap();
    rig.sink.abort_transaction().await.unwrap();
    let metrics = rig.sink.metrics();
    assert_eq!((metrics.upserts, metrics.inserts, metrics.updates, metrics.failures), (4, 3, 1, 1));
    assert_eq!((metrics.commits, metrics.aborts, metrics.commit_failures, metrics.events_written), (2, 1, 0, 6));
    assert!(metrics.latency.count == 2 && metrics.latency.max_us >= metrics.latency.mean_us());
    let mut rival = D::sink(&rig.config);
    rival.init_transactions(&take(0)).await.unwrap();
    let batch = rig.batch(&[r#"{"id":9}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert_eq!(error.reaction(), Reaction::Fenced, "{error}");
    assert_eq!(rig.sink.metrics().commit_failures, 1);
}

/// A table `t` whose `b` names a row of another table, and must not be 13.
const WITH_PARENT: &str = "CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int \
                           CHECK (b <> 13), CONSTRAINT parent_of_t FOREIGN KEY (b) REFERENCES parent (id))";

/// Goal: a mapping mistake stops at the input with which it was too many, with the server's own words, and leaves nothing;
/// where all may die, all are letters. Method: rows that all break a foreign key, with ten percent allowed, and all.
pub(crate) async fn a_mapping_mistake_stops_with_the_servers_words<D: Database>() {
    let mut rig: Rig<D> = Rig::keyed(WITH_PARENT, ConflictMode::Update).await;
    let inputs: Vec<String> = (0..3_000).map(|id| format!("{{\"id\":{id},\"b\":{}}}", id + 100)).collect();
    let batch = rig.batch(&strs(&inputs));
    let mut record = rig.record(&batch);
    record.rejects = RejectRule::new(OnReject::DeadLetter, 100);
    rig.sink.begin_transaction(record.epoch).unwrap();
    rig.sink.write(batch.into()).unwrap();
    let stopped = rig.sink.commit_transaction(&record).await.unwrap_err();
    let said = stopped.to_string().to_lowercase();
    assert!(said.contains("foreign key") && said.contains("100 of the last 100 inputs"), "{stopped}");
    assert_eq!(rig.ours("count(*)", "dead_letters").await, ["0"]);
    rig.sink.abort_transaction().await.unwrap();
    let done = rig.deliver(&strs(&inputs)).await;
    assert_eq!((done.dead_inputs.len(), done.progress.totals.dead), (3_000, 3_000));
    assert_eq!(rig.ours("count(*)", "dead_letters").await, ["3000"]);
    assert!(done.causes[0].example.to_lowercase().contains("foreign key"), "{:?}", done.causes);
}

/// Goal: where many rows are refused, just they die. Method: three thousand inputs of several shapes and keys that come
/// again, statements of a hundred rows; none, few, many and most refused, at the start, all over, and in one statement.
pub(crate) async fn just_the_refused_die_among_many<D: Database>() {
    let bad: [fn(usize) -> bool; 5] =
        [|n| n == 7, |n| n % 501 == 0, |n| n % 11 == 3, |n| n % 3 != 0, |n| (1_210..1_290).contains(&n)];
    for (round, bad) in bad.into_iter().enumerate() {
        let mut rig: Rig<D> = Rig::new(WITH_PARENT, |config| {
            by_id(D::table(config), ConflictMode::Update);
            *D::rows_per_statement(config) = 100;
        })
        .await;
        rig.run("INSERT INTO parent VALUES (1)").await;
        let input = |n: usize| match (bad(n), n % 4) {
            // A key of its own: a later event of the same key would supersede it.
            (true, _) => format!("{{\"id\":{},\"a\":\"n{n}\",\"b\":13}}", n + 10_000),
            (false, 0) => format!("{{\"id\":{},\"a\":\"n{n}\"}}", n % 1_000),
            (false, _) => format!("{{\"id\":{},\"a\":\"n{n}\",\"b\":1}}", n % 1_000),
        };
        let inputs: Vec<String> = (0..3_000).map(input).collect();
        let done = rig.deliver(&strs(&inputs)).await;
        let expected: Vec<usize> = (0..3_000).filter(|n| bad(*n)).collect();
        assert_eq!(done.dead_inputs, expected, "round {round}");
        let mut rows = std::collections::BTreeMap::new();
        for n in (0..3_000).filter(|n| !bad(*n)) {
            rows.insert(n % 1_000, format!("{} n{n}", n % 1_000));
        }
        let found = rig.texts("SELECT concat_ws(' ', id, a) FROM t ORDER BY id").await;
        assert_eq!(found, rows.into_values().collect::<Vec<_>>(), "round {round}");
        // In lane order nothing is reduced.
        let written = 3_000 - expected.len() as u64;
        let Written { upserts, inserts, updates, failures, .. } = done.written;
        assert_eq!((upserts, inserts + updates, failures), (written, written, expected.len() as u64), "round {round}");
    }
}

/// Goal: where an epoch is cut does not show, on a table where a row meets others than that of its key: the same rows, the
/// same dead inputs. Method: random writes and deletes of few keys, in one epoch, each alone, and cut at random, into
/// `ddl`'s table, which `clear` empties.
pub(crate) async fn where_an_epoch_is_cut_does_not_show<D: Database>(ddl: &str, clear: &str) {
    let mut rig: Rig<D> = Rig::new(ddl, |config| {
        by_id(D::table(config), ConflictMode::Update);
        D::table(config).deletes = Deletes::Some;
    })
    .await;
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let event = |n: usize, random: &mut fastrand::Rng| match random.u32(0..10) {
            0 | 1 => format!("{{\"id\":{},\"op\":\"d\"}}", random.u32(0..4)),
            2 => format!("{{\"id\":{},\"a\":\"n{n}\",\"b\":null}}", random.u32(0..4)),
            _ => format!("{{\"id\":{},\"a\":\"n{n}\",\"b\":{}}}", random.u32(0..4), random.u32(0..4)),
        };
        let events: Vec<String> = (0..16).map(|n| event(n, &mut random)).collect();
        let random_cuts =
            |random: &mut fastrand::Rng| (1..16).filter(|_| random.u32(0..4) == 0).collect::<Vec<usize>>();
        let cuts = [Vec::new(), (1..16).collect(), random_cuts(&mut random), random_cuts(&mut random)];
        let mut seen = Vec::new();
        for cut in &cuts {
            rig.run(clear).await;
            let (mut dead, mut from) = (Vec::new(), 0);
            for to in cut.iter().copied().chain([16]) {
                let done = rig.deliver(&strs(&events[from..to])).await;
                dead.extend(done.dead_inputs.iter().map(|input| input + from));
                from = to;
            }
            let rows = rig.texts("SELECT concat_ws(' ', id, a, coalesce(b, -1)) FROM t ORDER BY id").await;
            seen.push((rows, dead));
        }
        for (cut, other) in cuts.iter().zip(&seen) {
            assert_eq!(*other, seen[0], "seed {seed}, cut at {cut:?}: {events:?}");
        }
    }
}

/// Goal: in `update` a row that is deleted and written again is a new one, also within one epoch: what another table holds of the old
/// row is gone, and a column that no event fills is back at its default. Method: a child that goes with its parent; events that fill
/// all columns, and columns that others fill; deletes and writes in one epoch, and each alone.
pub(crate) async fn a_deleted_row_that_is_written_again_is_a_new_one<D: Database>() {
    let again = [
        r#"{"id":3,"op":"d"}"#,
        r#"{"id":3,"a":"y","b":3}"#,
        r#"{"id":1,"op":"d"}"#,
        r#"{"id":1,"a":"y","b":2}"#,
        r#"{"id":2,"a":"y","b":2}"#,
    ];
    for (more, filled) in [("", "b"), (", stock int DEFAULT 7, note int", "b, stock, coalesce(note, -1)")] {
        let ddl = format!(
            "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int{more}); \
             CREATE TABLE child (id int NOT NULL PRIMARY KEY, t_id int, \
             CONSTRAINT of_t FOREIGN KEY (t_id) REFERENCES t (id) ON DELETE CASCADE)"
        );
        let mut rig: Rig<D> = Rig::new(&ddl, |config| {
            by_id(D::table(config), ConflictMode::Update);
            D::table(config).deletes = Deletes::Some;
        })
        .await;
        for size in [again.len(), 2, 1] {
            rig.run("DELETE FROM t").await;
            let first = (1..=3).map(|id| format!("{{\"id\":{id},\"a\":\"x\",\"b\":1}}")).collect::<Vec<_>>();
            rig.deliver(&strs(&first)).await;
            if !more.is_empty() {
                rig.run("UPDATE t SET stock = 1, note = 1").await;
            }
            rig.run("INSERT INTO child VALUES (10, 1), (20, 2), (30, 3)").await;
            for epoch in again.chunks(size) {
                assert_eq!(rig.deliver(epoch).await.dead_inputs, [0; 0], "in epochs of {size}");
            }
            let rows = rig.texts(&format!("SELECT concat_ws(' ', id, a, {filled}) FROM t ORDER BY id")).await;
            let expected =
                if more.is_empty() { ["1 y 2", "2 y 2", "3 y 3"] } else { ["1 y 2 7 -1", "2 y 2 1 1", "3 y 3 7 -1"] };
            assert_eq!(rows, expected, "in epochs of {size}");
            let children = rig.texts("SELECT concat_ws(' ', id, t_id) FROM child ORDER BY id").await;
            assert_eq!(children, ["20 2"], "in epochs of {size}, {more}");
        }
    }
}

/// Goal: in `newer` a row that is alive does not show where an epoch was cut, whatever was removed and brought back, and an
/// event that brings a row back takes nothing of what was removed. Method: random events that lack columns, and deletes, of
/// few keys and with versions out of order; in one epoch, each alone, and cut at random; with and without a default.
pub(crate) async fn a_row_that_is_brought_back_does_not_show_the_cut<D: Database>() {
    let deleted = <<D::Home as Home>::Inspected as Inspection>::Column::DELETED_TYPE;
    for default in ["", " DEFAULT 5", " NOT NULL DEFAULT 5"] {
        let ddl = format!(
            "CREATE TABLE t (id bigint NOT NULL PRIMARY KEY, a varchar(9), b int{default}, v bigint NOT NULL, \
             hapax_deleted {deleted})"
        );
        let mut rig: Rig<D> = Rig::new(&ddl, |config| {
            of_contract(D::table(config), ConflictMode::Newer);
            D::table(config).version_column = Some("v".into());
        })
        .await;
        rig.deliver(&[r#"{"id":0,"a":"x","b":1,"v":1}"#, r#"{"id":0,"v":2,"op":"d"}"#]).await;
        rig.deliver(&[r#"{"id":0,"b":1,"v":3}"#]).await;
        assert_eq!(rig.texts("SELECT count(*) FROM t WHERE a IS NULL").await, ["1"]);
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let event = |n: usize, random: &mut fastrand::Rng| {
                let a = if random.bool() { format!(",\"a\":\"n{n}\"") } else { String::new() };
                let b = if random.bool() { format!(",\"b\":{n}") } else { String::new() };
                let delete = if random.u32(0..3) == 0 { ",\"op\":\"d\"" } else { "" };
                format!("{{\"id\":{},\"v\":{}{a}{b}{delete}}}", random.u32(0..3), n + random.usize(0..3))
            };
            let events: Vec<String> = (0..12).map(|n| event(n, &mut random)).collect();
            let some = (1..12).filter(|_| random.u32(0..3) == 0).collect::<Vec<usize>>();
            let mut seen: Vec<Vec<String>> = Vec::new();
            for cut in [Vec::new(), (1..12).collect(), some] {
                rig.run("DELETE FROM t").await;
                let mut from = 0;
                for to in cut.iter().copied().chain([12]) {
                    rig.deliver(&strs(&events[from..to])).await;
                    from = to;
                }
                let alive = "SELECT concat_ws(' ', id, coalesce(a, '-'), coalesce(b, -1), v) FROM t \
                             WHERE NOT hapax_deleted ORDER BY id";
                seen.push(rig.texts(alive).await);
                assert_eq!(seen[0], *seen.last().unwrap(), "b int{default}, seed {seed}, cut at {cut:?}: {events:?}");
            }
        }
    }
}

/// In each mode events that cannot be written, beside others of their keys that take their place; and their letters.
const OUTDONE: [(ConflictMode, &[&str], &[&str]); 3] = [
    (
        ConflictMode::Update,
        &[
            r#"{"id":1,"a":"x","b":"no","v":1}"#,
            r#"{"id":1,"op":"d"}"#,
            r#"{"id":2,"a":null,"b":1,"v":1}"#,
            r#"{"id":2,"op":"d"}"#,
            r#"{"id":2,"a":"y","b":2,"v":1}"#,
            r#"{"id":3,"a":"x","b":"no","v":1}"#,
            r#"{"id":3,"a":"y","b":2,"v":1}"#,
            r#"{"id":4,"a":"x","b":1,"v":1}"#,
            r#"{"id":4,"op":"d"}"#,
        ],
        &["0 HX2020", "2 HX2021", "5 HX2020"],
    ),
    (
        ConflictMode::Ignore,
        &[
            r#"{"id":1,"a":"x","b":1,"v":1}"#,
            r#"{"id":1,"a":"x","b":"no","v":1}"#,
            r#"{"id":2,"a":"x","b":1,"v":1}"#,
            r#"{"id":2,"b":2,"v":1}"#,
            r#"{"id":2,"op":"d"}"#,
            r#"{"id":1,"a":"y","b":2,"v":1}"#,
        ],
        &["1 HX2020", "3 HX2021", "4 HX2022"],
    ),
    (
        ConflictMode::Newer,
        &[
            r#"{"id":1,"a":"x","b":"no","v":1}"#,
            r#"{"id":1,"a":"y","b":2,"v":2}"#,
            r#"{"id":2,"a":"y","b":2,"v":2}"#,
            r#"{"id":2,"a":null,"b":1,"v":1}"#,
            r#"{"id":3,"a":"x","b":"no","v":1}"#,
            r#"{"id":3,"op":"d","v":2}"#,
            r#"{"id":4,"a":"y","b":2,"v":2}"#,
            r#"{"id":4,"a":"z","b":3,"v":"no"}"#,
        ],
        &["0 HX2020", "3 HX2021", "4 HX2020", "7 HX2020"],
    ),
];

/// A table of which every event in [`OUTDONE`] says the whole row.
async fn whole_rows<D: Database>(mode: ConflictMode) -> Rig<D> {
    let mark = match mode {
        ConflictMode::Newer => {
            format!(", hapax_deleted {}", <<D::Home as Home>::Inspected as Inspection>::Column::DELETED_TYPE)
        }
        ConflictMode::Append | ConflictMode::Ignore | ConflictMode::Update => String::new(),
    };
    let ddl = format!(
        "CREATE TABLE t (id bigint NOT NULL PRIMARY KEY, a varchar(9) NOT NULL, b int NOT NULL, v bigint NOT NULL{mark})"
    );
    Rig::new(&ddl, |config| {
        of_contract(D::table(config), mode);
        D::table(config).version_column = (mode == ConflictMode::Newer).then(|| "v".into());
    })
    .await
}

/// Goal: an event that cannot be written is a dead letter, whoever of its key takes its place in the same epoch. Method:
/// each mode; all events in one epoch, and each alone: the same letters, counts and rows.
pub(crate) async fn an_event_is_judged_whoever_takes_its_place<D: Database>() {
    for (mode, events, expected) in OUTDONE {
        let mut seen = Vec::new();
        for size in [1, events.len()] {
            let mut rig: Rig<D> = whole_rows(mode).await;
            for epoch in events.chunks(size) {
                rig.deliver(epoch).await;
            }
            let letters = rig.ours("concat(position, ' ', code)", "dead_letters ORDER BY id").await;
            assert_eq!(letters, expected, "{mode:?} in epochs of {size}");
            let rows = rig.texts("SELECT concat_ws(' ', id, a, b, v) FROM t ORDER BY id").await;
            seen.push((rows, rig.progress.as_ref().unwrap().totals));
        }
        assert_eq!(seen[0], seen[1], "{mode:?}");
    }
}

/// Goal: `onReject: stop` is not evaded by an event that takes another's place. Method: each mode, all in one epoch.
pub(crate) async fn a_stop_is_not_evaded_by_who_takes_its_place<D: Database>() {
    for (mode, events, expected) in OUTDONE {
        let mut rig: Rig<D> = whole_rows(mode).await;
        let batch = rig.batch(events);
        let mut record = rig.record(&batch);
        record.rejects = RejectRule::new(OnReject::Stop, 1000);
        rig.sink.begin_transaction(record.epoch).unwrap();
        rig.sink.write(batch.into()).unwrap();
        let stopped = rig.sink.commit_transaction(&record).await.unwrap_err();
        let SinkError::Rejected { position, .. } = &stopped else { panic!("{mode:?}: {stopped}") };
        assert!(expected[0].starts_with(&format!("{} ", position.offset)), "{mode:?}: {stopped}");
        assert_eq!(rig.texts("SELECT id FROM t").await, [""; 0], "{mode:?}");
        assert_eq!(rig.ours("count(*)", "dead_letters").await, ["0"], "{mode:?}");
    }
}

/// Goal: `ignore` tells how many rows stayed as they were. Method: repeat an epoch's events.
pub(crate) async fn repeats_are_counted_as_unchanged<D: Database>() {
    let mut rig: Rig<D> = Rig::keyed(D::PLAIN, ConflictMode::Ignore).await;
    let events = [r#"{"id":1,"a":"x","b":1}"#, r#"{"id":2,"a":"x","b":1}"#];
    assert_eq!(rig.deliver(&events).await.written.inserts, 2);
    let again = rig.deliver(&[events[0], r#"{"id":3,"a":"x","b":1}"#]).await.written;
    assert_eq!((again.upserts, again.inserts, again.unchanged), (2, 1, 1));
}

/// Goal: a new column is filled from the next epoch that commits on, without a stop. Method: add one between epochs; an
/// epoch that was read before is refused until it is decoded for it, and nothing of it is there.
pub(crate) async fn a_new_column_is_picked_up<D: Database>() {
    let mut rig: Rig<D> = Rig::keyed(D::PLAIN, ConflictMode::Update).await;
    rig.deliver(&[r#"{"id":1,"a":"x","b":1,"c":"new"}"#]).await;
    let read_before = rig.batch(&[r#"{"id":2,"a":"x","b":2,"c":"new"}"#]);
    rig.run("ALTER TABLE t ADD COLUMN c varchar(9) DEFAULT 'old'").await;
    let error = rig.try_deliver(read_before).await.unwrap_err();
    assert!(matches!(error, SinkError::FieldsAdded { .. }), "{error}");
    assert_eq!(rig.texts("SELECT c FROM t ORDER BY id").await, ["old"]);
    assert!(rig.sink.fields().contains(&FieldPath::of_name("c")));
    rig.sink.abort_transaction().await.unwrap();
    rig.deliver(&[r#"{"id":2,"a":"x","b":2,"c":"new"}"#]).await;
    rig.deliver(&[r#"{"id":3,"a":"x","b":3,"c":"new"}"#]).await;
    assert_eq!(rig.texts("SELECT c FROM t ORDER BY id").await, ["old", "new", "new"]);
}

/// Goal: a table that no longer fits stops the workflow with the reason, and nothing of the epoch is there.
/// Method: drop the unique index `k` of the column `id`, then make it again; the same epoch commits then.
pub(crate) async fn a_table_that_no_longer_fits_is_schema_evolution<D: Database>(ddl: &str, drop_index: &str) {
    let mut rig: Rig<D> = Rig::keyed(ddl, ConflictMode::Update).await;
    rig.run(drop_index).await;
    let batch = rig.batch(&[r#"{"id":1,"a":"x"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::SchemaEvolution { .. }), "{error}");
    assert!(error.to_string().contains("CREATE UNIQUE INDEX"), "{error}");
    assert_eq!(rig.texts("SELECT a FROM t").await, [""; 0]);
    assert_eq!(rig.ours("epoch", "progress").await, ["0"]);
    rig.run("CREATE UNIQUE INDEX k ON t (id)").await;
    rig.claim().await;
    rig.sink.abort_transaction().await.unwrap();
    rig.deliver(&[r#"{"id":1,"a":"x"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t").await, ["x"]);
}

/// Goal: a key column takes the hash, as bytes or as text, entity key or event key by the mode. Method: each of these
/// modes, with the column as declared and the length that the hash has there.
pub(crate) async fn a_key_column_takes_the_keys_hash<D: Database>(
    version: &str,
    cases: &[(ConflictMode, &str, usize)],
) {
    for (mode, declared, length) in cases {
        let ddl = format!(
            "CREATE TABLE t (k {declared} NOT NULL PRIMARY KEY, id int, a varchar(9), hapax_version {version})"
        );
        let mut rig: Rig<D> = Rig::new(&ddl, |config| {
            by_id(D::table(config), *mode);
            D::table(config).key_column = Some("k".into());
        })
        .await;
        let events = [r#"{"id":1,"a":"x"}"#, r#"{"id":2,"a":"y"}"#, r#"{"id":1,"a":"z"}"#];
        let batch = rig.batch(&events);
        let key = batch.event(0).entity_key().unwrap().text().to_string();
        rig.try_deliver(batch).await.unwrap();
        let found = rig.texts("SELECT concat(length(k), ' ', id, a) FROM t ORDER BY id").await;
        let last = if *mode == ConflictMode::Ignore { "x" } else { "z" };
        assert_eq!(found, [format!("{length} 1{last}"), format!("{length} 2y")], "{mode:?} {declared}");
        if *length == key.len() {
            assert_eq!(rig.texts("SELECT k FROM t WHERE id = 1").await, [key]);
        }
    }
}

/// Goal: rows of one key are one row however the key is spelled. Method: two spellings in columns of each type, twice.
pub(crate) async fn a_key_is_what_the_table_takes_for_one<D: Database>(cases: &[(&str, &str, &str)]) {
    for (declared, first, second) in cases {
        let ddl = format!("CREATE TABLE t (id {declared} NOT NULL PRIMARY KEY, a varchar(9))");
        let mut rig: Rig<D> = Rig::keyed(&ddl, ConflictMode::Update).await;
        for _ in 0..2 {
            let (one, two) =
                (format!("{{\"id\":{first},\"a\":\"first\"}}"), format!("{{\"id\":{second},\"a\":\"last\"}}"));
            let done = rig.deliver(&[&one, &two]).await;
            assert_eq!((done.written.upserts, done.written.failures), (1, 0), "{declared}");
            assert_eq!(rig.texts("SELECT a FROM t").await, ["last"], "{declared}");
        }
    }
}

/// Goal: NULL and equal versions behave as PROTOCOL says; text versions go by their bytes. Method: an older and a newer
/// version of each type, such as text that a language would sort otherwise; one row alone, and among others.
pub(crate) async fn the_strictly_newer_row_stays<D: Database>(cases: &[(&str, &str, &str)]) {
    for (declared, one, two) in cases {
        let ddl = format!("CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), v {declared})");
        let mut rig: Rig<D> = Rig::new(&ddl, |config| {
            by_id(D::table(config), ConflictMode::Newer);
            D::table(config).version_column = Some("v".into());
        })
        .await;
        let event = |id: u32, a: &str, v: &str| format!("{{\"id\":{id},\"a\":\"{a}\",\"v\":{v}}}");
        for (a, v, stays) in [
            ("none", "null", "none"),
            ("one", *one, "one"),
            ("again", *one, "one"),
            ("null", "null", "one"),
            ("two", *two, "two"),
        ] {
            rig.deliver(&[&event(1, a, v)]).await;
            rig.deliver(&[&event(2, a, v), &event(3, a, v)]).await;
            assert_eq!(rig.texts("SELECT a FROM t ORDER BY id").await, [stays; 3], "{declared}");
        }
        let done = rig.deliver(&[&event(1, "p", two), &event(1, "q", one)]).await.written;
        assert_eq!((done.upserts, done.unchanged, done.updates), (1, 1, 0));
        let done = rig.deliver(&[&event(1, "p", two), &event(2, "q", one), &event(4, "r", one)]).await.written;
        assert_eq!((done.upserts, done.unchanged, done.updates, done.inserts), (3, 2, 0, 1));
    }
}

/// Goal: keys that promise to be unique and are not stop the workflow; repeats of one event do not. Method: both.
pub(crate) async fn different_events_of_one_promised_key_collide<D: Database>() {
    let mut rig: Rig<D> = Rig::new(D::PLAIN, |config| {
        by_id(D::table(config), ConflictMode::Ignore);
        D::table(config).unique_keys = UniqueKeys::Promised;
    })
    .await;
    rig.deliver(&[r#"{"id":1,"a":"x"}"#, r#"{"id":2,"a":"x"}"#, r#"{"a":"x","id":1}"#]).await;
    let batch = rig.batch(&[r#"{"id":3,"a":"x"}"#, r#"{"id":3,"a":"y"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::DedupKeyCollision { .. }), "{error}");
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["2"]);
}

/// Goal: batches larger and smaller than a statement carries are written whole, in all modes and shapes. Method: around
/// the bound, with fields that come and go.
pub(crate) async fn statements_are_filled_and_the_rest_is_written_too<D: Database>() {
    for mode in [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update] {
        let mut rig: Rig<D> = Rig::new(D::PLAIN, |config| {
            by_id(D::table(config), mode);
            *D::rows_per_statement(config) = 4;
        })
        .await;
        let mut next = 0;
        for rows in [1_usize, 3, 4, 5, 9, 70, 131] {
            let input = |id: usize| match id % 3 {
                0 => format!("{{\"id\":{id},\"b\":{id}}}"),
                _ => format!("{{\"id\":{id},\"a\":\"x\"}}"),
            };
            let inputs: Vec<String> = (next..next + rows).map(input).collect();
            next += rows;
            let done = rig.deliver(&strs(&inputs)).await;
            assert_eq!((done.written.upserts, done.written.inserts), (rows as u64, rows as u64));
            assert_eq!(rig.texts("SELECT count(*) FROM t").await, [next.to_string()]);
        }
        let sums = "SELECT concat_ws(' ', count(b), count(CASE WHEN a = 'none' THEN 1 END)) FROM t";
        assert_eq!(rig.texts(sums).await, ["75 75"], "{mode:?}");
    }
}

/// Goal: a table that somebody holds is waited for, then named, and nothing is lost. Method: another session locks it,
/// by a statement of the dialect's own.
pub(crate) async fn a_locked_table_is_waited_for_and_named<D: Database>(mut rig: Rig<D>, lock: &str, unlock: &str) {
    rig.run(lock).await;
    let batch = rig.batch(&[r#"{"id":1,"b":1}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::Locked { .. }), "{error}");
    assert_eq!(error.reaction(), Reaction::Retry);
    rig.run(unlock).await;
    rig.commit_again(&[r#"{"id":1,"b":1}"#]).await.unwrap();
    assert_eq!(rig.texts("SELECT b FROM t").await, ["1"]);
}

/// Goal: lanes that write the same rows at once lock them in one order, so that none ends the other. Method: two lanes,
/// one with its events backwards, epochs of several statements; `lane` makes a sink of each, over one pool.
pub(crate) async fn lanes_that_share_rows_do_not_deadlock<H: Home>(lane: impl Fn(DeliveryId) -> TableSink<H>) {
    let lane = |name: &str| lane(DeliveryId { workflow: "rig".into(), sink: "table".into(), lane: name.into() });
    let forwards: Vec<String> = (0..100).map(|id| format!("{{\"id\":{id},\"b\":1}}")).collect();
    let backwards: Vec<String> = (0..100).rev().map(|id| format!("{{\"id\":{id},\"b\":2}}")).collect();
    let (one, two) = tokio::join!(ten_epochs(lane("one"), &forwards), ten_epochs(lane("two"), &backwards));
    for sink in [one, two] {
        let metrics = sink.unwrap().metrics();
        assert_eq!((metrics.commits, metrics.commit_failures, metrics.failures), (10, 0, 0));
    }
}

/// Goal: lanes of which rows are refused write theirs in lane order, and none ends the other. Method: two lanes, one with
/// its events backwards, each with a row that no table takes in every epoch, beside a lane that has none.
pub(crate) async fn lanes_with_refused_rows_do_not_deadlock<H: Home>(lane: impl Fn(DeliveryId) -> TableSink<H>) {
    let lane = |name: &str| lane(DeliveryId { workflow: "rig".into(), sink: "table".into(), lane: name.into() });
    let row = |id: i32, b: i32| format!("{{\"id\":{id},\"b\":{b}}}");
    let with_refused = |mut rows: Vec<String>| {
        rows.insert(50, row(100, -1));
        rows
    };
    let forwards = with_refused((0..100).map(|id| row(id, 1)).collect());
    let backwards = with_refused((0..100).rev().map(|id| row(id, 2)).collect());
    let all_good: Vec<String> = (0..100).rev().map(|id| row(id, 3)).collect();
    let (one, two, three) = tokio::join!(
        ten_epochs(lane("one"), &forwards),
        ten_epochs(lane("two"), &backwards),
        ten_epochs(lane("three"), &all_good)
    );
    for (sink, refused) in [(one, 10), (two, 10), (three, 0)] {
        let metrics = sink.unwrap().metrics();
        assert_eq!((metrics.commits, metrics.commit_failures, metrics.failures), (10, 0, refused));
    }
}

/// Ten epochs of the same inputs.
async fn ten_epochs<H: Home>(mut sink: TableSink<H>, inputs: &[String]) -> Result<TableSink<H>, SinkError> {
    sink.inspect().await?;
    let mut progress = sink.init_transactions(&take(0)).await?;
    for _ in 0..10 {
        let batch = batch(sink.fields(), progress.bookmark.position.offset, &strs(inputs));
        let record = record_after(&progress, &batch);
        sink.begin_transaction(record.epoch)?;
        sink.write(batch.into())?;
        progress = sink.commit_transaction(&record).await?.progress;
    }
    Ok(sink)
}
