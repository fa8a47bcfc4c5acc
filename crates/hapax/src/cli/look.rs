//! The commands that look: what the user typed. None of them claims, locks or needs a worker.

use std::time::Duration;

use clap::Args;
use hapax_model::position::Position;

/// Which deliveries are looked at.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LookChoice {
    /// Only of this workflow.
    #[arg(long, value_name = "ID")]
    pub(crate) workflow: Option<String>,
    /// Only of this sink.
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Only of this lane, as `status` prints it.
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<String>,
}

/// `hapax trace`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax trace 4096                                  the input at position 4096
  hapax trace order_id=7                            the thing that these key fields name; a=1,b=x for several
  hapax trace order_id=7 --search                   also where its events are in the source
  hapax trace h1_aebagbafaydqqcikbmga2dqpca         a key as a key column, a letter or `tap` shows it

A value that reads as a number, true or false is one; write order_id='\"7\"' for the text. Of each delivery it tells where \
the input lies, which epoch of the log holds it, its dead letter, its row as it stands, and a verdict: delivered, dead \
letter, not yet read, in flight, unknown because the log was pruned, or before the start.")]
pub(crate) struct TraceArgs {
    /// A position as `status` prints it, a key (`h1_…`), or key fields (`name=value`; several joined by commas, or
    /// given one after the other).
    #[arg(value_name = "KEY|POSITION", required = true)]
    pub(crate) what: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: LookChoice,
    /// Which file of a rotated lane the position lies in, by its number in the chain; by default the one that is read now.
    #[arg(long, value_name = "NUMBER", conflicts_with = "search")]
    pub(crate) file: Option<u32>,
    /// Read the source to find the events of the key: from `--from` on, at most `--limit` inputs.
    #[arg(long)]
    pub(crate) search: bool,
    /// Where the search begins; by default where the epoch log does.
    #[arg(long, value_name = "POSITION", requires = "search")]
    pub(crate) from: Option<Position>,
    /// How many inputs the search reads at most.
    #[arg(long, value_name = "INPUTS", default_value_t = 1_000_000, requires = "search")]
    pub(crate) limit: u64,
}

/// `hapax stuck`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax stuck
  hapax stuck --older-than 5m --json

One line for each thing that waits: since when, why, and whose turn it is. The exit code is 0 if nothing waits, else 1.")]
pub(crate) struct StuckArgs {
    #[command(flatten)]
    pub(crate) choice: LookChoice,
    /// Inputs that wait longer than this for their delivery are stuck.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub(crate) older_than: Duration,
}

/// `hapax reconcile`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax reconcile                     the newest 100,000 inputs of every delivery
  hapax reconcile orders --deep       everything that the epoch log of one workflow reaches
  hapax reconcile --sample 5000       a quick look

The ledger must add up, the epoch log must be a chain without a gap and its sum the ledger's, each dead input must have its \
letter, and the target must hold what the log says. With a key, the source is read again over the logged range and each \
key is asked for; without one, rows are counted. The first difference is named. The exit code is 0 if everything adds up, \
else 1.")]
pub(crate) struct ReconcileArgs {
    /// Only this workflow.
    #[arg(value_name = "WORKFLOW")]
    pub(crate) workflow: Option<String>,
    /// Only this sink.
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Only this lane.
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<String>,
    /// Compare the newest epochs that hold at least so many inputs.
    #[arg(long, value_name = "INPUTS", default_value_t = 100_000, conflicts_with = "deep")]
    pub(crate) sample: u64,
    /// Compare everything that the log reaches and the source still holds.
    #[arg(long)]
    pub(crate) deep: bool,
    /// Others write to the table too, or it had rows before: more rows than were delivered are no difference.
    #[arg(long)]
    pub(crate) shared_table: bool,
}

/// `hapax top`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax top                                  on a terminal: drawn again each second, q ends
  hapax top --interval 5s --count 12 | tee   elsewhere: a line for each delivery, twelve times

Everything comes from the databases, so it works from any machine that reaches them.")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) choice: LookChoice,
    /// How long to wait between two looks.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(crate) interval: Duration,
    /// End after so many looks.
    #[arg(long, value_name = "LOOKS")]
    pub(crate) count: Option<u64>,
}

/// `hapax tap`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax tap orders                       the first ten events
  hapax tap orders --from latest --follow
  hapax tap orders --from 4096 --count 1 --json

Shows events as the workflow sees them: position, key, fields, or the dead letter that the input would become. It reads the \
source on its own; nothing is claimed, acknowledged or delivered.")]
pub(crate) struct TapArgs {
    /// The workflow.
    #[arg(value_name = "WORKFLOW")]
    pub(crate) workflow: String,
    /// Only this sink of it: its columns decide which fields fit.
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Only this lane.
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<String>,
    /// Where to begin: `earliest`, `latest`, or a position as `status` prints it.
    #[arg(long, value_name = "PLACE", default_value = "earliest")]
    pub(crate) from: String,
    /// End after so many inputs; 10 unless it follows.
    #[arg(long, value_name = "INPUTS")]
    pub(crate) count: Option<u64>,
    /// Wait for more at the end of the source.
    #[arg(long)]
    pub(crate) follow: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    hapax_model::units::parse_duration(text).map_err(|error| error.to_string())
}
