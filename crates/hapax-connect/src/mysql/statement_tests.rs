use hapax_model::field::FieldPath;

use super::super::column::{Kind, Longest, Sign};
use super::*;
use crate::table::config::{Deletes, TableConfig};
use crate::table::live::{LiveTable, UniqueIndex};
use crate::table::shape::AbsentSet;

fn column(name: &str, kind: Kind, required: bool) -> MysqlColumn {
    MysqlColumn {
        name: name.into(),
        declared: "declared".into(),
        kind,
        members: Vec::new(),
        collation: None,
        required,
        fills_itself: false,
    }
}

fn mapping(mode: ConflictMode, keys: &[&str]) -> Mapping<MysqlColumn> {
    let live = LiveTable {
        name: "s.`t``x`".into(),
        columns: vec![
            column("id", Kind::Int { bits: 64, sign: Sign::Signed }, true),
            column("order by", Kind::Decimal { precision: 9, scale: 2, sign: Sign::Signed }, true),
            column("b", Kind::Text { most: Longest::Characters(9) }, false),
            column("hapax_version", Kind::Bytes { most: 18 }, false),
            column("hapax_deleted", Kind::Int { bits: 8, sign: Sign::Signed }, false),
        ],
        primary_key: vec!["id".into()],
        unique: vec![UniqueIndex {
            name: "PRIMARY".into(),
            columns: keys.iter().map(|key| (*key).to_owned()).collect(),
            flaw: None,
        }],
        deferred: Vec::new(),
        order_shows: Vec::new(),
    };
    let mut config = TableConfig::new("s.`t``x`");
    config.mode = Some(mode);
    config.key_fields = keys.iter().map(|key| FieldPath::of_name(key)).collect();
    if matches!(mode, ConflictMode::Update | ConflictMode::Newer) {
        config.deletes = Deletes::Some;
    }
    Mapping::resolve(&config, &live).unwrap()
}

fn text(new_row: NewRow, mapping: &Mapping<MysqlColumn>, kind: RowKind, absent: &[usize]) -> Statement {
    let mut set = AbsentSet::default();
    set.reset(mapping.columns.len());
    absent.iter().for_each(|at| set.insert(*at));
    let named = Named { quoted: "`s`.`t``x`".into(), new_row };
    statement(&named, mapping, &RowShape::new(mapping, kind, set)).unwrap()
}

fn upsert(mode: ConflictMode, new_row: NewRow, rows: usize) -> String {
    text(new_row, &mapping(mode, &["id"]), RowKind::Upsert, &[]).sql(rows)
}

const INSERT: &str = "INSERT INTO `s`.`t``x` (`id`, `order by`, `b`) VALUES (?, ?, ?), (?, ?, ?)";

/// Goal: every mode says what PROTOCOL says, in the words of MariaDB. Method: the whole text.
#[test]
fn each_mode_has_its_statement() {
    let upsert = |mode| upsert(mode, NewRow::Values, 2);
    assert_eq!(upsert(ConflictMode::Append), INSERT);
    assert_eq!(upsert(ConflictMode::Ignore), format!("{INSERT} ON DUPLICATE KEY UPDATE `id` = `s`.`t``x`.`id`"));
    assert_eq!(
        upsert(ConflictMode::Update),
        format!("{INSERT} ON DUPLICATE KEY UPDATE `order by` = VALUES(`order by`), `b` = VALUES(`b`)")
    );
    for mode in [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
        let sql = upsert(mode);
        assert!(!sql.contains("IGNORE") && !sql.contains("REPLACE"), "{sql}");
    }
}

/// Goal: mode `newer` assigns what the guard reads last of all, because MySQL assigns from left to right. Method: the
/// whole text.
#[test]
fn the_guard_is_assigned_last() {
    let guard = "`s`.`t``x`.`hapax_version` IS NULL OR `s`.`t``x`.`hapax_version` < VALUES(`hapax_version`)";
    assert_eq!(
        upsert(ConflictMode::Newer, NewRow::Values, 2),
        format!(
            "INSERT INTO `s`.`t``x` (`id`, `order by`, `b`, `hapax_version`, `hapax_deleted`) VALUES (?, ?, ?, ?, 0), \
             (?, ?, ?, ?, 0) ON DUPLICATE KEY UPDATE \
             `order by` = IF({guard}, VALUES(`order by`), `s`.`t``x`.`order by`), \
             `b` = IF({guard}, VALUES(`b`), `s`.`t``x`.`b`), \
             `hapax_deleted` = IF({guard}, VALUES(`hapax_deleted`), `s`.`t``x`.`hapax_deleted`), \
             `hapax_version` = IF({guard}, VALUES(`hapax_version`), `s`.`t``x`.`hapax_version`)"
        )
    );
    let mut by_text = mapping(ConflictMode::Newer, &["id"]);
    by_text.version = Some(2);
    let sql = text(NewRow::Values, &by_text, RowKind::Upsert, &[]).sql(1);
    assert!(sql.contains("CAST(`s`.`t``x`.`b` AS BINARY) < CAST(VALUES(`b`) AS BINARY)"), "{sql}");
}

