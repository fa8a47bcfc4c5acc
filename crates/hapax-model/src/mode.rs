//! How a SQL target treats a key that is already there, and where progress is kept.

/// What happens when a row's key exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConflictMode {
    /// Every event is a new row; no key is looked at.
    Append,
    /// The first event of a key stays.
    Ignore,
    /// The last event of a key in lane order stays.
    Update,
    /// The event with the highest version stays; deletes are tombstones.
    Newer,
}

impl ConflictMode {
    /// The name in the configuration and in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Ignore => "ignore",
            Self::Update => "update",
            Self::Newer => "newer",
        }
    }
}

/// Where a delivery's progress is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ProgressPlace {
    /// In the target, in the same transaction as the data.
    #[default]
    Sink,
    /// In the state store: rows and position are two commits.
    State,
}
