//! The clauses of keys and values, on the cases that all databases share.

use hapax_engine::sink::Target as _;
use hapax_model::mode::ConflictMode;

use crate::table::cases::{self, ABSENT, ABSENT_KEPT, Exactness, ORDERS, ORDERS_KEPT, same_number, written_numbers};
use crate::table::rig::{Database, Rig};
use crate::table::sample::csv_batch;

/// Goal: a key of several fields of different types is one row exactly if all of them are one, in every mode. Method:
/// orders of which some share a key in other spellings, in one epoch and in one epoch each; `tenant` and `part` are of
/// these types.
pub(crate) async fn a_key_of_several_fields_names_one_row_in_every_mode<D: Database>(tenant: &str, part: &str) {
    let ddl = format!(
        "CREATE TABLE t (tenant {tenant} NOT NULL, day date NOT NULL, no int NOT NULL, part {part} NOT NULL, amount int, \
         PRIMARY KEY (tenant, day, no, part))"
    );
    for (mode, kept) in ORDERS_KEPT {
        for per_epoch in [ORDERS.len(), 1] {
            let mut rig: Rig<D> = Rig::new(&ddl, |config| cases::order_table(D::table(config), mode)).await;
            let mut dead = Vec::new();
            for inputs in ORDERS.chunks(per_epoch) {
                let first = rig.progress.as_ref().unwrap().bookmark.position.offset;
                let batch = cases::orders(rig.sink.fields(), first, inputs);
                dead.push(rig.try_deliver(batch).await.unwrap().progress.totals.dead);
            }
            assert_eq!(dead.last(), Some(&1), "the order without a line");
            let amounts = rig.texts("SELECT amount FROM t ORDER BY amount").await;
            assert_eq!(amounts.join(" "), kept, "{mode:?}, {per_epoch} per epoch");
        }
    }
}

/// Goal: the hash of a key of several fields names one row. Method: the same orders with a keyColumn of both forms.
pub(crate) async fn the_hash_of_several_fields_names_one_row<D: Database>(forms: [&str; 2]) {
    for declared in forms {
        let ddl = format!("CREATE TABLE t (k {declared} NOT NULL PRIMARY KEY, amount int)");
        let mut rig: Rig<D> = Rig::new(&ddl, |config| {
            let table = D::table(config);
            table.mode = Some(ConflictMode::Update);
            table.key_fields = cases::order_key();
            table.key_column = Some("k".to_owned());
        })
        .await;
        let batch = cases::orders(rig.sink.fields(), 0, &ORDERS);
        rig.try_deliver(batch).await.unwrap();
        let amounts = rig.texts("SELECT amount FROM t ORDER BY amount").await;
        assert_eq!(amounts.join(" "), "2 2 3 4", "{declared}");
    }
}

/// Goal: an absent field leaves a column to its default, null is NULL, and NULL where none may be is a dead letter that
/// names the column. Method: a column of each kind, those that the database fills in by itself among them, and events of
/// each kind.
pub(crate) async fn absent_is_the_default_and_null_is_null<D: Database>(filled_by_itself: &[&str]) {
    let ddl = format!(
        "CREATE TABLE t (id int NOT NULL PRIMARY KEY, plain varchar(9), filled varchar(9) DEFAULT 'd', \
         needed varchar(9) NOT NULL DEFAULT 'd', twice int GENERATED ALWAYS AS (id * 2) STORED{})",
        filled_by_itself.iter().map(|column| format!(", {column}")).collect::<String>()
    );
    let mut rig: Rig<D> = Rig::keyed(&ddl, ConflictMode::Update).await;
    let done = rig.deliver(&ABSENT).await;
    assert_eq!(done.dead_inputs, [3]);
    let rows = "SELECT concat_ws(' ', id, coalesce(plain, '-'), coalesce(filled, '-'), needed) FROM t ORDER BY id";
    assert_eq!(rig.texts(rows).await, ABSENT_KEPT);
    assert_eq!(rig.texts("SELECT sum(twice) FROM t").await, ["12"]);
    for column in filled_by_itself {
        let (name, _) = column.split_once(' ').unwrap();
        assert_eq!(rig.texts(&format!("SELECT count({name}) FROM t")).await, ["3"], "{column}");
    }
    let letter = rig.ours("concat_ws(' ', code, message)", "dead_letters").await;
    assert_eq!(letter, ["HX2021 column \"needed\" must have a value, and the event says null"]);
}

