//! An epoch's tries: the first carries many rows per statement, the next goes in lane order; which follows which.

use std::collections::BTreeMap;

use hapax_engine::sink::SinkError;
pub use hapax_engine::sink::WriteOutcome as Outcome;
use hapax_model::letter::{Cause, Stage};
use hapax_model::mode::ConflictMode;

use super::mapping::{Mapping, WriteOrder};

/// The table took the statement and changed no row.
pub const SWALLOWED: &str = "HX2023";
/// How often one commit reads the schema again before it gives up.
const SCHEMA_READS: u32 = 2;
/// How often one commit goes again after a deadlock before the engine hears of it: where no lock keeps lanes that sort their rows from
/// one that cannot, the same one may be the victim several times in a row.
const AGAINS: u32 = 10;

/// How an epoch's rows are tried.
#[derive(Debug, Clone)]
pub enum Pass {
    /// Reduced, sorted, many rows per statement, no savepoint.
    Fast,
    /// In lane order, with savepoints. Events that are known to end the whole transaction are left out.
    Slow {
        /// Those events, and why.
        known: BTreeMap<usize, Cause>,
    },
}

impl Pass {
    /// In lane order, with savepoints.
    #[must_use]
    pub const fn slow() -> Self {
        Self::Slow { known: BTreeMap::new() }
    }

    /// The same, but in lane order and without an event whose row ends the whole transaction.
    #[must_use]
    pub fn without(self, event: usize, cause: Cause) -> Self {
        let mut known = match self {
            Self::Fast => BTreeMap::new(),
            Self::Slow { known } => known,
        };
        known.insert(event, cause);
        Self::Slow { known }
    }
}

/// Whether a try writes beside others into the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Beside others that do so too: all lock rows in the order of their keys, so none waits in a circle.
    BesideOthers,
    /// Alone: it may lock rows in any order.
    Alone,
}

/// Why a try ended before its COMMIT. The caller rolls back.
#[derive(Debug)]
pub enum Trouble {
    /// A row was refused: try again slowly.
    Refused,
    /// This event's row ended the whole transaction: try again without it.
    Without(usize, Cause),
    /// The statements do not fit the table: read the schema again.
    Schema(String),
    /// Nobody is to blame, as in a deadlock: the same again, a little later.
    Again(SinkError),
    /// Nothing that another try would cure.
    Stop(SinkError),
}

impl From<SinkError> for Trouble {
    fn from(error: SinkError) -> Self {
        Self::Stop(error)
    }
}

/// Whose fault an error is that came while rows were written.
#[derive(Debug)]
pub enum Fault {
    /// The row's: the target refuses it and would take others.
    Row(Cause),
    /// The statement no longer fits the table.
    Schema(String),
    /// Nobody's, as in a deadlock.
    Again(SinkError),
    /// The target's, or the connection's.
    Target(SinkError),
}

impl From<Fault> for Trouble {
    /// In a first try, where it does not matter which row it was.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Row(_) => Self::Refused,
            Fault::Schema(message) => Self::Schema(message),
            Fault::Again(error) => Self::Again(error),
            Fault::Target(error) => Self::Stop(error),
        }
    }
}

/// The tries of one commit.
#[derive(Debug)]
pub struct Tries {
    /// How the next one goes.
    pub pass: Pass,
    schema_reads: u32,
    agains: u32,
}

/// What must happen before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing.
    Nothing,
    /// The live table is read again.
    ReadSchema,
    /// A moment passes, of random length.
    Pause,
}

impl Tries {
    /// Begins with this pass.
    #[must_use]
    pub const fn new(pass: Pass) -> Self {
        Self { pass, schema_reads: 0, agains: 0 }
    }

    /// Whether the next try writes beside others. In lane order it locks rows in any order, and whoever ended in a deadlock
    /// once does not risk another. What only appends shares no rows.
    #[must_use]
    pub fn turn<C>(&self, mapping: &Mapping<C>) -> Turn {
        let in_lane_order = match (&mapping.order, &self.pass) {
            (WriteOrder::LaneOrder { .. }, _) => true,
            (WriteOrder::AnyOrder, Pass::Slow { .. }) => mapping.mode != ConflictMode::Append,
            (WriteOrder::AnyOrder, Pass::Fast) => false,
        };
        if in_lane_order || self.agains > 0 { Turn::Alone } else { Turn::BesideOthers }
    }

