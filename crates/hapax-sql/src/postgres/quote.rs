//! The one place where a name becomes part of a statement for PostgreSQL. Values never do: they are bound.

use std::fmt;
use std::str::FromStr;

use crate::QuoteError;
use crate::quoted_parts::{in_quotes, readable, split};

/// Longer names are silently cut by the server (`NAMEDATALEN` - 1).
const LONGEST_NAME: usize = 63;

/// The name in double quotes, with its own double quotes doubled: safe inside any statement.
///
/// # Errors
/// If the name is empty, contains a NUL character, or is longer than PostgreSQL keeps.
pub fn quote_identifier(name: &str) -> Result<String, QuoteError> {
    if name.is_empty() {
        return Err(QuoteError::Empty);
    }
    if name.contains('\0') {
        return Err(QuoteError::Nul(name.to_owned()));
    }
    if name.len() > LONGEST_NAME {
        return Err(QuoteError::TooLong(name.to_owned()));
    }
    Ok(in_quotes(name, '"'))
}

/// `table` or `schema.table` as a person writes it, ready for a statement: `"public"."orders"`.
///
/// # Errors
/// If the text cannot be read as a table's name.
pub fn quote_table(text: &str) -> Result<String, QuoteError> {
    Ok(text.parse::<TableName>()?.quoted())
}

/// A table's name in parts, as the catalogue has them. `Display` is for people, [`TableName::quoted`] for statements.
///
/// A part without double quotes is taken as it is written, upper case too: this is a name, not SQL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    schema: Option<String>,
    table: String,
}

impl TableName {
    /// A name from its parts.
    ///
    /// # Errors
    /// If a part is no name.
    pub fn new(schema: Option<&str>, table: &str) -> Result<Self, QuoteError> {
        schema.map(quote_identifier).transpose()?;
        quote_identifier(table)?;
        Ok(Self { schema: schema.map(str::to_owned), table: table.to_owned() })
    }

    /// The schema, if one is named; else the search path decides.
    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The table's own name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// For a statement: every part in double quotes.
    #[must_use]
    pub fn quoted(&self) -> String {
        let quote = |part: &str| quote_identifier(part).expect("checked when the name was made");
        match &self.schema {
            Some(schema) => format!("{}.{}", quote(schema), quote(&self.table)),
            None => quote(&self.table),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(formatter, "{}.", readable(schema, '"'))?;
        }
        formatter.write_str(&readable(&self.table, '"'))
    }
}

impl FromStr for TableName {
    type Err = QuoteError;

    fn from_str(text: &str) -> Result<Self, QuoteError> {
        let parts = split(text, '"')?;
        match parts.as_slice() {
            [table] => Self::new(None, table),
            [schema, table] => Self::new(Some(schema), table),
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
            ("orders", "\"orders\"", "orders"),
            ("shop.orders", "\"shop\".\"orders\"", "shop.orders"),
            ("Shop.Orders", "\"Shop\".\"Orders\"", "Shop.Orders"),
            ("\"We ird\".\"t\"", "\"We ird\".\"t\"", "\"We ird\".t"),
            ("\"a.b\"", "\"a.b\"", "\"a.b\""),
            ("\"a\"\"b\".c", "\"a\"\"b\".\"c\"", "\"a\"\"b\".c"),
            ("x; DROP TABLE y; --", "\"x; DROP TABLE y; --\"", "\"x; DROP TABLE y; --\""),
        ] {
            let name: TableName = text.parse().unwrap();
            assert_eq!(name.quoted(), quoted, "{text}");
            assert_eq!(name.to_string(), shown, "{text}");
            assert_eq!(shown.parse::<TableName>(), Ok(name), "{text}");
        }
    }

    /// Goal: what is no name is refused with the reason. Method: one of each.
    #[test]
    fn what_is_no_table_name_is_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "\"\""] {
            assert_eq!(quote_table(text), Err(QuoteError::Empty), "{text}");
        }
        for text in ["\"a", "\"a\"b", "a\"b", "\"a\"\""] {
            assert_eq!(quote_table(text), Err(QuoteError::Unreadable(text.to_owned())), "{text}");
        }
        assert_eq!(quote_table("a.b.c"), Err(QuoteError::TooManyParts("a.b.c".to_owned())));
        assert_eq!(quote_identifier("a\0"), Err(QuoteError::Nul("a\0".to_owned())));
        let long = "ä".repeat(32);
        assert_eq!(quote_identifier(&long), Err(QuoteError::TooLong(long.clone())));
        assert!(quote_identifier(&long[2..]).is_ok());
    }
}
