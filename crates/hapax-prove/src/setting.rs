//! What a cell asks of Hapax: a guarantee, a kind of table, a place for progress, and the databases for both.

use std::fmt;

use crate::check::Anomaly;
use crate::database::Engine;
use crate::shape::Shape;

/// A guarantee, as the configuration names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guarantee {
    /// Nothing twice.
    AtMostOnce,
    /// Nothing lost.
    AtLeastOnce,
    /// The final state is right.
    IdempotentKeys,
    /// Nothing lost, nothing twice, at every moment.
    ExactlyOnce,
}

impl Guarantee {
    /// All four.
    pub const ALL: [Self; 4] = [Self::AtMostOnce, Self::AtLeastOnce, Self::IdempotentKeys, Self::ExactlyOnce];

    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "at-most-once",
            Self::AtLeastOnce => "at-least-once",
            Self::IdempotentKeys => "idempotent-keys",
            Self::ExactlyOnce => "exactly-once",
        }
    }
}

/// Where progress is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the target, in the data's transaction.
    Sink,
    /// In the state store, in a commit of its own.
    State,
}

impl Place {
    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sink => "sink",
            Self::State => "state",
        }
    }
}

/// Which databases hold target and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stack {
    /// Both in SQLite files.
    Files,
    /// The target in PostgreSQL, the state in a SQLite file.
    Postgres,
    /// Both in PostgreSQL, in two databases.
    PostgresOnly,
    /// The target in MariaDB, the state in a SQLite file.
    Mysql,
    /// The target in MariaDB, the state in PostgreSQL.
    MysqlAndPostgres,
}

impl Stack {
    /// Its name in cells; files came first and have none.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Files => None,
            Self::Postgres => Some("postgres"),
            Self::PostgresOnly => Some("postgres-only"),
            Self::Mysql => Some("mysql"),
            Self::MysqlAndPostgres => Some("mysql-and-postgres"),
        }
    }

    /// Whether there is a server, and a wire to it.
    #[must_use]
    pub const fn has_server(self) -> bool {
        match self.engine() {
            Engine::Sqlite => false,
            Engine::Postgres | Engine::Mysql => true,
        }
    }

    /// What the target is in.
    #[must_use]
    pub const fn engine(self) -> Engine {
        match self {
            Self::Files => Engine::Sqlite,
            Self::Postgres | Self::PostgresOnly => Engine::Postgres,
            Self::Mysql | Self::MysqlAndPostgres => Engine::Mysql,
        }
    }

    /// Whether the state is in a database of a PostgreSQL server.
    #[must_use]
    pub const fn has_state_server(self) -> bool {
        match self {
            Self::Files | Self::Postgres | Self::Mysql => false,
            Self::PostgresOnly | Self::MysqlAndPostgres => true,
        }
    }
}

/// One combination of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setting {
    /// What is promised.
    pub guarantee: Guarantee,
    /// Into what kind of table.
    pub shape: Shape,
    /// With progress where.
    pub place: Place,
    /// In which databases.
    pub stack: Stack,
}

impl Setting {
    /// A combination over files.
    #[must_use]
    pub const fn new(guarantee: Guarantee, shape: Shape, place: Place) -> Self {
        Self { guarantee, shape, place, stack: Stack::Files }
    }

    /// The same over other databases.
    #[must_use]
    pub const fn on(self, stack: Stack) -> Self {
        Self { stack, ..self }
    }

    /// The combination that most scenarios use: the strictest promise on the most fragile table.
    #[must_use]
    pub const fn strictest() -> Self {
        Self::new(Guarantee::ExactlyOnce, Shape::Append, Place::Sink)
    }

    /// Whether this combination forbids `anomaly`.
    ///
    /// Books that do not add up, a letter written twice and an input that vanished without a letter are forbidden
    /// everywhere; which letters excuse an input that at-most-once did not deliver is said by `check::doubt`. Where
    /// progress is in the sink there is one write path for every guarantee, so torn epochs, zombie writes and
    /// progress going back are forbidden whatever was promised.
    #[must_use]
    pub fn forbids(self, anomaly: Anomaly) -> bool {
        match anomaly {
            Anomaly::Conduct
            | Anomaly::Phantom
            | Anomaly::Ledger
            | Anomaly::LetterDoubled
            | Anomaly::Lost
            | Anomaly::LetterLost
            | Anomaly::InnocentDied => true,
            // An epoch in doubt that is never repeated leaves a hole, and at-most-once may leave it.
            Anomaly::Torn => self.place == Place::Sink && self.guarantee != Guarantee::AtMostOnce,
            Anomaly::ZombieWrite | Anomaly::WentBack | Anomaly::WitnessAhead | Anomaly::Reordered => {
                self.place == Place::Sink
            }
            Anomaly::Doubled => match self.guarantee {
                Guarantee::AtMostOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce => true,
                Guarantee::AtLeastOnce => false,
            },
            Anomaly::WrongState => match self.guarantee {
                Guarantee::ExactlyOnce | Guarantee::IdempotentKeys => true,
                Guarantee::AtLeastOnce => self.place == Place::Sink,
                Guarantee::AtMostOnce => false,
            },
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}+{}", self.guarantee.name(), self.shape.name(), self.place.name())?;
        self.stack.name().map_or(Ok(()), |name| write!(f, "/{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each guarantee is judged by what it promises. Method: the two anomalies that tell them apart.
    #[test]
    fn each_guarantee_forbids_what_it_promises_against() {
        let judge = |guarantee, anomaly| Setting::new(guarantee, Shape::Append, Place::State).forbids(anomaly);
        assert!(judge(Guarantee::AtLeastOnce, Anomaly::Lost) && !judge(Guarantee::AtLeastOnce, Anomaly::Doubled));
        assert!(judge(Guarantee::AtMostOnce, Anomaly::Lost) && judge(Guarantee::AtMostOnce, Anomaly::Doubled));
        assert!(!judge(Guarantee::AtMostOnce, Anomaly::WrongState));
        assert!(judge(Guarantee::IdempotentKeys, Anomaly::WrongState));
        for anomaly in Anomaly::ALL {
            assert!(Setting::strictest().forbids(anomaly), "{anomaly:?}");
        }
    }
}
