//! The command line: what the user typed, and nothing decided yet.

#[cfg(feature = "broker")]
mod broker;
mod look;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "broker")]
pub(crate) use broker::{Bootstrap, BrokerArgs, From, TopicCommand, TopicCreateArgs, TopicReadArgs, TopicWriteArgs};
pub(crate) use look::{LookChoice, ReconcileArgs, StuckArgs, TapArgs, TopArgs, TraceArgs};

/// Delivers every event once, and lets you try to break it.
#[derive(Debug, Parser)]
#[command(name = "hapax", version, about, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Start with `hapax demo`. Exit codes: 0 done, 1 failed, 2 usage or configuration, \
3 guarantee refused, 4 fenced by another worker, 5 a gap or a changed contract that needs a person.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Shared {
    /// Configuration file, or a folder of them.
    #[arg(short, long, global = true, value_name = "PATH", default_value = crate::config::DEFAULT_FILE)]
    pub(crate) config: PathBuf,
    /// Answer in JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How logs look. They go to standard error.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or a filter such as `hapax_engine=debug`.
    #[arg(long, global = true, value_name = "LEVEL", env = "HAPAX_LOG")]
    pub(crate) log_level: Option<String>,
}

/// How logs look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show it: two workers on one stream, both killed again and again; one loses nothing and doubles nothing.
    Demo(DemoArgs),
    /// Write a configuration: asks from where and to where, looks at both, and proposes keys and columns.
    Init(InitArgs),
    /// Say whether each workflow's guarantee holds, and why, without running anything.
    Check(CheckArgs),
    /// Run the tests of the configuration: the real workflow over memory, in several batch sizes and with restarts.
    Test(TestArgs),
    /// Deliver.
    Run(RunArgs),
    /// Make, print or drop the tables that Hapax keeps beside the data.
    Setup(SetupArgs),
    /// Show how each delivery stands: progress, ledger, dead letters, who works on it.
    Status(StatusArgs),
    /// Tell the story of one input or one key: where it is, in which epoch, its dead letter, its row, and a verdict.
    Trace(TraceArgs),
    /// Say what waits, since when, why, and whose turn it is.
    Stuck(StuckArgs),
    /// Count the target against the epoch log and the ledger, and name the first difference.
    Reconcile(ReconcileArgs),
    /// Watch all deliveries live: rates, lag, dead letters, workers.
    Top(TopArgs),
    /// Show events as a workflow sees them, without delivering any.
    Tap(TapArgs),
    /// Look at dead letters, replay them or discard them; no worker needs to be alive.
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Move a delivery's position, accept a changed contract, or take over a renamed workflow's progress.
    Reset(ResetArgs),
    /// Ask the workers of a workflow to deliver what they have read and read no more, until `resume`.
    Pause(PauseArgs),
    /// Let a paused workflow go on.
    Resume(ResumeArgs),
    /// Run a log that Kafka clients take for Kafka: in one file, or on PostgreSQL.
    #[cfg(feature = "broker")]
    Broker(BrokerArgs),
    /// Make, list, show and delete topics of a broker; read and write records.
    #[cfg(feature = "broker")]
    #[command(subcommand)]
    Topic(TopicCommand),
    /// Show the configuration as it is understood, or its JSON Schema.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// `hapax demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Chooses the orders and the moments at which the workers are killed.
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// How many orders are sent.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) orders: u64,
    /// How often both workers are killed.
    #[arg(long, default_value_t = 8)]
    pub(crate) kills: u32,
    /// Where the demo's files go; made new. They stay: `hapax run` can go on with them.
    #[arg(long, default_value = "hapax-demo", value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// `hapax init`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax init                                            asks, on a terminal
  hapax init --from orders.csv --to sqlite:shop.db --table orders
  hapax init --from 'in/*.jsonl' --to postgres://app:secret@db.example.org/shop --table sales.orders
  hapax init --from generate --to mysql://root@127.0.0.1/shop --output demo/hapax.yaml

It reads the first 200 events and the live table, and writes nothing but the one file. A password goes into a variable,
never into the file.")]
pub(crate) struct InitArgs {
    /// Where events come from: a file of JSON lines or CSV, a pattern of files, or `generate`.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: Option<String>,
    /// Where they go: `sqlite:FILE`, `postgres://…` or `mysql://…`.
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: Option<String>,
    /// The table; named after the source unless you say so.
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// A field that names a row; may be given several times. Proposed from the table's primary key.
    #[arg(long, value_name = "FIELD")]
    pub(crate) key: Vec<String>,
    /// The workflow's id; named after the source unless you say so.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// What is promised.
    #[arg(long, value_name = "GUARANTEE", value_parser = ["at-most-once", "at-least-once", "idempotent-keys", "exactly-once"])]
    pub(crate) guarantee: Option<String>,
    /// The file to write; the one that `--config` names unless you say so.
    #[arg(long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `hapax check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Say more: the key, the first run, assumptions, and what a client should be told.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Also read the source, the targets' tables and the state store, as `run` does. Nothing is written.
    #[arg(long)]
    pub(crate) live: bool,
}

