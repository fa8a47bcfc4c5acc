//! `hapax topic write`: lines of standard input as records, each once.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::time::Duration;

use hapax_kafka::batch::NewRecord;
use hapax_kafka::{Client, Patience, Producer};
use serde_json::json;
use tokio::sync::mpsc;

use super::describe::partition_count;
use super::partitioner::partition_of;
use super::{failed, print_json, usage};
use crate::cli::{Shared, TopicWriteArgs};
use crate::exit::Failure;

/// Lines that were read and wait to be sent.
const QUEUE: usize = 4096;
/// The most records of a batch.
const MOST_RECORDS: usize = 2000;
/// A batch is sent when its lines have so many bytes.
const ENOUGH_BYTES: usize = 256 << 10;
/// How long a batch waits for more lines.
const LINGER: Duration = Duration::from_millis(5);

/// Writes every line.
pub(super) async fn write(mut client: Client, args: &TopicWriteArgs, shared: &Shared) -> Result<u8, Failure> {
    let partitions = partition_count(&mut client, &args.topic).await?;
    if let Some(partition) = args.partition.filter(|partition| *partition >= partitions) {
        let message = format!("topic {} has no partition {partition}: it has {partitions}, from 0 on", args.topic);
        return Err(usage(message));
    }
    let mut lines = read_lines()?;
    let mut producer = Producer::new(client, Patience::default());
    let mut written = Written { records: 0, ends: BTreeMap::new() };
    let mut turn = 0;
    while let Some(batch) = next_batch(&mut lines).await {
        let mut by_partition: BTreeMap<i32, Vec<NewRecord>> = BTreeMap::new();
        for line in batch {
            let record = record_of(line?, args);
            let partition = match (args.partition, &record.key) {
                (Some(partition), _) => partition,
                (None, Some(key)) => partition_of(key, partitions),
                (None, None) => turn % partitions.max(1),
            };
            by_partition.entry(partition).or_default().push(record);
        }
        turn = turn.wrapping_add(1) & i32::MAX;
        for (partition, records) in by_partition {
            let sent = producer.send(&args.topic, partition, &records).await.map_err(|error| {
                let failure = failed(&error);
                let known = format!("{}; {} records before were written", failure.message, written.records);
                Failure { message: known, ..failure }
            })?;
            written.records += records.len() as u64;
            let end = sent.base_offset.saturating_add(i64::try_from(records.len()).unwrap_or(i64::MAX));
            written.ends.insert(partition, end);
        }
    }
    written.tell(&args.topic, shared);
    Ok(0)
}

/// What is in the log now.
struct Written {
    records: u64,
    /// The offset behind our last record, by partition.
    ends: BTreeMap<i32, i64>,
}

impl Written {
    fn tell(&self, topic: &str, shared: &Shared) {
        if shared.json {
            let ends: Vec<_> =
                self.ends.iter().map(|(partition, end)| json!({"partition": partition, "end": end})).collect();
            print_json(&json!({"topic": topic, "written": self.records, "partitions": ends}));
        } else {
            println!("Wrote {} records to {topic}.", self.records);
        }
    }
}

type Line = Result<Vec<u8>, Failure>;

/// Standard input on a thread of its own: a terminal may keep it waiting for ever.
fn read_lines() -> Result<mpsc::Receiver<Line>, Failure> {
    let (send, receive) = mpsc::channel(QUEUE);
    let unreadable = |error: std::io::Error| Failure::new("HX5102", format!("standard input cannot be read: {error}"));
    let reading = move || {
        for line in std::io::stdin().lock().split(b'\n') {
            let ends = line.is_err();
            let line = line.map_err(unreadable).map(|mut line| {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                line
            });
            if send.blocking_send(line).is_err() || ends {
                return;
            }
        }
    };
    std::thread::Builder::new().name("stdin".into()).spawn(reading).map_err(unreadable)?;
    Ok(receive)
}

/// The next lines: what there is, and what comes at once; none at the end.
async fn next_batch(lines: &mut mpsc::Receiver<Line>) -> Option<Vec<Line>> {
    let mut batch = vec![lines.recv().await?];
    let mut bytes = 0;
    while batch.len() < MOST_RECORDS && bytes < ENOUGH_BYTES {
        // Dropped by the timeout, recv has taken nothing.
        let Ok(Some(line)) = tokio::time::timeout(LINGER, lines.recv()).await else { break };
        bytes += line.as_ref().map_or(0, Vec::len);
        batch.push(line);
    }
    Some(batch)
}

fn record_of(line: Vec<u8>, args: &TopicWriteArgs) -> NewRecord {
    let separator = args.key_separator.as_deref().unwrap_or_default().as_bytes();
    let at = if separator.is_empty() { None } else { find(&line, separator) };
    let mut record = match at {
        Some(at) => NewRecord::of(line[at + separator.len()..].to_vec()).with_key(line[..at].to_vec()),
        None => NewRecord::of(line),
    };
    let header = |(name, value): &(String, String)| (name.clone(), Some(value.clone().into_bytes().into()));
    record.headers = args.headers.iter().map(header).collect();
    record
}

fn find(line: &[u8], separator: &[u8]) -> Option<usize> {
    line.windows(separator.len()).position(|window| window == separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a line becomes key and value as the separator says. Method: with, without, twice, longer than one byte.
    #[test]
    fn a_line_is_cut_at_the_first_separator() {
        let args = |separator: Option<&str>| TopicWriteArgs {
            topic: "t".into(),
            partition: None,
            key_separator: separator.map(Into::into),
            headers: vec![("h".into(), "1".into())],
            at: crate::cli::Bootstrap { bootstrap: Vec::new() },
        };
        let cut = |line: &str, separator| {
            let record = record_of(line.into(), &args(separator));
            assert_eq!(record.headers.len(), 1);
            let text = |bytes: Option<_>| bytes.map(|bytes: bytes::Bytes| String::from_utf8_lossy(&bytes).into_owned());
            (text(record.key), text(record.value).unwrap_or_default())
        };
        assert_eq!(cut("a:b:c", Some(":")), (Some("a".into()), "b:c".into()));
        assert_eq!(cut("a=>b", Some("=>")), (Some("a".into()), "b".into()));
        assert_eq!(cut("ab", Some(":")), (None, "ab".into()));
        assert_eq!(cut("a:b", None), (None, "a:b".into()));
    }
}
