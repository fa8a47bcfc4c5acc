//! The broker's cells: a story on a store.

use super::points::{POINTS, Point};

/// Which store the broker keeps its log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Store {
    /// One file.
    Embedded,
    /// PostgreSQL.
    Postgres,
}

impl Store {
    /// Its name in cells.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Postgres => "postgres",
        }
    }
}

/// What happens while the clients work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// Nothing.
    Plain,
    /// SIGKILL at random moments, and a new life each time.
    RandomKills,
    /// SIGKILL at a point, and a new life.
    Point(&'static Point),
    /// SIGTERM, and a new life.
    GracefulStops,
    /// No room on the disk for a while.
    DiskFull,
    /// Retention removes from the front of logs, and SIGKILL: in the middle of it, and at random.
    Retention,
    /// Compaction, and SIGKILL before and after it stores what it has rewritten.
    Compaction,
    /// DeleteRecords again and again, and SIGKILL at random.
    DeleteRecords,
    /// The topic is deleted and made again, and SIGKILL before, between or after.
    MadeAgain,
    /// Garbage, bombs and readers that do not read, and SIGKILL.
    Hostile,
    /// The power is cut. Not among [`cells`]: it needs rights that few machines give.
    PowerLoss,
    /// The server is stopped `immediate`, and started again.
    ServerStopped,
    /// The session that appends is ended while it does.
    WriterEnded,
    /// SIGKILL of the leader while another broker stands by.
    LeaderKilled,
    /// SIGSTOP of the leader past its lease while another stands by, then SIGCONT.
    LeaderStopped,
    /// The same, stopped just before an append is sent, and nobody else writes when it goes on.
    StoppedBeforeAppend,
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerCell {
    /// The store.
    pub store: Store,
    /// What happens.
    pub story: Story,
}

impl BrokerCell {
    /// Its name, unique.
    #[must_use]
    pub fn name(&self) -> String {
        let story = match self.story {
            Story::Plain => "plain".to_owned(),
            Story::RandomKills => "random-kills".to_owned(),
            Story::Point(point) => format!("point/{}/kill", point.name),
            Story::GracefulStops => "graceful-stops".to_owned(),
            Story::DiskFull => "disk-full".to_owned(),
            Story::Retention => "retention".to_owned(),
            Story::Compaction => "compaction".to_owned(),
            Story::DeleteRecords => "delete-records".to_owned(),
            Story::MadeAgain => "made-again".to_owned(),
            Story::Hostile => "hostile-clients".to_owned(),
            Story::PowerLoss => "power-loss".to_owned(),
            Story::ServerStopped => "server-stopped".to_owned(),
            Story::WriterEnded => "writer-ended".to_owned(),
            Story::LeaderKilled => "leader-killed".to_owned(),
            Story::LeaderStopped => "leader-stopped".to_owned(),
            Story::StoppedBeforeAppend => "stopped-before-append".to_owned(),
        };
        format!("broker/{story}/{}", self.store.name())
    }

    /// About how many seconds it takes.
    #[must_use]
    pub const fn cost_seconds(&self) -> f64 {
        match self.story {
            Story::Retention | Story::Compaction | Story::DeleteRecords | Story::MadeAgain => 8.0,
            Story::Plain | Story::GracefulStops | Story::Point(_) => 10.0,
            Story::RandomKills | Story::WriterEnded | Story::LeaderKilled | Story::Hostile => 14.0,
            Story::DiskFull | Story::ServerStopped | Story::PowerLoss => 15.0,
            Story::LeaderStopped | Story::StoppedBeforeAppend => 22.0,
        }
    }
}

/// All cells.
#[must_use]
pub fn cells() -> Vec<BrokerCell> {
    const BOTH: [Story; 9] = [
        Story::Plain,
        Story::RandomKills,
        Story::GracefulStops,
        Story::DiskFull,
        Story::Retention,
        Story::Compaction,
        Story::DeleteRecords,
        Story::MadeAgain,
        Story::Hostile,
    ];
    const SERVER: [Story; 5] = [
        Story::ServerStopped,
        Story::WriterEnded,
        Story::LeaderKilled,
        Story::LeaderStopped,
        Story::StoppedBeforeAppend,
    ];
    let mut cells = Vec::new();
    for store in [Store::Embedded, Store::Postgres] {
        cells.extend(BOTH.map(|story| BrokerCell { store, story }));
        cells.extend(POINTS.iter().map(|point| BrokerCell { store, story: Story::Point(point) }));
    }
    cells.extend(SERVER.map(|story| BrokerCell { store: Store::Postgres, story }));
    cells
}

/// The cell with this name.
#[must_use]
pub fn cell(name: &str) -> Option<BrokerCell> {
    cells().into_iter().find(|cell| cell.name() == name)
}
