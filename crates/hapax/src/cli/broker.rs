//! `hapax broker` and `hapax topic`: what the user typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Doing;

/// `hapax broker`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax broker                                            one file in hapax-data/broker, 127.0.0.1:9092
  hapax broker --data /var/lib/hapax --listen 127.0.0.1:19092
  hapax broker --store postgres://app@db.example.org/shop     schema kafka of that database
  hapax broker --store postgres://… --id 2 --listen 127.0.0.1:9093    a second one: it stands by and takes over

Every Kafka client can use it, unmodified: kcat -b 127.0.0.1:9092 -L. What it acknowledged (acks=all) survives kill -9 and
power loss. The section `broker` of hapax.yaml says the same and more; flags go before it. It listens on this machine only:
there is no authentication yet. SIGTERM and SIGINT end it in order. Pages for metrics and health: the section `http`.")]
pub(crate) struct BrokerArgs {
    /// Where records are kept: `embedded`, or the URL of a PostgreSQL database.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// The folder of the embedded store.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// Address and port for Kafka clients; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The number by which clients know this broker; brokers on one database need different ones.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) id: Option<i32>,
}

/// Where the broker is.
#[derive(Debug, Clone, Args)]
pub(crate) struct Bootstrap {
    /// Address of a broker, several with commas; by default `broker.listen` of the configuration, else 127.0.0.1:9092.
    #[arg(long, short, value_name = "HOST:PORT", env = "HAPAX_BOOTSTRAP", value_delimiter = ',')]
    pub(crate) bootstrap: Vec<String>,
}

/// `hapax topic …`.
#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Make a topic.
    Create(TopicCreateArgs),
    /// List topics.
    List {
        #[command(flatten)]
        at: Bootstrap,
    },
    /// Show a topic: partitions, leaders, offsets, settings.
    Describe {
        /// The topic.
        topic: String,
        #[command(flatten)]
        at: Bootstrap,
    },
    /// Delete a topic and everything in it.
    Delete {
        /// The topic.
        topic: String,
        #[command(flatten)]
        doing: Doing,
        #[command(flatten)]
        at: Bootstrap,
    },
    /// Print records: what is there now, or with --follow also what comes.
    Read(TopicReadArgs),
    /// Write lines of standard input, each a record, each once.
    Write(TopicWriteArgs),
}

impl TopicCommand {
    /// Where the broker is.
    pub(crate) const fn at(&self) -> &Bootstrap {
        match self {
            Self::Create(args) => &args.at,
            Self::List { at } | Self::Describe { at, .. } | Self::Delete { at, .. } => at,
            Self::Read(args) => &args.at,
            Self::Write(args) => &args.at,
        }
    }
}

/// `hapax topic create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax topic create orders
  hapax topic create orders --partitions 6 --set retention.ms=3600000
  hapax topic create prices --set cleanup.policy=compact")]
pub(crate) struct TopicCreateArgs {
    /// The topic.
    pub(crate) topic: String,
    /// How many partitions; the broker's `partitions` unless you say so.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) partitions: Option<i32>,
    /// A setting by Kafka's name; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) settings: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) at: Bootstrap,
}

/// `hapax topic read`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hapax topic read orders                              every value that is there now
  hapax topic read orders --long --from 4096 --partition 0
  hapax topic read orders --from 10m --follow          since ten minutes ago, and on
  hapax topic read orders --json | jq .value

With --long each line has partition, offset, time, key and headers before the value. With --json each line is an object;
bytes that are no text come as valueHex and keyHex.")]
pub(crate) struct TopicReadArgs {
    /// The topic.
    pub(crate) topic: String,
    /// Only this partition.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) partition: Option<i32>,
    /// Where to begin: `beginning`, `end`, an offset, `10m` for ten minutes ago, or `@` and milliseconds since 1970.
    #[arg(long, value_name = "WHERE", default_value = "beginning")]
    pub(crate) from: From,
    /// At most so many records.
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// Go on with what comes.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Also show partition, offset, time, key and headers.
    #[arg(long, short)]
    pub(crate) long: bool,
    #[command(flatten)]
    pub(crate) at: Bootstrap,
}

/// `hapax topic write`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo '{\"id\":7}' | hapax topic write orders
  hapax topic write orders --key-separator : < orders.txt        key:value on each line
  tail -F app.log | hapax topic write logs --header host=web1

Records are written idempotently: a retry after a lost answer doubles nothing. Lines with a key go where other clients put
that key (murmur2). What was written is said at the end; --json gives the offsets.")]
pub(crate) struct TopicWriteArgs {
    /// The topic.
    pub(crate) topic: String,
    /// Only into this partition.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) partition: Option<i32>,
    /// What stands between key and value on a line; a line without it has no key.
    #[arg(long, value_name = "TEXT")]
    pub(crate) key_separator: Option<String>,
    /// A header of every record; may be given several times.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) headers: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) at: Bootstrap,
}

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// At the first record.
    Beginning,
    /// Behind the last.
    End,
    /// At this offset.
    Offset(i64),
    /// At the first record of the last so many milliseconds.
    Ago(i64),
    /// At the first record of this time, in milliseconds since 1970.
    Time(i64),
}

impl std::str::FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write beginning, end, an offset, a span such as 10m, or @ and milliseconds since 1970, such as @1763287200000"
                .to_owned()
        };
        match text {
            "beginning" => return Ok(Self::Beginning),
            "end" => return Ok(Self::End),
            _ => {}
        }
        if let Some(time) = text.strip_prefix('@') {
            return time.parse().ok().filter(|time| *time >= 0).map(Self::Time).ok_or_else(wrong);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Offset).map_err(|_| wrong());
        }
        let ago = hapax_model::units::parse_duration(text).map_err(|_| wrong())?;
        i64::try_from(ago.as_millis()).map(Self::Ago).map_err(|_| wrong())
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} has no =; write NAME=VALUE"))?;
    if name.is_empty() { Err("the name is missing".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each way to say where reading begins is understood, and nothing else. Method: one of each, and mistakes.
    #[test]
    fn where_reading_begins_is_understood() {
        for (text, expected) in [
            ("beginning", From::Beginning),
            ("end", From::End),
            ("4096", From::Offset(4096)),
            ("10m", From::Ago(600_000)),
            ("@1763287200000", From::Time(1_763_287_200_000)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for wrong in ["", "-5", "@-1", "@soon", "yesterday", "99999999999999999999"] {
            assert!(wrong.parse::<From>().is_err(), "{wrong:?}");
        }
    }
}
