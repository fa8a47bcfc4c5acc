//! What is wrong with a name that cannot be quoted. One type for every database.

/// A name that no object of a database can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// The database would read the statement only up to here.
    #[error("the name {0:?} contains a NUL character, which no database can hold in a name; write another name")]
    Nul(String),
    /// `""` is never the name that was meant.
    #[error("the name is empty; write the name of a table or column")]
    Empty,
    /// A quoted part that does not end, or something behind it.
    #[error(
        "the name {0:?} cannot be read; write table, schema.table, or quote each part as the database does (PostgreSQL and SQLite \"Any Name\", MySQL `Any Name`), with every such quote inside doubled"
    )]
    Unreadable(String),
    /// `database.schema.table` and longer.
    #[error(
        "the name {0:?} has more than two parts; write schema.table, or put a name that contains a dot in the database's quotes"
    )]
    TooManyParts(String),
    /// PostgreSQL would cut it and take another object for it; MySQL has no such names.
    #[error(
        "the name {0:?} is longer than names are in the database (63 bytes in PostgreSQL, 64 characters in MySQL); write the name as the database has it"
    )]
    TooLong(String),
}
