//! The fault points that exist, what can be done at each, and how a worker is brought there.

/// What is done to a process at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// SIGKILL.
    Kill,
    /// SIGSTOP until another worker has taken over, or has named the holder; then SIGCONT.
    Stop,
    /// The server commits, and its answer never arrives.
    Drop,
    /// The server never gets the COMMIT.
    Lose,
}

impl Action {
    /// Its name in cells and in the environment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Drop => "drop",
            Self::Lose => "lose",
        }
    }

    /// Whether it is done to the wire and not to the process.
    #[must_use]
    pub const fn needs_wire(self) -> bool {
        match self {
            Self::Kill | Self::Stop => false,
            Self::Drop | Self::Lose => true,
        }
    }
}

/// How a worker is brought to a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// It passes there once at every start.
    Start,
    /// It passes there in every epoch, or in most.
    Epoch,
    /// It passes there in epochs of which rows are refused, if it commits what it has judged as soon as it can.
    Prefix,
    /// It passes there in every input of which a transform makes two events.
    Pair,
    /// It passes there about once a second: the input must last that long.
    Second,
    /// SIGTERM while it works.
    Drain,
    /// `hapax reset`.
    Reset,
    /// A COMMIT that fails.
    Doubt,
    /// `hapax dlq replay`.
    Replay,
}

impl Way {
    /// The time that must be over at once for a worker to get there.
    #[must_use]
    pub const fn hurry(self) -> Option<&'static str> {
        match self {
            Self::Prefix => Some("second-pass"),
            Self::Start
            | Self::Epoch
            | Self::Pair
            | Self::Second
            | Self::Drain
            | Self::Reset
            | Self::Doubt
            | Self::Replay => None,
        }
    }
}

/// Whether a point is passed where progress is kept in the state store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// On both write paths.
    Everywhere,
    /// Only where progress is in the sink.
    SinkOnly,
    /// Only where progress is in the state store.
    StateOnly,
}

/// A named place in the program under test.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Its name.
    pub name: &'static str,
    /// What can be done there.
    pub actions: &'static [Action],
    /// How a worker gets there.
    pub way: Way,
    /// On which write paths.
    pub reach: Reach,
    /// The fault comes at the latest at this pass.
    pub latest_pass: u64,
}

const K: &[Action] = &[Action::Kill];
const KS: &[Action] = &[Action::Kill, Action::Stop];
const KD: &[Action] = &[Action::Kill, Action::Drop];
const KDL: &[Action] = &[Action::Kill, Action::Drop, Action::Lose];
const KDLS: &[Action] = &[Action::Kill, Action::Drop, Action::Lose, Action::Stop];

const fn point(name: &'static str, actions: &'static [Action], way: Way, reach: Reach, latest_pass: u64) -> Point {
    Point { name, actions, way, reach, latest_pass }
}

/// Every point of the engine, of SQL, of `progress: state` and of dead letters. Drop and lose need a wire, and SQLite has none.
pub static POINTS: [Point; 28] = [
    point("look.done", K, Way::Start, Reach::Everywhere, 1),
    point("claim.sent", KDL, Way::Start, Reach::Everywhere, 1),
    point("claim.answered", KS, Way::Start, Reach::Everywhere, 1),
    point("source.assigned", K, Way::Start, Reach::Everywhere, 1),
    point("fill.middle", KS, Way::Epoch, Reach::Everywhere, 8),
    point("fill.input_half_emitted", K, Way::Pair, Reach::Everywhere, 500),
    point("barrier", K, Way::Epoch, Reach::Everywhere, 8),
    point("commit.answered", KS, Way::Epoch, Reach::Everywhere, 8),
    point("witness.saved", K, Way::Second, Reach::Everywhere, 1),
    point("source.acked", K, Way::Epoch, Reach::Everywhere, 3),
    point("reclaim.sent", KD, Way::Doubt, Reach::SinkOnly, 2),
    point("drain.sigterm", K, Way::Drain, Reach::Everywhere, 1),
    point("reset.middle", K, Way::Reset, Reach::SinkOnly, 1),
    point("sql.begun", K, Way::Epoch, Reach::Everywhere, 8),
    point("sql.cas_done", KS, Way::Epoch, Reach::SinkOnly, 8),
    point("sql.data_middle", KS, Way::Epoch, Reach::Everywhere, 8),
    point("sql.rejected", K, Way::Epoch, Reach::Everywhere, 3),
    point("sql.bisect_middle", K, Way::Epoch, Reach::Everywhere, 3),
    point("sql.prefix_committed", KD, Way::Prefix, Reach::SinkOnly, 5),
    point("sql.dead_letters_written", K, Way::Epoch, Reach::SinkOnly, 3),
    point("sql.before_commit", KS, Way::Epoch, Reach::Everywhere, 8),
    point("sql.commit_sent", KDLS, Way::Epoch, Reach::Everywhere, 8),
    point("state.intent_saved", K, Way::Epoch, Reach::StateOnly, 8),
    point("state.rows_written", K, Way::Epoch, Reach::StateOnly, 8),
    point("dlq.locked", KS, Way::Replay, Reach::SinkOnly, 1),
    point("dlq.output_written", K, Way::Replay, Reach::SinkOnly, 1),
    point("dlq.marked", K, Way::Replay, Reach::SinkOnly, 1),
    point("dlq.commit_sent", KD, Way::Replay, Reach::SinkOnly, 1),
];

/// The point with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Point> {
    POINTS.iter().find(|point| point.name == name)
}
