use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;

use crate::sqlite::schema::{Found, SqliteColumn, read};
use crate::table::column::LiveColumn as _;
use crate::table::config::{Deletes, TableConfig};
use crate::table::ddl::{add_column, suggested_ddl, unique_index};
use crate::table::mapping::{Mapping, VERSION_COLUMN};

fn path(text: &str) -> FieldPath {
    text.parse().unwrap()
}

/// Goal: what we suggest is what we then accept. Method: make the table, for each mode, under a hostile name.
#[test]
fn a_suggested_table_is_fit() {
    for mode in [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
        for key_column in [None, Some("hapax_key".to_owned())] {
            let mut config = TableConfig::new("a\"; DROP TABLE x; --");
            config.mode = Some(mode);
            config.key_fields = vec![path(".order.id"), path("line")];
            config.key_column = key_column;
            config.columns.map = vec![("order_id".to_owned(), path(".order.id")), ("total".to_owned(), path("sum"))];
            if mode == ConflictMode::Newer {
                config.deletes = Deletes::Some;
            }
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            connection.execute_batch(&suggested_ddl::<SqliteColumn>(&config)).unwrap();
            let Found::Table(live) = read(&connection, &config.name).unwrap() else { panic!("no table") };
            let mapping = Mapping::resolve(&config, &live.live);
            assert_eq!(mapping.map(|m| m.mode), Ok(mode), "{}", suggested_ddl::<SqliteColumn>(&config));
        }
    }
}

/// Goal: what a message tells people to type works. Method: type it.
#[test]
fn suggested_cures_are_statements() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE \"t \"\"x\" (a)").unwrap();
    connection.execute_batch(&unique_index::<SqliteColumn>("t \"x", &["a"])).unwrap();
    connection.execute_batch(&add_column::<SqliteColumn>("t \"x", VERSION_COLUMN, SqliteColumn::HASH_TYPE)).unwrap();
}
