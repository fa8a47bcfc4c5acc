//! Where a delivery's books are, opened for a command: beside the data, or in the state store.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

#[cfg(feature = "mysql")]
use hapax_connect::mysql::MysqlBooks;
#[cfg(feature = "postgres")]
use hapax_connect::postgres::PostgresBooks;
use hapax_connect::sqlite::SqliteBooks;
use hapax_connect::sqlite::config::BUSY_TIMEOUT;
use hapax_connect::sqlite::tables::Role;
use hapax_engine::books::{
    Books, Forgotten, LetterCounts, LetterGroup, LoggedEpoch, NotedDelivery, OldNames, Pause, StateBooks,
    StoredDelivery, StoredLease,
};
use hapax_engine::letters::{LetterChoice, LetterStore, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::contract::Contract;
use hapax_model::letter::Cause;
use hapax_model::mode::ProgressPlace;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::{Progress, Witness};
#[cfg(feature = "mysql")]
use hapax_sql::mysql::{self, MysqlUrl};
#[cfg(feature = "postgres")]
use hapax_sql::postgres::{Limits, PostgresUrl};
use hapax_sql::sqlite::Open;

use super::{Part, parts};
use crate::config::{Config, StateUrl, Target};
use crate::exit::Failure;

/// What a database is opened for. A server is changed by what is asked of it, a SQLite file by being opened to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing is changed: neither a file's journal mode, nor are our tables and markers made.
    Look,
    /// Something may be changed.
    Change,
}

impl Purpose {
    /// How a SQLite file that must exist is opened for it.
    pub(crate) const fn of_file(self) -> Open {
        match self {
            Self::Look => Open::ToLook,
            Self::Change => Open::Existing,
        }
    }
}

/// A database that holds our tables, or could. Two URLs of one database are one place, whoever logs in.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresUrl>),
    #[cfg(feature = "mysql")]
    Mysql(Box<MysqlUrl>),
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sqlite(a), Self::Sqlite(b)) => a == b,
            #[cfg(feature = "postgres")]
            (Self::Postgres(a), Self::Postgres(b)) => a.hosts() == b.hosts() && database(a) == database(b),
            #[cfg(feature = "mysql")]
            (Self::Mysql(a), Self::Mysql(b)) => a.host() == b.host() && a.database() == b.database(),
            #[cfg(any(feature = "mysql", feature = "postgres"))]
            (_, _) => false,
        }
    }
}

/// The database of a URL: as libpq has it, without one the user's name.
#[cfg(feature = "postgres")]
fn database(url: &PostgresUrl) -> Option<&str> {
    url.database().or(url.user())
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => write!(f, "{url}"),
            #[cfg(feature = "mysql")]
            Self::Mysql(url) => write!(f, "{url}"),
        }
    }
}

impl Place {
    /// The database that holds this delivery's progress and letters; none if there is no state store to hold them.
    pub(crate) fn of_part(part: &Part<'_>, config: &Config) -> Option<Self> {
        match part.table().progress {
            ProgressPlace::State => Self::of_state(config),
            ProgressPlace::Sink => Some(Self::of_target(part)),
        }
    }

    /// The database that would hold them if `progress` said the other word.
    pub(crate) fn elsewhere(part: &Part<'_>, config: &Config) -> Option<Self> {
        match part.table().progress {
            ProgressPlace::State => Some(Self::of_target(part)),
            ProgressPlace::Sink => Self::of_state(config),
        }
    }

    fn of_target(part: &Part<'_>) -> Self {
        match &part.sink.target {
            Target::Sqlite(sqlite) => Self::Sqlite(sqlite.path.clone()),
            #[cfg(feature = "postgres")]
            Target::Postgres(postgres) => Self::Postgres(postgres.url.clone()),
            #[cfg(feature = "mysql")]
            Target::Mysql(mysql) => Self::Mysql(mysql.url.clone()),
        }
    }

    /// The state store, if there is one.
    pub(crate) fn of_state(config: &Config) -> Option<Self> {
        match &config.state {
            StateUrl::Sqlite(path) => Some(Self::Sqlite(path.clone())),
            #[cfg(feature = "postgres")]
            StateUrl::Postgres(url) => Some(Self::Postgres(url.clone())),
            StateUrl::None => None,
        }
    }

