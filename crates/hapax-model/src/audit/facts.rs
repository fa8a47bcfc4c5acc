//! What the audit judges: source, sink and key, as far as a guarantee depends on them.
//!
//! Filled from the configuration and, where it can be reached, from the live target. Not here: any judgement; transforms,
//! whose programs are refused as they are read if they look outside the event or lose a key field (`hapax-transform`).

use crate::delivery::{Deduplication, Delivery, StrategyName};
use crate::mode::{ConflictMode, ProgressPlace};

/// Everything the verdict depends on.
#[derive(Debug, Clone)]
pub struct AuditFacts<'a> {
    /// Where events come from.
    pub source: SourceFacts,
    /// Where they go.
    pub sink: SinkFacts,
    /// What names them.
    pub key: KeyKind,
    /// What is promised, and what the workflow states.
    pub delivery: &'a Delivery,
}

/// Where events come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFacts {
    /// What kind of source.
    pub kind: SourceKind,
    /// Whether it can be read again from a position.
    pub replay: Replay,
    /// Whether events of one key come in the order in which they happened.
    pub key_order: KeyOrder,
    /// Whether events say which row of which table changed, and to which version.
    pub change_fields: ChangeFields,
    /// Where the first run begins.
    pub start: StartAt,
}

impl SourceFacts {
    /// A source of that kind as it usually is: replayable, in order; change fields from change sources only.
    #[must_use]
    pub const fn of(kind: SourceKind, start: StartAt) -> Self {
        let change_fields = match kind {
            SourceKind::Changes => ChangeFields::Supplied,
            SourceKind::File | SourceKind::Generate | SourceKind::Kafka | SourceKind::Outbox | SourceKind::Live => {
                ChangeFields::Absent
            }
        };
        let replay = match kind {
            SourceKind::Live => Replay::Never,
            SourceKind::File | SourceKind::Generate | SourceKind::Kafka | SourceKind::Outbox | SourceKind::Changes => {
                Replay::FromAnyPosition
            }
        };
        Self { kind, replay, key_order: KeyOrder::Kept, change_fields, start }
    }
}

/// Kinds of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A file of lines.
    File,
    /// Generated from a seed.
    Generate,
    /// A Kafka topic.
    Kafka,
    /// An outbox table.
    Outbox,
    /// Changes of a database.
    Changes,
    /// Something that is gone once it was read.
    Live,
}

/// Whether a source gives the same events again from a saved position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// Yes, from every position it has given.
    FromAnyPosition,
    /// Yes, but an initial snapshot that is cut short begins anew.
    SnapshotRestarts,
    /// No.
    Never,
}

/// Whether events of one key come in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// The source sees to it.
    Kept,
    /// It is the order in which the application happened to draw numbers.
    LeftToWriter,
}

/// Whether events carry database, table, primary key and change version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeFields {
    /// They do.
    Supplied,
    /// They do not.
    Absent,
}

/// Where the first run of a delivery begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// With the oldest event there is.
    Earliest,
    /// With what comes after the first start.
    Latest,
}

/// Where events go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkFacts {
    /// A table.
    Sql(SqlFacts),
    /// A Kafka topic.
    Kafka {
        /// Where progress is kept.
        progress: ProgressPlace,
    },
    /// HTTP requests.
    Http {
        /// What is sent.
        method: HttpMethod,
        /// To whom.
        addressees: Addressees,
    },
}

/// A table as a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlFacts {
    /// What kind of table.
    pub table: TableKind,
    /// Which unique indexes it has.
    pub index: KeyIndex,
    /// What the index is over.
    pub arbiter: Arbiter,
    /// What happens to a key that exists.
    pub mode: ConflictMode,
    /// Where progress is kept.
    pub progress: ProgressPlace,
}

/// Kinds of table, by what a crash and a rollback leave of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// An ordinary PostgreSQL table.
    PostgresLogged,
    /// PostgreSQL `UNLOGGED`: empty after a crash.
    PostgresUnlogged,
    /// A PostgreSQL foreign table: its rows live elsewhere.
    PostgresForeign,
    /// A PostgreSQL temporary table: gone with its session.
    PostgresTemporary,
    /// MySQL or MariaDB, InnoDB.
    InnoDb,
    /// MySQL or MariaDB, MyISAM.
    MyIsam,
    /// MySQL or MariaDB, MEMORY.
    Memory,
    /// SQLite.
    Sqlite,
}

