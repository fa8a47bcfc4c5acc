//! The one place where a name becomes part of a statement. Values never do: they are bound.

pub use crate::QuoteError;

/// The name in double quotes, with its own double quotes doubled: safe inside any statement.
///
/// # Errors
/// If the name is empty or contains a NUL character.
pub fn quote_identifier(name: &str) -> Result<String, QuoteError> {
    if name.is_empty() {
        return Err(QuoteError::Empty);
    }
    if name.contains('\0') {
        return Err(QuoteError::Nul(name.to_owned()));
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a hostile name stays a name. Method: make, fill and read a table under it, beside the one it wants to drop.
    #[test]
    fn a_hostile_name_is_only_a_name() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE x (a)").unwrap();
        for name in ["a\"; DROP TABLE x; --", "a'b", "\"", "]", "`", "select", "ä b", "a\nb", "1"] {
            let quoted = quote_identifier(name).unwrap();
            connection.execute_batch(&format!("CREATE TABLE {quoted} ({quoted} INTEGER)")).unwrap();
            connection.execute(&format!("INSERT INTO {quoted} ({quoted}) VALUES (7)"), []).unwrap();
            let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
            assert_eq!(connection.query_row(sql, [name], |row| row.get::<_, i64>(0)), Ok(1), "{name}");
            assert_eq!(connection.query_row(sql, ["x"], |row| row.get::<_, i64>(0)), Ok(1), "{name}");
        }
        assert_eq!(quote_identifier("a\0b"), Err(QuoteError::Nul("a\0b".to_owned())));
        assert_eq!(quote_identifier(""), Err(QuoteError::Empty));
    }
}
