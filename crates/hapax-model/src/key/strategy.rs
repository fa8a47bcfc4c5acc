//! How keys are made: the strategies, and what each promises.

use std::fmt::Write as _;

use crate::field::FieldPath;

/// The version of the canonical encoding; every key's text begins with it.
pub const ENCODING: &str = "h1";

/// Whether the epoch is part of a key of content fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IncludeEpoch {
    /// One key for one set of values: the newest wins.
    No,
    /// One set of values may exist once per epoch. With `exactly-once` only: elsewhere a replay lands in another epoch.
    Yes,
}

/// Where a derived event names the events it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Contributors {
    /// One field for each contributor.
    Fields(Vec<FieldPath>),
    /// One field, an array of all of them.
    Array(FieldPath),
}

/// How keys are made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DedupStrategy {
    /// The values of fields that name a business object. The version of an event is its position, or its epoch.
    ContentFields {
        /// The fields, in order.
        fields: Vec<FieldPath>,
        /// Whether the epoch is the version.
        include_epoch: IncludeEpoch,
    },
    /// A natural key, once per epoch.
    Composite {
        /// The fields of the natural key, in order.
        fields: Vec<FieldPath>,
    },
    /// The epoch and the event's number in it, for events that have no key. Counted per lane.
    EpochSequence,
    /// The source's position and the index of the event among its input's, for events that pass through.
    SourceOffset,
    /// A change of a database row.
    ChangeKey {
        /// The database's name.
        database: FieldPath,
        /// The schema's name; none for databases that have no schemas.
        schema: Option<FieldPath>,
        /// The table's name.
        table: FieldPath,
        /// The values of the primary key, in order.
        primary_key: Vec<FieldPath>,
        /// What counts the changes of the row.
        version: FieldPath,
    },
    /// An event made from others: their keys, sorted, and the window. Whoever combines the same inputs gets the same key.
    Derived {
        /// The contributing keys.
        contributors: Contributors,
        /// The window's id.
        window: FieldPath,
    },
    /// An aggregate of a window: the window's id names it, the sequence tells a correction from the first emit.
    WindowSequence {
        /// The window's id.
        window: FieldPath,
        /// Counts what the window emitted.
        sequence: FieldPath,
    },
    /// A function that the embedding program registered in [`CustomKeys`](super::CustomKeys).
    Custom {
        /// Its name.
        name: String,
    },
}

/// What the tuples of a strategy are called, so that no two sorts of key can collide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    pub(super) entity: &'static str,
    pub(super) event: &'static str,
}

impl DedupStrategy {
    /// Content fields without the epoch.
    #[must_use]
    pub const fn content_fields(fields: Vec<FieldPath>) -> Self {
        Self::ContentFields { fields, include_epoch: IncludeEpoch::No }
    }

    /// Content fields, once per epoch.
    #[must_use]
    pub const fn content_fields_with_epoch(fields: Vec<FieldPath>) -> Self {
        Self::ContentFields { fields, include_epoch: IncludeEpoch::Yes }
    }

    /// A natural key, once per epoch.
    #[must_use]
    pub const fn composite(fields: Vec<FieldPath>) -> Self {
        Self::Composite { fields }
    }

