//! The one place where a name becomes part of a statement for MySQL and MariaDB. Values never do: they are bound.

use std::fmt;
use std::str::FromStr;

use crate::QuoteError;
use crate::quoted_parts::{in_quotes, readable, split};

/// No name in MySQL is longer, in characters.
const LONGEST_NAME: usize = 64;

/// The name in backticks, with its own backticks doubled: safe inside any statement, whatever `sql_mode` says.
///
/// # Errors
/// If the name is empty, contains a NUL character, or is longer than MySQL's names are.
pub fn quote_identifier(name: &str) -> Result<String, QuoteError> {
    if name.is_empty() {
        return Err(QuoteError::Empty);
    }
    if name.contains('\0') {
        return Err(QuoteError::Nul(name.to_owned()));
    }
    if name.chars().count() > LONGEST_NAME {
        return Err(QuoteError::TooLong(name.to_owned()));
    }
    Ok(in_quotes(name, '`'))
}

/// `table` or `database.table` as a person writes it, ready for a statement: `` `shop`.`orders` ``.
///
/// # Errors
/// If the text cannot be read as a table's name.
pub fn quote_table(text: &str) -> Result<String, QuoteError> {
    Ok(text.parse::<TableName>()?.quoted())
}

/// A table's name in parts, as `information_schema` has them. `Display` is for people, [`TableName::quoted`] for
/// statements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    database: Option<String>,
    table: String,
}

impl TableName {
    /// A name from its parts.
    ///
    /// # Errors
    /// If a part is no name.
    pub fn new(database: Option<&str>, table: &str) -> Result<Self, QuoteError> {
        database.map(quote_identifier).transpose()?;
        quote_identifier(table)?;
        Ok(Self { database: database.map(str::to_owned), table: table.to_owned() })
    }

    /// The database, if one is named; else it is the session's.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// The table's own name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// For a statement: every part in backticks.
    #[must_use]
    pub fn quoted(&self) -> String {
        let quote = |part: &str| quote_identifier(part).expect("checked when the name was made");
        match &self.database {
            Some(database) => format!("{}.{}", quote(database), quote(&self.table)),
            None => quote(&self.table),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(database) = &self.database {
            write!(formatter, "{}.", readable(database, '`'))?;
        }
        formatter.write_str(&readable(&self.table, '`'))
    }
}

impl FromStr for TableName {
    type Err = QuoteError;

    fn from_str(text: &str) -> Result<Self, QuoteError> {
        let parts = split(text, '`')?;
        match parts.as_slice() {
            [table] => Self::new(None, table),
            [database, table] => Self::new(Some(database), table),
            _ => Err(QuoteError::TooManyParts(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every form that people write comes out as the parts that were meant. Method: a list of forms.
    #[test]
    fn a_table_name_is_read_in_parts() {
        for (text, quoted, shown) in [
            ("orders", "`orders`", "orders"),
            ("shop.orders", "`shop`.`orders`", "shop.orders"),
            ("`We ird`.`t`", "`We ird`.`t`", "`We ird`.t"),
            ("`a.b`", "`a.b`", "`a.b`"),
            ("`a``b`.c", "`a``b`.`c`", "`a``b`.c"),
            ("order by", "`order by`", "`order by`"),
            ("a\"b", "`a\"b`", "a\"b"),
            ("x`; DROP TABLE y; --", "", ""),
        ] {
            let name: Result<TableName, QuoteError> = text.parse();
            if quoted.is_empty() {
                assert_eq!(name, Err(QuoteError::Unreadable(text.to_owned())));
                continue;
            }
            let name = name.unwrap();
            assert_eq!(name.quoted(), quoted, "{text}");
            assert_eq!(name.to_string(), shown, "{text}");
            assert_eq!(shown.parse::<TableName>(), Ok(name), "{text}");
        }
    }

    /// Goal: what is no name is refused with the reason. Method: one of each.
    #[test]
    fn what_is_no_table_name_is_refused() {
        for text in ["", ".", "a.", ".a", "``"] {
            assert_eq!(quote_table(text), Err(QuoteError::Empty), "{text}");
        }
        assert_eq!(quote_table("a.b.c"), Err(QuoteError::TooManyParts("a.b.c".to_owned())));
        assert_eq!(quote_identifier("a\0"), Err(QuoteError::Nul("a\0".to_owned())));
        let long = "ä".repeat(65);
        assert_eq!(quote_identifier(&long), Err(QuoteError::TooLong(long.clone())));
        assert!(quote_identifier(&long[2..]).is_ok());
    }
}
