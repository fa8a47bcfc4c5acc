//! The stories: what is done to real workers, one file per family.

mod company;
pub mod contract;
pub mod cuts;
pub mod disk;
pub mod doubt;
pub mod failover;
pub mod files;
pub mod kills;
pub mod letters;
pub mod limits;
pub mod locks;
pub mod point;
pub mod refused;
pub mod restore;
pub mod server;
pub mod wire;
pub mod workers;

use crate::database::Engine;
use crate::servers::{Need, Wish};
use crate::setting::{Guarantee, Place, Setting, Stack};
use crate::shape::Shape;
use crate::workload::Mix;
use crate::world::World;

/// A story besides the fault points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// Kills at seeded moments under load.
    RandomKills,
    /// Killed before its first COMMIT: nothing may say that it has been anywhere.
    FirstEpoch,
    /// No fault at all: the workload itself is right.
    Plain,
    /// SIGTERM under load.
    Drain,
    /// A second worker stands by and takes over when the first dies.
    TwoWorkers,
    /// `--take-over` fences a live worker.
    TakeOver,
    /// A worker stopped past take-over wakes up when all is done.
    ZombieLate,
    /// A worker stopped past take-over wakes up when the other has claimed and not yet committed.
    ZombieEarly,
    /// COMMIT fails for a while, and nothing is lost or doubled.
    FailingCommit,
    /// The only COMMIT fails, and a worker that ends well has delivered everything.
    FailingLastCommit,
    /// COMMIT fails, the worker is stopped, another takes over, the first wakes up.
    DoubtfulZombie,
    /// Only the guilty die, and a replay delivers them once.
    Poison,
    /// Two replays at once.
    TwoReplays,
    /// An older event replayed after a newer one.
    LateReplay,
    /// The table is dropped and made again.
    TableRecreated,
    /// The key strategy changes.
    KeyChanged,
    /// The workflow gets another id.
    Renamed,
    /// The workflow gets another id while the old one runs.
    RenamedAlive,
    /// The database is restored to an older copy.
    Restored,
    /// The same, and the source has lost the range.
    RestoredGap,
    /// The disk is full for a while.
    DiskFull,
    /// The input is rotated under load.
    Rotation,
    /// The input is truncated while no worker runs.
    Truncated,
    /// The input is truncated under a running worker.
    TruncatedAlive,
    /// The input is replaced by another file, half read.
    Replaced,
    /// `start: latest`, killed and started again.
    LatestStart,
    /// Kills between the rows and a position that is kept elsewhere.
    NaiveKills,
    /// A transaction fails just before its COMMIT, and the server says so only in a tag.
    SpoiledCommit,
    /// The answer to COMMIT comes after the worker has stopped waiting for it.
    HeldAnswer,
    /// The server is stopped at once in the middle of an epoch's rows.
    StoppedInData,
    /// The server is stopped at once when COMMIT has been sent.
    StoppedAtCommit,
    /// A foreign transaction locks two rows crosswise.
    Deadlock,
    /// Two workflows write the same keys at the same time.
    Twins,
    /// The server takes no writes for a while.
    ReadOnly,
    /// The server dies, its standby is read-only at first, then takes over.
    Failover,
    /// The same, and the standby lacks the last commits.
    FailoverBehind,
    /// A column is added and dropped again under load.
    ColumnAdded,
    /// The table is dropped and made again under a running worker.
    RecreatedAlive,
    /// The table is dropped under a running worker, and made again later.
    DroppedAlive,
    /// Others have taken every connection for a while.
    Exhausted,
    /// Five targets beside it are locked, and their deliveries take all the memory they can.
    BlockedNeighbours,
    /// Inputs longer than a reserve, and the smallest memory budget.
    MemoryShort,
    /// Workers with fewer descriptors than they need, and half requests to one's pages.
    DescriptorsShort,
    /// The same input in epochs of other sizes, into tables where rows meet others.
    Cuts,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 44] = [
        Self::Plain,
        Self::RandomKills,
        Self::FirstEpoch,
        Self::Drain,
        Self::TwoWorkers,
        Self::TakeOver,
        Self::ZombieLate,
        Self::ZombieEarly,
        Self::FailingCommit,
        Self::FailingLastCommit,
        Self::DoubtfulZombie,
        Self::Poison,
        Self::TwoReplays,
        Self::LateReplay,
        Self::TableRecreated,
        Self::KeyChanged,
        Self::Renamed,
        Self::RenamedAlive,
        Self::Restored,
        Self::RestoredGap,
        Self::DiskFull,
        Self::Rotation,
        Self::Truncated,
        Self::TruncatedAlive,
        Self::Replaced,
        Self::LatestStart,
        Self::NaiveKills,
        Self::SpoiledCommit,
        Self::HeldAnswer,
        Self::StoppedInData,
        Self::StoppedAtCommit,
        Self::Deadlock,
        Self::Twins,
        Self::ReadOnly,
        Self::Failover,
        Self::FailoverBehind,
        Self::ColumnAdded,
        Self::RecreatedAlive,
        Self::DroppedAlive,
        Self::Exhausted,
        Self::BlockedNeighbours,
        Self::MemoryShort,
        Self::DescriptorsShort,
        Self::Cuts,
    ];

    /// Its name in cells.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::RandomKills => "random-kills",
            Self::FirstEpoch => "first-epoch",
            Self::Drain => "drain",
            Self::TwoWorkers => "two-workers",
            Self::TakeOver => "take-over",
            Self::ZombieLate => "zombie-late",
            Self::ZombieEarly => "zombie-early",
            Self::FailingCommit => "failing-commit",
            Self::FailingLastCommit => "failing-last-commit",
            Self::DoubtfulZombie => "doubtful-zombie",
            Self::Poison => "poison",
            Self::TwoReplays => "two-replays",
            Self::LateReplay => "late-replay",
            Self::TableRecreated => "table-recreated",
            Self::KeyChanged => "key-changed",
            Self::Renamed => "renamed",
            Self::RenamedAlive => "renamed-alive",
            Self::Restored => "restored",
            Self::RestoredGap => "restored-gap",
            Self::DiskFull => "disk-full",
            Self::Rotation => "rotation",
            Self::Truncated => "truncated",
            Self::TruncatedAlive => "truncated-alive",
            Self::Replaced => "replaced",
            Self::LatestStart => "latest-start",
            Self::NaiveKills => "naive-kills",
            Self::SpoiledCommit => "spoiled-commit",
            Self::HeldAnswer => "held-answer",
            Self::StoppedInData => "server-stopped-in-data",
            Self::StoppedAtCommit => "server-stopped-at-commit",
            Self::Deadlock => "deadlock",
            Self::Twins => "twins",
            Self::ReadOnly => "read-only",
            Self::Failover => "failover",
            Self::FailoverBehind => "failover-behind",
            Self::ColumnAdded => "column-added",
            Self::RecreatedAlive => "recreated-alive",
            Self::DroppedAlive => "dropped-alive",
            Self::Exhausted => "connections-exhausted",
            Self::BlockedNeighbours => "blocked-neighbours",
            Self::MemoryShort => "memory-short",
            Self::DescriptorsShort => "descriptors-short",
            Self::Cuts => "cuts",
        }
    }

    /// The settings in which it is told, over files and over servers.
    #[must_use]
    pub fn settings(self) -> Vec<Setting> {
        let mut all = self.over_files();
        all.extend(self.over_server(Stack::Postgres, Stack::PostgresOnly));
        all.extend(
            self.over_server(Stack::Mysql, Stack::MysqlAndPostgres)
                .into_iter()
                .filter(|setting| self.is_for_mysql(*setting)),
        );
        all
    }

    fn over_files(self) -> Vec<Setting> {
        let strictest = Setting::strictest();
        let exactly = |shape| Setting::new(Guarantee::ExactlyOnce, shape, Place::Sink);
        match self {
            Self::Plain => {
                let mut all = crate::catalog::SETTINGS.to_vec();
                all.extend([exactly(Shape::UpdateJoined), exactly(Shape::UpdateSlots)]);
                all.extend([exactly(Shape::IgnoreEvent), exactly(Shape::NewerDeclared)]);
                // Only the weakest promises allow that later events of a key are dropped for good.
                all.push(Setting::new(Guarantee::AtMostOnce, Shape::IgnoreDiffering, Place::Sink));
                all
            }
            Self::RandomKills => crate::catalog::SETTINGS.to_vec(),
            Self::Drain | Self::TakeOver | Self::ZombieEarly | Self::ZombieLate => vec![
                strictest,
                exactly(Shape::Update),
                Setting::new(Guarantee::AtLeastOnce, Shape::Append, Place::Sink),
                Setting::new(Guarantee::IdempotentKeys, Shape::Newer, Place::Sink),
            ],
            Self::FailingLastCommit => vec![
                strictest,
                exactly(Shape::Newer),
                Setting::new(Guarantee::AtLeastOnce, Shape::Append, Place::Sink),
                Setting::new(Guarantee::IdempotentKeys, Shape::Update, Place::Sink),
            ],
            Self::FailingCommit | Self::DiskFull => vec![
                strictest,
                exactly(Shape::Update),
                Setting::new(Guarantee::AtLeastOnce, Shape::Append, Place::Sink),
                Setting::new(Guarantee::AtMostOnce, Shape::Append, Place::Sink),
            ],
            Self::Poison => vec![strictest, exactly(Shape::IgnoreEvent), exactly(Shape::Newer)],
            Self::LateReplay => vec![exactly(Shape::Newer), exactly(Shape::NewerDeclared)],
            Self::Restored | Self::Rotation => vec![strictest, exactly(Shape::Update)],
            Self::BlockedNeighbours | Self::MemoryShort | Self::DescriptorsShort => company::SETTINGS.to_vec(),
            Self::NaiveKills => vec![
                Setting::new(Guarantee::AtLeastOnce, Shape::Append, Place::State),
                Setting::new(Guarantee::AtMostOnce, Shape::Append, Place::State),
                Setting::new(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State),
            ],
            Self::Cuts => cuts::SETTINGS.to_vec(),
            Self::TwoWorkers
            | Self::FirstEpoch
            | Self::DoubtfulZombie
            | Self::TwoReplays
            | Self::TableRecreated
            | Self::KeyChanged
            | Self::Renamed
            | Self::RenamedAlive
            | Self::RestoredGap
            | Self::Truncated
            | Self::TruncatedAlive
            | Self::Replaced
            | Self::LatestStart => vec![strictest],
            Self::SpoiledCommit
            | Self::HeldAnswer
            | Self::StoppedInData
            | Self::StoppedAtCommit
            | Self::Deadlock
            | Self::Twins
            | Self::ReadOnly
            | Self::Failover
            | Self::FailoverBehind
            | Self::ColumnAdded
            | Self::RecreatedAlive
            | Self::DroppedAlive
            | Self::Exhausted => Vec::new(),
        }
    }

    /// What MariaDB has no part in.
    fn is_for_mysql(self, setting: Setting) -> bool {
        // A row that is written over in place needs no room on a disk. A second unique index is refused.
        match setting.shape {
            Shape::Append => true,
            Shape::UpdateSlots => false,
            Shape::IgnoreFirst
            | Shape::IgnoreDiffering
            | Shape::IgnoreEvent
            | Shape::Update
            | Shape::UpdateJoined
            | Shape::Newer
            | Shape::NewerDeclared => self != Self::DiskFull,
        }
    }

    /// Whether it needs a server that follows another one.
    #[must_use]
    pub const fn needs_replica(self) -> bool {
        matches!(self, Self::Failover | Self::FailoverBehind)
    }

    /// With the state in a file on `first`, with both in servers on `second`.
    fn over_server(self, first: Stack, second: Stack) -> Vec<Setting> {
        let strictest = Setting::strictest();
        let (both, one) = ([first, second], [first]);
        let everywhere = match first.engine() {
            Engine::Mysql => crate::catalog::MYSQL_SETTINGS.to_vec(),
            Engine::Postgres | Engine::Sqlite => crate::catalog::SERVER_SETTINGS.to_vec(),
        };
        let on = |settings: &[Setting], stacks: &[Stack]| {
            settings.iter().flat_map(|setting| stacks.iter().map(|stack| setting.on(*stack))).collect::<Vec<_>>()
        };
        let exactly = |shape| Setting::new(Guarantee::ExactlyOnce, shape, Place::Sink);
        match self {
            Self::RandomKills => everywhere,
            Self::Plain => {
                let mut all = everywhere;
                let more = [Shape::UpdateJoined, Shape::UpdateSlots, Shape::IgnoreEvent, Shape::NewerDeclared];
                all.extend(more.map(|shape| exactly(shape).on(first)));
                let weakest = Setting::new(Guarantee::AtMostOnce, Shape::IgnoreDiffering, Place::Sink);
                all.push(weakest.on(first));
                all
            }
            Self::TwoWorkers | Self::TakeOver | Self::ZombieEarly | Self::ZombieLate | Self::DoubtfulZombie => {
                on(&[strictest], &both)
            }
            Self::Restored | Self::RestoredGap | Self::Renamed | Self::RenamedAlive | Self::TwoReplays => {
                on(&[strictest], &both)
            }
            Self::StoppedInData | Self::StoppedAtCommit => {
                let mut all = on(&[strictest], &both);
                all.extend(on(&[Setting::new(Guarantee::AtMostOnce, Shape::Append, Place::State)], &one));
                all
            }
            Self::Exhausted | Self::ReadOnly => on(&[strictest], &both),
            // What files have to say about these has nothing to do with the target.
            Self::Rotation | Self::Truncated | Self::TruncatedAlive | Self::Replaced | Self::LatestStart => Vec::new(),
            Self::SpoiledCommit | Self::HeldAnswer => on(&[strictest, exactly(Shape::Update)], &one),
            Self::ColumnAdded => on(&[strictest, exactly(Shape::Newer)], &one),
            Self::Deadlock | Self::Twins => on(&[exactly(Shape::Update)], &one),
            Self::BlockedNeighbours | Self::MemoryShort | Self::DescriptorsShort => on(&[strictest], &one),
            // A promoted replica of MariaDB's is known by a row that was written, which in `newer` is never removed, or it is
            // another table.
            Self::Failover if first.engine() == Engine::Mysql => on(&[strictest, exactly(Shape::Newer)], &one),
            Self::Failover | Self::FailoverBehind | Self::RecreatedAlive | Self::DroppedAlive => on(&[strictest], &one),
            Self::FirstEpoch
            | Self::Drain
            | Self::FailingCommit
            | Self::FailingLastCommit
            | Self::Poison
            | Self::LateReplay
            | Self::TableRecreated
            | Self::KeyChanged
            | Self::DiskFull
            | Self::NaiveKills => on(&self.over_files(), &one),
            // They take long, and the other guarantees write in the same way.
            Self::Cuts => on(&[exactly(Shape::Update)], &one),
        }
    }

    /// What it needs of a server.
    #[must_use]
    pub fn need(self, engine: Engine) -> Need {
        match self {
            Self::StoppedInData | Self::StoppedAtCommit | Self::Restored | Self::RestoredGap => Need::Own(Wish::Plain),
            Self::DiskFull => Need::Own(Wish::Limited),
            Self::Failover | Self::FailoverBehind => Need::Own(Wish::Primary),
            Self::Exhausted => Need::Own(Wish::Narrow),
            // MariaDB is read-only as a whole, and counts the deadlocks of all databases together.
            Self::ReadOnly | Self::Deadlock | Self::Twins if engine == Engine::Mysql => Need::Own(Wish::Plain),
            Self::Plain
            | Self::RandomKills
            | Self::FirstEpoch
            | Self::Drain
            | Self::TwoWorkers
            | Self::TakeOver
            | Self::ZombieLate
            | Self::ZombieEarly
            | Self::FailingCommit
            | Self::FailingLastCommit
            | Self::DoubtfulZombie
            | Self::Poison
            | Self::TwoReplays
            | Self::LateReplay
            | Self::TableRecreated
            | Self::KeyChanged
            | Self::Renamed
            | Self::RenamedAlive
            | Self::Rotation
            | Self::Truncated
            | Self::TruncatedAlive
            | Self::Replaced
            | Self::LatestStart
            | Self::NaiveKills
            | Self::SpoiledCommit
            | Self::HeldAnswer
            | Self::Deadlock
            | Self::Twins
            | Self::ReadOnly
            | Self::ColumnAdded
            | Self::RecreatedAlive
            | Self::DroppedAlive
            | Self::BlockedNeighbours
            | Self::MemoryShort
            | Self::DescriptorsShort
            | Self::Cuts => Need::Databases,
        }
    }

    /// What its input is like.
    #[must_use]
    pub const fn mix(self) -> Mix {
        match self {
            // Byte offsets and epochs are easier to read in the logs of these without poison, and they lose nothing.
            Self::LatestStart | Self::TableRecreated | Self::RecreatedAlive | Self::DroppedAlive => Mix::Clean,
            // After a rejection rows are written in lane order, and twins may meet in a deadlock, which is tried again.
            Self::Twins => Mix::Clean,
            Self::Plain
            | Self::RandomKills
            | Self::FirstEpoch
            | Self::Drain
            | Self::TwoWorkers
            | Self::TakeOver
            | Self::ZombieLate
            | Self::ZombieEarly
            | Self::FailingCommit
            | Self::FailingLastCommit
            | Self::DoubtfulZombie
            | Self::Poison
            | Self::TwoReplays
            | Self::LateReplay
            | Self::KeyChanged
            | Self::Renamed
            | Self::RenamedAlive
            | Self::Restored
            | Self::RestoredGap
            | Self::DiskFull
            | Self::Rotation
            | Self::Truncated
            | Self::TruncatedAlive
            | Self::Replaced
            | Self::NaiveKills
            | Self::SpoiledCommit
            | Self::HeldAnswer
            | Self::StoppedInData
            | Self::StoppedAtCommit
            | Self::Deadlock
            | Self::ReadOnly
            | Self::Failover
            | Self::FailoverBehind
            | Self::ColumnAdded
            | Self::Exhausted
            | Self::BlockedNeighbours
            | Self::MemoryShort
            | Self::DescriptorsShort
            | Self::Cuts => Mix::Poisoned,
        }
    }

    /// Tells it.
    ///
    /// # Errors
    /// If it could not be told to its end; that is a failed cell.
    pub fn run(self, world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
        match self {
            Self::Plain => kills::plain(world),
            Self::RandomKills => kills::random(world, random),
            Self::FirstEpoch => kills::first_epoch(world),
            Self::Drain => kills::drain(world, random),
            Self::NaiveKills => kills::naive(world, random),
            Self::TwoWorkers => workers::standby(world),
            Self::TakeOver => workers::take_over(world),
            Self::ZombieLate => workers::zombie_late(world, random),
            Self::ZombieEarly => workers::zombie_early(world, random),
            Self::FailingCommit => doubt::failing_commit(world, random),
            Self::FailingLastCommit => doubt::failing_last_commit(world),
            Self::DoubtfulZombie => doubt::zombie(world, random),
            Self::Poison => letters::poison(world),
            Self::TwoReplays => letters::two_replays(world),
            Self::LateReplay => letters::late_replay(world),
            Self::TableRecreated => contract::table_recreated(world),
            Self::KeyChanged => contract::key_changed(world),
            Self::Renamed => contract::renamed(world),
            Self::RenamedAlive => contract::renamed_alive(world),
            Self::Restored => restore::rewind(world),
            Self::RestoredGap => restore::gap(world),
            Self::DiskFull => disk::full(world),
            Self::Rotation => files::rotation(world),
            Self::Truncated => files::truncated(world),
            Self::TruncatedAlive => files::truncated_alive(world),
            Self::Replaced => files::replaced(world),
            Self::LatestStart => files::latest_start(world),
            Self::SpoiledCommit => wire::spoiled(world, random),
            Self::HeldAnswer => wire::held(world, random),
            Self::StoppedInData => server::stopped_at(world, random, "sql.data_middle"),
            Self::StoppedAtCommit => server::stopped_at(world, random, "sql.commit_sent"),
            Self::ReadOnly => server::read_only(world),
            Self::Failover => failover::failover(world),
            Self::FailoverBehind => failover::behind(world),
            Self::Exhausted => server::exhausted(world),
            Self::Deadlock => locks::deadlock(world),
            Self::Twins => locks::twins(world),
            Self::ColumnAdded => contract::column_added(world),
            Self::RecreatedAlive => contract::recreated_alive(world),
            Self::DroppedAlive => contract::dropped_alive(world),
            Self::BlockedNeighbours => limits::blocked_neighbours(world, random),
            Self::MemoryShort => limits::memory_short(world, random),
            Self::DescriptorsShort => limits::descriptors_short(world, random),
            Self::Cuts => cuts::compared(world, random),
        }
    }
}