/// Goal: MySQL from 8.0.20 on gets a row alias, in which `VALUES(c)` is on its way out. Method: the whole text.
#[test]
fn newer_servers_get_a_row_alias() {
    assert_eq!(
        upsert(ConflictMode::Update, NewRow::Alias, 2),
        format!(
            "{INSERT} AS `hapax_new` ON DUPLICATE KEY UPDATE `order by` = `hapax_new`.`order by`, `b` = `hapax_new`.`b`"
        )
    );
    assert_eq!(
        upsert(ConflictMode::Ignore, NewRow::Alias, 2),
        format!("{INSERT} AS `hapax_new` ON DUPLICATE KEY UPDATE `id` = `s`.`t``x`.`id`")
    );
    let newer = upsert(ConflictMode::Newer, NewRow::Alias, 2);
    let last = "`hapax_version` = IF(`s`.`t``x`.`hapax_version` IS NULL OR `s`.`t``x`.`hapax_version` < \
                `hapax_new`.`hapax_version`, `hapax_new`.`hapax_version`, `s`.`t``x`.`hapax_version`)";
    assert!(newer.ends_with(last) && !newer.contains("VALUES("), "{newer}");
    assert_eq!(upsert(ConflictMode::Append, NewRow::Alias, 2), INSERT);
}

/// Goal: one row alone says by its answer whether its key was there. Method: the text for one row and for two.
#[test]
fn a_single_row_tells_whether_its_key_was_there() {
    let mark =
        "ON DUPLICATE KEY UPDATE `id` = IF(LAST_INSERT_ID(18446744073709551615), `s`.`t``x`.`id`, `s`.`t``x`.`id`), ";
    for mode in [ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
        assert!(upsert(mode, NewRow::Values, 1).contains(mark), "{mode:?}");
        assert!(!upsert(mode, NewRow::Values, 2).contains("LAST_INSERT_ID"), "{mode:?}");
    }
}

/// Goal: absent columns take no part, and a row of nothing is still a row. Method: some, all.
#[test]
fn absent_columns_are_left_out() {
    let sql = |mode, absent: &[usize]| text(NewRow::Values, &mapping(mode, &["id"]), RowKind::Upsert, absent).sql(2);
    assert!(sql(ConflictMode::Ignore, &[1, 2]).starts_with("INSERT INTO `s`.`t``x` (`id`) VALUES (?), (?) ON"));
    assert_eq!(sql(ConflictMode::Append, &[0, 1, 2]), "INSERT INTO `s`.`t``x` () VALUES (), ()");
    assert!(sql(ConflictMode::Update, &[1, 2]).ends_with("UPDATE `id` = `s`.`t``x`.`id`"));
}

/// Goal: deletes go by the key, decimals never compared as doubles; a tombstone fills what must have a value
/// and clears what need not. Method: the whole text.
#[test]
fn deletes_and_tombstones_have_their_statements() {
    let delete = |keys: &[&str]| text(NewRow::Values, &mapping(ConflictMode::Update, keys), RowKind::Delete, &[]);
    assert_eq!(delete(&["id"]).sql(3), "DELETE FROM `s`.`t``x` WHERE `id` IN (?, ?, ?)");
    assert_eq!(
        delete(&["id", "order by"]).sql(2),
        "DELETE FROM `s`.`t``x` WHERE (`id` = ? AND `order by` = CAST(? AS DECIMAL(9,2))) OR (`id` = ? AND `order by` = \
         CAST(? AS DECIMAL(9,2)))"
    );
    let tombstone = text(NewRow::Values, &mapping(ConflictMode::Newer, &["id"]), RowKind::Tombstone, &[]).sql(2);
    let head = "INSERT INTO `s`.`t``x` (`id`, `order by`, `b`, `hapax_version`, `hapax_deleted`) VALUES (?, 0, NULL, ?, 1), (?, 0, NULL, ?, 1)";
    assert!(tombstone.starts_with(head), "{tombstone}");
    assert!(tombstone.contains("`b` = IF("), "{tombstone}");
    assert!(!tombstone.contains("`order by` = ") && tombstone.contains("`hapax_deleted` = IF("), "{tombstone}");
}