    /// Whether it is a server, which may be away for a while.
    pub(crate) const fn is_remote(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
            #[cfg(feature = "mysql")]
            Self::Mysql(_) => true,
        }
    }

    /// Every database that holds progress and letters of a part, each once, in the order of the configuration.
    pub(crate) fn of_all(config: &Config) -> Vec<Self> {
        let mut places = Vec::new();
        for place in parts(config).filter_map(|part| Self::of_part(&part, config)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

/// What making our tables came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Making {
    /// Some of them were missing.
    Made,
    /// They were there, of an older version.
    BroughtOver,
    /// Nothing was to be done.
    ThereAlready,
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl Making {
    /// By the version that was there before, the one that is there now, and what stands for none.
    fn of<V: PartialEq>(before: V, after: V, none: V) -> Self {
        match () {
            () if before == after => Self::ThereAlready,
            () if before == none => Self::Made,
            () => Self::BroughtOver,
        }
    }
}

/// The books of any database.
#[derive(Debug)]
pub(crate) enum AnyBooks {
    Sqlite(SqliteBooks),
    #[cfg(feature = "postgres")]
    Postgres(PostgresBooks),
    #[cfg(feature = "mysql")]
    Mysql(MysqlBooks),
}

impl AnyBooks {
    /// Opens the books at `place` for this purpose; none if the file does not exist yet.
    pub(crate) async fn open(place: &Place, purpose: Purpose) -> Result<Option<Self>, Failure> {
        match place {
            Place::Sqlite(path) if !path.exists() => Ok(None),
            Place::Sqlite(path) => {
                Ok(Some(Self::Sqlite(SqliteBooks::open(path, purpose.of_file(), BUSY_TIMEOUT).await?)))
            }
            #[cfg(feature = "postgres")]
            Place::Postgres(url) => Ok(Some(Self::Postgres(PostgresBooks::open(url, Limits::default()).await?))),
            #[cfg(feature = "mysql")]
            Place::Mysql(url) => Ok(Some(Self::Mysql(MysqlBooks::open(url, mysql::Limits::default()).await?))),
        }
    }

    /// Opened once more, now to be changed: whoever only looked has left a file as it was.
    pub(crate) async fn reopened(place: &Place) -> Result<Self, Failure> {
        let gone = || Failure::new("HX4001", format!("{place} was there a moment ago, and is gone"));
        Self::open(place, Purpose::Change).await?.ok_or_else(gone)
    }

    /// The books that hold this part's deliveries, if there are any yet.
    pub(crate) async fn of_part(part: &Part<'_>, config: &Config, purpose: Purpose) -> Result<Option<Self>, Failure> {
        match Place::of_part(part, config) {
            Some(place) => Self::open(&place, purpose).await,
            None => Ok(None),
        }
    }

    /// The state store's books, if there are any yet.
    pub(crate) async fn of_state(config: &Config, purpose: Purpose) -> Result<Option<Self>, Failure> {
        match Place::of_state(config) {
            Some(place) => Self::open(&place, purpose).await,
            None => Ok(None),
        }
    }

    /// Makes our tables where they are missing.
    pub(crate) async fn make_tables(&mut self, role: Role) -> Result<Making, Failure> {
        match self {
            Self::Sqlite(books) => Ok(if books.make_tables(role).await? { Making::Made } else { Making::ThereAlready }),
            #[cfg(feature = "postgres")]
            Self::Postgres(books) => {
                let made = books.make_tables(postgres_role(role)).await?;
                Ok(Making::of(made.before, made.after, Default::default()))
            }
            #[cfg(feature = "mysql")]
            Self::Mysql(books) => {
                let made = books.make_tables().await?;
                Ok(Making::of(made.before, made.after, 0))
            }
        }
    }

    /// Checks that letters may be marked as replayed or discarded; a file is its owner's, and tells when it is written.
    pub(crate) async fn check_letter_rights(&mut self) -> Result<(), Failure> {
        match self {
            Self::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Self::Postgres(books) => Ok(books.check_letter_rights().await?),
            #[cfg(feature = "mysql")]
            Self::Mysql(books) => Ok(books.check_letter_rights().await?),
        }
    }

    /// Drops all our tables.
    pub(crate) async fn drop_tables(&mut self) -> Result<(), Failure> {
        match self {
            Self::Sqlite(books) => Ok(books.drop_tables().await?),
            #[cfg(feature = "postgres")]
            Self::Postgres(books) => Ok(books.drop_tables().await?),
            #[cfg(feature = "mysql")]
            Self::Mysql(books) => Ok(books.drop_tables().await?),
        }
    }
}

/// What PostgreSQL calls the use of a database.
#[cfg(feature = "postgres")]
pub(crate) const fn postgres_role(role: Role) -> hapax_connect::postgres::tables::Role {
    use hapax_connect::postgres::tables::Role as Postgres;
    match role {
        Role::Target => Postgres::Target,
        Role::State => Postgres::State,
    }
}

macro_rules! each {
    ($self:expr, $books:ident => $answer:expr) => {
        match $self {
            AnyBooks::Sqlite($books) => $answer,
            #[cfg(feature = "postgres")]
            AnyBooks::Postgres($books) => $answer,
            #[cfg(feature = "mysql")]
            AnyBooks::Mysql($books) => $answer,
        }
    };
}

/// The same, for what only a state store has: no MySQL database is one, and no configuration can make it one.
macro_rules! each_state {
    ($self:expr, $books:ident => $answer:expr) => {
        match $self {
            AnyBooks::Sqlite($books) => $answer,
            #[cfg(feature = "postgres")]
            AnyBooks::Postgres($books) => $answer,
            #[cfg(feature = "mysql")]
            AnyBooks::Mysql($books) => Err($books.no_state_store()),
        }
    };
}

impl LetterStore for AnyBooks {
    async fn list(&mut self, choice: &LetterChoice, after: i64, limit: usize) -> Result<Vec<StoredLetter>, SinkError> {
        each!(self, books => books.list(choice, after, limit).await)
    }

    async fn discard(&mut self, ids: &[i64]) -> Result<u64, SinkError> {
        each!(self, books => books.discard(ids).await)
    }
}

impl Books for AnyBooks {
    async fn deliveries(&mut self) -> Result<Vec<StoredDelivery>, SinkError> {
        each!(self, books => books.deliveries().await)
    }

    async fn recent_epochs(&mut self, id: &DeliveryId, limit: usize) -> Result<Vec<LoggedEpoch>, SinkError> {
        each!(self, books => books.recent_epochs(id, limit).await)
    }

    async fn letter_counts(&mut self, id: &DeliveryId) -> Result<LetterCounts, SinkError> {
        each!(self, books => books.letter_counts(id).await)
    }

    async fn owners(&mut self) -> Result<Vec<DeliveryId>, SinkError> {
        each!(self, books => books.owners().await)
    }

    async fn causes(&mut self, choice: &LetterChoice, after: i64) -> Result<Vec<LetterGroup>, SinkError> {
        each!(self, books => books.causes(choice, after).await)
    }

    async fn take_in_doubt(&mut self, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
        each!(self, books => books.take_in_doubt(ids).await)
    }

    async fn mark_replayed(&mut self, good: &[i64], refused: &BTreeMap<i64, Cause>) -> Result<u64, SinkError> {
        each!(self, books => books.mark_replayed(good, refused).await)
    }

    async fn reset(
        &mut self,
        id: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
    ) -> Result<Progress, SinkError> {
        each!(self, books => books.reset(id, to, contract).await)
    }

    async fn adopt(&mut self, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
        each!(self, books => books.adopt(old, new, sink).await)
    }

    async fn adopt_lanes(
        &mut self,
        old: &[DeliveryId],
        new: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
        names: OldNames,
    ) -> Result<Progress, SinkError> {
        each!(self, books => books.adopt_lanes(old, new, to, contract, names).await)
    }

    async fn forget(&mut self, id: &DeliveryId) -> Result<Forgotten, SinkError> {
        each!(self, books => books.forget(id).await)
    }
}

impl StateBooks for AnyBooks {
    async fn notes(&mut self) -> Result<Vec<NotedDelivery>, SinkError> {
        each_state!(self, books => books.notes().await)
    }

    async fn leases(&mut self) -> Result<Vec<StoredLease>, SinkError> {
        each_state!(self, books => books.leases().await)
    }

    async fn witnesses(&mut self) -> Result<Vec<(DeliveryId, Witness)>, SinkError> {
        each_state!(self, books => books.witnesses().await)
    }

    async fn reset_witness(&mut self, id: &DeliveryId) -> Result<(), SinkError> {
        each_state!(self, books => books.reset_witness(id).await)
    }

    async fn adopt_memory(&mut self, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
        each_state!(self, books => books.adopt_memory(old, new, sink).await)
    }

    async fn adopt_lane_memory(&mut self, old: &DeliveryId, new: &DeliveryId) -> Result<(), SinkError> {
        each_state!(self, books => books.adopt_lane_memory(old, new).await)
    }

    async fn pause(&mut self, pause: &Pause) -> Result<(), SinkError> {
        each_state!(self, books => books.pause(pause).await)
    }

    async fn resume(&mut self, workflow: &str) -> Result<bool, SinkError> {
        each_state!(self, books => books.resume(workflow).await)
    }

    async fn pauses(&mut self) -> Result<Vec<Pause>, SinkError> {
        each_state!(self, books => books.pauses().await)
    }
}
