use hapax_model::field::FieldPath;

use super::*;
use crate::table::config::{Deletes, TableConfig};
use crate::table::live::{LiveTable, UniqueIndex};
use crate::table::shape::AbsentSet;

fn column(name: &str, declared: &str, kind: Kind, required: bool) -> PostgresColumn {
    PostgresColumn { name: name.into(), declared: declared.into(), kind, element: kind, required, fills_itself: false }
}

fn mapping(mode: ConflictMode) -> Mapping<PostgresColumn> {
    let live = LiveTable {
        name: "s.\"t\"\"x\"".into(),
        columns: vec![
            column("id", "bigint", Kind::Int8, true),
            column("a", "character varying(9)", Kind::Text { most: Some(9) }, true),
            column("b", "jsonb", Kind::Jsonb, false),
            column("hapax_version", "bytea", Kind::Bytea, false),
            column("hapax_deleted", "boolean", Kind::Bool, false),
        ],
        primary_key: vec!["id".into()],
        unique: vec![UniqueIndex { name: "t_pkey".into(), columns: vec!["id".into()], flaw: None }],
        deferred: Vec::new(),
        order_shows: Vec::new(),
    };
    let mut config = TableConfig::new("s.\"t\"\"x\"");
    config.mode = Some(mode);
    config.key_fields = vec![FieldPath::of_name("id")];
    if matches!(mode, ConflictMode::Update | ConflictMode::Newer) {
        config.deletes = Deletes::Some;
    }
    Mapping::resolve(&config, &live).unwrap()
}

fn named(partitioned: Partitioned) -> Named {
    Named { quoted: "\"s\".\"t\"\"x\"".into(), partitioned }
}

fn shape(mapping: &Mapping<PostgresColumn>, kind: RowKind, absent: &[usize]) -> RowShape {
    let mut set = AbsentSet::default();
    set.reset(mapping.columns.len());
    absent.iter().for_each(|at| set.insert(*at));
    RowShape::new(mapping, kind, set)
}

fn text(mode: ConflictMode, kind: RowKind, absent: &[usize]) -> Statement {
    let mapping = mapping(mode);
    statement(&named(Partitioned::No), &mapping, &shape(&mapping, kind, absent)).unwrap()
}

/// Goal: every mode says what PROTOCOL says, with the arbiter named. Method: the whole text.
#[test]
fn each_mode_has_its_statement() {
    let upsert = |mode| text(mode, RowKind::Upsert, &[]).sql;
    let insert = "INSERT INTO \"s\".\"t\"\"x\" AS present (\"id\", \"a\", \"b\") \
                  SELECT unnest($1::int8[]), unnest($2::text[]), unnest($3::text[])::jsonb";
    assert_eq!(upsert(ConflictMode::Append), insert);
    assert_eq!(upsert(ConflictMode::Ignore), format!("{insert} ON CONFLICT (\"id\") DO NOTHING"));
    assert_eq!(
        upsert(ConflictMode::Update),
        format!(
            "WITH written AS ({insert} ON CONFLICT (\"id\") DO UPDATE SET \"a\" = excluded.\"a\", \"b\" = excluded.\"b\" \
             RETURNING (present.xmax = 0) AS created) SELECT count(*), count(*) FILTER (WHERE created) FROM written"
        )
    );
    let update = text(ConflictMode::Update, RowKind::Upsert, &[]);
    let (unsplit, answer) = update.for_split(SplitBy::Table);
    assert!(unsplit.starts_with(insert) && unsplit.ends_with("excluded.\"b\""), "{unsplit}");
    assert_eq!(
        (answer, update.for_split(SplitBy::Statement)),
        (Answer::Changed, (update.sql.as_str(), Answer::Counts))
    );
    let newer = upsert(ConflictMode::Newer);
    assert!(newer.contains("unnest($3::text[])::jsonb, unnest($4::bytea[]), '0' ON CONFLICT"), "{newer}");
    let guard =
        "WHERE present.\"hapax_version\" IS NULL OR present.\"hapax_version\" < excluded.\"hapax_version\" RETURNING";
    assert!(newer.contains(guard), "{newer}");
}

/// Goal: absent columns take no part, and a row of nothing is still a row. Method: some, all.
#[test]
fn absent_columns_are_left_out() {
    let one = text(ConflictMode::Ignore, RowKind::Upsert, &[1, 2]).sql;
    assert!(one.contains("(\"id\") SELECT unnest($1::int8[]) ON CONFLICT"), "{one}");
    let none = text(ConflictMode::Append, RowKind::Upsert, &[0, 1, 2]).sql;
    assert_eq!(none, "INSERT INTO \"s\".\"t\"\"x\" SELECT FROM generate_series(1, $1::int8)");
    let key = text(ConflictMode::Update, RowKind::Upsert, &[1, 2]).sql;
    assert!(key.contains("DO UPDATE SET \"id\" = excluded.\"id\" RETURNING"), "{key}");
}

/// Goal: deletes go by the key; a tombstone fills what must have a value and clears what need not. Method: the whole text.
#[test]
fn deletes_and_tombstones_have_their_statements() {
    assert_eq!(
        text(ConflictMode::Update, RowKind::Delete, &[]).sql,
        "DELETE FROM \"s\".\"t\"\"x\" AS present USING unnest($1::int8[]) AS given (c0) WHERE present.\"id\" = given.c0"
    );
    let tombstone = text(ConflictMode::Newer, RowKind::Tombstone, &[]).sql;
    assert!(
        tombstone.contains("(\"id\", \"a\", \"b\", \"hapax_version\", \"hapax_deleted\") SELECT unnest($1::int8[]), '', NULL, unnest($2::bytea[]), '1'"),
        "{tombstone}"
    );
    assert!(tombstone.contains("SET \"b\" = excluded.\"b\", "), "{tombstone}");
    assert!(tombstone.ends_with("< excluded.\"hapax_version\""), "{tombstone}");
}

/// Goal: COPY carries only what cannot conflict and has a binary form. Method: each mode, a column that has none.
#[test]
fn only_append_is_copied() {
    let copied = |mode| {
        let mapping = mapping(mode);
        copy(&named(Partitioned::No), &mapping, &shape(&mapping, RowKind::Upsert, &[])).unwrap()
    };
    assert_eq!(
        copied(ConflictMode::Append).as_deref(),
        Some("COPY \"s\".\"t\"\"x\" (\"id\", \"a\", \"b\") FROM STDIN (FORMAT binary)")
    );
    for mode in [ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
        assert_eq!(copied(mode), None);
    }
    let mut other = mapping(ConflictMode::Append);
    other.columns[2].live.kind = Kind::Other;
    assert_eq!(copy(&named(Partitioned::No), &other, &shape(&other, RowKind::Upsert, &[])).unwrap(), None);
}

/// Goal: a partitioned table, whose rows have no xmax to return, counts the keys that were there. Method: the text.
#[test]
fn a_partitioned_table_counts_known_keys() {
    let mapping = mapping(ConflictMode::Update);
    let found = statement(&named(Partitioned::Yes), &mapping, &shape(&mapping, RowKind::Upsert, &[])).unwrap();
    assert!(!found.sql.contains("xmax") && found.sql.contains("WITH known AS (SELECT count(*)"), "{}", found.sql);
    assert_eq!(found.answer, Answer::Counts);
}