/// `hapax test`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TestArgs {
    /// Only tests of this workflow, or of this name; may be given several times.
    #[arg(long, value_name = "ID|NAME")]
    pub(crate) only: Vec<String>,
    /// Also print what came out, as it would stand in the test.
    #[arg(long)]
    pub(crate) print: bool,
}

/// `hapax run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Deliver what is there now, then end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Only this workflow; may be given several times.
    #[arg(long, value_name = "ID")]
    pub(crate) only: Vec<String>,
    /// Take deliveries over from a worker that still has the lease. It is fenced and ends with code 4.
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// `hapax setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Print the SQL and change nothing.
    #[arg(long, conflicts_with_all = ["yes", "drop"])]
    pub(crate) sql: bool,
    /// Do it without asking.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Drop what Hapax keeps for this configuration in every target and state store: progress and dead letters are gone.
    #[arg(long)]
    pub(crate) drop: bool,
    /// With --drop: also what these databases hold for workflows that are not in the configuration.
    #[arg(long, requires = "drop")]
    pub(crate) all: bool,
}

/// `hapax status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Only this workflow.
    #[arg(long, value_name = "ID")]
    pub(crate) only: Option<String>,
}

/// `hapax dlq …`.
#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// Group dead letters by cause.
    List(DlqChoice),
    /// Show one letter whole, with its source bytes.
    Show {
        /// The letter's number.
        id: i64,
        #[command(flatten)]
        choice: DlqChoice,
    },
    /// Deliver letters again, by the present configuration. Says first what it would do, and whether it is safe.
    Replay {
        #[command(flatten)]
        choice: DlqChoice,
        #[command(flatten)]
        doing: Doing,
        /// Replay although an older value may overwrite a newer one.
        #[arg(long)]
        overwrite: bool,
        /// Replay letters in doubt although append may write their rows a second time.
        #[arg(long)]
        in_doubt: bool,
        /// At most so many letters, such as 500/s or 30/m: a target that others use is not flooded.
        #[arg(long, value_name = "RATE")]
        rate: Option<String>,
    },
    /// Mark letters as not to be delivered. They stay readable.
    Discard {
        #[command(flatten)]
        choice: DlqChoice,
        #[command(flatten)]
        doing: Doing,
    },
}

impl DlqCommand {
    /// Which letters it is about.
    pub(crate) const fn choice(&self) -> &DlqChoice {
        match self {
            Self::List(choice)
            | Self::Show { choice, .. }
            | Self::Replay { choice, .. }
            | Self::Discard { choice, .. } => choice,
        }
    }
}

/// Which letters.
#[derive(Debug, Clone, Args)]
pub(crate) struct DlqChoice {
    /// Only of this workflow.
    #[arg(long, value_name = "ID")]
    pub(crate) workflow: Option<String>,
    /// Only of this sink.
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Only of this cause: its number or its text, as `list` prints them, or a code such as HX2020.
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
    /// Only these numbers.
    #[arg(long = "id", value_name = "NUMBER")]
    pub(crate) ids: Vec<i64>,
    /// Also letters in these databases whose workflows are not in the configuration.
    #[arg(long)]
    pub(crate) all: bool,
}

/// Whether a command that changes things asks first.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub(crate) struct Doing {
    /// Say what would happen, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do it without asking.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `hapax reset`.
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// The workflow.
    pub(crate) workflow: String,
    /// Only this sink of it.
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Only this lane of it.
    #[arg(long, value_name = "LANE")]
    pub(crate) lane: Option<String>,
    /// Go on at this position: a number, `earliest`, `latest`, or `next` for the beginning of the next file of a chain.
    #[arg(long, value_name = "POSITION")]
    pub(crate) to: Option<String>,
    /// Accept what changed: the contract, the source's incarnation, a target that went back.
    #[arg(long)]
    pub(crate) accept: bool,
    /// Take over the progress of the workflow that had this id before.
    #[arg(long, value_name = "OLD", conflicts_with_all = ["to", "accept"])]
    pub(crate) adopt: Option<String>,
    /// Take over the progress of this lane, whose file was moved or is reached by another path now; --lane names the new one.
    #[arg(long, value_name = "OLD", requires = "lane", conflicts_with_all = ["to", "accept", "adopt"])]
    pub(crate) adopt_lane: Option<String>,
    #[command(flatten)]
    pub(crate) doing: Doing,
}

/// `hapax pause`.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// The workflow.
    pub(crate) workflow: String,
    /// Go on by itself after so long, such as 10m or 2h.
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) lasting: Option<String>,
    /// Why, for those who wonder.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) why: String,
}

/// `hapax resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The workflow.
    pub(crate) workflow: String,
}

/// `hapax config …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// The configuration with every default, secrets hidden.
    Show,
    /// The JSON Schema of the configuration, for editors.
    Schema,
}