/// Goal: a number of CSV lands as the very number that it is, however it is written, and the same number is one row of a key. Method:
/// many random spellings with a point at either end, zeros in front, signs and blanks, into an exact column of this type (texts
/// that no number is, too); each again as a key beside its plain spelling.
pub(crate) async fn numbers_of_csv_land_as_what_they_are<D: Database>(declared: &str) {
    let ddl = format!("CREATE TABLE t (id bigint NOT NULL PRIMARY KEY, n {declared})");
    let mut rig: Rig<D> = Rig::keyed(&ddl, ConflictMode::Update).await;
    let written = written_numbers(300);
    let lines: Vec<String> = written.iter().enumerate().map(|(id, text)| format!("{id},{text}")).collect();
    let batch = csv_batch(rig.sink.fields(), 0, &["id", "n"], &lines);
    let done = rig.try_deliver(batch).await.unwrap();
    assert_eq!(done.dead_inputs, [0; 0], "each is a number");
    let kept = rig.texts("SELECT concat(n, '') FROM t ORDER BY id").await;
    assert_eq!(kept.len(), written.len());
    for (text, read) in written.iter().zip(kept) {
        let plain = text.trim().trim_start_matches('+');
        assert!(same_number(plain, &read, Exactness::Decimal), "{text:?} is read as {read}");
    }
    let first = rig.progress.as_ref().unwrap().bookmark.position.offset;
    let nonsense =
        [".", "-", "+", "+-1", "--1", ".e1", "1e", "1 2", "1..2", "0x1f", "1,5", "- 1", "NULL", "\\N", "n/a"];
    let lines: Vec<String> =
        nonsense.iter().enumerate().map(|(id, text)| format!("{},\"{text}\"", 1000 + id)).collect();
    let done = rig.try_deliver(csv_batch(rig.sink.fields(), first, &["id", "n"], &lines)).await.unwrap();
    assert_eq!(done.dead_inputs.len(), nonsense.len(), "none of them is a number");

    let ddl = format!("CREATE TABLE t (n {declared} NOT NULL PRIMARY KEY, a int)");
    let mut rig: Rig<D> = Rig::new(&ddl, |config| {
        let table = D::table(config);
        table.mode = Some(ConflictMode::Update);
        table.key_fields = vec![hapax_model::field::FieldPath::of_name("n")];
    })
    .await;
    let lines: Vec<String> =
        [".5,1", "0.5,2", "-.5,3", "-0.50,4", "5.,5", "05,6", " 5 ,7", "-007,8", "-7,9"].map(str::to_owned).to_vec();
    rig.try_deliver(csv_batch(rig.sink.fields(), 0, &["n", "a"], &lines)).await.unwrap();
    assert_eq!(rig.texts("SELECT a FROM t ORDER BY a").await, ["2", "4", "7", "9"], "the last of each number");
}

/// Goal: a text that is too long for its column is refused, and never cut down to the number that it spells. Method: zeros and
/// blanks around a digit, into columns that have room for the digit alone.
pub(crate) async fn texts_that_spell_numbers_stay_texts<D: Database>(declared: &str) {
    let ddl = format!("CREATE TABLE t (id bigint PRIMARY KEY, a {declared})");
    let mut rig: Rig<D> = Rig::keyed(&ddl, ConflictMode::Update).await;
    let lines = ["1,007", "2, 7 ", "3,+7", "4,7"].map(str::to_owned);
    rig.try_deliver(csv_batch(rig.sink.fields(), 0, &["id", "a"], &lines)).await.unwrap();
    assert_eq!(rig.texts("SELECT concat_ws(' ', id, a) FROM t ORDER BY id").await, ["4 7"]);
}
