//! A live table as far as all dialects describe it alike. How it is read is each dialect's own affair.

use super::column::LiveColumn;

/// A table as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTable<C> {
    /// Its name as the database spells it, with its schema where there are schemas.
    pub name: String,
    /// Its columns in their order; those that nobody can write are left out.
    pub columns: Vec<C>,
    /// The columns of its primary key; empty if it has none.
    pub primary_key: Vec<String>,
    /// Its unique indexes, the primary key among them.
    pub unique: Vec<UniqueIndex>,
    /// Foreign keys that are only checked at COMMIT: of this table, or of others that refer to it. Dialects that can
    /// have them checked at once list none.
    pub deferred: Vec<DeferredKey>,
    /// What makes the order of rows show, besides other unique indexes than the key's.
    pub order_shows: Vec<OrderShows>,
}

impl<C: LiveColumn> LiveTable<C> {
    /// A column by its name, compared as the database does.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&C> {
        self.columns.iter().find(|column| column.is_named(name))
    }
}

/// A unique index that can be a conflict's arbiter, or would be if it were not for its flaw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueIndex {
    /// Its name; empty where the key is the row's number itself.
    pub name: String,
    /// Its columns; an expression is an empty name.
    pub columns: Vec<String>,
    /// Why it cannot be used, if it cannot.
    pub flaw: Option<String>,
}

/// A foreign key that is only checked at COMMIT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeferredKey {
    /// Of the table itself.
    Own,
    /// Of this other table, which refers to it.
    Of(String),
}

/// A rule of a table by which a row meets others than that of its key: what becomes of it depends on what was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderShows {
    /// What it is, for people: `the trigger "x"`.
    pub what: String,
    /// When the database looks at it.
    pub looked_at: LookedAt,
    /// Whether it can leave out a row without a word.
    pub silent_drop: SilentDrop,
}

/// Whether a row can be left out without a word, as by a trigger that returns NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilentDrop {
    /// It is written, or refused with an error.
    Impossible,
    /// Only by looking can one tell it from a row that had nothing to do.
    Possible,
}

/// When a database looks at a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookedAt {
    /// Row by row: a statement of many rows equals its rows one by one.
    EachRow,
    /// When all rows of a statement are there.
    StatementEnd,
}