    /// The strategy's name, as logs and `check` print it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ContentFields { include_epoch: IncludeEpoch::No, .. } => "content-fields",
            Self::ContentFields { include_epoch: IncludeEpoch::Yes, .. } => "content-fields-epoch",
            Self::Composite { .. } => "composite",
            Self::EpochSequence => "epoch-sequence",
            Self::SourceOffset => "source-offset",
            Self::ChangeKey { schema: Some(_), .. } => "change-key",
            Self::ChangeKey { schema: None, .. } => "change-key-without-schema",
            Self::Derived { .. } => "derived",
            Self::WindowSequence { .. } => "window-sequence",
            Self::Custom { .. } => "custom",
        }
    }

    /// Whether the event key contains the epoch: then it is stable under `exactly-once` only.
    #[must_use]
    pub const fn contains_epoch(&self) -> bool {
        match self {
            Self::ContentFields { include_epoch: IncludeEpoch::Yes, .. }
            | Self::Composite { .. }
            | Self::EpochSequence => true,
            Self::ContentFields { include_epoch: IncludeEpoch::No, .. }
            | Self::SourceOffset
            | Self::ChangeKey { .. }
            | Self::Derived { .. }
            | Self::WindowSequence { .. }
            | Self::Custom { .. } => false,
        }
    }

    /// Whether the strategy by itself promises that two different events have two event keys. Content fields do not:
    /// there the position, or the user's `unique: true`, makes the promise (see
    /// [`Keyer::promises_uniqueness`](super::Keyer::promises_uniqueness)).
    #[must_use]
    pub const fn promises_uniqueness(&self) -> bool {
        match self {
            Self::EpochSequence
            | Self::SourceOffset
            | Self::ChangeKey { .. }
            | Self::Derived { .. }
            | Self::WindowSequence { .. } => true,
            Self::ContentFields { .. } | Self::Composite { .. } | Self::Custom { .. } => false,
        }
    }

    /// The fields whose values the key needs, in the order in which [`Keyer::derive`](super::Keyer::derive) wants
    /// them. Those of a custom function are known to the keyer alone.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldPath> {
        match self {
            Self::ContentFields { fields, .. } | Self::Composite { fields } => fields.clone(),
            Self::EpochSequence | Self::SourceOffset | Self::Custom { .. } => Vec::new(),
            Self::ChangeKey { database, schema, table, primary_key, version } => std::iter::once(database)
                .chain(schema)
                .chain([table])
                .chain(primary_key)
                .chain([version])
                .cloned()
                .collect(),
            Self::Derived { contributors, window } => {
                let mut fields = match contributors {
                    Contributors::Fields(fields) => fields.clone(),
                    Contributors::Array(field) => vec![field.clone()],
                };
                fields.push(window.clone());
                fields
            }
            Self::WindowSequence { window, sequence } => vec![window.clone(), sequence.clone()],
        }
    }

    /// The first elements of the strategy's two tuples: no strategy shares them with another, nor with itself.
    pub(super) const fn kinds(&self) -> Kinds {
        let (entity, event) = match self {
            Self::ContentFields { include_epoch: IncludeEpoch::No, .. } => ("content/entity", "content/event"),
            Self::ContentFields { include_epoch: IncludeEpoch::Yes, .. } => {
                ("content-epoch/entity", "content-epoch/event")
            }
            Self::Composite { .. } => ("composite/entity", "composite/event"),
            Self::EpochSequence => ("sequence/entity", "sequence/event"),
            Self::SourceOffset => ("offset/entity", "offset/event"),
            Self::ChangeKey { schema: Some(_), .. } => ("change/entity", "change/event"),
            Self::ChangeKey { schema: None, .. } => ("change-without-schema/entity", "change-without-schema/event"),
            Self::Derived { .. } => ("derived/entity", "derived/event"),
            Self::WindowSequence { .. } => ("window/entity", "window/event"),
            Self::Custom { .. } => ("custom/entity", "custom/event"),
        };
        Kinds { entity, event }
    }

    /// Whether the strategy names no field where it needs one: then all events would share a key.
    pub(super) const fn lacks_fields(&self) -> bool {
        match self {
            Self::ContentFields { fields, .. }
            | Self::Composite { fields }
            | Self::ChangeKey { primary_key: fields, .. }
            | Self::Derived { contributors: Contributors::Fields(fields), .. } => fields.is_empty(),
            Self::Derived { contributors: Contributors::Array(_), .. }
            | Self::EpochSequence
            | Self::SourceOffset
            | Self::WindowSequence { .. }
            | Self::Custom { .. } => false,
        }
    }

    /// What the contract remembers: encoding version, strategy, fields in order.
    #[must_use]
    pub fn identity(&self) -> String {
        self.identity_with(&self.fields())
    }

    /// The same, where a custom function's fields are known.
    pub(super) fn identity_with(&self, fields: &[FieldPath]) -> String {
        let mut text = format!("{ENCODING} {}", self.name());
        if let Self::Custom { name } = self {
            write!(text, " {name:?}").expect("a String takes any text");
        }
        if let Self::Derived { contributors: Contributors::Array(_), .. } = self {
            text.push_str(" array");
        }
        for field in fields {
            write!(text, " {field}").expect("a String takes any text");
        }
        text
    }
}
