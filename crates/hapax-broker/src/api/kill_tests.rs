//! A whole broker under kill -9, in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hapax_kafka::{Connection, Options};

use super::log_rig::{Rig, fetch, fetched, init, send};
use crate::batch::{Batches, Header};
use crate::log::scripted_store::batch_of;
use crate::model::{PartitionId, Topic, TopicId};

const DIRECTORY: &str = "HAPAX_TEST_BROKER_DIRECTORY";

/// Not a test of its own: serves until it is killed, and says where.
#[tokio::test]
#[ignore = "the other process of a_retry_is_recognised_after_kill_9"]
async fn serves_until_it_is_killed() {
    let place = std::env::var_os(DIRECTORY).expect("another test runs this one and names the directory");
    let rig = Rig::new(Path::new(&place)).await;
    let topic = match rig.broker.catalog.topic("t").await.unwrap() {
        Some(topic) => topic,
        None => rig.topic("t", 1, &[]).await,
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "serving {} {}", rig.server.address(), topic.uuid).unwrap();
    out.flush().unwrap();
    drop(out);
    std::future::pending::<()>().await;
}

/// A broker that is killed when this is dropped.
struct Other {
    child: Child,
    address: String,
}

impl Other {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "api::kill_tests::serves_until_it_is_killed"])
            .env(DIRECTORY, directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address =
            lines.filter_map(|line| Some(line.split("serving ").nth(1)?.split(' ').next()?.to_owned())).next();
        Self { child, address: address.expect("it serves") }
    }

    async fn connect(&self) -> Connection {
        let options = Options { answer: crate::patience::LIMIT, ..Options::default() };
        Connection::connect(&self.address, &options).await.unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.child.kill().expect("it runs until it is killed");
        self.child.wait().expect("it ends");
    }
}

fn topic() -> Topic {
    let (id, partitions) = (TopicId(0), vec![PartitionId(0)]);
    Topic { id, uuid: uuid::Uuid::nil(), name: "t".into(), partitions, config: Default::default() }
}

/// All batches, in order.
async fn log(connection: &mut Connection) -> Vec<Header> {
    let (mut all, mut next) = (Vec::new(), 0);
    loop {
        let response = connection.call_at(12, &fetch(&topic(), next, 12).with_max_wait_ms(0)).await.unwrap();
        let records = fetched(&response).records.clone().unwrap();
        let Some(last) = Batches::new(&records).last() else { return all };
        all.extend(Batches::new(&records).map(|batch| batch.unwrap().1));
        next = last.unwrap().1.last_offset() + 1;
    }
}

/// Goal: after kill -9 in mid-append what was acknowledged is there, and a retry of what was not is written once. Method: a
/// broker killed six times while a batch is on its way; the batch is sent again to the next process, and again after that.
#[tokio::test]
async fn a_retry_is_recognised_after_kill_9() {
    let place = tempfile::tempdir().unwrap();
    let mut other = Other::start(place.path());
    let mut connection = other.connect().await;
    let id = init(&mut connection, 4, None, (-1, -1)).await.producer_id.0;
    let mut sequence = 0;
    for round in 0..6 {
        for _ in 0..fastrand::i32(1..20) {
            assert_eq!(send(&mut connection, &topic(), batch_of(id, sequence, 2)).await, (0, i64::from(sequence)));
            sequence += 2;
        }
        // On its way when the process ends: written or not, nobody knows.
        let doubtful = tokio::spawn(async move { unanswered(connection, batch_of(id, sequence, 2)).await });
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..4_000))).await;
        drop(other);
        drop(doubtful.await);
        other = Other::start(place.path());
        connection = other.connect().await;
        for _ in 0..2 {
            let again = send(&mut connection, &topic(), batch_of(id, sequence, 2)).await;
            assert_eq!(again, (0, i64::from(sequence)), "round {round}");
        }
        sequence += 2;
    }
    let all = log(&mut connection).await;
    assert_eq!(all.len() as i32, sequence / 2, "every batch once");
    for (index, header) in all.iter().enumerate() {
        assert_eq!((header.base_offset, header.base_sequence), (index as i64 * 2, index as i32 * 2));
    }
}

/// Sends a batch and does not care what becomes of it.
async fn unanswered(mut connection: Connection, batch: bytes::Bytes) -> Option<i64> {
    let timeout = Duration::from_secs(5);
    let request = hapax_kafka::produce_request("t", 0, batch, hapax_kafka::Acks::All, timeout);
    let response = connection.call_at(9, &request).await.ok()?;
    Some(response.responses[0].partition_responses[0].base_offset)
}