impl TableKind {
    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PostgresLogged => "a PostgreSQL table",
            Self::PostgresUnlogged => "an UNLOGGED PostgreSQL table",
            Self::PostgresForeign => "a foreign table of PostgreSQL",
            Self::PostgresTemporary => "a temporary table of PostgreSQL",
            Self::InnoDb => "an InnoDB table",
            Self::MyIsam => "a MyISAM table",
            Self::Memory => "a MEMORY table",
            Self::Sqlite => "a SQLite table",
        }
    }

    pub(super) const fn is_mysql(self) -> bool {
        matches!(self, Self::InnoDb | Self::MyIsam | Self::Memory)
    }

    /// Whether rows and our progress can be one transaction.
    pub(super) const fn is_transactional(self) -> bool {
        matches!(self, Self::PostgresLogged | Self::PostgresUnlogged | Self::InnoDb | Self::Sqlite)
    }
}

/// The unique indexes of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyIndex {
    /// None over the key.
    Missing,
    /// One over the key, and no other.
    Only,
    /// One over the key, and at least one more.
    WithOthers,
    /// The live table was not read.
    Unread,
}

/// What a unique index is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arbiter {
    /// A column that holds our key: the entity key in `update` and `newer`, the event key in `ignore`.
    KeyColumn,
    /// The key fields themselves.
    KeyFields,
}

/// What is sent over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// POST to one address.
    Post,
    /// PUT to an address with the key in it.
    PutTemplated,
}

/// To whom HTTP requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressees {
    /// One `url`.
    Url,
    /// `endpoints`, each with its own state: needs an outbox.
    Endpoints,
}

impl SinkFacts {
    /// What people call it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sql(sql) => sql.table.name(),
            Self::Kafka { .. } => "a Kafka topic",
            Self::Http { method: HttpMethod::Post, .. } => "HTTP POST",
            Self::Http { method: HttpMethod::PutTemplated, .. } => "HTTP PUT",
        }
    }

    /// Whether data and position become visible together.
    pub(super) const fn is_atomic(&self) -> bool {
        match self {
            Self::Sql(sql) => matches!(sql.progress, ProgressPlace::Sink) && sql.table.is_transactional(),
            Self::Kafka { progress } => matches!(progress, ProgressPlace::Sink),
            Self::Http { .. } => false,
        }
    }

    /// Whether the target looks at keys or passes them on.
    pub(super) const fn uses_key(&self) -> bool {
        match self {
            Self::Sql(sql) => !matches!(sql.mode, ConflictMode::Append),
            Self::Kafka { .. } | Self::Http { .. } => true,
        }
    }
}

/// Kinds of key strategy, by what the audit must know of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyKind {
    /// The key fields alone; the workflow states that they name the event.
    ContentUnique,
    /// The key fields, and a version for the event.
    ContentVersioned,
    /// The key fields and the epoch.
    ContentWithEpoch,
    /// Key fields, epoch and sequence.
    Composite,
    /// The epoch and a count within it.
    EpochSequence,
    /// The source's position and the emit index.
    SourceOffset,
    /// Database, schema, table, primary key, change version.
    ChangeKey,
    /// The sorted keys of all contributors.
    Derived,
    /// The window and a count within it.
    WindowSequence,
    /// A function of the embedding program.
    Custom(String),
}

impl KeyKind {
    /// The kind that a `deduplication:` block means for a source.
    ///
    /// Without a written strategy: key fields, else the change key where the source supplies it, else the source's
    /// position.
    #[must_use]
    pub fn of(deduplication: &Deduplication, change_fields: ChangeFields) -> Self {
        let content = if deduplication.unique { Self::ContentUnique } else { Self::ContentVersioned };
        match &deduplication.strategy {
            None if !deduplication.key_fields.is_empty() => content,
            None if change_fields == ChangeFields::Supplied => Self::ChangeKey,
            None | Some(StrategyName::SourceOffset) => Self::SourceOffset,
            Some(StrategyName::Content) => content,
            Some(StrategyName::ContentWithEpoch) => Self::ContentWithEpoch,
            Some(StrategyName::Composite) => Self::Composite,
            Some(StrategyName::EpochSequence) => Self::EpochSequence,
            Some(StrategyName::ChangeKey) => Self::ChangeKey,
            Some(StrategyName::Derived) => Self::Derived,
            Some(StrategyName::WindowSequence) => Self::WindowSequence,
            Some(StrategyName::Custom { name }) => Self::Custom(name.clone()),
        }
    }

    pub(super) const fn contains_epoch(&self) -> bool {
        matches!(self, Self::ContentWithEpoch | Self::Composite | Self::EpochSequence)
    }

    pub(super) const fn needs_key_fields(&self) -> bool {
        matches!(self, Self::ContentUnique | Self::ContentVersioned | Self::ContentWithEpoch | Self::Composite)
    }
}
