//! `hapax topic read`: records, one line each.

use std::time::Duration;

use hapax_kafka::records::FetchedRecord;
use hapax_kafka::{At, Client, ClientError, Reader};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::describe::partition_count;
use super::{failed, usage};
use crate::cli::{From, Shared, TopicReadArgs};
use crate::commands::look::clock::moment;
use crate::exit::Failure;
use crate::roster::now_ms;

/// How long one question waits for something new.
const WAIT: Duration = Duration::from_millis(500);
/// How long to wait before asking again after an error that may pass.
const PAUSE: Duration = Duration::from_millis(200);
/// Records that wait to be printed, of all partitions.
const QUEUE: usize = 1000;

/// A record with the partition it came from.
type Read = (i32, FetchedRecord);

/// Prints records.
pub(super) async fn read(mut client: Client, args: &TopicReadArgs, shared: &Shared) -> Result<u8, Failure> {
    let count = partition_count(&mut client, &args.topic).await?;
    let chosen: Vec<i32> = match args.partition {
        Some(partition) if partition >= count => {
            let message = format!("topic {} has no partition {partition}: it has {count}, from 0 on", args.topic);
            return Err(usage(message));
        }
        Some(partition) => vec![partition],
        None => (0..count).collect(),
    };
    let mut print = Print { left: args.count.unwrap_or(u64::MAX), json: shared.json, long: args.long };
    let (send, receive) = mpsc::channel(QUEUE);
    let mut lanes = tokio::task::JoinSet::new();
    for partition in chosen {
        let end = client.offset(&args.topic, partition, At::End).await.map_err(|error| failed(&error))?;
        let from = begin(&mut client, &args.topic, partition, args.from, end).await?;
        let upto = if args.follow { i64::MAX } else { end };
        let own = client.another();
        let reader = Reader::new(own, args.topic.clone(), partition, from, WAIT);
        if args.follow {
            lanes.spawn(follow(reader, partition, upto, send.clone()));
        } else if print.left > 0 {
            // One after the other: what is there now comes in the order of its partition.
            drain(reader, partition, upto, &mut print).await?;
        }
    }
    drop(send);
    if args.follow {
        tokio::select! {
            ended = print_all(receive, &mut lanes, &mut print) => ended?,
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    Ok(0)
}

/// The offset to begin at.
async fn begin(client: &mut Client, topic: &str, partition: i32, from: From, end: i64) -> Result<i64, Failure> {
    let at = match from {
        From::Beginning => At::Start,
        From::End => return Ok(end),
        From::Offset(offset) => return Ok(offset),
        From::Ago(ago) => At::Time(i64::try_from(now_ms()).unwrap_or(i64::MAX).saturating_sub(ago).max(0)),
        From::Time(time) => At::Time(time),
    };
    let offset = client.offset(topic, partition, at).await.map_err(|error| failed(&error))?;
    // No record is that late.
    Ok(if offset < 0 { end } else { offset })
}

/// Prints what is there up to `upto`.
async fn drain(mut reader: Reader, partition: i32, upto: i64, print: &mut Print) -> Result<(), Failure> {
    while reader.position() < upto && print.left > 0 {
        for record in patiently(&mut reader).await.map_err(|error| failed(&error))? {
            if record.offset >= upto {
                return Ok(());
            }
            print.record(partition, &record);
        }
    }
    Ok(())
}

/// Sends what comes, until nobody listens.
async fn follow(mut reader: Reader, partition: i32, upto: i64, send: mpsc::Sender<Read>) -> Result<(), ClientError> {
    while reader.position() < upto {
        for record in patiently(&mut reader).await? {
            if send.send((partition, record)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The next records; an error that may pass is waited out.
async fn patiently(reader: &mut Reader) -> Result<Vec<FetchedRecord>, ClientError> {
    /// So often a broker may be away: half a minute.
    const TRIES: u32 = 150;
    let mut tries = 0;
    loop {
        match reader.read().await {
            Ok(records) => return Ok(records),
            Err(error) if error.is_retriable() && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn print_all(
    mut records: mpsc::Receiver<Read>,
    lanes: &mut tokio::task::JoinSet<Result<(), ClientError>>,
    print: &mut Print,
) -> Result<(), Failure> {
    while print.left > 0 {
        // Both may be dropped without loss: recv and join_next are cancel safe.
        tokio::select! {
            record = records.recv() => match record {
                Some((partition, record)) => print.record(partition, &record),
                None => return Ok(()),
            },
            Some(Ok(Err(error))) = lanes.join_next() => return Err(failed(&error)),
        }
    }
    Ok(())
}

/// How records look, and how many more are wanted.
struct Print {
    left: u64,
    json: bool,
    long: bool,
}

impl Print {
    fn record(&mut self, partition: i32, record: &FetchedRecord) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if self.json {
            println!("{}", as_json(partition, record));
        } else if self.long {
            println!("{}", as_line(partition, record));
        } else {
            println!("{}", shown(record.value.as_deref()));
        }
    }
}

/// `0 4096 2026-11-16 10:00:00 UTC key=7 host=web1: value`.
fn as_line(partition: i32, record: &FetchedRecord) -> String {
    let time = u64::try_from(record.timestamp).map_or_else(|_| "no time".to_owned(), moment);
    let mut line = format!("{partition} {} {time}", record.offset);
    if let Some(key) = &record.key {
        line.push_str(&format!(" key={}", shown(Some(key))));
    }
    for (name, value) in &record.headers {
        line.push_str(&format!(" {}={}", String::from_utf8_lossy(name), shown(value.as_deref())));
    }
    line.push_str(": ");
    line.push_str(&shown(record.value.as_deref()));
    line
}

/// Text as it is; what is no text, and what is not there, so that it cannot be taken for text.
fn shown(bytes: Option<&[u8]>) -> String {
    match bytes.map(std::str::from_utf8) {
        None => "(null)".to_owned(),
        Some(Ok(text)) => text.to_owned(),
        Some(Err(_)) => format!("0x{}", hex(bytes.unwrap_or_default())),
    }
}

fn as_json(partition: i32, record: &FetchedRecord) -> Value {
    let mut object = Map::new();
    object.insert("partition".into(), json!(partition));
    object.insert("offset".into(), json!(record.offset));
    object.insert("timestampMs".into(), json!(record.timestamp));
    put(&mut object, "key", record.key.as_deref());
    put(&mut object, "value", record.value.as_deref());
    let headers: Vec<Value> = record
        .headers
        .iter()
        .map(|(name, value)| {
            let mut header = Map::new();
            header.insert("name".into(), json!(String::from_utf8_lossy(name)));
            put(&mut header, "value", value.as_deref());
            Value::Object(header)
        })
        .collect();
    object.insert("headers".into(), Value::Array(headers));
    Value::Object(object)
}

/// Text under `name`, other bytes under `nameHex`.
fn put(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(std::str::from_utf8) {
        None => object.insert(name.to_owned(), Value::Null),
        Some(Ok(text)) => object.insert(name.to_owned(), json!(text)),
        Some(Err(_)) => object.insert(format!("{name}Hex"), json!(hex(bytes.unwrap_or_default()))),
    };
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: Option<&'static [u8]>) -> FetchedRecord {
        FetchedRecord {
            offset: 7,
            timestamp: 0,
            key: Some(b"k".as_slice().into()),
            value: value.map(Into::into),
            headers: vec![(b"h".as_slice().into(), Some(b"1".as_slice().into())), (b"h".as_slice().into(), None)],
        }
    }

    /// Goal: nothing is lost on the way to a person or a program. Method: text, other bytes, a tombstone; headers twice.
    #[test]
    fn records_are_shown_whole() {
        let line = as_line(2, &record(Some(b"v")));
        assert_eq!(line, "2 7 1970-01-01 00:00:00 UTC key=k h=1 h=(null): v");
        assert!(as_line(0, &record(Some(b"\xff\x00"))).ends_with(": 0xff00"));
        assert!(as_line(0, &record(None)).ends_with(": (null)"));
        let json = as_json(2, &record(Some(b"\xff")));
        assert_eq!((&json["valueHex"], &json["key"], &json["offset"]), (&json!("ff"), &json!("k"), &json!(7)));
        assert_eq!(json["headers"], json!([{"name": "h", "value": "1"}, {"name": "h", "value": null}]));
        assert_eq!(as_json(0, &record(None))["value"], Value::Null);
    }
}
