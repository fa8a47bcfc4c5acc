//! Refusals: why a guarantee cannot hold, each with a code and a cure.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::facts::TableKind;
use crate::delivery::{Guarantee, Mechanism};
use crate::mode::ConflictMode;

/// Why a guarantee cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The source forgets what it has given.
    SourceCannotReplay,
    /// The source begins its snapshot anew after a crash, and this target keeps every copy.
    SnapshotRestarts,
    /// The key contains the epoch, and a repetition may land in another epoch.
    KeyContainsEpoch,
    /// The key strategy needs `keyFields`, and there are none.
    KeyFieldsMissing,
    /// The key strategy needs change fields, and the source has none.
    ChangeFieldsMissing,
    /// The mechanism does not belong to the guarantee.
    MechanismForOthers(Mechanism, Guarantee),
    /// The mechanism keeps data and position in one transaction, which is not possible here.
    TransactionImpossible,
    /// The mechanism keeps the position apart, but here it is in the target.
    PositionIsInSink,
    /// `endpoints` are sent from an outbox, and the mechanism is another one.
    EndpointsNeedOutbox(Mechanism),
    /// `endpoints` are sent from an outbox, which repeats what is in doubt.
    EndpointsRepeat,
    /// `append` looks at no key.
    AppendHasNoKey,
    /// Rows and position are two commits.
    TwoCommits,
    /// The target loses acknowledged rows.
    TableLosesRows(TableKind),
    /// An upsert of MySQL may hit the row of another unique index.
    SecondUniqueIndex(ConflictMode),
    /// The storage engine has no transactions.
    NoTransactions(TableKind),
    /// The mode needs a unique index, and there is none.
    NoUniqueIndex(ConflictMode),
}

impl Refusal {
    /// The code of the page that explains it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::SourceCannotReplay => "HX1101",
            Self::KeyContainsEpoch => "HX1104",
            Self::KeyFieldsMissing => "HX1105",
            Self::ChangeFieldsMissing => "HX1106",
            Self::SnapshotRestarts => "HX1107",
            Self::MechanismForOthers(..) => "HX1110",
            Self::TransactionImpossible | Self::PositionIsInSink => "HX1111",
            Self::EndpointsNeedOutbox(_) | Self::EndpointsRepeat => "HX1112",
            Self::AppendHasNoKey => "HX1120",
            Self::TwoCommits => "HX1121",
            Self::TableLosesRows(_) => "HX1122",
            Self::SecondUniqueIndex(_) => "HX1123",
            Self::NoTransactions(_) => "HX1124",
            Self::NoUniqueIndex(_) => "HX1125",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::SourceCannotReplay => "use at-most-once, or a source that keeps its events".into(),
            Self::SnapshotRestarts => "use onConflict: update or newer, or at-least-once".into(),
            Self::KeyContainsEpoch => {
                "use guarantee: exactly-once, or a key without the epoch, such as strategy: content".into()
            }
            Self::KeyFieldsMissing => "name them in deduplication.keyFields, or use strategy: source-offset".into(),
            Self::ChangeFieldsMissing => {
                "leave deduplication.strategy out, then the source's position is the key; or name keyFields".into()
            }
            Self::MechanismForOthers(..) | Self::PositionIsInSink => "leave mechanism out: it is derived".into(),
            Self::TransactionImpossible => {
                "leave mechanism out; for one transaction use progress: sink and a table with transactions".into()
            }
            Self::EndpointsNeedOutbox(_) => "write mechanism: transactional-outbox, or leave it out".into(),
            Self::EndpointsRepeat => "use at-least-once or more, or a single url".into(),
            Self::AppendHasNoKey => {
                "use onConflict: ignore, update or newer with a unique index over the key, or another guarantee".into()
            }
            Self::TwoCommits => "use progress: sink, or a weaker guarantee".into(),
            Self::TableLosesRows(_) => "use an ordinary table, or at-most-once".into(),
            Self::SecondUniqueIndex(ConflictMode::Append) => "use exactly-once, or drop the other index".into(),
            Self::SecondUniqueIndex(_) => "use onConflict: append, or drop the other index".into(),
            Self::NoTransactions(_) => "use InnoDB, or a weaker guarantee".into(),
            Self::NoUniqueIndex(_) => "create a unique index over the key (hapax setup --sql prints it), \
                                       or use onConflict: append"
                .into(),
        }
    }
}

impl fmt::Display for Refusal {
    /// The reason, as a clause.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceCannotReplay => f.write_str("the source does not give an event a second time, so one that is lost on the way stays lost"),
            Self::SnapshotRestarts => f.write_str("a snapshot that is cut short begins anew, and this target keeps both copies of a row"),
            Self::KeyContainsEpoch => f.write_str("the key contains the epoch, and a repetition may land in another epoch and get another key"),
            Self::KeyFieldsMissing => f.write_str("the key strategy is made of keyFields, and there are none"),
            Self::ChangeFieldsMissing => f.write_str("the change key is made of database, table, primary key and version, which this source does not supply"),
            Self::MechanismForOthers(mechanism, guarantee) => write!(f, "the mechanism {mechanism} cannot keep {guarantee}"),
            Self::TransactionImpossible => f.write_str("the mechanism transaction needs data and position in one transaction of the target, which is not so here"),
            Self::PositionIsInSink => f.write_str("the mechanism kafka-offsets keeps the position apart from the data, but here it is kept in the target"),
            Self::EndpointsNeedOutbox(mechanism) => write!(f, "endpoints are sent from an outbox, and the mechanism is {mechanism}"),
            Self::EndpointsRepeat => f.write_str("endpoints are sent from an outbox, which sends again what got no answer"),
            Self::AppendHasNoKey => f.write_str("append writes every event as a new row and looks at no key"),
            Self::TwoCommits => f.write_str("with progress: state rows and position are two commits, and a crash between them repeats rows"),
            Self::TableLosesRows(TableKind::PostgresForeign) => f.write_str("the rows of a foreign table are another server's, whose commit is not ours to check"),
            Self::TableLosesRows(table) => write!(f, "{} is empty after a crash, while the position stays", table.name()),
            Self::SecondUniqueIndex(ConflictMode::Append) => f.write_str("the table has a second unique index, and MySQL does not say which one a repetition met"),
            Self::SecondUniqueIndex(mode) => write!(f, "the table has a second unique index, and {} on MySQL may then change another row", mode.name()),
            Self::NoTransactions(table) => write!(f, "{} has no transactions, so rows and position are never one commit", table.name()),
            Self::NoUniqueIndex(mode) => write!(f, "onConflict: {} needs a unique index over the key, and the table has none", mode.name()),
        }
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Refusal", 3)?;
        out.serialize_field("code", self.code())?;
        out.serialize_field("reason", &self.to_string())?;
        out.serialize_field("cure", &self.cure())?;
        out.end()
    }
}