    /// Decides what follows a try that ended before its COMMIT.
    ///
    /// # Errors
    /// If no other try would cure it.
    pub fn after(&mut self, trouble: Trouble, target: &str) -> Result<Before, SinkError> {
        let pass = std::mem::replace(&mut self.pass, Pass::Fast);
        self.pass = match trouble {
            Trouble::Stop(error) => return Err(error),
            Trouble::Again(error) if self.agains == AGAINS => return Err(error),
            Trouble::Again(_) => {
                self.agains += 1;
                self.pass = pass;
                return Ok(Before::Pause);
            }
            Trouble::Refused => match pass {
                Pass::Fast => Pass::slow(),
                // In lane order a refused row is no trouble; whatever is known stays known.
                slow @ Pass::Slow { .. } => slow,
            },
            Trouble::Without(event, cause) => pass.without(event, cause),
            Trouble::Schema(message) if self.schema_reads == SCHEMA_READS => {
                return Err(SinkError::SchemaEvolution { target: target.to_owned(), message });
            }
            Trouble::Schema(_) => {
                self.schema_reads += 1;
                self.pass = pass;
                return Ok(Before::ReadSchema);
            }
        };
        Ok(Before::Nothing)
    }
}

/// The cause of rows that a trigger drops silently.
#[must_use]
pub fn swallowed(table: &str, sent: u64, changed: u64) -> Cause {
    Cause {
        stage: Stage::Write,
        code: SWALLOWED,
        message: format!(
            "table \"{table}\" took {sent} rows and changed {changed}: a trigger of it drops rows silently"
        ),
        fingerprint: format!("a trigger of table \"{table}\" drops rows silently"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::live::SilentDrop;
    use super::*;

    fn mapping(mode: ConflictMode) -> Mapping<()> {
        Mapping {
            table: "t".into(),
            mode,
            why: String::new(),
            fields: Vec::new(),
            columns: Vec::new(),
            key: Vec::new(),
            version: None,
            gone: Vec::new(),
            order: WriteOrder::AnyOrder,
            silent_drop: SilentDrop::Impossible,
        }
    }

    /// Goal: what is known of events that end the transaction survives every later try. Method: one of each trouble.
    #[test]
    fn what_is_known_of_an_event_stays_known() {
        let mut tries = Tries::new(Pass::Fast);
        assert_eq!(tries.after(Trouble::Refused, "t").unwrap(), Before::Nothing);
        tries.after(Trouble::Without(7, swallowed("t", 1, 0)), "t").unwrap();
        tries.after(Trouble::Refused, "t").unwrap();
        assert_eq!(tries.after(Trouble::Schema("x".into()), "t").unwrap(), Before::ReadSchema);
        let Pass::Slow { known } = &tries.pass else { panic!("{tries:?}") };
        assert_eq!(known.keys().copied().collect::<Vec<_>>(), [7]);
    }

    /// Goal: whoever locks rows in any order does so alone, and so does who met a deadlock. Method: the tries of one commit,
    /// over mappings of two modes.
    #[test]
    fn a_second_pass_and_the_victim_of_a_deadlock_go_alone() {
        let (update, append) = (mapping(ConflictMode::Update), mapping(ConflictMode::Append));
        let mut tries = Tries::new(Pass::Fast);
        assert_eq!(tries.turn(&update), Turn::BesideOthers);
        tries.after(Trouble::Refused, "t").unwrap();
        assert_eq!((tries.turn(&update), tries.turn(&append)), (Turn::Alone, Turn::BesideOthers));
        let mut tries = Tries::new(Pass::Fast);
        let deadlock = SinkError::ConnectionFailed { target: "t".into(), message: "deadlock".into() };
        assert_eq!(tries.after(Trouble::Again(deadlock), "t").unwrap(), Before::Pause);
        assert_eq!((tries.turn(&update), tries.turn(&append)), (Turn::Alone, Turn::Alone));
    }

    /// Goal: a table that never stands still ends the tries. Method: schema trouble once too often.
    #[test]
    fn the_schema_is_read_again_only_so_often() {
        let mut tries = Tries::new(Pass::Fast);
        for _ in 0..SCHEMA_READS {
            tries.after(Trouble::Schema("moved".into()), "t").unwrap();
        }
        let error = tries.after(Trouble::Schema("moved".into()), "t").unwrap_err();
        assert!(matches!(error, SinkError::SchemaEvolution { .. }), "{error}");
    }
}
